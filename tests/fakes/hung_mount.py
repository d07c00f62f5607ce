"""A mount that hangs, as that of a server that is gone: FUSE without anybody who answers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_DETACH = 2


@contextmanager
def hung_mount(folder: Path) -> Iterator[None]:
    """Each question about a folder, or about what is below it, waits until the end. Wants rights to mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"no FUSE here: {error.strerror}")
    said = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if libc.mount(b"fuse", os.fsencode(folder), b"fuse", ctypes.c_ulong(0), said.encode()) != 0:
        os.close(device)
        pytest.skip(f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        # Whoever waits still gets an error now.
        os.close(device)
        libc.umount2(os.fsencode(folder), _DETACH)
