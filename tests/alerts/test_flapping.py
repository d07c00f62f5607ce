"""What comes and goes again and again says so once, and is quiet until it has lasted."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from fakes.breaches import DUE, KEY, breach
from hypothesis import given
from hypothesis import strategies as st

from dq.alerts import incident_store
from dq.alerts.incident import (
    FLAPPING_LIMITS,
    MAX_CHANGES,
    IncidentState,
    is_flapping,
    stabilization_period,
    step,
)
from dq.contracts.incident import Breach, IncidentKey, Recovery

QUARTER = timedelta(minutes=15)


@pytest.fixture
def cycle(tell, send, clock):
    """The next cycle of a 15-minute product: it breaks or it is kept, and what was broken ends."""
    broken: list[str] = []

    def next_one(bad: bool) -> None:
        clock.at += QUARTER
        subject = clock().isoformat()
        if bad and not broken:
            broken.append(subject)
            tell(replace(breach(1), subject=subject, occurred_at=clock(), period=QUARTER))
        elif not bad and broken:
            tell(Recovery(KEY, broken.pop(), clock()))
        send()

    return next_one


def test_a_flapping_product_of_twelve_hours_says_at_most_six_things_in_its_thread(cycle, slack, clock, kinds):
    for number in range(48):
        cycle(bad=number % 2 == 0)
    hourly = len(slack.called("chat.update"))
    for _ in range(8):
        cycle(bad=False)

    texts = [reply["text"].split(" ")[0] for reply in slack.replies]
    assert len(slack.roots) == 1
    assert len(texts) <= 6
    assert hourly <= 12 + 4
    assert (texts.count("Flapping:"), texts[-1], kinds().count("flapping")) == (1, "Resolved", 1)
    assert slack.roots[0]["text"].startswith("RESOLVED")


@pytest.mark.parametrize("seed", range(6))
def test_however_it_comes_and_goes_the_end_is_told(cycle, slack, seed):
    dice = random.Random(seed)
    for _ in range(48):
        cycle(bad=dice.random() < 0.5)
    for _ in range(16):
        cycle(bad=False)

    assert all(root["text"].startswith("RESOLVED") for root in slack.roots)
    texts = [reply["thread_ts"] for reply in slack.replies]
    last = {reply["thread_ts"]: reply["text"] for reply in slack.replies}
    assert all(text.startswith("Resolved") for text in last.values())
    assert max(texts.count(root) for root in set(texts)) <= 16


def test_what_stays_broken_in_the_end_is_told_once_it_has_lasted(cycle, slack, clock, send):
    for number in range(13):
        cycle(bad=number % 2 == 0)
    quiet = len(slack.replies)
    for _ in range(4):
        clock.at += QUARTER
        send()

    assert slack.roots[0]["text"].startswith("ERROR")
    assert [reply["text"] for reply in slack.replies[quiet:]] == ["Broken again soon after it was resolved."]


def test_a_daily_product_that_is_late_now_and_then_does_not_flap(tell, send, slack, clock, store):
    for day in (1, 3, 6, 8):
        clock.at = DUE + timedelta(days=day)
        one = replace(breach(day), occurred_at=clock(), period=timedelta(days=1))
        tell(one)
        send()
        clock.pass_by(hours=3)
        tell(Recovery(KEY, one.subject, clock()))
        send()

    with store.read() as tx:
        assert incident_store.newest(tx, KEY).flapping_since is None


def test_a_breach_within_the_period_is_the_same_incident(tell, send, slack, clock):
    daily = timedelta(days=1)
    tell(replace(breach(1), period=daily))
    send()
    tell(Recovery(KEY, breach(1).subject, clock()))
    send()
    clock.pass_by(hours=23)
    tell(replace(breach(2), period=daily))
    send()

    assert len(slack.roots) == 1


MINUTES = st.lists(st.integers(1, 400), min_size=1, max_size=60)


@given(MINUTES, st.sampled_from([None, 15, 60, 1440]))
def test_it_flaps_when_it_changed_more_often_than_it_may(gaps, minutes):
    """The pure machine, with changes at any distance: the flag is what the definition says."""
    period = timedelta(minutes=minutes) if minutes else None
    now, incident, bad = DUE, None, True
    for number, gap in enumerate(gaps):
        now += timedelta(minutes=gap)
        before = incident
        event = (
            Breach(KEY, breach(1).severity, f"{number}", "t", now, (), period)
            if bad
            else Recovery(KEY, f"{number - 1}", now)
        )
        incident = step(before, event, now).incident
        bad = not bad
        if before is not None and before.id == incident.id and before.flapping_since:
            lasts = now - incident.changes[-2] <= stabilization_period(period) or is_flapping(
                incident.changes, period, now
            )
            assert incident.flapping_since == (before.flapping_since if lasts else None)
        else:
            assert (incident.flapping_since is not None) is is_flapping(incident.changes, period, now)
        assert len(incident.changes) <= MAX_CHANGES
        assert incident.state is (IncidentState.OPEN if not bad else IncidentState.RESOLVED)
        # Enough is remembered to know.
        assert all(most < MAX_CHANGES for _, most in FLAPPING_LIMITS)


# Other tests of flapping and of digests write the same rows to PostgreSQL.
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_digest_of_products_that_flap_is_as_quiet_as_they_are(tell, send, slack, clock):
    keys = [IncidentKey(f"product{number}", "orders", "quarterly") for number in range(6)]
    for number in range(96):
        clock.at += QUARTER / 2
        subject = str(number // 2)
        if number % 2 == 0:
            tell(
                *(
                    replace(breach(1, key=key), subject=subject, occurred_at=clock(), period=QUARTER)
                    for key in keys
                )
            )
        else:
            tell(*(Recovery(key, subject, clock()) for key in keys))
        send()
    for _ in range(16):
        clock.at += QUARTER
        send()

    texts = [reply["text"].partition(":")[0] for reply in slack.replies]
    assert len(slack.roots) == 1
    assert texts.count("RESOLVED") == 6, "the members themselves"
    assert texts.count("Broken again soon after it was resolved.") <= 2
    assert sum(one.startswith("All 6 closed") for one in texts) <= 3
    assert slack.roots[0]["text"].startswith("RESOLVED")
