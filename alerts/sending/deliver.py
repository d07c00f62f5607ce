"""Empties the outbox: claim, send, settle, so that a crash between any two of them loses nothing.

Each channel is drained beside the others, so that one that hangs delays itself alone. Within a channel all
targets have their turn, and what opens or ends an incident goes before what tells more of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from dq.alerts.channel import (
    Ambiguous,
    Answer,
    Blockage,
    Capabilities,
    FindingSender,
    Gone,
    Look,
    NotSent,
    Open,
    Rejected,
    Sender,
    UpdatingSender,
)
from dq.alerts.incident import CREATE, UPDATE
from dq.alerts.lane import Lane
from dq.alerts.route import CONSOLE, AlertRoute
from dq.alerts.sending import claims, due, fold, outstanding, transitions
from dq.alerts.sending.claims import ClaimedRow
from dq.alerts.sending.due import DueLane
from dq.alerts.sending.outstanding import Outstanding
from dq.alerts.sending.settlement import Desk
from dq.store import Store

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
        count, next_at = due.waiting(tx, now())
        left = outstanding.all_of(tx, now())
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
                for name in self._due_channels() - {*busy.values()} - {*rested}:
                    if name in self.channels:
                        busy[pool.submit(self._pass, name, looked)] = name
                    elif name not in self.broken and self._no_sender(name):
                        # Whoever does something may leave something for the others.
                        rested = {name: looked}
                    else:
                        rested[name] = looked
                if not busy and self._due_channels() - {*rested}:
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
            places = due.due_places(tx, self.now())
        return {name for name, target in places if not self._paced(name, target)}

    def _wake_at(self, since: datetime, until: datetime) -> datetime | None:
        """The first instant after `since`, over or not, at which more can be done, if that is by `until`."""
        with self.store.read() as tx:
            later = [due.next_after(tx, since), *map(self.paced_until.get, due.due_places(tx, self.now()))]
        return min((at for at in later if at is not None and since < at <= until), default=None)

    def _paced(self, name: str, target: str) -> bool:
        return self.paced_until.get((name, target), self.now()) > self.now()

    def _no_sender(self, name: str) -> bool:
        """Tell somebody else of all that waits for a channel that is not set up; whether that is news."""
        self.broken[name] = "it is not set up here"
        desk = Desk(name, Capabilities(False, False, False), self.now, self.jitter, self.fallbacks)
        with self.store.write() as tx:
            told = [desk.tell_fallback(tx, lane) for lane in due.waiting_lanes(tx, name)]
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
                fold.fold(tx, name, channel.can, self.now())
        tried = self._look(desk, channel)
        with self.store.read() as tx:
            lanes = due.due(tx, self.now(), name)
        tried += sum(self._send_in(desk, channel, one.lane) for one in in_turn(lanes))
        for copy in desk.copies if channel.can.reconcile else ():
            with suppress(Exception):  # a copy that stays is a blemish, and no reason to stop
                cast(FindingSender, channel.sender).retract(copy)
        return desk, tried, began

    def _look(self, desk: Desk, channel: Open) -> int:
        """Search for all messages of which nobody knows whether they arrived; how many were searched for."""
        with self.store.write() as tx:
            transitions.expire(tx, self.now())
            if channel.can.reconcile:
                transitions.doubt(tx, desk.name, self.now() - FORGOTTEN_AFTER, self.now())
            lost = claims.ambiguous(tx, self.now(), desk.name)
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
            claim = claims.claim(tx, lane, channel.can, self.now())
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
                transitions.pause(tx, desk.name, self.now() + REST)
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
