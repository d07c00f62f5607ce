"""What could not be said: it is seen, it lives again, and somebody else hears of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.breaches import ROUTES, breach, recovery
from fakes.slack import CHANNELS
from sqlalchemy import delete, update

from dq.alerts import drain as outstanding
from dq.alerts import tables
from dq.alerts.drain import drain
from dq.alerts.incident import DIGEST_CONTRACT
from dq.alerts.route import CONSOLE, AlertRoute
from dq.contracts.incident import IncidentKey

PLATFORM = AlertRoute("slack", "#platform")


@pytest.fixture
def archived(slack, monkeypatch):
    """The channel of orders does not exist until `mend` is called."""
    monkeypatch.delitem(CHANNELS, "#orders-alerts")
    return lambda: monkeypatch.setitem(CHANNELS, "#orders-alerts", "C0ORDERS01")


@pytest.fixture
def left(store, clock):
    def read():
        with store.read() as tx:
            return [(one.place, one.count, one.reason) for one in outstanding.rejected(tx)]

    return read


def test_what_a_place_refused_stands_until_it_takes_it(tell, send, slack, clock, archived, left, kinds):
    tell(breach(1))
    first = send()
    clock.pass_by(minutes=59)
    quiet = send()
    archived()
    clock.pass_by(minutes=1)
    mended = send()

    place = ("slack:#orders-alerts", 1, "channel_not_found")
    assert [(one.place, one.count, one.reason) for one in first.undelivered] == [place]
    assert (len(quiet.undelivered), kinds().count("dead")) == (1, 1)
    assert (mended.undelivered, left(), len(slack.posts)) == ((), [], 1)


def test_what_is_refused_again_is_no_news_and_stays(tell, send, slack, clock, archived, left, kinds):
    tell(breach(1))
    for _ in range(5):
        send()
        clock.pass_by(hours=1)

    assert len(left()) == 1
    assert kinds().count("dead") == 1


def test_the_next_breach_tries_a_refused_place_at_once(tell, send, slack, clock, archived, left):
    tell(breach(1))
    send()
    archived()
    tell(breach(2))
    send()
    clock.pass_by(hours=2)
    send()

    assert (len(slack.posts), left()) == (1, [])


def test_a_refused_alert_whose_incident_ended_is_needed_no_more(tell, send, slack, clock, archived, left):
    tell(breach(1))
    send()
    tell(recovery(1))
    clock.pass_by(hours=1)
    send()

    assert left() == []


def test_the_platform_hears_of_what_a_place_refused_and_then_the_console(
    tell, store, channels, slack, terminal, clock, archived, monkeypatch
):
    tell(breach(1))
    drain(store, channels, clock, fallbacks=(PLATFORM, CONSOLE))
    told = [post["channel"] for post in slack.posts]
    monkeypatch.delitem(CHANNELS, "#platform")
    slack.messages.clear()
    tell(breach(2, key=breach(1).key.__class__("other", "orders", "daily")))
    drain(store, channels, clock, fallbacks=(PLATFORM, CONSOLE))

    assert told == ["C0PLATFORM"]
    assert [text.splitlines()[0] for text in terminal] == ["[!] ERROR: Orders were not delivered by 08:00"]


def test_a_contract_that_names_another_place_has_it_told_at_once(
    tell, store, send, slack, clock, archived, left
):
    tell(breach(1))
    send()
    with store.write() as tx:
        moved = outstanding.reroute(tx, lambda *_: [PLATFORM, CONSOLE], clock())
    send()

    assert (moved, left()) == (1, [])
    assert [post["channel"] for post in slack.posts] == ["C0PLATFORM"]


def test_a_contract_that_nobody_read_leaves_it_as_it_is(tell, store, send, clock, archived, left):
    tell(breach(1))
    send()
    with store.write() as tx:
        moved = outstanding.reroute(tx, lambda *_: None, clock())
        moved += outstanding.reroute(tx, lambda *_: ROUTES, clock())

    assert (moved, len(left())) == (0, 1)


def test_what_is_dismissed_stands_no_more_and_is_remembered(tell, store, send, clock, archived, left, kinds):
    tell(breach(1))
    send()
    with store.write() as tx:
        gone = outstanding.dismiss(tx, "slack", "#orders-alerts", "ana", clock())
        none = outstanding.dismiss(tx, "slack", "#platform", "ana", clock())
    clock.pass_by(hours=3)
    drained = send()

    assert (gone, none, left(), drained.undelivered) == (1, 0, [], ())
    assert "dismissed" in kinds()


def test_what_waits_is_seen_with_its_age_and_its_last_error(tell, store, send, slack, clock):
    slack.fault("chat.postMessage", "rate", times=9, retry_after="30")
    tell(breach(1))
    drained = send()

    [waits] = drained.undelivered
    assert (waits.place, waits.count, waits.since, waits.reason, waits.rejected) == (
        "slack:#orders-alerts",
        1,
        breach(1).occurred_at,
        "ratelimited",
        False,
    )


def test_what_was_sent_before_the_store_was_lost_is_found_again(tell, store, send, slack, clock):
    """The store is as a copy of it was, made after the breach was recorded and before it was told."""
    tell(breach(1))
    send()
    untried = {"state": "ready", "attempt": 0, "tried_at": None, "rendered": None, "reference": None}
    with store.write() as tx:
        tx.execute(delete(tables.message))
        tx.execute(delete(tables.outbox).where(tables.outbox.c.wait != ""))
        tx.execute(update(tables.outbox).values(**untried))
    clock.pass_by(minutes=11)
    found = send()
    tell(recovery(1))
    send()

    assert (found.sent, len(slack.posts), len(slack.roots)) == (1, 2, 1)
    assert slack.roots[0]["text"].startswith("RESOLVED")


def test_what_nobody_could_say_for_long_is_said_once(tell, send, slack, clock):
    tell(breach(1))
    clock.pass_by(minutes=11)
    late = send()

    assert (late.sent, len(slack.posts)) == (1, 1)


def test_the_end_is_said_though_somebody_deleted_the_message(tell, send, slack):
    tell(breach(1))
    send()
    slack.messages.clear()
    tell(recovery(1))
    drained = send()

    assert drained.overdue == 0
    assert [root["text"] for root in slack.roots] == ["RESOLVED: Orders were not delivered by 08:00"]


def test_a_sender_that_overslept_takes_its_second_copy_away(tell, store, slack, channels, clock):
    """Another has looked for the message in vain, twice, and has sent it, before the first one's arrives."""

    class Sleepy:
        def __init__(self, sender):
            self.sender = sender

        def create(self, target, message, key, below=None):
            clock.pass_by(seconds=61)
            drain(store, channels, clock)
            clock.pass_by(seconds=10)
            drain(store, channels, clock)
            return self.sender.create(target, message, key, below)

        def __getattr__(self, name):
            return getattr(self.sender, name)

    tell(breach(1))
    sleepy = replace(channels["slack"], sender=Sleepy(channels["slack"].sender))
    drain(store, {"slack": sleepy}, clock)

    assert (len(slack.posts), len(slack.roots)) == (2, 1)
    tell(recovery(1))
    drain(store, channels, clock)
    assert slack.roots[0]["text"].startswith("RESOLVED")


def storm(tell):
    tell(*(breach(1, key=IncidentKey(f"product{number}", "orders", "daily")) for number in range(6)))


def to_the_platform(key, _):
    """As the command line has it: a digest is of no contract."""
    return None if key.contract == DIGEST_CONTRACT else [PLATFORM, CONSOLE]


def test_an_edited_contract_reaches_what_waits_below_a_refused_digest(
    tell, store, send, slack, clock, archived, left
):
    storm(tell)
    refused = send()
    with store.write() as tx:
        moved = outstanding.reroute(tx, to_the_platform, clock())
    done = send()

    assert [(one.count, one.rejected) for one in refused.undelivered] == [(1, True), (6, False)]
    assert (moved, done.undelivered, left()) == (6, (), [])
    assert {post["channel"] for post in slack.posts} == {"C0PLATFORM"}
    assert (len(slack.roots), len(slack.replies)) == (1, 6)


def test_a_digest_stays_while_one_of_its_contracts_is_as_it_was(tell, store, send, clock, archived, left):
    storm(tell)
    send()
    with store.write() as tx:
        moved = outstanding.reroute(
            tx, lambda key, _: [PLATFORM] if key.contract == "product0" else None, clock()
        )

    assert (moved, len(left())) == (1, 1)


def test_a_refused_digest_that_is_dismissed_leaves_nothing_waiting(tell, store, send, clock, archived):
    storm(tell)
    send()
    with store.write() as tx:
        gone = outstanding.dismiss(tx, "slack", "#orders-alerts", "ana", clock())
    clock.pass_by(hours=3)

    assert (gone, send().undelivered) == (1, ())
