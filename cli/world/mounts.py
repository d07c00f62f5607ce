"""Where something is mounted on this machine, as the kernel says; none of it is asked for that."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LIST = Path("/proc/self/mountinfo")
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


def mount_points() -> set[str]:
    """The folders below `/` that are mounts; empty where the system has no such list."""
    try:
        lines = _LIST.read_bytes().splitlines()
    except OSError:
        return set()
    # A space, a tab, a line's end and a backslash stand there by their octal numbers.
    names = (_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), line.split()[4]) for line in lines)
    return {os.fsdecode(name) for name in names} - {"/"}
