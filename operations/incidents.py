"""Manual operations on incidents and alerts: list, acknowledge, silence, dismiss, and test routes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast
from uuid import uuid4

from sqlalchemy import Connection

from dq.alerts import channels, drain, incident_store, record
from dq.alerts import suppression as silence_store
from dq.alerts.channel import MessageRef, PermanentFailure, SendResult, Sent, UnconfirmedSend, UpdatingSender
from dq.alerts.drain import DrainResult, UndeliveredNotifications
from dq.alerts.incident import Incident, IncidentState, is_notice, notice_terms, step
from dq.alerts.incident_store import PastStep, incidents_as_of, open_incidents_at, steps_until
from dq.alerts.message import Message, render
from dq.alerts.route import CONSOLE, AlertRoute
from dq.alerts.suppression import AlertSilence, KeyPattern
from dq.contracts.incident import Breach, IncidentKey, Recovery
from dq.contracts.outcome import DqError, Finding, Severity, UsageError, iso
from dq.operations import alerting
from dq.operations.alerting import FROM_CONTRACT
from dq.operations.registry_files import load
from dq.operations.runtime.context import RuntimeContext, call_context, parse_duration, user
from dq.store.engine import Store

NEWEST = 200
"""Number of newest incidents listed when ended ones are included."""
_LONGEST_SILENCE = timedelta(days=90)
_LONGEST_TEXT = 200
_ID = re.compile(r"[0-9a-f-]{4,36}", re.IGNORECASE)
_HINT = "Run 'dq incidents' to list open incidents, or 'dq incidents --all' for all."


@dataclass(frozen=True, slots=True)
class IncidentsOutcome:
    """Incidents and active silences, as of `at` in UTC.

    `history` has the steps of a single requested incident, oldest first, or is None for a list.
    """

    at: datetime
    incidents: tuple[Incident, ...]
    silences: tuple[AlertSilence, ...] = ()
    history: tuple[PastStep, ...] | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq incidents --format json` as JSON values."""
        if self.history is not None:
            steps = [_step_as_dict(past) for past in self.history]
            return {**_incident_as_dict(self.incidents[0], self.at), "history": steps}
        return {
            "incidents": [_incident_as_dict(incident, self.at) for incident in self.incidents],
            "silences": [_silence_as_dict(silence) for silence in self.silences],
        }


def incidents(
    incident: str | None = None,
    *,
    ended: bool = False,
    contract: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> IncidentsOutcome:
    """List open incidents and active silences, or one incident with its history, as `dq incidents` does.

    `incident` is the beginning of an id, or as for `acknowledge`. With `ended` the newest 200 are listed,
    open or not. `contract` filters by a contract's key or contract/object. `folder` replaces the working
    folder. `now` is an aware instant: the state as of then is returned.

    Raises UsageError if there is no such incident, and StoreError if the store cannot be read.
    """
    context, _ = call_context(None, folder, now)
    as_of = context.as_of
    with closing(context.store()) as store, store.read() as tx:
        if incident is not None:
            listed = incidents_as_of(tx, find_incidents(tx, incident, context.folder), as_of)
            if len(listed) == 1:
                history = steps_until(incident_store.history(tx, listed[0].id), as_of)
                return IncidentsOutcome(context.now(), tuple(listed), history=tuple(history))
        elif ended:
            listed = incidents_as_of(tx, incident_store.newest_of_all(tx, NEWEST, contract), as_of)
        else:
            listed = open_incidents_at(tx, as_of)
        holding = silence_store.active(tx, context.now())
    selected = (row for row in listed if contract is None or is_of(row, contract))
    return IncidentsOutcome(context.now(), tuple(selected), tuple(holding))


@dataclass(frozen=True, slots=True)
class AckOutcome:
    """Incidents that `by` acknowledged, as they were before.

    `acknowledged` are the ids of those newly acknowledged; the others were acknowledged before, or are over.
    `real` is the answer to the unusual numbers of those in `answered`, None if none was given. `drained` has
    the sent and waiting alerts, and `alerts` the blocks of the console channel.
    """

    by: str
    incidents: tuple[Incident, ...]
    acknowledged: frozenset[str]
    drained: DrainResult
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    real: bool | None = None
    answered: frozenset[str] = frozenset()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq incidents ack`: 4 an alert was not delivered, 2 something is over already."""
        over = (
            incident.id not in self.acknowledged | self.answered and incident.state is not IncidentState.ACKED
            for incident in self.incidents
        )
        return alerting.exit_code(self.drained) or (2 if any(over) else 0)

    def as_list(self) -> list[dict[str, object]]:
        """Return the output of `dq incidents ack --format json` as JSON values."""
        return [
            {
                "id": incident.id,
                "key": str(incident.key),
                "acknowledged": (new := incident.id in self.acknowledged),
                "by": self.by if new else incident.acked_by,
                "state": "acked" if new else incident.state,
                "real": self.real if incident.id in self.answered else None,
            }
            for incident in self.incidents
        ]


def acknowledge(
    incident: str,
    *,
    by: str | None = None,
    real: bool | None = None,
    channel: str = FROM_CONTRACT,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> AckOutcome:
    """Acknowledge an incident and notify its channels, as `dq incidents ack` does.

    `incident` is the beginning of an id (at least four characters), or a contract, contract/object,
    contract/object/slo, contract file or folder for all its open incidents. `by` is the person, by default
    the user of this machine. `real` is the answer whether its unusual numbers are a real problem; an incident
    that is over can still be answered by its id. `channel` is `contract` for the channels of the contracts,
    or one channel, e.g. `console`. `folder` replaces the working folder; `now` is an aware instant.

    Raises UsageError if there is no such open incident or, with `real`, no unusual number in it, and
    StoreError if the store cannot be read.
    """
    context, _ = call_context(None, folder, now)
    with closing(context.store()) as store:
        return acknowledge_in(context, store, incident, person(by), real, channel)


def acknowledge_in(
    context: RuntimeContext,
    store: Store,
    incident: str,
    actor: str,
    real: bool | None = None,
    channel: str = FROM_CONTRACT,
) -> AckOutcome:
    """Acknowledge an incident of this store; see `acknowledge` for the arguments and errors."""
    answered: set[str] = set()
    with store.write() as tx:
        matching = find_incidents(tx, incident, context.folder)
        if real is not None:
            answers = [
                alerting.answer_alarms(tx, row, real=real, by=actor, now=context.now()) for row in matching
            ]
            answered = {row.id for row, count in zip(matching, answers, strict=True) if count}
            if not answered:
                raise UsageError(
                    f"{incident!r} has no unusual number to answer.",
                    "--real and --not-real are for alarms of the check 'unusual'.",
                )
        done = [row.id for row in matching if record.acknowledge(tx, row.id, actor, context.now())]
    drained = alerting.send(context, store, channel)
    messages = context.messages
    return AckOutcome(
        actor, tuple(matching), frozenset(done), drained, tuple(messages.alerts), tuple(messages.notes),
        real, frozenset(answered),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SilenceOutcome:
    """Active silences, or those that were started or ended.

    `until` is the end of a started silence, or None for a list or an end; `incidents` are the open incidents
    that it mutes. `drained` is None if nothing was to be sent.
    """

    silences: tuple[AlertSilence, ...] = ()
    until: datetime | None = None
    incidents: tuple[Incident, ...] = ()
    drained: DrainResult | None = None
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq incidents silence`: 4 an alert was not delivered."""
        return alerting.exit_code(self.drained) if self.drained is not None else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq incidents silence PATTERN --for … --format json` as JSON values."""
        return {"until": iso(self.until), "incidents": [incident.id for incident in self.incidents]}

    def as_list(self) -> list[dict[str, object]]:
        """Return the silences as printed by `dq incidents silence --format json` and `--end`."""
        return [_silence_as_dict(silence) for silence in self.silences]


def silence(
    what: str | None = None,
    *,
    length: str | None = None,
    reason: str | None = None,
    by: str | None = None,
    end: bool = False,
    channel: str = FROM_CONTRACT,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> SilenceOutcome:
    """Mute alerts of new incidents for a while, as `dq incidents silence` does; without `what`, list them.

    `what` is a pattern over contract/object/promise (`orders`, `sales-*/*/daily`), or the beginning of an
    incident's id. `length` is the duration, e.g. `2h`, up to `90d`, and `reason` the reason. `end` ends the
    silences with this pattern, or of this incident; then neither is needed. `by`, `channel`, `folder` and
    `now` are those of `acknowledge`.

    Raises UsageError for invalid arguments or if there is nothing to end, and StoreError if the store cannot
    be read.
    """
    context, _ = call_context(None, folder, now)
    starts_at = context.now()
    with closing(context.store()) as store:
        if what is None:
            if end or length or reason:
                raise UsageError(
                    "no pattern or incident given.", "Pass one, e.g. dq incidents silence orders --for 2h …"
                )
            with store.read() as tx:
                return SilenceOutcome(tuple(silence_store.active(tx, starts_at)))
        actor = person(by)
        until = None if end else starts_at + _length(length)
        why = "" if end else _words(reason or "", "--reason", "the lake moves")
        ended: list[AlertSilence] = []
        muted: Sequence[Incident] = ()
        with store.write() as tx:
            if until is None:
                ended = _active_silences(tx, what, starts_at)
                silence_store.end_silences(tx, [row.id for row in ended], actor, starts_at)
            else:
                muted = silence_store.begin_silence(tx, _pattern(tx, what), why, actor, starts_at, until)
        drained = alerting.send(context, store, channel)
    messages = context.messages
    return SilenceOutcome(
        tuple(ended), until, tuple(muted), drained, tuple(messages.alerts), tuple(messages.notes)
    )


def _length(text: str | None) -> timedelta:
    if not text:
        raise UsageError("no duration given.", "Pass e.g. --for 2h.")
    length = parse_duration(text, "--for")
    if not timedelta() < length <= _LONGEST_SILENCE:
        raise UsageError(f"invalid --for {text!r}.", "Use a duration of up to 90d, e.g. 2h.")
    return length


def _pattern(tx: Connection, text: str) -> KeyPattern:
    incident = _by_id(tx, text)
    if incident is not None:
        return KeyPattern.for_key(incident.key)
    parts = [part.strip() for part in text.split("/")]
    if len(parts) > 3 or not all(parts):
        raise UsageError(
            f"invalid pattern {text!r}.", "Use contract, contract/object or contract/object/slo."
        )
    return KeyPattern(*parts)


def _active_silences(tx: Connection, text: str, now: datetime) -> list[AlertSilence]:
    """Return the active silences with this pattern, or that mute this incident."""
    incident, active = _by_id(tx, text), silence_store.active(tx, now)
    if incident is not None:
        matching = [row for row in active if row.pattern.matches(incident.key)]
    else:
        matching = [row for row in active if row.pattern == _pattern(tx, text)]
    if not matching:
        patterns = ", ".join(repr(str(row.pattern)) for row in active) or "nothing"
        raise UsageError(f"{text!r} is not silenced.", f"Silenced now: {patterns}.")
    return matching


@dataclass(frozen=True, slots=True)
class OutboxOutcome:
    """Undelivered alerts; `dismissed` counts those that were dismissed."""

    outstanding: tuple[UndeliveredNotifications, ...]
    dismissed: int = 0

    @property
    def exit_code(self) -> int:
        """Exit code of `dq outbox`: 4 something is refused, or was tried in vain for a quarter of an hour."""
        return 4 if any(row.stuck for row in self.outstanding) else 0

    def as_list(self) -> list[dict[str, object]]:
        """Return the output of `dq outbox --format json` as JSON values."""
        return [alerting.outstanding_as_dict(row) for row in self.outstanding]


def outbox(
    *, dismiss: str | None = None, by: str | None = None, folder: Path | str | None = None
) -> OutboxOutcome:
    """List waiting and rejected alerts, as `dq outbox` does.

    `dismiss` is a receiver, e.g. `slack:#sales`, whose rejected alerts are dismissed by the person `by`.
    `folder` replaces the working folder.

    Raises UsageError if that receiver rejected nothing, and StoreError if the store cannot be read.
    """
    context, _ = call_context(None, folder)
    dismissed = 0
    with closing(context.store()) as store:
        if dismiss is not None:
            channel, _, target = dismiss.partition(":")
            actor = (by or "").strip()
            if not actor:
                raise UsageError("--dismiss needs --by.", "Pass --by with a name.")
            with store.write() as tx:
                dismissed = drain.dismiss(tx, channel, target, actor, context.now())
            if not dismissed:
                raise UsageError(
                    f"no rejected alerts for {dismiss!r}.", "Run 'dq outbox' to list undelivered alerts."
                )
        with store.read() as tx:
            return OutboxOutcome(tuple(drain.all_undelivered(tx, context.now())), dismissed)


# Test of routes: one message through each, of an incident that is not stored.

TITLE = "Test alert from dq: nothing is broken"


@dataclass(frozen=True, slots=True)
class RouteTest:
    """Result of the test of one route. `good` is None if it is unknown whether the message arrived."""

    channel: str
    target: str
    good: bool | None
    result: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AlertTestOutcome:
    """Results of a test of routes.

    `findings` are contracts that could not be read, `alerts` the blocks of the console channel.
    """

    routes: tuple[RouteTest, ...]
    findings: tuple[Finding, ...] = ()
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq incidents test`: 4 something did not arrive, 3 a contract could not be read."""
        return 4 if not all(test.good for test in self.routes) else 3 if self.findings else 0

    def as_list(self) -> list[dict[str, object]]:
        """Return the output of `dq incidents test --format json` as JSON values."""
        rows: list[dict[str, object]] = []
        for test in self.routes:
            place = {"channel": test.channel, "target": test.target}
            hint = {"hint": test.hint} if test.hint else {}
            rows.append({**place, "arrived": test.good, "detail": test.result, **hint})
        return rows


def send_test_alert(
    contract: Path | str | None = None,
    *,
    channel: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> AlertTestOutcome:
    """Send one message, marked as a test, through each route of a contract, or through one channel.

    `contract` is a file or a folder; `channel` is one route instead, such as `slack:#sales-data`. No incident
    is opened, and the store is not used. `folder` and `now` are those of `acknowledge`.

    Raises UsageError for an unknown channel, and ReadError for a path without contracts.
    """
    if (contract is None) == (channel is None):
        raise UsageError(
            "no contract or channel to test given.",
            "Use dq incidents test orders.odcs.yaml, or dq incidents test --channel slack:#sales-data.",
        )
    context, paths = call_context(contract, folder, now)
    findings: list[Finding] = []
    if channel is not None:
        tests = [_test(context, _route(channel))]
    else:
        loaded = load(paths, context.note)
        findings = list(loaded.findings)
        refused = alerting.refused(loaded.contracts, FROM_CONTRACT, context.settings)
        tests = [RouteTest("", "", False, f"{row.contract}: {row.message}", row.hint) for row in refused]
        by_place = {
            (route.channel, route.target): route
            for row in loaded.contracts
            for route in alerting.routes(row, FROM_CONTRACT, context.settings) or [CONSOLE]
        }
        tests += [_test(context, route) for route in by_place.values()]
    messages = context.messages
    return AlertTestOutcome(tuple(tests), tuple(findings), tuple(messages.alerts), tuple(messages.notes))


def _route(channel: str) -> AlertRoute:
    name, _, target = channel.partition(":")
    choice = channels.load()
    if name not in choice:
        alerting.refuse_unknown_channel(channel, choice)
    return AlertRoute(name, target)


def _test(context: RuntimeContext, route: AlertRoute) -> RouteTest:
    name, target = route.channel, route.target
    channel = channels.load()[name]
    try:
        opened = channel.open(alerting.channel_settings(context, channel), context.messages.alert)
    except DqError as error:
        return RouteTest(name, target, False, error.message, error.hint)
    first, resolution = _messages(context)
    answer = opened.sender.create(target, first, first.incident)
    if isinstance(answer, Sent) and opened.can.update:
        ended = cast(UpdatingSender, opened.sender).update(answer.receipt, resolution)
        if not isinstance(ended, Sent):
            return RouteTest(name, target, False, f"delivered, but could not be resolved: {ended.reason}")
    return RouteTest(name, target, *_result(answer))


def _result(answer: SendResult) -> tuple[bool | None, str, str]:
    if isinstance(answer, Sent):
        note = f"; {answer.note}" if answer.note else ""
        return True, f"delivered ({_receipt(answer.receipt)}){note}", ""
    if isinstance(answer, UnconfirmedSend):
        return None, f"unknown: {answer.reason}", "Check in the channel whether it arrived."
    if isinstance(answer, PermanentFailure):
        return False, f"rejected: {answer.reason}", "Run dq doctor to check the channel's settings."
    return False, f"not sent: {answer.reason}", "Try again; real alerts are retried automatically."


def _receipt(place: MessageRef) -> str:
    return " ".join(part for part in (place.place, place.reference) if part)


def _messages(context: RuntimeContext) -> Iterator[Message]:
    """Yield the test message and its resolution."""
    now, key = context.now(), IncidentKey("(test)", "(test)", "test")
    # Each test is an incident of its own, which is not stored.
    breach = Breach(key, Severity.INFO, str(uuid4()), TITLE, now, (("what to do", "nothing"),))
    opened = step(None, breach, now)
    assert opened is not None
    ended = step(opened.incident, Recovery(key, breach.subject, now), now)
    assert ended is not None
    sent = f"Sent by dq incidents test at {now:%Y-%m-%d %H:%M} UTC."
    yield replace(render(opened.incident, "create"), steps=(sent,))
    yield replace(render(ended.incident, "update"), steps=(sent, "The test is over."))


# Incident references and user names in arguments.


def find_incidents(tx: Connection, text: str, folder: Path) -> list[Incident]:
    """Return the incident with an id or prefix of one, or the open ones of a contract, object, SLO or path.

    `text` is an id, a contract (its key, or its id without the major version), contract/object,
    contract/object/slo, or a contract file or folder of contracts below `folder`. Raises UsageError if no
    open incident matches or several contracts do, and ReadError for a path without contracts.
    """
    incident = _by_id(tx, text)
    if incident is not None:
        return [incident]
    open_incidents = incident_store.open_incidents(tx)
    matching = [row for row in open_incidents if is_of(row, text)]
    if not matching:
        id_, *object_and_slo = text.split("/")
        matching = [
            row
            for row in open_incidents
            if row.key.contract.partition("@")[0] == id_
            and is_of(row, "/".join((row.key.contract, *object_and_slo)))
        ]
    if not matching and (folder / text).exists():
        keys = {contract.key for contract in load([folder / text], lambda _: None).contracts}
        matching = [row for row in open_incidents if row.key.contract in keys]
        if not matching:
            raise UsageError(f"no open incident of the contracts in {text}.", _HINT)
        return matching
    if not matching:
        raise UsageError(f"no open incident {text!r}.", _HINT)
    contracts = sorted({row.key.contract for row in matching})
    if len(contracts) > 1:
        raise UsageError(f"{text!r} matches several contracts: {', '.join(contracts)}.", "Pass one of them.")
    return matching


def _by_id(tx: Connection, text: str) -> Incident | None:
    """Return the incident with this id prefix, or None. Raises UsageError if it is ambiguous."""
    if not _ID.fullmatch(text):
        return None
    matching = incident_store.find_by_prefix(tx, text.lower())
    if len(matching) > 1:
        ids = ", ".join(row.id for row in matching)
        raise UsageError(f"incident id {text!r} is ambiguous: {ids}.", "Pass a longer id.")
    return matching[0] if matching else None


def is_of(incident: Incident, text: str) -> bool:
    """True if the incident belongs to this contract, contract/object or contract/object/slo."""
    key = incident.key
    return text in (key.contract, f"{key.contract}/{key.object}", str(key))


def person(by: str | None) -> str:
    """Return the acting person: `by`, or the user of the operating system."""
    return _words(by if by is not None else user(), "--by", "ana@example.com")


def _words(text: str, option: str, example: str) -> str:
    """Return a name or a reason on one line. Raises UsageError if it is empty or too long."""
    words = " ".join(text.split())
    if not words:
        raise UsageError(f"{option} is empty.", f"Pass e.g. {option} {example!r}.")
    if len(words) > _LONGEST_TEXT:
        raise UsageError(f"{option} has {len(words)} characters, more than {_LONGEST_TEXT}.", "Shorten it.")
    return words


# JSON values.


def _silence_as_dict(silence: AlertSilence) -> dict[str, object]:
    return {
        "pattern": str(silence.pattern),
        "reason": silence.reason,
        "by": silence.user,
        "at": silence.starts_at.isoformat(),
        "until": silence.until.isoformat(),
    }


def _step_as_dict(past: PastStep) -> dict[str, object]:
    return {
        "at": past.at.isoformat(),
        "kind": past.kind,
        "revision": past.revision,
        "subject": past.subject,
        "detail": past.detail,
    }


def _incident_as_dict(incident: Incident, now: datetime) -> dict[str, object]:
    until = incident.silenced_until
    silenced = until if until and until > now else None
    return {
        "id": incident.id,
        "contract": incident.key.contract,
        "object": incident.key.object,
        "group": incident.key.group,
        "state": incident.state,
        "severity": incident.severity,
        "title": incident.title,
        "opened_at": incident.opened_at.isoformat(),
        "resolved_at": iso(incident.resolved_at),
        "acked_at": iso(incident.acked_at),
        "acked_by": incident.acked_by,
        "silenced_until": iso(silenced),
        "silence_reason": incident.silence_reason if silenced else None,
        "root": incident.root_id,
        "inhibits": list(incident.inhibits),
        "flapping_since": iso(incident.flapping_since),
        "breaches": incident.breaches,
        "open": list(incident.open_subjects),
        "consumer": notice_terms(incident) if is_notice(incident.key) else None,
    }
