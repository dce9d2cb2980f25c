"""The two origins: the Hub with its API, and the "CDN" that holds the bytes of files in LFS."""

from __future__ import annotations

import hashlib
import time
from typing import Any, ClassVar
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

from tests.lab.hub.access import RefusedError
from tests.lab.hub.body import send_file
from tests.lab.hub.control import is_local, perform
from tests.lab.hub.faults import Fault
from tests.lab.hub.handler import Call, Handler
from tests.lab.hub.repository import Commit, Entry, NotFoundError


class HubOrigin(Handler):
    """The API, the small files, and the redirects to the CDN."""

    where: ClassVar[str] = "hub"

    def _serve(self) -> None:
        if self.path.startswith("/__control/"):
            self._control()
        else:
            super()._serve()

    def _control(self) -> None:
        """Answer the tests; this is neither logged nor hit by faults."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.number = 0
        if not is_local(str(self.client_address[0])):
            self.send_json({"error": "loopback only"}, 403)
            return
        status, value = perform(self.state, self.path.removeprefix("/__control/"), body)
        self.send_json(value, status)

    def call(self, segments: list[str]) -> Call:
        """Route a request."""
        match segments:
            case ["api", "models", org, name, *rest]:
                return self._api(f"{org}/{name}", rest)
            case ["api", "whoami-v2"]:
                return Call("", "whoami", lambda _: self._whoami())
            case [org, name, "resolve", revision, *parts] if parts:
                repo, path = f"{org}/{name}", "/".join(parts)
                return Call(repo, path, lambda fault: self._resolve(repo, revision, path, fault))
        return Call("", "other", lambda _: self.send_json({"error": "Not Found"}, 404))

    def _api(self, repo: str, segments: list[str]) -> Call:
        """Route a call of the API on a model."""
        match segments:
            case []:
                return Call(repo, "info", lambda _: self._info(repo, "main"))
            case ["revision", revision]:
                return Call(repo, "info", lambda _: self._info(repo, revision))
            case ["tree", revision, *folder]:
                return Call(repo, "tree", lambda _: self._tree(repo, revision, "/".join(folder)))
            case ["paths-info", revision]:
                return Call(repo, "paths-info", lambda _: self._paths_info(repo, revision))
            case ["refs"]:
                return Call(repo, "refs", lambda _: self._refs(repo))
        return Call(repo, "other", lambda _: self.send_json({"error": "Not Found"}, 404))

    def _commit(self, repo: str, revision: str) -> Commit:
        self.state.access.check(repo, self.token, content=False)
        return self.state.library.commit(repo, revision)

    def _info(self, repo: str, revision: str) -> None:
        commit = self._commit(repo, revision)
        blobs = self.query.get("blobs", "").lower() == "true"
        self.send_json(
            {
                "_id": hashlib.sha256(repo.encode()).hexdigest()[:24],
                "id": repo,
                "modelId": repo,
                "author": repo.split("/", maxsplit=1)[0],
                "sha": commit.sha,
                "private": repo in self.state.access.private,
                "gated": "manual" if repo in self.state.access.gated else False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [_sibling(entry, blobs) for entry in commit.files.values()],
            },
            headers={"X-Repo-Commit": commit.sha},
        )

    def _tree(self, repo: str, revision: str, folder: str) -> None:
        commit = self._commit(repo, revision)
        inside = f"{folder}/" if folder else ""
        recursive = self.query.get("recursive", "").lower() == "true"
        entries = [
            entry
            for entry in _objects(commit)
            if entry["path"].startswith(inside)
            and (recursive or "/" not in entry["path"].removeprefix(inside))
        ]
        if folder and not entries:
            raise NotFoundError("EntryNotFound", f"{folder} does not exist on {revision}")
        start = int(self.query.get("cursor", "0"))
        page = max(1, min(self.state.page, int(self.query.get("limit", self.state.page))))
        headers = {"X-Repo-Commit": commit.sha}
        if start + page < len(entries):
            parts = urlsplit(self.path)
            query = [pair for pair in parse_qsl(parts.query) if pair[0] != "cursor"]
            query.append(("cursor", str(start + page)))
            url = f"{self.state.hub_url}{parts.path}?{urlencode(query)}"
            headers["Link"] = f'<{url}>; rel="next"'
        self.send_json(entries[start : start + page], headers=headers)

    def _paths_info(self, repo: str, revision: str) -> None:
        commit = self._commit(repo, revision)
        paths = {path.strip("/") for path in parse_qs(self.body.decode()).get("paths", [])}
        self.send_json([entry for entry in _objects(commit) if entry["path"] in paths])

    def _refs(self, repo: str) -> None:
        self.state.access.check(repo, self.token, content=False)
        repository = self.state.library.repository(repo)
        self.send_json(
            {
                "branches": _refs(repository.branches, "heads"),
                "tags": _refs(repository.tags, "tags"),
                "converts": [],
                "pullRequests": [],
            }
        )

    def _whoami(self) -> None:
        if self.token is None or self.token not in self.state.access.tokens:
            raise RefusedError(401, "", "Invalid credentials in Authorization header")
        self.send_json({"type": "user", "name": "reader", "fullname": "Reader", "orgs": []})

    def _resolve(self, repo: str, revision: str, path: str, fault: Fault | None) -> None:
        self.state.access.check(repo, self.token, content=True)
        commit, entry = self.state.library.entry(repo, revision, path)
        headers = {"X-Repo-Commit": commit.sha, "ETag": f'"{entry.etag}"'}
        if entry.sha256 is None:
            send_file(self, entry, headers, fault)
            return
        target = f"/{repo}/{commit.sha}/{quote(path)}"
        expires = str(int(time.time() + self.state.url_lifetime))
        query = {"Expires": expires, "Signature": self.state.signature(target, expires)}
        headers |= {
            "X-Linked-Size": str(entry.size),
            "X-Linked-ETag": f'"{entry.etag}"',
            "Location": f"{self.state.cdn_url}{target}?{urlencode(query)}",
            "Content-Type": "text/plain; charset=utf-8",
        }
        self.send_bytes(b"Found. Redirecting to the content network\n", 302, headers)


class CdnOrigin(Handler):
    """The bytes of files in LFS, for whoever has a signed URL."""

    where: ClassVar[str] = "cdn"

    def call(self, segments: list[str]) -> Call:
        """Route a request."""
        match segments:
            case [org, name, sha, *parts] if parts:
                repo, path = f"{org}/{name}", "/".join(parts)
                return Call(repo, path, lambda fault: self._send(repo, sha, path, fault))
        return Call("", "other", lambda _: self.send_bytes(b"", 404, {}))

    def _send(self, repo: str, sha: str, path: str, fault: Fault | None) -> None:
        if self.headers.get("Authorization") is not None:
            # A presigned URL is the authorisation: S3 refuses a second one with 400, so a
            # client that leaks its token to another origin is told.
            self._error(400, "InvalidArgument", "Only one auth mechanism allowed")
            return
        target, query = urlsplit(self.path).path, self.query
        expires = query.get("Expires", "0")
        if query.get("Signature") != self.state.signature(target, expires):
            self._error(403, "SignatureDoesNotMatch", "The signature does not match")
        elif float(expires) < time.time():
            self._error(403, "AccessDenied", "Request has expired")
        else:
            _, entry = self.state.library.entry(repo, sha, path)
            send_file(self, entry, {"ETag": f'"{entry.etag}"'}, fault)

    def _error(self, status: int, code: str, message: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>\n".encode()
        self.send_bytes(body, status, {"Content-Type": "application/xml"})


def _sibling(entry: Entry, blobs: bool) -> dict[str, Any]:
    """A file as model_info lists it."""
    if not blobs:
        return {"rfilename": entry.path}
    found = {"rfilename": entry.path, "size": entry.size, "blobId": entry.oid}
    if entry.sha256 is None:
        return found
    lfs = {"sha256": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
    return {**found, "lfs": lfs}


def _objects(commit: Commit) -> list[dict[str, Any]]:
    """Files and folders as the tree lists them, in the order of their paths."""
    found: list[dict[str, Any]] = [
        {"type": "directory", "path": path, "size": 0, "oid": _folder_oid(path, commit)}
        for path in commit.directories()
    ]
    for entry in commit.files.values():
        item = {"type": "file", "path": entry.path, "size": entry.size, "oid": entry.oid}
        if entry.sha256 is not None:
            lfs = {"oid": entry.sha256, "size": entry.size, "pointerSize": entry.pointer_size}
            found.append({**item, "lfs": lfs})
        else:
            found.append(item)
    return sorted(found, key=lambda item: str(item["path"]))


def _folder_oid(path: str, commit: Commit) -> str:
    """A name for a folder that changes with its content."""
    inside = [entry.oid for name, entry in commit.files.items() if name.startswith(f"{path}/")]
    return hashlib.sha1("\n".join([path, *inside]).encode(), usedforsecurity=False).hexdigest()


def _refs(names: dict[str, str], kind: str) -> list[dict[str, str]]:
    """Branches or tags as the Hub lists them."""
    return [
        {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha}
        for name, sha in sorted(names.items())
    ]
