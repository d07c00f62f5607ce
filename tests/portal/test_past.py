"""Earlier results of rules: which runs count, up to which instant, and how they are aligned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dq.contracts.check_result import CheckResult, GroupResult, Status
from dq.contracts.metrics import UNUSUAL
from dq.contracts.model import clause_namer
from dq.contracts.outcome import Location, Severity
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import clause_coverage, expected_clauses
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.portal.formatting import row_count_chart, value_sparklines
from dq.portal.product import past_by_clause
from dq.portal.store_queries import quality
from dq.store.engine import Store, open_store

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
TEXT = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 2.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, required: true}
    quality: [{name: whole, metric: rowCount, mustBeGreaterThan: 0}]
"""
ID = "schema[0].properties[1].required"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path}/dq.db")


def save(store: Store, scope: str, hours: int, version: str = "2.0.0", **results_by_clause: Status) -> None:
    """One run, some hours after noon."""
    at = Location("shop.odcs.yaml", 1, 1)
    rows = [
        CheckResult(check, ID if check != "row_count" else "schema[0].quality[0]", "orders", "id", status,
                    Severity.ERROR, "3 of 9 rows", "none", "", at, value=9.0)
        for check, status in results_by_clause.items()
    ]  # fmt: skip
    with store.write() as tx:
        results.save_run(
            tx, contract="shop@2", object="orders", version=version, scope=scope, results=rows, jobs=1,
            now=NOON + timedelta(hours=hours),
        )  # fmt: skip


def past(store: Store, until: datetime | None = None) -> list[str]:
    parsed = parse(TEXT.encode(), "shop.odcs.yaml").contract
    assert parsed is not None
    schema_object = parsed.objects[0]
    clauses = expected_clauses(parsed, schema_object, built_in(), ContractSet.from_contracts([parsed]))
    accounts = clause_coverage(parsed, schema_object, clauses)
    with store.read() as tx:
        found = quality(tx, ["shop@2"], NOON, until)["shop@2", "orders"]
    by_path = past_by_clause(accounts, {}, found.past, "2.0.0", clause_namer(schema_object))
    return [result.status.value if result else "-" for result in by_path.get(ID, ())]


def test_a_partition_that_was_checked_again_counts_once_and_in_the_order_of_its_day(store: Store) -> None:
    save(store, "day=2026-05-18", 1, required=Status.FAIL)
    save(store, "day=2026-05-17", 2, required=Status.PASS)
    save(store, "day=2026-05-18", 3, required=Status.ERROR)

    assert past(store) == ["pass", "error"]


def test_each_run_of_a_whole_table_counts(store: Store) -> None:
    save(store, "table", 1, required=Status.FAIL)
    save(store, "table", 2, required=Status.PASS)

    assert past(store) == ["fail", "pass"]


def test_a_run_without_the_rule_is_a_gap_and_another_version_is_not_taken_for_it(store: Store) -> None:
    save(store, "day=2026-05-17", 1, required=Status.PASS)
    save(store, "day=2026-05-18", 2, row_count=Status.PASS)
    save(store, "day=2026-05-19", 3, version="1.0.0", required=Status.FAIL)

    assert past(store) == ["pass", "-", "-"]


def test_the_worst_result_of_a_run_counts(store: Store) -> None:
    save(store, "day=2026-05-17", 1, required=Status.PASS, unique=Status.FAIL, format=Status.PASS)

    assert past(store) == ["fail"]


def test_what_was_checked_later_is_not_shown_as_of_an_earlier_instant(store: Store) -> None:
    save(store, "day=2026-05-17", 1, row_count=Status.PASS, required=Status.PASS)
    save(store, "day=2026-05-18", 3, row_count=Status.PASS, required=Status.FAIL)

    assert past(store, NOON + timedelta(hours=2)) == ["pass"]
    with store.read() as tx:
        rows = quality(tx, ["shop@2"], NOON, NOON + timedelta(hours=2))["shop@2", "orders"].rows
    assert rows is not None
    assert [f"{count.data_time:%F}" for count in rows.counts] == ["2026-05-17"]


def save_numbers(
    store: Store, hours: int, numbers: dict[str, float], *, check: str = UNUSUAL, failed: str = "",
    scope: str = "table", value: float = 0.25,
) -> None:  # fmt: skip
    """One run of a rule with these numbers by group, some hours after noon."""
    groups = tuple(
        GroupResult((name,), Status.FAIL if name == failed else Status.PASS, "", number)
        for name, number in numbers.items()
    )
    row = CheckResult(
        check, "schema[0].quality[0]", "orders", "", Status.FAIL if failed else Status.PASS, Severity.WARNING,
        "", "", "", Location("shop.odcs.yaml", 1, 1), value=value, groups=groups, group_columns=("of",),
        fingerprint="rule",
    )  # fmt: skip
    with store.write() as tx:
        results.save_run(
            tx, contract="shop@2", object="orders", version="2.0.0", scope=scope, results=[row], jobs=1,
            now=NOON + timedelta(hours=hours),
        )  # fmt: skip


def lines(store: Store) -> dict[str, str]:
    """The lines of the rule by group."""
    with store.read() as tx:
        found, _ = value_sparklines(quality(tx, ["shop@2"], NOON)["shop@2", "orders"].past)
    return {line.group: str(line.chart) for line in found}


def test_the_line_of_an_unusual_number_has_what_was_measured_not_its_probability(store: Store) -> None:
    for hours, numbers in enumerate(({"rowCount": 1200.0}, {}, {"rowCount": 900.0})):
        save_numbers(store, hours, numbers)

    [line] = lines(store).values()
    assert "Measured 2 times: 900 to 1,200, 900 at last" in line
    assert "0.25" not in line


def test_a_rule_by_group_has_a_line_for_each_group_failed_ones_first(store: Store) -> None:
    save_numbers(store, 1, {"DE": 10.0, "PL": 20.0, "FR": 3.0}, check="mean", value=0)
    save_numbers(store, 2, {"DE": 11.0, "PL": 90.0}, check="mean", failed="PL", value=1)

    drawn = lines(store)
    assert list(drawn) == ["PL", "DE"]
    assert "Measured 2 times: 20 to 90, 90 at last" in drawn["PL"]
    assert "Measured 2 times: 10 to 11, 11 at last" in drawn["DE"]


def test_the_number_of_failed_groups_is_not_drawn_if_their_numbers_are_hidden(store: Store) -> None:
    for hours in (1, 2):
        at = Location("shop.odcs.yaml", 1, 1)
        row = CheckResult(
            "mean", "schema[0].quality[0]", "orders", "salary", Status.FAIL, Severity.ERROR, "1 of 2 groups",
            "less than 5", "", at, value=1.0, group_columns=("team",),
            groups=(GroupResult(("a",), Status.FAIL, "hidden"),), fingerprint="",
        )  # fmt: skip
        with store.write() as tx:
            results.save_run(
                tx, contract="shop@2", object="orders", version="2.0.0", scope="table", results=[row], jobs=1,
                now=NOON + timedelta(hours=hours),
            )  # fmt: skip

    assert lines(store) == {}


def test_the_rows_of_a_rule_unusual_are_drawn_and_hollow_where_it_failed(store: Store) -> None:
    for day, (rows, failed) in enumerate(((1000, ""), (1010, "nullShare"), (20, "rowCount")), 17):
        numbers = {"rowCount": float(rows), "nullShare": 0.5}
        save_numbers(store, day, numbers, failed=failed, scope=f"day=2026-05-{day}")

    with store.read() as tx:
        rows_ = quality(tx, ["shop@2"], NOON)["shop@2", "orders"].rows
    assert rows_ is not None
    assert [count.rows for count in rows_.counts] == [1000, 1010, 20]
    chart = row_count_chart(rows_, None)
    assert [row[1:] for row in chart["rows"]] == [("20", "outside"), ("1,010", ""), ("1,000", "")]
    assert chart["chart"].count('class="out"') == 1
    assert "1 of 3 counts unusual" in chart["summary"]


def test_row_counts_of_two_rules_are_not_mixed(store: Store) -> None:
    save(store, "day=2026-05-18", 1, row_count=Status.PASS)
    save_numbers(store, 2, {"rowCount": 500.0}, scope="day=2026-05-17")
    save_numbers(store, 3, {"rowCount": 510.0}, scope="day=2026-05-18")

    with store.read() as tx:
        rows_ = quality(tx, ["shop@2"], NOON)["shop@2", "orders"].rows
    assert rows_ is not None
    assert [count.rows for count in rows_.counts] == [500, 510]
