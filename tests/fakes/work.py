"""Work that is counted or compared; a number of seconds depends on the machine and its other work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType


def calls(function: Callable[[], object]) -> int:
    """Number of calls of Python and C functions that `function` makes in this thread."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def bytes_read() -> int:
    """Bytes that this process has read by now, from files, pipes and devices."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    return int(fields["rchar"])


def cpu_seconds(function: Callable[[], object], runs: int = 3) -> float:
    """Least processor time of `function` in so many runs: for ratios of two functions in one process."""
    used = []
    for _ in range(runs):
        before = time.process_time()
        function()
        used.append(time.process_time() - before)
    return min(used)
