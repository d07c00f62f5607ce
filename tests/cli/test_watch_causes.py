"""Many products that are made from one, which is missing: who is told, through the real watcher.

The faults A4 (one cause behind 500 products were 500 messages) and A1 (nobody else was heard meanwhile).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED
from fakes.mesh import CHANNELS, Mesh
from fakes.slack import TOKEN, FakeSlack

BELOW = 100
GREEN = "#2eb67d"
HELD, CAME, DONE, AFTER = (f"2026-05-11T{hour}Z" for hour in ("07:28:00", "09:00:00", "09:05:00", "09:21:00"))


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack(channels=CHANNELS) as workspace:
        yield workspace


@pytest.fixture
def mesh(tmp_path: Path, url: str, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    for name in os.environ:
        if name.startswith(("DQ_", "SLACK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DQ_STORE_URL", url)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("DQ_SLACK_URL", slack.url)
    monkeypatch.setenv("DQ_PLATFORM_CHANNEL", "slack:#platform")
    return Mesh(tmp_path)


def texts(slack: FakeSlack) -> list[tuple[str, str]]:
    """What stands in the channels: where, and its first line."""
    names = {value: name for name, value in CHANNELS.items()}
    return [(names[one["channel"]], one["text"].split("\n")[0]) for one in slack.roots]


def test_all_products_below_one_that_is_missing_are_one_message(mesh: Mesh, slack: FakeSlack) -> None:
    names = mesh.made_from_raw(BELOW)
    mesh.watch(BEGIN)

    mesh.watch(MISSED)
    # For a quarter of an hour so much at once is the platform's.
    at_once = texts(slack)
    mesh.watch(HELD)
    held, of_raw = texts(slack), str(slack.roots[-1])
    for name in ("raw", *names):
        mesh.came(name, "2026-05-10", CAME)
    mesh.watch(DONE)
    mesh.watch(AFTER)

    assert at_once == [("#platform", "ERROR: many deliveries missing under the watcher's folder")]
    assert str(BELOW) in of_raw, "it says how many wait"
    assert held[1:] == [("#raw", "ERROR: raw is missing: day=2026-05-10")]
    assert texts(slack) == [
        (
            "#platform",
            "HANDED OVER: 101 of 101 under the watcher's folder still missing; see their own incidents",
        ),
        ("#raw", "RESOLVED: raw came 3 h late: day=2026-05-10"),
    ]


def test_what_came_before_its_owners_were_told_is_said_of_the_cause_alone(
    mesh: Mesh, slack: FakeSlack
) -> None:
    names = mesh.made_from_raw(20)
    mesh.watch(BEGIN)

    mesh.watch(MISSED)
    for name in ("raw", *names):
        mesh.came(name, "2026-05-10", "2026-05-11T07:15:00Z")
    mesh.watch("2026-05-11T07:20:00Z")

    assert [channel for channel, _ in texts(slack)] == ["#platform", "#raw"]
    assert texts(slack)[1][1] == "PAST: missed deliveries without an alert: 1 came late"


def test_t31_many_misses_at_once_are_green_only_where_all_came(mesh: Mesh, slack: FakeSlack) -> None:
    names = ["raw", *mesh.made_from_raw(7)]
    mesh.watch(BEGIN)
    mesh.watch(MISSED)
    mesh.came(names[0], "2026-05-10", "2026-05-11T07:15:00Z")
    mesh.watch("2026-05-11T07:20:00Z")
    for name in names[1:4]:
        mesh.came(name, "2026-05-10", "2026-05-11T07:22:00Z")

    mesh.watch(HELD)

    text = dict(texts(slack))["#platform"]
    assert text == ("HANDED OVER: 4 of 8 under the watcher's folder still missing; see their own incidents")
    (root,) = [one for one in slack.roots if one["channel"] == CHANNELS["#platform"]]
    assert GREEN not in str(root)
    for name in names:
        mesh.came(name, "2026-05-10", CAME)
    mesh.watch(DONE)
    assert dict(texts(slack))["#platform"] == text, "it has ended, and stays as it was said"


def test_t31_many_misses_at_once_that_all_came_are_resolved(mesh: Mesh, slack: FakeSlack) -> None:
    names = ["raw", *mesh.made_from_raw(7)]
    mesh.watch(BEGIN)
    mesh.watch(MISSED)
    for name in names:
        mesh.came(name, "2026-05-10", "2026-05-11T07:15:00Z")

    mesh.watch("2026-05-11T07:20:00Z")

    assert dict(texts(slack))["#platform"] == "RESOLVED: all 8 deliveries under the watcher's folder arrived"
    (root,) = [one for one in slack.roots if one["channel"] == CHANNELS["#platform"]]
    assert GREEN in str(root)
