"""Processes of their own that start at once: forks of one that has already imported what they need.

A whole new Python takes a second of a processor to import dq and SQLAlchemy. One of these shares nothing with
the tests either: its parent knows no test, no store and no thread.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

_SECONDS = 300
_CONTEXT = multiprocessing.get_context("forkserver")
# pytest, because a child imports the program again that began with the tests.
_PRELOADED = (
    *("pytest", "sqlalchemy.dialects.sqlite", "psycopg", "alembic.command", "slack_sdk"),
    *("dq.alerts.channels.slack", "dq.alerts.drain", "dq.contracts.yaml.parse", "dq.store"),
    *("dq.registry.publish", "dq.cli.commands.register"),
)
_CONTEXT.set_forkserver_preload(list(_PRELOADED))


@dataclass(frozen=True)
class Child:
    """A process that runs a program, and the file that it prints to."""

    process: BaseProcess
    output: Path

    def end(self) -> tuple[int | None, str]:
        """Waits; its exit code, negative for a signal, and all that it printed."""
        self.process.join(_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        said = self.output.read_text()
        self.output.unlink()
        return self.process.exitcode, said


def start(program: Path | str, *words: object, folder: Path | None = None) -> Child:
    """Runs a file, or the text of a program, with these words for its arguments.

    In a folder it has no setting of dq; without one it is where the first of them began, with what was set.
    """
    number, output = tempfile.mkstemp(prefix="dq-child-")
    os.close(number)
    process = _CONTEXT.Process(target=_run, args=(program, [str(word) for word in words], output, folder))
    process.start()
    return Child(process, Path(output))


def run(program: Path | str, *words: object, folder: Path | None = None) -> tuple[int | None, str]:
    """The same, to its end."""
    return start(program, *words, folder=folder).end()


def _run(program: Path | str, words: list[str], output: str, folder: Path | None) -> None:
    number = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(number, 1)
    os.dup2(number, 2)
    if folder is not None:
        os.chdir(folder)
        for name in [name for name in os.environ if name.startswith("DQ_")]:
            del os.environ[name]
    sys.argv = [str(program) if isinstance(program, Path) else "-c", *words]
    if isinstance(program, Path):
        runpy.run_path(str(program), run_name="__main__")
    else:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()
    sys.stderr.flush()
