"""A watcher that is killed between the commit and the send, as a scheduler would run it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from fakes.desk import Desk
from fakes.slack import TOKEN, FakeSlack

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: lake, format: parquet}
support:
  - {channel: "#orders-alerts", tool: slack, scope: notifications}
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {partition: {day: "{due - 1d:%Y-%m-%d}"}}
"""
# Dies when the process first reaches for the network: the commit is done, nothing has been sent.
DIES_AT_THE_NETWORK = """
import os, signal, sys
def watch(event, args):
    if event == "socket.connect":
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
from dq.cli.main import main
main()
"""


@pytest.fixture
def desk(tmp_path, monkeypatch, capfd):
    made = Desk(tmp_path, monkeypatch, capfd)
    made.write("orders.odcs.yaml", CONTRACT)
    return made


def settings(folder, slack):
    return {
        "SLACK_BOT_TOKEN": TOKEN,
        "DQ_SLACK_URL": slack.url,
        "DQ_STORE_URL": f"sqlite:///{folder / 'store.db'}",
    }


def watch(desk, slack, as_of):
    return desk.dq("watch", "orders.odcs.yaml", "--as-of", as_of, **settings(desk.folder, slack))


def watch_and_die(folder, slack, as_of):
    words = ["watch", "orders.odcs.yaml", "--as-of", as_of]
    environment = {**os.environ, **settings(folder, slack)}
    return subprocess.run(
        [sys.executable, "-c", DIES_AT_THE_NETWORK, *words],
        cwd=folder,
        env=environment,
        timeout=300,
        check=False,
    )


def test_a_watcher_killed_between_commit_and_send_alerts_once(desk):
    with FakeSlack() as slack:
        watch(desk, slack, "2026-05-10T12:00:00Z")

        killed = watch_and_die(desk.folder, slack, "2026-05-11T06:10:00Z")
        assert killed.returncode == -9
        assert slack.posts == []

        # The lease of the dead sender runs out; then Slack is searched before anything is sent again.
        for as_of in ("06:12:00", "06:12:30", "06:13:00", "06:20:00", "06:25:00"):
            again = watch(desk, slack, f"2026-05-11T{as_of}Z")
            assert again.code == 0, again.err

        assert len(slack.posts) == 1
        assert "orders is missing: day=2026-05-10" in str(slack.posts[0])


def test_a_late_delivery_recolours_the_message_and_answers_in_its_thread_once(desk):
    with FakeSlack() as slack:
        watch(desk, slack, "2026-05-10T12:00:00Z")
        missing = watch(desk, slack, "2026-05-11T06:10:00Z")
        assert missing.code == 1
        partition = desk.folder / "lake" / "day=2026-05-10"
        partition.mkdir(parents=True)
        marker = partition / "_SUCCESS"
        marker.touch()
        os.utime(marker, (1778482800, 1778482800))  # 2026-05-11T07:00:00Z

        for as_of in ("07:05:00", "07:06:00", "08:00:00"):
            assert watch(desk, slack, f"2026-05-11T{as_of}Z").code == 0

        assert len(slack.roots) == 1
        assert len(slack.replies) == 1
        assert "RESOLVED" in str(slack.roots[0])
        assert "1 h" in str(slack.replies[0])
