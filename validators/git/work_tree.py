"""The files that are checked out, read by ourselves and held against what Git has of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from dq.contracts.access import files
from dq.contracts.access.files import POLICY_FILE, FileRefused, Found
from dq.contracts.shared.errors import Unreadable
from dq.validators.git.objects import id_of, ignored
from dq.validators.git.repository import Repository
from dq.validators.git.tree import EntryKind, TreeEntry

Content = bytes | FileRefused
"""The bytes of a file, or why they are not read: it is a link, say."""


def contracts(root: Path) -> list[Found]:
    """The contracts below a folder, in order, and the folders that cannot be read.

    Nothing where there is no folder: a branch may have taken it away.
    """
    return files.below(root) if root.is_dir() else []


def policies(root: Path) -> list[str]:
    """The policies below a folder, in order."""
    listed = files.below(root, (POLICY_FILE,)) if root.is_dir() else []
    return [one.name for one in listed if PurePosixPath(one.name).name == POLICY_FILE]


def content(file: Found) -> Content:
    """What a file holds now."""
    try:
        return files.read(file)
    except FileRefused as refused:
        return refused


def same(data: Content, entry: TreeEntry | None) -> bool:
    """Whether a file holds what Git has of it, also with the line breaks of Windows."""
    if not isinstance(data, bytes) or entry is None or entry.kind is not EntryKind.FILE:
        return False
    return entry.id in (
        id_of(data, "blob", entry.id),
        id_of(data.replace(b"\r\n", b"\n"), "blob", entry.id),
    )


def present(
    repo: Repository, root: Path, then: Mapping[str, TreeEntry], head: Mapping[str, TreeEntry]
) -> dict[str, Found]:
    """The contracts that a commit of the whole work tree would have, in order.

    `then` and `head` are the files of the base and of HEAD. What ignore files name is left out only where
    neither has it. Contracts of a submodule belong to another repository: where the branch adds or moves
    one that holds contracts, Unreadable is raised.
    """
    prefix = root.relative_to(repo.top).as_posix()
    above = "" if prefix == "." else f"{prefix}/"
    submodules = {name: one for name, one in head.items() if one.kind is EntryKind.SUBMODULE}
    found: dict[str, Found] = {}
    for file in contracts(root):
        name = above + file.name
        inside = next((str(one) for one in PurePosixPath(name).parents if str(one) in submodules), None)
        if inside is None:
            found[name] = file
        elif then.get(inside) != submodules[inside]:
            raise Unreadable(
                f"{inside} is a submodule that this branch adds or moves, so {file} has no base here.",
                "Judge its contracts in a pull request of its own repository.",
            )
    left_out = ignored(repo, [name for name in found if name not in then and name not in head])
    return {file.name: file for name, file in found.items() if name not in left_out}


def link(top: Path, folder: Path) -> Path | None:
    """The first link on the way from the top of a work tree down to a folder, itself included."""
    ways = (folder, *folder.parents)
    return next(
        (way for way in reversed(ways) if way.is_relative_to(top) and way != top and way.is_symlink()), None
    )


def nearest(place: Path, top: Path, name: str) -> Path | None:
    """The nearest folder at or above a place that has something of this name, up to the top."""
    start = Path(os.path.normpath(place.absolute()))
    folders = (one for one in (start, *start.parents) if one.is_relative_to(top))
    return next((one for one in folders if os.path.lexists(one / name)), None)
