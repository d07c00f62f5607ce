"""Breaches at the consumers: a storm of many products with many subscribers each, and killed watchers.

All products are made from one that is missing, and every subscriber uses all of them: each must read one
message of the cause, with every product in it, and its end; on SQLite and on PostgreSQL, with watchers that
are killed at random moments. Products without a common cause are a digest for each subscriber. And the table
of changes of producers against needs of consumers.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from _report import arguments, finish

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "validators" / "compat")]
import test_needs as needs  # noqa: E402
from fakes import postgres  # noqa: E402
from fakes.command import BEGIN, MISSED, contract  # noqa: E402
from fakes.slack import TOKEN, FakeSlack  # noqa: E402

from dq.alerts.outbox import count_overdue  # noqa: E402
from dq.store.engine import open_store  # noqa: E402

DAY, HELD = "2026-05-10", "2026-05-11T07:28:00Z"
CAME, DONE = "2026-05-11T09:00:00Z", "2026-05-11T09:05:00Z"
SUBSCRIPTION = """\
contract: {product}
major: 1
consumer: {{team: {team}}}
purpose: The reports of {team}.
startDate: 2026-01-01
alerts: {{channel: "#{team}", tool: slack}}
"""
MOST_TICKS = 60
WATCHER = "import sys; from dq.cli.main import run; sys.exit(run(sys.argv[1:]))"


class Storm:
    """A registry of products and subscribers, a lake, a Slack, and watchers in processes of their own."""

    def __init__(self, folder: Path, url: str, products: int, subscribers: int, *, caused: bool) -> None:
        self.folder, self.url, self.draw = folder, url, random.Random(products)
        self.products = [f"p{number:03}" for number in range(products)]
        self.teams = [f"t{number:02}" for number in range(subscribers)]
        self.channels = {"#owners": "C0OWNERS01", "#platform": "C0PLATFORM"} | {
            f"#{team}": f"C0TEAM0{team.upper()}" for team in self.teams
        }
        registry = folder / "registry"
        (registry / "subscriptions").mkdir(parents=True)
        (folder / "lake").mkdir()
        (registry / "dq-policy.yaml").write_text("{}")
        for product in self.products:
            parts = {f'"#{product}"': '"#owners"'}
            if caused and product != self.products[0]:
                inputs = f"customProperties: [{{property: inputs, value: [{self.products[0]}]}}]\n"
                parts["servers:"] = f"{inputs}servers:"
            (registry / f"{product}.odcs.yaml").write_text(contract(product, **parts))
            for team in self.teams:
                text = SUBSCRIPTION.format(product=product, team=team)
                (registry / "subscriptions" / f"{team}-{product}.yaml").write_text(text)
        self.kills = 0

    def run(self, kills: int) -> dict[str, float]:
        with FakeSlack(channels=self.channels) as slack:
            self._tick(slack, BEGIN, 0)
            self._tick(slack, MISSED, 0)
            begun = time.monotonic()
            self._until_told(slack, HELD, kills)
            seconds = time.monotonic() - begun
            titles = self._titles(slack)
            for product in self.products:
                marker = self.folder / "lake" / product / f"day={DAY}" / "_SUCCESS"
                marker.parent.mkdir(parents=True)
                marker.touch()
                os.utime(marker, (datetime.fromisoformat(CAME).timestamp(),) * 2)
            self._until_told(slack, DONE, kills)
            return self._figures(slack, titles, seconds)

    def _until_told(self, slack: FakeSlack, at: str, kills: int) -> None:
        """Ticks, the first of which are killed, until nothing waits. A lease lasts a minute."""
        start = datetime.fromisoformat(at)
        for number in range(MOST_TICKS):
            now = start + timedelta(seconds=61 * number)
            ended = self._tick(slack, now.isoformat(), self.draw.uniform(1, 8) if number < kills else 0)
            if ended and not self._waiting(now):
                return

    def _tick(self, slack: FakeSlack, at: str, kill_after: float) -> bool:
        """One tick in a process, killed after some seconds if they are given; whether it ended by itself."""
        variables = {
            "DQ_STORE_URL": self.url,
            "SLACK_BOT_TOKEN": TOKEN,
            "DQ_SLACK_URL": slack.url,
            "DQ_PLATFORM_CHANNEL": "slack:#platform",
        }
        words = ["watch", "registry", "--as-of", at, "--trust-clock"]
        process = subprocess.Popen(
            [sys.executable, "-c", WATCHER, *words],
            cwd=self.folder, env={**os.environ, **variables},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            code = process.wait(kill_after or None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.kills += 1
            return False
        assert code in (0, 1), code
        return True

    def _waiting(self, at: datetime) -> int:
        store = open_store(self.url)
        with store.read() as tx:
            count, _ = count_overdue(tx, at)
        store.close()
        return count

    def _titles(self, slack: FakeSlack) -> dict[str, list[str]]:
        """The messages of each subscriber's channel, without those in threads, as they are now."""
        names = {value: name.removeprefix("#") for name, value in self.channels.items()}
        found: dict[str, list[str]] = {team: [] for team in self.teams}
        for post in slack.roots:
            found.get(names[post["channel"]], []).append(post["text"].split("\n")[0])
        return found

    def _figures(self, slack: FakeSlack, titles: dict[str, list[str]], seconds: float) -> dict[str, float]:
        ends = self._titles(slack)
        count = len(self.products)
        keys = Counter((post["channel"], post["metadata"]["event_payload"]["key"]) for post in slack.posts)
        return {
            "subscribers": float(len(self.teams)),
            "subscribers without a message": float(sum(not texts for texts in titles.values())),
            "most messages of one subscriber": float(max(map(len, titles.values()))),
            "messages that lack a product": float(
                sum(f"{count} " not in text for texts in titles.values() for text in texts)
            ),
            "ends that were not told": float(
                sum("RESOLVED" not in text for texts in ends.values() for text in texts)
            ),
            "posted twice": float(sum(number - 1 for number in keys.values())),
            "watchers killed": float(self.kills),
            "from the breach to the last message, seconds": seconds,
        }


@contextmanager
def databases(home: Path) -> Iterator[dict[str, str]]:
    with postgres.new_database() as url:
        yield {"SQLite": f"sqlite:///{home}/storm.db", "PostgreSQL": url}


def compared() -> dict[str, float]:
    """How many pairs of a change and a need are as the table of the tests has them."""
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


def main() -> int:
    args = arguments(__doc__ or "")
    products, subscribers, kills = (12, 4, 2) if args.quick else (500, 20, 6)
    metrics = compared()
    goals: dict[str, tuple[str, float]] = {"changes against needs: wrong": ("<", 1.0)}
    with tempfile.TemporaryDirectory() as home, databases(Path(home)) as urls:
        for name, url in urls.items():
            storm = Storm(Path(home) / name, url, products, subscribers, caused=True)
            own = f"{products} of one cause, {name}: "
            metrics |= {own + key: value for key, value in storm.run(kills).items()}
            goals |= {
                own + "subscribers without a message": ("<", 1.0),
                own + "most messages of one subscriber": ("<", 2.0),
                own + "messages that lack a product": ("<", 1.0),
                own + "ends that were not told": ("<", 1.0),
                own + "posted twice": ("<", 1.0),
            }
        storm = Storm(Path(home) / "unrelated", f"sqlite:///{home}/unrelated.db", 12, 4, caused=False)
        own = "12 without a common cause: "
        metrics |= {own + key: value for key, value in storm.run(0).items()}
        goals |= {
            own + "subscribers without a message": ("<", 1.0),
            own + "most messages of one subscriber": ("<", 2.0),
            own + "ends that were not told": ("<", 1.0),
            own + "posted twice": ("<", 1.0),
        }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
