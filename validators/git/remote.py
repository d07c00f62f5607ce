"""Where a repository comes from, as a name that is the same in every checkout."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from dq.validators.git.repository import find, run

_SCP = re.compile(r"(?:[^@/:]+@)?(?P<host>[^/:]+):(?P<path>[^/].*)")
_NO_SUCH_KEY = 1


def remote_name(folder: Path) -> str:
    """Host and path of the remote `origin`, such as `github.com/air/contracts`; "" where there is none.

    Without users, passwords, ports, and the ending `.git`: HTTPS and SSH give one name. A remote that is a
    folder is a copy on this machine and names nothing. Raises BaseUnavailable where Git cannot tell.
    """
    repo = find(folder)
    if repo is None:
        return ""
    answer = run(repo, ("config", "--get", "remote.origin.url"), fine=(0, _NO_SUCH_KEY))
    return name_of(answer.decode(errors="replace").strip())


def name_of(url: str) -> str:
    """The name in a remote's URL, "" where it names no host."""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        found = _SCP.fullmatch(url)
        host, path = (found["host"].lower(), found["path"]) if found else ("", "")
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host}/{path}" if host and path else ""
