"""Messages about incidents, independent of channel formats; at most one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import wrap
from typing import Any

from dq.alerts.incident import (
    DIGEST_CONTRACT,
    FLAPPING,
    MAX_LISTED,
    REMINDER,
    TITLE,
    Facts,
    Incident,
    IncidentState,
    Subject,
    digest_lines,
    digest_summary,
    is_digest,
    is_notice,
    notice_lines,
    notified_team,
    stabilization_period,
)
from dq.contracts.incident import IncidentKey, Resolution
from dq.contracts.outcome import Severity, join_limited, one_line, pluralize

# Texts on the numbers of deliveries or partitions of an incident. Subjects are given by name.

_LISTED_SUBJECTS = 3

_END_WORDS: Mapping[Resolution, str] = {
    Resolution.RECOVERED: "resolved",
    Resolution.GIVEN_UP: "given up",
    Resolution.HANDED_OVER: "handed over",
    Resolution.EXCUSED: "excused",
    Resolution.WITHDRAWN: "withdrawn",
}


def are_countable(subjects: Collection[str]) -> bool:
    """True if each subject is a delivery or a partition, so that a number of them makes sense."""
    return all(_due_at(subject) is not None or "=" in subject for subject in subjects)


def open_subject_facts(subjects: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return a fact on several open subjects, oldest first; empty if there is only one."""
    if len(subjects) < 2 or not are_countable(subjects):
        return ()
    due_instants = [due_at for due_at in map(_due_at, subjects) if due_at is not None]
    if len(due_instants) < len(subjects):
        return (("still open", join_limited(subjects, _LISTED_SUBJECTS)),)
    if len(due_instants) <= _LISTED_SUBJECTS:
        return (
            ("still missing", f"due {', '.join(f'{due_at:%Y-%m-%d %H:%M}' for due_at in due_instants)} UTC"),
        )
    return (
        ("still missing", f"{len(due_instants)} deliveries, the oldest was due {utc_text(due_instants[0])}"),
    )


def progress_text(subjects: Collection[str], open_subjects: Collection[str]) -> str:
    """Return a sentence on the number of subjects since the incident began, and how many are still open."""
    total, remaining = len(subjects), len(open_subjects)
    if any(_due_at(subject) is None for subject in subjects):
        return f"{total} broken so far, {remaining} still open."
    phrases = {0: "all have arrived since", total: "none has arrived yet"}
    progress = phrases.get(remaining, f"{remaining} still missing")
    return f"{total} deliveries missed their deadline so far; {progress}."


def totals_text(ends: Mapping[str, Resolution]) -> str:
    """Return a sentence on the ends of several subjects, "" for a single one."""
    if len(ends) < 2 or not are_countable(ends):
        return ""
    counts = Counter(ends.values())
    totals = ", ".join(f"{counts[end]} {word}" for end, word in _END_WORDS.items() if counts[end])
    return f" There were {len(ends)} in all" + (f": {totals}." if len(counts) > 1 else ".")


def utc_text(value: datetime) -> str:
    """Return an instant in UTC, to the minute."""
    return f"{value:%Y-%m-%d %H:%M} UTC"


def duration(length: timedelta) -> str:
    """Return a duration in its two largest units: '2 d 4 h', '1 h 5 min', '40 s'."""
    seconds = int(length.total_seconds())
    parts = [
        (seconds // 86400, "d"),
        (seconds % 86400 // 3600, "h"),
        (seconds % 3600 // 60, "min"),
        (seconds % 60, "s"),
    ]
    amounts = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(amounts[:2]) or "0 s"


def _due_at(subject: str) -> datetime | None:
    """Return the due instant of a delivery from its subject, or None if the subject is not a delivery."""
    try:
        due_at = datetime.fromisoformat(subject)
    except ValueError:
        return None
    return due_at if due_at.tzinfo else None


MAX_TITLE, MAX_LABEL, MAX_VALUE, MAX_FACTS = 140, 40, 240, 13
SCREEN_LINES, SCREEN_WIDTH = 25, 100
"""Size of a message as plain text, including its headline."""

BUDGET = "budget"
"""Label of the fact that is rendered as a separate last line."""
MENTION = "mention"
"""Label of the fact with ids of users or groups to mention; not rendered as a line."""
PRODUCT, SINCE, OWNER = "product", "since", "owner"
USED_FOR = "used for"
"""Label of the fact with a consumer's purposes."""
RUNBOOK, COMMAND = "runbook", "details"
# Characters per line reserved for a channel's own indentation of plain text.
_MARGIN, _OPEN_AT = 4, 2
VERBATIM = frozenset({RUNBOOK, COMMAND})
"""Facts that users copy: never wrapped or truncated."""


@dataclass(frozen=True, slots=True)
class Message:
    """One incident at one revision, ready for a channel to render.

    `facts` are (label, value) lines. `steps` are past events, oldest first. `note` is the sentence of a
    thread reply. `repeat` is set if a copy may have been delivered already. `mentions` are user or group ids
    named in the contract, only for open incidents; channels must not extract mentions from other texts.
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
    "reply:count": lambda incident: _progress(incident),
    "reply:worse": lambda incident: f"The severity is now {incident.severity}.",
    "reply:breached": lambda _: "Nothing arrived in time: what was at risk is a breach now.",
    "reply:reopened": lambda _: "Broken again soon after it was resolved.",
    "reply:acked": lambda incident: f"Acknowledged by {incident.acked_by}.",
    "reply:resolved": lambda incident: _closing_text(incident),
    FLAPPING: lambda incident: (
        f"Flapping: {len(incident.changes)} changes since {utc_text(incident.changes[0])}. "
        "Updates limited to once an hour; replies only for changes lasting "
        f"{duration(stabilization_period(incident.period))}."
    ),
    REMINDER: lambda incident: (
        f"Open since {utc_text(incident.opened_at)}, not acknowledged. "
        f"To acknowledge: dq incidents ack {incident.id[:8]}"
    ),
}


def render(incident: Incident, operation: str, repeat: bool = False) -> Message:
    """Return the message of `operation` (create, update or reply:<step>) for the current incident."""
    facts = (*_inhibits_fact(incident), *_facts(incident))
    by_label = dict(facts)
    visible = [
        (cut(label, MAX_LABEL), value if label in VERBATIM else cut(value, MAX_VALUE))
        for label, value in facts
        if label not in (BUDGET, MENTION, TITLE)
    ]
    return Message(
        incident=incident.id,
        revision=incident.revision,
        key=incident.key,
        title=cut(incident_title(incident), MAX_TITLE),
        severity=incident.severity,
        state=incident.state,
        facts=_limit_facts(visible, MAX_LISTED + 2 if is_digest(incident) else MAX_FACTS),
        steps=_steps(incident, by_label),
        note=cut(_note(incident, operation), MAX_VALUE),
        budget=cut(by_label.get(BUDGET, ""), MAX_VALUE),
        repeat=repeat,
        mentions=tuple(by_label.get(MENTION, "").split()) if incident.state is IncidentState.OPEN else (),
    )


def _progress(incident: Incident) -> str:
    if is_notice(incident.key):
        return f"{len(incident.subjects)} breaches so far, {len(incident.open_subjects)} still open."
    return progress_text(incident.subjects, incident.open_subjects)


def _limit_facts(facts: Sequence[tuple[str, str]], limit: int) -> Facts:
    """Return at most `limit` facts, keeping the last four, which help to act."""
    return tuple(facts if len(facts) <= limit else (*facts[: limit - 4], *facts[-4:]))


def _note(incident: Incident, operation: str) -> str:
    # The part after a second colon only makes the operation unique.
    template = _NOTES.get(":".join(operation.split(":")[:2]))
    return template(incident) if template else ""


def headline(message: Message) -> str:
    """Return one line with state or severity, and title."""
    mark = message.state.replace("_", " ") if message.state.is_closed else message.severity
    return f"{mark.upper()}: {message.title}"


def promise_fact(message: Message) -> Facts:
    """Return the contract, object and SLO id of a message as a fact, or a short name for dq's own incidents.

    For a consumer's notice it is the team. Digests and summaries of the past list the promises of others, and
    have no fact.
    """
    key = message.key
    if key.contract == DIGEST_CONTRACT or message.state is IncidentState.PAST:
        return ()
    if is_notice(key):
        return (("consumer", cut(notified_team(key), MAX_LABEL)),)
    # dq's own incidents have a source in brackets, e.g. "(platform)", which cannot be a contract id.
    source = key.contract.strip("()") if key.contract.startswith("(") else ""
    name = f"{source}: {key.group}" if source == "platform" else source
    return (("promise", name or cut(str(key), MAX_VALUE)),)


def facts_with_promise(message: Message) -> Facts:
    """Return the facts including the promise, with the product first."""
    return tuple(sorted([*promise_fact(message), *message.facts], key=lambda fact: fact[0] != PRODUCT))


def text_lines(message: Message) -> list[str]:
    """Return the message as plain text without headline; both together fit on one screen."""
    facts = facts_with_promise(message)
    footer = footer_lines(message)
    label_width = max(len(label) for label, _ in facts)
    width = SCREEN_WIDTH - _MARGIN
    # Two lines are for the headline. With fewer lines per value, more is truncated.
    for max_lines in (3, 2, 1):
        body = [line for fact in facts for line in _fact_lines(*fact, label_width, width, max_lines)]
        footer_rows = [line for text in footer for line in _wrap(text, width, max_lines)]
        rows = sum(-(-len(line) // width) for line in (*body, *footer_rows))
        if rows <= SCREEN_LINES - 2:
            break
    return [*body, *footer_rows]


def wrap_lines(text: str, max_lines: int = 3) -> list[str]:
    """Wrap a text to the width of a screen."""
    return _wrap(text, SCREEN_WIDTH - _MARGIN, max_lines)


def _fact_lines(label: str, value: str, label_width: int, width: int, max_lines: int) -> list[str]:
    if label in VERBATIM:
        return [f"{label.ljust(label_width)}  {value}"]
    first, *continuation = _wrap(value, width - label_width - 2, max_lines) or [""]
    return [
        f"{label.ljust(label_width)}  {first}".rstrip(),
        *(" " * (label_width + 2) + line for line in continuation),
    ]


def _wrap(text: str, width: int, max_lines: int) -> list[str]:
    wrapped = wrap(text, width, break_on_hyphens=False)
    return (
        wrapped
        if len(wrapped) <= max_lines
        else [*wrapped[: max_lines - 1], cut(" ".join(wrapped[max_lines - 1 :]), width)]
    )


def step_lines(message: Message) -> list[str]:
    """Return the lines of one step: its note, the budget once the incident is closed, and the repeat note."""
    budget = message.budget if message.state.is_closed else ""
    return [line for line in (message.note, budget, *repeat_lines(message)) if line]


def footer_lines(message: Message) -> list[str]:
    """Return the lines below the facts: steps, budget and repeat note."""
    return [line for line in (*message.steps, message.budget, *repeat_lines(message)) if line]


def as_dict(message: Message) -> dict[str, Any]:
    """Return the message as JSON values, for machine-readable channels."""
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


def repeat_lines(message: Message) -> list[str]:
    """Return a line if the message may be a repeat, otherwise none."""
    return (
        ["Possible duplicate: delivery of the first copy could not be confirmed."] if message.repeat else []
    )


def cut(text: str, width: int) -> str:
    """Return `text` on one line, truncated to `width`, with control characters made visible."""
    flat = one_line(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: width - 1] + "…"


# Facts of a breach that are still shown after its end.
_FACTS_AFTER_END: Mapping[IncidentState, Collection[str]] = {
    IncidentState.RESOLVED: (PRODUCT, USED_FOR, "promised", OWNER, COMMAND),
    # The contract may be deleted, so its command could fail.
    **dict.fromkeys((IncidentState.EXCUSED, IncidentState.WITHDRAWN), (PRODUCT, USED_FOR, "promised", OWNER)),
    IncidentState.GIVEN_UP: (
        *(PRODUCT, USED_FOR, "promised", "location", "last on time", "blocks"),
        *(OWNER, RUNBOOK, COMMAND),
    ),
}


def _facts(incident: Incident) -> Facts:
    """Return the facts of the newest open subject, or of the last end if none is open."""
    if is_digest(incident):
        return (*digest_lines(incident), (COMMAND, "dq incidents"))
    if is_notice(incident.key) and (len(incident.open_subjects) > 1 or _are_several_closed(incident)):
        return _notice_facts(incident)
    if open_subjects := incident.open_subjects:
        facts = incident.subjects[open_subjects[-1]].facts
        return (*facts[:_OPEN_AT], *open_subject_facts(open_subjects), *facts[_OPEN_AT:])
    last_subject = _last_subject(incident)
    labels = _FACTS_AFTER_END.get(incident.state)
    facts_kept = [fact for fact in last_subject.facts if labels is None or fact[0] in labels]
    leading = [fact for fact in facts_kept if fact[0] in (PRODUCT, "promised")]
    trailing = [fact for fact in facts_kept if fact not in leading]
    # The steps contain who ended it and why.
    closing_facts = dict(last_subject.closing_facts)
    if incident.state in _WITH_REASON:
        closing_facts.pop(incident.state.replace("_", " "), None)
    return tuple((dict(leading) | closing_facts | dict(trailing)).items())


def _are_several_closed(incident: Incident) -> bool:
    return incident.state.is_closed and len(incident.subjects) > 1


# Facts that the breaches of one notice share.
_NOTICE_FACTS = (USED_FOR, "needed by", "cause", OWNER)


def _notice_facts(incident: Incident) -> Facts:
    """Return the list of breaches, then the facts that all of them share."""
    names = incident.open_subjects or tuple(incident.subjects)
    facts = [dict(incident.subjects[name].facts) for name in names]
    shared = [
        (label, values.pop())
        for label in _NOTICE_FACTS
        if len(values := {by_label.get(label, "") for by_label in facts}) == 1 and values != {""}
    ]
    return (*notice_lines(incident), *shared)


def incident_title(incident: Incident) -> str:
    """Return the title of an incident's message, with the number of its open subjects."""
    other_count = len(incident.open_subjects) - 1
    if is_notice(incident.key):
        return _notice_title(incident)
    if not are_countable(incident.subjects):
        return incident.title
    if other_count > 0:
        return f"{cut(incident.title, MAX_TITLE - 20)} and {other_count} more"
    if incident.state.is_closed and len(incident.subjects) > 1:
        return f"{cut(incident.title, MAX_TITLE - 20)} (the last of {len(incident.subjects)})"
    return incident.title


def _notice_title(incident: Incident) -> str:
    count, team = len(incident.open_subjects), notified_team(incident.key)
    if count > 1:
        return f"{count} breaches of data that {cut(team, MAX_LABEL)} uses"
    if incident.state.is_closed and len(incident.subjects) > 1:
        return f"all {len(incident.subjects)} breaches of data that {cut(team, MAX_LABEL)} uses have ended"
    return incident.title


def _subject_ends(incident: Incident) -> dict[str, Resolution]:
    return {name: subject.end or Resolution.RECOVERED for name, subject in incident.subjects.items()}


def _last_subject(incident: Incident) -> Subject:
    subjects = incident.subjects
    return subjects[max(subjects, key=lambda name: (subjects[name].settled_at, name))]


_MAX_NAMED = 5


def _inhibits_fact(incident: Incident) -> Facts:
    """Return a fact with the inhibited downstream products, if there are any."""
    names = incident.inhibits
    if not names or incident.state.is_closed:
        return ()
    return (("holds up", f"{pluralize(len(names), 'product')}: {join_limited(names, _MAX_NAMED)}"),)


def _steps(incident: Incident, facts: Mapping[str, str]) -> tuple[str, ...]:
    if incident.state is IncidentState.PAST:
        return (f"Detected at {utc_text(incident.opened_at)}; no alert had been sent, and nothing is open.",)
    # For a single open subject, a fact has this instant in local time and UTC.
    steps = []
    if SINCE not in facts or len(incident.subjects) > 1:
        steps.append(f"Broken since {utc_text(incident.opened_at)}.")
    if incident.acked_at:
        steps.append(
            f"Acknowledged by {cut(incident.acked_by or '', MAX_VALUE)} at {utc_text(incident.acked_at)}."
        )
    if incident.flapping_since:
        steps.append(f"Flapping since {utc_text(incident.flapping_since)}.")
    if incident.silenced_until and not incident.state.is_closed:
        reason = cut(incident.silence_reason, MAX_VALUE)
        steps.append(f"Silenced until {utc_text(incident.silenced_until)} by {reason}")
    if incident.state.is_closed:
        steps.append(_closing_text(incident) + totals_text(_subject_ends(incident)))
    return tuple(steps)


_END_TEXTS: Mapping[IncidentState, str] = {
    IncidentState.GIVEN_UP: "Closed at {at}, after {after}: not delivered before the give-up deadline.",
    IncidentState.WITHDRAWN: "Withdrawn at {at}, after {after}: no longer monitored.",
    IncidentState.EXCUSED: "Excused at {at}, after {after}.",
    IncidentState.HANDED_OVER: "Handed over at {at}, after {after}: not resolved.",
}
# Ends with a user's reason, added to the text because some channels show no facts at the end.
_WITH_REASON = (IncidentState.WITHDRAWN, IncidentState.EXCUSED)


def _closing_text(incident: Incident) -> str:
    """Return a sentence about the end of an incident, which may be open again when the message is sent."""
    if not incident.state.is_closed:
        return "Closed in between, then broken again."
    if is_digest(incident):
        return digest_summary(incident)
    closed_at = max(subject.closed_at for subject in incident.subjects.values() if subject.closed_at)
    if incident.state in _END_TEXTS:
        text = _END_TEXTS[incident.state].format(
            at=utc_text(closed_at), after=duration(max(closed_at - incident.opened_at, timedelta()))
        )
        reason = dict(_last_subject(incident).closing_facts).get(incident.state.replace("_", " "), "")
        return f"{text} {cut(reason, MAX_VALUE)}" if reason and incident.state in _WITH_REASON else text
    if closed_at <= incident.opened_at:
        return "Resolved: there was no breach; the evidence was seen late."
    return f"Resolved at {utc_text(closed_at)}, after {duration(closed_at - incident.opened_at)}."


# Message colours: by state once acknowledged or closed, otherwise by severity.

# Green is for resolved incidents only.
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
# Names of colours in Teams cards, which depend on the theme.
TEAMS_COLOURS: Mapping[str, str] = {
    _GREY: "default",
    "#ecb22e": "warning",
    "#2eb67d": "good",
    "#36c5f0": "accent",
    "#e01e5a": "attention",
    "#7c0f2c": "attention",
}


def colour(message: Message) -> str:
    """Return the message's colour as RGB, e.g. `#2eb67d`."""
    return _STATES.get(message.state, _SEVERITIES[message.severity])
