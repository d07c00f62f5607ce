"""Rows lost between two stages of a pipeline: one incident, with the sums and the receipt of the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.desk import Desk
from fakes.slack import TOKEN, FakeSlack

pytestmark = pytest.mark.spark

DAY = "day=2026-05-10"
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: active
servers:
  - {{server: lake, type: local, path: {folder}/{object}, format: parquet}}
support:
  - {{channel: "#orders-alerts", tool: slack, scope: notifications}}
schema:
  - name: {object}
    properties:
      - {{name: {day}, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: {region}, logicalType: string{classified}}}
      - {{name: {amount}, logicalType: number, physicalType: "decimal(12,2)"}}
"""
RULE = """\
    quality:
      - type: custom
        engine: dq
        implementation:
          check: agreesInSum
          arguments: {{with: {{contract: raw, object: events{side}}}, {arguments}}}
"""


@pytest.fixture
def slack(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    with FakeSlack() as workspace:
        monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv("DQ_SLACK_URL", workspace.url)
        yield workspace


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    """Two stages of one day with 1,000 rows in two regions, published by their jobs."""
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    put(desk)
    write(desk, "events", eu=600, us=400)
    return desk


def put(desk: Desk, arguments: str = "", classified: str = "", side: str = "") -> None:
    """Write both contracts: the stages name their columns differently."""
    names = {"day": "event_day", "region": "area", "amount": "cents"}
    desk.write(
        "raw.odcs.yaml",
        CONTRACT.format(id="raw", object="events", folder=desk.folder, classified=classified, **names),
    )
    own_names = {name: name for name in names}
    rename = "rename: {day: event_day, region: area, amount: cents}"
    rule = RULE.format(arguments=", ".join(filter(None, (rename, arguments))), side=side)
    stage = CONTRACT.format(id="orders", object="orders", folder=desk.folder, classified="", **own_names)
    desk.write("orders.odcs.yaml", stage + rule)


def write(desk: Desk, stage: str, **regions: int) -> None:
    """Write the day of a stage: for each region this number of rows, of 1.00 each."""
    names = ("area", "cents", "event_day") if stage == "events" else ("region", "amount", "day")
    folder = desk.folder / stage / f"{names[2]}=2026-05-10"
    folder.mkdir(parents=True, exist_ok=True)
    values = [region for region, rows in regions.items() for _ in range(rows)]
    amounts = pa.array([Decimal(1)] * len(values), pa.decimal128(12, 2))
    pq.write_table(pa.table({names[0]: values, names[1]: amounts}), folder / "part-0.parquet")


def publish(desk: Desk, stage: str, *options: str) -> None:
    contract, day = ("raw", "event_day") if stage == "events" else ("orders", "day")
    ran = desk.dq("register", f"{contract}.odcs.yaml", "--apply")
    assert ran.code == 0, ran.all
    ran = desk.dq("publish", f"{contract}.odcs.yaml", "--partition", f"{day}=2026-05-10", *options)
    assert ran.code == 0, ran.all


def check(desk: Desk, *options: str) -> dict[str, dict[str, object]]:
    """Check the day of the second stage, and return the failures and the result of the sums, by check."""
    # As in an alert: the contract of the source is found in the registry of this one.
    command = ("check", "orders.odcs.yaml", "--partition", DAY, "--format", "json")
    ran = desk.dq(*command, *options)
    assert ran.out, ran.err
    (report,) = ran.json
    return {
        result["check"]: {**result, "published": _PUBLISHED.sub("(published)", result["message"])}
        for result in report["results"]
        if result["status"] != "pass" or result["check"] == "agrees_in_sum"
    }


_PUBLISHED = re.compile(r"\(revision \d+, published \S+ \S+ on lake\)")


def alerts(slack: FakeSlack) -> list[str]:
    """Texts of all messages: the facts, or the text of a reply."""
    texts = []
    for post in slack.posts:
        sections = [block for part in post.get("attachments", ()) for block in part["blocks"]]
        texts.append(sections[0]["text"]["text"].partition("```")[0].strip() if sections else post["text"])
    return [_PUBLISHED.sub("(published)", text) for text in texts]


def open_incidents(desk: Desk) -> list[tuple[str, str, str]]:
    found = desk.dq("incidents", "--format", "json").json["incidents"]
    return [(incident["contract"], incident["object"], incident["group"]) for incident in found]


def test_a_drop_of_a_thousandth_is_one_message_with_the_receipt_of_the_source(
    desk: Desk, slack: FakeSlack
) -> None:
    publish(desk, "events", "--rows", "1000")
    write(desk, "orders", eu=599, us=400)
    publish(desk, "orders", "--rows", "999")

    results = check(desk)

    assert {check: result["published"] for check, result in results.items()} == {
        "agrees_in_sum": "orders: 999 rows, 1,000 in raw/events (-1, -0.1 %); allowed: no difference;"
        " receipt of raw/events: 1,000 rows (published)"
    }
    assert check(desk)["agrees_in_sum"]["measure"]["value"] == 1.0
    assert open_incidents(desk) == [("orders", "orders", "quality")]
    assert alerts(slack) == [
        "*agrees_in_sum*  receipt of raw/events: 1,000 rows; 999 rows, 1,000 in raw/events (-1, -0.1 %),"
        " expected no difference"
    ]

    write(desk, "orders", eu=600, us=400)
    publish(desk, "orders", "--rows", "1000")
    assert check(desk)["agrees_in_sum"]["published"] == "orders: 1,000 rows, the same in raw/events"
    assert open_incidents(desk) == []
    assert [text.partition(" at ")[0] for text in alerts(slack)[1:]] == ["Resolved"]


def test_a_drop_that_the_receipt_of_the_stage_contradicts_is_one_message_of_both(
    desk: Desk, slack: FakeSlack
) -> None:
    put(desk, "by: [region], sums: [amount], mustBeLessThan: 0.1, unit: percent")
    publish(desk, "events", "--rows-by", "area:eu=600,us=400")
    write(desk, "orders", eu=599, us=400)
    publish(desk, "orders", "--rows-by", "region:eu=600,us=400")

    results = check(desk)

    assert {check: result["published"] for check, result in results.items()} == {
        "agrees_in_sum": "orders: 1 of 2 groups by region differs from raw/events: eu 599 rows, 600 there"
        " (-1, -0.1667 %); sum of amount 599, 600 there (-1, -0.1667 %);"
        " allowed: a difference of less than 0.1 percent; receipt of raw/events: 1,000 rows, eu 600"
        " (published)",
        "delivered_rows": "orders: day=2026-05-10 has 999 rows, but its receipt says 1,000 (published):"
        " region eu: 599 rows, 600 published",
    }
    assert open_incidents(desk) == [("orders", "orders", "quality")]
    (alert,) = alerts(slack)
    assert alert.splitlines() == [
        "*agrees_in_sum*  receipt of raw/events: 1,000 rows; 1 of 2 groups by region differs from raw/events:"
        " eu 599 rows, 600 there (-1, -0.1667 %); sum of amount 599, 600 there (-1, -0.1667 %), expected a"
        " difference of less than 0.1 percent",
        "*delivered_rows*  999 rows, expected 1,000 rows per receipt (published)",
    ]


def test_a_stage_may_keep_a_subset_and_a_source_that_changed_contradicts_its_receipt(desk: Desk) -> None:
    put(desk, side=", where: \"area = 'eu'\"")
    publish(desk, "events", "--rows", "1000")
    write(desk, "orders", eu=600)

    assert check(desk)["agrees_in_sum"]["published"] == (
        "orders: 600 rows, the same in raw/events where area = 'eu'"
    )

    write(desk, "events", eu=599, us=400)
    assert check(desk)["agrees_in_sum"]["published"] == (
        "orders: 600 rows, 599 in raw/events where area = 'eu' (+1, +0.1669 %); allowed: no difference;"
        " receipt of raw/events: 1,000 rows (published)"
    )


def test_what_the_source_classifies_is_masked(desk: Desk) -> None:
    put(desk, "by: [region]", classified=", classification: restricted")
    publish(desk, "events", "--rows-by", "area:eu=600,us=400")
    write(desk, "orders", eu=600, us=399)

    result = check(desk)["agrees_in_sum"]

    assert result["published"] == (
        "orders: 1 of 2 groups by region differs from raw/events: *** *** rows, *** there; allowed: no"
        " difference; not shown, because 'area' is classified; receipt of raw/events: 1,000 rows (published)"
    )
    assert result["measure"]["value"] is None
    assert "us" not in result["measure"]["observed"].split()


def test_both_sides_are_limited_to_the_partition_or_it_is_an_error(desk: Desk) -> None:
    put(desk)
    write(desk, "orders", eu=600, us=400)
    for stage, day in (("events", "event_day"), ("orders", "day")):
        other_day = desk.folder / stage / f"{day}=2026-05-11"
        other_day.mkdir()
        table = pq.ParquetFile(desk.folder / stage / f"{day}=2026-05-10" / "part-0.parquet").read()
        pq.write_table(table.slice(0, 3 if stage == "events" else 2), other_day / "part-0.parquet")

    assert check(desk)["agrees_in_sum"]["status"] == "pass"
    assert check(desk, "--rule", "agrees_in_sum")["agrees_in_sum"]["status"] == "pass"
    text = (desk.folder / "orders.odcs.yaml").read_text()
    desk.write("orders.odcs.yaml", text.replace("day: event_day, ", ""))
    assert check(desk)["agrees_in_sum"]["message"] == (
        "orders: raw/events has no column 'day', so it cannot be limited to the checked partitions; name the"
        " column with rename, or compare the whole tables with rows: table in the scope of the rule"
    )
    scope = "customProperties: [{property: scope, vendor: dq, value: {rows: table}}]"
    desk.write("orders.odcs.yaml", text.replace("day: event_day, ", "") + f"        {scope}\n")
    assert check(desk)["agrees_in_sum"]["message"] == (
        "orders: 1,002 rows, 1,003 in raw/events (-1, -0.0997 %); allowed: no difference"
        " (tested on the whole table)"
    )
