"""What each version of a contract broke, by the judgement of `dq diff` on what Git has of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from dq.contracts.access.files import MAX_BYTES, FileRefused, Found, read
from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.validators.compat import Comparison, DiffTerms, Verdict, diff
from dq.validators.compat.classified_change import Aspect
from dq.validators.git.objects import id_of, objects
from dq.validators.git.repository import Repository

_SHOWN, _LONGEST = 12, 400
_LAST_YEAR = 9000


class Broke(StrEnum):
    """What a change of a contract did to who reads or writes the data. `FIRST` had nothing to break."""

    BREAK = "break"
    WARN = "warn"
    NOTHING = "nothing"
    FIRST = "first"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """One change of a contract: the versions before and after, and what it broke.

    `at` is when it was committed (ISO, UTC; empty: not yet). `told` are the changes that matter, each with
    its rule, worst first, and `more` is how many others there are. `unannounced`: the version does not say
    so. `reason` is why it is not known. `silent`: nothing that a contract promises differs.
    """

    before: str
    after: str
    broke: Broke
    at: str = ""
    told: tuple[tuple[str, str], ...] = ()
    more: int = 0
    unannounced: bool = False
    reason: str = ""
    silent: bool = False

    def dumped(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def loaded(kept: dict[str, Any]) -> VersionChange:
    """A change from its JSON values. Raises TypeError, KeyError or ValueError for what is none."""
    told = tuple((rule, text) for rule, text in kept["told"])
    return VersionChange(**{**kept, "broke": Broke(kept["broke"]), "told": told})


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """The changes of a contract, newest first. `older`: there were more. `unknown` is why there are none."""

    changes: tuple[VersionChange, ...] = ()
    older: bool = False
    unknown: str = ""


NOT_ASKED = VersionHistory(unknown="nobody asked")
NO_REPOSITORY = "the registry is no Git repository"
NOT_IN_GIT = "Git does not know this file yet"
UNREAD = "Git cannot tell its history"
CUT_OFF = "the history of this clone is cut off before it"


@dataclass(frozen=True, slots=True)
class FileStep:
    """What one commit made of a contract's file: ids of its bytes, and when (Unix time, as Git has it).

    `before` is empty where there was no file, and None where the history is cut off.
    """

    before: str | None
    after: str
    time: int


@dataclass(frozen=True, slots=True)
class FileSteps:
    """The steps of one file that are to be judged; `last` is what HEAD has of it, where the file itself is
    to be held against that. `version` is the one that it says."""

    file: Found
    version: str
    steps: tuple[FileStep, ...]
    last: str = ""


@dataclass(frozen=True, slots=True)
class JudgedSteps:
    """What each step broke, None where Git could not tell; and what the file does beyond the last commit."""

    changes: tuple[VersionChange | None, ...]
    uncommitted: VersionChange | None = None


def judged(repo: Repository, today: date, jobs: Sequence[FileSteps]) -> list[JudgedSteps]:
    """The judgement of each step, in order. Raises BaseUnavailable where Git cannot answer."""
    ids = {id_ for job in jobs for step in job.steps for id_ in (step.before, step.after)}
    held = objects(repo, (id_ for id_ in ids | {job.last for job in jobs} if id_), "blob", MAX_BYTES)
    return [_judged(held, today, job) for job in jobs]


def unjudged(step: FileStep) -> VersionChange:
    """What is said of a step whose bytes Git does not have, or that are too many."""
    return _unknown(None, None, "Git cannot give its bytes here", _instant(step.time).isoformat())


def _judged(held: dict[str, bytes], today: date, job: FileSteps) -> JudgedSteps:
    known: dict[str, Contract | None] = {}

    def contract(id_: str) -> Contract | None:
        if id_ not in known:
            known[id_] = parse(held[id_], job.file.name).contract if id_ in held else None
        return known[id_]

    data = _read(job.file) if job.last else None
    committed = data is not None and job.last in _ids(data, job.last)
    changes: list[VersionChange | None] = []
    for step in job.steps:
        at = _instant(step.time)
        if committed and step.before == "" and step.after == job.last:
            # Most contracts have one version, and this one was read already.
            changes.append(VersionChange("", _said(job.version), Broke.FIRST, at.isoformat()))
        elif step.after not in held or (step.before and step.before not in held):
            changes.append(None)
        elif step.before is None:
            changes.append(_unknown(None, contract(step.after), CUT_OFF, at.isoformat()))
        else:
            before = contract(step.before) if step.before else None
            after = contract(step.after)
            changes.append(change(before, after, at.date(), at.isoformat(), first=not step.before))
    if data is None or committed:
        return JudgedSteps(tuple(changes))
    now = parse(data, job.file.name).contract
    return JudgedSteps(tuple(changes), change(contract(job.last), now, today, "", first=False))


def _read(file: Found) -> bytes | None:
    try:
        return read(file)
    except FileRefused:
        return None  # its page says so


def _ids(data: bytes, like: str) -> tuple[str, str]:
    """The ids that Git would give a file, as it is and without the line breaks of Windows."""
    return id_of(data, "blob", like), id_of(data.replace(b"\r\n", b"\n"), "blob", like)


def change(
    before: Contract | None, after: Contract | None, day: date, at: str, *, first: bool
) -> VersionChange:
    """What came of one contract by another one in its place, judged as of a day."""
    if after is None:
        return _unknown(before, after, "it could not be read then", at)
    if first:
        return VersionChange("", _said(after.version), Broke.FIRST, at)
    if before is None:
        return _unknown(before, after, "the one before it could not be read", at)
    return _of(before, after, diff(before, after, DiffTerms(day)), at)


def _of(before: Contract, after: Contract, found: Comparison, at: str) -> VersionChange:
    verdicts = found.verdicts
    matter = [one for one in found.changes if one.verdict is not Verdict.OK]
    return VersionChange(
        _said(before.version),
        _said(after.version),
        _BROKE[verdicts[Aspect.COMPATIBILITY]],
        at,
        tuple((one.rule, _said(one.problem)) for one in matter[:_SHOWN]),
        max(len(matter) - _SHOWN, 0),
        verdicts[Aspect.VERSION_POLICY] is Verdict.BREAK,
        silent=not found.changes,
    )


_BROKE = {Verdict.BREAK: Broke.BREAK, Verdict.WARN: Broke.WARN, Verdict.OK: Broke.NOTHING}


def _unknown(before: Contract | None, after: Contract | None, reason: str, at: str) -> VersionChange:
    old, new = (_said(one.version) if one else "" for one in (before, after))
    return VersionChange(old, new, Broke.UNKNOWN, at, reason=reason)


def _said(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _instant(time: int) -> datetime:
    """When a commit claims to have been made: it may claim any time."""
    try:
        made = datetime.fromtimestamp(time, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
    return made if made.year <= _LAST_YEAR else datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
