"""Many incidents at once: everybody is told soon, in few messages, and every end is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from threading import current_thread, main_thread

import pytest
from fakes.breaches import DUE, breach, recovery
from fakes.slack import TOKEN, FakeSlack
from sqlalchemy import func, select, update

from dq.alerts import tables
from dq.alerts.channel import Capabilities, MessageRef, OpenChannel, Sent
from dq.alerts.channels import load
from dq.alerts.drain import drain
from dq.alerts.incident import CREATE, DIGEST_CONTRACT
from dq.alerts.record import acknowledge
from dq.alerts.route import AlertRoute
from dq.alerts.tables import OutboxStatus
from dq.contracts.incident import IncidentKey


def key(number):
    return IncidentKey(f"product{number}", "orders", "daily")


def storm(tell, numbers, target="#orders-alerts"):
    tell(*(breach(1, key=key(number)) for number in numbers), routes=(AlertRoute("slack", target),))


def words(message):
    return str(message.get("attachments")) + message["text"]


def test_five_incidents_at_once_are_five_messages(tell, send, slack):
    storm(tell, range(5))
    send()

    assert (len(slack.roots), len(slack.replies)) == (5, 0)


def test_six_incidents_at_once_are_one_digest_with_six_in_its_thread(tell, send, slack):
    storm(tell, range(6))
    drained = send()

    [digest] = slack.roots
    assert (drained.sent, drained.overdue) == (7, 0)
    assert digest["text"] == "ERROR: 6 incidents at once"
    assert all(f"product{number}/orders/daily" in words(digest) for number in range(6))
    assert {reply["thread_ts"] for reply in slack.replies} == {digest["ts"]}
    assert [reply["text"] for reply in slack.replies] == ["ERROR: Orders were not delivered by 08:00"] * 6


def test_what_comes_minutes_later_joins_the_digest_and_later_still_is_news(tell, send, slack, clock):
    storm(tell, range(6))
    send()
    clock.pass_by(minutes=9)
    storm(tell, [6])
    send()
    clock.pass_by(minutes=2)
    storm(tell, [7])
    send()

    assert [root["text"] for root in slack.roots] == [
        "ERROR: 7 incidents at once",
        "ERROR: Orders were not delivered by 08:00",
    ]
    assert len(slack.replies) == 7


def test_a_digest_says_how_many_are_over_and_then_that_all_are(tell, send, slack):
    storm(tell, range(6))
    send()
    tell(*(recovery(1, key=key(number)) for number in range(4)))
    send()
    between = words(slack.roots[0])
    tell(*(recovery(1, key=key(number)) for number in range(4, 6)))
    send()

    [digest] = slack.roots
    assert "4 of 6" in between
    assert digest["text"] == "RESOLVED: 6 incidents at once"
    ends = [reply["text"] for reply in slack.replies if reply["text"].startswith(("Resolved at", "All"))]
    # The members' own messages show their ends.
    assert ends == ["All 6 closed: 6 resolved."]
    assert [reply["text"].partition(":")[0] for reply in slack.replies[:6]] == ["RESOLVED"] * 6
    assert {reply["thread_ts"] for reply in slack.replies} == {digest["ts"]}


def test_a_member_that_breaks_again_opens_its_digest_again(tell, send, slack, clock):
    storm(tell, range(6))
    send()
    tell(*(recovery(1, key=key(number)) for number in range(6)))
    send()
    clock.pass_by(minutes=1)
    tell(breach(2, key=key(0)), routes=(AlertRoute("slack", "#orders-alerts"),))
    send()

    [digest] = slack.roots
    assert digest["text"] == "ERROR: 6 incidents at once"
    assert "Orders were not delivered by 08:00: Broken again soon after it was resolved." in [
        reply["text"] for reply in slack.replies
    ]


def test_whoever_takes_a_digest_takes_all_that_it_stands_for(tell, send, slack, store, clock):
    storm(tell, range(6))
    send()
    [digest] = slack.roots
    with store.write() as tx:
        acknowledge(tx, digest["metadata"]["event_payload"]["incident"], "ana", clock())
    send()

    assert all("Acknowledged by ana" in words(message) for message in (*slack.roots, *slack.replies[:6]))
    assert [reply["text"] for reply in slack.replies[6:]] == ["Acknowledged by ana."]


def test_a_channel_that_is_limited_holds_up_no_other(tell, send, slack, clock):
    slack.fault("chat.postMessage", "rate", retry_after="60")
    storm(tell, range(2))
    storm(tell, [7], "#platform")

    send()

    assert [post["channel"] for post in slack.posts] == ["C0PLATFORM"]


def test_every_target_has_its_turn_before_one_has_its_second(tell, send, slack):
    storm(tell, range(4))
    storm(tell, range(10, 13), "#platform")

    send()

    assert [post["channel"] for post in slack.posts][:4] == ["C0ORDERS01", "C0PLATFORM"] * 2


def test_a_new_incident_goes_before_steps_of_old_ones(tell, send, slack, clock):
    storm(tell, [1, 2])
    send()
    slack.posts.clear()
    tell(breach(2, key=key(1)), breach(2, key=key(2)), routes=(AlertRoute("slack", "#orders-alerts"),))
    storm(tell, [3])

    send()

    assert "thread_ts" not in slack.posts[0]


def test_three_limited_targets_stop_the_whole_channel(tell, store, channels, slack, clock):
    slack.fault("chat.postMessage", "rate", times=9, retry_after="60")
    for number, target in enumerate(("#orders-alerts", "C0ORDERS01", "#platform", "C0PLATFORM")):
        storm(tell, [number], target)

    drain(store, channels, clock)

    assert len(slack.called("chat.postMessage")) == 3


def test_a_drain_waits_for_a_limit_as_long_as_it_is_patient(tell, store, channels, slack, clock):
    slack.fault("chat.postMessage", "rate", retry_after="20")
    storm(tell, [1])

    def slept(seconds):
        clock.pass_by(seconds=seconds)

    hasty = drain(store, channels, clock, sleep=slept, patience=timedelta(seconds=19))
    patient = drain(store, channels, clock, sleep=slept, patience=timedelta(seconds=20))

    assert (hasty.sent, hasty.overdue, patient.sent, patient.overdue) == (0, 1, 1, 0)
    assert clock() == DUE + timedelta(minutes=30, seconds=20)


def test_the_pace_of_a_channel_is_kept_for_each_of_its_targets(tell, store, slack, terminal, clock):
    opened = load()["slack"].open({"token": TOKEN, "base_url": slack.url}, terminal.append)
    storm(tell, range(3))
    storm(tell, [7], "#platform")

    drained = drain(
        store,
        {"slack": opened},
        clock,
        sleep=lambda seconds: clock.pass_by(seconds=seconds),
        patience=timedelta(seconds=30),
    )

    said = [float(post["ts"]) - (DUE + timedelta(minutes=30)).timestamp() for post in slack.posts]
    assert drained.overdue == 0
    assert [round(seconds) for seconds in said] == [0, 0, 1, 2]


def test_what_becomes_due_while_a_drain_looks_is_not_left_for_the_next(tell, store, slack, channels, clock):
    """Whenever it does: a channel looks at its clock many times, and each look may be the one before it."""
    paced = {"slack": replace(channels["slack"], can=replace(channels["slack"].can, pace_seconds=1))}

    def ticking():
        seen = clock()
        if current_thread() is not main_thread():
            clock.pass_by(seconds=0.01)
        return seen

    def slept(seconds):
        clock.pass_by(seconds=seconds)

    for looks in range(1, 16):
        orders = (AlertRoute("slack", "#orders-alerts"),)
        tell(breach(1, key=key(looks)), routes=orders)
        drain(store, paced, clock)
        slack.messages.clear()
        tell(recovery(1, key=key(looks)), routes=orders)
        drain(store, paced, clock)
        due = clock() + timedelta(seconds=0.01 * looks)
        with store.write() as tx:
            tx.execute(
                update(tables.outbox)
                .where(tables.outbox.c.state == OutboxStatus.READY, tables.outbox.c.operation == CREATE)
                .values(not_before=due)
            )

        drained = drain(store, paced, ticking, sleep=slept, patience=timedelta(seconds=5))

        assert (looks, drained.overdue, len(slack.roots)) == (looks, 0, 1)


class Silent:
    """A channel that says nothing for a long time."""

    def __init__(self, until):
        self.until = until

    def create(self, target, message, key, below=None):
        assert self.until.wait(300)
        raise TimeoutError


def test_a_channel_that_hangs_holds_up_no_other(tell, store, channels, slack, clock):
    told = FakeSlackHeard(slack)
    hanging = OpenChannel(Silent(told), Capabilities(thread=False, update=False, reconcile=False))
    tell(breach(1), routes=(AlertRoute("hanging", "x"), AlertRoute("slack", "#orders-alerts")))

    drain(store, {"hanging": hanging, **channels}, clock)

    assert len(slack.posts) == 1


class FakeSlackHeard:
    """Waits until Slack has a message."""

    def __init__(self, slack: FakeSlack):
        self.slack = slack

    def wait(self, seconds):
        import time

        until = time.monotonic() + seconds
        while not self.slack.posts and time.monotonic() < until:
            time.sleep(0.01)
        return bool(self.slack.posts)


@pytest.mark.parametrize("deleted", ["the digest", "everything"])
def test_a_digest_that_somebody_deleted_is_made_again(tell, send, slack, deleted):
    storm(tell, range(6))
    send()
    gone = slack.roots if deleted == "the digest" else list(slack.messages.values())
    for message in gone:
        slack.messages.pop(message["ts"])
    tell(*(recovery(1, key=key(number)) for number in range(6)))
    drained = send()

    assert (drained.overdue, drained.undelivered) == (0, ())
    assert [root["text"] for root in slack.roots] == ["RESOLVED: 6 incidents at once"]


class Board:
    """A channel that changes no message; `said` is what stands there, with how many facts."""

    def __init__(self, thread):
        self.said = []
        self.open = OpenChannel(
            self, Capabilities(thread=thread, update=False, reconcile=False, uses_digests=True)
        )

    def create(self, target, message, key, parent=None):
        self.said.append(("create", message.title.partition(" at ")[0], len(message.facts)))
        return Sent(MessageRef(target, key))

    def reply(self, receipt, message, key):
        self.said.append(("reply", message.note.partition(" at ")[0], 0))
        return Sent(MessageRef(receipt.place, key))


BOARD = (AlertRoute("board", "x"),)


@pytest.mark.parametrize("thread", [False, True])
def test_a_channel_that_changes_no_message_is_told_in_one_list(tell, store, clock, thread):
    board = Board(thread)
    tell(*(breach(1, key=key(number)) for number in range(30)), routes=BOARD)
    drain(store, {"board": board.open}, clock)
    tell(breach(2, key=key(0)), routes=BOARD)
    drain(store, {"board": board.open}, clock)
    tell(*(recovery(day, key=key(n)) for day, n in [(2, 0), *((1, n) for n in range(30))]))
    drained = drain(store, {"board": board.open}, clock)

    assert drained.overdue == 0
    # Of the facts, twenty of them, how many more there are, and a command.
    assert board.said == [("create", "30 incidents", 22), ("reply", "All 30 closed: 30 resolved.", 0)]


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("more", [3, 7])
def test_what_comes_later_is_told_where_a_digest_cannot_be_changed(tell, store, clock, thread, more):
    board = Board(thread)
    tell(*(breach(1, key=key(number)) for number in range(6)), routes=BOARD)
    drain(store, {"board": board.open}, clock)
    tell(*(breach(1, key=key(number)) for number in range(6, 6 + more)), routes=BOARD)
    drained = drain(store, {"board": board.open}, clock)

    later = ["Orders were not delivered by 08:00"] * 3 if more == 3 else ["7 incidents"]
    assert drained.overdue == 0
    assert [what for _, what, _ in board.said] == ["6 incidents", *later]


def test_two_digests_of_one_place_that_are_open_stop_nobody(tell, store, send, slack, clock):
    for number in range(2):
        of = IncidentKey(DIGEST_CONTRACT, "slack:#orders-alerts", f"2026-05-01T08:30:0{number}Z")
        tell(replace(breach(1, key=of), occurred_at=clock()))
    storm(tell, range(6))
    drained = send()

    assert (drained.overdue, drained.broken) == (0, {})
    assert len(slack.roots) == 2
    assert len(slack.replies) == 6


def test_a_storm_is_folded_once_by_two_senders(tell, store, channels, slack, clock):
    storm(tell, range(12))
    drain(store, channels, clock)
    drain(store, channels, clock)

    with store.read() as tx:
        left = tx.execute(
            select(func.count())
            .select_from(tables.outbox)
            .where(tables.outbox.c.state != OutboxStatus.SENT, tables.outbox.c.wait == "")
        ).scalar_one()
    assert (len(slack.roots), len(slack.replies), left) == (1, 12, 0)


def test_t32_a_digest_that_is_over_says_how_each_ended(tell, send, slack):
    names = [f"p{number}" for number in range(7)]
    keys = [IncidentKey(name, name, "daily") for name in names]
    tell(*(replace(breach(key=key), title=f"{key.object} is missing") for key in keys))
    send()

    tell(*(replace(recovery(key=key), title=f"{key.object} came 2 h late") for key in keys))
    send()

    digest = next(str(root) for root in slack.roots)
    assert ("is missing" in digest, digest.count("came 2 h late") >= 7) == (False, True)
