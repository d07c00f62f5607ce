"""SLO compliance over rolling windows, the stored terms of SLOs, and tallies for metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise

from sqlalchemy import Connection, and_, case, delete, func, insert, literal, select

from dq.contracts.incident import CycleStatus
from dq.contracts.slo import Slo
from dq.dataquality.delivery.budget import Budget, CycleCounts, allowed_misses, budget
from dq.dataquality.delivery.cycle import CycleRecord, disagreeing_claims
from dq.dataquality.delivery.cycle_store import RECENT_DELIVERIES, usual_delay
from dq.dataquality.delivery.early_warning import WarningStanding
from dq.dataquality.delivery.notify import format_duration, local_time
from dq.dataquality.delivery.tables import KEY, Key, chunks, cycle, key_of, matches_key, slo_terms
from dq.store.schema import UtcDateTime

# Compliance: budget, streak, trend, usual delay and availability, all computed from cycles and an instant.


@dataclass(frozen=True, slots=True)
class Streak:
    """Number of the last consecutive cycles with the same outcome, good or bad."""

    length: int
    good: bool


@dataclass(frozen=True, slots=True)
class SloCompliance:
    """Compliance of one SLO: its cycles, oldest first, its budget, and that of the previous window.

    `usual_delay` is the median of delivery minus due, negative if early, or None for too few deliveries.
    `warnings` are its early warnings, or None if no decision on one is stored.
    `availability` is a second service level: the share of the window's time in which the newest due cycle was
    delivered, or None if unknown or if no cycle of the window counts.
    """

    slo: Slo
    cycles: Sequence[CycleRecord]
    budget: Budget
    previous_budget: Budget
    streak: Streak | None
    usual_delay: timedelta | None
    availability: Fraction | None
    warnings: WarningStanding | None = None

    @property
    def trend(self) -> Fraction | None:
        """Difference of the attainment from the previous window's, or None if one of them is unknown."""
        if self.budget.attainment is None or self.previous_budget.attainment is None:
            return None
        return self.budget.attainment - self.previous_budget.attainment


@dataclass(frozen=True, slots=True)
class GroupCompliance(CycleCounts):
    """Compliance of several SLOs: of a product, of a domain, or all. `promises` is the number of SLOs."""

    name: str
    products: int
    promises: int
    good: int
    bad: int
    exhausted_budgets: int


def slo_compliance(
    slo: Slo, cycles: Sequence[CycleRecord], now: datetime, warnings: WarningStanding | None = None
) -> SloCompliance:
    """Return the compliance of an SLO at an aware instant, from its cycles, oldest first."""
    rows = [(record.cycle.breach_at, record.status) for record in cycles]
    current_budget = budget(rows, slo.objective, slo.window, now)
    return SloCompliance(
        slo,
        cycles,
        current_budget,
        budget(rows, slo.objective, slo.window, now - slo.window),
        _streak(cycles),
        usual_delay([record for record in cycles if record.delivered_at is not None][-RECENT_DELIVERIES:]),
        availability(cycles, now - slo.window, _recorded_until(slo, cycles, now))
        if current_budget.attainment is not None
        else None,
        warnings,
    )


def _recorded_until(slo: Slo, cycles: Sequence[CycleRecord], now: datetime) -> datetime:
    """Return the due time of the first delivery without a cycle, or `now` if that is earlier.

    Without ticks of the watcher, cycles end before `now`.
    """
    following = next(iter(slo.schedule.after(cycles[-1].cycle.due_at)), None) if cycles else None
    return min(now, following.at) if following is not None else now


def group_compliance(
    compliances: Iterable[SloCompliance], name: Callable[[Slo], str]
) -> list[GroupCompliance]:
    """Group compliances by `name`, in the order of the names."""
    groups: dict[str, list[SloCompliance]] = {}
    for compliance in compliances:
        groups.setdefault(name(compliance.slo), []).append(compliance)
    return [
        GroupCompliance(
            group_name,
            products=len({member.slo.contract.key for member in members}),
            promises=len(members),
            good=sum(member.budget.good for member in members),
            bad=sum(member.budget.bad for member in members),
            exhausted_budgets=sum(member.budget.is_exhausted for member in members),
        )
        for group_name, members in sorted(groups.items())
    ]


def _streak(cycles: Sequence[CycleRecord]) -> Streak | None:
    ends = [record.status.good for record in cycles if record.status.good or record.status.bad]
    if not ends:
        return None
    length = next((back for back, good in enumerate(reversed(ends)) if good is not ends[-1]), len(ends))
    return Streak(length, ends[-1])


def availability(cycles: Sequence[CycleRecord], start: datetime, end: datetime) -> Fraction | None:
    """Return the share of the time in (start, end] in which the newest due cycle was delivered.

    A cycle's time is from its due instant to the next one's. The times of excused, withdrawn and unknown
    cycles are excluded, and so is the time before the first cycle.
    """
    due_instants = [record.cycle.due_at for record in cycles]
    counted = available = timedelta(0)
    for record, (begin, until) in zip(cycles, pairwise([*due_instants, end]), strict=True):
        begin, until = max(begin, start), min(until, end)
        # A pending cycle in grace counts as not delivered yet.
        if begin >= until or not (record.status.good or record.status.bad or record.status == "pending"):
            continue
        counted += until - begin
        if record.delivered_at is not None:
            available += max(timedelta(0), until - max(begin, record.delivered_at))
    return Fraction(available // _TICK, counted // _TICK) if counted >= _TICK else None


_TICK = timedelta(seconds=1)


# Compliance as text and JSON, shared by commands and pages.

JsonObject = dict[str, object]


def percent(share: Fraction | None) -> str:
    """Return a share as a percentage, rounded down, so that only a full share is 100.0%."""
    if share is None:
        return "-"
    return f"{int(share * 1000) / 10:.1f}%"


def attainment_text(compliance: SloCompliance) -> str:
    """Return attainment, objective and budget as one line, or why there is none."""
    objective = f"objective {float(compliance.slo.objective):.0%}"
    if compliance.budget.attainment is not None:
        return f"{percent(compliance.budget.attainment)} on time, {objective}; {compliance.budget.as_text()}"
    if not compliance.cycles:
        return f"no deliveries evaluated yet, {objective}"
    last_due = local_time(compliance.slo, compliance.cycles[-1].cycle.due_at)
    window = format_duration(compliance.slo.window)
    return f"no deliveries counted in the last {window}, {objective}; the last was due {last_due}"


def compliance_summary(compliance: SloCompliance) -> str:
    """Return streak, trend, usual delay, availability and burn rules as one line, "" if none is known."""
    parts = []
    if compliance.streak is not None and compliance.streak.length > 1:
        parts.append(
            f"{compliance.streak.length} {'on time' if compliance.streak.good else 'missed'} in a row"
        )
    if compliance.trend is not None:
        points = float(compliance.trend) * 100
        parts.append(
            "unchanged from the last window" if not points else f"{points:+.1f} points since the last window"
        )
    if compliance.usual_delay is not None:
        parts.append(
            f"typically {format_duration(compliance.usual_delay)} "
            f"{'early' if compliance.usual_delay.total_seconds() < 0 else 'after due'}"
        )
    if compliance.availability is not None:
        parts.append(f"fresh {percent(compliance.availability)} of the time")
    parts += [f"burn rate too high ({rule})" for rule in compliance.budget.burning]
    return ", ".join(parts)


def warning_summary(compliance: SloCompliance) -> str:
    """Return the early warnings as one line: at risk since when, how right they were, why there is none; ""
    without any.
    """
    standing = compliance.warnings
    if standing is None:
        return ""
    parts = []
    if standing.at_risk_since is not None:
        parts.append(f"at risk since {local_time(compliance.slo, standing.at_risk_since)}")
    if counts := standing.counts.as_text():
        parts.append(f"early warnings: {counts}")
    if standing.silent_reason:
        parts.append(f"no early warning of the next delivery: {standing.silent_reason}")
    return "; ".join(parts)


def _warnings_as_dict(standing: WarningStanding) -> JsonObject:
    return {
        "at_risk_since": _iso(standing.at_risk_since),
        "at_risk": [
            {
                "due_at": warning.due_at.isoformat(),
                "breach_at": warning.breach_at.isoformat(),
                "warned_at": _iso(warning.warned_at),
            }
            for warning in standing.at_risk
        ],
        "warned_then_late": standing.counts.true,
        "warned_then_on_time": standing.counts.false,
        "late_without_warning": standing.counts.missed,
        "silent": standing.silent_reason,
        "warned": [
            {"due_at": due_at.isoformat(), "warned_at": warned_at.isoformat()}
            for due_at, warned_at in sorted(standing.warned_at.items())
        ],
    }


def promise_as_dict(compliance: SloCompliance) -> JsonObject:
    """Return an SLO's compliance as JSON values, without its cycles."""
    return {
        "contract": compliance.slo.contract.key,
        "object": compliance.slo.object.name,
        "slo": compliance.slo.id,
        "objective": float(compliance.slo.objective),
        "attainment": float(compliance.budget.attainment)
        if compliance.budget.attainment is not None
        else None,
        "good": compliance.budget.good,
        "bad": compliance.budget.bad,
        "allowed": compliance.budget.allowed,
        "budget": compliance.budget.as_text(),
        "streak": {"length": compliance.streak.length, "good": compliance.streak.good}
        if compliance.streak
        else None,
        "trend": float(compliance.trend) if compliance.trend is not None else None,
        "usual_minutes": compliance.usual_delay.total_seconds() / 60
        if compliance.usual_delay is not None
        else None,
        "availability": float(compliance.availability) if compliance.availability is not None else None,
        "burn_rates": list(compliance.budget.burning),
        "warnings": _warnings_as_dict(compliance.warnings) if compliance.warnings is not None else None,
    }


def group_as_dict(group: GroupCompliance) -> JsonObject:
    """Return a group's compliance as JSON values."""
    return {
        "name": group.name,
        "products": group.products,
        "promises": group.promises,
        "good": group.good,
        "bad": group.bad,
        "attainment": float(group.attainment) if group.attainment is not None else None,
        "exhausted": group.exhausted_budgets,
    }


def cycle_as_dict(record: CycleRecord) -> JsonObject:
    """Return a cycle as JSON values, with the claims of its sources."""
    return {
        "due_at": record.cycle.due_at.isoformat(),
        "breach_at": record.cycle.breach_at.isoformat(),
        "status": record.status,
        "delivered_at": _iso(record.delivered_at),
        "source": record.source,
        "first_seen_at": _iso(record.first_seen_at),
        "arriving_since": _iso(record.arriving_since),
        "gone_since": _iso(record.gone_since),
        "delivered_anew_at": _iso(record.anew_at),
        "evidence": [
            {"source": claim.source, "delivered_at": _iso(claim.delivered_at), "rows": claim.rows}
            for claim in record.claims
        ],
        "disagreeing": [claim.source for claim in disagreeing_claims(record.claims, record.source)],
    }


def _iso(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None


# Terms of watched SLOs, stored so that readers of the store do not need the contracts.

Terms = dict[Key, tuple[str, str, int, bool]]


def terms_by_slo(slos: Iterable[Slo]) -> Terms:
    """Return product (by default the contract's key), objective, window seconds and `expects_new_data`."""
    return {
        slo.key: (
            slo.contract.data_product or slo.contract.key,
            str(slo.objective),
            round(slo.window.total_seconds()),
            slo.expects_new_data,
        )
        for slo in slos
    }


def stored_terms(tx: Connection, contracts: Collection[str]) -> Terms:
    """Return the stored terms of these contracts."""
    terms: Terms = {}
    for chunk in chunks(sorted(contracts)):
        for row in tx.execute(select(slo_terms).where(slo_terms.c.contract.in_(chunk))):
            terms[row.contract, row.object, row.slo] = tuple(row)[len(KEY) :]
    return terms


def changed_terms(stored: Terms, desired: Terms, withdrawal_reason: Callable[[Key], str | None]) -> Terms:
    """Return the terms to write: changed ones, and an empty product for each withdrawn SLO.

    SLOs that are neither desired nor withdrawn are kept: their contract could not be parsed this time.
    """
    changes = {key: terms for key, terms in desired.items() if stored.get(key) != terms}
    return changes | {
        key: ("", "", 0, False) for key in stored if key not in desired and withdrawal_reason(key) is not None
    }


def write_terms(tx: Connection, changes: Terms) -> None:
    """Write the result of `changed_terms`."""
    for key in changes:
        tx.execute(delete(slo_terms).where(matches_key(slo_terms, key)))
    names = slo_terms.columns.keys()
    rows = [dict(zip(names, (*key, *terms), strict=True)) for key, terms in changes.items() if terms[0]]
    if rows:
        tx.execute(insert(slo_terms), rows)


# Tallies of all SLOs for metrics, counted by the database without loading cycles.

GOOD = [status for status in CycleStatus if status.good]
BAD = [status for status in CycleStatus if status.bad]


@dataclass(frozen=True, slots=True)
class SloTally(CycleCounts):
    """Numbers of good and bad cycles in an SLO's window, with the same rules as `budget`."""

    product: str
    contract: str
    object: str
    slo: str
    objective: Fraction
    good: int
    bad: int

    @property
    def allowed(self) -> int:
        """Number of the counted cycles that may be bad."""
        return allowed_misses(self.good + self.bad, self.objective)


def tallies(tx: Connection, now: datetime) -> Iterator[SloTally]:
    """Yield the tally of every watched SLO at an aware instant, in the order of their keys."""
    terms, cycles = slo_terms.c, cycle.c
    windows = tx.scalars(select(terms.window_seconds).distinct()).all()
    if not windows:
        return
    since = case(
        {seconds: literal(now - timedelta(seconds=seconds), UtcDateTime) for seconds in windows},
        value=terms.window_seconds,
    )
    in_window = and_(
        matches_key(cycle, key_of(slo_terms)),
        cycles.breach_at > since,
        cycles.breach_at <= now,
        cycles.status.in_([*GOOD, *BAD]),
    )
    query = (
        select(
            slo_terms,
            func.count(case((cycles.status.in_(GOOD), 1))).label("good"),
            func.count(case((cycles.status.in_(BAD), 1))).label("bad"),
        )
        .select_from(slo_terms.outerjoin(cycle, in_window))
        .group_by(*slo_terms.c)
        .order_by(*key_of(slo_terms))
    )
    for row in tx.execute(query):
        objective = Fraction(row.objective)
        yield SloTally(row.product, row.contract, row.object, row.slo, objective, row.good, row.bad)


def count_open(tx: Connection) -> dict[CycleStatus, int]:
    """Return the numbers of missing and unknown cycles."""
    query = select(cycle.c.status, func.count()).where(
        cycle.c.status.in_((CycleStatus.MISSING, CycleStatus.UNKNOWN))
    )
    rows = {CycleStatus(status): count for status, count in tx.execute(query.group_by(cycle.c.status))}
    return {status: rows.get(status, 0) for status in (CycleStatus.MISSING, CycleStatus.UNKNOWN)}
