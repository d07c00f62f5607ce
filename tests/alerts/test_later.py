"""What is said later: escalations, quiet hours with their summary, reminders."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes.breaches import DUE, KEY, ROUTES, breach, recovery
from hypothesis import given
from hypothesis import strategies as st

from dq.alerts.record import acknowledge, send_quiet_hours_summaries
from dq.alerts.route import (
    FIRST_REMINDER,
    MIN_REMINDER_GAP,
    REMINDER_INTERVAL,
    AlertRoute,
    matching_routes,
    next_reminder,
)
from dq.contracts.access.alert_target import parse_quiet_hours
from dq.contracts.incident import IncidentKey, Recovery, Resolution
from dq.contracts.outcome import Severity

LEAD = AlertRoute("slack", "#platform", after=timedelta(minutes=30))
STEPS = (*ROUTES, LEAD)
NIGHT = parse_quiet_hours("22:00-07:00")
SMALL = frozenset({Severity.INFO, Severity.WARNING})
QUIET = (AlertRoute("slack", "#orders-alerts", quiet=NIGHT, quiet_severities=SMALL),)
LEAD_CHANNEL = "C0PLATFORM"


@pytest.fixture
def send(store, channels, clock):
    """Drains as the command does."""
    from dq.alerts.drain import drain

    def run():
        send_quiet_hours_summaries(store, clock())
        return drain(store, channels, clock)

    return run


@pytest.fixture
def ack(store, clock):
    def on_it(recorded, who="ana"):
        with store.write() as tx:
            acknowledge(tx, recorded, who, clock())

    return on_it


def in_lead(slack):
    return [post for post in slack.posts if post["channel"] == LEAD_CHANNEL]


# Escalation.


def test_the_next_step_hears_only_of_what_stays_open(tell, send, slack, clock):
    tell(breach(1), routes=STEPS)
    send()
    clock.pass_by(minutes=29)
    send()
    before = len(in_lead(slack))
    clock.pass_by(minutes=1)
    send()

    assert (before, len(in_lead(slack))) == (0, 1)


@pytest.mark.parametrize("end", ["ack", "recovery", "given up"])
def test_nobody_else_is_called_once_somebody_is_on_it_or_it_is_over(tell, send, slack, clock, ack, end):
    [opened] = tell(breach(1), routes=STEPS)
    send()
    clock.pass_by(minutes=10)
    if end == "ack":
        ack(opened)
    elif end == "recovery":
        tell(recovery(1))
    else:
        tell(Recovery(KEY, breach(1).subject, clock(), end=Resolution.GIVEN_UP))
    send()
    clock.pass_by(hours=1)

    assert (send().overdue, in_lead(slack)) == (0, [])


def test_whoever_was_called_hears_the_end_too(tell, send, slack, clock):
    tell(breach(1), routes=STEPS)
    send()
    clock.pass_by(minutes=31)
    send()
    tell(recovery(1))
    send()

    assert [post["text"].split(" ")[0] for post in in_lead(slack)] == ["ERROR:", "Resolved"]
    assert {root["text"].split(":")[0] for root in slack.roots} == {"RESOLVED"}


def test_what_breaks_again_after_an_ack_and_an_end_is_escalated_again(tell, send, slack, clock, ack):
    [opened] = tell(breach(1), routes=STEPS)
    send()
    ack(opened)
    clock.pass_by(minutes=31)
    send()
    tell(recovery(1))
    clock.pass_by(minutes=5)
    tell(breach(2), routes=STEPS)
    clock.pass_by(minutes=29)
    send()
    before = len(in_lead(slack))
    clock.pass_by(minutes=1)
    send()

    assert (before, len(in_lead(slack))) == (0, 1)


def test_several_steps_go_one_after_another_however_often_the_watcher_starts_anew(tell, send, slack, clock):
    last = AlertRoute("slack", "#platform", after=timedelta(hours=2))
    tell(breach(1), routes=(*ROUTES, last, LEAD))
    seen = []
    for _ in range(7):
        clock.pass_by(minutes=20)
        send()
        seen.append(len(in_lead(slack)))

    # One place is called once, at its first step.
    assert seen == [0, 1, 1, 1, 1, 1, 1]


def test_a_place_is_told_by_the_entry_that_lets_it_hear_first():
    at_once = AlertRoute("slack", "#platform")

    assert matching_routes((LEAD, at_once, LEAD), Severity.ERROR) == (at_once,)


# Quiet hours.


def test_a_small_thing_waits_for_the_morning_and_a_great_one_does_not(tell, send, slack, clock):
    clock.at = DUE.replace(hour=23)
    tell(breach(1, Severity.WARNING), routes=QUIET)
    tell(breach(1, key=IncidentKey("sales", "sales", "daily")), routes=QUIET)
    send()
    at_night = [post["text"].split(":")[0] for post in slack.posts]
    clock.at += timedelta(hours=8)
    send()

    assert at_night == ["ERROR"]
    assert [post["text"].split(":")[0] for post in slack.posts if "thread_ts" not in post] == [
        "ERROR",
        "WARNING",
    ]


def test_what_grows_worse_in_the_night_is_told_in_the_night(tell, send, slack, clock):
    clock.at = DUE.replace(hour=23)
    tell(breach(1, Severity.WARNING), routes=QUIET)
    send()
    tell(breach(2, Severity.CRITICAL), routes=QUIET)
    send()

    assert [root["text"].split(":")[0] for root in slack.roots] == ["CRITICAL"]


def test_what_came_and_went_in_the_night_is_one_message_in_the_morning(tell, send, slack, clock):
    clock.at = DUE.replace(hour=23)
    for number in range(14):
        key = IncidentKey(f"product-{number}", "orders", "daily")
        tell(breach(1, Severity.WARNING, key), recovery(1, key=key), routes=QUIET)
        send()
    assert (slack.posts, send().overdue) == ([], 0)
    clock.at += timedelta(hours=8)
    send()
    send()

    [root] = slack.posts
    assert "14 incidents opened and resolved during quiet hours" in root["text"]
    assert "4 more; see 'dq incidents --all'" in str(root["attachments"])


def test_what_was_over_and_broke_again_in_the_night_is_told_as_open(tell, send, slack, clock):
    clock.at = DUE.replace(hour=23)
    tell(breach(1, Severity.WARNING), recovery(1), breach(2, Severity.WARNING), routes=QUIET)
    send()
    clock.at += timedelta(hours=8)
    send()

    assert [post["text"].split(":")[0] for post in slack.posts] == ["WARNING"]


# Reminders.


def test_what_stays_open_is_said_again_after_four_hours_a_day_and_each_day(tell, send, slack, clock):
    tell(breach(1))
    send()
    begun, said = clock(), []
    for _ in range(24 * 4):
        clock.pass_by(hours=1)
        before = len(slack.replies)
        send()
        if len(slack.replies) > before:
            said.append((clock() - begun) / timedelta(hours=1))

    assert said == [4, 24, 48, 72, 96]
    assert "not acknowledged" in slack.replies[0]["text"]


def test_after_a_downtime_one_reminder_is_said(tell, send, slack, clock):
    tell(breach(1))
    send()
    clock.pass_by(days=5, hours=3)
    send()
    send()
    clock.pass_by(hours=20)
    send()
    once = len(slack.replies)
    clock.pass_by(hours=2)
    send()

    assert (once, len(slack.replies)) == (1, 2)


def test_whoever_is_on_it_is_not_reminded(tell, send, slack, clock, ack):
    [opened] = tell(breach(1))
    send()
    ack(opened)
    send()
    for _ in range(5):
        clock.pass_by(days=1)
        send()

    assert [reply["text"] for reply in slack.replies] == ["Acknowledged by ana."]


def test_what_broke_again_is_reminded_of_from_then_on(tell, send, slack, clock):
    tell(breach(1))
    send()
    clock.pass_by(hours=3)
    tell(recovery(1))
    send()
    clock.pass_by(minutes=50)
    tell(breach(2))
    send()
    clock.pass_by(hours=3, minutes=50)
    send()
    early = [reply["text"] for reply in slack.replies if "not acknowledged" in reply["text"]]
    clock.pass_by(minutes=10)
    send()

    assert early == []
    assert len([reply for reply in slack.replies if "not acknowledged" in reply["text"]]) == 1


def test_what_waits_for_later_is_not_stuck(tell, send, clock):
    tell(breach(1), routes=STEPS)

    assert send().overdue == 0


@given(st.integers(0, 400 * 60))
def test_a_reminder_is_never_sooner_than_an_hour_and_never_later_than_a_day_and_an_hour(minutes):
    now = DUE + timedelta(minutes=minutes)
    at = next_reminder(DUE, None, now).not_before

    assert now + MIN_REMINDER_GAP <= at <= now + MIN_REMINDER_GAP + REMINDER_INTERVAL
    assert at == DUE + FIRST_REMINDER or (at - DUE) % REMINDER_INTERVAL == timedelta(0)


def test_a_place_without_threads_is_not_reminded(tell, send, terminal, clock):
    tell(breach(1), routes=(AlertRoute("console"),))
    send()
    clock.pass_by(hours=30)
    drained = send()

    assert (drained.sent, drained.overdue, len(terminal)) == (0, 0, 1)
