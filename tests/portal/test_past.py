"""Earlier results of rules: which runs count, up to which instant, and how they are aligned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dq.contracts.metrics import UNUSUAL
from dq.contracts.model import clause_namer
from dq.contracts.outcome import CheckResult, GroupResult, Location, Severity, Status
from dq.contracts.yaml.parse import parse
from dq.dataquality import results
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import clause_coverage, expected_clauses
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.portal.formatting import value_sparkline
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


def unusual_line(store: Store, *runs: dict[str, float]) -> str | None:
    """The line of a rule `unusual` after these runs; each has the numbers that it measured."""
    for hours, numbers in enumerate(runs):
        groups = tuple(GroupResult((name,), Status.PASS, "", number) for name, number in numbers.items())
        row = CheckResult(
            UNUSUAL, "schema[0].quality[0]", "orders", "", Status.PASS, Severity.WARNING, "", "", "",
            Location("shop.odcs.yaml", 1, 1), value=0.25, groups=groups, group_columns=("number",),
            fingerprint="rule",
        )  # fmt: skip
        with store.write() as tx:
            results.save_run(
                tx, contract="shop@2", object="orders", version="2.0.0", scope="table", results=[row], jobs=1,
                now=NOON + timedelta(hours=hours),
            )  # fmt: skip
    with store.read() as tx:
        line = value_sparkline(quality(tx, ["shop@2"], NOON)["shop@2", "orders"].past)
    return str(line) if line is not None else None


def test_the_line_of_an_unusual_number_has_what_was_measured_not_its_probability(store: Store) -> None:
    line = unusual_line(store, {"rowCount": 1200.0}, {}, {"rowCount": 900.0})

    assert line is not None
    assert "Measured 2 times: 900 to 1,200, 900 at last" in line
    assert "0.25" not in line


def test_several_unusual_numbers_of_a_rule_share_no_line(store: Store) -> None:
    both = {"rowCount": 1200.0, "mean": 3.5}

    assert unusual_line(store, both, both, {"mean": 3.5}) is None
