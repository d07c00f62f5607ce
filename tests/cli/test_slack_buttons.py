"""`dq watch --every` with buttons below its alerts: a press is seen at once, and no connection stops it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes.command import contract
from fakes.slack import TOKEN
from fakes.socket_slack import APP_TOKEN, SocketSlack

SCRIPT = Path(sys.executable).parent / "dq"
WHO = "U012AB3CD"


@pytest.fixture
def slack() -> Iterator[SocketSlack]:
    with SocketSlack() as workspace:
        yield workspace


class Watcher:
    """A product that is due every ten minutes and never comes, and who watches it in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"

    def begin(self, slack: SocketSlack, every: str, *options: str) -> None:
        (self.folder / "lake/orders").mkdir(parents=True)
        (self.folder / "registry").mkdir()
        parts = {
            '"#orders"': '"#orders-alerts"',
            '"0 6 * * *"': '"*/10 * * * *"',
            'grace: 30m, partition: {day: "{due - 1d:%F}"}': 'grace: 1m, partition: {day: "{due:%F-%H-%M}"}',
            "logicalType: date, physicalType: date": "logicalType: string, physicalType: string",
        }
        (self.folder / "registry/orders.odcs.yaml").write_text(contract("orders", **parts))
        clean = {name: one for name, one in os.environ.items() if not name.startswith(("DQ_", "SLACK_"))}
        tokens = {"SLACK_BOT_TOKEN": TOKEN, "SLACK_APP_TOKEN": APP_TOKEN, "DQ_SLACK_URL": slack.url}
        since = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [SCRIPT, *options, "watch", "registry", "--every", every, "--since", since],
                cwd=self.folder,
                env={**clean, **tokens, "PYTHONUNBUFFERED": "1"},
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def ticks(self) -> int:
        return self.said.count("SLOs: 1")


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    one = Watcher(tmp_path)
    yield one
    one.process.kill()
    one.process.wait(10)


def soon(holds: Callable[[], object]) -> bool:
    """Whether it holds within five minutes."""
    until = time.monotonic() + 300
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return bool(holds())


def test_a_press_shows_at_once_and_not_after_the_pause(watcher: Watcher, slack: SocketSlack) -> None:
    watcher.begin(slack, every="1h")
    assert soon(lambda: slack.roots)
    assert slack.connected()
    assert slack.done(slack.press(slack.roots[0], "dq_ack", WHO))

    assert soon(lambda: any("Acknowledged by" in one["text"] for one in slack.replies)), watcher.said
    assert TOKEN not in watcher.said
    assert APP_TOKEN not in watcher.said


def test_a_press_is_written_to_the_store_of_the_chosen_settings(
    watcher: Watcher, slack: SocketSlack, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text(f'store_url = "sqlite:///{tmp_path}/own.db"\n')
    watcher.begin(slack, "1h", "--config", "own.toml")
    assert soon(lambda: slack.roots)
    assert slack.connected()
    assert slack.done(slack.press(slack.roots[0], "dq_ack", WHO))

    assert soon(lambda: any("Acknowledged by" in one["text"] for one in slack.replies)), watcher.said
    assert not (tmp_path / ".dq").exists()


def test_a_slack_that_lets_nobody_listen_stops_no_tick(watcher: Watcher, slack: SocketSlack) -> None:
    slack.fault("apps.connections.open", "error", times=9, code="invalid_auth")
    watcher.begin(slack, every="1s")

    assert soon(lambda: watcher.ticks() >= 3), watcher.said
    assert watcher.said.count("Slack buttons unavailable: Slack says invalid_auth") == 1
    assert watcher.process.poll() is None


def test_a_connection_that_is_cut_stops_no_tick(watcher: Watcher, slack: SocketSlack) -> None:
    watcher.begin(slack, every="1s")
    assert soon(lambda: slack.roots)
    assert slack.connected()
    slack.cut()
    before = watcher.ticks()

    assert soon(lambda: watcher.ticks() > before + 1), watcher.said
