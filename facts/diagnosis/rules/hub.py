"""D5 to D8: the model's name, the Hub, and room to download."""

import re

from facts.diagnosis.rule import Evidence, Number, Numbers, Rule

_ROOM = re.compile(
    r"expected file size is: ([0-9]{1,12}\.[0-9]{1,4}) MB\. The target location (.{1,400}?) only "
    r"has ([0-9]{1,12}\.[0-9]{1,4}) MB free"
)
_MB_IN_GB = 1000


def _repo(evidence: Evidence) -> dict[str, Number | None]:
    return {"repo": evidence.scene.settings.model}


def _path(evidence: Evidence) -> dict[str, Number | None]:
    model = evidence.scene.settings.model
    return {"path": evidence.groups().get("path") or model}


def _wrong_path(_: Evidence, n: Numbers) -> str:
    path = str(n.get("path", ""))
    if path.startswith(("/", ".", "~")):
        return (
            f"correct the path of the model: {path} does not exist, has no config.json, or is "
            "hidden from the service"
        )
    return f"correct the name of the model: neither a folder nor a repository is called {path!r}"


def _room(evidence: Evidence) -> dict[str, Number | None]:
    """What the Hub's client warned of before."""
    for line in evidence.scene.start.lines:
        if found := _ROOM.search(line.text):
            return {
                "expected_mb": float(found[1]),
                "path": found[2],
                "free_mb": float(found[3]),
            }
    return {"path": _file(evidence)}


def _file(evidence: Evidence) -> str | None:
    found = re.search(r"No space left on device: '([^']{1,400})'", evidence.line.text)
    return found[1] if found else None


def _make_room(evidence: Evidence, n: Numbers) -> str:
    if "free_mb" in n and isinstance(n["free_mb"], float):
        where = f"{n['path']} has {n['free_mb'] / _MB_IN_GB:.1f} GB free"
    elif "path" in n:
        where = f"the file system of {n['path']} is full"
    else:
        where = "a file system is full (df -h names it)"
    hub = "/" in (evidence.scene.settings.model or "") and not (
        evidence.scene.settings.model or ""
    ).startswith("/")
    staged = ", or stage the whole checkpoint beforehand and serve it from a path" if hub else ""
    return f"{where}: free space or move HF_HOME to a larger file system{staged}"


HUB: tuple[Rule, ...] = (
    Rule(
        cause="D6",
        title="the Hub does not give the model to this account",
        patterns=(
            r"You are trying to access a gated repo",
            r"Cannot access gated repo for url (?P<what>\S{1,300})",
            r"GatedRepoError",
            r"Access to model (?P<repo>\S{1,200}) is restricted",
        ),
        why="the model's licence has to be accepted, and a token has to prove it",
        next_step="accept the licence on the model's page, and give the service HF_TOKEN of that "
        "account; or stage the files and serve them from a path",
        source="huggingface_hub utils/_http.py:890",
        numbers=_repo,
    ),
    Rule(
        cause="D6-not-found",
        title="the Hub does not have the model, or hides it",
        patterns=(
            r"RepositoryNotFoundError",
            r"Repository Not Found for url",
            r"RevisionNotFoundError|Revision Not Found for url",
        ),
        why="the Hub answers the same for a name that does not exist and for a private model",
        next_step="correct the name or the revision of {repo}, or give the service HF_TOKEN of an "
        "account that may read it",
        source="huggingface_hub utils/_http.py",
        numbers=_repo,
    ),
    Rule(
        cause="D7",
        title="the model is not on the box, and the network is off",
        patterns=(
            r"LocalEntryNotFoundError",
            r"Cannot reach \S{1,300}: offline mode is enabled",
            r"Cannot find the requested files in the (?:disk cache|local cache) and outgoing "
            r"traffic has been disabled",
            r"We couldn't connect to '[^']{1,200}' to load the files?, and couldn't find",
            r"OfflineModeIsEnabled",
        ),
        why="HF_HUB_OFFLINE=1 forbids to fetch, or the Hub cannot be reached, and the cache lacks "
        "the model",
        next_step="pre-stage {repo} and serve it from a path, or allow network access (unset "
        "HF_HUB_OFFLINE)",
        source="huggingface_hub file_download.py:1946, utils/_http.py:295",
        numbers=_repo,
    ),
    Rule(
        cause="D5",
        title="the model's path is not a model's folder",
        patterns=(
            r"HFValidationError: Repo id must .{0,200}?: '(?P<path>[^']{1,300})'",
            r"(?:^|Error: )(?P<path>[^:]{1,300}?) is not a local folder and is not a valid model",
            r"Invalid repository ID or local directory specified: '(?P<path>[^']{1,300})'",
        ),
        why="a path that is not a folder is read as the name of a repository on the Hub",
        next_step=_wrong_path,
        source="transformers utils/hub.py; huggingface_hub utils/_validators.py",
        numbers=_path,
    ),
    Rule(
        cause="D8",
        title="a disk is full",
        patterns=(r"\[Errno 28\] No space left on device", r"[Dd]isk quota exceeded"),
        when=lambda evidence: "/dev/shm" not in evidence.line.text,  # noqa: S108
        why="a file could not be written to its end",
        next_step=_make_room,
        source="huggingface_hub file_download.py:774",
        numbers=_room,
    ),
)
