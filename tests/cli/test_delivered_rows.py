"""T5: the number of rows in a producer's receipt is compared by every check that counts the partition."""

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
