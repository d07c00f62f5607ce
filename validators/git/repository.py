"""The door to Git: finds the repository, starts Git's processes, and reads references, commits and trees."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from shutil import which
from tempfile import TemporaryFile
from threading import Event, Thread, Timer
from typing import IO, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

from dq.contracts.outcome import MissingTool, Unreadable, UsageError

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
        process = subprocess.Popen(
            [program, *where, *literal, *settings, *command],
            env=environment,
            cwd=repo.top,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
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


# What is asked of Git: commits by their names, objects by their ids, tags, and what is ignored.

MAX_OBJECT = 64_000_000

# What Git allows in the name of a branch, tag or commit, with `~` and `^` behind it; never an option.
_REF = re.compile(r"(?!-)(?!.*\.\.)[\w./@{}+~^#-]+")
_STEPS = re.compile(r"([~^]\d*|\^\{\w*\}|@\{[\w.-]*\})*")
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# A name that may stand in a command to copy.
_TYPEABLE = re.compile(r"\w[\w./-]*")
_SHORT_ID = re.compile(r"[0-9a-f]{7,39}")

# Lookup order of a short name. A name that begins with a remote's is only looked up below refs/remotes:
# unlike in Git, no local branch and no tag called `origin/main` can take the place of the remote's branch.
_REMOTE_PLACES = ("refs/remotes/{}", "refs/remotes/{}/HEAD")
_LOCAL_PLACES = ("refs/heads/{}", "refs/tags/{}", "refs/{}")


# Of what a tag names, and behind a star of what an annotated tag names in turn.
_FIELDS = ("objectname", "objecttype", "committerdate:unix")


class BaseRefInvalid(UsageError):
    """The base is no name of a commit."""

    rule = "base-ref-invalid"


def repository(place: Path, ref: str) -> Repository:
    """The repository around a place, in which `ref` is to be looked up.

    Raises BaseRefInvalid for what cannot be a reference: it must never be taken for an option of Git.
    """
    if not _REF.fullmatch(ref):
        raise BaseRefInvalid(f"{ref!r} is no name of a branch, tag or commit.", "Write --base origin/main.")
    found = find(place)
    if found is None:
        raise BaseUnavailable(
            f"{place} is not in a Git repository, so there is no base {ref!r}.",
            "Run it in a clone of the registry: git clone URL.",
        )
    return found


def commit_of(repo: Repository, ref: str) -> str:
    """The id of the commit that a reference names. Raises BaseUnavailable where it is not in this clone."""
    name = re.split(r"[~^]|@\{", ref, maxsplit=1)[0]
    steps = ref[len(name) :]
    if not _STEPS.fullmatch(steps):
        raise BaseRefInvalid(f"{ref!r} is no name of a branch, tag or commit.", "Write --base origin/main.")
    full = _full_name(repo, name, ref)
    kinds = _kinds(repo, [f"{full}{steps}^{{commit}}"]) if full else {}
    commit = next((id_ for id_, kind in kinds.items() if kind == "commit"), None)
    if commit is None:
        raise BaseUnavailable(f"{ref!r} is not in this clone.", _fetch(repo, ref))
    return commit


def merge_base(repo: Repository, ref: str, tip: str, head: str) -> str:
    """Where HEAD left a reference: what the other side gained since is not part of a comparison.

    `tip` and `head` are their commits.
    """
    common = run(repo, ("merge-base", tip, head), fine=(0, 1)).decode().split()
    if common:
        return common[0]
    message = f"{ref!r} and HEAD have no common commit in this clone."
    raise BaseUnavailable(message, _fetch(repo, ref))


def objects(repo: Repository, ids: Iterable[str], kind: str, largest: int | None = None) -> dict[str, bytes]:
    """The objects of these ids, each held against its id: nothing that a clone holds can pass for another.

    `kind` is `commit`, `tree` or `blob`. Raises BaseUnavailable for what is missing or damaged, with the
    command that brings it. With `largest`, what is missing or has more bytes is left out.
    """
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    given = "".join(f"{one}\n" for one in wanted).encode()
    try:
        return converse(
            repo, ("cat-file", "--batch"), given, lambda output: dict(_objects(output, wanted, kind, largest))
        )
    except _Missing as missing:
        message = f"{missing.args[0]} is {missing.args[1]} in this clone, so the base cannot be read."
        remote = _remotes(repo)[0]
        raise BaseUnavailable(message, f"Run: git fetch --refetch --no-filter {remote}") from missing


def commits_of(repo: Repository, commit: str, path: str, most: int) -> list[tuple[str, int]]:
    """The last commits that changed a path, on the line of first parents, newest first: (id, Unix time)."""
    command = ("rev-list", "--first-parent", "--timestamp", f"--max-count={most}", commit, "--", path)
    lines = (line.split() for line in run(repo, command).decode().splitlines())
    return [(id_, int(seconds)) for seconds, id_ in lines]


def tags(repo: Repository, commit: str) -> list[tuple[str, str, int]]:
    """The tags on the way to a commit, as (name, commit, Unix time). A tag elsewhere proves nothing."""
    fields = ("refname:strip=2", *(f"{star}{one}" for star in ("", "*") for one in _FIELDS))
    form = "%00".join(f"%({one})" for one in fields)
    answer = run(repo, ("for-each-ref", f"--merged={commit}", f"--format={form}", "refs/tags/"))
    rows = (line.split("\0") for line in os.fsdecode(answer).split("\n") if line)
    return [
        (name, id_, int(time))
        for name, *ends in rows
        for id_, kind, time in (ends[:3], ends[3:])
        if kind == "commit"
    ]


def ignored(repo: Repository, names: Sequence[str]) -> set[str]:
    """Which of these files, named from the top, the ignore files leave out of a commit."""
    if not names:
        return set()
    # A name that begins with a colon would be taken for a pattern.
    given = b"".join(b"./" + os.fsencode(name) + b"\0" for name in names)
    answer = run(repo, ("check-ignore", "-z", "--stdin", "--no-index"), given, fine=(0, 1))
    return {os.fsdecode(name.removeprefix(b"./")) for name in answer.split(b"\0") if name}


def sparse(repo: Repository) -> bool:
    """Whether a part of the files was left out of the work tree on purpose."""
    command = ("config", "--type=bool", "--get", "core.sparseCheckout")
    return run(repo, command, fine=(0, 1)).strip() == b"true"


def id_of(data: bytes, kind: str, like: str) -> str:
    """The id that an object has in a repository whose ids are as long as `like`: SHA-1 or SHA-256."""
    digest = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return digest(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _full_name(repo: Repository, name: str, ref: str) -> str | None:
    """Return the full name or the id that `name` stands for, or None if there is none.

    `ref` is the reference as written. Raises BaseUnavailable where a branch of a remote may be meant and is
    not in this clone, but a local branch or tag of the same name is.
    """
    if name in ("", "@", "HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"):
        return name if name.isupper() else "HEAD"
    if _ID.fullmatch(name):
        return name
    if name.startswith("refs/"):
        return name if name in _existing(repo, [name]) else None
    commit = _abbreviated(repo, name)
    if commit is not None:
        return commit
    remote_names, local_names = (
        [p.format(name) for p in places] for places in (_REMOTE_PLACES, _LOCAL_PLACES)
    )
    existing = _existing(repo, [*remote_names, *local_names])
    if not existing or existing[0] in remote_names:
        return next(iter(existing), None)
    (local, *_) = existing
    if _remote_of(repo, name):
        message = f"the remote's {ref!r} is not in this clone; {local} has its name."
        raise BaseUnavailable(message, f"{_fetch(repo, name)}, or write --base {local}.")
    if local.startswith("refs/tags/"):
        # A tag that is named like a branch must not take its place.
        branch = next(iter(_listed(repo, [f"refs/remotes/*/{name}"])), None)
        if branch is not None:
            message = f"{ref!r} is ambiguous: it names {local} and {branch}."
            raise BaseUnavailable(message, f"Write --base {branch.removeprefix('refs/remotes/')}.")
    return local


def _existing(repo: Repository, names: Sequence[str]) -> list[str]:
    """Return those of these full names that are refs, in this order."""
    listed = _listed(repo, names)
    # A ref is also listed for a name that it lies below.
    return [name for name in names if name in listed]


def _listed(repo: Repository, patterns: Sequence[str]) -> list[str]:
    """Return the refs that match one of these patterns of `git for-each-ref`."""
    answer = run(repo, ("for-each-ref", "--format=%(refname)", *patterns))
    return [line for line in answer.decode("utf-8", "replace").split("\n") if line]


def _abbreviated(repo: Repository, name: str) -> str | None:
    """Return the id of the only commit whose id begins with `name`."""
    if not _SHORT_ID.fullmatch(name):
        return None
    ids = run(repo, ("rev-parse", f"--disambiguate={name}")).decode().split()
    commits = [id_ for id_, kind in _kinds(repo, ids).items() if kind == "commit"]
    return commits[0] if len(commits) == 1 else None


def _remote_of(repo: Repository, name: str) -> str | None:
    """Return the remote whose name `name` is or begins with; `origin` is one in every clone."""
    remotes = {*run(repo, ("remote",)).decode("utf-8", "replace").split("\n"), "origin"} - {""}
    owners = (each for each in sorted(remotes) if name == each or name.startswith(f"{each}/"))
    return next((each for each in owners if _TYPEABLE.fullmatch(each)), None)


def _kinds(repo: Repository, names: Sequence[str]) -> dict[str, str]:
    """The ids that names stand for, with their kinds; what is missing is left out."""
    given = "".join(f"{name}\n" for name in names).encode()
    answer = run(repo, ("cat-file", "--batch-check=%(objectname) %(objecttype)"), given) if names else b""
    pairs = (line.split(" ") for line in answer.decode("utf-8", "replace").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and _ID.fullmatch(pair[0])}


class _Missing(Exception):
    """An object that cannot be had, and how it fails."""


def _objects(
    output: IO[bytes], wanted: Sequence[str], kind: str, largest: int | None
) -> Iterator[tuple[str, bytes]]:
    """The objects in order; with `largest`, without those that are larger or missing."""
    total = 0
    for id_ in wanted:
        head = output.readline(1_000).decode("utf-8", "replace").split()
        if largest is not None and head == [id_, "missing"]:
            continue
        if len(head) != 3 or head[0] != id_:
            raise _Missing(f"{kind} {id_}", "missing")
        size = int(head[2])
        if largest is not None and size > largest:
            _skip(output, size + 1)
            continue
        total += size
        if size > MAX_OBJECT or total > MAX_ANSWER:
            raise BaseUnavailable(f"{kind} {id_} has {size:,} bytes, more than are read.", "Make it smaller.")
        data = output.read(size)
        output.read(1)
        if head[1] != kind or id_of(data, kind, id_) != id_:
            raise _Missing(f"{kind} {id_}", "damaged")
        yield id_, data


def _skip(output: IO[bytes], size: int) -> None:
    while size > 0 and (read := output.read(min(size, 1 << 20))):
        size -= len(read)


def _remotes(repo: Repository) -> list[str]:
    """The names of the remotes that can be typed, at least one."""
    names = run(repo, ("remote",)).decode("utf-8", "replace").split("\n")
    return [name for name in names if _TYPEABLE.fullmatch(name)] or ["origin"]


def _fetch(repo: Repository, ref: str) -> str:
    """The command that brings the reference, and the way to it, into this clone."""
    name = re.split(r"[~^]|@\{", ref, maxsplit=1)[0]
    named = _remote_of(repo, name)
    remote, branch = (named, name[len(named) + 1 :]) if named else (_remotes(repo)[0], name)
    shallow = (repo.common / "shallow").exists()
    deepen = "--unshallow " if shallow else ""
    if branch.isupper() or not _TYPEABLE.fullmatch(branch) or re.fullmatch(r"[0-9a-f]{7,40}", branch):
        return f"Run: git fetch {deepen}{remote}"
    # A clone of one branch has no place for others, so the command says where it goes.
    command = f"git fetch {deepen}{remote} {branch}:refs/remotes/{remote}/{branch}"
    hint = " (in GitHub Actions: actions/checkout with fetch-depth: 0)" if shallow else ""
    return f"Run: {command}{hint}"


# The files of a commit, read from its trees: nothing is checked out, and links lead nowhere.

# Few objects can make a tree of a million files, or one without a bottom.
MAX_ENTRIES = 2_000_000
MAX_DEPTH = 100
_CHUNK = 500
_ENDINGS = (b".yaml", b".yml")


class EntryKind(Enum):
    """What an entry of a tree is."""

    FILE = stat.S_IFREG
    FOLDER = stat.S_IFDIR
    LINK = stat.S_IFLNK
    SUBMODULE = 0o160000


_KINDS = {one.value: one for one in EntryKind}


class TreeEntry(NamedTuple):
    """What a name stands for in a tree: its kind, and the id of what it holds."""

    kind: EntryKind
    id: str


def tree_files(
    repo: Repository, commits: Sequence[str], folder: str, *, deep: bool = True
) -> list[Mapping[str, TreeEntry]]:
    """What lies below a folder in each of the commits, by names from the top of the repository.

    Submodules and files that end in `.yaml` or `.yml`; beside them, those directly in the folders above. With
    `deep` false, only what lies directly in the folder. `folder` is empty for the top.
    """
    found: dict[str, dict[str, TreeEntry]] = {commit: {} for commit in commits}
    parts = PurePosixPath(folder).parts
    # (commit, folder's name, its tree): one level of all commits at a time, for each asks Git once.
    level = [(commit, "", tree) for commit, tree in _roots(repo, found).items()]
    known: dict[str, list[tuple[str, TreeEntry]]] = {}
    seen = depth = 0
    while level:
        new = {tree for _, _, tree in level} - known.keys()
        known |= {tree: list(_entries(data, tree)) for tree, data in objects(repo, new, "tree").items()}
        following: list[tuple[str, str, str]] = []
        for commit, above, tree in level:
            seen += len(known[tree])
            if seen > MAX_ENTRIES or depth > MAX_DEPTH:
                message = (
                    f"commit {commit} has more than {MAX_ENTRIES:,} files, or {MAX_DEPTH} folders in folders."
                )
                raise BaseUnavailable(message, "Name the folder of the registry.")
            for name, entry in known[tree]:
                way = above + name
                if entry.kind is not EntryKind.FOLDER:
                    found[commit].setdefault(way, entry)
                elif deep if depth >= len(parts) else name == parts[depth]:
                    following.append((commit, f"{way}/", entry.id))
        level = following
        depth += 1
    return [found[commit] for commit in commits]


def tree_entries(repo: Repository, commits: Sequence[str], path: str) -> dict[str, TreeEntry]:
    """What a path stands for in each of the commits in which there is something, folders too."""
    found = {commit: TreeEntry(EntryKind.FOLDER, tree) for commit, tree in _roots(repo, commits).items()}
    for part in path.split("/"):
        trees = objects(repo, {one.id for one in found.values() if one.kind is EntryKind.FOLDER}, "tree")
        inside = {
            id_: next((entry for name, entry in _every(data, id_) if name == part), None)
            for id_, data in trees.items()
        }
        found = {commit: entry for commit, one in found.items() if (entry := inside.get(one.id)) is not None}
    return found


def entry_contents(repo: Repository, entries: Mapping[str, TreeEntry]) -> Iterator[tuple[str, bytes | None]]:
    """What the entries hold, by their names; None for what is no file. A part is in memory at a time."""
    every = list(entries.items())
    for start in range(0, len(every), _CHUNK):
        part = every[start : start + _CHUNK]
        blobs = objects(repo, {one.id for _, one in part if one.kind is EntryKind.FILE}, "blob")
        yield from ((name, blobs.get(one.id)) for name, one in part)


def entry_content(repo: Repository, entry: TreeEntry | None) -> bytes | None:
    """What one entry holds; None for what is no file or not there."""
    return next((data for _, data in entry_contents(repo, {"": entry})), None) if entry else None


def _roots(repo: Repository, commits: Iterable[str]) -> dict[str, str]:
    """The tree of each commit."""
    return {
        id_: data.split(b"\n", 1)[0].removeprefix(b"tree ").decode("ascii", "replace")
        for id_, data in objects(repo, commits, "commit").items()
    }


def _entries(data: bytes, tree: str) -> Iterator[tuple[str, TreeEntry]]:
    return (
        (name, entry)
        for name, entry in _every(data, tree)
        if entry.kind in (EntryKind.FOLDER, EntryKind.SUBMODULE) or os.fsencode(name).endswith(_ENDINGS)
    )


def _every(data: bytes, tree: str) -> Iterator[tuple[str, TreeEntry]]:
    """The entries of a tree. Names that no work tree can hold are left out: they are made by hand."""
    start, width = 0, len(tree) // 2
    while start < len(data):
        end = data.find(b"\0", start)
        mode, _, name = data[start:end].partition(b" ")
        start = end + 1 + width
        if end < 0 or start > len(data) or not mode or mode.strip(b"01234567"):
            raise BaseUnavailable(f"tree {tree} is damaged.", "See what 'git fsck' says, and clone it again.")
        if name not in (b"", b".", b"..") and b"/" not in name and name.lower() != b".git":
            # As Git has it: what is nothing else is a submodule.
            kind = _KINDS.get(stat.S_IFMT(int(mode, 8)), EntryKind.SUBMODULE)
            yield os.fsdecode(name), TreeEntry(kind, data[end + 1 : start].hex())
