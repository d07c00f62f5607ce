"""A publisher of what is staged, killed anywhere: the next run ends with one of each.

The child is a fork with connections of its own to the JVM. It kills itself for real, just before or just
after its n-th effect: a commit of the store, or a commit of Iceberg. From when the notice is written, it is
the sending that is killed, which has its own tests.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from datetime import date

import pytest
from cli.test_publish_audit import CONTRACT, LOCAL, Desk, contract, places, stage
from fakes import lakehouse
from py4j.java_gateway import GatewayClient
from sqlalchemy import event

from dq.cli.main import run

pytestmark = [*lakehouse.MARKS, pytest.mark.slow]

TABLE = f"{lakehouse.CATALOG}.killed.orders"


def killed(spark, at, when, *words):
    """How a run ends that is killed `before` or `after` its effect number `at`: a signal, or an exit code."""
    child = os.fork()
    if child == 0:
        try:
            # The sockets are the parent's; without them, py4j makes new ones.
            spark._sc._gateway._gateway_client.deque.clear()
            _die(at, when)
            os._exit(run(["publish", "orders.odcs.yaml", *words]))
        finally:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _die(at, when):
    done = 0

    def counted():
        nonlocal done
        done += 1
        return done == at

    def now():
        os.kill(os.getpid(), signal.SIGKILL)

    def of_store(connection):
        if connection.get_execution_options().get("dq_write") and counted():
            if when == "after":
                connection.connection.dbapi_connection.execute("COMMIT")
            now()

    from sqlalchemy import Engine

    event.listen(Engine, "commit", of_store)
    send = GatewayClient.send_command

    def of_iceberg(self, command, *more, **options):
        # py4j's text of a call is `c`, the object, the method.
        last = command.startswith("c\n") and command.split("\n")[2] == "commit" and counted()
        if last and when == "before":
            now()
        answer = send(self, command, *more, **options)
        if last:
            now()
        return answer

    GatewayClient.send_command = of_iceberg


def counts(folder, day):
    """Receipts, revisions and notices of a day."""
    with closing(sqlite3.connect(folder / ".dq" / "store.db")) as store:
        one = f"%{day}%"
        return (
            tuple(
                store.execute(query, (one,)).fetchone()[0]
                for query in (
                    "SELECT count(*) FROM receipt WHERE partition LIKE ?",
                    "SELECT count(*) FROM consumer_notice WHERE body LIKE ?",
                )
            )
            + store.execute("SELECT count(*) FROM publication").fetchone()
        )


def moments():
    return ((when, at) for at in range(1, 30) for when in ("before", "after"))


def test_a_branch_is_published_once_however_its_publisher_ends(spark, tmp_path, monkeypatch, capfd):
    desk = Desk(tmp_path, monkeypatch, capfd)
    text = CONTRACT.replace("SERVER", "type: hive, host: meta, database: killed")
    terms = "    customProperties: [{property: dataset, vendor: dq, value: {format: iceberg}}]\n"
    text = text.replace("PROMISE", "required: true").replace("    properties:\n", f"{terms}    properties:\n")
    desk.write("orders.odcs.yaml", text)
    desk.dq("publish", "--pending")  # which makes the store
    spark.sql(f"CREATE TABLE {TABLE} (day date, id bigint, amount bigint) USING iceberg PARTITIONED BY (day)")
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    spark.createDataFrame([(date(2026, 1, 1), 0, 0)], "day date, id bigint, amount bigint").writeTo(
        TABLE
    ).append()
    spark.catalog.setCurrentCatalog(lakehouse.CATALOG)
    ended = []
    for number, (when, at) in enumerate(moments(), 1):
        day = date(2026, 2, 1).fromordinal(date(2026, 2, 1).toordinal() + number)
        spark.conf.set("spark.wap.branch", "audit")
        spark.createDataFrame([(day, number, 1)], "day date, id bigint, amount bigint").writeTo(
            TABLE
        ).append()
        spark.conf.unset("spark.wap.branch")
        words = ("--partition", f"day={day}", "--audit", "audit")

        ended.append(killed(spark, at, when, *words))
        if counts(desk.folder, day) == (1, 1, number):
            break
        ran = desk.dq("publish", "orders.odcs.yaml", *words)

        spark.sql(f"REFRESH TABLE {TABLE}")
        assert ran.code == 0, (when, at, ran.all)
        assert spark.table(TABLE).where(f"day = '{day}'").count() == 1, (when, at)
        assert counts(desk.folder, day) == (1, 1, number), (when, at)
    spark.catalog.setCurrentCatalog("spark_catalog")

    assert set(ended) == {-signal.SIGKILL}
    assert len(ended) == 6  # around what keeps the audit, what moves main, and receipt with its notice


def test_a_partition_is_published_once_however_its_publisher_ends(spark, tmp_path, monkeypatch, capfd):
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    contract(desk, LOCAL)
    (desk.folder / "lake").mkdir()
    assert desk.dq("register", "orders.odcs.yaml", "--apply").code == 0
    ended = []
    for number, (when, at) in enumerate(moments(), 1):
        day = f"day={date(2026, 2, 1).fromordinal(date(2026, 2, 1).toordinal() + number)}"
        staged = stage(desk, f"run-{number}", [number], day=day)
        words = ("--partition", day, "--audit", staged)

        ended.append(killed(spark, at, when, *words))
        if counts(desk.folder, day.removeprefix("day=")) == (1, 1, number):
            break
        ran = desk.dq("publish", "orders.odcs.yaml", *words)

        assert ran.code == 0, (when, at, ran.all)
        assert places(desk)[day] == f"{staged}/{day}", (when, at)
        assert counts(desk.folder, day.removeprefix("day=")) == (1, 1, number), (when, at)

    assert set(ended) == {-signal.SIGKILL}
    assert len(ended) == 8  # around what keeps the audit, begin, partition, and receipt with its notice
