"""What arrives in Slack when all goes well, and how little is said."""

from __future__ import annotations

import pytest
from fakes.breaches import ROUTES, breach, recovery
from sqlalchemy import select

from dq.alerts import tables
from dq.alerts.channel import Capabilities, OpenChannel
from dq.alerts.drain import drain
from dq.alerts.record import acknowledge, record
from dq.alerts.route import AlertRoute
from dq.contracts.outcome import Severity


def test_a_breach_is_posted_once(tell, send, slack):
    tell(breach(1))

    first, second = send(), send()

    assert (first.sent, second.sent, second.overdue, len(slack.posts)) == (1, 0, 0, 1)
    assert slack.posts[0]["text"] == "ERROR: Orders were not delivered by 08:00"


def test_the_same_breach_twice_changes_nothing(tell, send, slack, kinds):
    tell(breach(1), breach(1))
    send()
    tell(breach(1))
    send()

    assert kinds() == ["opened", "sent"]
    assert len(slack.posts) == 1


def test_a_late_delivery_recolours_the_message_and_closes_the_thread(tell, send, slack):
    tell(breach(1))
    send()
    tell(recovery(1))
    send()

    [root], [reply] = slack.roots, slack.replies
    assert (root["text"], root["attachments"][0]["color"]) == (
        "RESOLVED: Orders were not delivered by 08:00",
        "#2eb67d",
    )
    assert reply["thread_ts"] == root["ts"]
    assert reply["text"] == "Resolved at 2026-05-01 10:10 UTC, after 2 h 10 min.\n2 of 4 misses used"


def test_a_product_down_for_ten_hours_is_one_message_and_few_replies(tell, send, slack, clock):
    for day in range(1, 41):
        tell(breach(day))
        send()

    assert len(slack.roots) == 1
    assert [reply["text"].partition(" missed")[0] for reply in slack.replies] == [
        "2 deliveries",
        "4 deliveries",
        "8 deliveries",
        "16 deliveries",
    ]


def test_steps_that_piled_up_are_told_as_one(tell, send, slack):
    tell(breach(1))
    send()
    tell(breach(2), breach(3), breach(4), recovery(1), recovery(2), recovery(3), recovery(4))
    send()

    assert len(slack.called("chat.update")) == 1
    assert [reply["text"].partition(" at")[0] for reply in slack.replies] == ["Resolved"]


def test_what_resolved_before_it_was_sent_is_never_sent(tell, send, slack, kinds):
    tell(breach(1), recovery(1))

    drained = send()

    assert (drained.sent, drained.overdue, slack.calls) == (0, 0, [])
    assert kinds() == ["opened", "resolved", "suppressed"]


def test_a_breach_soon_after_the_resolve_goes_into_the_old_thread(tell, send, slack, clock):
    tell(breach(1))
    send()
    tell(recovery(1))
    send()
    clock.pass_by(minutes=59)
    tell(breach(2))
    send()

    [root] = slack.roots
    assert root["text"].startswith("ERROR")
    assert [reply["text"] for reply in slack.replies][-1] == "Broken again soon after it was resolved."


def test_a_reopened_incident_that_was_never_told_is_told(tell, send, slack, clock):
    tell(breach(1), recovery(1))
    send()
    tell(breach(2))
    send()

    assert [root["text"] for root in slack.roots] == ["ERROR: Orders were not delivered by 08:00"]


def test_an_acknowledgement_shows_in_the_message_and_the_thread(tell, send, slack, store, clock):
    [opened] = tell(breach(1))
    send()
    with store.write() as tx:
        acknowledge(tx, opened, "ana", clock())
    send()

    assert [reply["text"] for reply in slack.replies] == ["Acknowledged by ana."]
    assert "Acknowledged by ana" in str(slack.roots[0]["attachments"])


def test_a_worse_breach_is_also_told_to_those_who_only_take_the_worst(tell, send, slack):
    routes = (*ROUTES, AlertRoute("slack", "#platform", frozenset({Severity.CRITICAL})))
    tell(breach(1), routes=routes)
    send()
    tell(breach(2, Severity.CRITICAL), routes=routes)
    send()

    assert [root["channel"] for root in slack.roots] == ["C0ORDERS01", "C0PLATFORM"]


def test_a_breach_without_a_route_goes_to_the_console(tell, send, terminal):
    tell(breach(1), routes=())
    send()

    assert terminal[0].startswith("[!] ERROR: Orders were not delivered by 08:00\n")


def test_the_callers_transaction_carries_the_incident(store, send, slack, clock):
    def fail():
        with store.write() as tx:
            record(tx, breach(1), ROUTES, clock())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert (send().sent, slack.posts) == (0, [])


class Faulty:
    """A channel with a fault of its own, whose text holds a secret."""

    def create(self, target, message, key, below=None):
        raise KeyError("xoxb-secret")


def test_the_fault_of_one_channel_does_not_silence_the_others(tell, store, slack, channels, clock):
    broken = OpenChannel(Faulty(), Capabilities(thread=False, update=False, reconcile=False))
    tell(breach(1), routes=(AlertRoute("faulty", "x"), *ROUTES))

    drained = drain(store, {**channels, "faulty": broken}, clock)

    assert (drained.overdue, len(slack.posts)) == (1, 1)
    with store.read() as tx:
        assert (
            "the channel failed with KeyError" in tx.execute(select(tables.outbox.c.reason)).scalars().all()
        )
