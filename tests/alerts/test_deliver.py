"""What arrives in Slack when all goes well, when Slack fails, and when two senders work at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes.breaches import ROUTES, breach, recovery
from sqlalchemy import select

from dq.alerts import tables
from dq.alerts.channels._slack_answers import ANSWERS
from dq.alerts.deliver import backoff, drain
from dq.alerts.record import acknowledge, record
from dq.alerts.route import Route
from dq.contracts.outcome import IncidentKey, Severity


@pytest.fixture
def tell(store, clock):
    """Records events, each in a transaction of its own, for the routes."""

    def record_all(*events, routes=ROUTES):
        done = []
        for event in events:
            with store.write() as tx:
                done.append(record(tx, event, routes, clock()))
        return done

    return record_all


@pytest.fixture
def send(store, channels, clock):
    return lambda: drain(store, channels, clock)


@pytest.fixture
def kinds(store):
    """The kinds of all events so far."""

    def read():
        with store.read() as tx:
            return list(
                tx.execute(
                    select(tables.incident_event.c.kind).order_by(tables.incident_event.c.id)
                ).scalars()
            )

    return read


def test_a_breach_is_posted_once(tell, send, slack):
    tell(breach(1))

    first, second = send(), send()

    assert (first.sent, second.sent, second.waiting, len(slack.posts)) == (1, 0, 0, 1)
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
    assert [reply["text"].partition(" by now")[0] for reply in slack.replies] == [
        "Broken 2 times",
        "Broken 4 times",
        "Broken 8 times",
        "Broken 16 times",
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

    assert (drained.sent, drained.waiting, slack.calls) == (0, 0, [])
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
        acknowledge(tx, opened.incident, "ana", clock())
    send()

    assert [reply["text"] for reply in slack.replies] == ["ana is on it."]
    assert "Acknowledged by ana" in str(slack.roots[0]["attachments"])


def test_a_worse_breach_is_also_told_to_those_who_only_take_the_worst(tell, send, slack):
    routes = (*ROUTES, Route("slack", "#platform", frozenset({Severity.CRITICAL})))
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


LOST = [
    pytest.param({"kind": "drop"}, id="the connection drops"),
    pytest.param({"kind": "stall"}, id="no answer comes"),
    pytest.param({"kind": "status", "status": 500}, id="HTTP 500"),
    pytest.param({"kind": "status", "status": 503}, id="HTTP 503"),
    pytest.param({"kind": "garbage"}, id="an answer of a proxy"),
    pytest.param({"kind": "garbage", "body": "[1]"}, id="JSON that is no object"),
    pytest.param({"kind": "garbage", "body": ""}, id="an empty answer"),
    pytest.param({"kind": "error", "code": "fatal_error"}, id="fatal_error"),
    pytest.param({"kind": "error", "code": "internal_error"}, id="internal_error"),
]


@pytest.mark.parametrize("fault", LOST)
def test_a_message_that_slack_took_without_saying_so_is_found_again(tell, send, slack, clock, fault):
    slack.fault("chat.postMessage", **fault, accept=True)
    tell(breach(1))

    drained = send()
    tell(recovery(1))
    send()

    assert (drained.waiting, len(slack.posts), len(slack.roots), len(slack.replies)) == (0, 2, 1, 1)
    assert slack.roots[0]["text"].startswith("RESOLVED")


@pytest.mark.parametrize("fault", LOST)
def test_a_message_that_slack_lost_is_sent_after_two_searches(tell, send, slack, clock, fault):
    slack.fault("chat.postMessage", **fault, accept=False)
    tell(breach(1))

    first = send()
    early = send()
    clock.pass_by(seconds=10)
    late = send()

    assert (first.waiting, first.next_at, early.sent, late.sent) == (1, clock(), 0, 1)
    assert (len(slack.posts), len(slack.called("conversations.history"))) == (1, 2)


@pytest.mark.parametrize("accept", [True, False], ids=["taken", "lost"])
def test_a_reply_is_said_once_too(tell, send, slack, clock, accept):
    tell(breach(1))
    send()
    slack.fault("chat.postMessage", "drop", accept=accept)
    tell(recovery(1))
    send()
    clock.pass_by(seconds=10)
    send()

    assert len(slack.replies) == 1


def test_a_channel_whose_history_nobody_may_read_gets_a_second_copy_that_says_so(tell, send, slack, clock):
    slack.fault("chat.postMessage", "drop", accept=True)
    slack.fault("conversations.history", "error", code="missing_scope")
    tell(breach(1))

    send()

    assert len(slack.posts) == 2
    assert "may be a repeat" not in str(slack.posts[0])
    assert "This may be a repeat" in str(slack.posts[1])


def test_a_search_that_is_limited_waits(tell, send, slack, clock):
    slack.fault("chat.postMessage", "drop", accept=True)
    slack.fault("conversations.history", "rate", retry_after="30")
    tell(breach(1))

    drained = send()
    clock.pass_by(seconds=29)
    send()
    before = len(slack.called("conversations.history"))
    clock.pass_by(seconds=1)
    send()

    assert (drained.waiting, before, len(slack.called("conversations.history"))) == (1, 1, 2)
    assert len(slack.posts) == 1


def test_steps_wait_while_nobody_knows_whether_the_message_is_there(tell, send, slack, clock):
    slack.fault("chat.postMessage", "drop", accept=True)
    slack.fault("conversations.history", "status", status=500)
    tell(breach(1))
    send()
    tell(recovery(1))
    unclear = send()
    clock.pass_by(seconds=10)
    send()

    assert (unclear.sent, unclear.waiting) == (0, 3)
    assert [root["text"].partition(":")[0] for root in slack.roots] == ["RESOLVED"]
    assert len(slack.replies) == 1


def test_a_search_that_never_ends_well_does_not_hold_the_alert_back_for_ever(tell, send, slack, clock):
    slack.fault("chat.postMessage", "drop", accept=False)
    slack.fault("conversations.history", "status", times=200, status=500)
    tell(breach(1))

    for _ in range(20):
        send()
        clock.pass_by(minutes=1)

    assert len(slack.posts) == 1
    assert "This may be a repeat" in str(slack.posts[0])


@pytest.mark.parametrize(
    ("retry_after", "waits"),
    [("1", 1), ("30", 30), (None, 1), ("soon", 1), ("-5", 1), ("nan", 1)],
)
def test_a_rate_limit_is_honoured_by_all_that_go_to_the_channel(tell, send, slack, clock, retry_after, waits):
    slack.fault("chat.postMessage", "rate", retry_after=retry_after)
    tell(breach(1), breach(1, key=IncidentKey("orders", "items", "daily-by-8")))

    drained = send()
    clock.pass_by(seconds=waits - 0.001)
    send()
    calls_in_the_pause = len(slack.calls)
    clock.pass_by(seconds=0.001)
    send()

    assert (drained.waiting, calls_in_the_pause, len(slack.posts)) == (2, 1, 2)


def test_five_rate_limits_keep_the_order_of_an_incident(tell, send, slack, clock):
    tell(breach(1))
    slack.fault("chat.postMessage", "rate", times=5)
    send()
    tell(breach(2))
    for _ in range(5):
        clock.pass_by(seconds=60)
        send()
    tell(recovery(1), recovery(2))
    send()

    assert [method for method, _ in slack.calls] == [
        *["chat.postMessage"] * 6,
        "chat.update",
        "chat.postMessage",
    ]
    assert "thread_ts" not in slack.posts[0]


def test_a_pause_outlives_the_process(tell, store, channels, slack, clock):
    slack.fault("chat.postMessage", "rate", retry_after="30")
    tell(breach(1))
    drain(store, channels, clock)
    tell(breach(1, key=IncidentKey("orders", "items", "daily-by-8")))

    drained = drain(store, channels, clock)

    assert (len(slack.calls), drained.waiting, drained.next_at) == (1, 2, clock() + timedelta(seconds=30))


def test_backoff_doubles_to_five_minutes():
    assert [backoff(attempt, 0.5).total_seconds() for attempt in (1, 2, 3, 9, 10, 99)] == [
        1.5,
        2.5,
        4.5,
        256.5,
        300.5,
        300.5,
    ]


def test_a_slack_that_is_down_gets_the_alert_when_it_is_up(tell, store, clock, channels, slack, terminal):
    from fakes.slack import TOKEN

    from dq.alerts.channels import load

    nobody = load()["slack"].open({"token": TOKEN, "base_url": "http://127.0.0.1:1/"}, terminal.append)
    tell(breach(1))

    waits = []
    for _ in range(4):
        drained = drain(store, {"slack": nobody}, clock)
        waits.append((drained.next_at - clock()).total_seconds())
        clock.at = drained.next_at
    drain(store, channels, clock)

    assert (waits, len(slack.posts)) == ([1, 2, 4, 8], 1)


def by_kind(kind):
    return sorted(code for code, answer in ANSWERS.items() if answer("").__class__.__name__ == kind)


def codes(scope):
    return sorted(code for code, answer in ANSWERS.items() if getattr(answer(""), "scope", None) == scope)


@pytest.mark.parametrize("code", by_kind("NotSent"))
def test_a_code_that_says_wait_is_waited_for(tell, send, slack, clock, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1))

    first = send()
    clock.pass_by(seconds=1)
    send()

    assert (first.waiting, len(slack.posts), len(slack.called("conversations.history"))) == (1, 1, 0)


@pytest.mark.parametrize("code", by_kind("Ambiguous"))
def test_a_code_that_leaves_it_open_is_looked_into(tell, send, slack, code):
    slack.fault("chat.postMessage", "error", code=code, accept=True)
    tell(breach(1))

    send()

    assert (len(slack.posts), len(slack.called("conversations.history"))) == (1, 1)


@pytest.mark.parametrize("code", codes("message"))
def test_a_message_slack_cannot_show_arrives_as_plain_text(tell, send, slack, store, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1))

    drained = send()

    assert (drained.sent, drained.dead, slack.posts[0]["blocks"]) == (1, (), [])
    assert "promised" in slack.posts[0]["text"]
    with store.read() as tx:
        assert tx.execute(select(tables.outbox.c.reason)).scalar_one() == (
            f"sent as plain text, because Slack said {code}"
        )


@pytest.mark.parametrize("code", [*codes("route"), "a_code_of_tomorrow"])
def test_a_broken_route_is_dead_and_somebody_else_is_told(tell, send, slack, terminal, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1))

    drained = send()

    assert [(dead.lane.target, dead.operation, dead.reason) for dead in drained.dead] == [
        ("#orders-alerts", "create", code)
    ]
    assert (drained.waiting, drained.sent, len(terminal)) == (0, 1, 1)


@pytest.mark.parametrize("code", codes("channel"))
def test_a_broken_channel_waits_and_somebody_else_is_told_of_all(tell, send, slack, terminal, clock, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1), breach(1, key=IncidentKey("orders", "items", "daily-by-8")))

    broken = send()
    clock.pass_by(seconds=1)
    mended = send()

    assert (broken.broken, broken.dead, broken.waiting, len(terminal)) == ({"slack": code}, (), 2, 2)
    assert (mended.broken, mended.waiting, len(slack.posts)) == ({}, 0, 2)


def test_a_resolve_is_told_wherever_the_breach_was_told(tell, send, slack, terminal):
    slack.fault("chat.postMessage", "error", code="is_archived")
    tell(breach(1))
    send()
    tell(recovery(1))
    send()

    assert [text.splitlines()[0] for text in terminal] == [
        "[!] ERROR: Orders were not delivered by 08:00",
        "[ok] RESOLVED: Orders were not delivered by 08:00",
    ]


def test_a_channel_that_is_not_set_up_is_named_and_somebody_else_is_told(
    tell, store, channels, clock, terminal
):
    tell(breach(1))

    drained = drain(store, {"console": channels["console"]}, clock)

    assert (drained.broken, drained.waiting, len(terminal)) == ({"slack": "it is not set up here"}, 1, 1)


def test_a_message_that_somebody_deleted_is_posted_again(tell, send, slack):
    tell(breach(1))
    send()
    slack.messages.clear()
    tell(breach(2))
    send()

    assert [root["text"] for root in slack.roots] == ["ERROR: Orders were not delivered by 08:00"]


@pytest.mark.parametrize("code", by_kind("Frozen"))
def test_a_message_that_may_no_longer_change_is_answered_in_its_thread(tell, send, slack, code):
    tell(breach(1))
    send()
    slack.fault("chat.update", "error", code=code)
    tell(recovery(1))

    drained = send()

    assert (drained.waiting, drained.dead, len(slack.replies)) == (0, (), 1)


def test_an_update_that_went_astray_is_simply_sent_again(tell, send, slack, clock):
    tell(breach(1))
    send()
    slack.fault("chat.update", "drop", accept=False)
    tell(recovery(1))
    send()
    clock.pass_by(seconds=1)
    send()

    assert slack.roots[0]["text"].startswith("RESOLVED")
    assert slack.called("conversations.history") == []


def test_what_nobody_takes_is_given_up_a_day_after_the_resolve(tell, send, slack, clock):
    tell(breach(1))
    send()
    tell(recovery(1))
    slack.fault("chat.update", "rate", times=400)
    slack.fault("chat.postMessage", "rate", times=400)
    dead = []
    for _ in range(60):
        dead += send().dead
        clock.pass_by(minutes=30)

    assert [(gone.operation, gone.reason) for gone in dead] == [
        ("update", "ratelimited"),
        ("reply:resolved", "ratelimited"),
    ]


def test_a_channel_that_answers_nothing_is_left_alone_for_a_while(tell, send, slack, clock):
    slack.fault("chat.postMessage", "drop", times=50, accept=False)
    slack.fault("conversations.history", "drop", times=50)
    for name in range(10):
        tell(breach(1, key=IncidentKey("orders", f"table{name}", "daily-by-8")))

    send()

    assert len(slack.called("chat.postMessage")) == 3


class Interrupted:
    """A sender during whose call something else happens, before or after the post."""

    def __init__(self, sender, then, when="after"):
        self.sender, self.then, self.when = sender, then, when

    def create(self, target, message, key):
        if self.when == "before":
            self.then()
        answer = self.sender.create(target, message, key)
        if self.when == "after":
            self.then()
        return answer

    def __getattr__(self, name):
        return getattr(self.sender, name)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("accept", [True, False], ids=["the post arrives", "the post is lost"])
@pytest.mark.parametrize("drop", [True, False], ids=["connection drops", "answer comes"])
def test_a_resolve_while_the_message_is_on_its_way_has_the_last_word(
    tell, store, slack, channels, clock, drop, accept, when
):
    from dq.alerts.channel import Open

    if drop:
        slack.fault("chat.postMessage", "drop", accept=accept)
    during = Interrupted(channels["slack"].sender, lambda: tell(recovery(1)), when)
    tell(breach(1))

    drain(store, {"slack": Open(during, channels["slack"].can)}, clock)
    clock.pass_by(seconds=10)
    drained = drain(store, channels, clock)

    shown = [root["text"].partition(":")[0] for root in slack.roots]
    assert shown == ([] if drop and not accept else ["RESOLVED"])
    assert drained.waiting == 0


def test_a_sender_that_overslept_its_lease_does_not_hide_what_it_sent(tell, store, slack, channels, clock):
    from dq.alerts.channel import Open

    def sleep():
        clock.pass_by(seconds=61)
        drain(store, channels, clock)

    slow = Interrupted(channels["slack"].sender, sleep)
    tell(breach(1))

    drain(store, {"slack": Open(slow, channels["slack"].can)}, clock)

    assert len(slack.posts) == 1


class Faulty:
    """A channel with a fault of its own, whose text holds a secret."""

    def create(self, target, message, key):
        raise KeyError("xoxb-secret")


def test_the_fault_of_one_channel_does_not_silence_the_others(tell, store, slack, channels, clock):
    from dq.alerts.channel import Capabilities, Open

    broken = Open(Faulty(), Capabilities(thread=False, update=False, reconcile=False))
    tell(breach(1), routes=(Route("faulty", "x"), *ROUTES))

    drained = drain(store, {**channels, "faulty": broken}, clock)

    assert (drained.waiting, len(slack.posts)) == (1, 1)
    with store.read() as tx:
        assert (
            "the channel failed with KeyError" in tx.execute(select(tables.outbox.c.reason)).scalars().all()
        )
