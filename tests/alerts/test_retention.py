"""What is forgotten of alerts, and what never is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes.breaches import breach, recovery
from sqlalchemy import func, insert, select

from dq.alerts import tables
from dq.alerts.incident_store import PrunedAlerts, prune

ALL = (tables.incident, tables.incident_subject, tables.incident_event, tables.outbox, tables.message)


@pytest.fixture
def rows(store):
    """How many rows each table has."""

    def read():
        with store.read() as tx:
            return [tx.scalar(select(func.count()).select_from(one)) for one in ALL]

    return read


def test_what_ended_long_ago_is_forgotten_with_all_that_was_said_of_it(store, tell, send, clock, rows):
    tell(breach())
    send()
    tell(recovery())
    send()
    clock.pass_by(days=401)

    done = prune(store, clock() - timedelta(days=400))

    assert (done.incidents, done.messages > 0, rows()) == (1, True, [0] * len(ALL))
    assert prune(store, clock()) == PrunedAlerts(0, 0, 0)


def test_what_is_open_or_ended_lately_stays(store, tell, send, clock, rows):
    tell(breach())
    send()
    clock.pass_by(days=500)
    before = rows()

    assert prune(store, clock()).incidents == 0
    tell(recovery())
    send()
    clock.pass_by(days=1)

    assert prune(store, clock() - timedelta(days=400)).incidents == 0
    assert rows()[0] == before[0]


def test_what_has_something_to_say_yet_stays(store, tell, clock, rows):
    # Nobody has sent anything so far: the message waits.
    tell(breach(), recovery())
    with store.write() as tx:
        tx.execute(tables.outbox.update().values(state="ready"))
    clock.pass_by(days=401)
    before = rows()

    assert prune(store, clock()).incidents == 0
    assert rows() == before


def test_silences_that_are_over_for_long_are_forgotten(store, clock):
    row = {"contract": "a", "object": "*", "group_id": "*", "reason": "x", "by": "ann", "at": clock()}
    with store.write() as tx:
        tx.execute(insert(tables.silence), [{**row, "until": clock() + timedelta(days=n)} for n in (1, 90)])

    assert prune(store, clock() + timedelta(days=30)).silences == 1


def test_many_incidents_go_in_parts(store, clock, rows):
    old = {"group_id": "g", "object": "o", "severity": "error", "title": "t", "state": "resolved"}
    old |= {"revision": 1, "breaches": 1, "opened_at": clock(), "resolved_at": clock()}
    with store.write() as tx:
        tx.execute(
            insert(tables.incident), [{**old, "id": f"{n:036}", "contract": f"c{n}"} for n in range(1_200)]
        )

    assert prune(store, clock() + timedelta(days=1)).incidents == 1_200
    assert rows()[0] == 0
