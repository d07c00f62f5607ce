"""dq backtest: what rules would have said of past partitions, and that a check of each says the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from dq.operations.output_schemas import json_schema

pytestmark = pytest.mark.spark

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: '${DQ_LAKE}/orders', format: parquet}
schema:
  - name: orders
    quality:
      - {id: enough, metric: rowCount, mustBeGreaterThan: 2}
      - {id: falls, metric: rowCount, mustBeGreaterThan: -20, unit: percent, arguments: {period: 1, unit: d}}
      - {id: cheap, type: sql, query: 'SELECT COUNT(*) FROM {object} WHERE amount > 500', mustBe: 0}
    properties:
      - name: id
        logicalType: integer
        physicalType: bigint
        required: true
        unique: true
        primaryKey: true
        primaryKeyPosition: 1
      - name: amount
        logicalType: number
        physicalType: double
        logicalTypeOptions: {minimum: 0}
        quality:
          - {id: full, metric: nullValues, mustBeLessThan: 34, unit: percent, severity: warning}
      - name: state
        logicalType: string
        enum: [{value: open}, {value: paid}]
        quality:
          - {id: kinds, type: library, metric: duplicateValues, mustBeLessThan: 4}
      - {name: day, logicalType: date, partitioned: true, primaryKey: true, primaryKeyPosition: 2}
"""

GOOD = {"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0], "state": ["open", "paid", "paid"]}
DAYS = {
    "2026-05-01": GOOD,
    "2026-05-02": {**GOOD, "id": [1, 2, 2]},
    "2026-05-03": {**GOOD, "amount": [1.0, -2.0, 900.0]},
    "2026-05-04": {**GOOD, "state": ["open", "lost", "gone"]},
    "2026-05-05": {"id": [1], "amount": [1.0], "state": ["open"]},
    "2026-05-06": {**GOOD, "amount": [None, None, 1.0]},
    "2026-05-07": GOOD,
}
TYPES = {"id": pa.int64(), "amount": pa.float64(), "state": pa.string()}


def _deliver(folder: Path, name: str, columns: dict[str, list[object]]) -> Path:
    partition = folder / "lake" / "orders" / name
    partition.mkdir(parents=True)
    table = pa.table({column: pa.array(values, TYPES[column]) for column, values in columns.items()})
    pq.write_table(table, partition / "part-0.parquet")
    return partition / "part-0.parquet"


@pytest.fixture
def orders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A contract and seven days, of which the first and the last keep it."""
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    (folder / "orders.odcs.yaml").write_text(CONTRACT)
    for day, columns in DAYS.items():
        _deliver(folder, f"day={day}", columns)
    return folder


def _tested(dq: Callable, *options: str, code: int = 1) -> dict:
    ran = dq("backtest", "orders.odcs.yaml", "--format", "json", *options)
    assert ran.code == code, ran
    (found,) = json.loads(ran.out)
    assert list(Draft202012Validator(json_schema("backtest")).iter_errors([found])) == []
    return found


def _verdicts(found: dict) -> dict[tuple[str, str], str]:
    """By day and clause, how a back-test says that the rule would have ended."""
    said = {}
    for rule in found["rules"]:
        by_day = {one["day"]: "pass" for one in found["partitions"]}
        for word, status in (("failed", "fail"), ("untested", "error"), ("skipped", "skipped")):
            by_day |= {one["partition"]["day"]: status for one in rule[word]}
        said |= {(day, rule["clause"]): status for day, status in by_day.items()}
    return said


def _alone(dq: Callable, day: str) -> dict[str, str]:
    """By clause, how a check of this day alone ends."""
    of = ("--partition", f"day={day}", "--channel", "console", "--format", "json")
    (report,) = json.loads(dq("check", "orders.odcs.yaml", *of).out)
    return {one["clause"]: one["status"] for one in report["results"]}


def test_each_verdict_is_that_of_a_check_of_the_partition_alone(orders, dq) -> None:
    found = _tested(dq)
    said = _verdicts(found)
    for day in DAYS:
        here = _alone(dq, day)
        mine = {clause: status for (of, clause), status in said.items() if of == day}
        assert mine == {clause: here[clause] for clause in mine}
        # Whatever it leaves out, it names.
        assert set(here) - set(mine) == {one["clause"] for one in found["not_tested"]}
    assert {"pass", "fail"} <= set(said.values())
    # A key that holds the partition is within it, and a count is compared with that of the day before.
    assert {"row_count", "primary_key"} <= {rule["check"] for rule in found["rules"]}
    assert said["2026-05-05", "schema[0].quality[1]"] == "fail"
    failed = {(one["partition"]["day"], rule["clause"]) for rule in found["rules"] for one in rule["failed"]}
    assert {day for day, _ in failed} == set(DAYS) - {"2026-05-01", "2026-05-07"}


def test_a_reader_sees_which_rules_would_have_failed_and_where(orders, dq) -> None:
    ran = dq("backtest", "orders.odcs.yaml")
    assert ran.code == 1
    assert "orders/orders: 7 of 7 partitions, day=2026-05-01 to day=2026-05-07" in ran.out
    assert "state enum: would have failed in 1 of 7" in ran.out
    assert "day=2026-05-04: 2 of 3 rows" in ran.out
    assert "would never have failed" in ran.out
    assert not (orders / ".dq" / "state.db").exists()


def test_a_rule_alone_a_few_partitions_and_what_is_only_a_warning(orders, dq) -> None:
    found = _tested(dq, "--rule", "full", code=0)
    assert [rule["counts"]["fail"] for rule in found["rules"]] == [1]
    few = _tested(dq, "--last", "2", "--rule", "enough", code=0)
    assert [one["day"] for one in few["partitions"]] == ["2026-05-06", "2026-05-07"]
    assert few["present"] == 7
    many = _tested(dq, "--last", "5000", "--rule", "enough")
    assert len(many["partitions"]) == 7


def test_a_partition_that_cannot_be_read_is_no_pass_and_is_as_a_check_says(orders, dq) -> None:
    (orders / "lake/orders/day=2026-05-04/part-0.parquet").write_bytes(b"no Parquet at all")
    alone = {day: _alone(dq, day) for day in ("2026-05-04", "2026-05-05")}
    ran = dq("backtest", "orders.odcs.yaml", "--format", "json")
    (found,) = json.loads(ran.out)
    for (day, clause), status in _verdicts(found).items():
        if day in alone:
            assert status == alone[day].get(clause, "error"), (day, clause)
    assert any(one["partition"]["day"] == "2026-05-04" for rule in found["rules"] for one in rule["untested"])
    assert ran.code != 0
    ran = dq("backtest", "orders.odcs.yaml", "--rule", "enum")
    assert ran.code == 3
    assert "day=2026-05-04" in ran.out
    assert "Traceback" not in ran.err


def test_a_table_without_partitions_is_told_so_and_stops_no_other(orders, dq) -> None:
    flat = CONTRACT.replace("id: orders", "id: flat").replace("/orders'", "/flat'")
    flat = flat.replace(", partitioned: true", "")
    (orders / "flat.odcs.yaml").write_text(flat)
    (orders / "lake/flat").mkdir()
    pq.write_table(pa.table({"id": [1]}), orders / "lake/flat/part-0.parquet")
    ran = dq("backtest", "flat.odcs.yaml", "orders.odcs.yaml")
    assert ran.code == 3
    assert "it has no partitions" in ran.err
    assert "orders/orders: 7 of 7 partitions" in ran.out


def test_a_value_that_is_null_and_a_number_written_twice_are_one_partition_each(orders, dq) -> None:
    months = CONTRACT.replace("id: orders", "id: months").replace("/orders'", "/months'")
    months = months.replace(
        "name: day, logicalType: date", "name: month, logicalType: integer, physicalType: int"
    )
    (orders / "months.odcs.yaml").write_text(months)
    for name in ("month=2", "month=02", "month=10", "month=__HIVE_DEFAULT_PARTITION__"):
        _deliver(orders, f"../months/{name}", GOOD)
    ran = dq("backtest", "months.odcs.yaml", "--rule", "enough", "--format", "json")
    (found,) = json.loads(ran.out)
    assert found["partitions"][0]["month"] == "__HIVE_DEFAULT_PARTITION__"
    assert len(found["partitions"]) == 3
    assert ran.code == 0


LEARNS = """\
      - id: usual
        type: custom
        engine: dq
        implementation: {check: unusual, arguments: {of: [rowCount]}}
        severity: error
"""


def test_a_rule_that_compares_sees_the_partitions_before_it(orders, dq) -> None:
    (orders / "orders.odcs.yaml").write_text(CONTRACT.replace("    quality:\n", f"    quality:\n{LEARNS}", 1))
    found = _tested(dq, "--rule", "usual", code=0)
    (rule,) = found["rules"]
    assert rule["name"].endswith("/usual")
    learned = [one["observed"].partition("learning ")[2] for one in rule["skipped"]]
    assert learned == [f"({number} of 20 runs)" for number in range(7)]


def test_nothing_is_kept_and_nobody_is_told(orders, dq) -> None:
    before = (orders / "orders.odcs.yaml").read_bytes()
    _tested(dq, "--rule", "enum")
    assert (orders / "orders.odcs.yaml").read_bytes() == before
    assert not list(orders.rglob("*.db"))
