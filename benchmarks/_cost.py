"""What a whole process costs, with those that it starts."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Byte code is written, as where dq is installed for use.
_LEFT_OUT = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock and of processors, and the megabytes of the largest process."""

    wall: float
    cpu: float
    megabytes: float


def cost(command: Sequence[str]) -> Cost:
    """What one run of a command costs. Raises CalledProcessError when it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
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
