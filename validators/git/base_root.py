"""Where a registry begins, as the base knows it: no branch moves the folder whose policy judges it."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import NamedTuple

from dq.contracts.access.files import POLICY_FILE
from dq.contracts.shared.errors import Unreadable
from dq.validators.git.objects import commit_of, merge_base, repository
from dq.validators.git.repository import BaseUnavailable, Repository, find
from dq.validators.git.tree import EntryKind, tree_entries, tree_files
from dq.validators.git.work_tree import first_link

_MEND = "Judge its contracts in a pull request of its own repository."


class Root(NamedTuple):
    """The folder of a registry, and the commit of the reference that says so."""

    folder: Path
    tip: str


def registry_root(path: Path, ref: str) -> Root:
    """The registry around a path: the nearest folder that has a policy at `ref`, else the repository's top.

    Raises as `open_base`.
    """
    repo = repository(path, ref)
    named = without_links(repo, path)
    tip = commit_of(repo, ref)
    there = tree_entries(repo, [tip], path_below(named, repo.top)).get(tip) if named != repo.top else None
    if there is None and not os.path.lexists(named):
        raise Unreadable(f"{path} exists neither here nor at {ref!r}.", "Name a folder of contracts.")
    # A branch that takes the folder away, or puts a file there, does not lead to the policy above.
    folder = named.is_dir() if there is None else there.kind is EntryKind.FOLDER
    start = named if folder else named.parent
    (files,) = tree_files(repo, [tip], path_below(start, repo.top), deep=False)
    folders = [one for one in (start, *start.parents) if one.is_relative_to(repo.top)]
    ruled = (one for one in folders if posixpath.join(path_below(one, repo.top), POLICY_FILE) in files)
    return Root(next(ruled, repo.top), tip)


def without_links(repo: Repository, folder: Path) -> Path:
    """The folder, absolute. Raises Unreadable where a link of the work tree leads to it."""
    absolute = Path(os.path.normpath(folder.absolute()))
    link = first_link(repo.top, absolute)
    if link is not None:
        message = f"{link} is a link, so it is not known whose contracts are meant."
        raise Unreadable(message, "Name the folder itself.")
    return absolute


def refuse_moved_submodule(repo: Repository, ref: str) -> None:
    """Raises Unreadable where the repository is a submodule that the branch of the outer one moves.

    It would bring a base of its own, which a stranger chose together with the contracts.
    """
    try:
        outer = find(repo.top.parent)
    except BaseUnavailable:
        # No commit leads a `.git` astray: this one has nothing to do with us.
        return
    if outer is None:
        return
    name = path_below(repo.top, outer.top)
    head = commit_of(outer, "HEAD")
    now = tree_entries(outer, [head], name).get(head)
    if now is None or now.kind is not EntryKind.SUBMODULE:
        return
    try:
        tip = commit_of(outer, ref)
    except BaseUnavailable:
        return
    then = merge_base(outer, ref, tip, head)
    if tree_entries(outer, [then], name).get(then) != now:
        raise Unreadable(
            f"{repo.top} is a submodule that this branch adds or moves, so it has no base here.", _MEND
        )


def path_below(folder: Path, top: Path) -> str:
    """The way from the top to a folder; empty for the top itself."""
    inside = folder.relative_to(top).as_posix()
    return "" if inside == "." else inside
