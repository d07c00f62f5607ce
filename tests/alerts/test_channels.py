"""What every channel on the shelf keeps, and the shelf itself."""

from __future__ import annotations

import logging
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fakes.breaches import DUE, breach, recovery
from fakes.slack import TOKEN

import dq.alerts.channels
from dq.alerts.channel import Channel, LookupMiss, MessageRef, PermanentFailure, Sent
from dq.alerts.channels import load
from dq.alerts.drain import drain
from dq.alerts.incident import step
from dq.alerts.message import render
from dq.alerts.record import record
from dq.alerts.route import AlertRoute
from dq.contracts import install
from dq.contracts.outcome import UsageError
from dq.store import open_store

CHANNELS = load()
OPENED = step(None, breach(1), DUE).incident
RESOLVED = step(OPENED, recovery(1), DUE).incident
CREATED = render(OPENED, "create")
WORDY = step(
    None,
    replace(
        breach(1),
        title="<!channel> & " * 1000,
        facts=tuple((f"<label & {n}> " * 20, "<!here> & <https://x|y>\n" * 400) for n in range(50)),
    ),
    DUE,
).incident


@pytest.fixture(params=sorted(CHANNELS))
def at(request, places, terminal):
    """A channel, open, and a target of it."""
    assert request.param in places, "tell fakes/shelf.py how to set up the new channel"
    place = places[request.param]
    return CHANNELS[request.param].open(place.settings, terminal.append), place.target


@pytest.fixture
def wire(places):
    """All that the channels have said, as text."""
    return lambda: "\n".join(text for place in places.values() for text in place.said())


def test_a_channel_says_what_is_broken_and_what_to_do(at, wire):
    opened, target = at

    answer = opened.sender.create(target, CREATED, "key-1")

    assert isinstance(answer, Sent)
    for words in (CREATED.title, "finance.revenue", "dq check orders --partition 2026-05-01", CREATED.budget):
        assert words in wire()


def test_a_channel_says_that_it_is_resolved(at, wire):
    opened, target = at
    receipt = opened.sender.create(target, CREATED, "key-1").receipt

    answer = opened.sender.reply(receipt, render(RESOLVED, "reply:resolved"), "key-2")

    assert isinstance(answer, Sent)
    assert "Resolved at 2026-05-01 10:10 UTC, after 2 h 10 min." in wire()


@pytest.mark.parametrize("at", [one for one in CHANNELS if CHANNELS[one].can.update], indirect=True)
def test_a_channel_changes_a_message_if_it_says_it_can(at, wire):
    opened, target = at
    receipt = opened.sender.create(target, CREATED, "key-1").receipt

    answer = opened.sender.update(receipt, render(RESOLVED, "update"))

    assert isinstance(answer, Sent)
    assert "delivered 10:10 UTC" in wire()


@pytest.mark.parametrize("at", [one for one in CHANNELS if CHANNELS[one].can.reconcile], indirect=True)
def test_a_channel_finds_a_message_by_its_key_if_it_says_it_can(at, clock):
    opened, target = at
    root = opened.sender.create(target, CREATED, "key-1").receipt
    reply = opened.sender.reply(root, render(RESOLVED, "reply:resolved"), "key-2").receipt
    since = clock() - timedelta(seconds=60)

    found = [
        opened.sender.find(target, "key-1", since, None),
        opened.sender.find(target, "key-2", since, root),
        opened.sender.find(target, "key-3", since, None),
    ]

    assert found == [Sent(root), Sent(reply), LookupMiss()]


def test_a_channel_takes_the_longest_message_as_it_is(at):
    opened, target = at

    created = opened.sender.create(target, render(WORDY, "create", repeat=True), "key-1")

    assert (type(created), created.note) == (Sent, "")


def test_a_message_is_never_more_than_a_screen(at, wire):
    opened, target = at

    opened.sender.create(target, render(WORDY, "create", repeat=True), "key-1")

    assert len(wire().splitlines()) <= 24


def test_a_channel_keeps_its_secrets(at, caplog, slack, places):
    opened, target = at
    caplog.set_level(logging.DEBUG)
    slack.fault("chat.postMessage", "status", status=500)
    slack.fault("chat.postMessage", "drop")
    slack.fault("chat.postMessage", "error", code="invalid_auth")

    answers = [opened.sender.create(target, CREATED, f"key-{n}") for n in range(4)]

    assert TOKEN not in f"{opened!r} {answers!r} {caplog.text} {vars(CHANNELS['slack'].make)}"


def test_slack_sees_no_mention_that_we_did_not_write(at, slack):
    opened, target = at

    opened.sender.create(target, render(WORDY, "create"), "key-1")

    marked = [post["text"] + str(post["attachments"]) for post in slack.posts]
    assert not any("<!" in words or "<https" in words for words in marked)


def test_the_file_holds_a_key_once(tmp_path):
    target = str(tmp_path / "alerts.jsonl")
    sender = CHANNELS["file"].open({}, print).sender

    answers = [sender.create(target, CREATED, "key-1") for _ in range(3)]

    assert answers == [Sent(MessageRef(target, "key-1"))] * 3
    assert len(Path(target).read_text().splitlines()) == 1


def test_the_file_survives_half_a_line(tmp_path):
    path = tmp_path / "alerts.jsonl"
    path.write_text('{"key": "key-1", "oper')
    sender = CHANNELS["file"].open({}, print).sender

    sender.create(str(path), CREATED, "key-1")

    assert [line[:15] for line in path.read_text().splitlines()] == ['{"key": "key-1"'] * 2


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_stands_in_the_place_of_a_file_is_a_broken_route(tmp_path, what):
    canary, place = tmp_path / "canary", tmp_path / "alerts.jsonl"
    canary.write_text("mine\n")
    if what == "link":
        place.symlink_to(canary)
    else:
        os.mkfifo(place)

    answer = CHANNELS["file"].open({}, print).sender.create(str(place), CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert canary.read_text() == "mine\n"


def test_a_new_file_of_alerts_is_for_its_owner_alone(tmp_path):
    place = tmp_path / "alerts.jsonl"

    CHANNELS["file"].open({}, print).sender.create(str(place), CREATED, "key-1")

    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_is_a_broken_route(tmp_path):
    answer = CHANNELS["file"].open({}, print).sender.create(str(tmp_path), CREATED, "key-1")

    assert answer == PermanentFailure(f"{tmp_path}: Is a directory", "route")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        pytest.param({}, "need a bot token. Set SLACK_BOT_TOKEN", id="no token"),
        pytest.param({"token": TOKEN, "base_url": "http://slack.example/api/"}, "in the clear", id="no TLS"),
        pytest.param({"token": TOKEN, "timeout_seconds": "ten"}, "Slack: 'ten' seconds", id="no number"),
    ],
)
def test_slack_says_what_is_wrong_with_its_settings(settings, says):
    with pytest.raises(UsageError, match=says) as caught:
        CHANNELS["slack"].open(settings, print)

    assert TOKEN not in str(caught.value)


def test_slack_finds_a_message_on_a_later_page_of_history(places, slack, clock):
    target = places["slack"].target
    sender = CHANNELS["slack"].open(places["slack"].settings, print).sender
    receipt = sender.create(target, CREATED, "key-0").receipt
    slack.messages |= {
        f"{float(receipt.reference) + n}": {"channel": receipt.place, "ts": f"{float(receipt.reference) + n}"}
        for n in range(1, 500)
    }

    assert sender.find(target, "key-0", clock() - timedelta(seconds=60), None) == Sent(receipt)


def test_the_shelf_holds_what_lies_on_disk():
    folder = Path(dq.alerts.channels.__file__).resolve().parent
    files = {path.stem for path in folder.glob("*.py") if not path.name.startswith("_")}

    assert {name.replace("-", "_") for name in CHANNELS} == files


def test_loading_the_shelf_does_not_import_slack():

    script = "import sys, dq.alerts.channels as c; c.load(); print('slack_sdk' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert said.stdout == "False\n"


PAGER = '''"""A pager."""

from dq.alerts.channel import Capabilities, Channel, MessageRef, Sent

class Pager:
    def __init__(self, write):
        self.write = write

    def create(self, target, message, key, below=None):
        self.write(f"{target}: {message.title}")
        return Sent(MessageRef(target, key))

CHANNEL = Channel(
    id="pager",
    summary="Beeps.",
    can=Capabilities(thread=False, update=False, reconcile=False),
    make=lambda settings, write: Pager(write),
)
'''


def test_a_new_channel_is_one_file(tmp_path, monkeypatch, clock):
    package = tmp_path / "house" / "more_channels"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "pager.py").write_text(PAGER)
    monkeypatch.syspath_prepend(package.parent)
    import more_channels

    beeps = []
    found = install.load_plugins(more_channels, "CHANNEL", Channel)
    store = open_store(f"sqlite:///{tmp_path / 'dq.db'}")
    with store.write() as tx:
        record(tx, breach(1), (AlertRoute("pager", "ana"),), clock())
    drained = drain(store, {"pager": found["pager"].open({}, beeps.append)}, clock)
    store.close()

    assert (drained.sent, beeps) == (1, ["ana: Orders were not delivered by 08:00"])


def test_without_slack_sdk_the_channel_says_how_to_get_it():

    script = (
        "import sys; sys.modules['slack_sdk'] = None\n"
        "from dq.alerts.channels import load\n"
        "from dq.contracts.outcome import MissingTool\n"
        "try: load()['slack'].open({'token': 'x'}, print)\n"
        "except MissingTool as error: print(error)"
    )

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert re.fullmatch(
        r"Alerts in Slack need slack-sdk, which is not installed. pip install .*\[slack\].*\n", said.stdout
    )
