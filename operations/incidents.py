"""Incidents and alerts by hand: shown, acknowledged, silenced, dismissed, and a test of every route."""

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
from dq.alerts.channel import Ambiguous, Answer, MessagePlace, Rejected, Sent, UpdatingSender
from dq.alerts.drain import Drained, Outstanding
from dq.alerts.incident import Incident, IncidentState, step
from dq.alerts.incident_store import PastStep, rewound, standing_at, steps_until
from dq.alerts.message import Message, render
from dq.alerts.route import CONSOLE, AlertRoute
from dq.alerts.suppression import AlertSilence, KeyPattern
from dq.contracts.outcome import Breach, DqError, Finding, IncidentKey, Recovery, Severity, UsageError, iso
from dq.operations import alerting
from dq.operations.alerting import FROM_CONTRACT
from dq.operations.registry_files import load
from dq.operations.runtime.context import World, called, elapsed, user

NEWEST = 200
"""So many incidents, the newest, are listed where the ended ones are asked for too."""
_LONGEST_SILENCE = timedelta(days=90)
_LONGEST_TEXT = 200
_ID = re.compile(r"[0-9a-f-]{4,36}", re.IGNORECASE)
_MEND = "See 'dq incidents' for those that are open, and 'dq incidents --all' for the others."


@dataclass(frozen=True, slots=True)
class IncidentsOutcome:
    """Incidents and the silences that hold, as of `at` in UTC.

    `history` has the steps of the one incident that was asked for, oldest first; None for a list.
    """

    at: datetime
    incidents: tuple[Incident, ...]
    silences: tuple[AlertSilence, ...] = ()
    history: tuple[PastStep, ...] | None = None

    def as_dict(self) -> dict[str, object]:
        """What `dq incidents --format json` prints."""
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
    """The open incidents and what is silenced, or one incident with its history, as `dq incidents` does.

    `incident` is the beginning of an id, or what `acknowledge` takes. With `ended` the newest 200 are listed,
    open or not. `contract` is a contract's key or contract/object, and keeps only its incidents. `folder`
    stands for the working folder. `now` is an aware instant: everything is as it stood then.

    Raises UsageError where there is no such incident, and StoreError for a store that does not answer.
    """
    world, _ = called(None, folder, now)
    at = world.as_of
    with closing(world.store()) as store, store.read() as tx:
        if incident is not None:
            listed = rewound(tx, named(tx, incident), at)
            if len(listed) == 1:
                history = steps_until(incident_store.history(tx, listed[0].id), at)
                return IncidentsOutcome(world.now(), tuple(listed), history=tuple(history))
        elif ended:
            listed = rewound(tx, incident_store.newest_of_all(tx, NEWEST, contract), at)
        else:
            listed = standing_at(tx, at)
        holding = silence_store.active(tx, world.now())
    kept = (row for row in listed if contract is None or is_of(row, contract))
    return IncidentsOutcome(world.now(), tuple(kept), tuple(holding))


@dataclass(frozen=True, slots=True)
class AckOutcome:
    """The incidents that `by` was to be noted on, as they were before.

    `acknowledged` are the ids of those that `by` is on now; the others were acknowledged before, or are over.
    `drained` is what was sent and what waits, and `alerts` the blocks of the console's channel.
    """

    by: str
    incidents: tuple[Incident, ...]
    acknowledged: frozenset[str]
    drained: Drained
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq incidents ack` ends: 4 an alert was not delivered, 2 something is over already."""
        over = (
            incident.id not in self.acknowledged and incident.state is not IncidentState.ACKED
            for incident in self.incidents
        )
        return alerting.exit_code(self.drained) or (2 if any(over) else 0)

    def as_list(self) -> list[dict[str, object]]:
        """What `dq incidents ack --format json` prints."""
        return [
            {
                "id": incident.id,
                "key": str(incident.key),
                "acknowledged": (new := incident.id in self.acknowledged),
                "by": self.by if new else incident.acked_by,
                "state": "acked" if new else incident.state,
            }
            for incident in self.incidents
        ]


def acknowledge(
    incident: str,
    *,
    by: str | None = None,
    channel: str = FROM_CONTRACT,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> AckOutcome:
    """Note that somebody is on an incident, and tell its channels, as `dq incidents ack` does.

    `incident` is the beginning of an id (at least four signs), or contract, contract/object or
    contract/object/promise for all that is open of it. `by` is who is on it, by default the user of this
    machine. `channel` is `contract` for the channels that contracts name, else one such as `console`.
    `folder` stands for the working folder; `now` is an aware instant.

    Raises UsageError where there is no such open incident, and StoreError for a store that does not answer.
    """
    world, _ = called(None, folder, now)
    who = person(by)
    with closing(world.store()) as store:
        with store.write() as tx:
            matching = named(tx, incident)
            done = [row.id for row in matching if record.acknowledge(tx, row.id, who, world.now())]
        drained = alerting.send(world, store, channel)
    said = world.messages
    return AckOutcome(who, tuple(matching), frozenset(done), drained, tuple(said.alerts), tuple(said.notes))


@dataclass(frozen=True, slots=True)
class SilenceOutcome:
    """Silences that hold, or that were begun or ended.

    `until` is when what was begun ends, and `incidents` are the open ones that it concerns; None for a list
    and an end. `drained` is None where nothing was to be sent.
    """

    silences: tuple[AlertSilence, ...] = ()
    until: datetime | None = None
    incidents: tuple[Incident, ...] = ()
    drained: Drained | None = None
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq incidents silence` ends: 4 an alert was not delivered."""
        return alerting.exit_code(self.drained) if self.drained is not None else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq incidents silence PATTERN --for … --format json` prints."""
        return {"until": iso(self.until), "incidents": [incident.id for incident in self.incidents]}

    def as_list(self) -> list[dict[str, object]]:
        """What `dq incidents silence --format json` and `--end` print: the silences."""
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
    incident's id. `length` is how long, such as `2h`, up to `90d`, and `reason` why. `end` ends the silences
    of this pattern, or over this incident; then neither is needed. `by`, `channel`, `folder` and `now` are
    those of `acknowledge`.

    Raises UsageError for what does not fit and where there is nothing to end, and StoreError for a store that
    does not answer.
    """
    world, _ = called(None, folder, now)
    at = world.now()
    with closing(world.store()) as store:
        if what is None:
            if end or length or reason:
                raise UsageError(
                    "it is not said what.", "Write a pattern or an id: dq incidents silence orders --for 2h …"
                )
            with store.read() as tx:
                return SilenceOutcome(tuple(silence_store.active(tx, at)))
        who = person(by)
        until = None if end else at + _length(length)
        why = "" if end else _words(reason or "", "--reason", "the lake moves")
        ended: list[AlertSilence] = []
        concerned: Sequence[Incident] = ()
        with store.write() as tx:
            if until is None:
                ended = _holding_over(tx, what, at)
                silence_store.end(tx, [row.id for row in ended], who, at)
            else:
                concerned = silence_store.begin(tx, _pattern(tx, what), why, who, at, until)
        drained = alerting.send(world, store, channel)
    said = world.messages
    return SilenceOutcome(
        tuple(ended), until, tuple(concerned), drained, tuple(said.alerts), tuple(said.notes)
    )


def _length(text: str | None) -> timedelta:
    if not text:
        raise UsageError("it is not said for how long.", "Write --for 2h.")
    length = elapsed(text, "--for")
    if not timedelta() < length <= _LONGEST_SILENCE:
        raise UsageError(f"--for {text!r} is no length for a silence.", "Write something up to 90d.")
    return length


def _pattern(tx: Connection, text: str) -> KeyPattern:
    incident = _by_id(tx, text)
    if incident is not None:
        return KeyPattern.only(incident.key)
    parts = [part.strip() for part in text.split("/")]
    if len(parts) > 3 or not all(parts):
        raise UsageError(
            f"{text!r} is no pattern.", "Write contract, contract/object or contract/object/promise."
        )
    return KeyPattern(*parts)


def _holding_over(tx: Connection, text: str, now: datetime) -> list[AlertSilence]:
    """The silences that hold now and were made with this pattern, or lie over this incident."""
    incident, holding = _by_id(tx, text), silence_store.active(tx, now)
    if incident is not None:
        matching = [row for row in holding if row.pattern.matches(incident.key)]
    else:
        matching = [row for row in holding if row.pattern == _pattern(tx, text)]
    if not matching:
        patterns = ", ".join(repr(str(row.pattern)) for row in holding) or "nothing"
        raise UsageError(f"{text!r} is not silenced.", f"Silenced now: {patterns}.")
    return matching


@dataclass(frozen=True, slots=True)
class OutboxOutcome:
    """The alerts that people should have and have not; `dismissed` counts those that were let go of."""

    outstanding: tuple[Outstanding, ...]
    dismissed: int = 0

    @property
    def exit_code(self) -> int:
        """As `dq outbox` ends: 4 something is refused, or was tried in vain for a quarter of an hour."""
        return 4 if any(row.stuck for row in self.outstanding) else 0

    def as_list(self) -> list[dict[str, object]]:
        """What `dq outbox --format json` prints."""
        return [alerting.outstanding_as_dict(row) for row in self.outstanding]


def outbox(
    *, dismiss: str | None = None, by: str | None = None, folder: Path | str | None = None
) -> OutboxOutcome:
    """The alerts that wait, and what a place refuses, as `dq outbox` shows them.

    `dismiss` is a place such as `slack:#sales`: what it refused is let go of, by whom `by` says. `folder`
    stands for the working folder.

    Raises UsageError where that place refused nothing, and StoreError for a store that does not answer.
    """
    world, _ = called(None, folder)
    dismissed = 0
    with closing(world.store()) as store:
        if dismiss is not None:
            channel, _, target = dismiss.partition(":")
            who = (by or "").strip()
            if not who:
                raise UsageError("a dismissal needs who.", "Write --by.")
            with store.write() as tx:
                dismissed = drain.dismiss(tx, channel, target, who, world.now())
            if not dismissed:
                raise UsageError(f"{dismiss!r} has refused nothing.", "See 'dq outbox'.")
        with store.read() as tx:
            return OutboxOutcome(tuple(drain.all_of(tx, world.now())), dismissed)


# A test of the routes: one message through each, of an incident that is kept nowhere.

TITLE = "This is a test of dq: nothing is broken"


@dataclass(frozen=True, slots=True)
class RouteTest:
    """One route and what came of its message. `good` is None where it is not known whether it arrived."""

    channel: str
    target: str
    good: bool | None
    result: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class AlertTestOutcome:
    """What came of a test of routes.

    `findings` are contracts that could not be read, `alerts` the blocks of the console's channel.
    """

    routes: tuple[RouteTest, ...]
    findings: tuple[Finding, ...] = ()
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq incidents test` ends: 4 something did not arrive, 3 a contract could not be read."""
        return 4 if not all(test.good for test in self.routes) else 3 if self.findings else 0

    def as_list(self) -> list[dict[str, object]]:
        """What `dq incidents test --format json` prints."""
        rows: list[dict[str, object]] = []
        for test in self.routes:
            place = {"channel": test.channel, "target": test.target}
            hint = {"mend": test.mend} if test.mend else {}
            rows.append({**place, "arrived": test.good, "said": test.result, **hint})
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
    is opened, and the store is not touched. `folder` and `now` are those of `acknowledge`.

    Raises UsageError for a channel that is none, and Unreadable for a path without contracts.
    """
    if (contract is None) == (channel is None):
        raise UsageError(
            "a contract or a channel to test is missing.",
            "Write dq incidents test orders.odcs.yaml, or dq incidents test --channel slack:#sales-data.",
        )
    world, paths = called(contract, folder, now)
    findings: list[Finding] = []
    if channel is not None:
        tests = [_test(world, _route(channel))]
    else:
        loaded = load(paths, world.note)
        findings = list(loaded.findings)
        refused = alerting.refused(loaded.contracts, FROM_CONTRACT, world.settings)
        tests = [RouteTest("", "", False, f"{row.contract}: {row.message}", row.mend) for row in refused]
        by_place = {
            (route.channel, route.target): route
            for row in loaded.contracts
            for route in alerting.routes(row, FROM_CONTRACT, world.settings) or [CONSOLE]
        }
        tests += [_test(world, route) for route in by_place.values()]
    said = world.messages
    return AlertTestOutcome(tuple(tests), tuple(findings), tuple(said.alerts), tuple(said.notes))


def _route(channel: str) -> AlertRoute:
    name, _, target = channel.partition(":")
    choice = channels.load()
    if name not in choice:
        raise UsageError(f"there is no channel {channel!r}.", f"Choose one of {', '.join(choice)}.")
    return AlertRoute(name, target)


def _test(world: World, route: AlertRoute) -> RouteTest:
    name, target = route.channel, route.target
    channel = channels.load()[name]
    try:
        opened = channel.open(alerting.settings_of(world, channel), world.messages.alert)
    except DqError as error:
        return RouteTest(name, target, False, error.message, error.mend)
    first, over = _messages(world)
    answer = opened.sender.create(target, first, first.incident)
    if isinstance(answer, Sent) and opened.can.update:
        ended = cast(UpdatingSender, opened.sender).update(answer.receipt, over)
        if not isinstance(ended, Sent):
            return RouteTest(name, target, False, f"arrived, but could not be ended: {ended.reason}")
    return RouteTest(name, target, *_result(answer))


def _result(answer: Answer) -> tuple[bool | None, str, str]:
    if isinstance(answer, Sent):
        note = f"; {answer.note}" if answer.note else ""
        return True, f"arrived ({_receipt(answer.receipt)}){note}", ""
    if isinstance(answer, Ambiguous):
        return None, f"unclear: {answer.reason}", "Look there whether it arrived."
    if isinstance(answer, Rejected):
        return False, f"refused: {answer.reason}", "dq doctor looks at the channel's settings."
    return False, f"not sent: {answer.reason}", "Try again; an alert would be tried again by itself."


def _receipt(place: MessagePlace) -> str:
    return " ".join(part for part in (place.place, place.reference) if part)


def _messages(world: World) -> Iterator[Message]:
    """The test, and its end."""
    now, key = world.now(), IncidentKey("(test)", "(test)", "test")
    # Each test is an incident of its own, which nothing keeps.
    breach = Breach(key, Severity.INFO, str(uuid4()), TITLE, now, (("what to do", "nothing"),))
    opened = step(None, breach, now)
    assert opened is not None
    ended = step(opened.incident, Recovery(key, breach.subject, now), now)
    assert ended is not None
    sent = f"Sent by dq incidents test at {now:%Y-%m-%d %H:%M} UTC."
    yield replace(render(opened.incident, "create"), steps=(sent,))
    yield replace(render(ended.incident, "update"), steps=(sent, "The test is over."))


# Incidents as people name them, and who the people are.


def named(tx: Connection, text: str) -> list[Incident]:
    """The incident of an id or the beginning of one, or the open ones of a contract, object or promise.

    `text` is an id, or a contract's key, or contract/object, or contract/object/promise. Raises UsageError
    where there is none.
    """
    incident = _by_id(tx, text)
    if incident is not None:
        return [incident]
    open_ = [row for row in incident_store.standing(tx) if is_of(row, text)]
    if not open_:
        raise UsageError(f"there is no open incident {text!r}.", _MEND)
    return open_


def _by_id(tx: Connection, text: str) -> Incident | None:
    """The incident whose id begins so, if any. Raises UsageError where several do."""
    if not _ID.fullmatch(text):
        return None
    matching = incident_store.by_prefix(tx, text.lower())
    if len(matching) > 1:
        ids = ", ".join(row.id for row in matching)
        raise UsageError(f"several incidents begin with {text!r}: {ids}.", "Write more of the id.")
    return matching[0] if matching else None


def is_of(incident: Incident, text: str) -> bool:
    """Whether the incident is about this contract, contract/object or contract/object/promise."""
    key = incident.key
    return text in (key.contract, f"{key.contract}/{key.object}", str(key))


def person(by: str | None) -> str:
    """Who acts: as the command line says, else the user of the operating system."""
    return _words(by if by is not None else user(), "--by", "ana@example.com")


def _words(text: str, option: str, example: str) -> str:
    """A name or a reason on one line. Raises UsageError where it is empty or too long."""
    words = " ".join(text.split())
    if not words:
        raise UsageError(f"{option} is empty.", f"Write it like {option} {example!r}.")
    if len(words) > _LONGEST_TEXT:
        raise UsageError(f"{option} has {len(words)} signs, more than {_LONGEST_TEXT}.", "Say it shorter.")
    return words


# For machines.


def _silence_as_dict(silence: AlertSilence) -> dict[str, object]:
    return {
        "pattern": str(silence.pattern),
        "reason": silence.reason,
        "by": silence.who,
        "at": silence.at.isoformat(),
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
        "silenced_why": incident.silenced_why if silenced else None,
        "root": incident.root_id,
        "holds_up": list(incident.holds_up),
        "flapping_since": iso(incident.flapping_since),
        "breaches": incident.breaches,
        "open": list(incident.open_subjects),
    }
