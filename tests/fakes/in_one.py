"""Runs command lines of dq one after another in one process, which saves starting many.

    python in_one.py [--without-posix] '[[["status", "orders.odcs.yaml"], {"DQ_STORE_URL": "sqlite:///a.db"}]]'
    python in_one.py --asked

Each has its words and its variables; PYTHONPATH is one folder. Prints one line of JSON for each: its exit
code and what it printed.
When asked, reads such pairs from stdin, one a line, and answers each; words that begin with `program` name a
file that is run as `python FILE` would run it, in this process.
Without POSIX, what only that has is taken away before dq is imported: about what Windows would say.
Needs nothing but dq.
"""

from __future__ import annotations

import asyncio  # noqa: F401  # Python's own modules have another half there, which Linux has not
import json
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

MODULES = (
    "fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog", "readline", "curses", "spwd",
    "crypt", "nis", "_posixshmem",
)  # fmt: skip
OF_OS = (
    "fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getpgid", "getpgrp", "getsid",
    "setuid", "setgid", "setsid", "setpgid", "killpg", "nice", "getpriority", "sched_getaffinity",
    "sched_setaffinity", "sched_yield", "pread", "preadv", "pwrite", "pwritev", "mkfifo", "mknod", "chown",
    "fchown", "lchown", "fchdir", "chroot", "openpty", "ttyname", "ctermid", "sysconf", "statvfs", "fstatvfs",
    "getloadavg", "uname", "wait3", "wait4", "sendfile", "register_at_fork", "posix_spawn", "posix_spawnp",
    "posix_fadvise", "posix_fallocate", "lockf", "getxattr", "listxattr", "setxattr", "copy_file_range",
    "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "O_NOCTTY", "O_SYNC", "O_DSYNC", "O_PATH",
    "O_NOATIME", "O_ASYNC", "O_DIRECT",
)  # fmt: skip


def take_away() -> None:
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it now fails
    for name in OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    # Nothing is opened relative to an open folder there, and folders are not opened at all.
    os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks = set(), set(), set()
    for name in ("open", "stat", "mkdir", "unlink", "rename", "replace", "readlink"):
        setattr(os, name, _by_path_only(getattr(os, name)))


def _by_path_only(call: Any) -> Any:
    def only(*words: Any, **named: Any) -> Any:
        if any(named.get(one) is not None for one in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError("dir_fd unavailable on this platform")
        return call(*words, **named)

    return only


def command(arguments: list[str]) -> int:
    from dq.cli.main import run

    return run(arguments)


@contextmanager
def beside(folder: str) -> Iterator[None]:
    """Meanwhile the modules that lie there are found, and the next one has modules of its own."""
    folder = os.path.abspath(folder)  # noqa: PTH100
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name, module in list(sys.modules.items()):
            if os.path.dirname(getattr(module, "__file__", None) or "") == folder:  # noqa: PTH120
                del sys.modules[name]


def program(file: str) -> int:
    """The exit code of a program; beside it lies what it imports."""
    try:
        with beside(os.path.dirname(file)):  # noqa: PTH120
            runpy.run_path(file, run_name="__main__")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:  # noqa: BLE001  # as Python itself ends a program
        traceback.print_exc()
        return 1
    return 0


def ran(arguments: list[str], settings: dict[str, str]) -> dict[str, object]:
    """The exit code, and all that was printed by this process and its children."""
    os.environ.update(settings)
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            with beside(settings["PYTHONPATH"]) if "PYTHONPATH" in settings else nullcontext():
                code = program(arguments[1]) if arguments[:1] == ["program"] else command(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            for name in settings:
                del os.environ[name]
        file.seek(0)
        return {"code": code, "printed": file.read().decode()}


def questions() -> Iterator[Any]:
    """What stdin asks, which no command can read then."""
    with os.fdopen(os.dup(0)) as lines, open(os.devnull) as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
        yield from map(json.loads, lines)


if __name__ == "__main__":
    if "--without-posix" in sys.argv:
        take_away()
    asked = questions() if "--asked" in sys.argv else json.loads(sys.argv[-1])
    for words, settings in asked:
        sys.stdout.write(json.dumps(ran(words, settings)) + "\n")
        sys.stdout.flush()
