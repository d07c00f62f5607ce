"""The door to Git: finds the repository and starts Git's processes; nobody else does either.

Git never looks at the work tree, so that attributes, filters and the flags of the index cannot matter. With
what a process is started, and against what, stands in `settings`; what is asked, in `objects`.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Thread, Timer
from typing import IO, TypeVar, cast

from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.validators.git.settings import COMMANDS, NOT_LITERAL, SETTINGS, git_environment, git_program

T = TypeVar("T")
Process = subprocess.Popen[bytes]

# A registry answers in milliseconds; a repository of millions of commits may take a while.
SECONDS = 60.0
MAX_ANSWER = 256_000_000


class BaseUnavailable(Unreadable):
    """The base commit, or the way to it, is not in this clone."""

    rule = "base-unavailable"


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree and its Git directory. `common` is what several work trees share, else the same.

    No answer takes longer than `seconds`.
    """

    top: Path
    git_dir: Path
    common: Path
    seconds: float = SECONDS


def find(place: Path, seconds: float = SECONDS) -> Repository | None:
    """The repository around a place, or None: the nearest folder with an entry `.git` at or above it.

    No commit can hold an entry of that name, whereas a folder that looks like a bare repository can be
    committed, so that one is never taken. Raises BaseUnavailable for a `.git` that leads astray.
    """
    start = Path(os.path.normpath(place.absolute()))
    for top in (start, *start.parents):
        entry = top / ".git"
        try:
            seen = entry.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _astray(entry, f"cannot be read: {error.strerror}") from error
        if _foreign(seen, top):
            raise _astray(entry, "belongs to somebody else than its folder")
        if stat.S_ISDIR(seen.st_mode):
            # Work trees beside a repository have that file; here it would exchange the repository.
            if os.path.lexists(entry / "commondir"):
                raise _astray(entry, "leads to another repository by its file 'commondir'")
            return Repository(top, entry, entry, seconds)
        git_dir = _named_in(entry, seen, b"gitdir: ")
        common = git_dir / "commondir"
        shared = _named_in(common, common.stat(), b"") if common.exists() else git_dir
        for folder in (git_dir, shared):
            if not folder.is_dir():
                raise _astray(entry, f"leads to {str(folder)!r}, which is no folder")
            if _inside(folder, top):
                raise _astray(entry, f"leads to {str(folder)!r} in its own work tree")
        return Repository(top, git_dir, shared, seconds)
    return None


def tracked(path: Path) -> bool:
    """Whether Git tracks a file at or below a path; False outside of a repository.

    Raises Unreadable where there is a repository and Git cannot tell.
    """
    place = Path(os.path.realpath(path.parent), path.name)
    found = find(place.parent)
    if found is None:
        return False
    name = os.path.relpath(place, found.top)
    # These systems open `.DQ` under the name `.dq`, and Git takes them for two.
    folds = sys.platform in ("darwin", "win32")
    listed = run(found, ("ls-files", "-z", "--", *([] if folds else [name])))
    wanted = Path(name).as_posix().casefold()
    names = (one.casefold() for one in os.fsdecode(listed).split("\0"))
    return any(one == wanted or one.startswith(f"{wanted}/") for one in names)


def cut_off(repo: Repository) -> frozenset[str]:
    """The commits of a shallow clone before which it has none; nothing for a whole one."""
    try:
        return frozenset((repo.common / "shallow").read_bytes().decode("ascii", "replace").split())
    except FileNotFoundError:
        return frozenset()


def run(
    repo: Repository,
    command: Sequence[str],
    given: bytes = b"",
    *,
    fine: Sequence[int] = (0,),
) -> bytes:
    """What a command answers.

    Raises BaseUnavailable for an exit code that is not `fine`, for an answer that comes too late or is too
    long, and MissingTool where there is no Git.
    """
    return converse(repo, command, given, _whole, fine=fine)


def converse(
    repo: Repository,
    command: Sequence[str],
    given: bytes,
    read: Callable[[IO[bytes]], T],
    *,
    fine: Sequence[int] = (0,),
) -> T:
    """What `read` makes of a command's answer while it comes; else as `run`."""
    assert command[0] in COMMANDS, command[0]
    environment = git_environment(os.environ, repo.top)
    program = git_program(environment)
    if program is None:
        raise MissingTool("Git is not installed outside of this work tree.", "Install Git 2.30 or later.")
    settings = [part for one in SETTINGS for part in ("-c", f"{one.name}={one.value}")]
    where = [f"--git-dir={repo.git_dir}", f"--work-tree={repo.top}", "--no-pager"]
    literal = [] if command[0] in NOT_LITERAL else ["--literal-pathspecs"]
    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        process = _start([program, *where, *literal, *settings, *command], environment, repo.top, file)
        with _limited(process, repo.seconds, command[0]) as said:
            made = read(cast(IO[bytes], process.stdout))
    if process.returncode not in fine:
        line = said[0].decode("utf-8", "replace").strip().split("\n")[0][:300]
        reason = "".join(character for character in line if character.isprintable())
        message = f"Git cannot answer {command[0]!r} in {repo.top}: {reason or process.returncode}."
        raise BaseUnavailable(message, "See what 'git fsck' says in this clone, or clone it again.")
    return made


def _whole(output: IO[bytes]) -> bytes:
    data = output.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        raise BaseUnavailable(f"Git answers more than {MAX_ANSWER:,} bytes.", "Name the registry's folder.")
    return data


@contextmanager
def _limited(process: Process, seconds: float, command: str) -> Iterator[list[bytes]]:
    """Until the process has ended, for so long at most; gives what it said on stderr, when it has."""
    late, said = Event(), list[bytes]()

    def stop() -> None:
        late.set()
        _kill(process)

    # Git waits for ever when nobody takes what it says.
    listener = Thread(target=lambda: said.append(cast(IO[bytes], process.stderr).read()[:10_000]))
    timer = Timer(seconds, stop)
    listener.start()
    timer.start()
    try:
        yield said
        process.wait()
    finally:
        timer.cancel()
        _kill(process)
        cast(IO[bytes], process.stdout).close()
        listener.join()
        cast(IO[bytes], process.stderr).close()
        timer.join()
        process.wait()
        if late.is_set():
            mend = "Run 'git gc' in the clone, or clone it again."
            raise BaseUnavailable(f"Git did not answer {command!r} within {seconds:g} seconds.", mend)


def _kill(process: Process) -> None:
    """Ends a process that still runs, and what it started."""
    if process.poll() is None:
        if sys.platform == "win32":
            process.kill()
        else:
            # It may end between this look and the signal.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _start(command: Sequence[str], environment: Mapping[str, str], folder: Path, given: IO[bytes]) -> Process:
    return subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _named_in(file: Path, seen: os.stat_result, label: bytes) -> Path:
    """The folder that a small file names behind a label, relative to the file's own."""
    if not stat.S_ISREG(seen.st_mode) or seen.st_size > 10_000:
        raise _astray(file, "is neither a folder nor a small file")
    data = file.read_bytes()
    if not data.startswith(label):
        raise _astray(file, "does not begin with 'gitdir: '")
    named = os.fsdecode(data.removeprefix(label).rstrip(b"\r\n"))
    return Path(os.path.normpath(file.parent / named))


def _foreign(seen: os.stat_result, top: Path) -> bool:
    """Whether a `.git` was put into a folder by somebody who owns neither: anybody can, in `/tmp`."""
    ours = (top.stat().st_uid, 0, os.geteuid() if hasattr(os, "geteuid") else 0)
    return seen.st_uid not in ours


def _inside(folder: Path, top: Path) -> bool:
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(top))


def _astray(entry: Path, what: str) -> BaseUnavailable:
    return BaseUnavailable(f"{entry} {what}.", "Run it in a clone that 'git status' understands.")
