"""One cause is one message, whatever the order in which its products broke."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from fakes.breaches import DUE, KEY, ROUTES, breach, recovery
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from dq.alerts import suppression, tables
from dq.alerts import suppression as handling
from dq.alerts.record import record
from dq.alerts.suppression import root_causes
from dq.contracts.incident import IncidentKey, Recovery, Resolution

SHUFFLES = 10
ROOT = IncidentKey("raw", "raw", "daily")


def key(name: str) -> IncidentKey:
    return IncidentKey(name, name, "daily")


def made(*pairs: tuple[str, str]):
    """Who is made from whom: ('mart', 'raw')."""
    found = {}
    for user, source in pairs:
        found.setdefault((user, user), set()).add((source, source))
    return found


@pytest.fixture
def tick(store, clock):
    """Events and what follows from lineage, in one transaction as the watcher has them."""

    def one(made_from, *events, usual=None):
        with store.write() as tx:
            for event in events:
                record(tx, event, ROUTES, clock())
            handling.apply_inhibition(tx, made_from, lambda _: usual, clock())

    return one


def incidents(store) -> int:
    with store.read() as tx:
        return tx.execute(select(func.count()).select_from(tables.incident)).scalar_one()


def test_a_cause_and_thirty_products_are_one_message_in_any_order(url, store, tick, send, slack, clock):
    made_from = made(*((f"p{number}", "raw" if number < 10 else f"p{number - 10}") for number in range(30)))
    # No query depends on the order of the events.
    for shuffle in range(SHUFFLES if url.startswith("sqlite") else 2):
        events = [breach(1, key=ROOT), *(breach(1, key=key(f"p{number}")) for number in range(30))]
        events = [replace(event, subject=f"s{shuffle}", occurred_at=clock()) for event in events]
        random.Random(shuffle).shuffle(events)
        tick(made_from, *events)
        send()
        ends = [Recovery(event.key, event.subject, clock()) for event in events]
        tick(made_from, *ends)
        send()
        assert (incidents(store), len(slack.roots)) == (31 * (shuffle + 1), shuffle + 1)
        assert "30 products" in str(slack.posts[-2])
        clock.pass_by(hours=2)


def test_what_is_still_broken_when_its_cause_has_ended_is_told_after_its_time(tick, send, slack, clock):
    made_from = made(("mart", "raw"))
    tick(made_from, breach(1, key=ROOT), breach(1, key=key("mart")), usual=timedelta(minutes=40))
    send()
    tick(made_from, replace(recovery(1, key=ROOT)))
    send()
    clock.pass_by(minutes=39)
    send()
    before = len(slack.roots)
    clock.pass_by(minutes=1)
    send()

    assert (before, len(slack.roots)) == (1, 2)


def test_a_silenced_cause_holds_nobody_back(store, tick, send, slack, clock):
    with store.write() as tx:
        until = clock() + timedelta(hours=8)
        suppression.begin_silence(tx, suppression.KeyPattern("raw"), "planned", "ana", clock(), until)
    tick(made(("mart", "raw")), breach(1, key=ROOT), breach(1, key=key("mart")))
    send()

    [told] = slack.roots
    assert "mart/mart/daily" in str(told)


@pytest.mark.parametrize("end", list(Resolution))
def test_what_is_over_by_then_is_never_told(tick, send, slack, clock, end):
    made_from = made(("mart", "raw"))
    tick(made_from, breach(1, key=ROOT), breach(1, key=key("mart")))
    send()
    tick(made_from, recovery(1, key=ROOT))
    clock.pass_by(minutes=5)
    tick(made_from, Recovery(key("mart"), breach(1).subject, clock(), end=end))
    clock.pass_by(hours=1)

    assert (send().overdue, len(slack.roots)) == (0, 1)


def test_what_broke_first_and_was_told_stays_told_and_its_end_is_told(tick, send, slack, clock):
    made_from = made(("mart", "raw"))
    tick(made_from, breach(1, key=key("mart")))
    send()
    clock.pass_by(minutes=5)
    tick(made_from, breach(1, key=ROOT))
    send()
    clock.pass_by(minutes=5)
    tick(made_from, recovery(1, key=key("mart")))
    send()

    assert len(slack.roots) == 2
    assert slack.roots[0]["text"].startswith("RESOLVED")
    assert [reply["text"].split(" ")[0] for reply in slack.replies] == ["Resolved"]


def test_a_cause_that_ends_while_another_is_open_leaves_its_products_with_that_one(tick, send, slack, clock):
    made_from = made(("mart", "raw"), ("mart", "feed"))
    tick(made_from, breach(1, key=ROOT), breach(1, key=key("feed")), breach(1, key=key("mart")))
    send()
    tick(made_from, recovery(1, key=ROOT))
    clock.pass_by(hours=1)
    send()
    before = len(slack.roots)
    tick(made_from, recovery(1, key=key("feed")))
    clock.pass_by(minutes=15)
    send()

    assert (before, len(slack.roots)) == (2, 3)


def test_a_cause_that_breaks_again_takes_its_products_back(tick, send, slack, clock):
    made_from = made(("mart", "raw"))
    tick(made_from, breach(1, key=ROOT), breach(1, key=key("mart")))
    send()
    tick(made_from, recovery(1, key=ROOT))
    clock.pass_by(minutes=10)
    tick(made_from, breach(2, key=ROOT))
    clock.pass_by(minutes=30)
    send()

    assert len(slack.roots) == 1


def test_products_that_are_made_from_each_other_have_one_message(tick, send, slack):
    made_from = made(("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    tick(made_from, *(breach(1, key=key(name)) for name in "dcba"))
    send()

    assert len(slack.roots) == 1


def test_quality_and_budgets_wait_for_nobody(tick, send, slack):
    made_from = made(("mart", "raw"))
    others = [IncidentKey("mart", "mart", "quality"), IncidentKey("mart", "mart", "daily:budget")]
    tick(made_from, breach(1, key=ROOT), *(breach(1, key=one) for one in others))
    send()

    assert len(slack.roots) == 3


def test_without_declared_inputs_everybody_is_told(tick, send, slack):
    tick({}, breach(1, key=ROOT), breach(1, key=KEY))
    send()

    assert len(slack.roots) == 2


NAMES = st.sampled_from("abcdefg")


@given(st.sets(st.tuples(NAMES, NAMES), max_size=20), st.permutations("abcdefg"), st.integers(1, 7))
def test_a_cause_is_broken_and_waits_for_nobody(edges, order, count):
    made_from = made(*edges)
    broken = {(name, name): (DUE, f"{order.index(name)}") for name in order[:count]}

    found = root_causes(broken, made_from)

    assert found.keys() | set(found.values()) <= broken.keys()
    # Nobody waits for somebody who waits: the cause is told.
    assert not found.keys() & set(found.values())
    for one in broken.keys() - found.keys():
        above = _above(one, made_from) & broken.keys() - {one}
        # Whoever is told has no broken input but those of its own circle.
        assert all(one in _above(other, made_from) for other in above)
    for one in found:
        assert found[one] in _above(one, made_from)


def _above(one, made_from):
    seen, left = set(), [one]
    while left:
        for other in made_from.get(left.pop(), ()):
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen
