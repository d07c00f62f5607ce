"""Each of Slack's error codes and what is done about it."""

from __future__ import annotations

import pytest
from fakes.breaches import breach, recovery
from sqlalchemy import select

from dq.alerts import tables
from dq.alerts.channel import MessageNotEditable, PermanentFailure, RetryableFailure, UnconfirmedSend
from dq.alerts.channels.slack import FAILURE_BY_CODE
from dq.alerts.drain import drain
from dq.contracts.incident import IncidentKey


def by_kind(kind):
    return sorted(code for code, answer in FAILURE_BY_CODE.items() if isinstance(answer(""), kind))


def codes(scope):
    return [code for code in by_kind(PermanentFailure) if FAILURE_BY_CODE[code]("").scope == scope]


@pytest.mark.parametrize("code", by_kind(RetryableFailure))
def test_a_code_that_says_wait_is_waited_for(tell, send, slack, clock, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1))

    first = send()
    clock.pass_by(seconds=1)
    send()

    assert (first.overdue, len(slack.posts), len(slack.called("conversations.history"))) == (1, 1, 0)


@pytest.mark.parametrize("code", by_kind(UnconfirmedSend))
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

    assert (drained.sent, drained.undelivered, slack.posts[0]["blocks"]) == (1, (), [])
    assert "promised" in slack.posts[0]["text"]
    with store.read() as tx:
        assert tx.execute(select(tables.outbox.c.reason).where(tables.outbox.c.wait == "")).scalar_one() == (
            f"sent as plain text, because Slack said {code}"
        )


@pytest.mark.parametrize("code", [*codes("route"), "a_code_of_tomorrow"])
def test_a_broken_route_is_dead_and_somebody_else_is_told(tell, send, slack, terminal, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1))

    drained = send()

    assert [(one.place, one.count, one.reason, one.rejected) for one in drained.undelivered] == [
        ("slack:#orders-alerts", 1, code, True)
    ]
    assert (drained.overdue, drained.sent, len(terminal)) == (0, 1, 1)


@pytest.mark.parametrize("code", codes("channel"))
def test_a_broken_channel_waits_and_somebody_else_is_told_of_all(tell, send, slack, terminal, clock, code):
    slack.fault("chat.postMessage", "error", code=code)
    tell(breach(1), breach(1, key=IncidentKey("orders", "items", "daily-by-8")))

    broken = send()
    clock.pass_by(seconds=1)
    mended = send()

    assert (broken.broken, broken.overdue, len(terminal)) == ({"slack": code}, 2, 2)
    assert not any(one.rejected for one in broken.undelivered)
    assert (mended.broken, mended.overdue, len(slack.posts)) == ({}, 0, 2)


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

    assert (drained.broken, drained.overdue, len(terminal)) == ({"slack": "channel is not configured"}, 1, 1)


def test_a_message_that_somebody_deleted_is_posted_again(tell, send, slack):
    tell(breach(1))
    send()
    slack.messages.clear()
    tell(breach(2))
    send()

    assert [root["text"] for root in slack.roots] == ["ERROR: Orders were not delivered by 08:00 and 1 more"]


@pytest.mark.parametrize("code", by_kind(MessageNotEditable))
def test_a_message_that_may_no_longer_change_is_answered_in_its_thread(tell, send, slack, code):
    tell(breach(1))
    send()
    slack.fault("chat.update", "error", code=code)
    tell(recovery(1))

    drained = send()

    assert (drained.overdue, drained.undelivered, len(slack.replies)) == (0, (), 1)


@pytest.mark.parametrize("code", [code for code in codes("message") if "metadata" in code])
def test_a_message_whose_mark_slack_refuses_arrives_without_it(tell, send, slack, code):
    slack.refuses_metadata = code
    tell(breach(1))

    drained = send()

    assert (drained.sent, "metadata" in slack.posts[0]) == (1, False)
