"""How far a table is complete: tables of cases, and random histories against a second definition."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.incident import CycleStatus, DeliveryState
from dq.contracts.outcome import Location, Severity
from dq.contracts.schedule.clock import DstNote
from dq.contracts.slo import Cycle
from dq.dataquality import results
from dq.dataquality.complete_through import CompleteThrough, evaluate
from dq.dataquality.delivery.cycle import CycleRecord
from dq.dataquality.results import FailedChecks
from dq.store.engine import open_store

FIRST = datetime(2026, 11, 20, 6, tzinfo=UTC)
DAY = timedelta(days=1)
STATUSES = {
    "o": CycleStatus.ON_TIME, "g": CycleStatus.ON_TIME_IN_GRACE, "l": CycleStatus.LATE,
    "m": CycleStatus.MISSING, "n": CycleStatus.NEVER, "a": CycleStatus.NEVER, "x": CycleStatus.EXCUSED,
    "w": CycleStatus.WITHDRAWN, "u": CycleStatus.UNKNOWN, "p": CycleStatus.PENDING,
    "s": CycleStatus.SCHEDULED,
}  # fmt: skip
DELIVERED = "ogla"


def record(number: int, letter: str, *, slo: str = "daily", partitioned: bool = True) -> CycleRecord:
    due_at = FIRST + number * DAY
    partitions = ((("day", f"{due_at - DAY:%F}"),),) if partitioned else ()
    cycle = Cycle(
        "orders", "orders", slo, due_at, due_at + timedelta(hours=1),
        due_at.replace(tzinfo=None), DstNote.NORMAL, partitions,
    )  # fmt: skip
    delivered_at = due_at if letter in DELIVERED else None
    return CycleRecord(number, cycle, STATUSES[letter], letter, delivered_at, delivered_at, notified=False)


def history(letters: str, **options: object) -> list[CycleRecord]:
    return [record(number, letter, **options) for number, letter in enumerate(letters)]  # type: ignore[arg-type]


def days(standing: CompleteThrough) -> tuple[str, int | None, int | None, int | None]:
    """The state, and the days of complete through, checked through and hole from the first day on."""
    points = (standing.through, standing.checked, standing.hole)
    return standing.state.value, *(None if point is None else (point.due_at - FIRST).days for point in points)


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("", ("pending", None, None, None)),
        ("p", ("pending", None, None, None)),
        ("ogl", ("complete", 2, 2, None)),
        ("oop", ("complete", 1, 1, None)),
        ("oops", ("complete", 1, 1, None)),
        ("omo", ("incomplete", 0, 2, 1)),
        ("mo", ("incomplete", None, 1, 0)),
        # Given up, and delivered after that.
        ("ono", ("incomplete", 0, 2, 1)),
        ("oao", ("complete", 2, 2, None)),
        ("oxxo", ("complete", 3, 3, None)),
        ("ox", ("complete", 1, 1, None)),
        ("ouo", ("unknown", 0, 2, 1)),
        ("owo", ("incomplete", 0, 2, 1)),
        # The first hole decides, and nothing is checked behind a delivery in grace.
        ("oum", ("unknown", 0, 2, 1)),
        ("ompo", ("incomplete", 0, 1, 1)),
        ("opo", ("complete", 0, 0, None)),
    ],
)
def test_partitions(letters: str, expected: tuple[object, ...]) -> None:
    assert days(evaluate("orders", "orders", history(letters), FailedChecks())) == expected


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        # A later delivery replaces what was missing before.
        ("omo", ("complete", 2, 2, None)),
        ("unwgo", ("complete", 4, 4, None)),
        ("omom", ("incomplete", 2, 3, 3)),
        ("ox", ("complete", 1, 1, None)),
        ("omx", ("incomplete", 0, 2, 1)),
        ("opo", ("complete", 2, 2, None)),
    ],
)
def test_tables_without_partitions(letters: str, expected: tuple[object, ...]) -> None:
    found = evaluate("orders", "orders", history(letters, partitioned=False), FailedChecks())

    assert days(found) == expected


def test_slos_of_one_object_count_together() -> None:
    monthly = [record(1, "m", slo="monthly")]

    found = evaluate("orders", "orders", [*history("ooo"), *monthly], FailedChecks())

    assert days(found) == ("incomplete", 0, 2, 1)


def test_a_withdrawn_cycle_can_be_excluded() -> None:
    excluded = {(("orders", "orders", "daily"), FIRST + DAY)}

    found = evaluate("orders", "orders", history("owo"), FailedChecks(), excluded)

    assert days(found) == ("complete", 2, 2, None)


def test_the_text_is_what_the_partitions_have_in_common() -> None:
    first, second = history("oo")
    regions = tuple((("day", "2026-11-19"), ("region", region)) for region in ("de", "fr"))
    several = replace(first, cycle=replace(first.cycle, partitions=regions))
    different = replace(first, cycle=replace(first.cycle, partitions=((("a", "1"),), (("a", "2"),))))
    snapshot = replace(first, cycle=replace(first.cycle, partitions=()))

    texts = [
        standing.through.text
        for cycle in (second, several, different, snapshot)
        if (standing := evaluate("orders", "orders", [cycle], FailedChecks())).through
    ]

    assert texts == ["day=2026-11-20", "day=2026-11-19", "2026-11-20T06:00:00Z", "2026-11-20T06:00:00Z"]


Run = tuple[str, str, tuple[str, ...]]


def checked(url: str, runs: Iterable[Run]) -> FailedChecks:
    """The failed checks after runs: scope, results by clause (`id+ day-`), and the selecting words."""
    with closing(open_store(url)) as store:
        for number, (scope, outcomes, rules) in enumerate(runs):
            found = [
                CheckResult(
                    "required", word[:-1].strip("~"), "orders", word[:-1],
                    {"+": Status.PASS, "-": Status.FAIL, "?": Status.ERROR}[word[-1]],
                    Severity.WARNING if word.startswith("~") else Severity.ERROR, "", "", "", Location("x"),
                )
                for word in outcomes.split()
            ]  # fmt: skip
            with store.write() as tx:
                results.save_run(
                    tx, contract="orders", object="orders", version="1.0.0", scope=scope, results=found,
                    jobs=1, now=FIRST + number * DAY + timedelta(hours=3), rules=rules,
                )  # fmt: skip
        with store.read() as tx:
            return results.failed_checks(tx, "orders", "orders")


ONE, TWO = "day=2026-11-19", "day=2026-11-20"


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(ONE, "id+", ()), (TWO, "id+", ())], ("complete", 3, 3, None)),
        ([(TWO, "id-", ())], ("failed", 0, 3, 1)),
        ([(TWO, "id?", ())], ("failed", 0, 3, 1)),
        ([(TWO, "~id-", ())], ("complete", 3, 3, None)),
        ([(TWO, "id-", ()), (TWO, "id+", ())], ("complete", 3, 3, None)),
        # One of two clauses is checked again.
        ([(TWO, "id- day-", ()), (TWO, "id+", ("id",))], ("failed", 0, 3, 1)),
        ([(TWO, "id- day+", ()), (TWO, "id+", ("id",))], ("complete", 3, 3, None)),
        # A run of several partitions, and of fewer columns than the cycle has.
        ([(f"{ONE}, {TWO}", "id-", ()), (ONE, "id+", ())], ("failed", 0, 3, 1)),
        ([("region=de", "id-", ())], ("failed", None, 3, 0)),
        # The whole table passed at 9:00 on the second day: what came until then is not what fails.
        ([("table", "id+", ()), ("table", "id+", ()), ("table", "id-", ())], ("failed", 1, 3, 2)),
        ([("table", "id-", ())], ("failed", None, 3, 0)),
        # A run of some clauses vouches for nothing.
        ([("table", "id+", ("id",)), ("table", "id-", ())], ("failed", None, 3, 0)),
        ([("table", "id-", ()), ("table", "id+", ("id",))], ("complete", 3, 3, None)),
    ],
)
def test_failed_checks(url: str, runs: list[Run], expected: tuple[object, ...]) -> None:
    assert days(evaluate("orders", "orders", history("oooo"), checked(url, runs))) == expected


def test_a_partition_that_was_written_again_stays_failed_until_it_is_checked(url: str) -> None:
    cycles = history("oo")
    cycles[1] = replace(cycles[1], anew_at=FIRST + 5 * DAY)

    assert days(evaluate("orders", "orders", cycles, checked(url, [(TWO, "id-", ())])))[:2] == ("failed", 0)


def test_values_of_folders_and_of_integers_are_the_same() -> None:
    failed = FailedChecks(((("hour", "3"),),))

    assert failed.scope_of(((("hour", "03"),),), FIRST) == "hour=3"
    assert failed.scope_of(((("hour", "13"),),), FIRST) == ""


@given(st.text("".join(STATUSES), max_size=12), st.booleans(), st.sets(st.integers(0, 11), max_size=2))
@settings(max_examples=300, deadline=None)
def test_there_is_never_a_hole_at_or_before_it(letters: str, partitioned: bool, failing: set[int]) -> None:
    cycles = history(letters, partitioned=partitioned)
    scopes = tuple((("day", f"{FIRST + (number - 1) * DAY:%F}"),) for number in sorted(failing))
    failed = FailedChecks(scopes if partitioned else ())
    found = evaluate("orders", "orders", cycles, failed)

    def whole(number: int) -> bool:
        later = letters[number + 1 :] if not partitioned else ""
        is_delivered = letters[number] in DELIVERED and not (partitioned and number in failing)
        return is_delivered or letters[number] == "x" or any(letter in DELIVERED for letter in later)

    expected = next((number for number in range(len(letters)) if not whole(number)), len(letters)) - 1
    _, through, checked_through, hole = days(found)
    assert through == (expected if expected >= 0 else None)
    assert (found.state is DeliveryState.COMPLETE) == (through == checked_through is not None)
    assert (hole is None) == (found.state in (DeliveryState.COMPLETE, DeliveryState.PENDING))
