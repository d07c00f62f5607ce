"""dq check on real Parquet, as its users see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.desk import Desk
from fakes.lake import write_days

from dq.cli import check_output
from dq.dataquality.report import Report

DQ = [sys.executable, "-c", "from dq.cli.main import main; main()"]


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    ours = ("DQ_", "SLACK_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | more
    command = [*DQ, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    """Where commands run in this process; its session began elsewhere, so that places are named in full."""
    made = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    monkeypatch.setenv("DQ_LAKE", str(tmp_path / "lake"))
    return made


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A folder with a contract and two delivered days: a good one, and one with a duplicate and a null."""
    folder = tmp_path_factory.mktemp("check")
    write_days(folder)
    return folder


@pytest.mark.spark
def test_a_kept_promise_is_exit_0_and_a_broken_one_exit_1_with_its_keys(spark, desk):
    write_days(desk.folder)
    good = desk.dq("check", "--partition", "day=2026-05-10", "--channel", "console")
    bad = desk.dq("check", "--partition", "day=2026-05-11", "--channel", "console")

    assert good.code == 0, good.err
    assert bad.code == 1, bad.err
    assert "orders.id: 1 of 3 rows are NULL" in bad.out
    assert "orders fails 2 data checks" in bad.out
    assert "enforced" in bad.out


@pytest.mark.spark
def test_the_default_is_what_was_delivered_and_not_checked_yet(spark, desk):
    write_days(desk.folder)
    desk.dq("watch", "--as-of", "2026-05-10T12:00:00Z", "--channel", "console")
    desk.dq("watch", "--as-of", "2026-05-12T12:00:00Z", "--channel", "console")

    first = desk.dq("check", "--format", "json", "--channel", "console")
    second = desk.dq("check", "--channel", "console")

    scopes = [report["partitions"] for report in first.json]
    assert scopes == [[{"day": "2026-05-10"}], [{"day": "2026-05-11"}]]
    assert "No new deliveries" in second.out


@pytest.mark.spark
def test_a_partition_without_a_folder_is_named_and_one_with_a_folder_is_not(spark, desk):
    write_days(desk.folder)

    missing = desk.dq("check", "--partition", "day=2026-12-24", "--channel", "console")
    present = desk.dq("check", "--partition", "day=2026-05-10", "--channel", "console")

    note = "day=2026-12-24: the partition has no folder, so there are no rows to check."
    assert note in missing.err
    assert "no folder" not in present.err


@pytest.mark.spark
def test_data_that_is_not_there_is_exit_3_with_the_mend(spark, desk):
    write_days(desk.folder)

    found = desk.dq("check", "--all", "--channel", "console", DQ_LAKE="nowhere")

    assert found.code == 3
    assert "Check the server's path" in found.err
    assert "Traceback" not in found.err


def test_without_java_one_sentence_and_the_command_that_installs_it(lake):
    found = run(lake, "check", "--all", JAVA_HOME="/nowhere")

    assert found.returncode == 2
    assert "Spark needs Java 17" in found.stderr
    assert "apt-get install openjdk-17" in found.stderr
    assert "Traceback" not in found.stderr


SHOP = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: '${DQ_LAKE}/{object}', format: csv}]
schema:
  - name: orders
    properties:
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
  - name: customers
    properties: [{name: id, logicalType: integer}]
"""


def shop(desk, orders):
    desk.write("shop.odcs.yaml", SHOP)
    desk.write("lake/orders/part-0.csv", orders)
    desk.write("lake/customers/part-0.csv", "id\n7\n")


@pytest.mark.spark
def test_a_relationship_is_looked_up_in_the_other_object_of_the_contract(spark, desk):
    shop(desk, "customer\n7\n9\n")

    done = desk.dq("check", "--object", "orders", "--format", "json", "--channel", "console")

    results = done.json[0]["results"]
    assert [one["samples"] for one in results if one["check"] == "relationship"] == [
        [{"customer": "9", "count": 1}]
    ]
    assert done.code == 1, done.err


@pytest.mark.spark
def test_bad_rows_are_written_apart_and_counted_for_machines(spark, desk):
    shop(desk, "customer\n7\n9\n8\n")
    bad = desk.folder / "bad"
    told = ("--as-of", "2026-11-20T06:00:00Z", "--channel", "console")

    found = desk.dq("check", "--quarantine", str(bad), *told, "--format", "json")

    orders, customers = found.json
    folder = f"{bad}/_dq_run=2026-11-20T060000Z/_dq_contract=shop/_dq_object=orders/_dq_scope=table"
    assert found.code == 1, found.err
    assert orders["quarantine"] == {"rows": 2, "path": folder, "problem": ""}
    assert customers["quarantine"] == {"rows": 0, "path": None, "problem": ""}
    assert [path.name for path in bad.iterdir()] == ["_dq_run=2026-11-20T060000Z"]
    assert list(Path(folder).glob("*.parquet"))

    file = str(desk.folder / "shop.odcs.yaml")
    nowhere = desk.dq("check", "--object", "orders", "--quarantine", file, *told[:2])

    assert nowhere.code == 3, nowhere.err
    assert "2 rows do not match any customers.id" in nowhere.out
    assert "Quarantine: " in nowhere.out
    assert "Check the path, and that Spark may write there." in nowhere.out


PAYMENTS = """
apiVersion: v3.2.0
kind: DataContract
id: pay
version: 2.0.0
servers: [{server: lake, type: local, path: '${DQ_LAKE}/{object}', format: csv}]
schema:
  - name: payments
    properties:
      - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
      - {name: card, logicalType: string, required: true, classification: restricted}
      - {name: updated, logicalType: timestamp}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: hour, logicalType: integer, partitioned: true, partitionKeyPosition: 2}
"""


def payments(desk):
    desk.write("pay.odcs.yaml", PAYMENTS)
    head = "id,card,updated\n"
    desk.write("lake/payments/day=2026-11-19/hour=1/a.csv", f"{head}1,A,2026-11-19T01:00:00Z\n")
    desk.write(
        "lake/payments/day=2026-11-20/hour=2/a.csv",
        f"{head}1,B,2026-11-20T02:00:00Z\n2,C,\n2,D,2026-11-20T02:30:00Z\n",
    )
    return ("check", "--channel", "console", "--as-of", "2026-11-21T00:00:00Z", "--format", "json")


@pytest.mark.spark
def test_the_newest_row_of_a_key_is_written_with_the_good_rows(spark, desk):
    command = payments(desk)
    clean = desk.folder / "clean"
    options = ("--keep", "newest by updated", "--clean", f"{clean}/")

    bad = ("--quarantine", str(desk.folder / "bad"))
    ran = desk.dq(*command, *options, *bad, "--partition", "day=2026-11-20")

    assert ran.code == 1, ran.err
    [report] = ran.json
    assert report["quarantine"]["rows"] == 1
    assert report["cleaned"] == {
        "rows": 2,
        "path": f"{clean}/pay%402/payments/day=2026-11-20",
        "problem": "",
        "superseded": [{"day": "2026-11-19", "hour": "1"}],
    }
    ran = desk.dq(*command, *options, "--partition", "day=2026-11-19")
    assert ran.json[0]["cleaned"]["rows"] == 0
    table = desk.write(
        "clean.odcs.yaml", PAYMENTS.replace("csv", "parquet").replace("{object}", "pay%402/{object}")
    )
    rows = spark.read.parquet(f"{clean}/pay%402/payments")
    assert rows.columns == ["id", "card", "updated", "day", "hour"]
    assert sorted(row["card"] for row in rows.collect()) == ["B", "D"]
    assert desk.dq(*command, str(table), "--all", DQ_LAKE=str(clean)).code == 0


@pytest.mark.spark
def test_good_rows_that_cannot_be_written_are_exit_3(spark, desk):
    command = payments(desk)
    desk.write("clean/pay%402", "a file")

    ran = desk.dq(*command, "--clean", str(desk.folder / "clean"), "--all", "--rule", "required")
    hour = desk.dq(*command, "--clean", str(desk.folder / "other"), "--partition", "hour=2")

    assert (ran.code, hour.code) == (3, 3), ran.err
    target = desk.folder / "clean/pay%402/payments"
    assert f"the good rows cannot be written to '{target}'" in ran.json[0]["cleaned"]["problem"]
    assert "the rows of hour=2 have no folder of their own" in hour.json[0]["cleaned"]["problem"]
    assert ran.json[0]["cleaned"]["path"] is None
    desk.write("lake/payments/day=2026-11-20/hour=3/a.csv", "id,card,updated\n2,E,soon\n")
    typeless = ("--clean", str(desk.folder / "other"), "--all")
    clean = desk.dq(*command, *typeless)
    newest = desk.dq(
        *command, *typeless, "--keep", "newest by updated", "--quarantine", str(desk.folder / "q")
    )
    assert (clean.code, newest.code) == (3, 3), clean.err
    assert "column 'updated' has values that are not timestamp" in clean.json[0]["cleaned"]["problem"]
    for output in ("cleaned", "quarantine"):
        assert "the data has texts that are not timestamp" in newest.json[0][output]["problem"]
    assert not (desk.folder / "other").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "newest by updated"), "has no effect without --quarantine or --clean"),
        (("--keep", "newest by updatd", "--clean", "c"), "Did you mean 'updated'?"),
        (("--keep", "last by updated", "--clean", "c"), "invalid keep 'last by updated'"),
        (
            ("--keep", "first by id", "--clean", "c", "--rule", "required"),
            "no primary or unique key is checked",
        ),
        (("--clean", "/elsewhere"), "'/elsewhere' is outside the registry and the working folder"),
        (("--clean", "s3://bucket/clean"), "no lake root is set"),
        (("--clean", "link"), "'link' is outside the registry and the working folder"),
        (("--clean", "lake/payments"), "would be mixed with the data of pay payments"),
        (("--clean", "mixed"), "would be mixed with the data of pay payments"),
        (("--clean", "c*"), "'c*' is a pattern"),
        (
            ("--clean", "c", "--quarantine", "c/pay%402/payments/bad"),
            "would replace the bad rows in 'c/pay%402/payments/bad'",
        ),
    ],
)
def test_rows_are_not_cleaned_in_a_way_that_loses_or_moves_them(desk, options, message):
    command = payments(desk)
    (desk.folder / "link").symlink_to("/")
    (desk.folder / "mixed").mkdir()
    (desk.folder / "mixed/pay%402").symlink_to("../lake")

    ran = desk.dq(*command, *options)

    assert ran.code == 2, ran.out
    assert message in ran.err
    assert not (desk.folder / "c").exists()


VOLUME = """
apiVersion: v3.2.0
kind: DataContract
id: volume
version: 1.0.0
status: active
servers: [{server: lake, type: local, path: "${DQ_LAKE}", format: csv}]
schema:
  - name: orders
    properties:
      - {name: at, logicalType: timestamp}
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
    quality:
      - {type: custom, engine: dq, implementation: unusual}
slaProperties: [{property: latency, value: 4, unit: h, element: orders.at}]
"""


@pytest.mark.spark
def test_each_run_learns_from_those_before_it_and_knows_its_time(spark, desk):
    desk.write("volume.odcs.yaml", VOLUME)
    for day, rows in ((1, 9), (2, 9), (3, 2)):
        text = "at\n" + f"2026-05-0{day}T10:00:00Z\n" * rows
        desk.write(f"lake/day=2026-05-0{day}/part.csv", text)
    days = [part for day in (1, 2, 3) for part in ("--partition", f"day=2026-05-0{day}")]
    told = ("--format", "json", "--channel", "console", "--as-of", "2026-05-03T12:00:00Z")

    found = desk.dq("check", *days, *told)

    ends = [
        {result["check"]: (result["status"], result["measure"]["observed"]) for result in report["results"]}
        for report in found.json
    ]
    assert [one["unusual"] for one in ends] == [
        ("skipped", "rowCount 9 not compared: learning (0 of 20 runs)"),
        ("skipped", "rowCount 9 not compared: learning (1 of 20 runs)"),
        ("skipped", "rowCount 2 not compared: learning (2 of 20 runs)"),
    ]
    assert {one["latency"] for one in ends} == {("pass", "2 h old")}
    # A warning does not fail the run.
    assert found.code == 0, found.err


DELTA = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: lake, type: local, path: orders, format: delta}]
schema:
  - name: orders
    quality: [{metric: rowCount, mustBe: 2}]
    properties: [{name: id, logicalType: integer, physicalType: bigint, required: true}]
"""
COLUMNS = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


@pytest.mark.spark
@pytest.mark.slow
def test_a_delta_table_is_read_without_setting_up_spark(tmp_path):
    (tmp_path / "shop.odcs.yaml").write_text(DELTA)
    log = tmp_path / "orders" / "_delta_log"
    log.mkdir(parents=True)
    for name in ("kept", "removed"):
        pq.write_table(pa.table({"id": [1, None]}), tmp_path / "orders" / f"{name}.parquet")
    size = (tmp_path / "orders" / "kept.parquet").stat().st_size
    written = {"partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    table = {"id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": []}
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {**table, "schemaString": json.dumps(COLUMNS), "configuration": {}}},
        {"add": {"path": "kept.parquet", **written}},
    ]
    (log / f"{0:020}.json").write_text("\n".join(json.dumps(action) for action in actions))

    done = run(tmp_path, "check", "--format", "json", "--channel", "console")

    assert done.returncode == 1, done.stderr
    results = {one["check"]: one["status"] for one in json.loads(done.stdout)[0]["results"]}
    assert results == {
        "row_count": "pass",
        "columns": "pass",
        "required": "fail",
        "additional_columns": "pass",
    }


SALES = """
apiVersion: v3.2.0
kind: DataContract
id: sales
version: 1.0.0
servers: [{server: lake, type: local, path: '${DQ_LAKE}/sales', format: csv}]
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer}
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
"""
CRM = """
apiVersion: v3.2.0
kind: DataContract
id: crm
version: 1.0.0
servers: [{server: lake, type: local, path: '${DQ_LAKE}/crm', format: csv}]
schema:
  - name: customers
    properties:
      - {name: id, logicalType: integer}
      - {name: last_order, logicalType: integer, relationships: [{to: 'sales.odcs.yaml#orders.id'}]}
"""


@pytest.mark.spark
def test_contracts_of_a_folder_that_refer_to_each_other_are_tested_on_each_others_data(spark, desk):
    desk.write("registry/sales.odcs.yaml", SALES)
    desk.write("registry/crm.odcs.yaml", CRM)
    desk.write("lake/sales/a.csv", "id,customer\n1,7\n2,8\n")
    desk.write("lake/crm/a.csv", "id,last_order\n7,1\n9,\n")

    both = desk.dq("check", "registry", "--all", "--format", "json", "--channel", "console")
    alone = desk.dq("check", "registry/sales.odcs.yaml", "--all", "--format", "json", "--channel", "console")
    explained = [
        [
            one["reason"]
            for one in desk.dq("explain", path, "--format", "json").json
            if "relation" in one["description"]
        ]
        for path in ("registry", "registry/sales.odcs.yaml")
    ]
    gated = [desk.dq("validate", path).out for path in ("registry", "registry/sales.odcs.yaml")]

    told = {
        report["contract"]: [
            (one["status"], one["samples"]) for one in report["results"] if one["check"] == "relationship"
        ]
        for report in both.json
    }
    assert told == {"sales": [("fail", [{"customer": "8", "count": 1}])], "crm": [("pass", [])]}
    assert both.code == 1
    (sales,) = alone.json
    assert [one["status"] for one in sales["results"] if one["check"] == "relationship"] == ["fail"]
    assert explained == [["relationship", "relationship"], ["relationship"]]
    assert ["is not in any contract that was read" in out for out in gated] == [False, True]
    assert not any("unenforced" in out for out in gated)


def test_a_report_of_nothing_says_so(capsys):
    made = Report("t", "1.0.0", "t", ((("day", "2026-05-11"),),), (), (), 1, rows=0)

    check_output.describe_report(made)

    assert "No rows to check" in capsys.readouterr().out
    assert made.as_dict()["rows"] == 0


def test_a_partition_that_is_named_twice_in_one_is_a_mistake(desk):
    ran = desk.dq("check", "--partition", "day=2026-05-10/day=2026-05-11")

    assert (ran.code, "has 'day' twice" in ran.err) == (2, True)
