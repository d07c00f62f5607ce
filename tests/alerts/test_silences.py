"""Silences: what opens under one is told when it ends, and no end is ever held back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes.breaches import KEY, breach, recovery

from dq.alerts import incident_store, suppression
from dq.alerts.incident_store import incidents_as_of
from dq.alerts.suppression import KeyPattern
from dq.contracts.incident import IncidentKey, Recovery, Resolution


@pytest.fixture
def silence(store, clock):
    """Silences a pattern from now on; gives the ids of all that hold."""

    def begin(hours: float = 2, pattern: str = "orders") -> list[int]:
        until = clock() + timedelta(hours=hours)
        with store.write() as tx:
            suppression.begin_silence(tx, KeyPattern(pattern), "the lake moves", "ana", clock(), until)
            return [one.id for one in suppression.active(tx, clock())]

    return begin


def test_a_silenced_breach_is_told_when_the_silence_ends(tell, send, slack, silence, clock, kinds):
    silence()
    tell(breach(1))
    send()
    clock.pass_by(hours=1, minutes=59)
    send()
    quiet = len(slack.posts)
    clock.pass_by(minutes=1)
    send()

    assert (quiet, len(slack.posts)) == (0, 1)
    assert kinds() == ["opened", "silenced", "sent"]


@pytest.mark.parametrize("hours", [2, 3])
@pytest.mark.parametrize("unreachable", [False, True])
def test_what_is_over_before_its_silence_is_never_told(tell, send, slack, silence, clock, hours, unreachable):
    silence()
    tell(breach(1))
    send()
    given_up = Recovery(KEY, breach(1).subject, clock(), end=Resolution.GIVEN_UP)
    tell(given_up)
    if unreachable:
        slack.fault("conversations.history", "status", status=500)
    clock.pass_by(hours=hours)

    assert (send().overdue, slack.posts) == (0, [])


def test_what_a_silence_held_back_is_not_looked_up_as_after_a_restore(tell, send, slack, silence, clock):
    silence()
    tell(breach(1))
    slack.fault("conversations.history", "status", status=500)
    clock.pass_by(hours=2)
    send()

    [post] = slack.posts
    assert "Possible duplicate" not in str(post)
    assert slack.called("conversations.history") == []


def test_the_end_of_what_was_told_before_is_told_in_a_silence(tell, send, slack, silence):
    tell(breach(1))
    send()
    silence()
    tell(breach(2), recovery(1), recovery(2))
    send()

    [root], [reply] = slack.roots, slack.replies
    assert root["text"].startswith("RESOLVED")
    assert "Resolved at" in reply["text"]


def test_in_a_silence_the_thread_hears_nothing_but_the_end(tell, send, slack, silence, clock):
    tell(breach(1))
    send()
    silence()
    tell(breach(2))
    send()
    hushed = [reply["text"] for reply in slack.replies]
    clock.pass_by(hours=2)
    send()

    assert hushed == []
    assert [reply["text"] for reply in slack.replies] == [
        "2 deliveries missed their deadline so far; none has arrived yet."
    ]
    assert "Silenced until" in str(slack.roots[0]["attachments"])


def test_a_silence_that_is_ended_early_lets_the_alert_out(tell, send, slack, silence, store, clock, kinds):
    held = silence()
    tell(breach(1))
    with store.write() as tx:
        suppression.end_silences(tx, held, "bea", clock())
    send()

    assert (len(slack.posts), kinds()) == (1, ["opened", "silenced", "unsilenced", "sent"])


def test_the_longest_of_two_silences_counts_until_it_is_ended(tell, send, slack, silence, store, clock):
    silence(hours=4)
    [first, *_] = silence(hours=1)
    tell(breach(1))
    clock.pass_by(hours=2)
    send()
    assert slack.posts == []
    with store.write() as tx:
        suppression.end_silences(tx, [first], "bea", clock())
    send()

    assert len(slack.posts) == 1


def test_the_silence_of_another_product_hides_nothing(tell, send, slack, silence):
    silence(pattern="sales-*")
    tell(breach(1))
    send()

    assert len(slack.posts) == 1


def test_a_resolve_that_was_on_its_way_when_the_silence_came_is_made_good(tell, send, slack, silence, clock):
    slack.fault("chat.postMessage", "drop", accept=True)
    slack.fault("conversations.history", "status", status=500)
    tell(breach(1))
    send()
    silence()
    tell(recovery(1))
    for _ in range(8):
        clock.pass_by(seconds=30)
        send()

    [root] = slack.roots
    assert root["text"].startswith("RESOLVED")


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        (KeyPattern("orders"), KEY, True),
        (KeyPattern("ord*", "*", "daily*"), KEY, True),
        (KeyPattern("orders", "lines"), KEY, False),
        (KeyPattern("ORDERS"), KEY, False),
        (KeyPattern.for_key(KEY), KEY, True),
        (KeyPattern.for_key(IncidentKey("a*[b]?", "x", "y")), IncidentKey("a*[b]?", "x", "y"), True),
        (KeyPattern.for_key(IncidentKey("a*", "x", "y")), IncidentKey("ab", "x", "y"), False),
        (KeyPattern("*"), IncidentKey("(platform)", "lake", "unseen"), False),
        (KeyPattern("(platform)"), IncidentKey("(platform)", "lake", "unseen"), True),
    ],
    ids=str,
)
def test_a_pattern_is_about_what_it_names(pattern, key, matches):
    assert pattern.matches(key) is matches


def test_a_silence_shows_in_the_incident_only_while_it_is_open(tell, silence, store, clock):
    tell(breach(1), recovery(1))
    silence()
    with store.read() as tx:
        assert incident_store.newest(tx, KEY).silenced_until is None


def test_a_past_instant_shows_no_silence_that_was_over_when_the_incident_broke_again(
    tell, store, silence, clock
):
    tell(breach(1))
    silence(hours=0.05)
    clock.pass_by(minutes=1)
    tell(recovery(1))
    clock.pass_by(minutes=4)
    tell(breach(2))
    with store.read() as tx:
        [live] = incident_store.open_incidents(tx)
    at = clock()
    clock.pass_by(minutes=1)
    tell(breach(3))

    with store.read() as tx:
        [past] = incidents_as_of(tx, incident_store.open_incidents(tx), at)

    assert live.breaches == 2
    assert (
        (past.silenced_until, past.silence_reason) == (live.silenced_until, live.silence_reason) == (None, "")
    )
