"""What the commits of a branch did to the files below a folder: which bytes each had before and after."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dq.validators.git.objects import commit_of
from dq.validators.git.repository import BaseUnavailable, Repository, cut_off, run

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


def head(repo: Repository) -> Head:
    """The history that HEAD has now. Raises BaseUnavailable where there is no commit."""
    return Head(commit_of(repo, "HEAD"), cut_off(repo))


def changes(
    repo: Repository, folder: str, now: Head, since: Head | None = None
) -> list[CommitChanges] | None:
    """What each commit changed below a folder, oldest first: those of the line of first parents.

    With `since`, what came after it; None where it does not lie on that line any more, or is cut off
    elsewhere. Raises BaseUnavailable where Git cannot answer.
    """
    commits = [
        (parts[1], int(parts[0]), parts[2] if len(parts) > 2 else "")
        for line in run(repo, (*_LINE, now.commit)).decode().splitlines()
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
    repo: Repository, folder: str, commits: Sequence[tuple[str, int, str]], cut: frozenset[str]
) -> Iterator[CommitChanges]:
    given = "".join(f"{id_} {parent}".rstrip() + "\n" for id_, _, parent in commits).encode()
    answer = run(repo, (*_BELOW, *([folder] if folder else [])), given)
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
            raise BaseUnavailable("Git answers what it was not asked.", "Install Git 2.30 or later.")
    return (CommitChanges(times[id_], tuple(every)) for id_, every in files.items())


def _blob(mode: str, id_: str) -> str:
    return id_ if mode in _PLAIN else ""
