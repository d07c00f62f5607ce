"""T10: every command sees a partition that was audited and published where it was staged."""

from __future__ import annotations

import pytest
from fakes import delivered
from fakes.delivered import write
from fakes.desk import Desk

MORE = """\
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
slaProperties:
  - {id: daily, property: frequency, value: 1, unit: d, schedule: "0 6 * * *", element: orders}
"""
BELOW, BESIDE = "day=2026-05-10", "day=2026-05-11"


@pytest.fixture
def desk(spark, tmp_path, monkeypatch, capfd):
    """Partition 05-10 lies below the table, 05-11 was audited and published beside it."""
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    delivered.contract(desk, more=MORE, replaced=("required: true", "unique: true"))
    write(tmp_path / "lake" / BELOW, [1, 2])
    write(tmp_path / "staged" / "run-1" / BESIDE, [3, 4, 5])
    delivered.register(desk)
    delivered.publish(desk, BELOW)
    delivered.publish(desk, BESIDE, "--audit", str(tmp_path / "staged/run-1"))
    return desk


def check(desk, *options):
    return desk.dq("check", "orders.odcs.yaml", "--format", "json", *options)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "rows"),
    [(["--partition", BESIDE], 3), (["--partition", BELOW], 2), (["--all"], 5), (["--all", "--scan"], 5)],
    ids=["its partition", "another", "all", "scan"],
)
def test_check_counts_its_rows(desk, options, rows):
    ran = check(desk, *options)

    assert (ran.code, ran.json[0]["rows"]) == (0, rows), ran.all


@pytest.mark.spark
def test_check_finds_a_key_that_it_repeats(desk):
    write(desk.folder / "lake" / BELOW, [1, 3])

    ran = check(desk, "--all")

    assert ran.code == 1
    assert [one["check"] for one in ran.json[0]["results"] if one["status"] == "fail"] == ["unique"]


@pytest.mark.spark
def test_the_published_folder_counts_and_not_what_lies_below_the_table(desk):
    write(desk.folder / "lake" / BESIDE, [3, 4, 5, 6, 7, 8])

    assert check(desk, "--partition", BESIDE).json[0]["rows"] == 3
    assert check(desk, "--all").json[0]["rows"] == 5


@pytest.mark.spark
def test_a_redelivery_below_the_table_counts_from_then_on(desk):
    write(desk.folder / "lake" / BESIDE, [3, 4, 5, 6])
    desk.dq("publish", "orders.odcs.yaml", "--partition", BESIDE, "--redelivery")

    assert check(desk, "--partition", BESIDE).json[0]["rows"] == 4


@pytest.mark.spark
def test_tables_count_its_files_and_rows(desk):
    (table,) = desk.dq("tables", "orders.odcs.yaml", "--format", "json").json

    assert (table["files"], table["rows"], table["problem"]) == (2, 5, None)


@pytest.mark.spark
def test_backtest_tests_its_partition(desk):
    ran = desk.dq("backtest", "orders.odcs.yaml", "--format", "json")

    assert ran.json[0]["present"] == 2, ran.all


@pytest.mark.spark
def test_propose_learns_from_its_rows(desk):
    ran = desk.dq("propose", "orders.odcs.yaml", "--format", "json")

    assert (ran.json[0]["rows"], ran.json[0]["present"]) == (5, 2), ran.all


@pytest.mark.spark
def test_a_published_folder_that_is_gone_is_no_empty_partition(desk):
    import shutil

    shutil.rmtree(desk.folder / "staged")

    assert check(desk, "--all").code == 3
    (table,) = desk.dq("tables", "orders.odcs.yaml", "--format", "json").json
    assert "does not exist" in table["problem"]


@pytest.mark.spark
def test_what_was_published_long_ago_is_still_seen(desk):
    pruned = desk.dq("store", "prune", "--as-of", "2031-01-01T00:00:00Z")

    assert pruned.code == 0, pruned.all
    assert check(desk, "--all").json[0]["rows"] == 5


@pytest.mark.spark
def test_watch_sees_its_marker(desk):
    terms = 'partition: {day: "{due - 1d:%F}"}, evidence: [marker]'
    promise = f"element: orders, customProperties: [{{property: delivery, vendor: dq, value: {{{terms}}}}}]}}"
    text = (desk.folder / "orders.odcs.yaml").read_text()
    desk.write("orders.odcs.yaml", text.replace("element: orders}", promise))
    desk.dq("watch", "--as-of", "2026-05-11T12:00:00Z")

    ran = desk.dq("watch", "--as-of", "2026-05-12T07:00:00Z", "--format", "json")

    # Its own clock is ahead of this test's, so that the time it was first seen counts.
    assert [(one["partitions"], one["after"]) for one in ran.json["changes"]] == [([BESIDE], "late")]


@pytest.mark.spark
def test_python_reads_its_rows(desk):
    import dq

    assert dq.check("orders.odcs.yaml", folder=desk.folder).rows == 5


@pytest.mark.spark
def test_a_relationship_finds_its_keys(desk):
    desk.write(
        "lines.odcs.yaml",
        f"""\
apiVersion: v3.2.0
kind: DataContract
id: lines
version: 1.0.0
status: active
servers: [{{server: lake, type: local, path: {desk.folder}/lines, format: parquet}}]
schema:
  - name: lines
    properties:
      - name: id
        logicalType: integer
        physicalType: bigint
        relationships: [{{type: foreignKey, to: 'orders.odcs.yaml#orders.id'}}]
""",
    )
    write(desk.folder / "lines", [1, 5])

    ran = desk.dq("check", ".", "--object", "lines", "--all", "--format", "json")

    assert [one["status"] for one in ran.json[0]["results"] if one["check"] == "relationship"] == ["pass"], (
        ran.all
    )
