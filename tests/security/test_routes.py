"""Alerts go where the operator allows it: a real watcher, a late delivery, a Slack, and canary files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.desk import Desk
from fakes.slack import TOKEN, FakeSlack

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {id}
version: 1.0.0
status: {status}
servers:
  - {{server: lake, type: local, path: lake, format: parquet}}
support: {support}
schema:
  - name: orders
    properties:
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: string}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    schedule: "0 6 * * *"
    customProperties:
      - {{property: delivery, vendor: dq, value: {{partition: {{day: "{{due:%F}}"}}}}}}
"""
WATCH = ("watch", ".", "--as-of", "2026-05-11T12:00:00Z", "--since", "2026-05-11T00:00:00Z")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    home = tmp_path / "work"
    home.mkdir()
    return Desk(home, monkeypatch, capfd)


def promise(desk: Desk, *support: dict[str, str], id: str = "orders", status: str = "active") -> None:
    desk.write(f"{id}.odcs.yaml", CONTRACT.format(id=id, status=status, support=json.dumps(support)))


def files(desk: Desk) -> set[str]:
    root = desk.folder.parent
    return {str(path.relative_to(root)) for path in root.rglob("*") if ".dq" not in path.parts}


@pytest.mark.parametrize(
    "channel",
    [
        "{root}/canary/alerts.jsonl",
        "../canary.jsonl",
        "alerts.jsonl",
        "lake/part-0.json",
        "~/x",
        "/dev/stdout",
    ],
)
def test_a_contract_has_no_file_written_and_the_console_is_told(desk, channel):
    target = channel.format(root=desk.folder.parent)
    promise(desk, {"channel": target, "tool": "file"})
    before = files(desk)

    ran = desk.dq(*WATCH)

    assert files(desk) == before
    assert ran.code == 3
    assert "orders.odcs.yaml:8:" in ran.err
    assert "DQ_FILE_CHANNELS=" in ran.err
    assert "[!] " in ran.out


@pytest.mark.parametrize(
    ("channel", "lands"),
    [
        ("orders.jsonl", "alerts/orders.jsonl"),
        ("sales/orders.jsonl", "alerts/sales/orders.jsonl"),
        ("{root}/alerts/orders.jsonl", "alerts/orders.jsonl"),
        ("../work/x.jsonl", None),
        ("{root}/canary.jsonl", None),
        ("{root}/alerts-evil/x", None),
        ("linked/x.jsonl", None),
        (".", None),
        ("x\n.jsonl", None),
    ],
)
def test_a_file_lies_in_the_folder_that_the_operator_names(desk, channel, lands):
    root = desk.folder.parent
    (root / "alerts").mkdir()
    (root / "alerts" / "linked").symlink_to(root)
    promise(desk, {"channel": channel.format(root=root), "tool": "file"})
    before = files(desk)

    ran = desk.dq(*WATCH, DQ_FILE_CHANNELS=str(root / "alerts"))

    made = {path for path in files(desk) - before if path.endswith(("jsonl", "x"))}
    assert made == ({lands} if lands else set())
    assert ran.code == (1 if lands else 3)


@pytest.mark.parametrize(
    ("channels", "channel", "told"),
    [
        (None, "#orders-alerts", True),
        ("slack:#orders-*", "#orders-alerts", True),
        ("slack:orders-*", "#orders-alerts", True),
        ("slack:#orders-*", "orders-alerts", True),
        ("slack", "#orders-alerts", True),
        ("console,slack:#o*", "#orders-alerts", True),
        ("slack:#platform", "#orders-alerts", False),
        ("slack:#order", "#orders-alerts", False),
        ("slack:#ORDERS-*", "#orders-alerts", False),
        ("console", "#orders-alerts", False),
        ("slac*:#platform", "#orders-alerts", False),
        (None, "@ana", False),
        (None, "U0123456789", False),
        (None, "#a,#b", False),
        (None, "<!channel>", False),
        (None, "#orders alerts", False),
        (None, "#" + "o" * 81, False),
        (None, "", False),
    ],
)
def test_a_slack_channel_is_one_that_the_operator_allows(desk, channels, channel, told):
    promise(desk, {"channel": channel, "tool": "slack"})
    settings = {} if channels is None else {"DQ_CHANNELS": channels}

    with FakeSlack() as slack:
        ran = desk.dq(*WATCH, SLACK_BOT_TOKEN=TOKEN, DQ_SLACK_URL=slack.url, **settings)

    assert bool(slack.called("chat.postMessage")) is told
    assert told or (ran.code, "[!] " in ran.out) == (3, True)


def test_one_refused_route_keeps_nobody_else_from_being_told(desk):
    promise(desk, {"channel": "/canary", "tool": "file"}, {"channel": "#platform", "tool": "slack"})
    promise(desk, {"channel": "#orders-alerts", "tool": "slack"}, id="visits")

    with FakeSlack() as slack:
        ran = desk.dq(*WATCH, SLACK_BOT_TOKEN=TOKEN, DQ_SLACK_URL=slack.url)

    assert len(slack.posts) == 2
    assert ran.code == 3
    assert ran.err.count("route-refused") == 1


def test_the_console_is_always_allowed(desk):
    promise(desk, {"channel": "any", "tool": "console"})

    ran = desk.dq(*WATCH, DQ_CHANNELS="slack:#x")

    assert (ran.code, "[!] " in ran.out) == (1, True)


def test_a_draft_is_not_asked_where_its_alerts_go(desk):
    promise(desk, {"channel": "/canary", "tool": "file"}, status="draft")

    assert desk.dq(*WATCH).code == 0


def test_the_operator_names_any_file_on_the_command_line(desk):
    promise(desk, {"channel": "/canary", "tool": "file"})

    ran = desk.dq(*WATCH, "--channel", "file:told.jsonl")

    assert ran.code == 1
    assert (desk.folder / "told.jsonl").exists()


def test_what_waits_for_a_file_is_not_written_when_files_are_off(desk):
    """A row of an older release, or of a watcher with other settings."""
    longer_than_any_file = f"{'told' * 100}.jsonl"
    promise(desk, {"channel": longer_than_any_file, "tool": "file"})
    alerts = desk.folder.parent / "alerts"
    alerts.mkdir()
    hasty = {"DQ_SEND_SECONDS": "1"}
    assert "File name too long" in desk.dq(*WATCH, DQ_FILE_CHANNELS=str(alerts), **hasty).err

    ran = desk.dq("watch", ".", "--as-of", "2026-05-11T12:30:00Z", **hasty)

    assert list(alerts.iterdir()) == []
    assert ran.code == 4
    assert "DQ_FILE_CHANNELS=" in ran.err


def test_the_gate_says_where_alerts_would_not_arrive(desk):
    promise(
        desk,
        {"channel": "/var/log/x", "tool": "file"},
        {"channel": "@ana", "tool": "slack"},
        {"channel": "help me", "tool": "slack", "scope": "interactive"},
        {"channel": "any", "tool": "console"},
    )

    found = desk.dq("validate", ".", "--format", "json").json["findings"]

    rules = ("alerts-to-file", "alert-channel-invalid")
    assert [one["path"] for one in found if one["rule"] in rules] == [
        "support[0].channel",
        "support[1].channel",
    ]
