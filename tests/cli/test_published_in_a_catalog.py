"""T10: with a catalog, too, every command sees a partition that was published where it was staged."""

from __future__ import annotations

import html
import re
import shutil
from dataclasses import dataclass

import pytest
from fakes import delivered
from fakes.desk import Desk, Ran

pytestmark = pytest.mark.spark

BELOW, BESIDE = "day=2026-05-10", "day=2026-05-11"
PROMISES = """\
    quality: [{metric: rowCount, mustBeGreaterThan: 0}]
slaProperties:
  - {id: daily, property: frequency, value: 1, unit: d, schedule: "0 6 * * *", element: orders,
     customProperties: [{property: delivery, vendor: dq, value: {partition: {day: "{due - 1d:%F}"}}}]}
"""
# The catalog, and the server: a path is read by its files, and the table of a catalog by its name. On EMR the
# session's metastore is Glue.
SERVERS = {
    "the local catalog": ("local", delivered.SERVER),
    "a metastore, read by path": ("hive", delivered.SERVER),
    "a metastore, read by name": (
        "hive", "type: glue, account: '123456789012', database: NAME, location: FOLDER/lake",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Published:
    """A desk whose partition 05-10 lies below the table; 05-11 was audited and published beside it."""

    desk: Desk
    catalog: str
    table: str

    def dq(self, words: str) -> Ran:
        return self.desk.dq(*words.format(catalog=self.catalog, table=self.table).split())

    def repair(self, *options: str) -> Ran:
        return self.dq("repair orders.odcs.yaml --catalog {catalog} " + " ".join(options))


def published(desk, spark, catalog, server):
    database = "".join(letter for letter in desk.folder.name.lower() if letter.isalnum())
    delivered.contract(
        desk,
        server=server.replace("NAME", database),
        more=PROMISES,
        replaced=("status: active\n", f"status: active\ndomain: {database}\n"),
    )
    delivered.register(desk, "--catalog", catalog)
    delivered.write(desk.folder / "lake" / BELOW, [1, 2])
    delivered.write(desk.folder / "staged" / "run-1" / BESIDE, [3, 4, 5])
    delivered.publish(desk, BELOW, "--catalog", catalog, "--as-of", "2026-05-11T05:00:00Z")
    staged = ("--audit", str(desk.folder / "staged" / "run-1"))
    delivered.publish(desk, BESIDE, *staged, "--catalog", catalog, "--as-of", "2026-05-12T05:00:00Z")
    return Published(desk, catalog, f"{database}.orders")


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    return desk


@pytest.fixture(params=SERVERS.values(), ids=SERVERS)
def orders(request, spark, desk):
    return published(desk, spark, *request.param)


def text_of(page):
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.read_text())).split())


def rows(ran):
    return ran.json[0]["rows"]


# Each command, and what it says of the partitions and their rows.
COMMANDS = [
    (f"check orders.odcs.yaml --partition {BESIDE} --format json", rows, 3),
    (f"check orders.odcs.yaml --partition {BELOW} --format json", rows, 2),
    ("check orders.odcs.yaml --all --format json", rows, 5),
    ("check orders.odcs.yaml --all --scan --format json", rows, 5),
    ("tables orders.odcs.yaml --format json", lambda ran: (ran.json[0]["files"], rows(ran)), (2, 5)),
    (
        f"sample orders.odcs.yaml staged/run-1/{BESIDE}/part-0.parquet --format json",
        lambda ran: [one["check"] for one in ran.json[0]["results"] if one["status"] == "pass"],
        ["additional_columns", "columns", "required"],
    ),
    ("watch --as-of 2026-05-11T12:00:00Z", lambda ran: ran.code, 0),
    (
        "watch --as-of 2026-05-12T07:00:00Z --format json",
        lambda ran: [(one["partitions"], one["after"]) for one in ran.json["changes"]],
        [([BESIDE], "on_time")],
    ),
    (
        "status orders.odcs.yaml --format json",
        lambda ran: (
            [one["evidence"][0]["rows"] for one in ran.json["deliveries"][0]["cycles"]],
            {one["scope"] for one in ran.json["checks"]},
        ),
        ([3], {BELOW, BESIDE, "table"}),
    ),
    ("backtest orders.odcs.yaml --format json", lambda ran: ran.json[0]["present"], 2),
    ("propose orders.odcs.yaml --format json", lambda ran: (rows(ran), ran.json[0]["present"]), (5, 2)),
    (
        "repair orders.odcs.yaml --check --catalog {catalog}",
        lambda ran: (ran.code, ran.out.partition(": ")[2]),
        (0, "0 missing, 0 gone, 0 elsewhere\n"),
    ),
    ("import {catalog} {table} -o orders.odcs.yaml", lambda ran: ran.code, 0),
    ("portal build site", lambda ran: ran.code, 0),
]


def test_every_command_sees_it(orders):
    expected = {words: seen for words, _, seen in COMMANDS}
    if "glue" in (orders.desk.folder / "orders.odcs.yaml").read_text():
        # Without Spark, nobody asks the catalog: unknown, and never fine.
        expected["tables orders.odcs.yaml --format json"] = (0, None)

    seen = {words: read(orders.dq(words)) for words, read, _ in COMMANDS}

    assert seen == expected
    pages = [page.read_text() for page in (orders.desk.folder / "site").rglob("*") if page.is_file()]
    assert any(BESIDE in page for page in pages)


def test_the_portal_says_how_to_read_it(orders):
    orders.dq("portal build site")

    (page,) = (orders.desk.folder / "site" / "products").rglob("orders*/index.html")
    reading = text_of(page).rpartition("How to read it")[2]
    if "glue" in (orders.desk.folder / "orders.odcs.yaml").read_text():
        assert (f'spark.table("{orders.table}")' in reading, "outside" in reading) == (True, False), reading
        return
    note = "1 partition published outside of this location, e.g. "
    assert f"{note}{BESIDE} at {orders.desk.folder}/staged/run-1/{BESIDE}." in reading, reading
    if orders.catalog == "hive":
        assert f'spark.table("{orders.table}")' in reading
        assert ".load(" not in reading
        assert "The catalog has the location of each partition: read the table from it" in reading
    else:
        assert "Read these folders too" in reading


def test_import_tells_that_it_does_not_lie_below_the_table(orders):
    ran = orders.dq("import {catalog} {table} -o imported.odcs.yaml")

    place = f"{orders.desk.folder}/staged/run-1/{BESIDE}"
    said = f"1 partition is outside the table's folder, e.g. {BESIDE} at {place}"
    assert (ran.code, said in ran.err) == (0, True), ran.all
    assert said in (orders.desk.folder / "imported.odcs.yaml").read_text()


def test_repair_adds_it_where_it_was_published_after_the_catalog_lost_it(orders, spark):
    drop(orders, spark)

    planned, done = orders.repair("--check"), orders.repair("--apply")

    assert (planned.code, done.code) == (1, 0), done.all
    staged = f"{orders.desk.folder}/staged/run-1/{BESIDE}"
    assert f"1 missing, 0 gone, 0 elsewhere\n  + {BESIDE}, published at {staged}" in planned.out
    assert orders.repair("--check").code == 0
    assert rows(orders.dq("check orders.odcs.yaml --all --format json")) == 5


def drop(orders, spark):
    """What somebody does to the catalog behind the back of dq."""
    if orders.catalog == "hive":
        spark.sql(f"ALTER TABLE {orders.table} DROP PARTITION (day='2026-05-11')")
        return
    delivered.forget_partition(orders.desk, BESIDE)


def test_repair_says_that_its_folder_is_gone(orders):
    shutil.rmtree(orders.desk.folder / "staged")

    ran = orders.repair("--check")

    assert (ran.code, "0 missing, 1 gone, 0 elsewhere" in ran.out) == (1, True), ran.all


def test_what_lies_below_the_table_since_before_is_no_fault(orders):
    delivered.write(orders.desk.folder / "lake" / BESIDE, [6])

    ran = orders.repair("--check")

    assert (ran.code, "0 missing, 0 gone, 0 elsewhere" in ran.out) == (0, True), ran.all


def test_partitions_of_the_keys_of_before_stop_no_repair(spark, desk):
    published(desk, spark, *SERVERS["the local catalog"])
    text = (desk.folder / "orders.odcs.yaml").read_text()
    hour = delivered.KEY.replace("day", "hour").replace("date", "int").replace("Position: 1", "Position: 2")
    hour = hour.replace("logicalType: int", "logicalType: integer")
    text = text.replace("    quality:", f"{hour}\n    quality:")
    desk.write("orders.odcs.yaml", text)
    assert desk.dq("register", "orders.odcs.yaml", "--apply", "--allow-destructive").code == 0

    ran = desk.dq("repair", "orders.odcs.yaml")

    assert ran.code == 0, ran.all
