"""The past of one contract, from its tags or its file's commits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from dq.contracts.access.discovery import called_contract
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.validators.compat.version import read_version
from dq.validators.git.objects import commits_of, objects, tags
from dq.validators.git.repository import Repository, find
from dq.validators.git.tree import EntryKind, TreeEntry, entry_contents, tree_entries, tree_files
from dq.validators.git.version_history import Dated

_NEWEST = 200
_ALL = 10_000
_NEVER = date(9000, 1, 1)


def tagged(repo: Repository, commit: str, contract: Contract, path: str, folder: str) -> Dated:
    """The contract at each of its tags `<id>/vX.Y.Z` up to a commit, in order of time.

    `path` is its file, which is looked at first, and `folder` the registry, both as Git names them.
    """
    prefix = f"{contract.id}/v"
    named = [
        (id_, time)
        for name, id_, time in tags(repo, commit)
        if name.startswith(prefix) and read_version(name[len(prefix) :])
    ]
    own = tree_entries(repo, [id_ for id_, _ in named], path)
    found = []
    for id_, time in named:
        old = _same(repo, [own[id_]] if id_ in own else [], contract)
        if old is None:
            (every,) = tree_files(repo, [id_], folder)
            # Those that are called contracts come first: they may be all that has to be read.
            names = sorted(every, key=lambda name: (not called_contract(name), name))
            old = _same(repo, [every[name] for name in names], contract)
        if old is not None:
            found.append((old, _day(time)))
    return sorted(found, key=lambda one: one[1])


def logged(repo: Repository, commit: str, contract: Contract, path: str) -> Dated:
    """The contract after each of the last commits that changed its file, in order of time."""
    commits = commits_of(repo, commit, path, _NEWEST)
    entries = tree_entries(repo, [id_ for id_, _ in commits], path)
    found = []
    for id_, time in reversed(commits):
        old = _same(repo, [entries[id_]] if id_ in entries else [], contract, by_major=False)
        if old is not None:
            found.append((old, _day(time)))
    return found


def every_text(folder: Path, file: str) -> Iterator[bytes]:
    """What a file was after each of the commits that changed it, up to HEAD, newest first.

    `file` is its path below `folder`. Nothing outside of a repository, or for a file that Git does not know.
    Raises BaseUnavailable where Git cannot answer.
    """
    repo = find(folder)
    if repo is None:
        return
    path = os.path.relpath(os.path.realpath(folder / file), os.path.realpath(repo.top)).replace(os.sep, "/")
    commits = [id_ for id_, _ in commits_of(repo, "HEAD", path, _ALL)]
    entries = tree_entries(repo, commits, path)
    yield from (data for _, data in entry_contents(repo, entries) if data is not None)


def _same(
    repo: Repository, entries: list[TreeEntry], contract: Contract, *, by_major: bool = True
) -> Contract | None:
    """The first of the files that is this contract, of the same major or of any."""
    blobs = objects(repo, {one.id for one in entries if one.kind is EntryKind.FILE}, "blob")
    for data in (blobs[one.id] for one in entries if one.id in blobs):
        old = parse(data, contract.file).contract if contract.id.encode() in data else None
        if old is None or not old.id or not old.version:
            continue
        if old.identity == contract.identity or (not by_major and old.id == contract.id):
            return old
    return None


def _day(time: int) -> date:
    """The day of a commit, which may claim any time: one far away is no notice, and can be counted with."""
    try:
        return min(datetime.fromtimestamp(time, UTC).date(), _NEVER)
    except (OverflowError, ValueError, OSError):
        return _NEVER
