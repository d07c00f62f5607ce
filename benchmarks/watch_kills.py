"""Two watchers on one store, each killed repeatedly, the database restarted in between.

What was told afterwards must be what one watcher that nobody killed tells: nothing twice, nothing lost.
`--ticks` of both watchers side by side; one of them is killed at every tenth, at a random moment; on SQLite
and on a PostgreSQL server.
"""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fakes import postgres
from fakes.command import contract

BEGIN = datetime(2026, 5, 10, 12, tzinfo=UTC)
PRODUCTS = 12
KILLED = 10


@dataclass
class Scene:
    """A registry of products that deliver hourly: most in time, one in eight late, one in eight never."""

    folder: Path
    ticks: int

    def make(self) -> None:
        (self.folder / "registry").mkdir(parents=True)
        for number in range(PRODUCTS):
            text = contract(f"p{number}").replace('"0 6 * * *"', '"0 * * * *"')
            text = text.replace('{day: "{due - 1d:%F}"}', '{day: "{due:%Y-%m-%dT%H}"}').replace("30m", "10m")
            (self.folder / "registry" / f"p{number}.odcs.yaml").write_text(text)
            (self.folder / "lake" / f"p{number}").mkdir(parents=True)
        for hour in range(1, self.ticks * 15 // 60 + 1):
            due = BEGIN + timedelta(hours=hour)
            for number in range(PRODUCTS):
                kind = (number + hour) % 8
                if kind < 7:
                    self._deliver(number, due, due + timedelta(minutes=25 if kind == 0 else -20))

    def _deliver(self, number: int, due: datetime, at: datetime) -> None:
        place = self.folder / "later" / f"{at.timestamp():.0f}" / f"p{number}" / f"day={due:%Y-%m-%dT%H}"
        place.mkdir(parents=True)
        (place / "_SUCCESS").touch()
        os.utime(place / "_SUCCESS", (at.timestamp(),) * 2)

    def pass_on(self, now: datetime) -> None:
        """Write what has come by now to the lake."""
        later = self.folder / "later"
        for batch in sorted(later.iterdir()) if later.exists() else ():
            if int(batch.name) <= now.timestamp():
                for product in batch.iterdir():
                    for part in product.iterdir():
                        part.rename(self.folder / "lake" / product.name / part.name)
                    product.rmdir()
                batch.rmdir()

    def notified(self) -> Counter[str]:
        """Number of times that each message is in the alerts' file, and the last state of each incident."""
        lines = (self.folder / "told.jsonl").read_text("utf-8").splitlines()
        messages = [json.loads(line) for line in lines]
        opened = Counter(
            f"{message['title']} {message['steps'][:1]}"
            for message in messages
            if message["operation"] == "create"
        )
        ended = {f"{message['contract']} {message['group']} ends": message["state"] for message in messages}
        return opened + Counter(f"{name} {state}" for name, state in ended.items())

    def rows(self, url: str) -> Counter[str]:
        """Number of cycles of each product, due instant and status."""
        from dq.dataquality.delivery import cycle_store
        from dq.store.engine import open_store

        store = open_store(url)
        with store.read() as tx:
            names = [(f"p{number}", f"p{number}", "daily") for number in range(PRODUCTS)]
            records = [record for key in names for record in cycle_store.all_cycles(tx, key)]
        store.close()
        return Counter(
            f"{record.cycle.contract} {record.cycle.due_at:%F %H} {record.status}" for record in records
        )


# One process for many ticks, as `--every` has them, at instants that are read.
WATCHER = """
import sys
from dq.cli.main import run
for line in sys.stdin:
    words = ["watch", "registry", "--as-of", line.strip(), "--channel", "file:told.jsonl", "--trust-clock"]
    sys.stderr.write(f"{run(words)}\\n")
    sys.stderr.flush()
"""


class Watcher:
    """A process that ticks on request; `answers` are its exit codes."""

    def __init__(self, scene: Scene, url: str) -> None:
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-c", WATCHER], cwd=scene.folder, env={**os.environ, "DQ_STORE_URL": url},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.strip().isdecimal():
                self.answers.put(line.strip())
        self.answers.put("dead")

    def begin(self, now: datetime) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{now.isoformat()}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def run(scene: Scene, url: str, restart: Callable[[], None] | None, draw: random.Random, count: int) -> int:
    """All ticks by so many watchers; of several, one is killed at every tenth tick. Gives how many were."""
    scene.make()
    watchers, kills = [Watcher(scene, url) for _ in range(count)], 0
    last = BEGIN + timedelta(minutes=15 * scene.ticks)
    # Whoever was killed last left its messages with a lease, which has to run out.
    moments = [BEGIN + timedelta(minutes=15 * number) for number in range(scene.ticks + 1)]
    for number, now in enumerate(
        [*moments, *(last + timedelta(minutes=minutes) for minutes in (2, 4, 6, 8))]
    ):
        scene.pass_on(now)
        done = False
        while not done:
            for watcher in watchers:
                watcher.begin(now)
            victim = watchers[kills % count] if count > 1 and number % KILLED == KILLED - 1 else None
            if victim is not None:
                time.sleep(draw.uniform(0.0, 0.5))
                victim.kill()
                kills += 1
                if restart is not None and number % (2 * KILLED) == KILLED - 1:
                    restart()
            codes = [watcher.answers.get(timeout=120) for watcher in watchers]
            watchers = [Watcher(scene, url) if watcher is victim else watcher for watcher in watchers]
            # A tick that nobody could do, because the database was away, is done again.
            done = bool({"0", "1"} & set(codes))
    for watcher in watchers:
        watcher.kill()
    return kills


def compared(name: str, calm: Scene, quiet: str, rough: Scene, url: str, kills: int) -> dict[str, float]:
    """Compare what killed watchers left with what a watcher left that was not killed."""
    expected_rows, rows = calm.rows(quiet), rough.rows(url)
    expected, notified = calm.notified(), rough.notified()
    return {
        f"{name}: kills": kills,
        f"{name}: cycles": sum(rows.values()),
        f"{name}: messages": sum(notified.values()),
        f"{name}: cycles doubled": sum(count - 1 for count in rows.values()),
        f"{name}: cycles lost or otherwise": sum((expected_rows - rows).values())
        + sum((rows - expected_rows).values()),
        f"{name}: messages doubled": sum((notified - expected).values()),
        f"{name}: messages lost": sum((expected - notified).values()),
    }


def main() -> int:
    args = arguments(__doc__ or "", ticks="of each watcher")
    ticks = args.ticks or (20 if args.quick else 200)
    metrics: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        calm, quiet = Scene(folder / "calm", ticks), f"sqlite:///{folder / 'calm.db'}"
        run(calm, quiet, None, random.Random(), 1)
        with postgres.new_database() as url:
            for name, where, restart in (
                ("SQLite", f"sqlite:///{folder / 'rough.db'}", None),
                ("PostgreSQL", url, postgres.restart),
            ):
                rough = Scene(folder / name, ticks)
                kills = run(rough, where, restart, random.Random(1), 2)
                metrics |= compared(name, calm, quiet, rough, where, kills)
    bad = ("doubled", "lost", "otherwise")
    return finish(metrics, {name: ("<", 1.0) for name in metrics if name.split()[-1] in bad}, args)


if __name__ == "__main__":
    sys.exit(main())
