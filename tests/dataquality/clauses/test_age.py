"""Latency and retention on real data: what they cost, which rows they see, which clock they follow."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import TYPE_CHECKING

import pytest

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import Contract, SlaProperty
from dq.contracts.outcome import Duration, UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import CheckParameters, before, in_words
from dq.dataquality.clauses.coverage import promised
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model.run_context import Unusable
from dq.dataquality.request import Request
from dq.operations.gate import unenforced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"
NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def contract(text: str) -> Contract:
    parsed = parse((HEAD + text).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


ORDERS = contract("""
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true}
      - {name: at, logicalType: timestamp}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
slaProperties:
  - {property: latency, value: 4, unit: h, element: orders.at}
  - {property: retention, value: 1, unit: y, element: orders.day}
""")


def ages(results: tuple[CheckResult, ...]) -> dict[str, tuple[str, str]]:
    return {one.check: (one.status, one.observed) for one in results if one.check in ("latency", "retention")}


@pytest.mark.spark
def test_ages_share_the_pass_of_all_cheap_checks_and_the_future_costs_one_more(spark: SparkSession) -> None:
    rows = "SELECT 1 AS id, TIMESTAMP'2026-11-21 09:00:00Z' AS at, DATE'2026-01-01' AS day"
    future = f"{rows} UNION ALL SELECT 2, TIMESTAMP'9999-12-31 23:59:59Z', NULL"
    beyond = f"{rows} UNION ALL SELECT 2, TIMESTAMP'+294000-01-01 00:00:00Z', NULL"

    reports = [check(Request(ORDERS, spark.sql(text), now=NOW)) for text in (rows, future, beyond)]

    assert [report.passes for report in reports] == [1, 2, 2]
    for report in reports:
        assert ages(report.results) == {
            "latency": ("pass", "3 h old"),
            "retention": ("pass", "oldest 323 d 12 h"),
        }
    messages = [report.results[-2].message for report in reports]
    assert messages[1].endswith("1 row(s) lie in the future, up to 9999-12-31 23:59:59Z")
    assert messages[2].endswith("1 row(s) lie in the future, up to a value after the year 9999")


@pytest.mark.spark
def test_ages_are_those_of_the_table_also_when_one_partition_is_tested(spark: SparkSession) -> None:
    fresh, old = dt.date(2026, 11, 21), dt.date(2020, 1, 1)
    frame = spark.createDataFrame(
        [(1, NOW, fresh), (2, NOW - dt.timedelta(days=9), old)], "id int, at timestamp, day date"
    )

    report = check(Request(ORDERS, frame, partitions=[{"day": "2020-01-01"}], now=NOW))
    other = check(Request(ORDERS, frame, partitions=[{"day": "2026-11-21"}], now=NOW))

    assert ages(report.results) == ages(other.results)
    assert ages(report.results)["latency"] == ("pass", "0 s old")
    assert ages(report.results)["retention"][0] == "fail"
    assert "(tested on the whole table)" in report.results[-1].message


@pytest.mark.spark
def test_without_the_time_an_age_cannot_be_told_and_the_report_says_so(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, NOW, NOW.date())], "id int, at timestamp, day date")

    report = check(Request(ORDERS, frame))

    assert {one.check for one in report.with_status(Status.ERROR)} == {"latency", "retention"}
    assert report.exit_code == 3
    with pytest.raises(UsageError, match="has no time zone"):
        check(Request(ORDERS, frame, now=NOW.replace(tzinfo=None)))


TRACKS = """
schema:
  - name: track
    properties: [{name: id, logicalType: integer}, {name: release_date, logicalType: date}]
  - name: artist
    properties: [{name: born, logicalType: date}]
"""
GUESSES = {
    "no element": ("", [(9, "latency", "object.column"), (10, "retention", "object.column")]),
    "an object": (
        ", element: track",
        [(9, "latency", "track has release_date"), (10, "retention", "track has release_date")],
    ),
}


@pytest.mark.parametrize(("element", "expected"), GUESSES.values(), ids=GUESSES)
def test_no_column_is_guessed_for_an_age_and_the_gate_asks_for_one(
    element: str, expected: list[tuple[int, str, str]]
) -> None:
    levels = "".join(f"  - {{property: {level}, value: 3, unit: y{element}}}\n"
                     for level in ("latency", "retention"))  # fmt: skip
    made = contract(f"{TRACKS}slaProperties:\n{levels}")

    tested = [each.check for one in made.objects
              for each in clauses_of(made, one, built_in())
              if isinstance(each.test, CheckParameters)
              and each.check in ("latency", "retention")]  # fmt: skip
    found = list(unenforced(made))

    assert tested == []
    assert [one.at.line - 3 for one in found] == [line for line, _, _ in expected]
    for one, (_, level, asked) in zip(found, expected, strict=True):
        assert f"service level: {level} is not evaluated: it does not name a column" in one.message
        assert asked in one.message


@pytest.mark.spark
def test_a_song_of_1975_is_not_kept_too_long(spark: SparkSession) -> None:
    made = contract(f"{TRACKS}slaProperties: [{{property: retention, value: 3, unit: y}}]\n")
    frame = spark.createDataFrame([(1, dt.date(1975, 10, 31))], "id bigint, release_date date")

    report = check(Request(made, frame, "track", now=NOW))

    assert report.exit_code == 0
    assert [one.reason for one in report.coverage if one.clause == "service level: retention"] == [
        "it does not name a column to measure the age; write element: object.column"
    ]


LENGTHS = {
    "hours": (4, "h", "0 mo 4:00:00"),
    "half an hour": (0.5, "hours", "0 mo 0:30:00"),
    "minutes": (30, "min", "0 mo 0:30:00"),
    "a week": (1, "Week", "0 mo 7 days, 0:00:00"),
    "a year and a half": (1.5, "y", "18 mo 0:00:00"),
    "nothing": (0, "s", "0 mo 0:00:00"),
    "a text with its unit": ("P3Y", None, "36 mo 0:00:00"),
    "a tenth of a month": (0.1, "mo", "not a whole number of months"),
    "a bare m": (30, "m", "30 minutes to some tools and 30 months to others"),
    "no unit": (30, None, "it has no unit"),
    "no unit of time": (3, "parsecs", "'parsecs' is not a unit of time"),
    "a text": ("long", "h", "'long' is not a valid number"),
    "a negative": (-1, "h", "-1 is not a valid number"),
    "a flag": (True, "h", "True is not a valid number"),
    "ages": (10**9, "y", "up to a century"),
    "aeons": (10**12, "d", "longer than a century"),
    "nonsense": ("soon", None, "is not a duration"),
}


@pytest.mark.parametrize(("value", "unit", "expected"), LENGTHS.values(), ids=LENGTHS)
def test_a_length_of_time_is_read_or_refused_with_its_reason(
    value: object, unit: str | None, expected: str
) -> None:
    sla = ORDERS.sla_properties[0].model_copy(update={"value": value, "unit": unit})
    assert isinstance(sla, SlaProperty)

    try:
        found = promised(sla)
        said = f"{found.months} mo {found.elapsed}"
    except Unusable as error:
        said = str(error)

    assert expected in said


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
LIMITS = {
    "months by the calendar": (
        Duration(1, dt.timedelta(), ""),
        "2026-03-31T10:00:00Z",
        "2026-02-28T11:00:00Z",
    ),
    "a leap day": (Duration(12, dt.timedelta(), ""), "2024-02-29T12:00:00Z", "2023-02-28T12:00:00Z"),
    "days are 24 hours": (
        Duration(0, dt.timedelta(days=1), ""),
        "2026-03-29T12:00:00Z",
        "2026-03-28T12:00:00Z",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("length", "now", "expected"), LIMITS.values(), ids=LIMITS)
def test_the_limit_lies_so_long_before(length: Duration, now: str, expected: str) -> None:
    found = before(dt.datetime.fromisoformat(now), length, BERLIN)

    assert found == dt.datetime.fromisoformat(expected)


def test_an_age_is_said_in_its_two_largest_units() -> None:
    seconds = (0, 59, 3_600, 90_061, 3 * 86_400, 400 * 86_400 + 3_600)

    said = [in_words(number * 1_000_000) for number in seconds]

    assert said == ["0 s", "59 s", "1 h", "1 d 1 h", "3 d", "400 d 1 h"]
