"""dq propose: rules from data that hold on it, written into the contract, which else stays as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.judged import MISSED, judge
from fakes.shipped import at_hand
from jsonschema import Draft202012Validator

from dq.operations.output_schemas import json_schema

pytestmark = pytest.mark.spark

CONTRACT = """\
# Ours.
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: "${DQ_LAKE}", format: parquet}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}   # given by the shop
      - name: "what # it is"
        logicalType: string
        enum: [{value: a person wrote this}, {value: 'a # b'}, {value: c}]
      - &state
        name: state
        logicalType: string
        required: false
      - name: odd
        logicalType: string
      - {name: mail, logicalType: string}
      - {name: secret_of, classification: confidential, logicalType: integer, physicalType: bigint}
      - name: paid
        logicalType: timestamp
        physicalType: timestamp
      - name: never
        logicalType: string
      - name: place
        logicalType: object
        properties:
          - {name: lat, logicalType: number, physicalType: double}
      - {name: gone, logicalType: string}
      - name: day
        logicalType: date
        partitioned: true
        partitionKeyPosition: 1
"""
ODD = ["a # b", "two\nlines", "${HOME}", "\x1b[31mred"]
DAYS = 5
ROWS = 40


def _deliver(folder: Path, day: int) -> None:
    numbers = list(range(day * ROWS, (day + 1) * ROWS))
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "what # it is": ["a # b" if at % 2 else "c" for at in numbers],
            "state": ["open" if at % 3 else "paid" for at in numbers],
            "odd": [ODD[at % 4] for at in numbers],
            "mail": [f"canary{at}@example.com" for at in numbers],
            "secret_of": pa.array([4_711_000 + at for at in numbers], pa.int64()),
            "paid": pa.array([f"2026-05-0{day + 1}T10:00:00Z" for _ in numbers]).cast(
                pa.timestamp("us", "UTC")
            ),
            "never": pa.array([None] * ROWS, pa.string()),
            "place": pa.array([{"lat": 50.0 + at % 7} for at in numbers]),
        }
    )
    partition = folder / "lake" / f"day=2026-05-0{day + 1}"
    partition.mkdir(parents=True)
    pq.write_table(table, partition / "part-0.parquet")


@pytest.fixture
def orders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A contract that a person has begun, and five days of data."""
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    for day in range(DAYS):
        _deliver(folder, day)
    file = folder / "orders.odcs.yaml"
    file.write_text(CONTRACT)
    return file


def test_the_contract_gets_the_rules_that_its_data_keeps(orders, dq) -> None:
    ran = dq("propose", str(orders), "--output", str(orders))

    made = orders.read_text()
    assert ran.code == 0, ran
    assert "Wrote" in ran.out
    assert "5 of 5 partitions, 200 rows" in ran.err
    assert "never" in ran.err
    assert "mail, secret_of" in ran.err
    # What a person wrote stands as it stood, in its order.
    left = iter(made.splitlines())
    for line in CONTRACT.splitlines():
        assert any(other == line or other == _reopened(line) for other in left), line
    # Values of sensitive columns stand nowhere, and nothing breaks out of a comment.
    assert "canary" not in made + ran.out + ran.err
    assert "4711" not in made + ran.out + ran.err
    assert "\x1b" not in made + ran.out + ran.err
    assert "HOME" not in made
    assert str(orders.parent) not in made
    assert "format: email" in made
    assert "unique: true" in made
    assert "{minimum: -90, maximum: 90}  # smallest 50 in 5 of 5 partitions; largest 56" in made
    # The gate takes it, the data keeps it, and there is nothing more to say.
    assert dq("validate", str(orders)).code == 0
    (report,) = dq("check", str(orders), "--all", "--channel", "console", "--format", "json").json
    broken = [one for one in report["results"] if one["status"] not in ("pass", "skipped")]
    assert {one["clause"] for one in broken} == {"schema[0].properties[9]"}
    again = dq("propose", str(orders), "--format", "json")
    assert orders.read_text() == made
    assert [one["proposals"] for one in again.json] == [[]]


def _reopened(line: str) -> str:
    """A line in brackets as far as it goes before what is added."""
    return re.sub(r"\}(\s*#.*)?$", ",", line)


def test_only_the_last_partitions_are_looked_at(orders, dq) -> None:
    ran = dq("propose", str(orders), "--last", "2", "--format", "json")

    (found,) = ran.json
    assert list(Draft202012Validator(json_schema("propose")).iter_errors(ran.json)) == []
    assert (found["rows"], found["partitions"], found["present"]) == (80, 2, 5)
    assert orders.read_text() == CONTRACT
    written = {(one["column"], one["key"]) for one in found["proposals"]}
    assert {("id", "required"), ("mail", "format"), ("place.lat", "maximum")} <= written
    # Said by a person, or without evidence.
    assert written.isdisjoint({("state", "required"), ("what # it is", "enum"), ("odd", "enum")})
    assert {column for column, _ in written}.isdisjoint({"never", "gone", "day"})
    assert found["empty"] == ["never"]
    assert found["sensitive"] == ["mail", "secret_of"]


def test_what_cannot_be_written_to_is_refused(orders, dq) -> None:
    other = orders.with_name("other.odcs.yaml")
    other.write_text("mine")

    ran = dq("propose", str(orders), "--output", str(other))

    assert (ran.code, other.read_text()) == (2, "mine")
    assert "already exists" in ran.err


def test_data_that_is_not_there_is_said(orders, dq) -> None:
    orders.write_text(CONTRACT.replace("${DQ_LAKE}", "${DQ_LAKE}/nowhere"))

    ran = dq("propose", str(orders))

    assert ran.code == 3
    assert "nowhere" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.slow
def test_rules_of_a_packaged_data_set_find_the_faults_that_people_meet(tmp_path, spark) -> None:
    (planes, *_) = at_hand(tmp_path)

    judged = judge(planes, tmp_path / "planes")

    assert judged.clean, judged.told
    missed = [fault for fault, (verdict, _) in judged.verdicts.items() if verdict == MISSED]
    assert len(judged.verdicts) == 10
    assert len(missed) <= 1, json.dumps(judged.verdicts, indent=2)


def test_a_column_that_spark_does_not_read_is_named_and_the_others_are_learnt(dq, folder, monkeypatch):
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    (folder / "lake").mkdir()
    table = pa.table({"id": list(range(40)), "at": pa.array(range(40), pa.time64("us"))})
    pq.write_table(table, folder / "lake" / "a.parquet")
    (folder / "orders.odcs.yaml").write_text("""\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: "${DQ_LAKE}", format: parquet}]
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: at, logicalType: time}
""")

    told = dq("propose", "orders.odcs.yaml")
    done = dq("propose", "orders.odcs.yaml", "--format", "json")

    assert (told.code, done.code) == (0, 0), done.err
    (proposed,) = done.json
    Draft202012Validator(json_schema("propose")).validate(done.json)
    assert (proposed["rows"], proposed["unreadable"]) == (40, ["at"])
    assert {each["column"] for each in proposed["proposals"]} >= {"id"}
    assert "at" not in {each["column"] for each in proposed["proposals"]}
    assert "Not readable by Spark, no rules suggested: at." in told.err


FLIGHTS = """\
apiVersion: v3.2.0
kind: DataContract
id: flights
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: "${DQ_LAKE}", format: parquet}]
schema:
  - name: flights
    properties:
      - {name: id, logicalType: integer, physicalType: bigint}
      - {name: carrier, logicalType: string}
      - {name: returned, logicalType: string}
      - {name: line, logicalType: string}
      - {name: gate, logicalType: string}
      - {name: delay, logicalType: integer, physicalType: bigint}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
"""


def _fly(folder: Path, days: range, *, without_id: bool = False) -> None:
    for day in days:
        rows = range(day * 60, (day + 1) * 60)
        late = day >= 20
        table = pa.table(
            {
                "id": pa.array([None if without_id else at for at in rows], pa.int64()),
                "carrier": ["OO" if late and at % 60 == 7 else ("AA", "UA", "HA")[at % 3] for at in rows],
                "returned": ["N" if late and at % 2 else "AR"[at % 2] for at in rows],
                "line": ["O" if late and at % 5 == 0 else "F" for at in rows],
                "gate": [None if late and at % 60 == 9 else f"gate {at}" for at in rows],
                "delay": pa.array([1_301 if late and at % 60 == 3 else at % 50 for at in rows], pa.int64()),
            }
        )
        partition = folder / "lake" / f"day=2026-05-{day + 1:02}"
        partition.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, partition / "part-0.parquet")


def test_t36_rules_of_twenty_days_fail_on_the_next_ten_as_warnings_only(dq, folder, monkeypatch) -> None:
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    (folder / "orders.odcs.yaml").write_text(FLIGHTS)
    _fly(folder, range(20))
    proposed = dq("propose", "orders.odcs.yaml", "--output", "orders.odcs.yaml", "--format", "json")
    assert proposed.code == 0, proposed
    (found,) = proposed.json
    assert found["dropped"] == []
    again = dq("propose", "orders.odcs.yaml", "--format", "json")
    assert [one["proposals"] for one in again.json] == [[]]
    assert dq("validate", "orders.odcs.yaml").code == 0

    _fly(folder, range(20, 30))
    clean = dq("check", "orders.odcs.yaml", "--all", "--channel", "console", "--format", "json")
    _fly(folder, range(29, 30), without_id=True)
    faulty = dq("check", "orders.odcs.yaml", "--all", "--channel", "console", "--format", "json")

    names = ("id", "carrier", "returned", "line", "gate", "delay")
    failed = {
        (names[int(one["clause"].split("properties[")[1][0])], one["check"], one["severity"])
        for one in clean.json[0]["results"]
        if one["status"] not in ("pass", "skipped")
    }
    assert failed == {
        ("carrier", "invalid_values", "warning"),
        ("returned", "invalid_values", "warning"),
        ("gate", "null_values", "warning"),
        ("delay", "max", "warning"),
    }
    assert (clean.code, faulty.code) == (0, 1)


def test_the_default_terms_of_a_schedule_are_written_into_the_contract(folder: Path, dq) -> None:
    schedule = 'slaProperties:\n  - {property: frequency, value: 1, unit: d, schedule: "0 6 * * *"}\n'
    text = (folder / "orders.odcs.yaml").read_text().partition("slaProperties:")[0] + schedule
    # A session of other tests has another working folder.
    (folder / "orders.odcs.yaml").write_text(text.replace("path: lake", f"path: {folder}/lake"))
    (folder / "lake" / "day=2026-05-10").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "lake/day=2026-05-10/a.parquet")

    ran = dq("propose", "orders.odcs.yaml", "--output", "new.odcs.yaml")
    again = dq("propose", "new.odcs.yaml")

    assert (ran.code, again.code) == (0, 0), ran.err
    written = (folder / "new.odcs.yaml").read_text()
    assert 'value: {timezone: UTC, grace: "1h", expect: new_data}' in written
    assert "orders: wrote the default delivery terms of its schedule." in ran.err
    assert again.out.count("expect: new_data") == 1
    assert dq("explain", "new.odcs.yaml").out.count("dq watch, by the default delivery terms") == 0
    assert dq("validate", "new.odcs.yaml").code == 0
