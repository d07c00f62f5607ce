"""What earlier runs measured for a clause, and what of it a rule compares with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from dq.contracts.measures.terms import Against
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.measured.found import shown
from dq.dataquality.clauses.row_count_band import SAME_WEEKDAY, before_this, moment_of, reach_of
from dq.dataquality.model.answer import Group
from dq.dataquality.model.run_context import EarlierMeasure


@dataclass(frozen=True, slots=True)
class Past:
    """What one earlier run measured, at the time that its rows are of."""

    of: datetime
    numbers: Mapping[Group, float]


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether a number is as it should be against earlier ones; None: there are none to tell it by."""

    kept: bool | None
    says: str


def past_of(clause: Clause, of: str) -> list[Past] | str:
    """Earlier runs of a clause that measured the same on comparable rows, the oldest first; or why none."""
    occasion = clause.occasion
    here = moment_of(occasion)
    if occasion.history is None:
        return "no history"
    if here is None:
        return "several partitions at once" if len(occasion.partitions) > 1 else "no time"
    measured = [one for one in occasion.history if isinstance(one, EarlierMeasure)]
    mine = [one for one in measured if (one.check, one.clause, one.of) == (clause.check, clause.path, of)]
    return [
        Past(at, dict(one.groups) if one.number is None else {**dict(one.groups), (): one.number})
        for at, one in before_this(occasion, mine)
    ]


def compared(
    number: Fraction, group: Group, past: Sequence[Past], clause: Clause, against: Against
) -> Compared:
    """A number of a group against earlier ones."""
    here = moment_of(clause.occasion)
    assert here is not None
    if against.mode == "usual":
        return _usual(number, group, past, here, against)
    before = _before(past, here, against)
    if before is None or group not in before.numbers:
        return Compared(None, f"{shown(number)}; no earlier number to compare with")
    assert clause.limit is not None
    then = Fraction(str(before.numbers[group]))
    change = number - then
    percent = clause.limit.unit.value == "percent"
    if percent and then == 0 and change != 0:
        return Compared(None, f"{shown(number)}; no percentage of the 0 of {before.of:%Y-%m-%d %H:%MZ}")
    change = change * 100 / abs(then) if percent and then else change
    sign = "+" if change >= 0 else ""
    said = f"{sign}{shown(change)}{' %' if percent else ''}, {shown(number)} against {shown(then)}"
    kept = clause.limit.threshold.holds(change)
    return Compared(kept, f"{said} of {before.of:%Y-%m-%d %H:%MZ}")


def _before(past: Sequence[Past], here: datetime, against: Against) -> Past | None:
    same = [one for one in past if against.mode == "previous" or one.of.weekday() == here.weekday()]
    return same[-1] if same else None


def _usual(
    number: Fraction, group: Group, past: Sequence[Past], here: datetime, against: Against
) -> Compared:
    known = [one for one in past if group in one.numbers]
    if len(known) < against.minimum:
        learning = f"learning ({len(known)} of {against.minimum} runs)"
        return Compared(None, f"{shown(number)}; {learning}")
    same = [one for one in known if one.of.weekday() == here.weekday()]
    weekly = SAME_WEEKDAY <= len(same) < len(known)
    numbers = [one.numbers[group] for one in (same if weekly else known)[-against.runs :]]
    middle, reach = reach_of(numbers, against.deviations, against.slack)
    least, most = Fraction(str(middle)) - Fraction(str(reach)), Fraction(str(middle)) + Fraction(str(reach))
    kept = (against.direction == "more" or least <= number) and (
        against.direction == "fewer" or number <= most
    )
    of = f"the last {len(numbers)} of this weekday" if weekly else f"the last {len(numbers)} runs"
    bounds = {"more": f"{shown(most)} or less", "fewer": f"{shown(least)} or more"}.get(
        against.direction, f"{shown(least)} to {shown(most)}"
    )
    return Compared(kept, f"{shown(number)}; usual are {bounds}, by {of}")


def gone(here: Mapping[Group, object], past: Sequence[Past], against: Against, clause: Clause) -> list[Group]:
    """Groups that the run compared with had, and this one has not.

    Of what is usual: those that were in the last run, and in enough runs to be known.
    """
    moment = moment_of(clause.occasion)
    assert moment is not None
    if against.mode == "usual":
        if not past or against.direction == "more":
            return []
        last = past[-1].numbers
        return [
            one
            for one in last
            if one not in here and sum(one in each.numbers for each in past) >= against.minimum
        ]
    before = _before(past, moment, against)
    return [one for one in before.numbers if one not in here] if before is not None else []
