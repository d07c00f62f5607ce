"""The past of one contract and of its files, from tags and commits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from dq.contracts.access.discovery import called_contract
from dq.contracts.diff import ElementKind
from dq.contracts.model import Contract
from dq.contracts.normalize import normalise
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import Version, read_version
from dq.validators.git import repository

# What the commits of a branch did to the files below a folder: which bytes each had before and after.

# So many commits are asked for at a time: one answer must not grow with the age of a registry.
_AT_ONCE = 5_000
_PLAIN = ("100644", "100755")
_CHANGE = re.compile(r":(\d{6}) (\d{6}) ([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [A-Z]\d*")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file in one commit, named from the top of the repository: the ids of its bytes before and after.

    Empty is no plain file. None is not known: the history was cut off there.
    """

    path: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What one commit did, held against its first parent; `time` is Unix time, as the commit claims it."""

    time: int
    files: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """How far a history goes: its newest commit, and where it was cut off. Equal ones tell the same."""

    commit: str
    cut: frozenset[str]


def head(repo: repository.Repository) -> Head:
    """The history that HEAD has now. Raises BaseUnavailable where there is no commit."""
    return Head(repository.commit_of(repo, "HEAD"), repository.cut_off(repo))


def changes(
    repo: repository.Repository, folder: str, now: Head, since: Head | None = None
) -> list[CommitChanges] | None:
    """What each commit changed below a folder, oldest first: those of the line of first parents.

    With `since`, what came after it; None where it does not lie on that line any more, or is cut off
    elsewhere. Raises BaseUnavailable where Git cannot answer.
    """
    commits = [
        (parts[1], int(parts[0]), parts[2] if len(parts) > 2 else "")
        for line in repository.run(repo, (*_LINE, now.commit)).decode().splitlines()
        if (parts := line.split())
    ]
    if since is not None:
        place = next((place for place, one in enumerate(commits) if one[0] == since.commit), None)
        if place is None or since.cut != now.cut:
            return None
        commits = commits[:place]
    commits.reverse()
    found: list[CommitChanges] = []
    for start in range(0, len(commits), _AT_ONCE):
        found += _changes(repo, folder, commits[start : start + _AT_ONCE], now.cut)
    return found


_LINE = ("rev-list", "--first-parent", "--parents", "--timestamp")
_BELOW = ("diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--")


def _changes(
    repo: repository.Repository, folder: str, commits: Sequence[tuple[str, int, str]], cut: frozenset[str]
) -> Iterator[CommitChanges]:
    given = "".join(f"{id_} {parent}".rstrip() + "\n" for id_, _, parent in commits).encode()
    answer = repository.run(repo, (*_BELOW, *([folder] if folder else [])), given)
    times = {id_: time for id_, time, _ in commits}
    files: dict[str, list[FileChange]] = {}
    told = iter(os.fsdecode(answer).split("\0"))
    here = ""
    for token in told:
        match = _CHANGE.fullmatch(token)
        if match is not None and here:
            before = _blob(match[1], match[3])
            known = before if before or here not in cut else None
            files[here].append(FileChange(next(told, ""), known, _blob(match[2], match[4])))
        elif token in times:
            here = token
            files[here] = []
        elif token:
            raise repository.BaseUnavailable(
                "Git answers what it was not asked.", "Install Git 2.30 or later."
            )
    return (CommitChanges(times[id_], tuple(every)) for id_, every in files.items())


def _blob(mode: str, id_: str) -> str:
    return id_ if mode in _PLAIN else ""


# The earlier versions of a contract: which of them still count, and since when parts are deprecated.

Dated = Sequence[tuple[Contract, date]]


def has_deprecated(contract: Contract) -> bool:
    """Whether any object or property is deprecated."""
    return any(element.deprecated for one in contract.objects for element in (one, *one.walk()))


def newest_first(past: Dated, contract: Contract) -> list[Contract]:
    """One contract for each earlier version of the same major, as it was last; newest version first."""
    latest: dict[Version, Contract] = {}
    own = read_version(contract.version)
    for old, _ in past:
        read = read_version(old.version)
        if read is not None and read != own and old.identity == contract.identity:
            latest[read] = old
    return [latest[key] for key in sorted(latest, reverse=True)]


def deprecated_since(past: Dated) -> dict[str, date]:
    """For each part that the last version deprecates, the day of the first version that did, without a gap.

    `past` is in order of time. Parts are named by their paths, such as `orders.amount`.
    """
    since: dict[str, date] = {}
    for contract, day in past:
        marked = {
            element.path
            for one in normalise(contract).of(ElementKind.OBJECT)
            for element in one.walk()
            if element.normal("deprecated") is not None
        }
        since = {path: since.get(path, day) for path in sorted(marked)}
    return since


# The past of one contract, from its tags or its file's commits.

_NEWEST = 200
_ALL = 10_000
_NEVER = date(9000, 1, 1)


def tagged(repo: repository.Repository, commit: str, contract: Contract, path: str, folder: str) -> Dated:
    """The contract at each of its tags `<id>/vX.Y.Z` up to a commit, in order of time.

    `path` is its file, which is looked at first, and `folder` the registry, both as Git names them.
    """
    prefix = f"{contract.id}/v"
    named = [
        (id_, time)
        for name, id_, time in repository.tags(repo, commit)
        if name.startswith(prefix) and read_version(name[len(prefix) :])
    ]
    own = repository.tree_entries(repo, [id_ for id_, _ in named], path)
    found = []
    for id_, time in named:
        old = _same(repo, [own[id_]] if id_ in own else [], contract)
        if old is None:
            (every,) = repository.tree_files(repo, [id_], folder)
            # Those that are called contracts come first: they may be all that has to be read.
            names = sorted(every, key=lambda name: (not called_contract(name), name))
            old = _same(repo, [every[name] for name in names], contract)
        if old is not None:
            found.append((old, _day(time)))
    return sorted(found, key=lambda one: one[1])


def logged(repo: repository.Repository, commit: str, contract: Contract, path: str) -> Dated:
    """The contract after each of the last commits that changed its file, in order of time."""
    commits = repository.commits_of(repo, commit, path, _NEWEST)
    entries = repository.tree_entries(repo, [id_ for id_, _ in commits], path)
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
    repo = repository.find(folder)
    if repo is None:
        return
    path = os.path.relpath(os.path.realpath(folder / file), os.path.realpath(repo.top)).replace(os.sep, "/")
    commits = [id_ for id_, _ in repository.commits_of(repo, "HEAD", path, _ALL)]
    entries = repository.tree_entries(repo, commits, path)
    yield from (data for _, data in repository.entry_contents(repo, entries) if data is not None)


def _same(
    repo: repository.Repository,
    entries: list[repository.TreeEntry],
    contract: Contract,
    *,
    by_major: bool = True,
) -> Contract | None:
    """The first of the files that is this contract, of the same major or of any."""
    blobs = repository.objects(
        repo, {one.id for one in entries if one.kind is repository.EntryKind.FILE}, "blob"
    )
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
