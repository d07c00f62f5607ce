"""A digest: one message that stands for many incidents of one place, and lists them."""

from __future__ import annotations

from collections import Counter

from dq.alerts.incident import CLOSED_AS, Facts, Incident, Subject
from dq.alerts.words.titles import TITLE
from dq.contracts.shared.outcome import End

STORM = "(storm)"
"""What a digest has in place of a contract; no contract is called so, because an id has no brackets."""

LISTED = 20
"""So many are named; the rest is counted."""


def is_digest(incident: Incident) -> bool:
    """Whether it stands for others."""
    return incident.key.contract == STORM


def title(incidents: int) -> str:
    """What a digest of so many is called."""
    return f"{incidents} incidents at once"


def listing(incident: Incident) -> Facts:
    """The members that are still open, oldest first, as (promise, title); when none is, all of them."""
    shown = incident.open_subjects or tuple(incident.subjects)
    lines = [fact for name in shown[:LISTED] for fact in _line(incident.subjects[name])]
    more = [("and", f"{len(shown) - LISTED} more; see 'dq incidents'")] if len(shown) > LISTED else []
    over = len(incident.subjects) - len(incident.open_subjects)
    left = [("over", f"{over} of {len(incident.subjects)}")] if over and incident.open_subjects else []
    return (*left, *lines, *more)


def _line(subject: Subject) -> Facts:
    """Return its promise and its title, which is that of its end once it is over."""
    facts = (subject.closing_facts if subject.closed_at else ()) or subject.facts
    return tuple(fact for fact in facts if fact[0] != TITLE)[:1]


def closing(incident: Incident) -> str:
    """How its members ended, in a sentence."""
    ends = Counter(CLOSED_AS[subject.end or End.KEPT] for subject in incident.subjects.values())
    said = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in ends.most_common())
    return f"All {len(incident.subjects)} are over: {said}."
