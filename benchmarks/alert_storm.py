"""A storm of 500 incidents at Slack's limits: who hears when, and how many messages it makes.

By a clock of the benchmark, and by the real one: 500 incidents over 20 channels, and one of another channel
that comes last. By the benchmark's clock alone: 500 in one channel, and a product of every quarter of an hour
that flaps for half a day. And by ticks of the real watcher, on both databases: 500 products below one that
is missing. Waiting is given as a multiple of what Slack's limit of a message a second and channel alone
takes; by the real clock, with the seconds that a plain client takes for as many messages to a Slack without
limits.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from _busy_slack import BusySlack, Clock, instant
from _report import arguments, finish
from fakes import postgres
from fakes.command import BEGIN as BEFORE
from fakes.command import MISSED
from fakes.mesh import CHANNELS as MESH
from fakes.mesh import Mesh
from fakes.slack import TOKEN, FakeSlack

from dq.alerts.drain import drain
from dq.alerts.record import record
from dq.alerts.route import AlertRoute
from dq.contracts.incident import Breach, IncidentKey, Recovery
from dq.contracts.outcome import Severity
from dq.store import Store, open_store

STORM, CHANNELS = 500, 20
PATIENCE, TICK = timedelta(seconds=30), timedelta(minutes=1)
BEGIN = datetime(2026, 5, 4, 6, 30, tzinfo=UTC)
# Multiples of Slack's limit: for the first message of each channel, and for the last one of all. In one
# channel, a message a second for half of each minute takes twice the limit.
LIMITS = {"20 channels": (0.2, 1.5), "1 channel": (0.01, 2.1), "real clock": (0.3, 3.5)}
FACTS = (("promised", "2026-05-04 06:00 UTC"), ("found", "nothing"))


def breach(name: str, at: datetime) -> Breach:
    key = IncidentKey(name, name, "daily")
    return Breach(key, Severity.ERROR, f"{at:%FT%H:%MZ}", f"{name} was not delivered", at, FACTS)


def keep_sending(
    store: Store,
    slack: BusySlack,
    now: Callable[[], datetime],
    sleep: Callable[[float], object],
    max_ticks: int,
) -> int:
    """Ticks until nothing waits, at most so many; how many there were."""
    channels = slack.open()
    for tick in range(1, max_ticks + 1):
        begun = now()
        done = drain(store, channels, now, sleep=sleep, patience=PATIENCE)
        if not done.overdue:
            return tick
        sleep(max((begun + TICK - now()).total_seconds(), 0))
    return max_ticks


def plain_client_seconds() -> float:
    """Seconds in which Slack's own client posts the messages of a storm to a Slack without limits."""
    from slack_sdk import WebClient

    with BusySlack(lambda: datetime.now(UTC), CHANNELS) as slack:
        slack.limited = False
        client = WebClient(TOKEN, base_url=slack.url)
        begun = time.monotonic()
        for number in range(STORM):
            client.chat_postMessage(channel=f"C0TEAM{number % CHANNELS:04}", text=f"p{number:03} is missing")
        return time.monotonic() - begun


def storm(
    folder: Path,
    name: str,
    now: Callable[[], datetime],
    sleep: Callable[[float], object],
    over: int,
    plain_client: float = 0,
) -> dict[str, float]:
    """Seconds from the storm's record until it was told, in which ways."""
    store = open_store(f"sqlite:///{folder}/{name}.db")
    begun, other = now(), f"#team-{over:02}"
    with BusySlack(now, over + 1) as slack:
        with store.write() as tx:
            for number in range(STORM):
                route = AlertRoute("slack", f"#team-{number % over:02}")
                record(tx, breach(f"p{number:03}", begun), [route], begun)
            incident = record(tx, breach("alone", begun), [AlertRoute("slack", other)], begun)
        ticks = keep_sending(store, slack, now, sleep, max_ticks=30)
        notified, posts = slack.posts_by_incident(), sorted(slack.posts, key=instant)
    assert incident is not None
    hearing: dict[str, float] = {}
    for post in posts:
        hearing.setdefault(post["channel"], (instant(post) - begun).total_seconds())
    never, limit = float("inf"), STORM / over + plain_client
    seconds = {key: (instant(those[0]) - begun).total_seconds() for key, those in notified.items()}
    own = f"{name}: "
    waits = {
        "another channel's alert": seconds.get(incident, never),
        "the last channel hears": max(hearing.values()) if len(hearing) > over else never,
        "the last incident is notified": max(seconds.values()),
    }
    return {
        **{f"{own}{what}, s": seconds for what, seconds in waits.items()},
        **{f"{own}{what} / Slack's limit": seconds / limit for what, seconds in waits.items()},
        own + "incidents told": float(len({*seconds} & incidents(store))),
        own + "told twice": float(sum(len(those) - 1 for those in notified.values())),
        own + "messages at the channels' level": float(len(slack.roots)),
        own + "ticks": float(ticks),
        own + "answers 429": float(slack.befell["429"]),
    }


def incidents(store: Store) -> set[str]:
    """The ids of all incidents that a contract has."""
    from sqlalchemy import select

    from dq.alerts.tables import incident

    with store.read() as tx:
        return set(tx.scalars(select(incident.c.id).where(~incident.c.contract.startswith("("))))


def flapping(folder: Path) -> dict[str, float]:
    """The alerts of a product of every quarter of an hour that is late each time, for twelve hours."""
    clock, store = Clock(BEGIN), open_store(f"sqlite:///{folder}/flapping.db")
    key, route = IncidentKey("flaps", "flaps", "quarterly"), [AlertRoute("slack", "#team-00")]
    with BusySlack(clock, 1) as slack:
        channels = slack.open()
        for minute in range(12 * 60 + 1):
            due = BEGIN + timedelta(minutes=minute - minute % 15)
            name = f"{due:%FT%H:%MZ}"
            events: dict[int, Breach | Recovery] = {
                0: Breach(key, Severity.ERROR, name, "flaps was not delivered", due, FACTS),
                8: Recovery(key, name, due + timedelta(minutes=8), (("found", "delivered"),)),
            }
            event = events.get(minute % 15)
            if event is not None:
                with store.write() as tx:
                    record(tx, event, route, clock())
            if event is not None or minute % 5 == 0:
                drain(store, channels, clock)
            clock.at = BEGIN + timedelta(minutes=minute + 1)
        edits = len(slack.called("chat.update"))
    return {
        "flapping for 12 h: messages at the channel's level": float(len(slack.roots)),
        "flapping for 12 h: messages in the thread": float(len(slack.replies)),
        "flapping for 12 h: edits": float(edits),
    }


def caused(folder: Path, name: str, url: str) -> dict[str, float]:
    """Ticks of `dq watch`: one product and 500 that are made from it are missing, and come in the end."""
    with FakeSlack(channels=MESH) as slack:
        settings = {
            "SLACK_BOT_TOKEN": TOKEN,
            "DQ_SLACK_URL": slack.url,
            "DQ_PLATFORM_CHANNEL": "slack:#platform",
        }
        os.environ |= {"DQ_STORE_URL": url, **settings}
        mesh = Mesh(folder)
        names = ["raw", *mesh.made_from_raw(STORM)]
        mesh.watch(BEFORE)
        seconds = {}
        for at in (MISSED, "2026-05-11T07:28:00Z", "2026-05-11T07:33:00Z"):
            begun = time.monotonic()
            mesh.watch(at)
            seconds[at] = time.monotonic() - begun
        owners = [post for post in slack.posts if post["channel"] != MESH["#platform"]]
        for product in names:
            mesh.came(product, "2026-05-10", "2026-05-11T09:00:00Z")
        for at in ("2026-05-11T09:05:00Z", "2026-05-11T09:21:00Z"):
            mesh.watch(at)
        own = f"500 below one, {name}: "
        return {
            own + "messages to owners": float(len(owners)),
            own + "messages to the platform": float(len(slack.roots)) - len(owners),
            own + "messages in threads, ends included": float(len(slack.replies)),
            own + "still shown as open": float(sum("ERROR" in post["text"] for post in slack.roots)),
            own + "the tick in which all are found, s": seconds[MISSED],
            own + "a tick while all stand open, s": seconds["2026-05-11T07:33:00Z"],
        }


def main() -> int:
    args = arguments(__doc__ or "")
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        clock = Clock(BEGIN)
        metrics |= storm(folder, "20 channels", clock, clock.sleep, CHANNELS)
        if not args.quick:
            clock = Clock(BEGIN)
            metrics |= storm(folder, "1 channel", clock, clock.sleep, 1)
            plain = plain_client_seconds()
            metrics["real clock: plain client, s"] = plain
            metrics |= storm(folder, "real clock", lambda: datetime.now(UTC), time.sleep, CHANNELS, plain)
        metrics |= flapping(folder)
        if not args.quick:
            (folder / "first").mkdir()
            metrics |= caused(folder / "first", "SQLite", f"sqlite:///{folder}/caused.db")
            (folder / "second").mkdir()
            with postgres.new_database() as url:
                metrics |= caused(folder / "second", "PostgreSQL", url)
    goals: dict[str, tuple[str, float]] = {}
    for name in ("20 channels", *(() if args.quick else ("1 channel", "real clock"))):
        first, last = LIMITS[name]
        goals |= {
            f"{name}: another channel's alert / Slack's limit": ("<", first),
            f"{name}: the last channel hears / Slack's limit": ("<", first),
            f"{name}: the last incident is notified / Slack's limit": ("<", last),
            f"{name}: incidents told": (">", float(STORM)),
            f"{name}: told twice": ("<", 1.0),
        }
    for name in () if args.quick else ("SQLite", "PostgreSQL"):
        goals |= {
            f"500 below one, {name}: messages to owners": ("<", 2.0),
            f"500 below one, {name}: messages to the platform": ("<", 2.0),
            f"500 below one, {name}: still shown as open": ("<", 1.0),
        }
    goals["flapping for 12 h: messages in the thread"] = ("<", 7.0)
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
