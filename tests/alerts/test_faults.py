"""What arrives when Slack is slow, limited or away, and when two things happen at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes.breaches import breach, recovery
from fakes.slack import TOKEN

from dq.alerts import incident_store
from dq.alerts.channel import OpenChannel
from dq.alerts.channels import load
from dq.alerts.drain import backoff, drain
from dq.contracts.incident import IncidentKey

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

    assert (drained.overdue, len(slack.posts), len(slack.roots), len(slack.replies)) == (0, 2, 1, 1)
    assert slack.roots[0]["text"].startswith("RESOLVED")


@pytest.mark.parametrize("fault", LOST)
def test_a_message_that_slack_lost_is_sent_after_two_searches(tell, send, slack, clock, fault):
    slack.fault("chat.postMessage", **fault, accept=False)
    tell(breach(1))

    first = send()
    early = send()
    clock.pass_by(seconds=10)
    late = send()

    assert (first.overdue, first.next_at, early.sent, late.sent) == (1, clock(), 0, 1)
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
    assert "Possible duplicate" not in str(slack.posts[0])
    assert "Possible duplicate" in str(slack.posts[1])


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

    assert (drained.overdue, before, len(slack.called("conversations.history"))) == (1, 1, 2)
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

    assert (unclear.sent, unclear.overdue) == (0, 3)
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
    assert "Possible duplicate" in str(slack.posts[0])


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

    assert (drained.overdue, calls_in_the_pause, len(slack.posts)) == (2, 1, 2)


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

    assert (len(slack.calls), drained.overdue, drained.next_at) == (1, 2, clock() + timedelta(seconds=30))


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
    nobody = load()["slack"].open({"token": TOKEN, "base_url": "http://127.0.0.1:1/"}, terminal.append)
    tell(breach(1))

    waits = []
    for _ in range(4):
        drained = drain(store, {"slack": nobody}, clock)
        waits.append((drained.next_at - clock()).total_seconds())
        clock.at = drained.next_at
    drain(store, channels, clock)

    assert (waits, len(slack.posts)) == ([1, 2, 4, 8], 1)


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


def test_what_nobody_takes_is_given_up_a_day_after_the_resolve(tell, send, slack, clock, store):
    (incident,) = tell(breach(1))
    send()
    tell(recovery(1))
    slack.fault("chat.update", "rate", times=400)
    slack.fault("chat.postMessage", "rate", times=400)
    for _ in range(60):
        send()
        clock.pass_by(minutes=30)

    with store.read() as tx:
        dead = [step.detail for step in incident_store.history(tx, incident) if step.kind == "dead"]
    assert [(text.split()[0], text.split()[-1]) for text in dead] == [
        ("update", "ratelimited"),
        ("reply:resolved", "ratelimited"),
    ]


def test_a_channel_that_answers_nothing_is_left_alone_for_a_while(tell, send, slack, clock):
    slack.fault("chat.postMessage", "drop", times=50, accept=False)
    slack.fault("conversations.history", "drop", times=50)
    for name in range(5):
        tell(breach(1, key=IncidentKey("orders", f"table{name}", "daily-by-8")))

    send()

    assert len(slack.called("chat.postMessage")) == 3


class Interrupted:
    """A sender during whose call something else happens, before or after the post."""

    def __init__(self, sender, then, when="after"):
        self.sender, self.then, self.when = sender, then, when

    def create(self, target, message, key, below=None):
        if self.when == "before":
            self.then()
        answer = self.sender.create(target, message, key, below)
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
    if drop:
        slack.fault("chat.postMessage", "drop", accept=accept)
    during = Interrupted(channels["slack"].sender, lambda: tell(recovery(1)), when)
    tell(breach(1))

    drain(store, {"slack": OpenChannel(during, channels["slack"].can)}, clock)
    clock.pass_by(seconds=10)
    drained = drain(store, channels, clock)

    shown = [root["text"].partition(":")[0] for root in slack.roots]
    assert shown == ([] if drop and not accept else ["RESOLVED"])
    assert drained.overdue == 0


def test_a_sender_that_overslept_its_lease_does_not_hide_what_it_sent(tell, store, slack, channels, clock):
    def sleep():
        clock.pass_by(seconds=61)
        drain(store, channels, clock)

    slow = Interrupted(channels["slack"].sender, sleep)
    tell(breach(1))

    drain(store, {"slack": OpenChannel(slow, channels["slack"].can)}, clock)

    assert len(slack.posts) == 1
