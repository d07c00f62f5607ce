"""What alerts once did wrong, by the number of its fault, through the real command.

Each test fails on the commit in which the fault was found (21b90f0); what mends it has tests of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.command import BEGIN, MISSED, Place, Ran, contract
from fakes.slack import TOKEN, FakeSlack

HOUR = timedelta(hours=1)


class LimitedSlack(FakeSlack):
    """A Slack that takes three messages for a channel, and then none for a long while."""

    def unscripted(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        there = [post for post in self.posts if post["channel"] == self._channel(body)]
        if method == "chat.postMessage" and len(there) >= 3:
            return {"kind": "rate", "retry_after": "600"}
        return super().unscripted(method, body)


class Team(Place):
    """A registry, a lake, and who watches them."""

    def product(self, name: str, channel: str, **parts: str) -> None:
        self.put(f"registry/{name}.odcs.yaml", contract(name, **{f'"#{name}"': f'"{channel}"', **parts}))
        (self.folder / "lake" / name).mkdir(parents=True, exist_ok=True)

    def came(self, name: str, day: str, at: str) -> None:
        marker = self.put(f"lake/{name}/day={day}/_SUCCESS", "")
        when = datetime.fromisoformat(at).timestamp()
        os.utime(marker, (when, when))

    def watch(self, at: str | datetime) -> Ran:
        when = at if isinstance(at, str) else f"{at:%Y-%m-%dT%H:%M:%SZ}"
        ran = self.dq("watch", "registry", "--as-of", when)
        assert "Traceback" not in ran.err
        return ran


def workspace(kind: type[FakeSlack], monkeypatch: pytest.MonkeyPatch) -> FakeSlack:
    for name in os.environ:
        if name.startswith(("DQ_", "SLACK_")):
            monkeypatch.delenv(name)
    slack = kind()
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("DQ_SLACK_URL", slack.url)
    return slack


@pytest.fixture
def slack(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    with workspace(FakeSlack, monkeypatch) as server:
        yield server


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlack]:
    with workspace(LimitedSlack, monkeypatch) as server:
        yield server


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path)
    made.put("registry/dq-policy.yaml", "{}")
    return made


@pytest.fixture
def missed(team: Team, slack: FakeSlack) -> Team:
    """One product whose delivery is missing, before anybody was told."""
    team.product("orders", "#orders-alerts")
    team.watch(BEGIN)
    return team


def text(slack: FakeSlack) -> str:
    """All that stands in the channels, as one text."""
    return json.dumps(slack.roots, ensure_ascii=False)


def test_a1_a_storm_in_one_channel_holds_up_no_other(team: Team, limited: FakeSlack) -> None:
    for number in range(30):
        team.product(f"a{number:02}", "#orders-alerts")
    team.product("zebra", "#platform")
    team.watch(BEGIN)

    # In the second one owners hear of what is missing with so much else.
    team.watch(MISSED)
    team.watch("2026-05-11T07:28:00Z")

    assert "zebra is missing" in text(limited)
    assert "25 of 30" in text(limited) or "30 incidents at once" in text(limited)


def test_a2_a_channel_that_refuses_stands_there_until_it_is_mended(missed: Team, slack: FakeSlack) -> None:
    slack.fault("chat.postMessage", "error", code="is_archived")
    refused = missed.watch(MISSED)
    still = missed.watch("2026-05-11T07:20:00Z")
    shown = missed.dq("status", "registry", "--as-of", "2026-05-11T07:21:00Z").out
    mended = missed.watch("2026-05-11T08:20:00Z")

    assert (refused.code, still.code, mended.code) == (4, 4, 0)
    assert "could not be delivered" in shown
    assert "orders is missing" in text(slack)


def test_a3_a_slack_that_cannot_be_reached_is_said_in_words_and_by_exit_codes(
    missed: Team, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_SLACK_URL", "http://127.0.0.1:9/api/")
    monkeypatch.setenv("DQ_SEND_SECONDS", "1")
    first = missed.watch(MISSED)
    later = missed.watch("2026-05-11T07:30:00Z")
    doctor = missed.dq("doctor")

    assert "1 message for slack:#orders-alerts pending since" in first.err
    assert later.code == 4
    assert "token check failed" in doctor.out


def test_a4_a_product_that_flaps_for_twelve_hours_is_six_messages_in_its_thread(
    team: Team, slack: FakeSlack
) -> None:
    quarterly = {
        '"0 6 * * *"': '"*/15 * * * *"',
        "unit: d\n": "unit: d\n",
        'grace: 30m, partition: {day: "{due - 1d:%F}"}': 'grace: 2m, partition: {day: "{due:%F-%H-%M}"}',
        "logicalType: date, physicalType: date": "logicalType: string, physicalType: string",
    }
    team.product("orders", "#orders-alerts", **quarterly)
    at = datetime(2026, 5, 11, tzinfo=UTC)
    team.watch(at)
    for _ in range(48):
        at += timedelta(minutes=15)
        team.watch(at + timedelta(minutes=3))
        team.came("orders", f"{at:%F-%H-%M}", (at + timedelta(minutes=8)).isoformat())
        team.watch(at + timedelta(minutes=10))
    while_it_flaps = len(slack.replies)
    for hours in (1, 2, 3):
        for minutes in range(15, 61, 15):
            due = at + timedelta(hours=hours - 1, minutes=minutes)
            team.came("orders", f"{due:%F-%H-%M}", due.isoformat())
            team.watch(due + timedelta(minutes=3))

    delivery, *budget = slack.roots
    assert len(budget) <= 1, "the error budget is used up once"
    assert while_it_flaps <= 6
    assert len(slack.replies) <= 6
    assert delivery["text"].startswith("RESOLVED")


def test_a5_a_tool_that_nothing_serves_is_told_at_the_gate(team: Team) -> None:
    team.product("orders", "#orders-alerts", **{"tool: slack": "tool: carrier-pigeon"})

    ran = team.dq("validate", "registry")

    assert (ran.code, "warning alert-tool-unknown" in ran.out) == (0, True)


def test_a5_somebody_can_say_that_they_are_on_it(missed: Team, slack: FakeSlack) -> None:
    missed.watch(MISSED)

    ran = missed.dq("ack", "orders", "--by", "ana", "--as-of", "2026-05-11T07:15:00Z")

    assert ran.code == 0
    assert "ana" in text(slack)


def test_a6_the_message_says_what_somebody_needs_at_three_in_the_morning(
    team: Team, slack: FakeSlack
) -> None:
    inputs = {"servers:": "customProperties: [{property: inputs, value: [orders]}]\nservers:"}
    team.product(
        "orders",
        "#orders-alerts",
        **{
            "status: active": "status: active\nname: Orders of the shop\n"
            "description: {purpose: Closes the day.}\n"
            "team: {members: [{username: ana, role: owner, "
            "customProperties: [{property: slack, value: U012AB3CD}]}]}"
        },
    )
    team.product("revenue", "#platform", **inputs)
    team.watch("2026-05-09T12:00:00Z")
    for name in ("orders", "revenue"):
        team.came(name, "2026-05-09", "2026-05-10T06:10:00Z")
    team.watch("2026-05-10T06:40:00Z")
    team.came("revenue", "2026-05-10", "2026-05-11T06:05:00Z")
    team.watch(MISSED)
    told = text(slack)
    (command,) = {one.strip() for one in re.findall("```(.+?)```", told)}
    home = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    pasted = subprocess.run(
        ["sh", "-c", command], cwd=team.folder, env=home, capture_output=True, text=True, check=False
    )

    wanted = ("Orders of the shop: Closes the day.", "location", "last on time", "revenue", "<@U012AB3CD>")
    assert [one for one in wanted if one not in told] == []
    assert pasted.returncode == 0, pasted.stderr
    assert "orders is missing" in pasted.stdout


def test_a6_after_the_end_nothing_is_missing_any_more(missed: Team, slack: FakeSlack) -> None:
    missed.watch(MISSED)
    missed.came("orders", "2026-05-10", "2026-05-11T08:00:00Z")
    missed.watch("2026-05-11T08:05:00Z")

    assert "came 2 h late" in text(slack)
    assert "Nothing arrived" not in text(slack)


def test_a7_whom_a_delivery_blocks_is_said_by_the_watcher_itself(team: Team, slack: FakeSlack) -> None:
    team.product("orders", "#orders-alerts")
    team.put(
        "registry/revenue.odcs.yaml",
        "apiVersion: v3.2.0\nkind: DataContract\nid: finance.revenue\nversion: 1.0.0\nstatus: active\n"
        "customProperties: [{property: inputs, value: [orders]}]\n"
        "schema: [{name: report, properties: [{name: id, logicalType: integer}]}]\n",
    )
    team.watch(BEGIN)
    team.watch(MISSED)

    assert "finance.revenue" in text(slack)


def test_a8_the_end_is_said_though_somebody_deleted_the_message(missed: Team, slack: FakeSlack) -> None:
    missed.watch(MISSED)
    slack.messages.clear()
    missed.came("orders", "2026-05-10", "2026-05-11T08:00:00Z")
    missed.watch("2026-05-11T08:05:00Z")

    assert [one["text"].partition(":")[0] for one in slack.roots] == ["RESOLVED"]


def test_w3_what_is_given_up_is_not_called_delivered(missed: Team, slack: FakeSlack) -> None:
    missed.watch(MISSED)
    at = datetime(2026, 5, 11, 7, 12, tzinfo=UTC)
    for _ in range(15):
        day, at = f"{at:%F}", at + timedelta(days=1)
        missed.came("orders", day, f"{at:%F}T06:01:00Z")
        missed.watch(at)

    (root,) = slack.roots
    assert root["text"].startswith("GIVEN UP")
    assert "RESOLVED" not in json.dumps(root)
    assert "#2eb67d" not in json.dumps(root), "green says that all is well"
