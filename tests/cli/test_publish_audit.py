"""Write, audit, publish: readers of a catalog see what keeps the contract, and nothing else, ever."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.desk import Desk

from dq.dataquality import results
from dq.dataquality import results as earlier_runs
from dq.store.engine import open_store

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, SERVER}
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint, PROMISE}
      - name: amount
        logicalType: integer
        physicalType: bigint
        quality: [{metric: nullValues, mustBe: 0, severity: warning}]
"""
LOCAL = "type: local, path: lake, format: parquet"
DAY = "day=2026-05-11"


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    made = Desk(tmp_path, monkeypatch, capfd)
    # The session began in another folder.
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    return made


def contract(desk, server=LOCAL, promise="required: true"):
    text = CONTRACT.replace("SERVER", server.replace("path: ", f"path: {desk.folder}/"))
    desk.write("orders.odcs.yaml", text.replace("PROMISE", promise))


def stage(desk, run, ids, day=DAY, amounts=None):
    folder = desk.folder / "staged" / run / day
    folder.mkdir(parents=True)
    columns = {"id": pa.array(ids, pa.int64()), "amount": pa.array(amounts or ids, pa.int64())}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
    return str(desk.folder / "staged" / run)


def publish(desk, *more, day=DAY, **variables):
    return desk.dq("publish", "orders.odcs.yaml", "--partition", day, *more, **variables)


def places(desk):
    with sqlite3.connect(desk.folder / ".dq" / "store.db") as store:
        return dict(store.execute("SELECT partition_path, location FROM catalog_partition").fetchall())


def drop(desk, change="DELETE FROM catalog_partition"):
    """What somebody does to the catalog behind the back of the store."""
    with closing(sqlite3.connect(desk.folder / ".dq" / "store.db")) as store, store:
        assert store.execute(change).rowcount == 1


def audits(status):
    """What `dq status` shows of audits."""
    return [
        (
            one["scope"],
            one["verdict"],
            one["staged"],
            one["counts"],
            [each["message"] for each in one["failures"]],
        )
        for one in status.json["audits"]
    ]


def told(desk):
    """The events that consumers were told, by partition and revision."""
    file = desk.folder / ".dq" / "published.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    found = [json.loads(line)["data"] for line in lines]
    return [(one["partition"].get("day", ""), one["revision"]) for one in found]


@pytest.fixture
def registered(spark, desk):
    contract(desk)
    (desk.folder / "lake").mkdir()
    assert desk.dq("register", "orders.odcs.yaml", "--apply").code == 0
    return desk


@pytest.mark.spark
def test_what_keeps_the_contract_becomes_the_partition(registered):
    good = stage(registered, "run-1", [1, 2])

    ran = publish(registered, "--audit", good)

    assert ran.code == 0, ran.all
    assert places(registered) == {DAY: f"{good}/{DAY}"}
    assert (registered.folder / "staged" / "run-1" / DAY / "_SUCCESS").exists()
    assert told(registered) == [("2026-05-11", 1)]


@pytest.mark.spark
def test_what_breaks_it_stays_where_it_is_and_readers_see_what_was_there(registered):
    good, bad = stage(registered, "run-1", [1]), stage(registered, "run-2", [2, None])
    publish(registered, "--audit", good)

    ran = publish(registered, "--audit", bad)

    status, shown = registered.dq("status", "--format", "json"), registered.dq("status")
    assert ran.code == 1
    assert "orders.id: 1 of 2 rows are NULL" in ran.out
    assert "nothing published" in ran.err
    assert audits(status) == [
        (
            DAY,
            "failed",
            f"{bad}/{DAY}",
            {"pass": 4, "fail": 2},
            ["orders.id: 1 of 2 rows are NULL; allowed: no NULL"],
        )
    ]
    assert status.json["checks"] == []
    assert f"staged in {bad}/{DAY}\n      orders.id: 1 of 2 rows are NULL" in shown.out
    assert places(registered) == {DAY: f"{good}/{DAY}"}
    assert not (registered.folder / "staged" / "run-2" / DAY / "_SUCCESS").exists()
    assert told(registered) == [("2026-05-11", 1)]


@pytest.mark.spark
def test_a_day_that_agrees_with_another_server_is_published_though_an_earlier_one_does_not(registered):
    rule = (
        "    quality: [{type: custom, engine: dq, implementation: {check: agrees, arguments: "
        "{with: {server: copy}, key: [id], cycles: 3}}}]\n    properties:"
    )
    copy = f"- {{server: copy, type: local, path: {registered.folder}/copy, format: parquet}}"
    text = (registered.folder / "orders.odcs.yaml").read_text()
    text = text.replace("schema:", f"  {copy}\nschema:").replace("    properties:", rule)
    registered.write("orders.odcs.yaml", text)
    for day, ids in ((DAY, [1, 2]), ("day=2026-05-12", [3])):
        shutil.copytree(
            f"{stage(registered, f'copy-{day}', ids, day)}/{day}", registered.folder / "copy" / day
        )
    server = ("--server", "lake")
    check = ("check", "orders.odcs.yaml", *server, "--rule", "agrees", "--partition")

    assert publish(registered, *server, "--audit", stage(registered, "run-1", [1])).code == 1
    shutil.copytree(registered.folder / "staged" / "run-1" / DAY, registered.folder / "lake" / DAY)
    assert registered.dq(*check, DAY).code == 1
    good = stage(registered, "run-2", [3], "day=2026-05-12")
    ran = publish(registered, *server, "--audit", good, day="day=2026-05-12")

    assert ran.code == 0, ran.all
    assert places(registered) == {"day=2026-05-12": f"{good}/day=2026-05-12"}
    # Published data counts as checked by its audit.
    status = registered.dq("status", "--format", "json").json
    assert [(row["cycles"], row["disagreement"]) for row in status["agreements"]] == [(1, DAY)]


@pytest.mark.spark
def test_a_warning_keeps_nothing_back(registered):
    warned = stage(registered, "run-1", [1, 2], amounts=[1, None])

    assert publish(registered, "--audit", warned).code == 0
    assert places(registered) == {DAY: f"{warned}/{DAY}"}
    assert audits(registered.dq("status", "--format", "json"))[0][1] == "passed"
    assert "orders/orders: 1 scope passed" in registered.dq("status").out


@pytest.mark.spark
def test_a_second_good_run_is_a_revision_and_a_retry_is_nothing(registered):
    first, second = stage(registered, "run-1", [1]), stage(registered, "run-2", [2])

    codes = [publish(registered, "--audit", one).code for one in (first, first, second, second)]

    assert codes == [0, 0, 0, 0]
    assert places(registered) == {DAY: f"{second}/{DAY}"}
    assert told(registered) == [("2026-05-11", 1), ("2026-05-11", 2)]


@pytest.mark.spark
def test_a_late_retry_of_an_older_run_takes_nothing_back(registered):
    first, second = stage(registered, "run-1", [1]), stage(registered, "run-2", [2])
    publish(registered, "--audit", first)
    publish(registered, "--audit", second)

    ran = publish(registered, "--audit", first)

    assert ran.code == 3
    assert "was published before" in ran.err
    assert places(registered) == {DAY: f"{second}/{DAY}"}


@pytest.mark.spark
def test_a_key_that_another_partition_has_is_found(spark, desk):
    contract(desk, promise="primaryKey: true, primaryKeyPosition: 1")
    (desk.folder / "lake").mkdir()
    desk.dq("register", "orders.odcs.yaml", "--apply")
    publish(desk, "--audit", stage(desk, "run-1", [1, 2]))
    other = "day=2026-05-12"

    ran = publish(desk, "--audit", stage(desk, "run-2", [2], day=other), day=other)

    assert ran.code == 1
    assert "1 row repeats a key" in ran.out
    assert [*places(desk)] == [DAY]


@pytest.mark.spark
def test_the_same_key_in_the_partition_that_is_replaced_is_no_repetition(spark, desk):
    contract(desk, promise="primaryKey: true, primaryKeyPosition: 1")
    (desk.folder / "lake").mkdir()
    desk.dq("register", "orders.odcs.yaml", "--apply")
    publish(desk, "--audit", stage(desk, "run-1", [1, 2]))

    assert publish(desk, "--audit", stage(desk, "run-2", [1, 2, 3])).code == 0


@pytest.mark.parametrize(
    ("staged", "code", "said"),
    [
        ("lake", 2, "is the table's own folder"),
        ("nowhere", 3, "Nothing was staged"),
        (f"staged/{DAY}", 3, "the folder that contains the partition's folder"),
        ("lake/staged", 2, "is visible in it"),
        ("", 2, "--audit is empty"),
        ("/etc", 2, "lake_roots"),
        ("empty", 3, "contains no files"),
    ],
)
def test_what_cannot_be_a_staged_folder_is_refused(desk, staged, code, said):
    contract(desk)
    (desk.folder / "lake").mkdir()
    (desk.folder / "empty" / DAY).mkdir(parents=True)
    (desk.folder / "empty" / DAY / "_temporary").touch()
    desk.dq("register", "orders.odcs.yaml", "--apply")

    ran = publish(desk, "--audit", staged)

    assert (ran.code, said in ran.err) == (code, True), ran.err


def test_delta_is_refused_with_the_reason(desk):
    contract(desk, LOCAL.replace("parquet", "delta"))

    ran = publish(desk, "--audit", "staged")

    assert ran.code == 2
    assert "Delta cannot stage" in ran.err


@pytest.mark.spark
def test_a_published_folder_that_is_written_anew_is_audited_again_and_told(registered):
    good = stage(registered, "run-1", [1])
    publish(registered, "--audit", good)
    rewritten = pa.table({"id": pa.array([None], pa.int64()), "amount": pa.array([1], pa.int64())})
    pq.write_table(rewritten, registered.folder / "staged" / "run-1" / DAY / "part-0.parquet")

    ran = publish(registered, "--audit", good)

    assert ran.code == 1
    assert "already visible to readers" in ran.err
    assert told(registered) == [("2026-05-11", 1)]


@pytest.mark.spark
def test_the_word_of_a_scheduler_does_not_hide_another_folder(registered):
    first, second = stage(registered, "run-1", [1]), stage(registered, "run-2", [2])

    for one in (first, second):
        assert publish(registered, "--audit", one, "--run", "nightly").code == 0

    assert places(registered) == {DAY: f"{second}/{DAY}"}
    assert told(registered) == [("2026-05-11", 1), ("2026-05-11", 2)]


def linked_root(desk):
    (desk.folder / "staged").mkdir()
    (desk.folder / "staged" / "run-1").symlink_to(desk.folder / "lake")


def linked_way(desk):
    (desk.folder / "disk" / "lake").mkdir(parents=True)
    (desk.folder / "staged").symlink_to(desk.folder / "disk")
    (desk.folder / "lake").rmdir()
    (desk.folder / "lake").symlink_to(desk.folder / "disk" / "run-1")
    stage(desk, "run-1", [1])


def linked_partition(desk):
    stage(desk, "elsewhere", [1])
    (desk.folder / "staged" / "run-1").mkdir()
    (desk.folder / "staged" / "run-1" / DAY).symlink_to(desk.folder / "staged" / "elsewhere" / DAY)


def linked_file(desk):
    stage(desk, "elsewhere", [1])
    (desk.folder / "staged" / "run-1" / DAY).mkdir(parents=True)
    file = desk.folder / "staged" / "elsewhere" / DAY / "part-0.parquet"
    (desk.folder / "staged" / "run-1" / DAY / "part-0.parquet").symlink_to(file)


def linked_folder_inside(desk):
    stage(desk, "elsewhere", [1])
    stage(desk, "run-1", [1])
    (desk.folder / "staged" / "run-1" / DAY / "more").symlink_to(desk.folder / "staged" / "elsewhere" / DAY)


def pipe(desk):
    stage(desk, "run-1", [1])
    os.mkfifo(desk.folder / "staged" / "run-1" / DAY / "part-1.parquet")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (linked_root, "is the table's own folder"),
        (linked_way, "is the table's own folder"),
        (linked_partition, f"{DAY} is a link"),
        (linked_file, "part-0.parquet is a link"),
        (linked_folder_inside, "more is a link"),
        (pipe, "part-1.parquet is not a regular file"),
    ],
)
def test_no_link_leads_from_what_is_staged_to_what_nobody_audits(desk, made, said):
    contract(desk)
    (desk.folder / "lake").mkdir()
    desk.dq("register", "orders.odcs.yaml", "--apply")
    made(desk)

    ran = publish(desk, "--audit", "staged/run-1")

    assert (ran.code, said in ran.err) == (2, True), ran.all
    assert places(desk) == {}
    assert told(desk) == []


@pytest.mark.spark
@pytest.mark.parametrize("name", ["run-[1]", "run-{1,2}", "run-*"])
def test_what_is_checked_is_the_folder_itself_and_not_what_it_would_match(registered, name):
    stage(registered, "run-1", [1])
    bad = stage(registered, name, [None])

    ran = publish(registered, "--audit", bad)

    assert (ran.code, "is a pattern" in ran.err) == (2, True), ran.all
    assert places(registered) == {}


@pytest.mark.spark
@pytest.mark.parametrize("audited", [True, False])
def test_a_partition_that_was_dropped_is_put_back_where_it_was_audited(registered, audited):
    good = stage(registered, "run-1", [1, 2])
    publish(registered, "--audit", good)
    # What lies below the table is older, and nobody audited it.
    (registered.folder / "lake" / DAY).mkdir()
    drop(registered)

    ran = publish(registered, *(("--audit", good) if audited else ("--rows", "2")))

    assert ran.code == 0, ran.all
    assert "fixed: the partition was not in the catalog" in ran.out
    assert places(registered) == {DAY: f"{good}/{DAY}"}
    assert told(registered) == [("2026-05-11", 1)]


@pytest.mark.spark
def test_partition_marker_and_receipt_of_an_audited_delivery_are_put_back_together(registered):
    good = stage(registered, "run-1", [1, 2])
    publish(registered, "--audit", good)
    (registered.folder / "staged" / "run-1" / DAY / "_SUCCESS").unlink()
    drop(registered)
    drop(registered, "DELETE FROM receipt")

    ran = publish(registered, "--audit", good)

    assert ran.out == (
        f"orders {DAY}: partition, marker, receipt.\n"
        "  fixed: the partition was not in the catalog.\n"
        "  fixed: _SUCCESS was not there.\n"
        "  fixed: the receipt was not in the store.\n"
    )
    assert told(registered) == [("2026-05-11", 1)]


@pytest.mark.spark
def test_a_partition_that_somebody_moved_is_put_back_where_it_was_audited(registered):
    good = stage(registered, "run-1", [1, 2])
    publish(registered, "--audit", good)
    drop(registered, "UPDATE catalog_partition SET location = 'lake/elsewhere'")

    ran = publish(registered, "--audit", good)

    assert ran.code == 0, ran.all
    assert "fixed: the catalog had the partition at lake/elsewhere" in ran.out
    assert places(registered) == {DAY: f"{good}/{DAY}"}


@pytest.mark.spark
def test_a_dropped_partition_is_not_put_back_to_an_older_run(registered):
    first, second = stage(registered, "run-1", [1]), stage(registered, "run-2", [2])
    publish(registered, "--audit", first)
    publish(registered, "--audit", second)
    drop(registered)

    late, newest = publish(registered, "--audit", first), publish(registered, "--audit", second)

    assert (late.code, newest.code) == (3, 0)
    assert f"{second}/{DAY} was published after it" in late.err
    assert places(registered) == {DAY: f"{second}/{DAY}"}


@pytest.mark.spark
def test_an_audited_folder_that_is_gone_is_told_until_it_is_delivered_anew(registered):
    good = stage(registered, "run-1", [1, 2])
    publish(registered, "--audit", good)
    shutil.rmtree(good)
    (registered.folder / "lake" / DAY).mkdir()

    lost = publish(registered)
    again = publish(registered, "--redelivery", "--rows", "2")

    assert (lost.code, again.code) == (3, 0)
    assert f"{good}/{DAY}, where this delivery was published, no longer exists" in lost.err
    assert "revision 2 (2 rows, as before)" in again.out
    assert places(registered) == {DAY: f"{registered.folder}/lake/{DAY}"}


@pytest.mark.spark
def test_repair_adds_a_dropped_partition_where_it_was_audited(registered):
    good = stage(registered, "run-1", [1, 2])
    publish(registered, "--audit", good)
    (registered.folder / "lake" / DAY).mkdir()
    (registered.folder / "lake" / DAY / "part-0.parquet").write_bytes(b"older, and audited by nobody")
    drop(registered)

    ran = registered.dq("repair", "orders.odcs.yaml", "--apply")

    assert ran.code == 0, ran.all
    assert f"+ {DAY}, published at {good}/{DAY}" in ran.out
    assert places(registered) == {DAY: f"{good}/{DAY}"}


@pytest.mark.spark
def test_consumers_hear_how_many_rows_were_audited(registered):
    publish(registered, "--audit", stage(registered, "run-1", [1]))
    ran = publish(registered, "--audit", stage(registered, "run-2", [1, 2]))

    file = registered.folder / ".dq" / "published.jsonl"
    assert [json.loads(line)["data"]["rows"] for line in file.read_text().splitlines()] == [1, 2]
    assert "revision 2 (1 row, now 2)" in ran.out


@pytest.mark.spark
def test_another_number_of_rows_than_was_audited_is_refused(registered):
    ran = publish(registered, "--audit", stage(registered, "run-1", [1, 2]), "--rows", "3")

    assert ran.code == 1
    assert "orders: day=2026-05-11 has 2 rows, but --rows says 3" in ran.out
    assert places(registered) == {}


@pytest.mark.spark
def test_rows_and_groups_are_compared_with_staged_data_by_each_run(registered):
    staged = stage(registered, "run-1", [1, 2], amounts=[7, 8])
    other = publish(registered, "--audit", staged, "--rows-by", "amount:7=2")
    good = publish(registered, "--audit", staged, "--rows-by", "amount:7=1,8=1")
    again = publish(registered, "--audit", staged, "--rows", "3")
    same = publish(registered, "--audit", staged, "--rows", "2")

    assert (other.code, good.code, again.code, same.code) == (1, 0, 1, 0)
    assert (
        "has other groups than --rows: amount 7: 1 row, 2 published; amount 8: 1 row, 0 published"
        in other.out
    )
    assert "has 2 rows, but --rows says 3" in again.out
    assert "is already visible to readers" in again.err
    assert "nothing to do, published before" in same.out


@pytest.mark.spark
def test_what_an_audit_let_through_is_what_the_next_is_compared_with(spark, desk):
    contract(desk)
    text = (desk.folder / "orders.odcs.yaml").read_text()
    rule = "    quality: [{metric: rowCount, mustBeLessThan: 5}]\n    properties:\n"
    desk.write("orders.odcs.yaml", text.replace("    properties:\n", rule))
    (desk.folder / "lake").mkdir()
    desk.dq("register", "orders.odcs.yaml", "--apply")
    days = ["day=2026-05-09", "day=2026-05-10", "day=2026-05-11"]
    for number, (day, rows) in enumerate(zip(days, (3, 9, 4), strict=True)):
        publish(desk, "--audit", stage(desk, f"run-{number}", [*range(rows)], day=day), day=day)

    with closing(open_store(f"sqlite:///{desk.folder / '.dq' / 'store.db'}")) as store, store.read() as tx:
        counted = earlier_runs.earlier_counts(tx, "orders", "orders")
        standing = results.latest(tx, ["orders"]).get(("orders", "orders"), [])
        tested = results.fully_checked_scopes(tx, "orders", "orders")

    assert [(one.partition, one.rows) for one in counted] == [
        ((("day", "2026-05-11"),), 4),
        ((("day", "2026-05-09"),), 3),
    ]
    assert (standing, tested) == ([], set())


@pytest.mark.parametrize("words", [(), ("--audit", "hdfs://namenode:8020/staged")])
def test_without_its_client_hdfs_is_refused_with_what_it_needs(desk, words):
    contract(desk, "type: s3, location: 'hdfs://namenode:8020/lake', format: parquet")
    roots = {"DQ_LAKE_ROOTS": "hdfs://namenode:8020/"}
    # On a machine with Hadoop, neither its libraries nor a name node are there for this test.
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        roots[name] = str(desk.folder)
    assert desk.dq("register", "orders.odcs.yaml", "--apply", **roots).code == 0

    ran = publish(desk, *words, **roots)

    assert ran.code == 3
    assert "HDFS needs a JVM and Hadoop's native client" in ran.err
    assert told(desk) == []
