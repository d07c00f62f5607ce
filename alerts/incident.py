"""Incidents: the state machine of a breach or a recovery, flapping, titles, and digests of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from json import dumps
from types import MappingProxyType
from uuid import UUID, uuid5

from dq.alerts.route import LaterWord, Wait
from dq.contracts.outcome import Breach, End, IncidentKey, Recovery, Severity

# When an incident comes and goes so often that each change is news to nobody.

LIMITS = ((6, 4), (12, 6))
"""More changes than the second number within so many periods, and it flaps."""

KEPT = 16
"""So many of the last changes are remembered."""

HOUR = timedelta(hours=1)
"""How often the message is edited meanwhile; also the period of what has none."""


def flaps(changes: Sequence[datetime], period: timedelta | None, now: datetime) -> bool:
    """Whether it broke and ended too often in its last periods, by the instants of these changes.

    A period is the time from one due instant to the next. A change that lies a whole window back counts no
    more.
    """
    length = period or HOUR
    return any(sum(at > now - periods * length for at in changes) > most for periods, most in LIMITS)


def calm(period: timedelta | None) -> timedelta:
    """How long nothing must change for it to be over: what breaks after that is a new incident."""
    return max(period or HOUR, HOUR)


def edit(since: datetime, now: datetime) -> LaterWord:
    """When the message is edited next: on the hour, counted from when it began to flap."""
    hours = -((since - now) // HOUR)
    return LaterWord(since + hours * HOUR, Wait.CALM)


def reply(period: timedelta | None, now: datetime) -> LaterWord:
    """When the thread hears of a change: once it has lasted."""
    return LaterWord(now + calm(period), Wait.CALM)


# What the subjects of an incident are called: kept among their facts, so that no word is lost on the way.

TITLE = "title"
"""The fact of this label is what a subject is called while it is the one that is told; it is no line."""

Facts = tuple[tuple[str, str], ...]


def titled(title: str, facts: Facts) -> Facts:
    """The facts of a subject that is called so; as they are where it has no title of its own."""
    return ((TITLE, title), *facts) if title else facts


def title_after(now: str, end: str, still: Collection[Facts]) -> str:
    """What an incident is called once a subject has ended: as the newest that is left, else as the end says.

    `still` are the facts of those that are left, oldest first. Without words of an end it keeps its title.
    """
    if not end:
        return now
    newest = [*still][-1:]
    return (dict(newest[0]).get(TITLE) or now) if newest else end


# What a breach or a recovery makes of an incident: a pure state machine with one table.

COUNTS_TOLD = frozenset({2, 4, 8, 16})
"""The numbers of breaches at which the thread hears of a growing incident."""

CREATE, UPDATE = "create", "update"
REMINDER, FLAPPING = "reply:remind", "reply:flapping"
NAMESPACE = UUID("7d1e2b1c-52e5-4f2b-9a3e-0d7ab1d3c0aa")


class IncidentState(StrEnum):
    """Where an incident stands."""

    OPEN = "open"
    ACKED = "acked"
    RESOLVED = "resolved"
    EXCUSED = "excused"
    WITHDRAWN = "withdrawn"
    GIVEN_UP = "given_up"
    HANDED_OVER = "handed_over"
    PAST = "past"

    @property
    def closed(self) -> bool:
        """Nobody waits for anything any more; only RESOLVED says that all is well."""
        return self not in (IncidentState.OPEN, IncidentState.ACKED)


CLOSED_AS: Mapping[End, IncidentState] = {
    End.KEPT: IncidentState.RESOLVED,
    End.EXCUSED: IncidentState.EXCUSED,
    End.WITHDRAWN: IncidentState.WITHDRAWN,
    End.HANDED_OVER: IncidentState.HANDED_OVER,
    End.GIVEN_UP: IncidentState.GIVEN_UP,
}
"""An incident of several ends has the one that stands last here."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One cycle or run that broke the promise; `closed_at` and `end` are None while it is broken."""

    opened_at: datetime
    closed_at: datetime | None = None
    facts: Facts = ()
    closing_facts: Facts = ()
    end: End | None = None

    @property
    def settled_at(self) -> datetime:
        """The last instant that is known of it: what was said before is old news."""
        return self.opened_at if self.closed_at is None else max(self.opened_at, self.closed_at)


SHORT_ID = 8
"""So many signs of an id are shown, and so many tell one incident from the others."""


@dataclass(frozen=True, slots=True)
class Incident:
    """An open or closed breach of one promise.

    `opened_at` is when the promise broke, `resolved_at` when we learnt that it is over, whatever its end.
    `open_since` is when we learnt that it is broken, for the last time. `period` is how often its promise is
    due; `changes` are the instants at which it last began or ended, and `flapping_since` when it began to
    do so too often. `root_id` is the incident whose product this one waits for, and `holds_up` names those
    that wait for this one.
    """

    id: str
    key: IncidentKey
    severity: Severity
    title: str
    state: IncidentState
    opened_at: datetime
    revision: int = 1
    breaches: int = 1
    acked_at: datetime | None = None
    acked_by: str | None = None
    resolved_at: datetime | None = None
    open_since: datetime | None = None
    period: timedelta | None = None
    changes: tuple[datetime, ...] = ()
    flapping_since: datetime | None = None
    root_id: str | None = None
    holds_up: tuple[str, ...] = ()
    silenced_until: datetime | None = None
    silenced_why: str = ""
    subjects: Mapping[str, Subject] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def short_id(self) -> str:
        """The beginning of the id, as commands show and take it."""
        return self.id[:SHORT_ID]

    @property
    def open_subjects(self) -> tuple[str, ...]:
        """The subjects that are still broken, oldest first."""
        still = {name: subject for name, subject in self.subjects.items() if subject.closed_at is None}
        return tuple(sorted(still, key=lambda name: (still[name].opened_at, name)))


@dataclass(frozen=True, slots=True)
class Ack:
    """Someone says: I am on it."""

    who: str


Event = Breach | Recovery | Ack


@dataclass(frozen=True, slots=True)
class IncidentStep:
    """What an event did: the incident as it is now, the event's name, and what its channels are told.

    `tell` are outbox operations for channels that hold a message of it; a channel without one is always
    told to create it. Empty for a channel means: nothing to say.
    """

    incident: Incident
    kind: str
    tell: tuple[str, ...]


class _Is(StrEnum):
    """What an event is to an incident."""

    BREACH = "a breach of a subject that is not broken yet"
    ONE = "a recovery of one broken subject of several"
    LAST = "a recovery of the last broken subject"
    AFTER_ALL = "a recovery of a subject that had another end"
    ACK = "an acknowledgement"
    NEWS = "nothing new"


@dataclass(frozen=True, slots=True)
class _Row:
    state: IncidentState
    kind: str
    reply: str = ""


# None is no incident. A pair that is missing changes nothing.
_TRANSITIONS: Mapping[tuple[IncidentState | None, _Is], _Row] = {
    (None, _Is.BREACH): _Row(IncidentState.OPEN, "opened"),
    (IncidentState.OPEN, _Is.BREACH): _Row(IncidentState.OPEN, "joined", reply="count"),
    (IncidentState.ACKED, _Is.BREACH): _Row(IncidentState.ACKED, "joined", reply="count"),
    **{
        (state, _Is.BREACH): _Row(IncidentState.OPEN, "reopened", reply="reopened")
        for state in CLOSED_AS.values()
    },
    (IncidentState.OPEN, _Is.ONE): _Row(IncidentState.OPEN, "recovered"),
    (IncidentState.ACKED, _Is.ONE): _Row(IncidentState.ACKED, "recovered"),
    # Which state it is closed in, and what that is called, its subjects say.
    (IncidentState.OPEN, _Is.LAST): _Row(IncidentState.RESOLVED, "", reply="resolved"),
    (IncidentState.ACKED, _Is.LAST): _Row(IncidentState.RESOLVED, "", reply="resolved"),
    **{
        (state, _Is.AFTER_ALL): _Row(IncidentState.RESOLVED, "", reply="resolved")
        for state in CLOSED_AS.values()
    },
    (IncidentState.OPEN, _Is.AFTER_ALL): _Row(IncidentState.OPEN, "recovered"),
    (IncidentState.ACKED, _Is.AFTER_ALL): _Row(IncidentState.ACKED, "recovered"),
    (IncidentState.OPEN, _Is.ACK): _Row(IncidentState.ACKED, "acked", reply="acked"),
}


def step(incident: Incident | None, event: Event, now: datetime) -> IncidentStep | None:
    """The incident after `event`, or None when the event is no news.

    `incident` is the newest one of the event's key. A breach joins it while it is open, reopens it within
    `calm` of its resolve, and starts a new one after that.
    """
    what = _classify(incident, event)
    if incident is not None and what is _Is.BREACH and _is_over(incident, now):
        incident = None
    row = _TRANSITIONS.get((incident.state if incident else None, what))
    if row is None:
        return None
    if incident is None:
        if not isinstance(event, Breach):
            return None
        opened = replace(_opened(event), open_since=now, changes=(now,))
        return IncidentStep(opened, row.kind, (CREATE,))
    after = _counted(incident, _changed(incident, event, row.state, now), now)
    return IncidentStep(after, row.kind or after.state.value, _tell(incident, after, row))


def _classify(incident: Incident | None, event: Event) -> _Is:
    if isinstance(event, Ack):
        return _Is.ACK
    known = incident.subjects.get(event.subject) if incident else None
    if isinstance(event, Breach):
        # The same breach again, whether its subject is still broken or has recovered since.
        stale = known is not None and (known.closed_at is None or event.at <= known.settled_at)
        return _Is.NEWS if stale else _Is.BREACH
    if incident is None or known is None:
        return _Is.NEWS
    if known.closed_at is not None:
        # What was given up may come after all; what is kept stays kept.
        return _Is.AFTER_ALL if known.end is not End.KEPT and event.end is End.KEPT else _Is.NEWS
    return _Is.LAST if len(incident.open_subjects) == 1 else _Is.ONE


def _is_over(incident: Incident, now: datetime) -> bool:
    return incident.resolved_at is not None and now - incident.resolved_at > calm(incident.period)


def _counted(before: Incident, after: Incident, now: datetime) -> Incident:
    """With what is known of how often it began and ended."""
    if before.state.closed is after.state.closed:
        return after
    long_ago = not before.changes or now - before.changes[-1] > calm(after.period)
    changes = (*before.changes, now)[-KEPT:]
    often = flaps(changes, after.period, now)
    since = before.flapping_since if often or not long_ago else None
    if often and since is None:
        since = now
    return replace(after, changes=changes, flapping_since=since)


def _opened(breach: Breach) -> Incident:
    # The same breach gives the same id, so a restored database finds its messages again.
    key, instant = breach.key, breach.at.astimezone(UTC).isoformat()
    identity = dumps([key.contract, key.object, key.group, breach.subject, instant])
    return Incident(
        id=str(uuid5(NAMESPACE, identity)),
        key=breach.key,
        severity=breach.severity,
        title=breach.title,
        state=IncidentState.OPEN,
        opened_at=breach.at,
        period=breach.period,
        subjects=MappingProxyType({breach.subject: _broken(breach)}),
    )


def past(breach: Breach) -> Incident:
    """An incident that was over before it was known."""
    opened = _opened(breach)
    subject = Subject(breach.at, breach.at, facts=breach.facts, end=End.KEPT)
    subjects = MappingProxyType({breach.subject: subject})
    return replace(opened, state=IncidentState.PAST, resolved_at=breach.at, subjects=subjects)


def _changed(incident: Incident, event: Event, state: IncidentState, now: datetime) -> Incident:
    resolved_at = now if state.closed else None
    after = replace(incident, state=state, revision=incident.revision + 1, resolved_at=resolved_at)
    if isinstance(event, Ack):
        return replace(after, acked_at=now, acked_by=event.who)
    if isinstance(event, Recovery):
        closed = replace(
            incident.subjects[event.subject],
            closed_at=event.at,
            closing_facts=titled(event.title, event.facts),
            end=event.end,
        )
        subjects = {**incident.subjects, event.subject: closed}
        after = replace(after, subjects=MappingProxyType(subjects))
        title = title_after(after.title, event.title, [subjects[name].facts for name in after.open_subjects])
        state = _end(subjects) if state.closed else state
        return replace(after, title=title, state=state, severity=event.severity or after.severity)
    reopened = incident.state.closed
    return replace(
        after,
        severity=max(incident.severity, event.severity, key=lambda severity: severity.rank),
        title=event.title,
        breaches=incident.breaches + 1,
        period=event.period or incident.period,
        acked_at=None if reopened else incident.acked_at,
        acked_by=None if reopened else incident.acked_by,
        open_since=now if reopened else incident.open_since,
        subjects=MappingProxyType({**incident.subjects, event.subject: _broken(event)}),
    )


def _broken(breach: Breach) -> Subject:
    return Subject(breach.at, facts=titled(breach.title, breach.facts))


def _end(subjects: Mapping[str, Subject]) -> IncidentState:
    ends = {CLOSED_AS[subject.end or End.KEPT] for subject in subjects.values()}
    return max(ends, key=list(CLOSED_AS.values()).index)


def _tell(before: Incident, after: Incident, row: _Row) -> tuple[str, ...]:
    if after.flapping_since and not before.flapping_since:
        return (UPDATE, FLAPPING)
    if row.reply != "count":
        return (UPDATE, f"reply:{row.reply}") if row.reply else (UPDATE,)
    if after.severity is not before.severity:
        return (UPDATE, "reply:worse")
    return (UPDATE, "reply:count") if after.breaches in COUNTS_TOLD else (UPDATE,)


# A digest: one message that stands for many incidents of one place, and lists them.

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


# An incident in a few JSON values, as `dq status` and the portal give it.


def incident_as_row(one: Incident) -> dict[str, object]:
    """What is open, how bad it is, since when, and for which deliveries or partitions."""
    return {
        "id": one.id,
        "key": str(one.key),
        "severity": one.severity,
        "title": one.title,
        "opened_at": one.opened_at.isoformat(),
        "subjects": list(one.open_subjects),
    }
