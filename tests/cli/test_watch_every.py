"""`dq watch --every` goes on when the world is out of order for a moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SCRIPT = Path(sys.executable).parent / "dq"


def soon(holds: Callable[[], bool]) -> bool:
    """Whether it holds within five minutes."""
    until = time.monotonic() + 300
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()


def test_a_store_and_a_contract_that_are_gone_for_a_moment_cost_their_ticks_alone(folder: Path) -> None:
    contract, store, log = folder / "orders.odcs.yaml", folder / ".dq" / "store.db", folder / "log"
    (folder / "lake").mkdir()

    def ticks() -> int:
        return log.read_text().count("SLOs: 1")

    with log.open("w") as out:
        watcher = subprocess.Popen(
            [SCRIPT, "watch", contract.name, "--channel", "console", "--every", "1s"],
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert soon(lambda: ticks() >= 1)
            # A tick in between would make a new store.
            watcher.send_signal(signal.SIGSTOP)
            os.waitpid(watcher.pid, os.WUNTRACED)
            contract.rename(folder / "away")
            store.rename(folder / "kept.db")
            store.mkdir()
            watcher.send_signal(signal.SIGCONT)
            assert soon(lambda: "the next one will retry" in log.read_text())
            watcher.send_signal(signal.SIGSTOP)
            os.waitpid(watcher.pid, os.WUNTRACED)
            store.rmdir()
            (folder / "kept.db").rename(store)
            watcher.send_signal(signal.SIGCONT)
            (folder / "away").rename(contract)
            before = ticks()
            assert soon(lambda: ticks() > before)
            assert watcher.poll() is None
        finally:
            watcher.kill()
            watcher.wait(10)


def test_what_is_wrong_at_the_first_tick_ends_it(folder: Path, dq) -> None:
    assert dq("watch", "nothing.odcs.yaml", "--every", "1s").code == 3


def test_a_watcher_that_never_pauses_is_a_mistake(folder: Path, dq) -> None:
    ran = dq("watch", ".", "--every", "0s")

    assert (ran.code, ran.err.splitlines()[0]) == (2, "dq: --every must be greater than zero.")
