"""Every order in which two senders, a limit, a lease's end and a resolve can meet, on the real store.

The steps are the product's own: look for what is lost, claim, post, settle, each in its own transactions.
A state is the database, what Slack holds, the clock, and what each sender has in hand. From each state that
can be reached, both senders may die; then one that meets no fault must bring everything in order.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fakes.breaches import DUE, ROUTES, breach, recovery
from sqlalchemy import create_engine, event, text
from sqlalchemy.pool import StaticPool

from dq.alerts import drain, outbox
from dq.alerts.channel import (
    Capabilities,
    FailureScope,
    LookupMiss,
    LookupResult,
    MessageNotFound,
    MessageRef,
    RetryableFailure,
    SendResult,
    Sent,
    UnconfirmedSend,
)
from dq.alerts.drain import ResultHandler
from dq.alerts.incident import CREATE, UPDATE
from dq.alerts.outbox import LeasedRow, NotificationStream
from dq.alerts.record import record
from dq.store import engine as version
from dq.store.engine import Store

CAN = Capabilities(thread=True, update=True, reconcile=True)
LIMITED_SECONDS = 5.0

# What a call can meet: it is taken; taken, and nobody hears so; lost; refused for a while.
CALLS = ("taken", "hidden", "lost", "limited")


@dataclass(frozen=True)
class Slack:
    """What the channel holds: a text for each message that was ever taken, None where it was taken away."""

    messages: tuple[tuple[str, str | None], ...] = ()

    def post(self, key: str, said: str) -> tuple[Slack, MessageRef]:
        number = str(len(self.messages))
        return Slack((*self.messages, (key, said))), MessageRef("C1", number)

    def change(self, at: MessageRef, said: str | None) -> Slack:
        number = int(at.reference)
        held = list(self.messages)
        held[number] = (held[number][0], said)
        return Slack(tuple(held))

    def find(self, key: str) -> LookupResult:
        for number, (its, said) in enumerate(self.messages):
            if its == key and said is not None:
                return Sent(MessageRef("C1", str(number)))
        return LookupMiss()

    def shown(self, key: str) -> list[str]:
        return [said for its, said in self.messages if its == key and said is not None]


@dataclass(frozen=True)
class Hand:
    """What a sender has in hand: nothing, a claim, an answer to it, or the result of a search."""

    claim: LeasedRow | None = None
    answer: SendResult | LookupResult | None = None
    searched: bool = False

    @property
    def identity(self) -> object:
        claim = self.claim and (self.claim.id, self.claim.attempt, self.claim.lookups, self.claim.lease_until)
        return claim, repr(self.answer), self.searched


@dataclass(frozen=True)
class Budget:
    """How much may still go wrong: calls that meet something, deaths, and how often time passes."""

    faults: int = 1
    deaths: int = 1
    waits: tuple[float, ...] = (11, 61, 61)
    resolve: bool = True


@dataclass(frozen=True)
class State:
    database: bytes
    slack: Slack
    now: datetime
    hands: tuple[Hand, Hand]
    left: Budget
    how: tuple[str, ...] = field(default=(), compare=False)


@dataclass
class Walk:
    """Breadth first through all states; `wrong` are the ways that end badly, each with what was shown."""

    mislead: Callable[[SendResult], SendResult] = lambda answer: answer
    states: int = 0
    ends: int = 0
    wrong: list[tuple[tuple[str, ...], object]] = field(default_factory=list)
    _now: datetime = DUE
    _seen_ends: set[object] = field(default_factory=set)

    def __post_init__(self) -> None:
        engine = create_engine(
            "sqlite://",
            poolclass=StaticPool,
            connect_args={"isolation_level": None, "check_same_thread": False},
        )
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        self.store = Store(engine)
        with self.store.write() as tx:
            version.upgrade(tx)
        pooled = engine.raw_connection()
        raw = pooled.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        self.raw = raw

    def start(self, left: Budget) -> State:
        self._now = DUE + timedelta(minutes=30)
        with self.store.write() as tx:
            record(tx, breach(1), ROUTES, self._now)
        with self.store.read() as tx:
            self.incident = tx.execute(text("select id from incident")).scalar_one()
        self.lane = NotificationStream(self.incident, "slack", "#orders-alerts")
        return State(self.raw.serialize(), Slack(), self._now, (Hand(), Hand()), left)

    def through(self, left: Budget) -> None:
        queue = deque([self.start(left)])
        seen = {self._identity(queue[0])}
        while queue:
            state = queue.popleft()
            self.states += 1
            self._end(state)
            for after in self._steps(state):
                identity = self._identity(after)
                if identity not in seen:
                    seen.add(identity)
                    queue.append(after)

    def _identity(self, state: State) -> object:
        return (
            self._rows(state.database),
            state.slack,
            state.now,
            tuple(hand.identity for hand in state.hands),
            state.left,
        )

    def _rows(self, database: bytes) -> object:
        """All that decides; not the history, which only grows."""
        self.raw.deserialize(database)
        queries = ("select * from outbox", "select * from message", "select * from channel_pause",
                   "select state, revision, resolved_at from incident")  # fmt: skip
        return tuple(tuple(self.raw.execute(query).fetchall()) for query in queries)

    def _steps(self, state: State) -> Iterator[State]:
        for who in (0, 1):
            yield from self._of_sender(state, who)
        for seconds in sorted(set(state.left.waits)):
            waits = list(state.left.waits)
            waits.remove(seconds)
            yield replace(
                state,
                now=state.now + timedelta(seconds=seconds),
                left=replace(state.left, waits=tuple(waits)),
                how=(*state.how, f"{seconds:g} s pass"),
            )
        if state.left.resolve:
            after = self._in(state)
            with self.store.write() as tx:
                record(tx, recovery(1), (), self._now)
            yield self._after(state, after, "it is resolved", left=replace(state.left, resolve=False))

    def _of_sender(self, state: State, who: int) -> Iterator[State]:
        hand = state.hands[who]
        name = "AB"[who]
        if hand.claim is None:
            yield from self._search(state, who, name)
            yield from self._claim(state, who, name)
            return
        if state.left.deaths:
            left = replace(state.left, deaths=state.left.deaths - 1)
            yield self._after(state, None, f"{name} dies", who, Hand(), left)
        if hand.answer is None:
            yield from self._call(state, who, name)
            return
        slack = self._in(state)
        slack = self._settle(hand, slack)
        yield self._after(state, slack, f"{name} settles", who, Hand())

    def _search(self, state: State, who: int, name: str) -> Iterator[State]:
        slack = self._in(state)
        with self.store.write() as tx:
            drain.expire_leases(tx, self._now)
            lost = outbox.lookup_rows(tx, self._now, "slack")
        if lost:
            found = slack.find(lost[0].key)
            yield self._after(state, slack, f"{name} looks", who, Hand(lost[0], found, searched=True))

    def _claim(self, state: State, who: int, name: str) -> Iterator[State]:
        slack = self._in(state)
        with self.store.write() as tx:
            claim = outbox.lease_next(tx, self.lane, CAN, self._now)
        yield self._after(state, slack, f"{name} claims", who, Hand(claim) if claim else Hand())

    def _call(self, state: State, who: int, name: str) -> Iterator[State]:
        hand = state.hands[who]
        assert hand.claim is not None
        if state.now >= hand.claim.lease_until:
            yield self._after(state, None, f"{name} sees that it overslept", who, Hand())
            return
        for kind in CALLS if state.left.faults else CALLS[:1]:
            slack, answer = called(state.slack, hand.claim, kind)
            left = state.left if kind == "taken" else replace(state.left, faults=state.left.faults - 1)
            told = replace(hand, answer=self.mislead(answer))
            after = self._after(state, slack, f"{name} calls: {kind}", who, told, left)
            yield replace(after, database=state.database)

    def _settle(self, hand: Hand, slack: Slack) -> Slack:
        assert hand.claim is not None
        desk = self._desk()
        with self.store.write() as tx:
            (desk.after_lookup if hand.searched else desk.after_send)(tx, hand.claim, hand.answer)
        for copy in desk.copies:
            slack = slack.change(copy, None)
        return slack

    def _desk(self) -> ResultHandler:
        return ResultHandler("slack", CAN, lambda: self._now, lambda: 0.0, ())

    def _in(self, state: State) -> Slack:
        self.raw.deserialize(state.database)
        self._now = state.now
        return state.slack

    def _after(
        self,
        state: State,
        slack: Slack | None,
        how: str,
        who: int | None = None,
        hand: Hand | None = None,
        left: Budget | None = None,
    ) -> State:
        hands = state.hands
        if who is not None and hand is not None:
            hands = (hand, hands[1]) if who == 0 else (hands[0], hand)
        database = self.raw.serialize() if slack is not None else state.database
        return State(database, slack or state.slack, state.now, hands, left or state.left, (*state.how, how))

    def _end(self, state: State) -> None:
        """Let both die here, and one that meets no fault do what is left; then look at what people see."""
        identity = (self._rows(state.database), state.slack, state.now)
        if identity in self._seen_ends:
            return
        self._seen_ends.add(identity)
        self.ends += 1
        slack = self._in(state)
        for _ in range(12):
            self._now += timedelta(seconds=61)
            with self.store.write() as tx:
                drain.expire_leases(tx, self._now)
                lost = outbox.lookup_rows(tx, self._now, "slack")
            for claim in lost:
                slack = self._settle(Hand(claim, slack.find(claim.key), searched=True), slack)
            with self.store.write() as tx:
                claim_now = outbox.lease_next(tx, self.lane, CAN, self._now)
            if claim_now is not None:
                slack, answer = called(slack, claim_now, "taken")
                slack = self._settle(Hand(claim_now, answer), slack)
        roots = [said for key, said in slack.messages if said and not said.startswith("reply")]
        with self.store.read() as tx:
            status = tx.execute(text("select state from incident")).scalar_one()
            waits = tx.execute(
                text(
                    "select count(*) from outbox where wait = '' and state in ('ready','sending','ambiguous')"
                )
            ).scalar_one()
        # What was over before anybody was told may stay untold.
        right = roots == [status] or (status == "resolved" and not roots)
        if not right or waits:
            self.wrong.append((state.how, (status, roots, waits)))


def called(slack: Slack, claim: LeasedRow, kind: str) -> tuple[Slack, SendResult]:
    """One call of a sender's, and its answer."""
    if kind == "limited":
        return slack, RetryableFailure("ratelimited", LIMITED_SECONDS, FailureScope.ROUTE)
    if kind == "lost":
        return slack, UnconfirmedSend("dropped")
    if claim.operation == CREATE:
        slack, receipt = slack.post(claim.key, str(claim.message.state))
    elif claim.receipt is None:
        return slack, MessageNotFound("no message")
    elif claim.operation == UPDATE:
        slack, receipt = slack.change(claim.receipt, str(claim.message.state)), claim.receipt
    else:
        slack, receipt = slack.post(claim.key, f"reply {claim.operation}")
    return slack, UnconfirmedSend("dropped") if kind == "hidden" else Sent(receipt)


def taken_for_a_refusal(answer: SendResult) -> SendResult:
    """A broken step: what may have arrived is taken for what has not."""
    return RetryableFailure("dropped") if isinstance(answer, UnconfirmedSend) else answer
