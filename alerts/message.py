"""What people are told about an incident, without any channel's format: at most one screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dq.alerts.digest import LISTED, closing, is_digest, listing
from dq.alerts.incident import FLAPPING, REMINDER, Facts, Incident, IncidentState, Subject
from dq.alerts.noise.flapping import calm
from dq.contracts.shared.outcome import IncidentKey, Severity
from dq.contracts.shared.printable import one_line

MAX_TITLE, MAX_LABEL, MAX_VALUE, MAX_FACTS, MAX_SUBJECTS = 140, 40, 300, 12, 5
BUDGET = "budget"
"""The fact of this label stands last, as a line of its own."""


@dataclass(frozen=True, slots=True)
class Message:
    """One incident at one revision, ready for a channel to render.

    `facts` are (label, value) lines. `steps` say what happened so far, oldest first. `note` is the one
    sentence that a thread reply says. `repeat` is set when a copy may have arrived already.
    """

    incident: str
    revision: int
    key: IncidentKey
    title: str
    severity: Severity
    state: IncidentState
    facts: Facts
    steps: tuple[str, ...]
    note: str = ""
    budget: str = ""
    repeat: bool = False


_NOTES: Mapping[str, Callable[[Incident], str]] = {
    "reply:count": lambda incident: (
        f"Broken {incident.breaches} times by now, {len(incident.open_subjects)} still open."
    ),
    "reply:worse": lambda incident: f"The severity is now {incident.severity}.",
    "reply:reopened": lambda _: "Broken again soon after it was resolved.",
    "reply:acked": lambda incident: f"{incident.acked_by} is on it.",
    "reply:resolved": lambda incident: _closed(incident),
    FLAPPING: lambda incident: (
        f"It breaks and ends again and again, {len(incident.changes)} times since "
        f"{_instant(incident.changes[0])}. From now on this message changes once an hour at most, and "
        f"the thread hears what has lasted for {duration(calm(incident.period))}."
    ),
    REMINDER: lambda incident: (
        f"Still open since {_instant(incident.opened_at)}, and nobody is on it. "
        f"Whoever is: dq ack {incident.id[:8]}"
    ),
}


def render(incident: Incident, operation: str, repeat: bool = False) -> Message:
    """What `operation` (create, update or reply:<step>) says of the incident as it is now."""
    facts = _facts(incident)
    return Message(
        incident=incident.id,
        revision=incident.revision,
        key=incident.key,
        title=cut(incident.title, MAX_TITLE),
        severity=incident.severity,
        state=incident.state,
        facts=tuple(
            (cut(label, MAX_LABEL), cut(value, MAX_VALUE)) for label, value in facts if label != BUDGET
        )[: LISTED + 1 if is_digest(incident) else MAX_FACTS],
        steps=_steps(incident),
        note=cut(_note(incident, operation), MAX_VALUE),
        budget=cut(dict(facts).get(BUDGET, ""), MAX_VALUE),
        repeat=repeat,
    )


def _note(incident: Incident, operation: str) -> str:
    # What follows a second colon tells one reply from another of its kind.
    said = _NOTES.get(":".join(operation.split(":")[:2]))
    return said(incident) if said else ""


def headline(message: Message) -> str:
    """One line: state, severity and what it is about."""
    mark = message.state.replace("_", " ") if message.state.closed else message.severity
    return f"{mark.upper()}: {message.title}"


def promise(message: Message) -> str:
    """Which promise it is about: contract, object and the SLO's id."""
    return cut(str(message.key), MAX_VALUE)


def lines(message: Message) -> list[str]:
    """The message as plain text, for channels that have nothing better."""
    about = [("promise", promise(message)), *message.facts]
    width = max(len(label) for label, _ in about)
    body = [f"{label.ljust(width)}  {value}" for label, value in about]
    last = [message.budget] if message.budget else []
    return [*body, *message.steps, *last, *repeat_note(message)]


def repeat_note(message: Message) -> list[str]:
    """The line that asks for pardon when the same may have been said before; none otherwise."""
    return ["This may be a repeat: the first copy could not be traced."] if message.repeat else []


def cut(text: str, width: int) -> str:
    """`text` on one line and no longer than `width`; what could steer its reader is shown."""
    flat = one_line(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _facts(incident: Incident) -> Facts:
    """The newest broken subject's facts; of the last one when none is left, as changed by what mended it."""
    if is_digest(incident):
        return listing(incident)
    subjects = incident.subjects
    still = incident.open_subjects
    if still:
        facts = subjects[still[-1]].facts
        shown = ", ".join(still[:MAX_SUBJECTS])
        more = f" and {len(still) - MAX_SUBJECTS} more" if len(still) > MAX_SUBJECTS else ""
        return (*facts, ("still open", shown + more)) if len(still) > 1 else facts
    last = _last(incident)
    return tuple((dict(last.facts) | dict(last.closing_facts)).items())


def _last(incident: Incident) -> Subject:
    return max(incident.subjects.values(), key=lambda subject: subject.settled_at)


def _steps(incident: Incident) -> tuple[str, ...]:
    if incident.state is IncidentState.PAST:
        return (f"Found at {_instant(incident.opened_at)}; nobody had been told, and nothing is open.",)
    said = [f"Broken since {_instant(incident.opened_at)}."]
    if incident.acked_at:
        said.append(
            f"Acknowledged by {cut(incident.acked_by or '', MAX_VALUE)} at {_instant(incident.acked_at)}."
        )
    if incident.flapping_since:
        said.append(f"Comes and goes since {_instant(incident.flapping_since)}.")
    if incident.silenced_until and not incident.state.closed:
        why = cut(incident.silenced_why, MAX_VALUE)
        said.append(f"Silenced until {_instant(incident.silenced_until)} by {why}")
    if incident.state.closed:
        said.append(_closed(incident))
    return tuple(said)


_ENDS: Mapping[IncidentState, str] = {
    IncidentState.GIVEN_UP: "Given up at {at}, after {after}: it was not mended, and nobody waits any more.",
    IncidentState.WITHDRAWN: "Withdrawn at {at}, after {after}: what was promised is promised no more.",
    IncidentState.EXCUSED: "Excused at {at}, after {after}.",
}
# Somebody's word, which a channel that shows no facts at the end would keep to itself.
_EXPLAINED = (IncidentState.WITHDRAWN, IncidentState.EXCUSED)


def _closed(incident: Incident) -> str:
    if not incident.state.closed:
        return "Closed for a while, and broken again."
    if is_digest(incident):
        return closing(incident)
    closed = max(subject.closed_at for subject in incident.subjects.values() if subject.closed_at)
    if incident.state in _ENDS:
        said = _ENDS[incident.state].format(
            at=_instant(closed), after=duration(max(closed - incident.opened_at, timedelta()))
        )
        why = dict(_last(incident).closing_facts).get(incident.state.replace("_", " "), "")
        return f"{said} {cut(why, MAX_VALUE)}" if why and incident.state in _EXPLAINED else said
    if closed <= incident.opened_at:
        return "Resolved: it was in order all along, and seen late."
    return f"Resolved at {_instant(closed)}, after {duration(closed - incident.opened_at)}."


def duration(length: timedelta) -> str:
    """The two largest parts: '2 d 4 h', '1 h 5 min', '40 s'."""
    seconds = int(length.total_seconds())
    parts = [
        (seconds // 86400, "d"),
        (seconds % 86400 // 3600, "h"),
        (seconds % 3600 // 60, "min"),
        (seconds % 60, "s"),
    ]
    said = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(said[:2]) or "0 s"


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
