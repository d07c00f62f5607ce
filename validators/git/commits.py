"""Commits of a repository and the files that they change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
