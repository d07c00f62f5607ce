"""A newer tz database that moves deliveries, between two ticks of the real watcher.

Nothing that lies ahead has a row, so nothing has to be rewritten; what came due keeps its instant.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.command import contract

BIN = Path(sys.executable).parent / "dq"
# What clocks in Berlin show, by another release: those of a place two hours ahead, or one behind.
AHEAD, BEHIND = "Africa/Nairobi", "Europe/London"


class Watcher:
    """`dq` in a process of its own, which takes tzdata from a folder."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        berlin = {"grace: 30m,": "grace: 30m, timezone: Europe/Berlin,"}
        (folder / "registry").mkdir()
        (folder / "lake/orders").mkdir(parents=True)
        (folder / "registry/orders.odcs.yaml").write_text(contract("orders", **berlin))

    def release(self, name: str, like: str = "") -> str:
        """A copy of the tz database under another name, with the clocks of Berlin like another place's."""
        path = self.folder / name
        shutil.copytree(Path(importlib.import_module("tzdata").__path__[0]), path / "tzdata")
        zones = path / "tzdata" / "zoneinfo"
        if like:
            shutil.copyfile(zones / like, zones / "Europe" / "Berlin")
        (path / "tzdata" / "__init__.py").write_text(f"IANA_VERSION = {name!r}\n")
        return str(path)

    def dq(self, release: str, *words: str) -> subprocess.CompletedProcess[str]:
        home = {name: value for name, value in os.environ.items() if not name.startswith(("DQ_", "SLACK_"))}
        return subprocess.run(
            [BIN, *words],
            cwd=self.folder,
            env={**home, "PYTHONPATH": release, "DQ_STORE_URL": self.url},
            capture_output=True,
            text=True,
            check=False,
        )

    def watch(self, release: str, at: str) -> list[str]:
        """The states of the messages that a tick at an instant told."""
        told = self.folder / "told.jsonl"
        before = len(told.read_text().splitlines()) if told.exists() else 0
        ran = self.dq(release, "watch", "registry", "--as-of", at, "--channel", "file:told.jsonl")
        assert ran.returncode in (0, 1), ran.stderr
        lines = told.read_text().splitlines()[before:] if told.exists() else []
        return [json.loads(line)["state"] for line in lines]


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    return Watcher(tmp_path, f"sqlite:///{tmp_path}/dq.db")


def test_what_is_missing_keeps_its_instant_and_what_comes_follows_the_newer_one(watcher: Watcher) -> None:
    old, new = watcher.release("2026a"), watcher.release("2026b", AHEAD)
    watcher.watch(old, "2026-05-10T12:00:00Z")

    # Due at 04:00Z, and by the newer release at 03:00Z.
    missing = watcher.watch(old, "2026-05-11T04:40:00Z")
    again = watcher.watch(new, "2026-05-11T04:45:00Z")
    moved = watcher.watch(new, "2026-05-12T03:35:00Z")
    audit = watcher.dq(new, "audit", "registry")

    assert (missing, again, moved) == (["open"], [], ["open"])
    assert "computed with tzdata 2026a, now tzdata 2026b" in audit.stdout


def test_a_delivery_that_comes_twice_by_a_newer_release_is_no_second_alert(watcher: Watcher) -> None:
    old, new = watcher.release("2026a"), watcher.release("2026b", BEHIND)
    watcher.watch(old, "2026-05-10T12:00:00Z")

    # Due at 04:00Z; by the newer release, which comes in between, at 05:00Z.
    missing = watcher.watch(old, "2026-05-11T04:40:00Z")
    watcher.watch(new, "2026-05-11T05:40:00Z")
    day = watcher.folder / "lake/orders/day=2026-05-10"
    day.mkdir()
    (day / "_SUCCESS").touch()
    os.utime(day / "_SUCCESS", (1778479200, 1778479200))
    watcher.watch(new, "2026-05-11T06:10:00Z")
    audit = watcher.dq(new, "audit", "registry")

    told = [json.loads(line) for line in (watcher.folder / "told.jsonl").read_text().splitlines()]
    assert missing == ["open"]
    assert len({one["incident"] for one in told}) == 1
    assert told[-1]["state"] == "resolved"
    assert audit.returncode == 1


def test_a_delivery_that_a_newer_release_puts_into_the_past_is_named_by_the_audit(watcher: Watcher) -> None:
    old, new = watcher.release("2026a"), watcher.release("2026b", AHEAD)
    watcher.watch(old, "2026-05-09T12:00:00Z")
    watcher.watch(old, "2026-05-11T03:30:00Z")

    # Due at 04:00Z; by the newer release, which comes half an hour before, at 03:00Z.
    watcher.watch(new, "2026-05-11T04:45:00Z")
    audit = watcher.dq(new, "audit", "registry")

    assert audit.returncode == 1
    assert "due 2026-05-11 03:00Z: the contract has this cycle, the store has no row" in audit.stdout
