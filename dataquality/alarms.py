"""Alarms of the check `unusual`: people's answers whether they were real, and the accepted number a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from dq.contracts.check_result import Status
from dq.contracts.metrics import UNUSUAL
from dq.contracts.outcome import pluralize
from dq.dataquality.delivery.tables import chunks
from dq.dataquality.results import TABLE, alarm_answer, check_result, check_run


@dataclass(frozen=True, slots=True)
class AlarmSpan:
    """A scope whose incident was open from `opened_at` until `closed_at` (None: it still is)."""

    scope: str
    opened_at: datetime
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlarmCounts:
    """Numbers of alarms by answer. Of a partition that was checked again, the newest alarm counts."""

    real: int = 0
    not_real: int = 0
    unanswered: int = 0

    @property
    def total(self) -> int:
        """Number of alarms."""
        return self.real + self.not_real + self.unanswered

    @property
    def precision(self) -> float | None:
        """Share of real alarms among those with an answer, or None without any answer."""
        answered = self.real + self.not_real
        return self.real / answered if answered else None

    def as_dict(self) -> dict[str, object]:
        """Return the counts as JSON values."""
        return {
            "alarms": self.total,
            "real": self.real,
            "not_real": self.not_real,
            "unanswered": self.unanswered,
            "precision": self.precision,
        }

    def __str__(self) -> str:
        answers = f"{self.real} real, {self.not_real} not real, {self.unanswered} without an answer"
        text = f"{pluralize(self.total, 'alarm')}: {answers}"
        return text if self.precision is None else f"{text} ({self.precision:.0%} of the answered were real)"


NO_ALARMS = AlarmCounts()


def total_counts(counts: Iterable[AlarmCounts]) -> AlarmCounts:
    """Return the sums over tables."""
    listed = list(counts)
    return AlarmCounts(
        sum(count.real for count in listed),
        sum(count.not_real for count in listed),
        sum(count.unanswered for count in listed),
    )


_ALARM = sa.and_(
    check_result.c.check == UNUSUAL, check_result.c.status == Status.FAIL.value, check_run.c.staged.is_(None)
)


def save_answer(
    tx: sa.Connection,
    contract: str,
    object: str,
    spans: Iterable[AlarmSpan],
    *,
    real: bool,
    by: str,
    now: datetime,
) -> int:
    """Store a person's answer to the alarms of an object in these spans, and return their number.

    A later answer replaces an earlier one.
    """
    by_scope: Mapping[str, list[AlarmSpan]] = defaultdict(list)
    for span in spans:
        by_scope[span.scope].append(span)
    query = (
        sa.select(check_run.c.id, check_run.c.scope, check_run.c.at)
        .join(check_result, check_result.c.run_id == check_run.c.id)
        .where(check_run.c.contract == contract, check_run.c.object == object, _ALARM)
        .distinct()
    )
    runs = [
        row.id
        for row in tx.execute(query)
        if any(
            span.opened_at <= row.at and (span.closed_at is None or row.at < span.closed_at)
            for span in by_scope.get(row.scope, ())
        )
    ]
    if runs:
        tx.execute(sa.delete(alarm_answer).where(alarm_answer.c.run_id.in_(runs)))
        rows = [{"run_id": run, "real": real, "answered_by": by, "answered_at": now} for run in runs]
        tx.execute(sa.insert(alarm_answer), rows)
    return len(runs)


def alarm_counts(
    tx: sa.Connection,
    until: datetime | None = None,
    contracts: Collection[str] | None = None,
    since: datetime | None = None,
) -> dict[tuple[str, str], AlarmCounts]:
    """Return the counts of alarms by contract and object, with answers as of `until`, if given.

    Only of these contracts, and of checks at `since` or later, if given; tables without an alarm are left
    out.
    """
    answered = alarm_answer.c.run_id == check_run.c.id
    if until is not None:
        answered = sa.and_(answered, alarm_answer.c.answered_at <= until)
    query = (
        sa.select(check_run.c.id, check_run.c.contract, check_run.c.object, check_run.c.scope)
        .add_columns(alarm_answer.c.real)
        .join(check_result, check_result.c.run_id == check_run.c.id)
        .outerjoin(alarm_answer, answered)
        .where(_ALARM)
        .order_by(check_run.c.id)
    )
    if until is not None:
        query = query.where(check_run.c.at <= until)
    if since is not None:
        query = query.where(check_run.c.at >= since)
    queries = [query]
    if contracts is not None:
        queries = [query.where(check_run.c.contract.in_(chunk)) for chunk in chunks(sorted(contracts))]
    answers: dict[tuple[str, str], dict[object, bool | None]] = defaultdict(dict)
    for row in (row for query in queries for row in tx.execute(query)):
        answers[row.contract, row.object][row.id if row.scope == TABLE else row.scope] = row.real
    return {
        key: AlarmCounts(
            sum(real is True for real in alarms.values()),
            sum(real is False for real in alarms.values()),
            sum(real is None for real in alarms.values()),
        )
        for key, alarms in answers.items()
    }


# The accepted false alarms a day of all tables, spent on the tests in the order in which they come.
#
# The sum of the levels of all tests of a day is at most the accepted number, so the expected number of false
# alarms is too, however the tables depend on each other (Gordon, Glazko, Qiu and Yakovlev 2007,
# https://doi.org/10.1214/07-AOAS102). Each level is known before its test, as in alpha-spending for streams
# of tests (Tian and Ramdas 2021, https://arxiv.org/abs/1910.04900): nothing waits for the end of the day.

# Share of the number for as many tests as on the busiest of the last days; the others share what remains.
_USUAL_SHARE = 0.9
_USUAL_DAYS = 7


def level_of_test(accepted: float, usual: int, number: int) -> float:
    """Return the level of the test with this number of its day, from 1.

    `accepted` are the false alarms a day, `usual` is the number of tests on the busiest recent day. The
    levels of all tests of a day add up to at most `accepted`, however many there are.
    """
    usual = max(usual, 1)
    if number <= usual:
        return _USUAL_SHARE * accepted / usual
    return (1 - _USUAL_SHARE) * accepted * usual / (number * (number - 1))


def next_test_level(tx: sa.Connection, accepted: float, tests: int, now: datetime) -> float:
    """Return the level of each of the next `tests` tests, by the tests of this day and of the last seven.

    A test is a result of the check `unusual` with a p-value; days are in UTC.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=back) for back in range(_USUAL_DAYS + 1)]
    counts = [
        sa.func.coalesce(sa.func.sum(sa.case((check_run.c.at.between(day, _end(day)), 1), else_=0)), 0)
        for day in days
    ]
    query = (
        sa.select(*counts)
        .join(check_result, check_result.c.run_id == check_run.c.id)
        .where(check_run.c.at >= days[-1], check_run.c.at < now)
        .where(check_result.c.check == UNUSUAL, check_result.c.value.is_not(None))
    )
    of_today, *earlier = map(int, tx.execute(query).one())
    return level_of_test(accepted, max(earlier), of_today + tests)


def _end(day: datetime) -> datetime:
    return day + timedelta(days=1) - timedelta(microseconds=1)
