"""The door to Git: finds the repository and starts Git's processes; nobody else does either."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from tempfile import TemporaryFile
from threading import Event, Thread, Timer
from typing import IO, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

from dq.contracts.shared.outcome import MissingTool, Unreadable, UsageError

# TABLE: what Git is asked, and with what it is started, so that no clone decides what else it does.
#
# A stranger writes the tree that is checked out, `.gitattributes` and `.gitmodules` with it. What lies in
# `.git` no commit can write; but a clone that was cached, restored or shared may hold anything, and the
# command may run inside a hook or a job whose variables speak of another repository. Git of any version
# takes settings that it does not know.


class GitSetting(NamedTuple):
    """One setting, and what it is against."""

    name: str
    value: str
    against: str


# Command -> what it reads. None of them writes, or looks at a file of the work tree but for `.gitignore`.
COMMANDS: Mapping[str, str] = {
    "cat-file": "objects, by their ids and by the full names of references",
    "diff-tree": "the trees of two commits, as the ids of what differs; no bytes of a file",
    "for-each-ref": "the names of references",
    "merge-base": "commits",
    "rev-parse": "which objects an abbreviated id may stand for",
    "rev-list": "commits and trees; unlike `log`, no setting makes it verify signatures",
    "check-ignore": "ignore files, for what is not committed",
    "ls-files": "the index, for whether something is tracked",
    "config": "whether the work tree holds a part of the files only",
    "remote": "names of remotes, for the command that mends",
}

# The commands that refuse `--literal-pathspecs`, by which no file name is read as a pattern: `:(top)*`.
NOT_LITERAL = ("check-ignore",)

# `-c name=value`, which wins over every file of settings, also over what those files include.
SETTINGS: tuple[GitSetting, ...] = (
    GitSetting("safe.bareRepository", "explicit", "a folder of the tree that looks like a repository"),
    GitSetting("core.fsmonitor", "false", "a program that is asked what changed"),
    GitSetting("core.hooksPath", os.devnull, "hooks, those of `.git/hooks` too"),
    GitSetting("core.pager", "cat", "a program that shows output"),
    GitSetting("core.editor", "false", "a program that edits"),
    GitSetting("core.askPass", "false", "a program that asks for passwords"),
    GitSetting("core.sshCommand", "false", "a program that reaches hosts"),
    GitSetting("core.alternateRefsCommand", "false", "a program that lists what alternates have"),
    GitSetting("credential.helper", "", "a program that is told passwords; empty forgets those before it"),
    GitSetting("protocol.allow", "never", "the network, and `ext::`, which is a program"),
    GitSetting("diff.external", "", "a program that compares"),
    GitSetting("core.attributesFile", os.devnull, "filters, drivers and encodings"),
    GitSetting("log.showSignature", "false", "gpg.program"),
    GitSetting("submodule.recurse", "false", "other repositories"),
    GitSetting("core.commitGraph", "false", "a cache that gives commits other parents"),
    GitSetting("core.multiPackIndex", "false", "a cache that gives names other objects"),
)

# What Git finds in its environment, beside KEPT. Everything else of the caller is left out: GIT_DIR,
# GIT_INDEX_FILE and GIT_OBJECT_DIRECTORY of a hook, GIT_CONFIG_*, GIT_TRACE* (which write files), GIT_SSH.
ENVIRONMENT: tuple[GitSetting, ...] = (
    GitSetting("LANG", "C", "messages in other languages"),
    GitSetting("LC_ALL", "C", "messages in other languages"),
    GitSetting("GIT_NO_REPLACE_OBJECTS", "1", "references that exchange one object for another"),
    GitSetting("GIT_GRAFT_FILE", os.devnull, "a file that gives commits other parents"),
    GitSetting("GIT_NO_LAZY_FETCH", "1", "a partial clone that fetches what it lacks, from anywhere"),
    GitSetting("GIT_ALLOW_PROTOCOL", "none", "the network, where Git knows no GIT_NO_LAZY_FETCH"),
    GitSetting("GIT_PROTOCOL_FROM_USER", "0", "protocols that only people may ask for"),
    GitSetting("GIT_TERMINAL_PROMPT", "0", "questions that nobody answers"),
    GitSetting("GIT_ASKPASS", "false", "a program that asks for passwords"),
    GitSetting("SSH_ASKPASS", "false", "a program that asks for passwords"),
    GitSetting("GIT_SSH_COMMAND", "false", "a program that reaches hosts"),
    GitSetting("GIT_EDITOR", "false", "a program that edits"),
    GitSetting("GIT_PAGER", "cat", "a program that shows output"),
    GitSetting("GIT_OPTIONAL_LOCKS", "0", "an index that is written while it is read"),
    GitSetting("GIT_ATTR_NOSYSTEM", "1", "attributes of the machine"),
)

# What is kept of the caller's environment: where programs are, where the user's own settings lie, and what
# Windows cannot start a program without.
KEPT = ("HOME", "SYSTEMROOT", "USERPROFILE", "TEMP", "TMP")


def git_environment(caller: Mapping[str, str], top: Path) -> dict[str, str]:
    """The whole environment of a Git process in the work tree at `top`."""
    kept = {name: caller[name] for name in KEPT if name in caller}
    ours = {one.name: one.value for one in ENVIRONMENT}
    return {**kept, **ours, "PATH": os.pathsep.join(_folders(caller, top))}


def git_program(environment: Mapping[str, str]) -> str | None:
    """The path of Git in the environment of such a process, or None."""
    name = "git.exe" if os.name == "nt" else "git"
    files = (Path(folder, name) for folder in environment["PATH"].split(os.pathsep) if folder)
    return next((str(file) for file in files if os.access(file, os.X_OK) and file.is_file()), None)


def _folders(caller: Mapping[str, str], top: Path) -> Iterator[str]:
    """Where programs are, but for what lies in the work tree, where a branch may have put it."""
    real = os.path.realpath(top)
    for folder in caller.get("PATH", os.defpath).split(os.pathsep):
        if Path(folder).is_absolute() and not Path(os.path.realpath(folder)).is_relative_to(real):
            yield folder


# The door to Git: finds the repository and starts Git's processes; nobody else does either.
#
# Git never looks at the work tree, so that attributes, filters and the flags of the index cannot matter.
# With what a process is started, and against what, stands in `settings`; what is asked, in `objects`.

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


# Where a repository comes from, as a name that is the same in every checkout.

_SCP = re.compile(r"(?:[^@/:]+@)?(?P<host>[^/:]+):(?P<path>[^/].*)")
_NO_SUCH_KEY = 1


def remote_name(folder: Path) -> str:
    """Host and path of the remote `origin`, such as `github.com/air/contracts`; "" where there is none.

    Without users, passwords, ports, and the ending `.git`: HTTPS and SSH give one name. A remote that is a
    folder is a copy on this machine and names nothing. Raises BaseUnavailable where Git cannot tell.
    """
    repo = find(folder)
    if repo is None:
        return ""
    answer = run(repo, ("config", "--get", "remote.origin.url"), fine=(0, _NO_SUCH_KEY))
    return name_of(answer.decode(errors="replace").strip())


def name_of(url: str) -> str:
    """The name in a remote's URL, "" where it names no host."""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        found = _SCP.fullmatch(url)
        host, path = (found["host"].lower(), found["path"]) if found else ("", "")
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host}/{path}" if host and path else ""


# Making a Git repository of a new registry, with GitPython: the folder is the user's own, and trusted.

BRANCH = "main"
# Variables that lead Git to another repository than that of the folder.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def require_none(folder: Path) -> None:
    """Raises UsageError where a repository is there already, or where Git would take another than this.

    Raises MissingTool where there is no Git.
    """
    if which("git") is None:
        raise MissingTool("Git is not installed.", "Install Git, or leave --git out.")
    found = find(folder)
    if found is not None:
        raise UsageError(
            f"{folder} lies in the Git repository {found.top}.",
            "Leave --git out, and commit the files there.",
        )
    named = [name for name in _ELSEWHERE if name in os.environ]
    if named:
        raise UsageError(f"{', '.join(named)} leads Git elsewhere.", f"Unset {', '.join(named)}.")


def make_repository(folder: Path, files: Sequence[Path], message: str) -> None:
    """Makes a repository in a folder, on the branch `main`, and commits these files of it.

    The author is who Git says: its settings `user.name` and `user.email`, else the user of this machine.
    Raises Unreadable where Git fails, such as by a hook of the user's templates.
    """
    # Its import starts Git.
    from git import GitError, Repo

    try:
        with Repo.init(folder, initial_branch=BRANCH) as made:
            made.index.add([str(file.absolute()) for file in files])
            made.index.commit(message)
    except GitError as error:
        reason = str(getattr(error, "stderr", "") or error).strip().removeprefix("stderr:").strip(" '\n")
        raise Unreadable(
            f"Git made no commit in {folder}: {reason[:300]}.",
            "The files are written: correct what Git says, then commit them yourself.",
        ) from error
