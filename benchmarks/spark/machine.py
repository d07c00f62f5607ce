"""Cost of a run: CPU seconds and peak memory of this process and its children, from /proc (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def family(root: int | None = None) -> Iterator[int]:
    """The ids of a process (default: this one) and of all that it started, directly or not."""
    root = os.getpid() if root is None else root
    yield root
    try:
        tasks = list(Path(f"/proc/{root}/task").iterdir())
    except OSError:
        return
    for task in tasks:
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def cpu_seconds(root: int | None = None) -> float:
    """User and system seconds of the family: Python, the JVM, its Python workers, and children that ended."""
    ticks = 0
    for process in family(root):
        fields = _stat(process)
        # utime, stime, and those of children that were waited for
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS


def _stat(process: int) -> list[str]:
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ["0"] * 15
    # The name stands in parentheses and may hold blanks.
    return text.rpartition(")")[2].split()


def busy_seconds() -> float:
    """CPU seconds that the whole machine has spent, to see whether others ran meanwhile."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _wait, irq, soft, _steal = fields
    return (user + nice + system + irq + soft) / _TICKS


def forget_peak() -> None:
    """Reset the peak, if the kernel allows it."""
    for process in family():
        try:
            Path(f"/proc/{process}/clear_refs").write_text("5")
        except OSError:
            continue


def peak_megabytes() -> float:
    """The peaks of the family's resident memory, added."""
    total = 0
    for process in family():
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return total / 1024
