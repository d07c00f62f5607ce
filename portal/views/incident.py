"""The screen of one incident, from the promise to its end; and the feed of all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dq.alerts.incident import TITLE, Facts
from dq.portal.data.contract_summary import slug
from dq.portal.data.store_queries import IncidentFacts
from dq.portal.views.formatting import Values, cut, instant, said_state
from dq.portal.views.product import Link, incident_row

_KINDS = {
    "opened": "It broke, and the incident was opened",
    "reopened": "It broke again",
    "joined": "One more broke",
    "recovered": "One of them recovered",
    "resolved": "It was kept again, and the incident ended",
    "acked": "Somebody is on it",
    "excused": "It was excused",
    "withdrawn": "The promise was withdrawn",
    "given_up": "It was given up",
    "handed_over": "It is still broken, and incidents of its products tell of it",
    "silenced": "It was silenced",
    "flapping": "It breaks and recovers again and again",
    "past": "It was over before it was known",
    "inhibited": "It waits for another product, and so do its alerts",
    "holds up": "Others wait for it",
    "summed up": "It was told in one message with others",
    "rerouted": "Its alerts go elsewhere now",
    "suppressed": "An alert was held back",
    "dismissed": "An alert was given up by a person",
    "sent": "An alert was sent",
    "dead": "An alert could not be delivered",
}
_SENT = {
    "sent": "sent",
    "ready": "waits to be sent",
    "sending": "is being sent",
    "ambiguous": "may have been sent",
    "dead": "was refused",
    "dropped": "was not needed any more",
}
# What a message says, by its operation in the outbox.
_MESSAGES = {
    "create": "the alert",
    "update": "the alert, brought up to date",
    "remind": "a reminder",
    "acked": "who is on it",
    "worse": "that it is worse",
    "count": "how many there are now",
    "flapping": "that it comes and goes",
    "reopened": "that it broke again",
    "resolved": "that it ended",
}
_SUBJECTS, _STEPS = 50, 200


def incident(facts: IncidentFacts, page_of: Link) -> Values:
    """All values of the page."""
    one = facts.incident
    subjects = sorted(one.subjects.items(), key=lambda pair: pair[1].opened_at, reverse=True)
    return {
        **incident_row(facts),
        "key": str(one.key),
        "object": one.key.object,
        "group": one.key.group,
        "page": page_of(one.key.contract),
        "breaches": one.breaches,
        "acked": instant(one.acked_at) if one.acked_at else None,
        "silenced": (instant(one.silenced_until), cut(one.silenced_why, 300)) if one.silenced_until else None,
        "holds_up": one.holds_up[:50],
        "subjects": [
            {
                "name": cut(_subject(name), 300),
                "opened": instant(subject.opened_at),
                "closed": instant(subject.closed_at) if subject.closed_at else None,
                "end": subject.end.value.replace("_", " ") if subject.end else None,
                "facts": _lines(subject.facts),
                "closing": _lines(subject.closing_facts),
            }
            for name, subject in subjects[:_SUBJECTS]
        ],
        "subjects_left": max(len(subjects) - _SUBJECTS, 0),
        "steps": [
            {
                "at": instant(step.at),
                "said": _KINDS.get(step.kind, step.kind.replace("_", " ")),
                "subject": cut(_subject(step.subject), 300),
                "detail": cut(_told(step.detail), 500),
            }
            for step in facts.history[-_STEPS:]
        ],
        "messages": None
        if facts.messages is None
        else [
            {
                "place": cut(f"{message.channel}:{message.target}".rstrip(":"), 200),
                "what": _message(message.operation),
                "state": _SENT.get(message.state, message.state),
                "reason": cut(message.reason, 300),
            }
            for message in facts.messages
        ],
    }  # fmt: skip


def feed(title: str, own: str, incidents: list[IncidentFacts], up: str) -> dict[str, Any]:
    """An Atom feed, newest first; `own` is its name, `up` leads from it to the top of the site.

    What it says of its time is that of its newest entry, so that it changes when they do.
    """
    shown = incidents[:50]
    times = [max(one.incident.opened_at, one.incident.resolved_at or one.incident.opened_at) for one in shown]
    return {
        "title": title,
        "own": own,
        "updated": instant(max(times)).iso if times else "1970-01-01T00:00:00Z",
        "entries": [
            {
                "id": one.incident.id,
                "title": cut(one.incident.title, 300),
                "page": f"{up}incidents/{slug_of(one)}.html",
                "updated": instant(at).iso,
                "published": instant(one.incident.opened_at).iso,
                "said": _said(one),
            }
            for one, at in zip(shown, times, strict=True)
        ],
    }


def _lines(facts: Facts) -> list[tuple[str, str]]:
    return [(cut(label, 80), cut(text)) for label, text in facts if label != TITLE]


def _said(facts: IncidentFacts) -> str:
    one = facts.incident
    return f"{one.severity.value}, {said_state(one.state)}: {one.key}"


def _subject(name: str) -> str:
    """What broke: an instant is said as all others are."""
    try:
        at = datetime.fromisoformat(name)
    except ValueError:
        return name
    return instant(at).text if at.tzinfo else name


def _message(operation: str) -> str:
    return _MESSAGES.get(operation.removeprefix("reply:").partition(":")[0], operation)


def _told(detail: str) -> str:
    """What an alert said and to whom, where a step is about one: `create to console`."""
    operation, to, place = detail.partition(" to ")
    return f"{_message(operation)}{to}{place}"


def slug_of(facts: IncidentFacts) -> str:
    """The name of its page."""
    return slug(facts.incident.id)
