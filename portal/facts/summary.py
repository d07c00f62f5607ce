"""What lists say of a product: one row of each, kept between builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from typing import Any

from dq.alerts.incident import Incident
from dq.contracts.shared.outcome import CycleStatus, Status
from dq.dataquality.clauses.coverage import State
from dq.dataquality.results.check_runs import GROUP
from dq.portal.facts.clauses import Fate
from dq.portal.facts.product import ProductFacts, ProductState, newest_judged

_NEAR = 0.8
"""A budget of which so much is used is nearly spent."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One product in lists. `why` says in one line what is the matter; `good` and `bad` are cycles of all its
    promises in their windows; `spent` names each promise whose budget is nearly or wholly spent.

    `clauses` and `enforced` count what it promises of schema and data, and what of it is enforced.
    `acknowledged` and `resolved` are minutes of each incident of late. `since` is since when an open incident
    is open, or the newest miss was due. Instants are ISO 8601 in UTC.
    """

    state: str
    why: str = ""
    since: str = ""
    good: int = 0
    bad: int = 0
    exhausted: int = 0
    spent: tuple[str, ...] = ()
    clauses: int = 0
    enforced: int = 0
    acknowledged: tuple[float, ...] = ()
    resolved: tuple[float, ...] = ()
    open_incidents: int = 0
    right_until: str = ""

    def dumped(self) -> tuple[Any, ...]:
        """As JSON values, in the order of the fields."""
        return astuple(self)


def loaded(kept: list[Any]) -> Summary:
    """A summary from its JSON values. Raises TypeError for what is none."""
    values: list[Any] = [tuple(value) if type(value) is list else value for value in kept]
    return Summary(*values)


def summary(facts: ProductFacts) -> Summary:
    """The row of a product that can be read."""
    why, since = _why(facts)
    budgets = [one.budget for one in facts.promises]
    accounts = [clause.account for one in facts.objects for clause in one.clauses]
    ended = [one.incident for one in facts.incidents]
    return Summary(
        facts.state.value,
        why,
        since.isoformat() if since else "",
        sum(one.good for one in budgets),
        sum(one.bad for one in budgets),
        sum(one.exhausted for one in budgets),
        tuple(f"{one.slo.id}: {one.budget.line()}" for one in facts.promises if _nearly_spent(one.budget)),
        len(accounts),
        sum(account.state is State.ENFORCED for account in accounts),
        tuple(_minutes(one.acked_at - one.opened_at) for one in ended if one.acked_at),
        tuple(_minutes(one.resolved_at - one.opened_at) for one in ended if one.resolved_at),
        len(facts.open_incidents),
        right_until(facts).isoformat(),
    )


def _minutes(length: timedelta) -> float:
    return round(length.total_seconds() / 60, 1)


def _nearly_spent(budget: Any) -> bool:
    if not budget.bad or budget.first_miss_at is None:
        return bool(budget.bad)
    return bool(budget.exhausted or (budget.used is not None and budget.used >= _NEAR))


def _why(facts: ProductFacts) -> tuple[str, datetime | None]:
    """What is the matter in one line, and since when."""
    match facts.state:
        case ProductState.BROKEN | ProductState.LATE if facts.open_incidents:
            first = _first_incident(facts)
            return first.title, first.opened_at
        case ProductState.BROKEN:
            failed = [
                line for one in facts.objects for line in one.quality.newest if line.status is Status.FAIL
            ]
            said = f"{failed[0].property} {failed[0].check}".strip()
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            return f"{said} fails in {failed[0].scope}{more}", failed[0].at
        case ProductState.LATE:
            missed = _missed(facts)
            return f"{missed[0].cycle.slo} is missing", missed[0].cycle.due_at
        case ProductState.UNKNOWN:
            return _unknown(facts), None
        case ProductState.SPENT if facts.open_incidents:
            first = facts.open_incidents[0].incident
            return first.title, first.opened_at
        case ProductState.SPENT:
            spent = next(one for one in facts.promises if one.budget.exhausted)
            return f"{spent.slo.id}: {spent.budget.line()}", None
        case ProductState.UNCHECKED:
            return _unchecked(facts), None
        case ProductState.RESTING if not facts.in_force:
            return f"the contract is {facts.contract.status}", None
        case ProductState.RESTING:
            return "it promises nothing that could be watched or checked", None
        case ProductState.FINE:
            return _excused(facts), None
    return "", None


def _excused(facts: ProductFacts) -> str:
    """Which of its newest deliveries nobody had to make, so that the data is older than the promise."""
    newest = (newest_judged(one, facts.now) for one in facts.promises)
    found = [kept.cycle.slo for kept in newest if kept is not None and kept.status is CycleStatus.EXCUSED]
    return f"the newest delivery of {found[0]} was excused" if found else ""


def _unchecked(facts: ProductFacts) -> str:
    """What of its data nobody checked in this version."""
    clauses = [clause for one in facts.objects for clause in one.clauses if clause.fate is Fate.UNCHECKED]
    if all(one.quality.at is None for one in facts.objects):
        return "its data was never checked"
    lines = (line for one in facts.objects for line in one.quality.newest)
    if not any(line.version == facts.contract.version for line in lines):
        return f"its data was not checked since version {facts.contract.version} came"
    said = "clause on its data was" if len(clauses) == 1 else "clauses on its data were"
    return f"{len(clauses):,} {said} never checked"


def _first_incident(facts: ProductFacts) -> Incident:
    """The open incident that says why: of the data where that is broken, else of a delivery."""
    wanted = facts.state is ProductState.BROKEN
    found = [one.incident for one in facts.open_incidents]
    return next((one for one in found if (one.key.group == GROUP) is wanted), found[0])


def _missed(facts: ProductFacts) -> Sequence[Any]:
    gone = (CycleStatus.MISSING, CycleStatus.NEVER)
    return [kept for one in facts.promises for kept in reversed(one.cycles) if kept.status in gone]


def _unknown(facts: ProductFacts) -> str:
    if facts.wrong:
        return facts.wrong[0].message
    for one in facts.promises:
        last, until = newest_judged(one, facts.now), facts.judged_until(one)
        if last is None or last.status is CycleStatus.WITHDRAWN:
            return f"{one.slo.id} was not judged yet"
        if last.status is CycleStatus.UNKNOWN:
            return last.reason or f"{one.slo.id} could not be judged"
        if until is not None and until <= facts.now:
            return (
                f"{one.slo.id} was last judged for {last.cycle.due_at:%Y-%m-%d %H:%M} UTC, and was due since"
            )
    errors = [line for one in facts.objects for line in one.quality.newest if line.status is Status.ERROR]
    return errors[0].message if errors else "it could not be judged"


def right_until(facts: ProductFacts) -> datetime:
    """Until when what is said stays right if nothing happens: a miss leaves a window, a cycle is due."""
    now, times = facts.now, [facts.now + timedelta(days=1)]
    for one in facts.promises:
        for kept in one.cycles:
            breach = kept.cycle.breach_at
            times += [at for at in (breach, breach + one.slo.window, breach + 2 * one.slo.window) if at > now]
        following = next(iter(one.slo.schedule.after(now)), None)
        times += [following.at] if following else []
        until = facts.judged_until(one)
        times += [until] if until is not None and until > now else []
    return min(times)
