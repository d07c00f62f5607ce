"""The files of a commit, read from its trees: nothing is checked out, and links lead nowhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import PurePosixPath
from typing import NamedTuple

from dq.validators.git.objects import objects
from dq.validators.git.repository import BaseUnavailable, Repository

# Few objects can make a tree of a million files, or one without a bottom.
MAX_ENTRIES = 2_000_000
MAX_DEPTH = 100
_CHUNK = 500
_ENDINGS = (b".yaml", b".yml")


class EntryKind(Enum):
    """What an entry of a tree is."""

    FILE = stat.S_IFREG
    FOLDER = stat.S_IFDIR
    LINK = stat.S_IFLNK
    SUBMODULE = 0o160000


_KINDS = {one.value: one for one in EntryKind}


class TreeEntry(NamedTuple):
    """What a name stands for in a tree: its kind, and the id of what it holds."""

    kind: EntryKind
    id: str


def tree_files(
    repo: Repository, commits: Sequence[str], folder: str, *, deep: bool = True
) -> list[Mapping[str, TreeEntry]]:
    """What lies below a folder in each of the commits, by names from the top of the repository.

    Submodules and files that end in `.yaml` or `.yml`; beside them, those directly in the folders above. With
    `deep` false, only what lies directly in the folder. `folder` is empty for the top.
    """
    found: dict[str, dict[str, TreeEntry]] = {commit: {} for commit in commits}
    parts = PurePosixPath(folder).parts
    # (commit, folder's name, its tree): one level of all commits at a time, for each asks Git once.
    level = [(commit, "", tree) for commit, tree in _roots(repo, found).items()]
    known: dict[str, list[tuple[str, TreeEntry]]] = {}
    seen = depth = 0
    while level:
        new = {tree for _, _, tree in level} - known.keys()
        known |= {tree: list(_entries(data, tree)) for tree, data in objects(repo, new, "tree").items()}
        following: list[tuple[str, str, str]] = []
        for commit, above, tree in level:
            seen += len(known[tree])
            if seen > MAX_ENTRIES or depth > MAX_DEPTH:
                message = (
                    f"commit {commit} has more than {MAX_ENTRIES:,} files, or {MAX_DEPTH} folders in folders."
                )
                raise BaseUnavailable(message, "Name the folder of the registry.")
            for name, entry in known[tree]:
                way = above + name
                if entry.kind is not EntryKind.FOLDER:
                    found[commit].setdefault(way, entry)
                elif deep if depth >= len(parts) else name == parts[depth]:
                    following.append((commit, f"{way}/", entry.id))
        level = following
        depth += 1
    return [found[commit] for commit in commits]


def tree_entries(repo: Repository, commits: Sequence[str], path: str) -> dict[str, TreeEntry]:
    """What a path stands for in each of the commits in which there is something, folders too."""
    found = {commit: TreeEntry(EntryKind.FOLDER, tree) for commit, tree in _roots(repo, commits).items()}
    for part in path.split("/"):
        trees = objects(repo, {one.id for one in found.values() if one.kind is EntryKind.FOLDER}, "tree")
        inside = {
            id_: next((entry for name, entry in _every(data, id_) if name == part), None)
            for id_, data in trees.items()
        }
        found = {commit: entry for commit, one in found.items() if (entry := inside.get(one.id)) is not None}
    return found


def entry_contents(repo: Repository, entries: Mapping[str, TreeEntry]) -> Iterator[tuple[str, bytes | None]]:
    """What the entries hold, by their names; None for what is no file. A part is in memory at a time."""
    every = list(entries.items())
    for start in range(0, len(every), _CHUNK):
        part = every[start : start + _CHUNK]
        blobs = objects(repo, {one.id for _, one in part if one.kind is EntryKind.FILE}, "blob")
        yield from ((name, blobs.get(one.id)) for name, one in part)


def entry_content(repo: Repository, entry: TreeEntry | None) -> bytes | None:
    """What one entry holds; None for what is no file or not there."""
    return next((data for _, data in entry_contents(repo, {"": entry})), None) if entry else None


def _roots(repo: Repository, commits: Iterable[str]) -> dict[str, str]:
    """The tree of each commit."""
    return {
        id_: data.split(b"\n", 1)[0].removeprefix(b"tree ").decode("ascii", "replace")
        for id_, data in objects(repo, commits, "commit").items()
    }


def _entries(data: bytes, tree: str) -> Iterator[tuple[str, TreeEntry]]:
    return (
        (name, entry)
        for name, entry in _every(data, tree)
        if entry.kind in (EntryKind.FOLDER, EntryKind.SUBMODULE) or os.fsencode(name).endswith(_ENDINGS)
    )


def _every(data: bytes, tree: str) -> Iterator[tuple[str, TreeEntry]]:
    """The entries of a tree. Names that no work tree can hold are left out: they are made by hand."""
    start, width = 0, len(tree) // 2
    while start < len(data):
        end = data.find(b"\0", start)
        mode, _, name = data[start:end].partition(b" ")
        start = end + 1 + width
        if end < 0 or start > len(data) or not mode or mode.strip(b"01234567"):
            raise BaseUnavailable(f"tree {tree} is damaged.", "See what 'git fsck' says, and clone it again.")
        if name not in (b"", b".", b"..") and b"/" not in name and name.lower() != b".git":
            # As Git has it: what is nothing else is a submodule.
            kind = _KINDS.get(stat.S_IFMT(int(mode, 8)), EntryKind.SUBMODULE)
            yield os.fsdecode(name), TreeEntry(kind, data[end + 1 : start].hex())
