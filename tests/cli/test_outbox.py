"""What people should have heard and have not, as the commands show it."""

from __future__ import annotations

import re

import pytest
from fakes.command import BEGIN, MISSED, Place, contract
from fakes.slack import CHANNELS, TOKEN, FakeSlack


@pytest.fixture
def slack():
    with FakeSlack() as workspace:
        yield workspace


@pytest.fixture
def place(tmp_path, monkeypatch, slack):
    """A missed delivery whose channel Slack does not know."""
    for name in ("DQ_STORE_URL", "DQ_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv("DQ_SLACK_URL", slack.url)
    monkeypatch.setenv("DQ_SEND_SECONDS", "1")
    place = Place(tmp_path)
    place.put("lake/orders/.keep", "")
    place.put("orders.odcs.yaml", contract("orders"))
    place.dq("watch", ".", "--as-of", BEGIN)
    return place


def test_what_slack_refused_stands_in_every_command_until_it_is_dismissed(place):
    first = place.dq("watch", ".", "--as-of", MISSED)
    again = place.dq("watch", ".", "--as-of", MISSED.replace("07:12", "07:30"))
    shown = [place.dq(*line) for line in (("outbox",), ("status", "."), ("doctor",))]
    letting_go = place.dq("outbox", "--dismiss", "slack:#orders", "--by", "ana")
    after = place.dq("watch", ".", "--as-of", MISSED.replace("07:12", "07:40"))

    said = "1 message for slack:#orders could not be delivered since 2026-05-11 06:30Z: channel_not_found."
    assert (first.code, again.code) == (4, 4)
    assert said in first.err
    assert said in again.err
    # The console, as nobody named a platform's channel.
    assert "[!]" in first.out
    assert all(said in " ".join(one.out.split()) for one in shown)
    assert (shown[0].code, letting_go.code, after.code) == (4, 0, 0)


def test_the_command_that_a_message_names_works_in_a_shell(place):
    said = place.dq("watch", ".", "--as-of", MISSED).err

    command = re.search(r"discard the alerts: dq (outbox --dismiss .*)", said)[1]

    assert command == "outbox --dismiss 'slack:#orders'"
    assert place.dq(*command.replace("'", "").split(), "--by", "ana").code == 0


def test_a_contract_that_names_another_channel_has_it_told_in_the_same_tick(place, slack, monkeypatch):
    monkeypatch.setitem(CHANNELS, "#sales", "C0SALES001")
    place.dq("watch", ".", "--as-of", MISSED)
    place.put("orders.odcs.yaml", contract("orders", **{'"#orders"': '"#sales"'}))
    moved = place.dq("watch", ".", "--as-of", MISSED.replace("07:12", "07:30"))

    assert [post["channel"] for post in slack.posts] == ["C0SALES001"]
    assert moved.code == 0


def test_an_unreachable_slack_is_seen_in_every_tick(place, monkeypatch):
    monkeypatch.setenv("DQ_SLACK_URL", "http://127.0.0.1:1/")
    first = place.dq("watch", ".", "--as-of", MISSED)
    again = place.dq("watch", ".", "--as-of", MISSED.replace("07:12", "07:40"))
    listed = place.dq("outbox", "--format", "json")

    for ran in (first, again):
        assert (
            "1 message for slack:#orders pending since 2026-05-11 06:30Z: ConnectionRefusedError." in ran.err
        )
    # The second one comes after a quarter of an hour.
    assert (first.code, again.code) == (1, 4)
    shown = [(one["target"], one["messages"], one["refused"]) for one in listed.json]
    assert shown == [("#orders", 1, False)]


def test_a_dismissal_needs_who_and_something_to_dismiss(place):
    nobody = place.dq("outbox", "--dismiss", "slack:#orders")
    nothing = place.dq("outbox", "--dismiss", "slack:#orders", "--by", "ana")

    assert (nobody.code, nothing.code) == (2, 2)
    assert place.dq("outbox").out == "No undelivered alerts.\n"
