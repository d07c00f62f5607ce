"""Empties the outbox: claim, send, settle; and lists what people should have heard and have not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Select, case, delete, func, insert, literal, select, update

from dq.alerts import incident_store, suppression
from dq.alerts.channel import (
    Ambiguous,
    Answer,
    Blockage,
    Capabilities,
    FindingSender,
    Frozen,
    Gone,
    Look,
    MessagePlace,
    NotHeld,
    NotSent,
    Open,
    Rejected,
    Sender,
    Sent,
    UpdatingSender,
)
from dq.alerts.incident import CREATE, STORM, UPDATE
from dq.alerts.outbox import (
    HEARD,
    SHOULD_BE_THERE,
    UNPAUSED,
    ClaimedRow,
    DueLane,
    Lane,
    ambiguous,
    claim_next,
    due,
    due_places,
    enqueue,
    next_after,
    of_lane,
    paused_targets,
    remind,
    said_elsewhere,
    same_place,
    say_again,
    told,
    waiting,
    waiting_lanes,
)
from dq.alerts.route import CONSOLE, AlertRoute
from dq.alerts.tables import IN_FLIGHT, WAITING, OutboxStatus, channel_pause, incident, message, outbox
from dq.contracts.outcome import IncidentKey, Severity
from dq.store import Store
from dq.store.schema import UtcDateTime

# How saying it ended: writes to the outbox what became of a claim.

NEVER = datetime(9999, 1, 1, tzinfo=UTC)


def sent(tx: Connection, claimed: ClaimedRow, receipt: MessagePlace, note: str, now: datetime) -> bool:
    """Note that it is there; False when another sender has settled the row meanwhile."""
    if not _settle(tx, claimed, state=OutboxStatus.SENT, reason=note, reference=receipt.reference):
        return False
    revision = claimed.message.revision
    if claimed.operation == CREATE:
        tx.execute(
            insert(message).values(
                incident_id=claimed.lane.incident,
                channel=claimed.lane.channel,
                target=claimed.lane.target,
                place=receipt.place,
                reference=receipt.reference,
                thread=receipt.thread,
                created_revision=revision,
                revision=revision,
            )
        )
    elif claimed.operation == UPDATE:
        tx.execute(update(message).where(of_lane(message, claimed.lane)).values(revision=revision))
    detail = f"{claimed.operation} to {claimed.lane} {note}".strip()
    incident_store.log(tx, claimed.lane.incident, "sent", revision, now, detail=detail)
    incident = incident_store.get(tx, claimed.lane.incident)
    if incident is not None and claimed.operation != UPDATE:
        remind(tx, claimed.lane, incident, now)
    return True


def retry(tx: Connection, claimed: ClaimedRow, at: datetime, reason: str, repeat: bool = False) -> bool:
    """Let it be sent again from `at` on; `repeat` when a copy may be there already."""
    changes = {"state": OutboxStatus.READY, "not_before": at, "reason": reason, "looks": 0}
    return _settle(tx, claimed, **changes, **({"repeat": True} if repeat else {}))


def unsure(tx: Connection, claimed: ClaimedRow, at: datetime, reason: str, looks: int) -> bool:
    """Let someone look for it from `at` on."""
    changes = {"state": OutboxStatus.AMBIGUOUS, "not_before": at, "reason": reason, "looks": looks}
    return _settle(tx, claimed, **changes)


def bury(tx: Connection, claimed: ClaimedRow, reason: str, now: datetime, again_at: datetime | None) -> None:
    """Note that it was refused; it is tried again at `again_at`, or never."""
    buried = _settle(tx, claimed, state=OutboxStatus.DEAD, reason=reason, not_before=again_at or NEVER)
    if buried and not claimed.revived:
        detail = f"{claimed.operation} to {claimed.lane}: {reason}"
        incident_store.log(tx, claimed.lane.incident, "dead", claimed.message.revision, now, detail=detail)


def drop(tx: Connection, claimed: ClaimedRow, reason: str) -> bool:
    """Let it go: it is not needed any more."""
    return _settle(tx, claimed, state=OutboxStatus.DROPPED, reason=reason)


def forget(tx: Connection, lane: Lane) -> None:
    """The place does not hold the message any more."""
    tx.execute(delete(message).where(of_lane(message, lane)))


def pause(tx: Connection, channel: str, until: datetime, target: str = "") -> None:
    """Let nobody send to a target before `until`, or through the whole channel; a longer pause stays."""
    mine = (channel_pause.c.channel == channel) & (channel_pause.c.target == target)
    longer = case((channel_pause.c.until > until, channel_pause.c.until), else_=literal(until, UtcDateTime))
    if not tx.execute(update(channel_pause).where(mine).values(until=longer)).rowcount:
        tx.execute(insert(channel_pause).values(channel=channel, target=target, until=until))


def doubt(tx: Connection, channel: str, before: datetime, now: datetime) -> None:
    """Let someone look for what should have been said `before` an instant and was never tried.

    The database may have been restored from a copy that is older than the message.
    """
    forgotten = (
        (outbox.c.channel == channel)
        & (outbox.c.state == OutboxStatus.READY)
        & (outbox.c.operation == CREATE)
        & (outbox.c.attempt == 0)
        & (outbox.c.wait == "")
        & outbox.c.digest.is_(None)
        & (outbox.c.not_before < before)
        & UNPAUSED
        & HEARD
    )
    once = {"attempt": 1, "looks": 1, "tried_at": outbox.c.not_before, "rendered": outbox.c.revision}
    state = {"state": OutboxStatus.AMBIGUOUS, "not_before": now, "reason": "it waited for long"}
    tx.execute(update(outbox).where(forgotten).values(**once, **state), {"now": now})


def expire(tx: Connection, now: datetime) -> None:
    """Turn claims whose lease ran out into ambiguous ones; an update may simply be sent again."""
    over = (outbox.c.state == OutboxStatus.SENDING) & (outbox.c.lease_until <= now)
    state = case((outbox.c.operation == UPDATE, OutboxStatus.READY.value), else_=OutboxStatus.AMBIGUOUS.value)
    tx.execute(
        update(outbox).where(over).values(state=state, not_before=now, looks=0, reason="lease ran out")
    )


def _settle(tx: Connection, claimed: ClaimedRow, **values: object) -> bool:
    """Change the row if this claim still holds it, or nobody has looked for it since its lease ran out."""
    mine = (
        (outbox.c.id == claimed.id)
        & (outbox.c.attempt == claimed.attempt)
        & (outbox.c.looks == claimed.looks)
        & outbox.c.state.in_(IN_FLIGHT)
    )
    return bool(tx.execute(update(outbox).where(mine).values(lease_until=None, **values)).rowcount)


# What becomes of an operation after an answer or a search: one table for each.

MAX_BACKOFF = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(hours=24)
"""How long after its resolve an incident's message is still tried."""

REFUSED_AGAIN_AFTER = timedelta(hours=1)
"""What was refused is tried again, because somebody may have mended the place."""

LOOK_AGAIN_AFTER = timedelta(seconds=10)
LOOKS = 2
"""So many searches in vain prove that a message is not there: Slack's history may lag behind."""

STOP_LOOKING_AFTER = timedelta(minutes=15)
"""If history cannot be read for so long, it is sent again with a word of warning."""

LIMITED_TARGETS = 3
"""So many targets that are limited at once, and the limit is taken for the whole channel's."""


@dataclass(slots=True)
class Desk:
    """One channel's answers in one pass, and what they came to.

    `fallbacks` are told, the first that can be, of an incident when the place that should have been told
    refuses. `copies` are messages that another sender has sent too, to be taken away again.
    """

    name: str
    can: Capabilities
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    fallbacks: Sequence[AlertRoute]
    sent: int = 0
    copies: list[MessagePlace] = field(default_factory=list)
    broken: str = ""

    def after_send(self, tx: Connection, claim: ClaimedRow, answer: object) -> None:
        """Write what the answer to a call means."""
        _AFTER_SEND[type(answer)](self, tx, claim, answer)

    def after_look(self, tx: Connection, claim: ClaimedRow, found: object) -> None:
        """Write what a search gave."""
        _AFTER_LOOK[type(found)](self, tx, claim, found)

    def tell_fallback(self, tx: Connection, lane: Lane) -> bool:
        """Let somebody else hear of the incident, unless they have; whether there is a new row for it."""
        incident = incident_store.get(tx, lane.incident)
        places = [Lane(lane.incident, one.channel, one.target) for one in self.fallbacks]
        # Behind a fallback that refuses too comes the next one; what is behind the last one is nobody.
        rest = places[places.index(lane) + 1 :] if lane in places else places
        if incident is None or not rest or set(rest) & told(tx, lane.incident):
            return False
        enqueue(tx, rest[0], CREATE, incident.revision, self.now())
        incident_store.log(
            tx, incident.id, "rerouted", incident.revision, self.now(), detail=f"{lane} to {rest[0]}"
        )
        return True

    def backoff(self, claim: ClaimedRow) -> timedelta:
        return backoff(claim.attempt, self.jitter())

    def try_later(
        self, tx: Connection, claim: ClaimedRow, wait: timedelta, reason: str, repeat: bool = False
    ) -> None:
        if self._is_long_over(tx, claim):
            self.give_up(tx, claim, reason)
        else:
            retry(tx, claim, self.now() + wait, reason, repeat)

    def give_up(self, tx: Connection, claim: ClaimedRow, reason: str) -> None:
        again_at = None if self._is_long_over(tx, claim) else self.now() + REFUSED_AGAIN_AFTER
        bury(tx, claim, reason, self.now(), again_at)

    def wait(self, tx: Connection, claim: ClaimedRow, answer: NotSent, until: datetime) -> None:
        """Let all that the answer concerns wait."""
        if answer.concerns is Blockage.CHANNEL:
            pause(tx, self.name, until)
        elif answer.concerns is Blockage.ROUTE:
            pause(tx, self.name, until, claim.lane.target)
            if paused_targets(tx, self.name, self.now()) >= LIMITED_TARGETS:
                pause(tx, self.name, until)

    def _is_long_over(self, tx: Connection, claim: ClaimedRow) -> bool:
        incident = incident_store.get(tx, claim.lane.incident)
        resolved_at = incident.resolved_at if incident else None
        return resolved_at is not None and self.now() - resolved_at > GIVE_UP_AFTER


def backoff(attempt: int, jitter: float) -> timedelta:
    """1 s, 2 s, 4 s and so on up to MAX_BACKOFF, and the jitter on top."""
    return min(timedelta(seconds=2 ** min(attempt - 1, 20)), MAX_BACKOFF) + timedelta(seconds=jitter)


def _sent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Sent) -> None:
    if sent(tx, claim, answer.receipt, answer.note, desk.now()):
        desk.sent += 1
    elif claim.operation != UPDATE and said_elsewhere(tx, claim, answer.receipt):
        desk.copies.append(answer.receipt)


def _not_sent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotSent) -> None:
    asked = answer.retry_after_seconds
    wait = desk.backoff(claim) if asked is None else timedelta(seconds=asked)
    desk.try_later(tx, claim, wait, answer.reason)
    desk.wait(tx, claim, answer, desk.now() + wait)


def _ambiguous(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Ambiguous) -> None:
    if claim.operation == UPDATE:
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason)
    elif desk.can.reconcile:
        unsure(tx, claim, desk.now(), answer.reason, looks=0)
    else:
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason, repeat=True)


def _refused(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    if answer.scope is Blockage.CHANNEL:
        # Somebody will mend it, and then it is to be said if it still holds.
        desk.broken = answer.reason
        desk.try_later(tx, claim, desk.backoff(claim), answer.reason)
        pause(tx, desk.name, desk.now() + desk.backoff(claim))
        for lane in waiting_lanes(tx, desk.name):
            desk.tell_fallback(tx, lane)
    else:
        desk.give_up(tx, claim, answer.reason)
        desk.tell_fallback(tx, claim.lane)


def _gone(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Gone) -> None:
    if claim.operation == CREATE:
        # The digest below which it belongs was taken away: first that one again, and then this.
        if retry(tx, claim, desk.now(), answer.reason) and claim.digest:
            forget(tx, claim.digest)
            say_again(tx, claim.digest, desk.now())
    elif drop(tx, claim, answer.reason):
        forget(tx, claim.lane)
        say_again(tx, claim.lane, desk.now())


def _frozen(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Frozen) -> None:  # noqa: ARG001  # as the others
    # Every step that matters has a reply of its own.
    drop(tx, claim, answer.reason)


def _absent(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotHeld) -> None:  # noqa: ARG001  # as the others
    if claim.looks + 1 >= LOOKS:
        desk.try_later(tx, claim, timedelta(0), "it was not there")
    else:
        unsure(tx, claim, desk.now() + LOOK_AGAIN_AFTER, "it is not there yet", claim.looks + 1)


def _look_later(desk: Desk, tx: Connection, claim: ClaimedRow, answer: NotSent | Ambiguous) -> None:
    if desk.now() - claim.tried_at > STOP_LOOKING_AFTER:
        desk.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)
        return
    asked = answer.retry_after_seconds if isinstance(answer, NotSent) else None
    until = desk.now() + (LOOK_AGAIN_AFTER if asked is None else timedelta(seconds=asked))
    unsure(tx, claim, until, answer.reason, claim.looks)
    if isinstance(answer, NotSent):
        desk.wait(tx, claim, answer, until)


def _cannot_look(desk: Desk, tx: Connection, claim: ClaimedRow, answer: Rejected) -> None:
    desk.try_later(tx, claim, timedelta(0), answer.reason, repeat=True)


_Handler = Callable[[Desk, Connection, ClaimedRow, Any], None]

_AFTER_SEND: Mapping[type, _Handler] = {
    Sent: _sent,
    NotSent: _not_sent,
    Ambiguous: _ambiguous,
    Rejected: _refused,
    Gone: _gone,
    Frozen: _frozen,
}
_AFTER_LOOK: Mapping[type, _Handler] = {
    Sent: _sent,
    NotHeld: _absent,
    NotSent: _look_later,
    Ambiguous: _look_later,
    Rejected: _cannot_look,
}


# What people should have heard and have not: by place, with its age and the last reason.

STUCK_AFTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Outstanding:
    """Messages for one place that are not there: how many, since when, and what was said of the newest.

    `refused`: the place does not take them, so somebody has to mend it; they are tried again every hour.
    `stuck`: one was refused, or is tried in vain for longer than STUCK_AFTER.
    """

    channel: str
    target: str
    count: int
    since: datetime
    reason: str
    refused: bool
    stuck: bool

    @property
    def place(self) -> str:
        """As routes are written: `slack:#orders-alerts`."""
        return f"{self.channel}:{self.target}" if self.target else self.channel


def is_empty(tx: Connection) -> bool:
    """Whether every message was sent or dropped, so that a drain has nothing to do."""
    unsettled = outbox.c.state.in_((*WAITING, OutboxStatus.DEAD))
    return tx.execute(select(outbox.c.id).where(unsettled).limit(1)).first() is None


def refused(tx: Connection) -> list[Outstanding]:
    """What places have refused, until they take it or somebody dismisses it; the oldest first."""
    return _asked(tx, _REFUSED, None)


def all_of(tx: Connection, now: datetime) -> list[Outstanding]:
    """What places have refused, then what should have been sent by `now` and is not."""
    return [*refused(tx), *_asked(tx, _WAITING, now)]


def dismiss(tx: Connection, channel: str, target: str, who: str, now: datetime) -> int:
    """Let go of what a place has refused; how many messages there were. The incidents' histories keep it."""
    mine = (outbox.c.channel == channel) & (outbox.c.target == target) & (outbox.c.state == OutboxStatus.DEAD)
    found = tx.execute(
        select(outbox.c.incident_id, outbox.c.operation, incident.c.revision)
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(mine)
    ).all()
    for row in found:
        said = f"{row.operation} to {channel} {target}".strip()
        incident_store.log(tx, row.incident_id, "dismissed", row.revision, now, detail=f"{said}, by {who}")
    let_go = {"state": OutboxStatus.DROPPED, "reason": f"dismissed by {who}"}
    # What waits for a digest that never comes would wait for ever.
    place = (outbox.c.channel == channel) & (outbox.c.target == target)
    tx.execute(update(outbox).where(place, _below_a_refused_digest()).values(**let_go))
    tx.execute(update(outbox).where(mine).values(**let_go))
    return len(found)


def reroute(
    tx: Connection,
    places: Callable[[IncidentKey, Severity], Sequence[AlertRoute] | None],
    now: datetime,
) -> int:
    """Tell other places of open incidents that one refused, where it is theirs no more; how many there were.

    `places` gives those that may be told of an incident, the rightful ones first; None leaves it as it is.
    """
    found = tx.execute(
        select(outbox.c.id, outbox.c.incident_id, outbox.c.channel, outbox.c.target)
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(
            (outbox.c.state == OutboxStatus.DEAD) | _below_a_refused_digest(),
            outbox.c.operation == CREATE,
            incident.c.resolved_at.is_(None),
        )
    ).all()
    moved = 0
    for row in found:
        of = incident_store.get(tx, row.incident_id)
        wanted = places(of.key, of.severity) if of else None
        old = Lane(row.incident_id, row.channel, row.target)
        lanes = [Lane(row.incident_id, one.channel, one.target) for one in wanted or ()]
        if of is None or not lanes or old in lanes:
            continue
        said = "the contract names another place now"
        tx.execute(
            update(outbox).where(outbox.c.id == row.id).values(state=OutboxStatus.DROPPED, reason=said)
        )
        if lanes[0] not in told(tx, row.incident_id):
            enqueue(tx, lanes[0], CREATE, of.revision, now)
        incident_store.log(tx, of.id, "rerouted", of.revision, now, detail=f"{old} to {lanes[0]}")
        moved += 1
    if moved:
        # Nobody is left whom it would tell of.
        tx.execute(
            update(outbox)
            .where(_refused_digest(), ~_waits_below.exists())
            .values(state=OutboxStatus.DROPPED, reason="all that it told of is told elsewhere")
        )
    return moved


_digest = outbox.alias()
_waits_below = select(_digest.c.id).where(
    _digest.c.digest == outbox.c.incident_id,
    same_place(_digest),
    _digest.c.state.in_(WAITING),
)


def _refused_digest() -> ColumnElement[bool]:
    """Whether a row is the message of a digest that its place refused."""
    of = select(incident.c.id).where(incident.c.contract == STORM)
    dead = (outbox.c.state == OutboxStatus.DEAD) & (outbox.c.operation == CREATE)
    return dead & outbox.c.incident_id.in_(of)


def _below_a_refused_digest() -> ColumnElement[bool]:
    """Whether a row waits for a digest that its place refused, and was never said."""
    above = select(_digest.c.id).where(
        _digest.c.incident_id == outbox.c.digest,
        same_place(_digest),
        _digest.c.operation == CREATE,
        _digest.c.state == OutboxStatus.DEAD,
    )
    waits = (outbox.c.state == OutboxStatus.READY) & (outbox.c.operation == CREATE)
    return waits & (outbox.c.attempt == 0) & above.exists()


def _by_place(which: ColumnElement[bool]) -> Select[Any]:
    # The reason of one row of each place; a place seldom has two.
    return (
        select(
            outbox.c.channel,
            outbox.c.target,
            func.count().label("number"),
            func.min(incident.c.opened_at, type_=UtcDateTime).label("since"),
            func.max(outbox.c.reason).label("reason"),
            func.min(outbox.c.tried_at, type_=UtcDateTime).label("tried_at"),
        )
        .join(incident, incident.c.id == outbox.c.incident_id)
        .where(which)
        .group_by(outbox.c.channel, outbox.c.target)
        .order_by(func.min(incident.c.opened_at))
    )


_REFUSED = _by_place(outbox.c.state == OutboxStatus.DEAD)
_WAITING = _by_place(outbox.c.state.in_(WAITING) & SHOULD_BE_THERE)


def _asked(tx: Connection, which: Select[Any], now: datetime | None) -> list[Outstanding]:
    """By place; `now` where it waits, None where it was refused."""
    return [
        Outstanding(
            row.channel,
            row.target,
            row.number,
            row.since,
            row.reason,
            refused=now is None,
            stuck=now is None or (row.tried_at is not None and now - row.tried_at > STUCK_AFTER),
        )
        for row in tx.execute(which, {"now": now} if now else {})
    ]


# Empties the outbox: claim, send, settle, so that a crash between any two of them loses nothing.
#
# Each channel is drained beside the others, so that one that hangs delays itself alone. Within a channel
# all
# targets have their turn, and what opens or ends an incident goes before what tells more of it.

LOOK_BACK = timedelta(seconds=60)

FORGOTTEN_AFTER = timedelta(minutes=10)
"""What waited for so long and was never tried is looked for first: the store may be a restored one."""

TIRED_AFTER, REST = 3, timedelta(seconds=30)
"""So many unclear answers in a row, and a channel is left alone for a while: each costs a timeout."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did: `sent` in this run, `waiting` of all that is left, and from when on.

    `broken` are the channels through which nothing can be sent, each with its reason. `outstanding` is all
    that was refused or still waits, from runs before too.
    """

    sent: int = 0
    waiting: int = 0
    next_at: datetime | None = None
    broken: Mapping[str, str] = field(default_factory=dict)
    outstanding: tuple[Outstanding, ...] = ()


def drain(
    store: Store,
    channels: Mapping[str, Open],
    now: Callable[[], datetime],
    *,
    sleep: Callable[[float], object] = lambda _: None,
    patience: timedelta = timedelta(0),
    jitter: Callable[[], float] = lambda: 0.0,
    fallbacks: Sequence[AlertRoute] = (CONSOLE,),
) -> Drained:
    """Send all that is due, or will be within `patience`; what has to wait longer is left for the next drain.

    Any number of drains may run at once, in any number of processes. `sleep` waits for seconds of the clock
    `now`. `jitter` gives seconds to add to a backoff. `fallbacks` are told of an incident, the first that
    can be, when the place that should have been told refuses.
    """
    run = _Run(store, channels, now, jitter, fallbacks)
    run.through(now() + patience, sleep)
    with store.read() as tx:
        count, next_at = waiting(tx, now())
        left = all_of(tx, now())
    return Drained(run.sent, count, next_at, dict(run.broken), tuple(left))


@dataclass(slots=True)
class _Run:
    store: Store
    channels: Mapping[str, Open]
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    fallbacks: Sequence[AlertRoute]
    sent: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    # Of each channel only its own pass touches these.
    unclear: Counter[str] = field(default_factory=Counter)
    paced_until: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def through(self, until: datetime, sleep: Callable[[float], object]) -> None:
        """Pass after pass through each channel that has something due, while there is any before `until`."""
        busy: dict[Future[tuple[Desk, int, datetime]], str] = {}
        # Channels in which nothing could be done, each with the instant at which that was so.
        rested: dict[str, datetime] = {}
        with ThreadPoolExecutor(max_workers=max(len(self.channels), 1)) as pool:
            while True:
                looked = self.now()
                due = self._due_channels() - {*busy.values()} - {*rested}
                for name in due:
                    if name in self.channels:
                        busy[pool.submit(self._pass, name, looked)] = name
                    elif name not in self.broken and self._no_sender(name):
                        # Whoever does something may leave something for the others.
                        rested = {name: looked}
                    else:
                        rested[name] = looked
                if due and not busy and self._due_channels() - {*rested}:
                    continue
                wake = self._wake_at(min([looked, *rested.values()]), until)
                seconds = None if wake is None else max((wake - self.now()).total_seconds(), 0.001)
                if busy:
                    done = wait(busy, seconds, FIRST_COMPLETED).done
                    for ended in done:
                        name, (desk, tried, at) = busy.pop(ended), ended.result()
                        self._add(desk)
                        rested = {} if tried else {**rested, name: at}
                    if not done:
                        rested.clear()
                elif seconds is None:
                    return
                else:
                    sleep(seconds)
                    rested.clear()

    def _add(self, desk: Desk) -> None:
        self.sent += desk.sent
        if desk.broken:
            self.broken[desk.name] = desk.broken

    def _due_channels(self) -> set[str]:
        """The channels in which something can be done now."""
        with self.store.read() as tx:
            places = due_places(tx, self.now())
        return {name for name, target in places if not self._paced(name, target)}

    def _wake_at(self, since: datetime, until: datetime) -> datetime | None:
        """The first instant after `since`, over or not, at which more can be done, if that is by `until`."""
        with self.store.read() as tx:
            paced = due_places(tx, self.now()) if self.paced_until else []
            later = [next_after(tx, since), *map(self.paced_until.get, paced)]
        return min((at for at in later if at is not None and since < at <= until), default=None)

    def _paced(self, name: str, target: str) -> bool:
        return self.paced_until.get((name, target), self.now()) > self.now()

    def _no_sender(self, name: str) -> bool:
        """Tell somebody else of all that waits for a channel that is not set up; whether that is news."""
        self.broken[name] = "it is not set up here"
        desk = Desk(name, Capabilities(False, False, False), self.now, self.jitter, self.fallbacks)
        with self.store.write() as tx:
            told = [desk.tell_fallback(tx, lane) for lane in waiting_lanes(tx, name)]
        return any(told)

    def _pass(self, name: str, began: datetime) -> tuple[Desk, int, datetime]:
        """One search for all that is lost, and one operation in each lane that has something due.

        Gives what came of it, how many operations were tried, and when it `began`.
        """
        channel = self.channels[name]
        desk = Desk(name, channel.can, self.now, self.jitter, self.fallbacks)
        # Before the search: of many that waited for long, nobody looks for each.
        if channel.can.folds:
            with self.store.write() as tx:
                suppression.fold(tx, name, channel.can, self.now())
        tried = self._look(desk, channel)
        with self.store.read() as tx:
            lanes = due(tx, self.now(), name)
        tried += sum(self._send_in(desk, channel, one.lane) for one in in_turn(lanes))
        for copy in desk.copies if channel.can.reconcile else ():
            with suppress(Exception):  # a copy that stays is a blemish, and no reason to stop
                cast(FindingSender, channel.sender).retract(copy)
        return desk, tried, began

    def _look(self, desk: Desk, channel: Open) -> int:
        """Search for all messages of which nobody knows whether they arrived; how many were searched for."""
        with self.store.write() as tx:
            expire(tx, self.now())
            if channel.can.reconcile:
                doubt(tx, desk.name, self.now() - FORGOTTEN_AFTER, self.now())
            lost = ambiguous(tx, self.now(), desk.name)
        for number, claim in enumerate(lost):
            found = _find(channel, claim)
            with self.store.write() as tx:
                desk.after_look(tx, claim, found)
            if isinstance(found, NotSent | Ambiguous):
                return number + 1
        return len(lost)

    def _send_in(self, desk: Desk, channel: Open, lane: Lane) -> bool:
        if self._paced(desk.name, lane.target):
            return False
        with self.store.write() as tx:
            claim = claim_next(tx, lane, channel.can, self.now())
        # A process that slept through its lease must leave the rest to others.
        if claim is None or self.now() >= claim.lease_until:
            return False
        answer = _say(channel.sender, claim)
        if channel.can.pace_seconds:
            free = self.now() + timedelta(seconds=channel.can.pace_seconds)
            self.paced_until[desk.name, lane.target] = free
        self.unclear[desk.name] = self.unclear[desk.name] + 1 if isinstance(answer, Ambiguous) else 0
        with self.store.write() as tx:
            desk.after_send(tx, claim, answer)
            if self.unclear[desk.name] >= TIRED_AFTER:
                pause(tx, desk.name, self.now() + REST)
        return True


def in_turn(lanes: Iterable[DueLane]) -> list[DueLane]:
    """The lanes in the order in which they are served: what opens or ends first, then target by target."""
    turns: Counter[tuple[int, str]] = Counter()
    placed = []
    for one in lanes:
        turn = (one.rank, one.lane.target)
        placed.append((one.rank, turns[turn], one))
        turns[turn] += 1
    return [one for _, _, one in sorted(placed, key=lambda entry: entry[:2])]


def _say(sender: Sender, claim: ClaimedRow) -> Answer:
    try:
        if claim.operation == CREATE:
            return sender.create(claim.lane.target, claim.message, claim.key, claim.below)
        if claim.receipt is None:
            return Gone("there is no message to change")
        if claim.operation == UPDATE:
            # Of other senders no update is claimed.
            return cast(UpdatingSender, sender).update(claim.receipt, claim.message)
        return sender.reply(claim.receipt, claim.message, claim.key)
    except Exception as error:  # noqa: BLE001  # one guard per channel: its fault must not silence the others
        return Ambiguous(f"the channel failed with {type(error).__name__}")


def _find(channel: Open, claim: ClaimedRow) -> Look:
    if not channel.can.reconcile:
        return Rejected("the channel cannot be searched", Blockage.CHANNEL)
    root = claim.below if claim.operation == CREATE else claim.receipt
    try:
        return cast(FindingSender, channel.sender).find(
            claim.lane.target, claim.key, claim.tried_at - LOOK_BACK, root
        )
    except Exception as error:  # noqa: BLE001  # as above
        return Ambiguous(f"the channel failed with {type(error).__name__}")
