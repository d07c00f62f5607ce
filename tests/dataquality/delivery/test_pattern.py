"""Delivery terms found in planted histories of arrivals, and none where there is no pattern."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import holidays
import pytest

from dq.dataquality.delivery.pattern import Arrival, DeliveryPattern, find_pattern

FIRST = date(2025, 9, 1)
NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"
DAY = timedelta(days=1)


def history(
    starts: str = "06:00",
    days: Callable[[date], bool] = lambda _: True,
    *,
    zone: str = "UTC",
    length: int = 200,
    lags: Callable[[date], tuple[int, ...]] | None = None,
    late: Callable[[date], float] = lambda _: 0,
) -> Iterator[Arrival]:
    """Arrivals 3 to 25 minutes after each start, on the clock of a zone."""
    draw = random.Random(7)
    for number in range(length):
        day = FIRST + DAY * number
        for start in starts.split() if days(day) else ():
            civil = datetime.combine(day, time.fromisoformat(start), ZoneInfo(zone))
            minutes = 3 + min(22.0, draw.gammavariate(2, 4)) + late(day)
            at = (civil + timedelta(minutes=minutes)).astimezone(UTC)
            if lags is None:
                yield Arrival(at)
            else:
                yield from (Arrival(at, datetime.combine(day - DAY * lag, time(0))) for lag in lags(day))


def found(pattern: DeliveryPattern) -> list[tuple[str, str, tuple[int, ...]]]:
    assert not pattern.reason
    return [
        (delivery.schedule.expression, delivery.schedule.timezone, delivery.lags)
        for delivery in pattern.deliveries
    ]


def is_weekday(day: date) -> bool:
    return day.weekday() < 5


def is_last(day: date) -> bool:
    return (day + DAY).day == 1


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        (history(), "0 6 * * *"),
        (history("23:55"), "55 23 * * *"),
        (history("00:00"), "0 0 * * *"),
        (history("06:00 18:00"), "0 6,18 * * *"),
        (history("06:00 10:30 22:15"), "0 6,10,22 * * *"),
        (history(days=is_weekday), "0 6 * * 1-5"),
        (history(days=lambda day: day.weekday() in (1, 4)), "0 6 * * 2,5"),
        (history(days=lambda day: day.weekday() == 6, length=365), "0 6 * * 0"),
        (history(days=lambda day: day.day == 1, length=400), "0 6 1 * *"),
        (history(days=lambda day: day.day in (1, 15), length=400), "0 6 1,15 * *"),
        (history(days=is_last, length=400), "0 6 L * *"),
        (history(days=lambda day: day.weekday() == 1 and 7 < day.day < 15, length=400), "0 6 * * 2#2"),
        (history(" ".join(f"{hour:02}:10" for hour in range(24)), length=20), "10 * * * *"),
    ],
)
def test_schedules(arrivals: Iterator[Arrival], expected: str) -> None:
    [(expression, zone, _)] = found(find_pattern(arrivals))

    fields, expected_fields = expression.split(), expected.split()
    assert (fields[1:], zone) == (expected_fields[1:], "UTC")
    assert 0 <= int(fields[0]) - int(expected_fields[0]) <= 10


@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, BERLIN, "Australia/Sydney"])
def test_a_job_is_found_on_the_clock_by_which_it_runs(zone: str) -> None:
    arrivals = history(zone=zone, length=365)
    candidates = ["UTC", BERLIN, NEW_YORK, "Australia/Sydney"]

    [(expression, found_zone, _)] = found(find_pattern(arrivals, candidates))

    assert (expression, found_zone) == ("0 6 * * *", zone)


def test_a_history_without_a_clock_change_takes_the_first_zone_and_says_so() -> None:
    arrivals = list(history(zone=NEW_YORK, length=50))

    pattern = find_pattern(arrivals, [BERLIN, "UTC", NEW_YORK])

    assert [zone for _, zone, _ in found(pattern)] == [BERLIN]
    assert pattern.notes == (
        f"No clock changed in this time, so the history does not show whether {BERLIN} is the zone.",
    )


def test_arrivals_that_move_with_the_clock_of_a_zone_that_was_not_named_are_reported() -> None:
    pattern = find_pattern(history(zone=NEW_YORK, length=365))

    assert (
        f"Arrivals move with the clocks of {NEW_YORK}: pass their zone, e.g. --zone {NEW_YORK}."
        in pattern.notes
    )


def test_partitions_of_the_day_before() -> None:
    assert found(find_pattern(history(lags=lambda _: (1,)))) == [("0 6 * * *", "UTC", (1,))]


def test_partitions_of_a_weekend_that_come_on_monday_have_terms_of_their_own() -> None:
    arrivals = history(days=is_weekday, lags=lambda day: (1, 2, 3) if day.weekday() == 0 else (1,))

    assert sorted(found(find_pattern(arrivals))) == [
        ("0 6 * * 1", "UTC", (1, 2, 3)),
        ("0 6 * * 2-5", "UTC", (1,)),
    ]


def test_a_slow_weekday_of_partitions_has_a_due_time_of_its_own() -> None:
    arrivals = history(lags=lambda _: (1,), late=lambda day: 200 if day.weekday() == 0 else 0)

    assert sorted(found(find_pattern(arrivals))) == [
        ("0 6 * * 0,2-6", "UTC", (1,)),
        ("20 9 * * 1", "UTC", (1,)),
    ]


def test_holidays() -> None:
    free = holidays.country_holidays("DE", subdiv="BY", years=[2025, 2026])
    arrivals = list(history(days=lambda day: is_weekday(day) and day not in free, length=400))

    [delivery] = find_pattern(arrivals, holidays=["US", "DE", "DE-BY"]).deliveries

    assert delivery.schedule.calendar is not None
    assert delivery.schedule.calendar.holidays == ("DE-BY",)
    assert delivery.missing == 0


def test_grace_covers_the_objective_and_the_evidence_counts() -> None:
    lateness = {FIRST + DAY * 40: 300.0, FIRST + DAY * 41: 60.0}
    arrivals = list(history(length=90, late=lambda day: lateness.get(day, 0)))

    [delivery] = find_pattern(arrivals, objective=Fraction(97, 100)).deliveries
    [strict] = find_pattern(arrivals, objective=Fraction(1)).deliveries

    assert (delivery.misses, delivery.grace) == (2, timedelta(minutes=25))
    assert delivery.evidence == (
        "came by 06:25 in 88 of 90 deliveries, 2025-09-01 to 2025-11-29; "
        "06:00 + 25m would have been missed twice"
    )
    assert (strict.misses, strict.grace) == (0, timedelta(minutes=330))


def test_deliveries_that_never_came_lower_the_objective() -> None:
    arrivals = history(days=lambda day: day.toordinal() % 13 != 0)

    pattern = find_pattern(arrivals)

    [delivery] = pattern.deliveries
    assert (delivery.objective, delivery.missing) == (Fraction(90, 100), 15)
    assert "15 of 200 deliveries never came, so the objective is 90%, not 95%." in pattern.notes


def test_a_pause_is_not_counted() -> None:
    pattern = find_pattern(history(days=lambda day: not 50 <= (day - FIRST).days < 70))

    [delivery] = pattern.deliveries
    assert (delivery.missing, delivery.paused) == (0, 20)
    assert "20 deliveries in pauses are not counted." in pattern.notes


def test_only_arrivals_since_the_schedule_was_moved_count() -> None:
    pattern = find_pattern(history(late=lambda day: 0 if day < FIRST + DAY * 120 else 90))

    assert [expression for expression, _, _ in found(pattern)] == ["30 7 * * *"]
    assert "The usual time changed until 2025-12-30; only arrivals from then on count." in pattern.notes


def test_a_backfill_is_not_counted() -> None:
    arrivals = list(history(lags=lambda _: (1,)))
    rewritten = [
        Arrival(arrivals[-1].at + timedelta(seconds=number), arrival.stamp)
        for number, arrival in enumerate(arrivals[20:50])
    ]

    pattern = find_pattern([*arrivals[:20], *rewritten, *arrivals[50:]])

    assert found(pattern) == [("0 6 * * *", "UTC", (1,))]
    assert any("a backfill or a rewrite" in note for note in pattern.notes)


def test_a_copied_table_shows_no_arrivals() -> None:
    copied_at = datetime(2026, 5, 1, 9, tzinfo=UTC)

    pattern = find_pattern(
        Arrival(copied_at + timedelta(seconds=number), arrival.stamp)
        for number, arrival in enumerate(history(lags=lambda _: (1,)))
    )

    assert not pattern.deliveries
    assert pattern.reason.startswith("200 of 200 partitions were written together at 2026-05-01 09:03 UTC")


@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_too_little_history(count: int) -> None:
    pattern = find_pattern(history(length=count))

    assert pattern.reason.startswith(f"too little history: {count} arrival")


@pytest.mark.parametrize("every", [timedelta(hours=25), timedelta(days=14), timedelta(hours=31)])
def test_no_pattern(every: timedelta) -> None:
    start = datetime(2025, 9, 1, 6, tzinfo=UTC)

    assert find_pattern(Arrival(start + every * number) for number in range(60)).reason.startswith(
        "no pattern"
    )


def test_arrivals_at_any_time_have_no_pattern() -> None:
    draw = random.Random(3)
    arrivals = [
        Arrival(
            datetime(2025, 9, 1, tzinfo=UTC) + DAY * number + timedelta(minutes=draw.uniform(0, 1440)),
            datetime(2025, 9, 1) + DAY * number,  # noqa: DTZ001 - civil
        )
        for number in range(150)
    ]

    assert find_pattern(arrivals).reason.startswith("no pattern")
