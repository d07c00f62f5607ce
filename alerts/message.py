"""What people are told about an incident, without any channel's format: at most one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import wrap
from typing import Any

from dq.alerts.incident import (
    FLAPPING,
    LISTED,
    REMINDER,
    TITLE,
    Facts,
    Incident,
    IncidentState,
    Subject,
    calm,
    closing,
    is_digest,
    listing,
)
from dq.contracts.outcome import End, IncidentKey, Severity, counted, first_of, one_line

# How many deliveries or partitions an incident is about, in words. Subjects come by their names.

_LISTED_SUBJECTS = 3

_ENDED: Mapping[End, str] = {
    End.KEPT: "mended",
    End.GIVEN_UP: "given up",
    End.HANDED_OVER: "handed over",
    End.EXCUSED: "excused",
    End.WITHDRAWN: "withdrawn",
}


def countable(subjects: Collection[str]) -> bool:
    """Whether each is one of many, a delivery or a partition, and not what is told of a whole."""
    return all(_due(subject) is not None or "=" in subject for subject in subjects)


def still_broken(subjects: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """A line for what is broken together, the oldest first; none for one."""
    if len(subjects) < 2 or not countable(subjects):
        return ()
    due = [at for at in map(_due, subjects) if at is not None]
    if len(due) < len(subjects):
        return (("still open", first_of(subjects, _LISTED_SUBJECTS)),)
    if len(due) <= _LISTED_SUBJECTS:
        return (("still missing", f"due {', '.join(f'{at:%Y-%m-%d %H:%M}' for at in due)} UTC"),)
    return (("still missing", f"{len(due)} deliveries, the oldest was due {instant(due[0])}"),)


def so_far(subjects: Collection[str], still: Collection[str]) -> str:
    """How many broke since the incident began, and how many of them still are: each counts once."""
    count, left = len(subjects), len(still)
    if any(_due(subject) is None for subject in subjects):
        return f"{count} are broken so far, {left} of them still."
    has = {0: "all of them have come since", count: "none has come"}
    said = has.get(left, f"{left} {'has' if left == 1 else 'have'} not come")
    return f"{count} deliveries missed their time so far; {said}."


def in_all(ends: Mapping[str, End]) -> str:
    """How they ended, by subject, where there were several; else empty."""
    if len(ends) < 2 or not countable(ends):
        return ""
    counts = Counter(ends.values())
    said = ", ".join(f"{counts[end]} {word}" for end, word in _ENDED.items() if counts[end])
    return f" There were {len(ends)} in all" + (f": {said}." if len(counts) > 1 else ".")


def instant(at: datetime) -> str:
    """An instant in UTC, to the minute."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


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


def _due(subject: str) -> datetime | None:
    """When a delivery was due, by the name of its subject; None for a subject that is no delivery."""
    try:
        found = datetime.fromisoformat(subject)
    except ValueError:
        return None
    return found if found.tzinfo else None


MAX_TITLE, MAX_LABEL, MAX_VALUE, MAX_FACTS = 140, 40, 240, 13
SCREEN_LINES, SCREEN_WIDTH = 25, 100
"""What one screen holds of a message as plain text, its headline included."""

BUDGET = "budget"
"""The fact of this label stands last, as a line of its own."""
MENTION = "mention"
"""The fact of this label is no line: it holds ids of people or groups, for a channel that can call them."""
PRODUCT, SINCE, OWNER = "product", "since", "owner"
RUNBOOK, COMMAND = "runbook", "look closer"
# Of plain text a channel may need so much for signs and spaces before each line.
_MARGIN, _OPEN_AT = 4, 2
VERBATIM = frozenset({RUNBOOK, COMMAND})
"""Facts that are copied as they are: no line break may stand in them, and cut they are worthless."""


@dataclass(frozen=True, slots=True)
class Message:
    """One incident at one revision, ready for a channel to render.

    `facts` are (label, value) lines. `steps` say what happened so far, oldest first. `note` is the one
    sentence that a thread reply says. `repeat` is set when a copy may have arrived already. `mentions` are
    ids that the contract names, for the first message of what is open; no channel takes them from a text.
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
    mentions: tuple[str, ...] = ()


_NOTES: Mapping[str, Callable[[Incident], str]] = {
    "reply:count": lambda incident: so_far(incident.subjects, incident.open_subjects),
    "reply:worse": lambda incident: f"The severity is now {incident.severity}.",
    "reply:reopened": lambda _: "Broken again soon after it was resolved.",
    "reply:acked": lambda incident: f"{incident.acked_by} is on it.",
    "reply:resolved": lambda incident: _closed(incident),
    FLAPPING: lambda incident: (
        f"It breaks and ends again and again, {len(incident.changes)} times since "
        f"{instant(incident.changes[0])}. From now on this message changes once an hour at most, and "
        f"the thread hears what has lasted for {duration(calm(incident.period))}."
    ),
    REMINDER: lambda incident: (
        f"Still open since {instant(incident.opened_at)}, and nobody is on it. "
        f"Whoever is: dq incidents ack {incident.id[:8]}"
    ),
}


def render(incident: Incident, operation: str, repeat: bool = False) -> Message:
    """What `operation` (create, update or reply:<step>) says of the incident as it is now."""
    facts = (*_held_up(incident), *_facts(incident))
    known = dict(facts)
    shown = [
        (cut(label, MAX_LABEL), value if label in VERBATIM else cut(value, MAX_VALUE))
        for label, value in facts
        if label not in (BUDGET, MENTION, TITLE)
    ]
    return Message(
        incident=incident.id,
        revision=incident.revision,
        key=incident.key,
        title=cut(_title(incident), MAX_TITLE),
        severity=incident.severity,
        state=incident.state,
        facts=_fitting(shown, LISTED + 2 if is_digest(incident) else MAX_FACTS),
        steps=_steps(incident, known),
        note=cut(_note(incident, operation), MAX_VALUE),
        budget=cut(known.get(BUDGET, ""), MAX_VALUE),
        repeat=repeat,
        mentions=tuple(known.get(MENTION, "").split()) if incident.state is IncidentState.OPEN else (),
    )


def _fitting(facts: Sequence[tuple[str, str]], most: int) -> Facts:
    """As many as there is room for: what helps stands last, and is left out last."""
    return tuple(facts if len(facts) <= most else (*facts[: most - 4], *facts[-4:]))


def _note(incident: Incident, operation: str) -> str:
    # What follows a second colon tells one reply from another of its kind.
    said = _NOTES.get(":".join(operation.split(":")[:2]))
    return said(incident) if said else ""


def headline(message: Message) -> str:
    """One line: state, severity and what it is about."""
    mark = message.state.replace("_", " ") if message.state.closed else message.severity
    return f"{mark.upper()}: {message.title}"


def promise(message: Message) -> str:
    """Which promise it is about: contract, object and the SLO's id; briefly where it is no contract's."""
    key = message.key
    if not key.contract.startswith("("):
        return cut(str(key), MAX_VALUE)
    # No contract is called so: an id has no brackets. What it is about stands in the title.
    ours = key.contract.strip("()")
    return f"{ours}: {key.group}" if ours == "platform" else ours


def about(message: Message) -> Facts:
    """Its facts and which promise it is about, with the product first."""
    return tuple(sorted([("promise", promise(message)), *message.facts], key=lambda fact: fact[0] != PRODUCT))


def lines(message: Message) -> list[str]:
    """The message as plain text, for channels that have nothing better: with its headline, one screen."""
    facts = about(message)
    last = ending(message)
    label_width = max(len(label) for label, _ in facts)
    width = SCREEN_WIDTH - _MARGIN
    # Two for the headline. The fewer lines a value may have, the more is cut.
    for most in (3, 2, 1):
        body = [line for fact in facts for line in _wrapped(*fact, label_width, width, most)]
        ends = [line for text in last for line in _folded(text, width, most)]
        rows = sum(-(-len(line) // width) for line in (*body, *ends))
        if rows <= SCREEN_LINES - 2:
            break
    return [*body, *ends]


def folded(text: str, most: int = 3) -> list[str]:
    """A text on lines of a screen's width."""
    return _folded(text, SCREEN_WIDTH - _MARGIN, most)


def _wrapped(label: str, value: str, label_width: int, width: int, most: int) -> list[str]:
    if label in VERBATIM:
        return [f"{label.ljust(label_width)}  {value}"]
    first, *rest = _folded(value, width - label_width - 2, most) or [""]
    return [f"{label.ljust(label_width)}  {first}".rstrip(), *(" " * (label_width + 2) + one for one in rest)]


def _folded(text: str, width: int, most: int) -> list[str]:
    found = wrap(text, width, break_on_hyphens=False)
    return found if len(found) <= most else [*found[: most - 1], cut(" ".join(found[most - 1 :]), width)]


def news(message: Message) -> list[str]:
    """The lines of one step: its news, the budget once all is over, and that it may be a repeat."""
    budget = message.budget if message.state.closed else ""
    return [line for line in (message.note, budget, *repeat_note(message)) if line]


def ending(message: Message) -> list[str]:
    """The lines below the facts: what happened so far, the budget, and that it may be a repeat."""
    return [line for line in (*message.steps, message.budget, *repeat_note(message)) if line]


def as_dict(message: Message) -> dict[str, Any]:
    """The message as JSON values, for channels that machines read."""
    return {
        "incident": message.incident,
        "revision": message.revision,
        "contract": message.key.contract,
        "object": message.key.object,
        "group": message.key.group,
        "state": message.state,
        "severity": message.severity,
        "title": message.title,
        "facts": dict(message.facts),
        "steps": list(message.steps),
        "note": message.note,
        "budget": message.budget,
        "repeat": message.repeat,
    }


def repeat_note(message: Message) -> list[str]:
    """The line that asks for pardon when the same may have been said before; none otherwise."""
    return ["This may be a repeat: the first copy could not be traced."] if message.repeat else []


def cut(text: str, width: int) -> str:
    """`text` on one line and no longer than `width`; what could steer its reader is shown."""
    flat = one_line(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: width - 1] + "…"


# What is still worth saying of a breach that is over, beside how it ended.
_LASTING: Mapping[IncidentState, Collection[str]] = {
    IncidentState.RESOLVED: (PRODUCT, "promised", OWNER, COMMAND),
    # The contract may be no more, and then its command fails.
    **dict.fromkeys((IncidentState.EXCUSED, IncidentState.WITHDRAWN), (PRODUCT, "promised", OWNER)),
    IncidentState.GIVEN_UP: (
        *(PRODUCT, "promised", "looked in", "last good", "blocks"),
        *(OWNER, RUNBOOK, COMMAND),
    ),
}


def _facts(incident: Incident) -> Facts:
    """The newest broken subject's facts; when none is left, what the last one's end left of them."""
    if is_digest(incident):
        return (*listing(incident), (COMMAND, "dq incidents"))
    if still := incident.open_subjects:
        facts = incident.subjects[still[-1]].facts
        return (*facts[:_OPEN_AT], *still_broken(still), *facts[_OPEN_AT:])
    last = _last(incident)
    lasting = _LASTING.get(incident.state)
    before = [fact for fact in last.facts if lasting is None or fact[0] in lasting]
    ahead = [fact for fact in before if fact[0] in (PRODUCT, "promised")]
    behind = [fact for fact in before if fact not in ahead]
    # Who ended it and why stands in the steps.
    ending = dict(last.closing_facts)
    if incident.state in _EXPLAINED:
        ending.pop(incident.state.replace("_", " "), None)
    return tuple((dict(ahead) | ending | dict(behind)).items())


def _title(incident: Incident) -> str:
    others = len(incident.open_subjects) - 1
    if not countable(incident.subjects):
        return incident.title
    if others > 0:
        return f"{cut(incident.title, MAX_TITLE - 20)} and {others} more"
    if incident.state.closed and len(incident.subjects) > 1:
        return f"{cut(incident.title, MAX_TITLE - 20)} (the last of {len(incident.subjects)})"
    return incident.title


def _ends(incident: Incident) -> dict[str, End]:
    return {name: subject.end or End.KEPT for name, subject in incident.subjects.items()}


def _last(incident: Incident) -> Subject:
    subjects = incident.subjects
    return subjects[max(subjects, key=lambda name: (subjects[name].settled_at, name))]


_NAMED = 5


def _held_up(incident: Incident) -> Facts:
    """Who waits for it, by name as far as there is room."""
    names = incident.holds_up
    if not names or incident.state.closed:
        return ()
    return (("holds up", f"{counted(len(names), 'product')}: {first_of(names, _NAMED)}"),)


def _steps(incident: Incident, facts: Mapping[str, str]) -> tuple[str, ...]:
    if incident.state is IncidentState.PAST:
        return (f"Found at {instant(incident.opened_at)}; nobody had been told, and nothing is open.",)
    # Of the only one that is broken, a fact says it on both clocks.
    said = []
    if SINCE not in facts or len(incident.subjects) > 1:
        said.append(f"Broken since {instant(incident.opened_at)}.")
    if incident.acked_at:
        said.append(
            f"Acknowledged by {cut(incident.acked_by or '', MAX_VALUE)} at {instant(incident.acked_at)}."
        )
    if incident.flapping_since:
        said.append(f"Comes and goes since {instant(incident.flapping_since)}.")
    if incident.silenced_until and not incident.state.closed:
        why = cut(incident.silenced_why, MAX_VALUE)
        said.append(f"Silenced until {instant(incident.silenced_until)} by {why}")
    if incident.state.closed:
        said.append(_closed(incident) + in_all(_ends(incident)))
    return tuple(said)


_ENDS: Mapping[IncidentState, str] = {
    IncidentState.GIVEN_UP: "Given up at {at}, after {after}: it was not mended, and nobody waits any more.",
    IncidentState.WITHDRAWN: "Withdrawn at {at}, after {after}: what was promised is promised no more.",
    IncidentState.EXCUSED: "Excused at {at}, after {after}.",
    IncidentState.HANDED_OVER: "Handed over at {at}, after {after}: not resolved.",
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
            at=instant(closed), after=duration(max(closed - incident.opened_at, timedelta()))
        )
        why = dict(_last(incident).closing_facts).get(incident.state.replace("_", " "), "")
        return f"{said} {cut(why, MAX_VALUE)}" if why and incident.state in _EXPLAINED else said
    if closed <= incident.opened_at:
        return "Resolved: it was in order all along, and seen late."
    return f"Resolved at {instant(closed)}, after {duration(closed - incident.opened_at)}."


# The colour beside a message: that of its state once somebody has it, else of its severity.

# Green says that all is well, so no other end has it.
_GREY = "#868686"
_STATES: Mapping[IncidentState, str] = {
    IncidentState.ACKED: "#ecb22e",
    IncidentState.RESOLVED: "#2eb67d",
    IncidentState.EXCUSED: _GREY,
    IncidentState.WITHDRAWN: _GREY,
    IncidentState.GIVEN_UP: _GREY,
    IncidentState.HANDED_OVER: _GREY,
    IncidentState.PAST: _GREY,
}
_SEVERITIES: Mapping[Severity, str] = {
    Severity.INFO: "#36c5f0",
    Severity.WARNING: "#ecb22e",
    Severity.ERROR: "#e01e5a",
    Severity.CRITICAL: "#7c0f2c",
}
# Cards of Teams name colours, and each theme draws them its way.
NAMED: Mapping[str, str] = {
    _GREY: "default",
    "#ecb22e": "warning",
    "#2eb67d": "good",
    "#36c5f0": "accent",
    "#e01e5a": "attention",
    "#7c0f2c": "attention",
}


def colour(message: Message) -> str:
    """Red, green and blue, as in `#2eb67d`."""
    return _STATES.get(message.state, _SEVERITIES[message.severity])
