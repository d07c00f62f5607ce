"""Incidents: state machine of breaches and recoveries, flapping, titles and digests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from json import dumps
from types import MappingProxyType
from uuid import UUID, uuid5

from dq.alerts.route import Deferral, DeferralReason
from dq.contracts.incident import AT_RISK, Breach, IncidentKey, Recovery, Resolution
from dq.contracts.outcome import Severity

# Flapping.

FLAPPING_LIMITS = ((6, 4), (12, 6))
"""(periods, changes): an incident flaps with more changes than this within so many periods."""

MAX_CHANGES = 16
"""Number of stored changes."""

EDIT_INTERVAL = timedelta(hours=1)
"""Interval of edits while an incident flaps; also the period of incidents without one."""


def is_flapping(changes: Sequence[datetime], period: timedelta | None, now: datetime) -> bool:
    """True if there were too many changes in the last periods.

    A period is the time from one due instant to the next. Changes at the window's start do not count.
    """
    length = period or EDIT_INTERVAL
    return any(
        sum(changed_at > now - periods * length for changed_at in changes) > limit
        for periods, limit in FLAPPING_LIMITS
    )


def stabilization_period(period: timedelta | None) -> timedelta:
    """Return the time without changes after which an incident is over; a later breach opens a new one."""
    return max(period or EDIT_INTERVAL, EDIT_INTERVAL)


def edit_deferral(since: datetime, now: datetime) -> Deferral:
    """Return the deferral of the next edit: full hours after the start of flapping."""
    hours = -((since - now) // EDIT_INTERVAL)
    return Deferral(since + hours * EDIT_INTERVAL, DeferralReason.CALM)


def reply_deferral(period: timedelta | None, now: datetime) -> Deferral:
    """Return the deferral of a reply about a change: until it has been stable."""
    return Deferral(now + stabilization_period(period), DeferralReason.CALM)


# Titles of subjects, stored among their facts.

TITLE = "title"
"""Label of the fact with a subject's title; not rendered as a line."""

Facts = tuple[tuple[str, str], ...]


def with_title(title: str, facts: Facts) -> Facts:
    """Return the facts with the title, or unchanged for an empty title."""
    return ((TITLE, title), *facts) if title else facts


def title_after(current_title: str, end_title: str, open_facts: Collection[Facts]) -> str:
    """Return the title of an incident after the end of a subject: of the newest open subject, else of the
    end.

    `open_facts` are the facts of the open subjects, oldest first. With an empty `end_title` it is unchanged.
    """
    if not end_title:
        return current_title
    newest_facts = [*open_facts][-1:]
    return (dict(newest_facts[0]).get(TITLE) or current_title) if newest_facts else end_title


# The state machine of an incident: pure, with one transition table.

NOTIFIED_COUNTS = frozenset({2, 4, 8, 16})
"""Numbers of breaches at which a growing incident gets a reply."""

CREATE, UPDATE = "create", "update"
REMINDER, FLAPPING = "reply:remind", "reply:flapping"
NAMESPACE = UUID("7d1e2b1c-52e5-4f2b-9a3e-0d7ab1d3c0aa")


class IncidentState(StrEnum):
    """State of an incident."""

    OPEN = "open"
    ACKED = "acked"
    RESOLVED = "resolved"
    EXCUSED = "excused"
    WITHDRAWN = "withdrawn"
    GIVEN_UP = "given_up"
    HANDED_OVER = "handed_over"
    PAST = "past"

    @property
    def is_closed(self) -> bool:
        """True if the incident is closed; only RESOLVED means that the problem is solved."""
        return self not in (IncidentState.OPEN, IncidentState.ACKED)


CLOSED_AS: Mapping[Resolution, IncidentState] = {
    Resolution.RECOVERED: IncidentState.RESOLVED,
    Resolution.EXCUSED: IncidentState.EXCUSED,
    Resolution.WITHDRAWN: IncidentState.WITHDRAWN,
    Resolution.HANDED_OVER: IncidentState.HANDED_OVER,
    Resolution.GIVEN_UP: IncidentState.GIVEN_UP,
}
"""States by end. An incident whose subjects have several ends gets the last one in this order."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One cycle or run in breach of the promise; `closed_at` and `end` are None while it is open."""

    opened_at: datetime
    closed_at: datetime | None = None
    facts: Facts = ()
    closing_facts: Facts = ()
    end: Resolution | None = None

    @property
    def is_at_risk(self) -> bool:
        """True if it is open because of an early warning, without a breach yet."""
        return self.closed_at is None and any(label == AT_RISK for label, _ in self.facts)

    @property
    def settled_at(self) -> datetime:
        """The last known instant of the subject; earlier events are ignored."""
        return self.opened_at if self.closed_at is None else max(self.opened_at, self.closed_at)


SHORT_ID = 8
"""Number of characters in short ids."""


@dataclass(frozen=True, slots=True)
class Incident:
    """An open or closed breach of one promise.

    `opened_at` is when the promise was breached, `resolved_at` when the end was recorded, whatever its kind.
    `open_since` is when the last breach was recorded that opened or reopened it. `period` is how often its
    promise is due; `changes` are the instants of its last openings and closings, and `flapping_since` is when
    it began to flap. `root_id` is the upstream incident that inhibits this one, and `inhibits` names the
    downstream products that are inhibited by this one.
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
    inhibits: tuple[str, ...] = ()
    silenced_until: datetime | None = None
    silence_reason: str = ""
    subjects: Mapping[str, Subject] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def short_id(self) -> str:
        """Prefix of the id, as shown and accepted by commands."""
        return self.id[:SHORT_ID]

    @property
    def open_subjects(self) -> tuple[str, ...]:
        """Open subjects, oldest first."""
        open_by_name = {name: subject for name, subject in self.subjects.items() if subject.closed_at is None}
        return tuple(sorted(open_by_name, key=lambda name: (open_by_name[name].opened_at, name)))


@dataclass(frozen=True, slots=True)
class Ack:
    """A user's acknowledgement."""

    user: str


Event = Breach | Recovery | Ack


@dataclass(frozen=True, slots=True)
class IncidentStep:
    """Result of an event: the new incident, the kind of the change, and the outbox operations.

    `operations` are for targets that already have a message of the incident; new targets always get a create.
    """

    incident: Incident
    kind: str
    operations: tuple[str, ...]


class _EventMeaning(StrEnum):
    """Meaning of an event for an incident."""

    BREACH = "a breach of a subject that is not broken yet"
    CONFIRMATION = "a breach of a subject that was at risk"
    PARTIAL_RECOVERY = "a recovery of one broken subject of several"
    FULL_RECOVERY = "a recovery of the last broken subject"
    LATE_RECOVERY = "a recovery of a subject that had another end"
    ACK = "an acknowledgement"
    NO_CHANGE = "nothing new"


@dataclass(frozen=True, slots=True)
class _Transition:
    state: IncidentState
    kind: str
    reply: str = ""


# State None: there is no incident. Pairs that are not listed change nothing.
_TRANSITIONS: Mapping[tuple[IncidentState | None, _EventMeaning], _Transition] = {
    (None, _EventMeaning.BREACH): _Transition(IncidentState.OPEN, "opened"),
    (IncidentState.OPEN, _EventMeaning.BREACH): _Transition(IncidentState.OPEN, "joined", reply="count"),
    (IncidentState.ACKED, _EventMeaning.BREACH): _Transition(IncidentState.ACKED, "joined", reply="count"),
    (IncidentState.OPEN, _EventMeaning.CONFIRMATION): _Transition(
        IncidentState.OPEN, "breached", reply="breached"
    ),
    # An acknowledgement of the warning does not cover the breach.
    (IncidentState.ACKED, _EventMeaning.CONFIRMATION): _Transition(
        IncidentState.OPEN, "breached", reply="breached"
    ),
    **{
        (state, _EventMeaning.BREACH): _Transition(IncidentState.OPEN, "reopened", reply="reopened")
        for state in CLOSED_AS.values()
    },
    (IncidentState.OPEN, _EventMeaning.PARTIAL_RECOVERY): _Transition(IncidentState.OPEN, "recovered"),
    (IncidentState.ACKED, _EventMeaning.PARTIAL_RECOVERY): _Transition(IncidentState.ACKED, "recovered"),
    # The closed state and its name follow from the ends of the subjects.
    (IncidentState.OPEN, _EventMeaning.FULL_RECOVERY): _Transition(
        IncidentState.RESOLVED, "", reply="resolved"
    ),
    (IncidentState.ACKED, _EventMeaning.FULL_RECOVERY): _Transition(
        IncidentState.RESOLVED, "", reply="resolved"
    ),
    **{
        (state, _EventMeaning.LATE_RECOVERY): _Transition(IncidentState.RESOLVED, "", reply="resolved")
        for state in CLOSED_AS.values()
    },
    (IncidentState.OPEN, _EventMeaning.LATE_RECOVERY): _Transition(IncidentState.OPEN, "recovered"),
    (IncidentState.ACKED, _EventMeaning.LATE_RECOVERY): _Transition(IncidentState.ACKED, "recovered"),
    (IncidentState.OPEN, _EventMeaning.ACK): _Transition(IncidentState.ACKED, "acked", reply="acked"),
}


def step(incident: Incident | None, event: Event, now: datetime) -> IncidentStep | None:
    """Return the incident after `event`, or None if the event changes nothing.

    `incident` is the newest one of the event's key. A breach joins it while it is open, reopens it within
    `stabilization_period` after its end, and opens a new one after that.
    """
    meaning = _classify(incident, event)
    if incident is not None and meaning is _EventMeaning.BREACH and _is_over(incident, now):
        incident = None
    transition = _TRANSITIONS.get((incident.state if incident else None, meaning))
    if transition is None:
        return None
    if incident is None:
        if not isinstance(event, Breach):
            return None
        opened = replace(_new_incident(event), open_since=now, changes=(now,))
        return IncidentStep(opened, transition.kind, (CREATE,))
    after = _with_flapping(incident, _apply_event(incident, event, transition.state, now), now)
    return IncidentStep(after, transition.kind or after.state.value, _operations(incident, after, transition))


def _classify(incident: Incident | None, event: Event) -> _EventMeaning:
    if isinstance(event, Ack):
        return _EventMeaning.ACK
    subject = incident.subjects.get(event.subject) if incident else None
    if isinstance(event, Breach):
        if subject is not None and subject.is_at_risk and not event.is_warning:
            return _EventMeaning.CONFIRMATION
        # A repeated breach, of a subject that is still open or has recovered since.
        is_stale = subject is not None and (
            subject.closed_at is None or event.occurred_at <= subject.settled_at
        )
        return _EventMeaning.NO_CHANGE if is_stale else _EventMeaning.BREACH
    if incident is None or subject is None:
        return _EventMeaning.NO_CHANGE
    if subject.closed_at is not None:
        # A given-up delivery may still arrive. A kept promise stays kept.
        return (
            _EventMeaning.LATE_RECOVERY
            if subject.end is not Resolution.RECOVERED and event.end is Resolution.RECOVERED
            else _EventMeaning.NO_CHANGE
        )
    return _EventMeaning.FULL_RECOVERY if len(incident.open_subjects) == 1 else _EventMeaning.PARTIAL_RECOVERY


def _is_over(incident: Incident, now: datetime) -> bool:
    return incident.resolved_at is not None and now - incident.resolved_at > stabilization_period(
        incident.period
    )


def _with_flapping(before: Incident, after: Incident, now: datetime) -> Incident:
    """Return `after` with updated changes and flapping state."""
    if before.state.is_closed is after.state.is_closed:
        return after
    was_stable = not before.changes or now - before.changes[-1] > stabilization_period(after.period)
    changes = (*before.changes, now)[-MAX_CHANGES:]
    flapping = is_flapping(changes, after.period, now)
    flapping_since = before.flapping_since if flapping or not was_stable else None
    if flapping and flapping_since is None:
        flapping_since = now
    return replace(after, changes=changes, flapping_since=flapping_since)


def _new_incident(breach: Breach) -> Incident:
    # The id is derived from the breach, so that a restored database finds its messages again.
    key, instant = breach.key, breach.occurred_at.astimezone(UTC).isoformat()
    identity = dumps([key.contract, key.object, key.group, breach.subject, instant])
    return Incident(
        id=str(uuid5(NAMESPACE, identity)),
        key=breach.key,
        severity=breach.severity,
        title=breach.title,
        state=IncidentState.OPEN,
        opened_at=breach.occurred_at,
        period=breach.period,
        subjects=MappingProxyType({breach.subject: _open_subject(breach)}),
    )


def past_incident(breach: Breach) -> Incident:
    """Return an incident that was over before it was recorded."""
    incident = _new_incident(breach)
    subject = Subject(breach.occurred_at, breach.occurred_at, facts=breach.facts, end=Resolution.RECOVERED)
    subjects = MappingProxyType({breach.subject: subject})
    return replace(incident, state=IncidentState.PAST, resolved_at=breach.occurred_at, subjects=subjects)


def _apply_event(incident: Incident, event: Event, state: IncidentState, now: datetime) -> Incident:
    resolved_at = now if state.is_closed else None
    after = replace(incident, state=state, revision=incident.revision + 1, resolved_at=resolved_at)
    if isinstance(event, Ack):
        return replace(after, acked_at=now, acked_by=event.user)
    if isinstance(event, Recovery):
        closed_subject = replace(
            incident.subjects[event.subject],
            closed_at=event.occurred_at,
            closing_facts=with_title(event.title, event.facts),
            end=event.end,
        )
        subjects = {**incident.subjects, event.subject: closed_subject}
        after = replace(after, subjects=MappingProxyType(subjects))
        title = title_after(after.title, event.title, [subjects[name].facts for name in after.open_subjects])
        state = _closed_state(subjects) if state.is_closed else state
        return replace(after, title=title, state=state, severity=event.severity or after.severity)
    # An acknowledged warning is open again once it is a breach.
    reopened = incident.state.is_closed or state is not incident.state
    was_warned = event.subject in incident.subjects and incident.subjects[event.subject].is_at_risk
    return replace(
        after,
        severity=max(incident.severity, event.severity, key=lambda severity: severity.rank),
        title=event.title,
        breaches=incident.breaches + (not was_warned),
        period=event.period or incident.period,
        acked_at=None if reopened else incident.acked_at,
        acked_by=None if reopened else incident.acked_by,
        open_since=now if reopened else incident.open_since,
        subjects=MappingProxyType({**incident.subjects, event.subject: _open_subject(event)}),
    )


def _open_subject(breach: Breach) -> Subject:
    return Subject(breach.occurred_at, facts=with_title(breach.title, breach.facts))


def _closed_state(subjects: Mapping[str, Subject]) -> IncidentState:
    ends = {CLOSED_AS[subject.end or Resolution.RECOVERED] for subject in subjects.values()}
    return max(ends, key=list(CLOSED_AS.values()).index)


def _operations(before: Incident, after: Incident, transition: _Transition) -> tuple[str, ...]:
    if after.flapping_since and not before.flapping_since:
        return (UPDATE, FLAPPING)
    if transition.reply != "count":
        return (UPDATE, f"reply:{transition.reply}") if transition.reply else (UPDATE,)
    if after.severity is not before.severity:
        return (UPDATE, "reply:worse")
    return (UPDATE, "reply:count") if after.breaches in NOTIFIED_COUNTS else (UPDATE,)


# Digests: one message that lists many incidents of one target.

DIGEST_CONTRACT = "(storm)"
"""Contract key of digests; not a contract id, because ids have no brackets."""

PAST_CONTRACT = "(past)"
"""Contract key of incidents that ended before anyone was notified."""

MAX_LISTED = 20
"""Number of listed incidents; the others are counted."""

MAX_IN_NOTICE = 6
"""Number of listed breaches of a notice; the others are counted."""


def is_digest(incident: Incident) -> bool:
    """True if the incident is a digest of others."""
    return incident.key.contract == DIGEST_CONTRACT


def digest_title(incidents: int) -> str:
    """Return the title of a digest of so many incidents."""
    return f"{incidents} incidents at once"


def digest_lines(incident: Incident) -> Facts:
    """Return the open members, oldest first, as (promise, title), or all members if none is open."""
    members = incident.open_subjects or tuple(incident.subjects)
    lines = [fact for name in members[:MAX_LISTED] for fact in _member_line(incident.subjects[name])]
    remaining = (
        [("and", f"{len(members) - MAX_LISTED} more; see 'dq incidents'")]
        if len(members) > MAX_LISTED
        else []
    )
    closed_count = len(incident.subjects) - len(incident.open_subjects)
    summary = (
        [("closed", f"{closed_count} of {len(incident.subjects)}")]
        if closed_count and incident.open_subjects
        else []
    )
    return (*summary, *lines, *remaining)


def _member_line(subject: Subject) -> Facts:
    """Return the promise and title of a member; the title is that of its end once it is closed."""
    facts = (subject.closing_facts if subject.closed_at else ()) or subject.facts
    return tuple(fact for fact in facts if fact[0] != TITLE)[:1]


def digest_summary(incident: Incident) -> str:
    """Return a sentence on the ends of the members."""
    ends = Counter(CLOSED_AS[subject.end or Resolution.RECOVERED] for subject in incident.subjects.values())
    counts = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in ends.most_common())
    return f"All {len(incident.subjects)} closed: {counts}."


# Notices: incidents of consumers. One has the breaches of one cause as subjects, as far as they affect a
# consumer, so it grows, notifies and ends like any other.

NOTICE_CONTRACT = "(subscription)"
"""Contract key of notices; not a contract id, because ids have no brackets."""

SUBSCRIPTION = "subscription"
"""Label of the fact with the files of the subscriptions that a breach affects."""

_VIA = " via "


def notice_key(team: str, receiver: str, cause: str) -> IncidentKey:
    """Return the key of a consumer's notice: its team, its `channel:target`, and the product of the cause."""
    return IncidentKey(NOTICE_CONTRACT, f"{team}{_VIA}{receiver}", cause)


def is_notice(key: IncidentKey) -> bool:
    """True if the key is that of a consumer's notice."""
    return key.contract == NOTICE_CONTRACT


def notified_team(key: IncidentKey) -> str:
    """Return the team of a consumer's notice."""
    return key.object.rpartition(_VIA)[0]


def key_label(key: IncidentKey) -> str:
    """Return a key for a list of incidents; that of a notice names the team, its channel and the cause."""
    if not is_notice(key):
        return str(key)
    team, _, receiver = key.object.rpartition(_VIA)
    return f"subscription of {team} ({receiver}), cause {key.group}"


def notice_terms(incident: Incident) -> dict[str, str]:
    """Return the team, channel and cause of a notice, and the files of its subscriptions."""
    team, _, receiver = incident.key.object.rpartition(_VIA)
    files = (dict(subject.facts).get(SUBSCRIPTION, "") for subject in incident.subjects.values())
    return {
        "team": team,
        "channel": receiver,
        "cause": incident.key.group,
        SUBSCRIPTION: ", ".join(filter(None, dict.fromkeys(files))),
    }


def notice_subject(key: IncidentKey, subject: str) -> str:
    """Return the subject of a notice for a subject of a product's incident."""
    return f"{key} {subject}"


def notice_lines(incident: Incident) -> Facts:
    """Return the open breaches of a notice, oldest first, as (number, title), or all if none is open."""
    names = incident.open_subjects or tuple(incident.subjects)
    lines = [
        (f"{number} of {len(names)}", dict(_newest_facts(incident.subjects[name])).get(TITLE, name))
        for number, name in enumerate(names[:MAX_IN_NOTICE], 1)
    ]
    remaining = len(names) - MAX_IN_NOTICE
    return (*lines, ("and", f"{remaining} more")) if remaining > 0 else tuple(lines)


def _newest_facts(subject: Subject) -> Facts:
    return (subject.closing_facts if subject.closed_at else ()) or subject.facts


# An incident as JSON values, for `dq status` and the portal.


def incident_as_row(incident: Incident) -> dict[str, object]:
    """Return an incident as JSON values, with its open deliveries or partitions."""
    return {
        "id": incident.id,
        "key": str(incident.key),
        "severity": incident.severity,
        "title": incident.title,
        "opened_at": incident.opened_at.isoformat(),
        "subjects": list(incident.open_subjects),
    }
