"""What was measured to the result of its clause: one verdict, or one for each group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dq.contracts.shared.counts import counted
from dq.contracts.shared.outcome import CheckResult, GroupResult, Status
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.judge import result, subject, unmeasured
from dq.dataquality.clauses.measured.earlier import Past, compared, gone, past_of
from dq.dataquality.clauses.measured.found import (
    Found,
    MeasureAsked,
    Nothing,
    Numbers,
    Share,
    as_float,
    in_unit,
    shown,
)
from dq.dataquality.model.answer import Failure, Group
from dq.dataquality.model.classification import MASK

# So many groups are named in a message; all of them are in the result.
_NAMED = 5
_GONE = "gone"


def verdict(clause: Clause, asked: MeasureAsked, numbers: Numbers) -> CheckResult:
    """The result of a clause; `numbers` has the empty group alone where the rule has no groups."""
    past: Sequence[Past] | str = ()
    if asked.terms.against is not None:
        past = past_of(clause, asked.of)
    judged = tuple(_each(clause, asked, numbers, past))
    made = _grouped(clause, asked, judged) if asked.by else _alone(clause, asked, judged[0], numbers[()])
    return replace(made, of="" if asked.untold else asked.of)


def _each(
    clause: Clause, asked: MeasureAsked, numbers: Numbers, past: Sequence[Past] | str
) -> Iterator[GroupResult]:
    against = asked.terms.against
    for group in sorted(numbers, key=_order):
        one = _one(clause, asked, group, in_unit(asked, numbers[group]), past)
        hidden = asked.untold and one.value is not None
        yield replace(one, observed=MASK, value=None) if hidden else one
    if against is not None and asked.by and not isinstance(past, str):
        for group in sorted(gone(numbers, past, against, clause), key=_order):
            yield GroupResult(group, Status.FAIL, _GONE)


def _order(group: Group) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, value or "") for value in group)


def _one(
    clause: Clause, asked: MeasureAsked, group: Group, found: Found, past: Sequence[Past] | str
) -> GroupResult:
    assert not isinstance(found, Share)
    if isinstance(found, Failure):
        return GroupResult(group, Status.ERROR, found.message)
    if isinstance(found, Nothing):
        return GroupResult(group, Status.SKIPPED, found.reason)
    value = as_float(found)
    if asked.terms.against is not None:
        if isinstance(past, str):
            said = f"{shown(found)}; not compared: {past}"
            return GroupResult(group, Status.SKIPPED, said, value)
        told = compared(found, group, past, clause, asked.terms.against)
        status = {True: Status.PASS, False: Status.FAIL, None: Status.SKIPPED}[told.kept]
        return GroupResult(group, status, told.says, value)
    assert clause.limit is not None
    percent = " %" if clause.limit.unit.value == "percent" else ""
    kept = clause.limit.threshold.holds(found)
    return GroupResult(group, Status.PASS if kept else Status.FAIL, f"{shown(found)}{percent}", value)


def _about(clause: Clause, asked: MeasureAsked) -> str:
    by = f" by {', '.join(str(column) for column in asked.by)}" if asked.by else ""
    return f"{subject(clause)}: {asked.terms.kind.name}{by}"


def _ending(clause: Clause, asked: MeasureAsked, status: Status) -> str:
    said = f"; allowed: {clause.allowed}" if status is Status.FAIL else ""
    said += f"; not shown, because {asked.untold}" if asked.untold else ""
    return said + (f" ({clause.note})" if clause.note else "")


def _alone(clause: Clause, asked: MeasureAsked, one: GroupResult, found: Found) -> CheckResult:
    if isinstance(found, Failure):
        return unmeasured(clause, found)
    message = f"{_about(clause, asked)} is {one.observed}{_ending(clause, asked, one.status)}"
    if one.status is Status.SKIPPED and one.value is None and not asked.untold:
        message = f"{_about(clause, asked)}: {one.observed}"
    return result(clause, one.status, one.observed, message, one.value)


# What groups do; the first of these that a group has is the clause's.
_VERBS = {
    Status.FAIL: "break it",
    Status.ERROR: "could not be measured",
    Status.PASS: "keep it",
    Status.SKIPPED: "could not be compared",
}


def _grouped(clause: Clause, asked: MeasureAsked, judged: tuple[GroupResult, ...]) -> CheckResult:
    about = _about(clause, asked)
    status = next((one for one in _VERBS if any(each.status is one for each in judged)), Status.SKIPPED)
    if not judged:
        made = result(clause, Status.SKIPPED, "no groups", f"{about}: there are no rows to group")
        return replace(made, by=_names(asked))
    of_status = [one for one in judged if one.status is status]
    observed = f"{len(of_status):,} of {counted(len(judged), 'group')}"
    message = f"{about}: {observed} {_VERBS[status]}"
    if status is not Status.PASS:
        named = [f"{_named(one.key)} {one.observed}" for one in of_status[:_NAMED]]
        more = [f"{len(of_status) - _NAMED:,} more"] if len(of_status) > _NAMED else []
        message += ": " + " · ".join([*named, *more])
    broken = float(sum(one.status is Status.FAIL for one in judged))
    errors = sum(one.status is Status.ERROR for one in judged)
    if errors and status is not Status.ERROR:
        message += f"; {errors:,} could not be measured"
    message += _ending(clause, asked, status)
    return replace(result(clause, status, observed, message, broken), by=_names(asked), groups=judged)


def _names(asked: MeasureAsked) -> tuple[str, ...]:
    return tuple(str(column) for column in asked.by)


# Of the name of a group, which may be a text of any length.
_LENGTH = 60


def _named(group: Group) -> str:
    return "/".join("NULL" if value is None else value[:_LENGTH] for value in group)
