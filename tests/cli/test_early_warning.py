"""Early warnings through the real watcher and Slack: one message, which becomes the breach or is resolved."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Place, contract
from fakes.slack import TOKEN, FakeSlack
from jsonschema import Draft202012Validator

from dq.operations.output_schemas import json_schema

CHANNELS = {"#orders": "C0ORDERS01", "#raw": "C0RAW00001"}
DAYS, FIRST = 30, datetime(2026, 5, 1, 6, tzinfo=UTC)
WARN = "grace: 30m, warn: usual, falseWarnings: 10/quarter"
WARNED, GREEN = "WARNING: orders is at risk: day=2026-05-30", "#2eb67d"


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(channels=CHANNELS) as workspace:
        yield workspace


class Team(Place):
    """A team whose table is due at six; it usually comes forty minutes before."""

    def history(self, made_from: str = "") -> None:
        """Thirty deliveries of `orders`, and of the product that it is made from, if any."""
        inputs = f"customProperties: [{{property: inputs, value: [{made_from}]}}]\nservers:"
        parts = {"grace: 30m": WARN} | ({"servers:": inputs} if made_from else {})
        self.put("registry/orders.odcs.yaml", contract("orders", **parts))
        if made_from:
            text = contract(made_from, **{'"0 6 * * *"': '"0 4 * * *"'})
            self.put(f"registry/{made_from}.odcs.yaml", text)
        for number in range(DAYS):
            self.came("orders", number, -40)
            if made_from:
                self.came(made_from, number, -140)
        self.watch(DAYS - 1, 60, "--since", "2026-04-30T12:00:00Z")

    def came(self, name: str, number: int, minutes: float) -> None:
        """The delivery of a day, some minutes after six."""
        day = FIRST + timedelta(days=number - 1)
        marker = self.put(f"lake/{name}/day={day:%F}/_SUCCESS", "")
        when = (FIRST + timedelta(days=number, minutes=minutes)).timestamp()
        os.utime(marker, (when, when))

    def words(self, number: int, minutes: float, *options: str) -> list[str]:
        now = FIRST + timedelta(days=number, minutes=minutes)
        return ["watch", "registry", "--as-of", f"{now:%FT%TZ}", *options]

    def watch(self, number: int, minutes: float, *options: str) -> Any:
        ran = self.dq(*self.words(number, minutes, "--format", "json", *options))
        assert ran.code in (0, 1), ran.all
        assert list(Draft202012Validator(json_schema("watch")).iter_errors(ran.json)) == []
        return ran.json

    def status(self, number: int, minutes: float) -> Any:
        now = FIRST + timedelta(days=number, minutes=minutes)
        document = self.dq("status", "registry", "--format", "json", "--as-of", f"{now:%FT%TZ}").json
        assert list(Draft202012Validator(json_schema("status")).iter_errors(document)) == []
        return {row["contract"]: row["warnings"] for row in document["deliveries"]}


@pytest.fixture
def team(tmp_path: Path, url: str, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch) -> Team:
    for name in os.environ:
        if name.startswith(("DQ_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DQ_STORE_URL", url)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("DQ_SLACK_URL", slack.url)
    return Team(tmp_path)


def titles(slack: FakeSlack) -> list[str]:
    return [message["text"].split("\n")[0] for message in slack.roots]


def test_a_warning_becomes_the_message_of_the_breach(team: Team, slack: FakeSlack) -> None:
    team.history("raw")
    assert titles(slack) == []

    ticks = {minutes: team.watch(DAYS, minutes) for minutes in (-45, -41)}
    # The input is due at four and does not come either; its own miss is at half past.
    at_risk = team.watch(DAYS, -38)
    warned = [title for title in titles(slack) if "orders" in title]
    text, status = str(slack.roots), team.status(DAYS, -30)["orders"]
    team.watch(DAYS, -5)
    team.watch(DAYS, 32)
    breached = [title for title in titles(slack) if "orders" in title]
    team.came("raw", DAYS, 35)
    team.came("orders", DAYS, 45)
    team.watch(DAYS, 50)

    assert {minutes: tick["at_risk"] for minutes, tick in ticks.items()} == {-45: [], -41: []}
    assert [row["contract"] for row in at_risk["at_risk"]] == ["orders"]
    # While the input is missing, its message is the one that counts.
    assert warned == []
    assert breached == []
    assert "orders" in text
    assert status["at_risk_since"] == "2026-05-31T05:22:00+00:00"
    assert team.status(DAYS, 60)["orders"]["warned_then_late"] == 1


def test_one_message_from_the_warning_to_the_late_delivery(team: Team, slack: FakeSlack) -> None:
    team.history()
    seen = {}
    for minutes in (-45, -38, -37, 10, 30, 31, 40):
        team.watch(DAYS, minutes)
        seen[minutes] = titles(slack)
    warning = str(slack.roots[0])
    team.came("orders", DAYS, 45)
    team.watch(DAYS, 50)

    missing = ["ERROR: orders is missing: day=2026-05-30"]
    assert seen == {
        -45: [], -38: [WARNED], -37: [WARNED], 10: [WARNED], 30: [WARNED], 31: missing, 40: missing,
    }  # fmt: skip
    assert titles(slack) == ["RESOLVED: orders came 45 min late: day=2026-05-30"]
    assert len(slack.called("chat.postMessage")) == 1 + len(slack.replies)
    assert "Nothing arrived in time: what was at risk is a breach now." in str(slack.replies)
    assert "At risk" not in warning
    incidents = team.dq("incidents", "--all", "--format", "json").json["incidents"]
    assert [incident["state"] for incident in incidents] == ["resolved"]


def test_the_message_says_what_is_usual_and_what_is_missing(team: Team, slack: FakeSlack) -> None:
    # The input is late within its grace: it has no incident of its own.
    team.history("raw")
    team.put(
        "registry/raw.odcs.yaml",
        contract("raw", **{'"0 6 * * *"': '"0 4 * * *"', "grace: 30m": "grace: 3h"}),
    )

    team.watch(DAYS, -10)

    assert titles(slack) == [WARNED]
    usual = "19 of the last 20 came by 05:20; it is 05:50"
    assert f"{usual} and neither data nor input `raw` is there; breach at 06:30" in str(slack.roots)


def test_data_in_time_takes_the_message_back(team: Team, slack: FakeSlack) -> None:
    team.history()
    team.watch(DAYS, -30)
    team.came("orders", DAYS, -20)
    team.watch(DAYS, -15)

    assert titles(slack) == ["RESOLVED: orders arrived in time, no longer at risk: day=2026-05-30"]
    assert GREEN in str(slack.roots)
    assert team.status(DAYS, 35)["orders"]["at_risk_since"] is None
    team.watch(DAYS, 35)
    assert len(slack.roots) == 1
    warnings = team.status(DAYS, 40)["orders"]
    assert (warnings["warned_then_on_time"], warnings["warned_then_late"]) == (1, 0)


def test_no_warning_while_the_inputs_are_there(team: Team, slack: FakeSlack) -> None:
    team.history("raw")
    team.came("raw", DAYS, -140)

    for minutes in (-38, 0, 25):
        team.watch(DAYS, minutes)

    assert titles(slack) == []
    assert team.status(DAYS, 25)["orders"]["at_risk_since"] is None


DIES_AT_THE_NETWORK = """
import os, signal, sys
def watch(event, args):
    if event == "socket.connect" and args[1][1] == int(os.environ["DIES_AT"]):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
from dq.cli.main import main
main()
"""


def test_a_watcher_that_is_killed_after_the_warning_sends_it_once(team: Team, slack: FakeSlack) -> None:
    team.history()
    ran = subprocess.run(
        [sys.executable, "-c", DIES_AT_THE_NETWORK, *team.words(DAYS, -30)],
        cwd=team.folder,
        env={**os.environ, "DIES_AT": str(slack.port)},
        timeout=300,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL
    assert titles(slack) == []

    team.watch(DAYS, -29)
    team.watch(DAYS, -28)

    assert titles(slack) == [WARNED]
    assert len(slack.called("chat.postMessage")) == 1


def test_the_metrics_count_warnings(team: Team) -> None:
    team.history()
    team.watch(DAYS, -30)

    now = FIRST + timedelta(days=DAYS, minutes=-30)
    text = team.dq("metrics", "--as-of", f"{now:%FT%TZ}").out

    assert "dq_at_risk_cycles 1\n" in text
    assert 'dq_early_warnings_cycles{outcome="warned_late"} 0\n' in text


def test_the_portal_shows_what_is_at_risk_until_it_came(team: Team) -> None:
    team.history()
    now = FIRST + timedelta(days=DAYS)

    def portal(minutes: float) -> tuple[str, list[Any]]:
        """What Today says, and the deliveries at risk in the status of the product."""
        at = f"{now + timedelta(minutes=minutes):%FT%TZ}"
        assert team.dq("portal", "build", "site", "registry", "--as-of", at).code == 0
        status = json.loads((team.folder / "site/products/orders/status.json").read_text())
        today = re.sub("<[^>]*>", "", (team.folder / "site/index.html").read_text())
        return today, status["deliveries"][0]["warnings"]["at_risk"]

    before, none_yet = portal(-45)
    team.watch(DAYS, -30)
    warned, at_risk = portal(-30)
    team.came("orders", DAYS, -20)
    team.watch(DAYS, -15)
    after, none_left = portal(-15)

    assert "at risk since 2026-05-31 05:30 UTC, breach at 2026-05-31 06:30 UTC" in warned
    assert ["At risk 1" in today for today in (before, warned, after)] == [False, True, False]
    assert "at risk since" not in before + after
    assert (none_yet, none_left) == ([], [])
    assert at_risk == [
        {
            "due_at": "2026-05-31T06:00:00+00:00",
            "breach_at": "2026-05-31T06:30:00+00:00",
            "warned_at": "2026-05-31T05:30:00+00:00",
        }
    ]
    assert team.status(DAYS, -30)["orders"]["at_risk"] == at_risk
