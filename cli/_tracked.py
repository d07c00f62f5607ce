"""Interim: whether Git has a folder in its index, until the door for Git answers it."""

from __future__ import annotations

import os
from pathlib import Path


def tracked(folder: Path) -> bool:
    from git.cmd import Git

    where = folder.absolute()
    top = next((one for one in where.parents if os.path.lexists(one / ".git")), None)
    if top is None:
        return False
    way = where.relative_to(top).as_posix()
    command = ["git", f"--git-dir={top / '.git'}", f"--work-tree={top}"]
    for setting in ("safe.bareRepository=explicit", "core.fsmonitor=false", f"core.hooksPath={os.devnull}"):
        command += ["-c", setting]
    said = Git(str(top)).execute([*command, "ls-files", "-z", "--", f":(top,icase){way}"])
    return bool(said)
