"""Cycles in a row that agree: what is one cycle, which results count, and what ends a streak."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from dq.contracts.agreement import Agreement, OtherSide
from dq.contracts.check_result import AgreementStreak
from dq.dataquality.clauses.agreement_streak import streak
from dq.dataquality.model.run_context import PastComparison

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
RULE = Agreement(OtherSide("orders", server="serverless"), ("id",), cycles=3)
RESULTS = {"+": True, "-": False, "?": None}


def compared(partition: str, result: str, run: int = 0, definition: str = RULE.definition) -> PastComparison:
    """The result of a partition, `day=2026-11-01/region=eu`, in one run after the other."""
    values = tuple(tuple(part.split("=")) for part in partition.split("/") if part)
    at = NOON + timedelta(hours=run)
    return PastComparison("rule", definition, at, RESULTS[result], values)  # type: ignore[arg-type]


def days(results: str) -> list[PastComparison]:
    """Results of days in order; a `_` is a delivery without a check, a space is nothing."""
    partitions = [(f"day=2026-11-{day:02}", result) for day, result in enumerate(results, 1)]
    return [
        PastComparison("rule", "", NOON, None, (("day", part[4:]),), compared=False)
        if result == "_"
        else compared(part, result)
        for part, result in partitions
        if result != " "
    ]


def day(number: int) -> str:
    return f"day=2026-11-{number:02}"


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ("", AgreementStreak(0, 3)),
        ("+", AgreementStreak(1, 3)),
        ("+++++", AgreementStreak(5, 3)),
        ("-", AgreementStreak(0, 3, day(1))),
        ("++-", AgreementStreak(0, 3, day(3))),
        ("++--++", AgreementStreak(2, 3, day(4))),
        ("+--+-+", AgreementStreak(1, 3, day(5))),
        ("-+++", AgreementStreak(3, 3)),
        # What could not be compared is neither agreement nor a way to forget a disagreement.
        ("+++?", AgreementStreak(0, 3, "", day(4))),
        ("+?++", AgreementStreak(2, 3, "", day(2))),
        ("-??????+", AgreementStreak(1, 3, day(1), day(7))),
        ("-?+++", AgreementStreak(3, 3, "", day(2))),
        ("++_++", AgreementStreak(2, 3, "", day(3))),
        ("-___++", AgreementStreak(2, 3, day(1), day(4))),
        # Deliveries that wait for their check, or came before the rule, are no gap.
        ("++__", AgreementStreak(2, 3)),
        ("__++", AgreementStreak(2, 3)),
        ("____", AgreementStreak(0, 3)),
        # A day without a delivery, e.g. a Sunday, is not a cycle.
        ("++ ++", AgreementStreak(4, 3)),
    ],
)
def test_the_latest_cycles_decide(results: str, expected: AgreementStreak) -> None:
    assert streak(RULE, days(results)) == expected
    assert streak(RULE, days(results)).is_complete == (results.replace(" ", "")[-3:] == "+++")


def test_the_order_of_the_runs_does_not_matter_but_the_newest_result_of_a_cycle() -> None:
    results = [compared(day(number), "-" if number == 2 else "+") for number in range(1, 5)]
    for order in permutations(results):
        assert streak(RULE, order) == AgreementStreak(2, 3, day(2))

    repaired = compared(day(2), "+", run=1)
    assert streak(RULE, [*results, repaired]) == AgreementStreak(4, 3)
    assert streak(RULE, [*results, repaired, compared(day(2), "-", run=2)]) == AgreementStreak(2, 3, day(2))
    assert streak(RULE, [*results, repaired, compared(day(4), "+", run=2)]) == AgreementStreak(4, 3)


def test_results_of_another_definition_are_not_compared() -> None:
    looser = Agreement(RULE.other, RULE.key, bounds=(("mustBeLessThan", 5),), cycles=3)
    assert looser.definition != RULE.definition
    assert Agreement(RULE.other, RULE.key, cycles=9).definition == RULE.definition

    earlier = [compared(day(1), "-", definition=looser.definition), compared(day(2), "+")]
    assert streak(RULE, earlier) == AgreementStreak(1, 3, "", day(1))


def test_all_partitions_of_a_date_are_one_cycle() -> None:
    first = [compared(f"{day(1)}/region={region}", "+") for region in ("eu", "us")]
    second = [compared(f"{day(2)}/region=eu", "+"), compared(f"{day(2)}/region=us", "-")]

    assert streak(RULE, first) == AgreementStreak(1, 3)
    assert streak(RULE, [*first, *second]) == AgreementStreak(0, 3, f"{day(2)}/region=us")
    repaired = compared(f"Region=us/{day(2)}", "+", run=1)
    assert streak(RULE, [*first, *second, repaired]) == AgreementStreak(2, 3)
    assert streak(RULE, [*first, *second[:1]]) == AgreementStreak(2, 3)


@pytest.mark.parametrize(
    "partitions",
    [
        ("hour=9/day=2026-11-01", "hour=10/day=2026-11-01", "hour=0/day=2026-11-02"),
        ("at=2026-11-01T09", "at=2026-11-01T10", "at=2026-11-02T00"),
        ("year=2026/month=9/day=30", "year=2026/month=10/day=9", "year=2026/month=10/day=10"),
        ("year=2026/month=9", "year=2026/month=10", "year=2026/month=11"),
    ],
)
def test_hours_and_months_are_cycles_in_their_order(partitions: tuple[str, ...]) -> None:
    first, *remaining = partitions
    ordered = [compared(first, "-"), *(compared(partition, "+") for partition in remaining)]

    assert streak(RULE, reversed(ordered)).cycles == 2
    assert streak(RULE, reversed(ordered)).disagreement == "/".join(sorted(first.split("/")))


def test_the_runs_of_a_table_count_by_their_day_in_utc() -> None:
    def run(result: str, hours: int) -> PastComparison:
        return compared("", result, run=hours)

    assert streak(RULE, [run("+", 0), run("+", 1), run("+", 11)]) == AgreementStreak(1, 3)
    assert streak(RULE, [run("-", 0), run("+", 1), run("+", 13)]) == AgreementStreak(2, 3)
    assert streak(RULE, [run("+", 0), run("-", 1), run("+", 13)]) == AgreementStreak(1, 3, "2026-11-20")
    # A run of the whole table is not a cycle of its partitions.
    assert streak(RULE, [compared(day(1), "+"), run("-", 1)]) == AgreementStreak(1, 3)


def test_a_streak_as_text() -> None:
    assert str(AgreementStreak(3, 7)) == "3 of 7 cycles in a row"
    assert str(AgreementStreak(7, 7)) == "7 of 7 cycles in a row"
    assert str(AgreementStreak(10, 7)) == "7 of 7 cycles (10 in a row)"
