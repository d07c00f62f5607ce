"""History of a contract and its files, from tags and commits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from dq.contracts.access.discovery import has_contract_name
from dq.contracts.diff import ElementKind
from dq.contracts.model import Contract
from dq.contracts.normalize import normalize
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import Version, read_version
from dq.validators.git import repository

# File changes by the commits of a branch below a folder: object ids before and after.

# Commits are read in batches, so that one answer does not grow with the age of a registry.
_AT_ONCE = 5_000
_PLAIN = ("100644", "100755")
_CHANGE = re.compile(r":(\d{6}) (\d{6}) ([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [A-Z]\d*")


@dataclass(frozen=True, slots=True)
class FileChange:
    """Change of a file in one commit: its path in the repository, and its object ids before and after.

    "" means not a plain file. None means unknown, at the boundary of a shallow clone.
    """

    path: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """Changes of a commit relative to its first parent; `time` is the commit's own Unix time."""

    time: int
    files: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class HistoryTip:
    """Extent of a history: its newest commit and its shallow boundary. Equal tips mean equal histories."""

    commit: str
    shallow_boundary: frozenset[str]


def history_tip(repo: repository.Repository) -> HistoryTip:
    """Return the extent of HEAD's history. Raises BaseUnavailable if there is no commit."""
    return HistoryTip(repository.resolve_commit(repo, "HEAD"), repository.cut_off(repo))


def commit_changes(
    repo: repository.Repository, folder: str, tip: HistoryTip, since: HistoryTip | None = None
) -> list[CommitChanges] | None:
    """Return the changes of each first-parent commit below a folder, oldest first.

    With `since`, only newer commits; None if `since` is not on that line of commits or has another shallow
    boundary. Raises BaseUnavailable if Git fails.
    """
    commits = [
        (parts[1], int(parts[0]), parts[2] if len(parts) > 2 else "")
        for line in repository.run(repo, (*_FIRST_PARENTS, tip.commit)).decode().splitlines()
        if (parts := line.split())
    ]
    if since is not None:
        position = next((index for index, commit in enumerate(commits) if commit[0] == since.commit), None)
        if position is None or since.shallow_boundary != tip.shallow_boundary:
            return None
        commits = commits[:position]
    commits.reverse()
    result: list[CommitChanges] = []
    for start in range(0, len(commits), _AT_ONCE):
        result += _read_changes(repo, folder, commits[start : start + _AT_ONCE], tip.shallow_boundary)
    return result


_FIRST_PARENTS = ("rev-list", "--first-parent", "--parents", "--timestamp")
_DIFF_TREE = ("diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--")


def _read_changes(
    repo: repository.Repository,
    folder: str,
    commits: Sequence[tuple[str, int, str]],
    shallow_boundary: frozenset[str],
) -> Iterator[CommitChanges]:
    """Return the changed files of commits, each an ID with its parent's and its time.

    Whether a file existed before a commit of the shallow boundary is unknown.
    """
    stdin = "".join(f"{id_} {parent}".rstrip() + "\n" for id_, _, parent in commits).encode()
    answer = repository.run(repo, (*_DIFF_TREE, *([folder] if folder else [])), stdin)
    times = {id_: time for id_, time, _ in commits}
    files: dict[str, list[FileChange]] = {}
    tokens = iter(os.fsdecode(answer).split("\0"))
    commit = ""
    for token in tokens:
        match = _CHANGE.fullmatch(token)
        if match is not None and commit:
            before = _blob(match[1], match[3])
            known_before = before if before or commit not in shallow_boundary else None
            files[commit].append(FileChange(next(tokens, ""), known_before, _blob(match[2], match[4])))
        elif token in times:
            commit = token
            files[commit] = []
        elif token:
            raise repository.BaseUnavailable("unexpected output from Git.", "Install Git 2.30 or later.")
    return (CommitChanges(times[id_], tuple(file_changes)) for id_, file_changes in files.items())


def _blob(mode: str, id_: str) -> str:
    return id_ if mode in _PLAIN else ""


# All commits of a history with all their parents, for questions about merged branches.


class CommitGraph:
    """The commits up to `head`, and the first-parent line of `mainline`, which is one of them."""

    def __init__(self, repo: repository.Repository, head: str, mainline: str) -> None:
        rows = repository.run(repo, ("rev-list", "--topo-order", "--parents", head)).decode().splitlines()
        self._parents = {id_: parents for id_, *parents in map(str.split, rows)}
        # A commit comes before its parents.
        self._order = {id_: index for index, id_ in enumerate(self._parents)}
        line = [mainline]
        while parents := self._parents.get(line[-1]):
            line.append(parents[0])
        self._line = line

    def is_ancestor(self, commit: str, descendant: str) -> bool:
        """Return True if `descendant` contains the commit, or is it."""
        last, stack, visited = self._order[commit], [descendant], set[str]()
        while stack:
            current = stack.pop()
            if current == commit:
                return True
            if current not in visited and self._order.get(current, last) < last:
                visited.add(current)
                stack += self._parents[current]
        return False

    def mainline_before(self, commit: str) -> str | None:
        """Return the newest commit of the mainline without `commit`; None if its first one has it.

        For a merged branch it is the commit that the branch was merged into.
        """
        low, high = 0, len(self._line)
        while low < high:
            middle = (low + high) // 2
            if self.is_ancestor(commit, self._line[middle]):
                low = middle + 1
            else:
                high = middle
        return self._line[low] if low < len(self._line) else None


class MergedChange(NamedTuple):
    """A commit that changed a file: its object id after the commit, and in each parent; "" if it is not a
    plain file.
    """

    commit: repository.CommitInfo
    after: str
    before: tuple[str, ...]


def file_changes(repo: repository.Repository, head: str, folder: str) -> dict[str, list[MergedChange]]:
    """Return the changes of each file below a folder up to `head`, newest first, on all sides of merges.

    Merges are left out that only take over a side. Raises BaseUnavailable for a shallow clone.
    """
    if repository.cut_off(repo):
        hint = "Run: git fetch --unshallow (in GitHub Actions: actions/checkout with fetch-depth: 0)."
        raise repository.BaseUnavailable("this clone is shallow, so its history is incomplete.", hint)
    select = ("rev-list", "--full-history", "--topo-order", head, "--", folder)
    ids = repository.run(repo, select).decode().split()
    commits = repository.read_commits(repo, ids)
    trees = {id_: commit.tree for id_, commit in commits.items()}
    parents = {parent for commit in commits.values() for parent in commit.parents} - trees.keys()
    trees |= {id_: commit.tree for id_, commit in repository.read_commits(repo, parents).items()}
    empty = repository.object_id(b"", "tree", head)
    pairs = [
        (trees.get(parent, empty), trees[id_]) for id_ in ids for parent in commits[id_].parents or ("",)
    ]
    differences = _tree_differences(repo, folder, pairs)
    changes: dict[str, list[MergedChange]] = {}
    for id_ in ids:
        commit = commits[id_]
        sides = [differences[trees.get(parent, empty), commit.tree] for parent in commit.parents or ("",)]
        # A file that differs from only one side of a merge comes from the other one.
        for path in set(sides[0]).intersection(*sides[1:]):
            blobs = [side[path] for side in sides]
            before = tuple(before for before, _ in blobs) if commit.parents else ()
            changes.setdefault(path, []).append(MergedChange(commit, blobs[0][1], before))
    return changes


def _tree_differences(
    repo: repository.Repository, folder: str, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, tuple[str, str]]]:
    """Return the files below a folder that differ between two trees, with both object ids."""
    differences: dict[tuple[str, str], dict[str, tuple[str, str]]] = {pair: {} for pair in pairs}
    distinct = list(differences)
    for start in range(0, len(distinct), _AT_ONCE):
        stdin = "".join(f"{before} {after}\n" for before, after in distinct[start : start + _AT_ONCE])
        answer = repository.run(
            repo, ("diff-tree", "--stdin", "-r", "-z", "--no-renames", "--", folder), stdin.encode()
        )
        tokens = iter(os.fsdecode(answer).split("\0"))
        current: dict[str, tuple[str, str]] = {}
        for token in tokens:
            # Each pair is on a line before its changes.
            *headers, change = token.split("\n")
            for header in headers:
                before, _, after = header.partition(" ")
                current = differences[before, after]
            match = _CHANGE.fullmatch(change)
            if match is not None:
                current[next(tokens, "")] = (_blob(match[1], match[3]), _blob(match[2], match[4]))
    return differences


# Earlier versions of a contract, and deprecation dates of its elements.

DatedVersions = Sequence[tuple[Contract, date]]


def has_deprecated(contract: Contract) -> bool:
    """Return True if any object or property is deprecated."""
    return any(
        element.deprecated
        for schema_object in contract.objects
        for element in (schema_object, *schema_object.walk())
    )


def newest_first(past: DatedVersions, contract: Contract) -> list[Contract]:
    """Return the last state of each earlier version of the same major, newest version first."""
    latest: dict[Version, Contract] = {}
    own = read_version(contract.version)
    for old, _ in past:
        version = read_version(old.version)
        if version is not None and version != own and old.identity == contract.identity:
            latest[version] = old
    return [latest[key] for key in sorted(latest, reverse=True)]


def deprecated_since(past: DatedVersions) -> dict[str, date]:
    """Return the date since which each currently deprecated element has been deprecated without a gap.

    `past` is in chronological order. Elements are named by their paths, e.g. `orders.amount`.
    """
    since: dict[str, date] = {}
    for contract, day in past:
        deprecated = {
            element.path
            for schema_object in normalize(contract).parts_of(ElementKind.OBJECT)
            for element in schema_object.walk()
            if element.normal("deprecated") is not None
        }
        since = {path: since.get(path, day) for path in sorted(deprecated)}
    return since


# History of a contract, from its tags or the commits of its file.

_MAX_COMMITS = 200
_MAX_ALL_COMMITS = 10_000
_MAX_DATE = date(9000, 1, 1)


def tagged_versions(
    repo: repository.Repository, commit: str, contract: Contract, path: str, folder: str
) -> DatedVersions:
    """Return the contract at each of its tags `<id>/vX.Y.Z` up to a commit, in chronological order.

    `path` is its file, which is tried first, and `folder` the registry, both as Git names them.
    """
    prefix = f"{contract.id}/v"
    version_tags = [
        (id_, time)
        for name, id_, time in repository.tags(repo, commit)
        if name.startswith(prefix) and read_version(name[len(prefix) :])
    ]
    entries = repository.tree_entries(repo, [id_ for id_, _ in version_tags], path)
    versions = []
    for id_, time in version_tags:
        old = _find_contract(repo, [entries[id_]] if id_ in entries else [], contract)
        if old is None:
            (files,) = repository.tree_files(repo, [id_], folder)
            # Files named like contracts first: usually no others have to be read.
            names = sorted(files, key=lambda name: (not has_contract_name(name), name))
            old = _find_contract(repo, [files[name] for name in names], contract)
        if old is not None:
            versions.append((old, _day(time)))
    return sorted(versions, key=lambda item: item[1])


def committed_versions(
    repo: repository.Repository, commit: str, contract: Contract, path: str
) -> DatedVersions:
    """Return the contract after each of the last commits that changed its file, in chronological order."""
    commits = repository.commits_changing(repo, commit, path, _MAX_COMMITS)
    entries = repository.tree_entries(repo, [id_ for id_, _ in commits], path)
    versions = []
    for id_, time in reversed(commits):
        old = _find_contract(repo, [entries[id_]] if id_ in entries else [], contract, by_major=False)
        if old is not None:
            versions.append((old, _day(time)))
    return versions


def file_versions(folder: Path, file: str) -> Iterator[bytes]:
    """Yield the content of a file after each commit that changed it, up to HEAD, newest first.

    `file` is its path below `folder`. Yields nothing outside a repository, or for an untracked file.
    Raises BaseUnavailable if Git fails.
    """
    repo = repository.find_repository(folder)
    if repo is None:
        return
    path = os.path.relpath(os.path.realpath(folder / file), os.path.realpath(repo.top)).replace(os.sep, "/")
    commits = [id_ for id_, _ in repository.commits_changing(repo, "HEAD", path, _MAX_ALL_COMMITS)]
    entries = repository.tree_entries(repo, commits, path)
    yield from (data for _, data in repository.entry_contents(repo, entries) if data is not None)


def _find_contract(
    repo: repository.Repository,
    entries: list[repository.TreeEntry],
    contract: Contract,
    *,
    by_major: bool = True,
) -> Contract | None:
    """Return the first file that is this contract, with the same major or any, or None."""
    blobs = repository.read_objects(
        repo, {entry.id for entry in entries if entry.kind is repository.EntryKind.FILE}, "blob"
    )
    for data in (blobs[entry.id] for entry in entries if entry.id in blobs):
        old = parse(data, contract.file).contract if contract.id.encode() in data else None
        if old is None or not old.id or not old.version:
            continue
        if old.identity == contract.identity or (not by_major and old.id == contract.id):
            return old
    return None


def _day(time: int) -> date:
    """Return the UTC date of a commit; a commit can have any time, so it is limited to a date far in the
    future.
    """
    try:
        return min(datetime.fromtimestamp(time, UTC).date(), _MAX_DATE)
    except (OverflowError, ValueError, OSError):
        return _MAX_DATE
