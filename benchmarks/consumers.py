"""Breaches at the consumers: a storm of many products with many subscribers each, and killed watchers.

The products are made from a few that are missing, and every subscriber uses all of them: it must read one
message of each cause and its end, in a thread of its own, on SQLite and on PostgreSQL. Watchers are killed at
random moments and by Slack after its answer, and Slack fails by chance. Some subscribers have other
severities, a silence, quiet hours or an escalation. The oracle knows only what Slack received. Products
without a common cause are a digest for each subscriber. And the table of changes of producers against needs
of consumers.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from _report import arguments, finish

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "validators" / "compat")]
from fakes import children, postgres  # noqa: E402
from fakes.command import BEGIN, MISSED, contract  # noqa: E402
from fakes.slack import TOKEN, FakeSlack  # noqa: E402

from dq.alerts.outbox import count_overdue  # noqa: E402
from dq.store.engine import open_store  # noqa: E402

DAY, DEFERRED, ESCALATED = "2026-05-10", "2026-05-11T07:28:00Z", "2026-05-11T08:30:00Z"
CAME, DONE, QUIET_ENDS = "2026-05-11T09:00:00Z", "2026-05-11T09:05:00Z", "2026-05-11T12:01:00Z"
SUBSCRIPTION = """\
contract: {product}
major: 1
consumer: {{team: {team}}}
purpose: The reports of {team}.
startDate: 2026-01-01
alerts: {{channel: "#{team}", tool: slack{alerts}}}
"""
# Subscribers that must not read of a breach at once, by their keys of `alerts`.
SPECIAL = {
    "severe": ", severities: [critical]",
    "silent": "",
    "quiet": ', quiet: "06:00-12:00", quietSeverities: [error]',
    "patient": ", escalateAfter: 30m",
}
MOST_TICKS = 120
FAULTY = 0.08
WATCHER = "import os, sys; os.environ.update({}); from dq.cli.main import run; sys.exit(run(sys.argv[1:]))"
PRODUCT = re.compile(r"\b([a-z])\d{3} (?:is missing|came)")


class StormSlack(FakeSlack):
    """A Slack with faults by chance, which kills the watcher at a call: before or after it takes a message.

    `posted_at` is the watcher's time at which each message was accepted.
    """

    def __init__(self, channels: dict[str, str], chance: random.Random) -> None:
        super().__init__(channels=channels)
        self.chance, self.victim, self.calls_left = chance, 0, 0
        self.tick_at = datetime.fromisoformat(BEGIN)
        self.is_faulty = False
        self.befell: Counter[str] = Counter()
        self.posted_at: dict[str, datetime] = {}

    def unscripted(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        self.calls_left -= 1
        if self.calls_left == 0 and self.victim:
            accept = self.chance.random() < 0.7
            self.befell[f"kills {'after' if accept else 'before'} Slack took a message"] += 1
            return {"kind": "kill", "pid": self.victim, "accept": accept}
        if self.is_faulty and self.chance.random() < FAULTY:
            kind = self.chance.choice(["rate", "status", "drop"])
            accept = kind != "rate" and self.chance.random() < 0.5
            self.befell[{"rate": "429", "status": "HTTP 500", "drop": "answers lost"}[kind]] += 1
            return {"kind": kind, "accept": accept, "status": 500, "retry_after": "1"}
        return super().unscripted(method, body)

    def chat_postMessage(self, body: dict[str, Any]) -> dict[str, Any]:  # noqa: N802  # Slack's own name
        answer = super().chat_postMessage(body)
        if "ts" in answer:
            self.posted_at[answer["ts"]] = self.tick_at
        return answer


class Storm:
    """A registry of products and subscribers, a lake, a Slack, and watchers in processes of their own."""

    def __init__(
        self, folder: Path, url: str, products: int, subscribers: int, causes: int, kills: int
    ) -> None:
        self.folder, self.url, self.draw = folder, url, random.Random(products)
        self.causes = [chr(ord("a") + number) for number in range(causes)]
        self.products = [f"{self.causes[n % causes]}{n // causes:03}" for n in range(products)]
        # Without kills, all subscribers read at once.
        self.special = tuple(SPECIAL) if kills else ()
        self.teams = [*self.special, *(f"t{n:02}" for n in range(subscribers - len(self.special)))]
        self.channels = {"#owners": "C0OWNERS01", "#platform": "C0PLATFORM"} | {
            f"#{team}": f"C0TEAM{team.upper():0<4.4}" for team in self.teams
        }
        self.wanted, self.kills, self.untouched = kills, 0, 0
        registry = folder / "registry"
        (registry / "subscriptions").mkdir(parents=True)
        (folder / "lake").mkdir()
        (registry / "dq-policy.yaml").write_text("{}")
        for product in self.products:
            parts = {f'"#{product}"': '"#owners"'}
            if product != f"{product[0]}000":
                inputs = f"customProperties: [{{property: inputs, value: [{product[0]}000]}}]\n"
                parts["servers:"] = f"{inputs}servers:"
            (registry / f"{product}.odcs.yaml").write_text(contract(product, **parts))
            for team in self.teams:
                text = SUBSCRIPTION.format(product=product, team=team, alerts=SPECIAL.get(team, ""))
                (registry / "subscriptions" / f"{team}-{product}.yaml").write_text(text)

    def run(self) -> dict[str, float]:
        with StormSlack(self.channels, self.draw) as slack:
            self._tick(slack, BEGIN)
            self._command(slack, *("incidents", "silence", "(subscription)/silent*", "--for", "24h"),
                          *("--reason", "moving", "--by", "ana", "--as-of", BEGIN))  # fmt: skip
            self._tick(slack, MISSED)
            slack.is_faulty = bool(self.wanted)
            begun = time.monotonic()
            self._until_sent(slack, DEFERRED, self.wanted // 2)
            seconds = time.monotonic() - begun
            self._until_sent(slack, ESCALATED, self.kills, least=3)
            opened = {ts: dict(message) for ts, message in slack.messages.items()}
            for product in self.products:
                marker = self.folder / "lake" / product / f"day={DAY}" / "_SUCCESS"
                marker.parent.mkdir(parents=True)
                marker.touch()
                os.utime(marker, (datetime.fromisoformat(CAME).timestamp(),) * 2)
            self._until_sent(slack, DONE, self.wanted)
            self._until_sent(slack, QUIET_ENDS, self.kills, least=3)
            return self._figures(slack, opened, seconds)

    def digests(self) -> dict[str, float]:
        """Without common causes, each subscriber reads one message of all, and its end."""
        with StormSlack(self.channels, self.draw) as slack:
            for at in (BEGIN, MISSED):
                self._tick(slack, at)
            self._until_sent(slack, DEFERRED, 0)
            opened = {ts: dict(message) for ts, message in slack.messages.items()}
            for product in self.products:
                marker = self.folder / "lake" / product / f"day={DAY}" / "_SUCCESS"
                marker.parent.mkdir(parents=True)
                marker.touch()
                os.utime(marker, (datetime.fromisoformat(CAME).timestamp(),) * 2)
            self._until_sent(slack, DONE, 0)
            counts = Counter(message["channel"] for message in slack.roots)
            self._print_texts(slack, opened)
            own = [self.channels[f"#{team}"] for team in self.teams]
            return {
                "subscribers": float(len(own)),
                "subscribers with other than one message": float(sum(counts[key] != 1 for key in own)),
                "ends lost": float(
                    sum("RESOLVED" not in m["text"] for m in slack.roots if m["channel"] in own)
                ),
            }

    def _until_sent(self, slack: StormSlack, at: str, kills: int, least: int = 1) -> None:
        """Ticks, killed until there were so many kills, until nothing waits. A lease lasts a minute.

        At least so many: what waits for a paused channel since a deferral is not overdue.
        """
        start, untouched = datetime.fromisoformat(at), 0
        for number in range(MOST_TICKS):
            now = start + timedelta(seconds=61 * number)
            is_victim = self.kills < kills
            has_ended = self._tick(slack, now.isoformat(), kill=is_victim)
            untouched += not is_victim
            if has_ended and self.kills >= kills and number + 1 >= least and not self._waiting(now):
                break
        self.untouched = max(self.untouched, untouched)

    def _tick(self, slack: StormSlack, at: str, *, kill: bool = False) -> bool:
        """One tick in a process, which is killed if it lasts that long; True if it ended by itself."""
        slack.tick_at = datetime.fromisoformat(at)
        by_slack = kill and self.draw.random() < 0.6
        watcher = self._start(slack, "watch", "registry", "--as-of", at, "--trust-clock")
        slack.victim, slack.calls_left = watcher.process.pid, self.draw.randint(1, 6) if by_slack else 0
        if kill and not by_slack:
            watcher.process.join(self.draw.uniform(0, len(self.products) / self.draw.choice([20, 20, 125])))
            watcher.process.kill()
        code, printed = watcher.end()
        slack.victim = 0
        if code < 0:
            self.kills += 1
            return False
        assert code in (0, 1), (code, printed)
        return True

    def _start(self, slack: StormSlack, *words: str) -> children.Child:
        variables = {
            "DQ_STORE_URL": self.url,
            "SLACK_BOT_TOKEN": TOKEN,
            "DQ_SLACK_URL": slack.url,
            "DQ_PLATFORM_CHANNEL": "slack:#platform",
        }
        return children.start(WATCHER.format(variables), *words, folder=self.folder)

    def _command(self, slack: StormSlack, *words: str) -> None:
        code, printed = self._start(slack, *words).end()
        assert code == 0, (words, code, printed)

    def _waiting(self, at: datetime) -> int:
        store = open_store(self.url)
        with store.read() as tx:
            count, _ = count_overdue(tx, at)
        store.close()
        return count

    def _figures(
        self, slack: StormSlack, opened: dict[str, dict[str, Any]], seconds: float
    ) -> dict[str, float]:
        """Compare what Slack received with what each subscriber must have read of each cause."""
        teams = {self.channels[f"#{team}"]: team for team in self.teams}
        openings: Counter[tuple[str, str]] = Counter()
        mixed = ends_lost = ends_twice = foreign = 0
        waits: list[float] = []
        breached_at = datetime.fromisoformat(DEFERRED)
        replies: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for post in slack.posts:
            if "thread_ts" in post and post["ts"] in slack.messages:
                replies[post["thread_ts"]].append(post)
        for post in (post for post in slack.posts if "thread_ts" not in post):
            team, text = teams.get(post["channel"]), str(post)
            if team is None or post["ts"] not in slack.messages or "during quiet hours" in text:
                continue
            causes = set(PRODUCT.findall(text))
            mixed += len(causes) != 1
            openings.update((team, cause) for cause in causes)
            waits.append((slack.posted_at[post["ts"]] - breached_at).total_seconds() / 60)
            thread = replies[post["ts"]]
            ends = sum(reply["text"].startswith("Resolved") for reply in thread)
            ends_lost += not ends or "RESOLVED" not in slack.messages[post["ts"]]["text"]
            ends_twice += max(ends - 1, 0)
            foreign += sum(reply["channel"] != post["channel"] for reply in thread)
        expected = {
            (team, cause)
            for team in self.teams
            for cause in self.causes
            if team not in ("severe", "silent", "quiet")
        }
        for kind, pairs in (("lost", expected - openings.keys()), ("unwanted", openings.keys() - expected)):
            for team, cause in sorted(pairs):
                print(f"{kind}: {team}, cause {cause}")
        by_minute = Counter(
            (post["channel"], slack.posted_at[post["ts"]])
            for post in slack.posts
            if "thread_ts" not in post and post["channel"] in teams
        )
        early = sum(
            slack.posted_at[ts] < breached_at + timedelta(minutes=30)
            for ts, message in opened.items()
            if teams.get(message["channel"]) == "patient"
        )
        summaries = [message for message in slack.roots if "during quiet hours" in message["text"]]
        keys = Counter(message["metadata"]["event_payload"]["key"] for message in slack.messages.values())
        self._print_texts(slack, opened)
        return {
            "subscribers": float(len(self.teams)),
            "messages expected: subscribers and causes": float(len(expected)),
            "lost": float(len(expected - openings.keys())),
            "doubled": float(sum(count - 1 for count in openings.values())),
            "sent although unwanted": float(len(openings.keys() - expected)) + early,
            "messages of several causes": float(mixed),
            "ends lost": float(ends_lost),
            "ends doubled": float(ends_twice),
            "replies in a foreign thread": float(foreign),
            "quiet hours without a summary": abs(len(summaries) - float("quiet" in self.teams)),
            "copies that stayed": float(sum(count - 1 for count in keys.values())),
            "watchers killed": float(self.kills),
            **{name: float(count) for name, count in sorted(slack.befell.items())},
            "longest wait, minutes of the watcher": max(waits, default=0.0),
            "most ticks without a kill until all was sent": float(self.untouched),
            "most messages to one subscriber in one tick": float(max(by_minute.values(), default=0)),
            "from the breach to the last message, seconds": seconds,
        }

    def _print_texts(self, slack: StormSlack, opened: dict[str, dict[str, Any]]) -> None:
        """Print one opening message and its end, as they are shown."""
        channel = self.channels[f"#{self.teams[-1]}"]
        first = next((message for message in opened.values() if message["channel"] == channel), None)
        if first is not None:
            thread = [reply for reply in slack.replies if reply["thread_ts"] == first["ts"]]
            for message in (first, slack.messages[first["ts"]], *thread[-2:]):
                print("\n".join(f"    {line}" for line in _shown(message)), end="\n\n")


def _shown(message: dict[str, Any]) -> Iterator[str]:
    yield message["text"]
    for attachment in message.get("attachments", ()):
        for block in attachment.get("blocks", ()):
            for element in (block.get("text"), *block.get("fields", ()), *block.get("elements", ())):
                if element and isinstance(element.get("text"), str):
                    yield from element["text"].split("\n")


@contextmanager
def databases(home: Path, only: str | None) -> Iterator[dict[str, str]]:
    if only == "SQLite":
        yield {"SQLite": f"sqlite:///{home}/storm.db"}
        return
    with postgres.new_database() as url:
        urls = {"SQLite": f"sqlite:///{home}/storm.db", "PostgreSQL": url}
        yield {name: address for name, address in urls.items() if only in (None, name)}


def compared() -> dict[str, float]:
    """Number of pairs of a change and a need that are as in the table of the tests."""
    # Imported here: each watcher imports this file again.
    import test_needs as needs

    wrong = 0
    for pair in needs.PAIRS:
        try:
            needs.test_a_change_is_held_against_what_a_consumer_needs(*pair)
        except AssertionError:
            wrong += 1
    return {
        "changes against needs: pairs": float(len(needs.PAIRS)),
        "changes against needs: wrong": float(wrong),
    }


GOALS = (
    "lost", "doubled", "sent although unwanted", "messages of several causes", "ends lost", "ends doubled",
    "replies in a foreign thread", "quiet hours without a summary", "copies that stayed",
)  # fmt: skip


def main() -> int:
    database = {"choices": ["SQLite", "PostgreSQL"], "help": "only on this database (default: both)"}
    args = arguments(__doc__ or "", database=database)
    # The fewest that are a digest; Slack takes a message a second in the channel of the owners.
    products, subscribers, causes, kills = (6, 6, 2, 4) if args.quick else (500, 20, 4, 50)
    unrelated = 6 if args.quick else 12
    metrics = compared()
    goals: dict[str, tuple[str, float]] = {"changes against needs: wrong": ("<", 1.0)}
    with tempfile.TemporaryDirectory() as home, databases(Path(home), args.database) as urls:
        runs = {}
        for name, url in urls.items():
            storm = Storm(Path(home) / name, url, products, subscribers, causes, kills)
            own = f"{products} of {causes} causes, {name}: "
            runs[own] = storm.run
            goals |= {own + key: ("<", 1.0) for key in GOALS}
            goals[own + "watchers killed"] = (">", kills - 1.0)
            goals[own + "most ticks without a kill until all was sent"] = ("<", 8.0)
        storm = Storm(Path(home) / "unrelated", f"sqlite:///{home}/unrelated.db", unrelated, 4, unrelated, 0)
        own = f"{unrelated} without a common cause: "
        runs[own] = storm.digests
        goals |= {own + "subscribers with other than one message": ("<", 1.0), own + "ends lost": ("<", 1.0)}
        # Mostly, the watchers wait for Slack's limits; one at a time gives comparable seconds.
        with ThreadPoolExecutor(len(runs) if args.quick else 1) as pool:
            for own, figures in zip(runs, pool.map(lambda run: run(), runs.values()), strict=True):
                metrics |= {own + key: value for key, value in figures.items()}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
