"""Making a Git repository of a new registry, with GitPython: the folder is the user's own, and trusted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from shutil import which

from dq.contracts.shared.errors import MissingTool, Unreadable, UsageError
from dq.validators.git.repository import find

BRANCH = "main"
# Variables that lead Git to another repository than that of the folder.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def require_none(folder: Path) -> None:
    """Raises UsageError where a repository is there already, or where Git would take another than this.

    Raises MissingTool where there is no Git.
    """
    if which("git") is None:
        raise MissingTool("Git is not installed.", "Install Git, or leave --git out.")
    found = find(folder)
    if found is not None:
        raise UsageError(
            f"{folder} lies in the Git repository {found.top}.",
            "Leave --git out, and commit the files there.",
        )
    named = [name for name in _ELSEWHERE if name in os.environ]
    if named:
        raise UsageError(f"{', '.join(named)} leads Git elsewhere.", f"Unset {', '.join(named)}.")


def make_repository(folder: Path, files: Sequence[Path], message: str) -> None:
    """Makes a repository in a folder, on the branch `main`, and commits these files of it.

    The author is who Git says: its settings `user.name` and `user.email`, else the user of this machine.
    Raises Unreadable where Git fails, such as by a hook of the user's templates.
    """
    # Its import starts Git.
    from git import GitError, Repo

    try:
        with Repo.init(folder, initial_branch=BRANCH) as made:
            made.index.add([str(file.absolute()) for file in files])
            made.index.commit(message)
    except GitError as error:
        reason = str(getattr(error, "stderr", "") or error).strip().removeprefix("stderr:").strip(" '\n")
        raise Unreadable(
            f"Git made no commit in {folder}: {reason[:300]}.",
            "The files are written: correct what Git says, then commit them yourself.",
        ) from error
