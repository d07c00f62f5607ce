"""Runs command lines of dq one after another in one process, which saves starting many.

    python in_one.py [--without-posix] '[[["status", "orders.odcs.yaml"], {"DQ_STORE_URL": "sqlite:///a.db"}]]'

Each has its words and its variables. Prints one line of JSON for each: its exit code and what it printed.
Without POSIX, what only that has is taken away before dq is imported: about what Windows would say.
Needs nothing but dq.
"""

from __future__ import annotations

import asyncio  # noqa: F401  # Python's own modules have another half there, which Linux has not
import json
import os
import sys
import tempfile
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


def ran(arguments: list[str], settings: dict[str, str]) -> dict[str, object]:
    """The exit code, and all that was printed by this process and its children."""
    from dq.cli.main import run

    os.environ.update(settings)
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            code = run(arguments)
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


if __name__ == "__main__":
    if "--without-posix" in sys.argv:
        take_away()
    for words, settings in json.loads(sys.argv[-1]):
        sys.stdout.write(json.dumps(ran(words, settings)) + "\n")
        sys.stdout.flush()
