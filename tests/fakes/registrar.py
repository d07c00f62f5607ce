"""A process that registers tables and may be killed anywhere; a nursery makes one after the other quickly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from fakes.flights import flights
from sqlalchemy import event

from dq.registry.apply import apply, propose
from dq.registry.catalog import Catalog, CatalogSettings
from dq.registry.catalogs import open_catalog
from dq.registry.orphans import WholeRegistry
from dq.registry.run_log import RegisterRun
from dq.registry.table import TableSpec, marked
from dq.store.engine import Store, open_store

COUNT = 30


def wanted() -> list[TableSpec]:
    """Thirty tables of one database."""
    plain = flights("s3://lake/air")
    facts = {"dq.contract-id": "air-flights", "dq.contract-version": "1.0.0"}
    return [
        marked(replace(plain, name=f"t{at:02}", location=f"s3://lake/air/{at}", parameters=()), facts)
        for at in range(COUNT)
    ]


def register(catalog: Catalog, store: Store) -> None:
    """Plans and applies all of them."""
    made = propose(catalog, catalog.id, wanted(), store, whole=WholeRegistry(""))
    run = RegisterRun(str(uuid.uuid4()), datetime.now(UTC), "")
    apply(catalog, catalog.id, made, store, run=run)


@dataclass(frozen=True, slots=True)
class Nursery:
    """Makes processes that have everything loaded; each stands still until it is told to go on."""

    process: subprocess.Popen[str]

    def run(self, url: str, commit: int = 0, ready: Callable[[int], None] = lambda pid: None) -> int:
        """Registers from a process of its own, and gives how it ended: the number of its signal, or 0.

        `commit`: it kills itself before that commit to the store. `ready` gets its id before it goes on.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{url} {commit}\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        ready(child)
        os.kill(child, signal.SIGCONT)
        return int(self.process.stdout.readline())


@contextmanager
def nursery(catalog: str) -> Iterator[Nursery]:
    """A nursery for this catalog, in the environment of now."""
    paths = os.pathsep.join([str(Path(__file__).parents[1])])
    process = subprocess.Popen(
        [sys.executable, "-m", "fakes.registrar", catalog],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        yield Nursery(process)
    finally:
        process.communicate()


def _serve(name: str) -> None:
    catalog = open_catalog("glue", CatalogSettings()) if name == "glue" else None
    for line in sys.stdin:
        url, commit = line.split()
        child = os.fork()
        if not child:
            os.kill(os.getpid(), signal.SIGSTOP)
            store = open_store(url)
            _doomed(store, int(commit))
            register(catalog or open_catalog("local", CatalogSettings(store=store)), store)
            os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _doomed(store: Store, at: int) -> None:
    """Kills this process before that commit; 0 lets it live."""
    seen = 0

    def note(connection: object) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(store.engine, "commit", note)


if __name__ == "__main__":
    _serve(sys.argv[1])
