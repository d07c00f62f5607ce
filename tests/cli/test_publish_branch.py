"""A branch of an Iceberg table becomes main when its snapshot keeps the contract, at once or not at all."""

from __future__ import annotations

from datetime import date

import pytest
from cli.test_publish_audit import CONTRACT, Desk, told
from fakes import lakehouse

pytestmark = lakehouse.MARKS

TABLE = f"{lakehouse.CATALOG}.sales.orders"
DAY = "day=2026-05-11"


@pytest.fixture
def desk(spark, tmp_path, monkeypatch, capfd):
    """A table of three columns by day, with one row, and its contract."""
    made = Desk(tmp_path, monkeypatch, capfd)
    server = "type: hive, host: meta, database: sales"
    text = CONTRACT.replace("SERVER", server).replace("PROMISE", "required: true")
    terms = "    customProperties: [{property: dataset, vendor: dq, value: {format: iceberg}}]\n"
    made.write("orders.odcs.yaml", text.replace("    properties:\n", f"{terms}    properties:\n"))
    # A contract names a database and a table; which catalog has them is for the session to say.
    spark.catalog.setCurrentCatalog(lakehouse.CATALOG)
    spark.sql(f"DROP TABLE IF EXISTS {TABLE} PURGE")
    spark.sql(
        f"CREATE TABLE {TABLE} (day date, id bigint, amount bigint) USING iceberg PARTITIONED BY (day)"
        " TBLPROPERTIES ('write.wap.enabled'='true')"
    )
    write(spark, (1,), day="2026-05-10")
    yield made
    spark.catalog.setCurrentCatalog("spark_catalog")


def write(spark, ids, day="2026-05-11", branch=None):
    if branch:
        spark.conf.set("spark.wap.branch", branch)
    rows = [(date.fromisoformat(day), one, 1) for one in ids]
    frame = spark.createDataFrame(rows, "day date, id bigint, amount bigint")
    try:
        frame.writeTo(TABLE).append()
    finally:
        spark.conf.unset("spark.wap.branch")


def read(spark):
    spark.sql(f"REFRESH TABLE {TABLE}")
    return sorted((row.id for row in spark.table(TABLE).collect()), key=str)


def publish(desk, *more):
    return desk.dq("publish", "orders.odcs.yaml", "--audit", "audit", *(more or ("--partition", DAY)))


def test_a_good_branch_becomes_main(spark, desk):
    write(spark, (2, 3), branch="audit")
    before = read(spark)

    ran = publish(desk)

    assert ran.code == 0, ran.all
    assert (before, read(spark)) == ([1], [1, 2, 3])
    assert told(desk) == [("2026-05-11", 1)]


def test_a_bad_branch_is_left_as_it_is(spark, desk):
    write(spark, (2, None), branch="audit")

    ran = publish(desk)

    assert ran.code == 1
    assert "1 of 2 rows are NULL" in ran.out
    assert read(spark) == [1]
    audit, head = (
        desk.dq("status", "--format", "json").json["audits"][0],
        lakehouse.loaded(spark, TABLE).snapshot("audit").snapshotId(),
    )
    assert (audit["verdict"], audit["scope"]) == ("failed", DAY)
    assert audit["staged"] == f"branch audit, snapshot {head}"
    assert spark.read.option("branch", "audit").table(TABLE).count() == 3
    assert told(desk) == []


def test_a_branch_with_another_number_of_rows_does_not_become_main(spark, desk):
    write(spark, (2, 3), branch="audit")

    ran = publish(desk, "--partition", DAY, "--rows", "3")

    assert ran.code == 1
    assert f"orders: {DAY} has 2 rows, but --rows says 3" in ran.out
    assert (read(spark), told(desk)) == ([1], [])


def test_a_retry_changes_nothing_and_the_next_write_of_the_branch_is_another_delivery(spark, desk):
    write(spark, (2,), branch="audit")
    publish(desk)
    again = publish(desk)
    write(spark, (3,), branch="audit")
    publish(desk)

    assert "nothing to do, published before" in again.out
    assert read(spark) == [1, 2, 3]
    assert told(desk) == [("2026-05-11", 1), ("2026-05-11", 2)]


def test_a_main_that_was_rolled_back_is_mended_and_nobody_hears_twice(spark, desk):
    before = lakehouse.loaded(spark, TABLE).currentSnapshot().snapshotId()
    write(spark, (2,), branch="audit")
    publish(desk)
    lakehouse.loaded(spark, TABLE).manageSnapshots().rollbackTo(before).commit()

    ran = publish(desk)

    assert ran.out.endswith(f"orders {DAY}: branch.\n  fixed: main no longer had the data of audit.\n"), (
        ran.all
    )
    assert read(spark) == [1, 2]
    assert told(desk) == [("2026-05-11", 1)]


def test_a_branch_that_writes_other_partitions_too_is_refused(spark, desk):
    write(spark, (2,), branch="audit")
    write(spark, (None,), day="2026-05-12", branch="audit")

    ran = publish(desk)

    assert ran.code == 3
    assert "changes day=2026-05-11, day=2026-05-12" in ran.err
    assert read(spark) == [1]


def test_of_a_contract_without_partitions_all_of_the_table_is_checked(spark, desk):
    text = (desk.folder / "orders.odcs.yaml").read_text()
    desk.write("orders.odcs.yaml", text.replace(", partitioned: true, partitionKeyPosition: 1", ""))
    write(spark, (2,), branch="audit")
    write(spark, (None,), day="2026-05-12", branch="audit")

    ran = publish(desk, "--cycle", "2026-05-12T06:00:00Z")

    assert ran.code == 1
    assert read(spark) == [1]


def test_a_branch_that_main_has_left_behind_is_refused(spark, desk):
    write(spark, (2,), branch="audit")
    write(spark, (9,))

    ran = publish(desk)

    assert ran.code == 3
    assert "main has changed since" in ran.err
    assert read(spark) == [1, 9]


@pytest.mark.parametrize("branch", ["main", "nowhere", "x; DROP"])
def test_only_a_branch_that_is_there_is_published(spark, desk, branch):
    ran = desk.dq("publish", "orders.odcs.yaml", "--audit", branch, "--partition", DAY)

    assert ran.code == 2
    assert read(spark) == [1]


def test_what_is_written_to_the_branch_after_the_audit_is_not_published(spark, desk):
    from dq.registry.publish_audit import IcebergTable

    write(spark, (2,), branch="audit")
    staged = IcebergTable(spark, TABLE).staged("audit")
    write(spark, (None,), branch="audit")

    staged.table.fast_forward(staged)

    assert read(spark) == [1, 2]
    assert sorted(row.name for row in spark.table(f"{TABLE}.refs").collect()) == ["audit", "main"]


def test_a_table_may_be_named_by_its_folder(spark, desk):
    place = str(lakehouse.loaded(spark, TABLE).location())
    server = f"type: local, path: {place}, format: iceberg"
    text = CONTRACT.replace("SERVER", server).replace("PROMISE", "required: true")
    desk.write("orders.odcs.yaml", text)
    write(spark, (2,), branch="audit")

    ran = desk.dq("publish", "orders.odcs.yaml", "--audit", "audit", "--partition", DAY, DQ_LAKE_ROOTS=place)

    assert ran.code == 0, ran.all
    assert read(spark) == [1, 2]


def test_what_became_main_without_an_audit_is_judged_all_the_same(spark, desk):
    write(spark, (2, None))
    loaded = lakehouse.loaded(spark, TABLE)
    loaded.manageSnapshots().createBranch("audit", loaded.currentSnapshot().snapshotId()).commit()

    ran = publish(desk)

    assert ran.code == 1
    assert "already visible to readers" in ran.err
    assert told(desk) == []
