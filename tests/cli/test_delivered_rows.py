"""The numbers of rows in a producer's receipt are compared by every check that counts the partition."""

from __future__ import annotations

import json

import pytest
from fakes import delivered
from fakes.delivered import write
from fakes.desk import Desk

FIRST, SECOND = "day=2026-05-10", "day=2026-05-11"


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    return desk


@pytest.fixture
def partitioned(spark, desk):
    delivered.contract(desk)
    write(desk.folder / "lake" / FIRST, range(2))
    write(desk.folder / "lake" / SECOND, range(3))
    delivered.register(desk)
    publish(desk, FIRST, "2")
    publish(desk, SECOND, "999")
    return desk


def publish(desk, partition, rows):
    delivered.publish(desk, partition, "--rows", rows)


def compared(desk, *options):
    ran = desk.dq("check", "orders.odcs.yaml", "--format", "json", *options)
    assert ran.out, ran.err
    results = [one for report in ran.json for one in report["results"] if one["check"] == "delivered_rows"]
    return ran.code, [(one["status"], one["message"].partition(" (")[0]) for one in results]


CONTRADICTION = ("fail", f"orders: {SECOND} has 3 rows, but its receipt says 999")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (["--partition", SECOND], 1, [CONTRADICTION]),
        (["--partition", FIRST], 0, [("pass", "orders: row counts match 1 receipt of 'dq publish'")]),
        (["--all"], 1, [CONTRADICTION]),
        (["--all", "--scan"], 1, [CONTRADICTION]),
        (["--all", "--rule", "required"], 0, []),
    ],
    ids=["its partition", "another", "all", "scan", "a chosen rule"],
)
def test_a_check_says_where_a_receipt_has_another_number(partitioned, options, code, expected):
    assert compared(partitioned, *options) == (code, expected)


@pytest.mark.spark
def test_kept_answers_are_compared_too(partitioned):
    first = compared(partitioned, "--all")

    assert compared(partitioned, "--all") == first == (1, [CONTRADICTION])


@pytest.mark.spark
def test_an_incident_says_who_said_what_until_the_number_is_corrected(partitioned):
    channel = ("--channel", "file:told.jsonl")
    text = partitioned.dq("check", "orders.odcs.yaml", "--partition", SECOND, *channel)
    publish(partitioned, SECOND, "3")
    corrected = partitioned.dq("check", "orders.odcs.yaml", "--partition", SECOND, *channel)

    told = (partitioned.folder / "told.jsonl").read_text()
    assert (text.code, corrected.code) == (1, 0)
    assert "its receipt says 999 (revision 1, published " in text.out
    assert "3 rows, expected 999 rows per receipt (revision 1, published " in told
    assert [json.loads(line)["state"] for line in told.splitlines()] == ["open", "resolved", "resolved"]


@pytest.mark.spark
def test_partitions_that_were_removed_since_and_receipts_without_a_number_contradict_nothing(partitioned):
    (partitioned.folder / "lake" / FIRST / "part-0.parquet").unlink()
    partitioned.dq("publish", "orders.odcs.yaml", "--partition", SECOND, "--redelivery")

    assert compared(partitioned, "--all") == (0, [])


def test_a_small_table_without_partitions_is_compared_without_spark(desk):
    delivered.contract(desk, key="")
    write(desk.folder / "lake", range(3))
    delivered.register(desk)
    for cycle, rows in (("2026-05-10T06:00:00Z", "3"), ("2026-05-11T06:00:00Z", "4")):
        ran = desk.dq("publish", "orders.odcs.yaml", "--cycle", cycle, "--rows", rows, "--as-of", cycle)
        assert ran.code == 0, ran.all

    assert compared(desk, "--all") == (1, [("fail", "orders: 3 rows, but its receipt says 4")])


@pytest.mark.spark
def test_a_value_with_a_slash_is_compared(spark, desk):
    delivered.contract(desk, key=delivered.KEY.replace("day", "region").replace("date", "string"))
    write(desk.folder / "lake" / "region=a%2Fb", range(2))
    delivered.register(desk)
    publish(desk, "region=a/b", "9")

    assert compared(desk, "--all") == (1, [("fail", "orders: region=a/b has 2 rows, but its receipt says 9")])


# Without Spark: a session that starts fails, so that these checks were answered in this process.


@pytest.fixture
def local(desk, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(desk.folder / "nothing"))
    return desk


REGION = "      - {name: region, logicalType: string, physicalType: string}\n"


def with_regions(desk, *, key=delivered.KEY, regions=("eu", "eu", "us", None), server=delivered.SERVER):
    delivered.contract(desk, key=f"{REGION}{key}", server=server)
    write(desk.folder / "lake" / FIRST, range(len(regions)), region=list(regions))
    delivered.register(desk)


@pytest.mark.parametrize("options", [["--partition", FIRST], ["--all"]], ids=["partition", "all"])
def test_a_small_partition_is_compared_without_spark(local, options):
    with_regions(local)
    publish(local, FIRST, "5")

    assert compared(local, *options) == (
        1,
        [("fail", f"orders: {FIRST} has 4 rows, but its receipt says 5")],
    )


def test_counts_by_group_name_the_groups_that_differ(local):
    with_regions(local)
    delivered.publish(local, FIRST, "--rows", "4", "--rows-by", "region:eu=1,us=2,NULL=1")
    for options in (["--partition", FIRST], ["--all"]):
        ran = local.dq("check", "orders.odcs.yaml", "--format", "json", *options)
        (result,) = [result for result in ran.json[0]["results"] if result["check"] == "delivered_rows"]

        assert ran.code == 1
        assert (
            f"orders: {FIRST} has other groups than its receipt (revision 1, published " in result["message"]
        )
        assert result["message"].endswith(
            "Z on lake): region eu: 2 rows, 1 published; region us: 1 row, 2 published"
        )


def test_one_incident_tells_of_groups_until_they_agree(local):
    with_regions(local)
    channel = ("--channel", "file:sent.jsonl")
    delivered.publish(local, FIRST, "--rows-by", "region:eu=2,us=2")
    failed = local.dq("check", "orders.odcs.yaml", "--partition", FIRST, *channel)
    delivered.publish(local, FIRST, "--rows-by", "region:eu=2,us=1,NULL=1")
    agreed = local.dq("check", "orders.odcs.yaml", "--partition", FIRST, *channel)

    sent = (local.folder / "sent.jsonl").read_text()
    assert (failed.code, agreed.code) == (1, 0)
    assert (
        "region us: 1 row; region NULL: 1 row, expected region us: 2 rows; region NULL: 0 rows per receipt"
        in sent
    )
    assert [json.loads(line)["state"] for line in sent.splitlines()] == ["open", "resolved", "resolved"]


def test_a_run_of_the_check_after_a_change_of_the_data_fails(local):
    with_regions(local)
    delivered.publish(local, FIRST, "--rows-by", "region:eu=2,us=1,NULL=1")
    before = compared(local, "--all")
    write(local.folder / "lake" / FIRST, range(4), region=["eu", "fr", "us", None])

    assert before == (0, [("pass", "orders: row counts match 1 receipt of 'dq publish'")])
    assert compared(local, "--all") == (1, [("fail", f"orders: {FIRST} has other groups than its receipt")])


def test_data_without_the_column_of_the_groups_is_an_error(local):
    with_regions(local)
    delivered.publish(local, FIRST, "--rows-by", "region:eu=2,us=1,NULL=1")
    write(local.folder / "lake" / FIRST, range(4))
    code, results = compared(local, "--partition", FIRST)

    text = "rows by group cannot be counted: the data has no column 'region'"
    assert (code, ("error", f"orders: {FIRST} {text}") in results) == (1, True)


def test_classified_groups_are_masked(local):
    with_regions(local)
    delivered.contract(
        local, key=REGION.replace("region,", "region, classification: secret,") + delivered.KEY
    )
    delivered.publish(local, FIRST, "--rows-by", "region:eu=3,NULL=1")
    ran = local.dq("check", "orders.odcs.yaml", "--partition", FIRST, "--format", "json")

    assert ran.code == 1
    assert "region ***: 2 rows, 3 published; region ***: 1 row, 0 published" in ran.out
    assert '"eu"' not in ran.out


def test_a_repeated_publish_keeps_its_groups_and_other_groups_make_a_revision(local):
    with_regions(local)
    groups = ("--rows-by", "region:eu=2,us=1,NULL=1")
    steps = []
    for options in (("--rows", "4"), groups, groups, ("--rows", "4"), ("--rows-by", "region:eu=3,us=1")):
        ran = local.dq("publish", "orders.odcs.yaml", "--partition", FIRST, "--format", "json", *options)
        assert ran.code == 0, ran.all
        steps.append((ran.json["revision"], ran.json["done"], len(ran.json["rows_by"].get("region", ()))))

    assert steps == [
        (1, ["partition", "marker", "receipt", "notify"], 0),
        (1, ["receipt"], 3),
        (1, [], 3),
        (1, [], 3),
        (2, ["receipt", "notify"], 2),
    ]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            ["--rows", "5", "--rows-by", "region:eu=4"],
            "The counts by region add up to 4, but the delivery has 5",
        ),
        (
            ["--rows-by", "region:eu=4", "--rows-by", "id:1=3"],
            "The counts by region add up to 4, but those by id to 3",
        ),
        (["--rows-by", "regoin:eu=4"], "orders.odcs.yaml:11:7: 'orders' has no column 'regoin'"),
        (["--rows-by", "region:eu"], "invalid --rows-by 'region:eu'"),
        (["--rows-by", "region:eu=1,"], "invalid --rows-by 'region:eu=1,'"),
        (["--rows-by", "region:eu=1,eu=2"], "--rows-by has region:eu twice"),
        (["--rows-by", "id:one=1"], "The column id has type bigint, but the value is 'one'"),
        (["--rows-by", f"id:1={2**63 - 1},2=1"], "A delivery cannot have 9223372036854775808 rows"),
        (["--rows-by", "id:1=1,01=2"], "id: the group '1' is given twice"),
    ],
)
def test_counts_that_contradict_each_other_or_the_contract_are_refused(local, options, error):
    with_regions(local)
    ran = local.dq("publish", "orders.odcs.yaml", "--partition", FIRST, *options)

    assert ran.code == 2
    assert error in ran.err, ran.err
    assert not (local.folder / "lake" / FIRST / "_SUCCESS").exists()


def test_values_with_commas_quotes_and_nothing_are_groups(local):
    with_regions(local, regions=("a,b=1", "it's", "", "NULL", None))
    delivered.publish(local, FIRST, "--rows-by", "region:'a,b=1'=1,'it''s'=1,''=1,'NULL'=1,NULL=1")

    assert compared(local, "--all") == (0, [("pass", "orders: row counts match 1 receipt of 'dq publish'")])


def test_the_newest_of_several_cycles_counts(local):
    with_regions(local)
    for cycle, rows in (("06", "9"), ("07", "4"), ("08", "7")):
        time = f"2026-05-10T{cycle}:00:00Z"
        ran = local.dq(
            "publish",
            "orders.odcs.yaml",
            "--partition",
            FIRST,
            "--cycle",
            time,
            "--rows",
            rows,
            "--as-of",
            time,
        )
        assert ran.code == 0, ran.all

    assert compared(local, "--all", "--as-of", "2026-05-10T07:30:00Z")[0] == 0
    assert compared(local, "--all") == (1, [("fail", f"orders: {FIRST} has 4 rows, but its receipt says 7")])


HOUR = f"""{delivered.KEY}
      - {{name: hour, logicalType: integer, physicalType: int, partitioned: true, partitionKeyPosition: 2}}"""


@pytest.mark.parametrize("partition", [FIRST, f"{FIRST}/hour=7", f"{FIRST}/hour=07"])
def test_a_part_of_the_partition_and_another_spelling_are_compared(local, partition):
    delivered.contract(local, key=HOUR)
    write(local.folder / "lake" / FIRST / "hour=7", range(2))
    delivered.register(local)
    ran = local.dq(
        "publish", "orders.odcs.yaml", "--partition", FIRST, "--partition", "hour=07", "--rows", "9"
    )

    assert ran.code == 0, ran.all
    assert compared(local, "--partition", partition) == (
        1,
        [("fail", f"orders: {FIRST}/hour=7 has 2 rows, but its receipt says 9")],
    )


@pytest.mark.spark
def test_a_partition_in_a_layout_is_compared(spark, desk):
    layout = 'customProperties: [{property: layout, vendor: dq, value: {path: "{day:%Y/%m/%d}"}}]'
    delivered.contract(desk, key=f"{REGION}{delivered.KEY}", server=f"{delivered.SERVER}, {layout}")
    write(desk.folder / "lake" / "2026" / "05" / "10", range(2), region=["eu", "us"])
    delivered.register(desk)
    delivered.publish(desk, FIRST, "--rows-by", "region:eu=2")

    difference = [("fail", f"orders: {FIRST} has other groups than its receipt")]
    assert compared(desk, "--partition", FIRST) == compared(desk, "--all") == (1, difference)


@pytest.mark.spark
def test_spark_counts_the_same_groups(spark, desk):
    with_regions(desk)
    write(desk.folder / "lake" / SECOND, range(2), region=["eu", None])
    delivered.publish(desk, FIRST, "--rows-by", "region:eu=2,us=2")
    delivered.publish(desk, SECOND, "--rows-by", "region:eu=1,NULL=1")

    assert compared(desk, "--all", "--scan") == compared(desk, "--all")
    code, ((status, _),) = compared(desk, "--all", "--scan")
    assert (code, status) == (1, "fail")
    assert compared(desk, "--partition", SECOND, "--scan")[0] == 0


@pytest.mark.spark
def test_a_back_test_compares_the_receipts_of_its_partitions(partitioned):
    ran = partitioned.dq("backtest", "orders.odcs.yaml", "--format", "json")
    (history,) = [rule for rule in ran.json[0]["rules"] if rule["check"] == "delivered_rows"]

    assert ran.code == 1
    assert (history["counts"]["pass"], history["counts"]["fail"]) == (1, 1)
    assert history["failed"][0]["partition"] == {"day": "2026-05-11"}
    assert "has 3 rows, but its receipt says 999" in history["failed"][0]["message"]
    assert partitioned.dq("backtest", "orders.odcs.yaml", "--rule", "required").code == 0
