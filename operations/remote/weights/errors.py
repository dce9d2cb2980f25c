"""What ends a fetch, or one attempt at a file, each in a sentence for the operator.

::

    FetchError             ends the fetch, or the file that it is about
    ├── OneFileError       this file cannot be had; the others can
    ├── StoppedError       another file's error ended this one's download
    ├── LostLeaseError     another box took over
    └── AgainError         this attempt failed; the next may not
        ├── StalledError   the connection is open and no bytes come, or next to none
        ├── PortalError    a web page came in place of the file
        └── CorruptError   bytes came, and they are not those that the Hub lists
"""

import errno
import os
import pwd
from pathlib import Path


class FetchError(Exception):
    """What ends the fetch, in a sentence for the operator."""


class OneFileError(FetchError):
    """One file cannot be had. The others are still worth fetching."""


class StoppedError(FetchError):
    """The fetch ends for another reason, which is told elsewhere."""


class LostLeaseError(FetchError):
    """Another box took the lease: this one must not write any more."""


class AgainError(FetchError):
    """An attempt that failed in a way that passes."""


class StalledError(AgainError):
    """An open connection over which no bytes come, or next to none."""


class PortalError(AgainError):
    """A web page came in place of the file."""


class CorruptError(AgainError):
    """The bytes that came are not those that the Hub lists."""


def disk_sentence(error: OSError, path: Path) -> str | None:
    """What the refusal of a file system means; None for any other error.

    + path: where the snapshot goes: named if the error names no file
    """
    where = error.filename if isinstance(error.filename, str) else str(path)
    me = _user(os.getuid())
    code = errno.errorcode.get(error.errno or 0, "")
    sentences = {
        "ENOSPC": f"the file system of {where} is full: free space there and run again; what was "
        "fetched so far is kept",
        "EDQUOT": f"the disk quota of {me} on the file system of {where} is used up: raise it and "
        "run again; what was fetched so far is kept",
        "EROFS": f"the file system of {where} is mounted read-only: mount it read-write",
        "EACCES": f"{me} may not write {where}, which belongs to {_owner(where)}: give the folder "
        f"to {me}; on NFS the server may map the user to nobody (root squash, idmapping)",
        "ENOLCK": f"the file server of {where} gives no locks (ENOLCK): boxwright needs none, so "
        "that another program or the client asked for them; look at rpc.statd on the server",
        "ESTALE": f"{where} went away under a network mount (ESTALE): the server was restarted or "
        "the folder replaced there; mount it again and run again",
        "EIO": f"the disk or the file server of {where} reports an input/output error: look at the "
        "kernel log (dmesg) before anything else is written there",
        "EFBIG": f"{where} is larger than its file system or the limit of {me} allows",
        "EOPNOTSUPP": f"the file system of {where} cannot do what a snapshot needs",
        "EXDEV": f"{where} and its staging folder are on two file systems",
    }
    sentences["EPERM"] = sentences["EACCES"]
    found = sentences.get(code)
    return f"{found} [{code}]" if found else None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _owner(where: str) -> str:
    """Owner of a path, or of its nearest parent that can be looked at."""
    for candidate in (Path(where), *Path(where).parents):
        try:
            return _user(candidate.stat().st_uid)
        except OSError:
            continue
    return "somebody else"
