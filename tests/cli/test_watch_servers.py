"""A delivery that is promised on several servers has an SLO, a history and an incident on each of them."""

from __future__ import annotations

import json

import pytest
from fakes.delivered import write
from fakes.desk import Desk

import dq

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: eu, type: local, path: FOLDER/eu, format: parquet}
  - {server: us, type: custom, path: FOLDER/us, format: parquet, database: us}
  - {server: trial, type: custom, path: FOLDER/trial, format: parquet, database: trial}
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    scheduler: cron
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {grace: 1h, partition: {day: "{due - 1d:%Y-%m-%d}"}, evidence: [receipt], servers: [eu, us]}
"""
DAY = "day=2026-05-10"
BEFORE, PUBLISHED, BREACH, LATER = (
    f"2026-05-{day}:00Z" for day in ("10T12:00", "11T05:00", "11T07:30", "11T09:00")
)


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    desk = Desk(tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("DQ_LAKE_ROOTS", str(tmp_path))
    desk.write("orders.odcs.yaml", CONTRACT.replace("FOLDER", str(tmp_path)))
    for server in ("eu", "us"):
        (desk.folder / server).mkdir()
    watch(desk, BEFORE)
    return desk


def watch(desk, at, *options):
    return desk.dq("watch", "orders.odcs.yaml", "--channel", "file:sent.jsonl", "--as-of", at, *options)


def publish(desk, server, at):
    write(desk.folder / server / DAY, range(2))
    registered = desk.dq("register", "orders.odcs.yaml", "--server", server, "--apply")
    assert registered.code == 0, registered.all
    words = ("publish", "orders.odcs.yaml", "--server", server, "--partition", DAY, "--as-of", at)
    published = desk.dq(*words)
    assert published.code == 0, published.all


def edit(desk, old, new):
    file = desk.folder / "orders.odcs.yaml"
    assert old in file.read_text()
    desk.write("orders.odcs.yaml", file.read_text().replace(old, new))


def sent(desk):
    lines = (desk.folder / "sent.jsonl").read_text().splitlines()
    return [(json.loads(line)["state"], json.loads(line)["title"]) for line in lines]


@pytest.mark.parametrize("options", [(), ("--server", "eu")], ids=["no server", "one of them"])
def test_each_server_has_its_own_status_and_incident(desk, options):
    publish(desk, "eu", PUBLISHED)
    ran = watch(desk, BREACH, *options)

    assert ran.code == 1
    assert "orders/daily@eu day=2026-05-10: on time" in ran.out
    assert "orders/daily@us day=2026-05-10: missing" in ran.out
    assert sent(desk) == [("open", "orders on us is missing: day=2026-05-10")]


def test_a_receipt_counts_for_its_server_only_until_each_has_one(desk):
    publish(desk, "eu", PUBLISHED)
    publish(desk, "trial", PUBLISHED)
    watch(desk, BREACH)
    resting = watch(desk, "2026-05-11T07:45:00Z")
    publish(desk, "us", "2026-05-11T08:00:00Z")
    ran = watch(desk, LATER)

    assert (resting.code, ran.code) == (0, 0)
    assert "orders/daily@us day=2026-05-10: late" in ran.out
    assert sent(desk)[-1] == ("resolved", "orders on us came 2 h late: day=2026-05-10")
    standing = desk.dq("status", "orders.odcs.yaml", "--format", "json", "--as-of", LATER).json
    budgets = {slo["slo"]: slo["bad"] for slo in standing["deliveries"]}
    assert budgets == {"daily@eu": 0, "daily@us": 1}


def test_a_table_is_complete_as_far_as_it_is_on_all_servers(desk):
    publish(desk, "eu", PUBLISHED)
    watch(desk, BREACH)
    one_server = dq.complete_through("orders", folder=desk.folder)
    publish(desk, "us", "2026-05-11T08:00:00Z")
    watch(desk, LATER)
    both = dq.complete_through("orders", folder=desk.folder)

    assert (one_server.state, one_server.through) == ("incomplete", None)
    assert (both.state, both.through.text) == ("complete", DAY)


def test_the_status_of_a_delivery_is_that_of_the_server(desk):
    publish(desk, "eu", PUBLISHED)
    watch(desk, BREACH)
    words = (
        "cycle",
        "orders.odcs.yaml",
        "--due",
        "2026-05-11T06:00:00Z",
        "--format",
        "json",
        "--as-of",
        LATER,
    )

    found = {server: desk.dq(*words, "--server", server).json["status"] for server in ("eu", "us")}
    ambiguous = desk.dq(*words)

    assert found == {"eu": "on_time", "us": "missing"}
    assert ambiguous.code == 2
    assert "several SLOs of orders match: orders/daily@eu, orders/daily@us." in ambiguous.err


def test_a_check_of_a_server_is_of_its_deliveries(desk):
    publish(desk, "us", PUBLISHED)
    watch(desk, BREACH)
    words = ("check", "orders.odcs.yaml", "--channel", "file:sent.jsonl", "--server")
    cycle = ("--cycle", "2026-05-11T06:00:00Z")

    eu, us = (desk.dq(*words, server) for server in ("eu", "us"))
    eu_cycle = desk.dq(*words, "eu", *cycle)
    us_cycle = desk.dq(*words, "us", *cycle)

    assert "No new deliveries" in eu.out
    assert "orders/orders day=2026-05-10" in us.out
    assert (eu_cycle.code, us_cycle.code) == (3, 0)


def test_a_server_that_is_no_longer_promised_is_withdrawn(desk):
    publish(desk, "eu", PUBLISHED)
    watch(desk, BREACH)
    edit(desk, "servers: [eu, us]", "servers: [eu]")
    ran = watch(desk, LATER)

    assert ran.code == 0
    assert "no longer has the delivery SLO 'daily@us'" in ran.out
    assert sent(desk)[-1][0] == "withdrawn"


def test_no_entry_can_have_the_id_of_a_server(desk):
    text = CONTRACT[CONTRACT.index("  - id: daily") :].replace("id: daily", "id: daily@us")
    edit(desk, "slaProperties:\n", "slaProperties:\n" + text.replace(", servers: [eu, us]", ""))
    ran = desk.dq("validate", "orders.odcs.yaml")

    assert ran.code == 1
    assert "id 'daily@us' has characters that a reference cannot contain" in ran.out
