"""Thirty days of 500 products against a Slack that fails at times, with senders that are killed.

One call in a hundred goes wrong: dropped, HTTP 500, limited or no JSON, taken or not; and one drain in ten
is killed between any two steps. What every incident was told is counted beside a sender without a memory,
which says each miss and each end once, on the same history. Then a bad week of 200 products, each of them
missing one day in ten: what stands at the channels' level is what people are called by. Once with causes, as
lakes have them: ten products are made from one, and seven in ten misses are those of what one is made from,
at the same time as its kin; and once with misses that have nothing to do with each other.

The goal of 60 messages is set for the first of these weeks. The other cannot meet it: each of its 140 or so
misses has a cause of its own and needs somebody of its own, and even one message a day for each place that
has any would be 40 places × 7 days × (1 - 0.9^5) = 115 of them. What they are is counted beside.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from _busy_slack import BusySlack, Clock
from _report import arguments, finish
from sqlalchemy import select

from dq.alerts.channel import OpenChannel, Sender
from dq.alerts.drain import drain
from dq.alerts.record import record
from dq.alerts.route import AlertRoute
from dq.alerts.tables import incident
from dq.contracts.incident import Breach, IncidentKey, Recovery
from dq.contracts.outcome import Severity
from dq.store import Store, open_store

BEGIN = datetime(2026, 5, 4, tzinfo=UTC)
CHANNELS = 40
TICK, PATIENCE = timedelta(minutes=5), timedelta(seconds=30)
BAD, KILLED, FAULTY = 0.03, 0.1, 0.01


class Killed(BaseException):
    """Ends a sender as SIGKILL does: nothing that comes after is done. The real signal is in the tests."""


@dataclass
class Mortal:
    """A sender that is killed at one of its calls, before or after Slack has taken the message."""

    sender: Sender
    calls_left: int
    after: bool

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.sender, name)

        def call(*arguments: Any) -> Any:
            self.calls_left -= 1
            if self.calls_left >= 0:
                return real(*arguments)
            if self.after:
                real(*arguments)
            raise Killed

        return call


@dataclass(frozen=True)
class Event:
    """A breach or a recovery, and when the watcher records it."""

    at: datetime
    event: Breach | Recovery
    channel: str


def history(products: int, days: int, bad: float, seed: int) -> list[Event]:
    """Deliveries of each product, daily or hourly; a bad one comes late after some time, or in a row."""
    chance, events = random.Random(seed), []
    for number in range(products):
        hourly = number % 10 == 0
        period = timedelta(hours=1 if hourly else 24)
        due = BEGIN + timedelta(minutes=number % 240 + 300)
        while due < BEGIN + timedelta(days=days):
            if chance.random() < (bad / 10 if hourly else bad):
                events += _missed(f"p{number:03}", due, chance, f"#team-{number % CHANNELS:02}")
            due += period
    return sorted(events, key=lambda event: event.at)


def _missed(name: str, due: datetime, chance: random.Random, channel: str) -> Iterator[Event]:
    key, cycle = IncidentKey(name, name, "daily"), f"{due:%FT%H:%MZ}"
    facts = (("promised", f"{due:%F %H:%M} UTC"), ("found", "nothing"))
    title = f"{name} was not delivered by {due:%H:%M}"
    found_at = due + timedelta(minutes=chance.randint(0, 4))
    yield Event(found_at, Breach(key, Severity.ERROR, cycle, title, due, facts), channel)
    came = found_at + timedelta(minutes=chance.randint(20, 600))
    facts = (("found", f"delivered {came:%H:%M} UTC"),)
    yield Event(came, Recovery(key, cycle, came, facts), channel)


def caused(products: int, seed: int, single_share: float = 0.03) -> list[Event]:
    """A week in which one day in ten of each product is bad, mostly with all nine of its kin."""
    chance, events, kin = random.Random(seed), [], 10
    for day in range(7):
        for family in range(products // kin):
            due = BEGIN + timedelta(days=day, hours=6, minutes=family)
            together = chance.random() < 0.10 - single_share
            came, found_at = due + timedelta(minutes=chance.randint(60, 600)), due + timedelta(minutes=1)
            for number in range(family * kin, (family + 1) * kin):
                if together or chance.random() < single_share:
                    name, cycle = f"p{number:03}", f"{due:%FT%H:%MZ}"
                    key = IncidentKey(name, name, "daily")
                    facts = (("promised", f"{due:%F %H:%M} UTC"), ("found", "nothing"))
                    breach = Breach(key, Severity.ERROR, cycle, f"{name} was not delivered", due, facts)
                    channel = f"#team-{family % CHANNELS:02}"
                    events.append(Event(found_at, breach, channel))
                    events.append(Event(came, Recovery(key, cycle, came, (("found", "delivered"),)), channel))
    return sorted(events, key=lambda event: event.at)


@dataclass
class Soak:
    """A store, a Slack and a clock, through which a history passes."""

    store: Store
    slack: BusySlack
    clock: Clock
    chance: random.Random
    kills: int = 0

    def run(self, events: list[Event], end: datetime, killed: float) -> None:
        """A tick every five minutes, to the end and until all is sent."""
        channels, left = self.slack.open(), list(reversed(events))
        while True:
            while left and left[-1].at <= self.clock():
                event = left.pop()
                with self.store.write() as tx:
                    record(tx, event.event, [AlertRoute("slack", event.channel)], self.clock())
            tick = self.clock()
            waiting = self._drain(channels, killed)
            if not waiting and self.clock() >= end:
                return
            if tick > end + timedelta(days=2):
                raise SystemExit(f"{waiting} messages are still waiting two days after the end")
            self.clock.at = max(tick + TICK, self.clock() + timedelta(seconds=1))

    def _drain(self, channels: dict[str, OpenChannel], killed: float) -> int:
        if self.chance.random() < killed:
            open_ = channels["slack"]
            mortal = Mortal(open_.sender, self.chance.randint(0, 2), after=self.chance.random() < 0.5)
            try:
                done = drain(
                    self.store, {**channels, "slack": replace(open_, sender=mortal)}, self.clock,
                    sleep=self.clock.sleep, patience=PATIENCE,
                )  # fmt: skip
            except Killed:
                self.kills += 1
                return 1
            return done.overdue
        return drain(self.store, channels, self.clock, sleep=self.clock.sleep, patience=PATIENCE).overdue


def notification_figures(soak: Soak) -> dict[str, float]:
    """Incidents without a message, messages sent twice, and ends that are not shown."""
    with soak.store.read() as tx:
        rows = tx.execute(select(incident.c.id, incident.c.contract, incident.c.resolved_at)).all()
    product_rows = [row for row in rows if not row.contract.startswith("(")]
    visible = soak.slack.posts_by_incident()
    # The first message of an incident is the one that its end is shown on.
    shown = {
        post["metadata"]["event_payload"]["incident"]: soak.slack.messages[post["ts"]]
        for post in reversed(soak.slack.posts)
        if post["ts"] in soak.slack.messages
    }
    creates = Counter(
        (post["metadata"]["event_payload"]["incident"], post["metadata"]["event_payload"]["key"])
        for post in soak.slack.posts
        if post["ts"] in soak.slack.messages
    )
    return {
        "incidents": float(len(product_rows)),
        "lost": float(sum(row.id not in visible for row in product_rows)),
        "doubled": float(sum(count - 1 for count in creates.values())),
        "open in Slack though ended": float(
            sum(
                row.resolved_at is not None and row.id in shown and not _ended(shown[row.id])
                for row in product_rows
            )
        ),
        "kills": float(soak.kills),
        "calls that went wrong": float(sum(soak.slack.befell.values())),
        "messages": float(len(soak.slack.posts)),
        "messages at the channels' level": float(len(soak.slack.roots)),
    }


def _ended(message: dict[str, Any]) -> bool:
    return message["text"].startswith("RESOLVED")


def soak(
    folder: Path, name: str, events: list[Event], days: int, faulty: float, killed: float
) -> dict[str, float]:
    """The figures of one history."""
    clock, store = Clock(BEGIN), open_store(f"sqlite:///{folder}/{name}.db")
    with BusySlack(clock, CHANNELS, faulty) as slack:
        soak_run = Soak(store, slack, clock, random.Random(7))
        soak_run.run(events, BEGIN + timedelta(days=days), killed)
        return notification_figures(soak_run)


def main() -> int:
    args = arguments(__doc__ or "")
    products, days = (60, 6) if args.quick else (500, 30)
    with tempfile.TemporaryDirectory() as home:
        events = history(products, days, 0.06 if args.quick else BAD, seed=1)
        figures = soak(Path(home), "soak", events, days, FAULTY, KILLED)
        causes = caused(60 if args.quick else 200, seed=2)
        week = soak(Path(home), "week", causes, 7, 0.0, 0.0)
        chances = history(60 if args.quick else 200, 7, 0.10, seed=2)
        unrelated = soak(Path(home), "unrelated", chances, 7, 0.0, 0.0)
    weeks = days / 7
    metrics = {f"soak: {name}": value for name, value in figures.items()} | {
        "soak: messages per incident": figures["messages"] / figures["incidents"],
        "soak: per channel and week": figures["messages at the channels' level"] / CHANNELS / weeks,
        "soak: naive sender, messages": float(len(events)),
        "soak: naive sender, per channel and week": len(events) / CHANNELS / weeks,
        "bad week: misses": len(causes) / 2,
        "bad week: lost": week["lost"],
        "bad week: messages at the channels' level": week["messages at the channels' level"],
        "bad week: naive sender, messages": float(len(causes)),
        "bad week of unrelated misses: misses": len(chances) / 2,
        "bad week of unrelated misses: places and days that have one": float(
            len(
                {(chance.channel, chance.at.date()) for chance in chances if isinstance(chance.event, Breach)}
            )
        ),
        "bad week of unrelated misses: messages at the channels' level": unrelated[
            "messages at the channels' level"
        ],
    }
    goals = {
        "soak: lost": ("<", 1.0),
        "soak: doubled": ("<", 1.0),
        "soak: open in Slack though ended": ("<", 1.0),
        "bad week: lost": ("<", 1.0),
        "bad week: messages at the channels' level": ("<", 61.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
