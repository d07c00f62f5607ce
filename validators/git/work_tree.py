"""The files that are checked out, read by ourselves and held against what Git has of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from dq.contracts.access import discovery, files
from dq.contracts.access.files import POLICY_FILE, FileRefused, Found
from dq.contracts.shared.document_kind import is_contract
from dq.contracts.shared.errors import Unreadable
from dq.validators.git.objects import id_of, ignored
from dq.validators.git.repository import Repository
from dq.validators.git.tree import EntryKind, TreeEntry

T = TypeVar("T")

Content = bytes | FileRefused
"""The bytes of a file, or why they are not read: it is a link, say."""


def policy_files(root: Path) -> list[str]:
    """The policies below a folder, in order."""
    found = discovery.called(root, POLICY_FILE) if root.is_dir() else []
    return [one.name for one in found if PurePosixPath(one.name).name == POLICY_FILE]


def checked_out_content(file: Found) -> Content:
    """What a file holds now."""
    try:
        return files.read(file)
    except FileRefused as refused:
        return refused


def is_same_content(data: Content, entry: TreeEntry | None) -> bool:
    """Whether a file holds what Git has of it, also with the line breaks of Windows."""
    if not isinstance(data, bytes) or entry is None or entry.kind is not EntryKind.FILE:
        return False
    return entry.id in (
        id_of(data, "blob", entry.id),
        id_of(data.replace(b"\r\n", b"\n"), "blob", entry.id),
    )


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """What of the work tree a commit of all of it would have, by names below the registry's root, in order.

    `contracts` are the contracts, and `others` the YAML files that are none, which the base may know as
    contracts; each comes with the id that Git would give its bytes.
    """

    contracts: Mapping[str, Found]
    others: Mapping[str, tuple[Found, str]]


def checked_out(
    repo: Repository, root: Path, then: Mapping[str, TreeEntry], head: Mapping[str, TreeEntry]
) -> CheckedOut:
    """The contracts that a commit of the whole work tree would have, in order, and the other YAML files.

    `then` and `head` are the files of the base and of HEAD. What ignore files name is left out only where
    neither has it. Contracts of a submodule belong to another repository: where the branch adds or moves
    one that holds contracts, Unreadable is raised.
    """
    prefix = root.relative_to(repo.top).as_posix()
    above = "" if prefix == "." else f"{prefix}/"
    submodules = {name: one for name, one in head.items() if one.kind is EntryKind.SUBMODULE}
    like = next((one.id for one in head.values()), "0" * 40)
    contracts: dict[str, Found] = {}
    others: dict[str, tuple[Found, str]] = {}
    # A branch may have taken the folder away.
    for file, data in discovery.candidates(root) if root.is_dir() else ():
        name = above + file.name
        is_one = data is None or is_contract(data)
        inside = next((str(one) for one in PurePosixPath(name).parents if str(one) in submodules), None)
        if inside is None and is_one:
            contracts[name] = file
        elif inside is None and data is not None:
            others[name] = (file, id_of(data, "blob", like))
        elif is_one and then.get(str(inside)) != submodules[str(inside)]:
            raise Unreadable(
                f"{inside} is a submodule that this branch adds or moves, so {file} has no base here.",
                "Judge its contracts in a pull request of its own repository.",
            )
    left_out = ignored(
        repo, [name for name in (*contracts, *others) if name not in then and name not in head]
    )
    return CheckedOut(
        {file.name: file for name, file in _in_order(contracts) if name not in left_out},
        {one[0].name: one for name, one in _in_order(others) if name not in left_out},
    )


def _in_order(named: Mapping[str, T]) -> list[tuple[str, T]]:
    return sorted(named.items(), key=lambda one: one[0].split("/"))


def first_link(top: Path, folder: Path) -> Path | None:
    """The first link on the way from the top of a work tree down to a folder, itself included."""
    ways = (folder, *folder.parents)
    return next(
        (way for way in reversed(ways) if way.is_relative_to(top) and way != top and way.is_symlink()), None
    )


def nearest_folder(place: Path, top: Path, name: str) -> Path | None:
    """The nearest folder at or above a place that has something of this name, up to the top."""
    start = Path(os.path.normpath(place.absolute()))
    folders = (one for one in (start, *start.parents) if one.is_relative_to(top))
    return next((one for one in folders if os.path.lexists(one / name)), None)
