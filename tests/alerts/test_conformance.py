"""The conformance kit: every channel behind a network, with everything that a network does."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest
from fakes.breaches import DUE, KEY, breach, recovery
from fakes.canary import Canary
from fakes.shelf import SECRETS
from sqlalchemy import text as sql

from dq.alerts.channel import FailureScope, PermanentFailure, RetryableFailure, Sent, UnconfirmedSend
from dq.alerts.channels import load
from dq.alerts.channels._http import post
from dq.alerts.drain import drain
from dq.alerts.incident import step
from dq.alerts.message import render
from dq.alerts.route import AlertRoute
from dq.contracts.access.alert_target import TOOLS
from dq.contracts.incident import IncidentKey

CHANNELS = load()
FAR = sorted({"slack", "slack-webhook", "teams", "webhook", "pagerduty", "email"})
OPENED = step(None, breach(1), DUE).incident
CREATED = render(OPENED, "create")
RESOLVED = render(step(OPENED, recovery(1), DUE).incident, "reply:resolved")
HOSTILE = {
    "a header": "x\r\nBcc: eve@evil.example\r\n\r\nhello",
    "an end of mail": "\r\n.\r\nMAIL FROM:<eve@evil.example>",
    "markup": '<script>alert(1)</script><!channel> [a](https://evil.example) "&quot;',
    "controls": "\x1b[31m\u202e\0\ud800\u2028::error::",
    "no end": "€" * 10_000,
}


def sender(place, channel):
    return CHANNELS[channel].open(place.settings, print).sender


def faulty(kind):
    """The channels that can fail in this way."""
    return pytest.mark.parametrize("channel", [one for one in FAR if kind in FAULTS[one]])


HOOK = {"limit", "later", "broken", "drop", "garbage", "refused", "redirect", "drip"}
FAULTS = dict.fromkeys(FAR, HOOK) | {
    "slack": {"limit", "broken", "drop", "garbage", "refused"},
    "email": {"later", "broken", "drop", "refused"},
}


def test_the_kit_knows_every_channel_and_each_of_its_faults(places):
    assert set(places) == set(CHANNELS) == set(TOOLS)
    assert {one: set(places[one].faults) for one in FAR} == FAULTS


@faulty("limit")
@pytest.mark.parametrize(("said", "waits"), [("30", 30.0), (None, None), ("soon", None), ("99999", 3600.0)])
def test_a_limit_is_waited_for_as_long_as_the_channel_says(places, channel, said, waits):
    places[channel].fault("limit", retry_after=said)

    answer = sender(places[channel], channel).create(places[channel].target, CREATED, "key-1")

    assert (type(answer), answer.retry_after_seconds, places[channel].said()) == (RetryableFailure, waits, [])


@faulty("later")
def test_what_is_refused_for_now_is_tried_again(places, channel):
    places[channel].fault("later")
    channel_sender, target = sender(places[channel], channel), places[channel].target

    answers = [channel_sender.create(target, CREATED, "key-1") for _ in range(2)]

    assert [type(answer) for answer in answers] == [RetryableFailure, Sent]
    assert len(places[channel].said()) == 1


@pytest.mark.parametrize("kind", ["broken", "drop", "garbage"])
@pytest.mark.parametrize("channel", FAR)
def test_what_may_have_arrived_is_never_called_sent_or_refused(places, channel, kind):
    if kind not in FAULTS[channel]:
        kind = "drop"
    places[channel].fault(kind)

    answer = sender(places[channel], channel).create(places[channel].target, CREATED, "key-1")

    # Where a second copy does no harm, it is simply sent again.
    assert type(answer) is (RetryableFailure if channel == "pagerduty" else UnconfirmedSend)
    assert len(places[channel].said()) == 1


@pytest.mark.parametrize("channel", FAR)
def test_where_nobody_listens_nothing_was_sent(places, channel):
    opened = CHANNELS[channel].open(places[channel].nobody, print)

    assert type(opened.sender.create(places[channel].target, CREATED, "key-1")) is RetryableFailure


@faulty("refused")
def test_a_target_that_is_none_is_a_broken_route(places, channel):
    places[channel].fault("refused")

    answer = sender(places[channel], channel).create(places[channel].target, CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert answer.scope is FailureScope.ROUTE


@pytest.mark.parametrize("channel", ["slack-webhook", "teams", "pagerduty", "webhook"])
def test_a_target_that_nobody_named_says_which_variable_would(places, channel):
    answer = sender(places[channel], channel).create("other-data", CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert answer.reason.endswith("_OTHER_DATA")


@faulty("redirect")
@pytest.mark.parametrize("status", [301, 307])
def test_nobody_is_followed_to_another_host(places, channel, hooks, status):
    with Canary() as canary:
        hooks.fault(
            {"slack-webhook": "slack"}.get(channel, channel),
            "redirect",
            to=f"http://127.0.0.1:{canary.port}/",
            status=status,
        )
        answer = sender(places[channel], channel).create(places[channel].target, CREATED, "key-1")

    assert isinstance(answer, PermanentFailure)
    assert canary.heard == []


def test_whoever_answers_byte_by_byte_holds_nobody_up(hooks):
    hooks.fault("webhook", "drip")
    began = time.monotonic()

    answer = post(hooks.url("webhook"), b"{}", {}, timeout_seconds=0.5)

    assert answer == UnconfirmedSend("no answer in time")
    # The drops never end.
    assert time.monotonic() - began < 300


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("channel", sorted(CHANNELS))
def test_a_hostile_text_arrives_as_text(places, channel, text, smtp):
    place, opened = places[channel], sender(places[channel], channel)

    answers = []
    for name, hostile in everywhere(text).items():
        incident = step(None, hostile, DUE).incident
        root = opened.create(place.target, render(incident, "create", repeat=True), f"{name}-1")
        step_said = replace(render(incident, "create"), note="A step.")
        answers += [root, opened.reply(root.receipt, step_said, f"{name}-2")]

    assert {(type(answer), answer.note) for answer in answers} == {(Sent, "")}
    said = "".join(place.said())
    assert not any(sign in said for sign in ("\x1b", "\u202e", "\0", "\ud800"))
    assert not any("<script>" in mail.text("html") for mail in smtp.mails)
    assert all(mail.recipients == ("ana@acme.example",) for mail in smtp.mails)
    assert all(mail.message["Bcc"] is None for mail in smtp.mails)


def everywhere(text):
    """Breaches with the text in each of their fields."""
    return {
        "title": replace(breach(1), title=text),
        "label": replace(breach(1), facts=((text, "x"),)),
        "value": replace(breach(1), facts=(("x", text),) * 12),
        "budget": replace(breach(1), facts=(("budget", text),)),
        "key": replace(breach(1), key=IncidentKey(*(text,) * 3)),
        "subject": replace(breach(1), subject=text),
    }


def test_every_end_is_said_in_the_thread_of_its_beginning(places, hooks, smtp, slack):
    for channel in FAR:
        place, opened = places[channel], sender(places[channel], channel)
        root = opened.create(place.target, CREATED, "key-1")
        opened.reply(root.receipt, RESOLVED, "key-2")

    first, last = (mail.message for mail in smtp.mails)
    trigger, resolve = (post.body for post in hooks.posts["pagerduty"])
    created, ended = (post.body for post in hooks.posts["webhook"])
    assert slack.replies[0]["thread_ts"] == slack.roots[0]["ts"]
    assert (last["In-Reply-To"], last["References"]) == (first["Message-ID"],) * 2
    assert last["Subject"] == f"Re: {first['Subject']}"
    assert (trigger["dedup_key"], trigger["event_action"]) == (resolve["dedup_key"], "trigger")
    assert resolve["event_action"] == "resolve"
    assert (created["incident"], created["state"], ended["state"]) == (ended["incident"], "open", "resolved")
    assert "Resolved at 2026-05-01 10:10 UTC" in ended["note"]


@pytest.mark.parametrize("channel", FAR)
def test_no_secret_is_in_any_word_of_ours(places, channel, store, tell, clock, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    place = places[channel]
    opened = CHANNELS[channel].open(place.settings, print)
    nobody = CHANNELS[channel].open(place.nobody, print)
    answers = []
    for kind in sorted(FAULTS[channel] - {"drip", "redirect"}):
        place.fault(kind)
        answers.append(opened.sender.create(place.target, CREATED, kind))
        place.fault(kind)
        tell(breach(1, key=replace(KEY, object=kind)), routes=(AlertRoute(channel, place.target),))
        drain(store, {channel: opened}, clock)
    answers.append(nobody.sender.create(place.target, CREATED, "key-1"))
    inspect = CHANNELS[channel].inspect
    seen = inspect(place.settings) if inspect else []

    with store.read() as tx:
        tables = ("outbox", "message", "incident", "incident_event", "channel_pause")
        rows = [str(tx.execute(sql(f"select * from {name}")).all()) for name in tables]  # noqa: S608
    words = f"{opened!r} {nobody!r} {answers!r} {seen!r} {caplog.text} {capfd.readouterr()} {rows}"
    assert [secret for secret in SECRETS if secret in words] == []
