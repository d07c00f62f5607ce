"""Cost of processes and calls, and yardsticks: what others take on this machine in the same run."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

# Byte code is written, as where dq is installed for use, and no setting is this machine's.
_LEFT_OUT = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "DQ_", "SLACK_")
# What every command of dq imports of others.
PACKAGES = "import typer, yaml, pydantic; pydantic.BaseModel"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock and of processors, and the megabytes of the largest process."""

    wall: float
    cpu: float
    megabytes: float


def cost(command: Sequence[str], **variables: str) -> Cost:
    """Cost of a run of a command. Raises CalledProcessError when it fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_LEFT_OUT)}
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment | variables)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def in_turns(commands: Mapping[str, Sequence[str]], times: int, *, warm: bool = True) -> dict[str, Cost]:
    """The medians of each command by its name; all run in turns, and a first turn only warms up."""
    turns = [{name: cost(command) for name, command in commands.items()} for _ in range(times + warm)][warm:]
    return {
        name: Cost(
            *(statistics.median(getattr(turn[name], part) for turn in turns) for part in Cost.__slots__)
        )
        for name in commands
    }


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process in which `work` runs."""
    before = time.process_time()
    work()
    return time.process_time() - before


def read_plainly(files: Iterable[Path]) -> None:
    """Reads contracts into plain values, as a program that knows nothing of contracts does."""
    for file in files:
        yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
