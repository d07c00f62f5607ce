"""What a breach, a recovery or an acknowledgement makes of an incident."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import reduce

import pytest
from fakes.breaches import DUE, breach, recovery

from dq.alerts.incident import EDIT_INTERVAL as REOPEN_WINDOW
from dq.alerts.incident import Ack, IncidentState, step
from dq.alerts.message import headline, render
from dq.contracts.incident import Resolution
from dq.contracts.outcome import Severity

NOW = DUE + timedelta(minutes=30)
SOON, LATER = NOW + REOPEN_WINDOW, NOW + REOPEN_WINDOW + timedelta(seconds=1)
ON_IT = Ack("ana")


def after(*events):
    """The incident after these events, all at NOW."""
    return reduce(lambda incident, event: step(incident, event, NOW).incident, events, None)


OPEN, TWO = after(breach(1)), after(breach(1), breach(2))
ACKED, ACKED_TWO = after(breach(1), ON_IT), after(breach(1), breach(2), ON_IT)
RESOLVED = after(breach(1), recovery(1))
ONE_OF_TWO = after(breach(1), breach(2), recovery(1))

TABLE = [
    # what it is before, event, when it is recorded, kind, state after, open subjects, told
    ("a breach opens", None, breach(1), NOW, "opened", IncidentState.OPEN, 1, ("create",)),
    (
        "a second breach joins",
        OPEN,
        breach(2),
        NOW,
        "joined",
        IncidentState.OPEN,
        2,
        ("update", "reply:count"),
    ),
    ("a third joins in silence", TWO, breach(3), NOW, "joined", IncidentState.OPEN, 3, ("update",)),
    (
        "a breach joins after an ack",
        ACKED,
        breach(2),
        NOW,
        "joined",
        IncidentState.ACKED,
        2,
        ("update", "reply:count"),
    ),
    (
        "a worse breach is told at once",
        TWO,
        breach(3, Severity.CRITICAL),
        NOW,
        "joined",
        IncidentState.OPEN,
        3,
        ("update", "reply:worse"),
    ),
    ("a milder one is not", TWO, breach(3, Severity.INFO), NOW, "joined", IncidentState.OPEN, 3, ("update",)),
    ("an ack is told", OPEN, ON_IT, NOW, "acked", IncidentState.ACKED, 1, ("update", "reply:acked")),
    ("one of two recovers", TWO, recovery(1), NOW, "recovered", IncidentState.OPEN, 1, ("update",)),
    (
        "one of two recovers after an ack",
        ACKED_TWO,
        recovery(2),
        NOW,
        "recovered",
        IncidentState.ACKED,
        1,
        ("update",),
    ),
    (
        "the last recovers",
        OPEN,
        recovery(1),
        NOW,
        "resolved",
        IncidentState.RESOLVED,
        0,
        ("update", "reply:resolved"),
    ),
    (
        "the last of two recovers",
        ONE_OF_TWO,
        recovery(2),
        NOW,
        "resolved",
        IncidentState.RESOLVED,
        0,
        ("update", "reply:resolved"),
    ),
    (
        "the last recovers after an ack",
        ACKED,
        recovery(1),
        NOW,
        "resolved",
        IncidentState.RESOLVED,
        0,
        ("update", "reply:resolved"),
    ),
    (
        "a breach within the window reopens",
        RESOLVED,
        breach(2),
        SOON,
        "reopened",
        IncidentState.OPEN,
        1,
        ("update", "reply:reopened"),
    ),
    (
        "a breach after the window opens anew",
        RESOLVED,
        breach(2),
        LATER,
        "opened",
        IncidentState.OPEN,
        1,
        ("create",),
    ),
]


@pytest.mark.parametrize(
    ("before", "event", "now", "kind", "state", "still", "tell"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_an_event_changes_an_incident(before, event, now, kind, state, still, tell):
    done = step(before, event, now)

    assert (done.kind, done.incident.state, len(done.incident.open_subjects), done.operations) == (
        kind,
        state,
        still,
        tell,
    )
    assert done.incident.revision == (1 if kind == "opened" else before.revision + 1)
    assert (done.incident.resolved_at is None) == (state is not IncidentState.RESOLVED)


@pytest.mark.parametrize(
    ("before", "event"),
    [
        pytest.param(OPEN, breach(1), id="the breach that opened it"),
        pytest.param(ACKED, breach(1), id="the same after an ack"),
        pytest.param(RESOLVED, breach(1), id="a breach that has recovered since"),
        pytest.param(ONE_OF_TWO, breach(1), id="the same while another is still broken"),
        pytest.param(None, recovery(1), id="a recovery of nothing"),
        pytest.param(OPEN, recovery(2), id="a recovery of what never broke"),
        pytest.param(RESOLVED, recovery(1), id="a second recovery"),
        pytest.param(ACKED, ON_IT, id="a second ack"),
        pytest.param(RESOLVED, ON_IT, id="an ack of what is resolved"),
        pytest.param(None, ON_IT, id="an ack of nothing"),
    ],
)
def test_what_is_no_news_changes_nothing(before, event):
    assert step(before, event, NOW) is None


def test_a_growing_incident_speaks_at_two_four_eight_and_sixteen():
    incident, spoke = None, []

    for day in range(1, 31):
        done = step(incident, breach(day), NOW)
        incident = done.incident
        spoke += [incident.breaches] if "reply:count" in done.operations else []

    assert spoke == [2, 4, 8, 16]


def test_a_subject_that_breaks_again_later_is_a_new_breach():
    again = breach(1)
    again = type(again)(again.key, again.severity, again.subject, again.title, DUE + timedelta(hours=5))

    assert step(RESOLVED, again, SOON).kind == "reopened"


def test_a_delivery_found_to_have_been_on_time_stays_recovered():
    found_late = after(breach(1), recovery(1, late=timedelta(minutes=-5)))

    assert step(found_late, breach(1), NOW) is None


def test_the_same_breach_gives_the_same_incident_on_every_machine():
    assert after(breach(1)).id == OPEN.id != after(breach(2)).id


def test_a_reopened_incident_is_no_longer_acknowledged():
    resolved = after(breach(1), ON_IT, recovery(1))

    reopened = step(resolved, breach(2), SOON).incident

    assert (resolved.acked_by, reopened.acked_by, reopened.acked_at) == ("ana", None, None)


def ended(day: int, end: Resolution):
    return replace(recovery(day), end=end)


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (Resolution.RECOVERED, IncidentState.RESOLVED),
        (Resolution.EXCUSED, IncidentState.EXCUSED),
        (Resolution.WITHDRAWN, IncidentState.WITHDRAWN),
        (Resolution.GIVEN_UP, IncidentState.GIVEN_UP),
    ],
)
def test_an_incident_says_how_it_ended(end, state):
    done = step(OPEN, ended(1, end), NOW)

    assert (done.kind, done.incident.state, done.incident.resolved_at) == (state.value, state, NOW)
    assert headline(render(done.incident, "update")).startswith(state.value.upper().replace("_", " "))


@pytest.mark.parametrize("first", list(Resolution))
def test_of_several_ends_the_worst_is_said(first):
    given_up = after(breach(1), breach(2), ended(1, first), ended(2, Resolution.GIVEN_UP))
    kept = after(breach(1), breach(2), ended(2, Resolution.GIVEN_UP), recovery(1))

    assert given_up.state is kept.state is IncidentState.GIVEN_UP


def test_what_was_given_up_and_came_after_all_is_resolved():
    given_up = after(breach(1), ended(1, Resolution.GIVEN_UP))

    came = step(given_up, recovery(1), LATER)

    assert (came.kind, came.incident.state) == ("resolved", IncidentState.RESOLVED)
    assert came.operations == ("update", "reply:resolved")
    assert step(came.incident, recovery(1), LATER) is None
    assert step(came.incident, ended(1, Resolution.GIVEN_UP), LATER) is None
