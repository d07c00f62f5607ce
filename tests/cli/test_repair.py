"""`dq repair` on a real lake and the local catalog: what is missing, gone, elsewhere, or no partition."""

from __future__ import annotations

import shutil

import pytest

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: visits
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
schema:
  - name: visits
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: hour, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 2}
      - {name: id, logicalType: integer, physicalType: bigint}
"""


@pytest.fixture
def lake(dq, folder):
    """A registered table over a lake; gives what lays a file into it."""
    (folder / "orders.odcs.yaml").write_text(CONTRACT)
    assert dq("register", ".", "--apply").code == 0

    def laid(*names):
        for name in names:
            (folder / "lake" / name).mkdir(parents=True, exist_ok=True)
            (folder / "lake" / name / "part-0.parquet").write_bytes(b"PAR1")

    return laid


def test_missing_partitions_are_planned_and_then_added_once(dq, lake):
    lake("day=2026-11-20/hour=1", "day=2026-11-20/hour=02")

    planned, checked = dq("repair", "."), dq("repair", ".", "--check")
    applied, again = dq("repair", ".", "--apply"), dq("repair", ".", "--check")

    assert (planned.code, checked.code, applied.code, again.code) == (0, 1, 0, 0)
    assert "visits.visits: 2 missing, 0 gone, 0 elsewhere" in planned.out
    assert "+ day=2026-11-20/hour=2" in planned.out
    assert "visits.visits: 2 added" in applied.out
    assert "visits.visits: 0 missing" in again.out


def test_a_partition_without_a_folder_is_told_and_kept(dq, folder, lake):
    lake("day=2026-11-20/hour=1", "day=2026-11-21/hour=1")
    dq("repair", ".", "--apply")
    shutil.rmtree(folder / "lake" / "day=2026-11-21")

    done = dq("repair", ".", "--apply", "--check", "--format", "json")

    assert done.code == 1
    assert [one["dangling"] for one in done.json] == [["lake/day=2026-11-21/hour=1"]]
    assert dq("repair", ".", "--check").code == 1


def test_what_is_no_partition_is_told_with_its_reason_and_not_added(dq, folder, lake):
    lake("day=soon/hour=1", "hour=1/day=2026-11-20", "day=2026-11-20/hour=__HIVE_DEFAULT_PARTITION__")
    lake("day=2026-11-22/hour=3", "day=2026-11-22/hour=03", "_tmp/day=2026-11-20", ".hidden/x")
    (folder / "lake" / "day=2026-11-23" / "hour=1").mkdir(parents=True)

    (found,) = dq("repair", ".", "--format", "json").json

    assert found["missing"] == ["lake/day=2026-11-22/hour=03"]
    reasons = {one["folder"].removeprefix("lake/"): one["reason"] for one in found["unrecognized"]}
    assert reasons == {
        "day=2026-11-20/hour=__HIVE_DEFAULT_PARTITION__": "its hour is NULL",
        "day=2026-11-22/hour=3": "it has the same values as lake/day=2026-11-22/hour=03",
        "day=2026-11-23/hour=1": "it contains no files",
        "day=soon/hour=1": "visits.visits: partition key day has type date, but the value is 'soon'.",
        "hour=1": "its name is not day=…",
    }


def test_an_escaped_value_is_read_as_spark_writes_it(dq, folder, lake):
    text = CONTRACT.replace("date, physicalType: date", "string, physicalType: string")
    (folder / "orders.odcs.yaml").write_text(text)
    dq("register", ".", "--apply", "--allow-destructive")
    lake("day=a%2Fb/hour=1")

    assert "+ day=a%2Fb/hour=1" in dq("repair", ".", "--apply").out
    assert dq("repair", ".", "--check").code == 0


def test_a_link_out_of_the_lake_is_not_followed(dq, folder, lake, tmp_path_factory):
    lake("day=2026-11-20/hour=1")
    outside = tmp_path_factory.mktemp("outside")
    (outside / "hour=1").mkdir()
    (outside / "hour=1" / "secret").write_text("x")
    (folder / "lake" / "day=2026-11-21").symlink_to(outside)

    done = dq("repair", ".", "--apply")

    assert done.code == 3
    assert "2026-11-21" not in done.out


def test_a_table_that_is_not_registered_is_one_contract_s_finding(dq, folder, lake):
    lake("day=2026-11-20/hour=1")
    (folder / "new.odcs.yaml").write_text(CONTRACT.replace("visits", "others"))

    done = dq("repair", ".", "--apply")

    assert done.code == 3
    assert "The catalog has no table others.others." in done.err
    assert "visits.visits: 1 added" in done.out
