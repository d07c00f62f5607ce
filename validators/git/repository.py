"""Access to Git: finds the repository, runs Git processes, and reads references, commits and trees."""

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
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import Path, PurePosixPath
from shutil import which
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Event, Thread, Timer
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

from dq.contracts.outcome import MissingTool, ReadError, UsageError

if TYPE_CHECKING:
    from git import Repo

# TABLE: Git commands, settings and environment, so that a clone cannot make Git do anything else.
#
# The checked-out tree is untrusted, including `.gitattributes` and `.gitmodules`. A commit cannot write into
# `.git`, but a cached, restored or shared clone may contain anything there, and dq may run inside a hook or a
# job whose variables refer to another repository. Every version of Git accepts unknown settings.


class GitSetting(NamedTuple):
    """Git setting, and what it prevents."""

    name: str
    value: str
    prevents: str


# Command -> what it reads. None of them writes, or reads work tree files other than `.gitignore`.
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
    "remote": "names of remotes, for the command in a hint",
}

# Commands without `--literal-pathspecs`, the option that stops file names such as `:(top)*` being patterns.
NOT_LITERAL = ("check-ignore",)

# `-c name=value`, which overrides all configuration files and their includes.
SETTINGS: tuple[GitSetting, ...] = (
    GitSetting("safe.bareRepository", "explicit", "a folder of the tree that looks like a repository"),
    GitSetting("core.fsmonitor", "false", "a program that is asked what changed"),
    GitSetting("core.hooksPath", os.devnull, "hooks, those of `.git/hooks` too"),
    GitSetting("core.pager", "cat", "a program that shows output"),
    GitSetting("core.editor", "false", "a program that edits"),
    GitSetting("core.askPass", "false", "a program that asks for passwords"),
    GitSetting("core.sshCommand", "false", "a program that reaches hosts"),
    GitSetting("core.alternateRefsCommand", "false", "a program that lists what alternates have"),
    GitSetting(
        "credential.helper", "", "a program that receives passwords; empty drops the helpers before it"
    ),
    GitSetting("protocol.allow", "never", "the network, and `ext::`, which is a program"),
    GitSetting("diff.external", "", "a program that compares"),
    GitSetting("core.attributesFile", os.devnull, "filters, drivers and encodings"),
    GitSetting("log.showSignature", "false", "gpg.program"),
    GitSetting("submodule.recurse", "false", "other repositories"),
    GitSetting("core.commitGraph", "false", "a cache that gives commits other parents"),
    GitSetting("core.multiPackIndex", "false", "a cache that gives names other objects"),
)

# Environment of Git processes, in addition to INHERITED. Everything else of the caller is dropped: GIT_DIR,
# GIT_INDEX_FILE and GIT_OBJECT_DIRECTORY of a hook, GIT_CONFIG_*, GIT_TRACE* (which write files), GIT_SSH.
ENVIRONMENT: tuple[GitSetting, ...] = (
    GitSetting("LANG", "C", "messages in other languages"),
    GitSetting("LC_ALL", "C", "messages in other languages"),
    GitSetting("GIT_NO_REPLACE_OBJECTS", "1", "references that exchange one object for another"),
    GitSetting("GIT_GRAFT_FILE", os.devnull, "a file that gives commits other parents"),
    GitSetting("GIT_NO_LAZY_FETCH", "1", "a partial clone that fetches what it lacks, from anywhere"),
    GitSetting("GIT_ALLOW_PROTOCOL", "none", "the network, where Git knows no GIT_NO_LAZY_FETCH"),
    GitSetting("GIT_PROTOCOL_FROM_USER", "0", "protocols that only people may ask for"),
    GitSetting("GIT_TERMINAL_PROMPT", "0", "prompts that cannot be answered"),
    GitSetting("GIT_ASKPASS", "false", "a program that asks for passwords"),
    GitSetting("SSH_ASKPASS", "false", "a program that asks for passwords"),
    GitSetting("GIT_SSH_COMMAND", "false", "a program that reaches hosts"),
    GitSetting("GIT_EDITOR", "false", "a program that edits"),
    GitSetting("GIT_PAGER", "cat", "a program that shows output"),
    GitSetting("GIT_OPTIONAL_LOCKS", "0", "an index that is written while it is read"),
    GitSetting("GIT_ATTR_NOSYSTEM", "1", "attributes of the machine"),
)

# Variables inherited from the caller: the location of the user's settings, and those that Windows needs to
# start a program.
INHERITED = ("HOME", "SYSTEMROOT", "USERPROFILE", "TEMP", "TMP")


def git_environment(caller: Mapping[str, str], top: Path) -> dict[str, str]:
    """Return the complete environment of a Git process in the work tree at `top`."""
    inherited = {name: caller[name] for name in INHERITED if name in caller}
    fixed = {setting.name: setting.value for setting in ENVIRONMENT}
    return {**inherited, **fixed, "PATH": os.pathsep.join(_program_folders(caller, top))}


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the path of a program in such an environment, or None if it is not installed."""
    name = f"{name}.exe" if os.name == "nt" else name
    files = (Path(folder, name) for folder in environment["PATH"].split(os.pathsep) if folder)
    return next((str(file) for file in files if os.access(file, os.X_OK) and file.is_file()), None)


def _program_folders(caller: Mapping[str, str], top: Path) -> Iterator[str]:
    """Yield the folders of PATH outside the work tree; a branch may add programs inside it."""
    real = os.path.realpath(top)
    for folder in caller.get("PATH", os.defpath).split(os.pathsep):
        if Path(folder).is_absolute() and not Path(os.path.realpath(folder)).is_relative_to(real):
            yield folder


# The only place that finds the repository and starts Git processes.
#
# Git never reads the work tree, so attributes, filters and index flags have no effect.

T = TypeVar("T")
Process = subprocess.Popen[bytes]

# A registry answers in milliseconds; a repository of millions of commits may take a while.
SECONDS = 60.0
MAX_ANSWER = 256_000_000


class BaseUnavailable(ReadError):
    """The base commit, or the history up to it, is not in this clone."""

    rule = "base-unavailable"


@dataclass(frozen=True, slots=True)
class Repository:
    """Work tree and its Git directory. `common` is the shared directory of several work trees, else the same.

    `seconds` is the timeout of a Git command.
    """

    top: Path
    git_dir: Path
    common: Path
    seconds: float = SECONDS


def find_repository(path: Path, seconds: float = SECONDS) -> Repository | None:
    """Return the repository around a path (nearest folder with `.git` at or above it), or None.

    Bare repositories are ignored: a commit can contain a folder that looks like one, but no entry named
    `.git`. Raises BaseUnavailable for a `.git` that is misleading.
    """
    start = Path(os.path.normpath(path.absolute()))
    for top in (start, *start.parents):
        entry = top / ".git"
        try:
            info = entry.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _unusable(entry, f"cannot be read: {error.strerror}") from error
        if _is_foreign(info, top):
            raise _unusable(entry, "has another owner than its folder")
        if stat.S_ISDIR(info.st_mode):
            # Only linked work trees have this file; here it would redirect to another repository.
            if os.path.lexists(entry / "commondir"):
                raise _unusable(entry, "leads to another repository by its file 'commondir'")
            return Repository(top, entry, entry, seconds)
        git_dir = _read_folder(entry, info, b"gitdir: ")
        common = git_dir / "commondir"
        shared = _read_folder(common, common.stat(), b"") if common.exists() else git_dir
        for folder in (git_dir, shared):
            if not folder.is_dir():
                raise _unusable(entry, f"leads to {str(folder)!r}, which is not a folder")
            if _inside(folder, top):
                raise _unusable(entry, f"leads to {str(folder)!r} inside its own work tree")
        return Repository(top, git_dir, shared, seconds)
    return None


def is_tracked(path: Path) -> bool:
    """Return True if Git tracks a file at or below a path; False outside a repository.

    Raises ReadError if Git fails in an existing repository.
    """
    place = Path(os.path.realpath(path.parent), path.name)
    repo = find_repository(place.parent)
    if repo is None:
        return False
    name = os.path.relpath(place, repo.top)
    # On these systems `.DQ` and `.dq` are one file, but Git distinguishes them.
    ignores_case = sys.platform in ("darwin", "win32")
    output = run(repo, ("ls-files", "-z", "--", *([] if ignores_case else [name])))
    target = Path(name).as_posix().casefold()
    names = (listed_name.casefold() for listed_name in os.fsdecode(output).split("\0"))
    return any(listed_name == target or listed_name.startswith(f"{target}/") for listed_name in names)


def cut_off(repo: Repository) -> frozenset[str]:
    """Return the boundary commits of a shallow clone; empty for a full clone."""
    try:
        return frozenset((repo.common / "shallow").read_bytes().decode("ascii", "replace").split())
    except FileNotFoundError:
        return frozenset()


def run(
    repo: Repository,
    command: Sequence[str],
    stdin: bytes = b"",
    *,
    allowed_codes: Sequence[int] = (0,),
) -> bytes:
    """Run a Git command and return its output.

    Raises:
        BaseUnavailable: The exit code is not in `allowed_codes`, or the output is too late or too long.
        MissingTool: Git is not installed.
    """
    return run_with_input(repo, command, stdin, _read_all, allowed_codes=allowed_codes)


def run_with_input(
    repo: Repository,
    command: Sequence[str],
    stdin: bytes,
    read: Callable[[IO[bytes]], T],
    *,
    allowed_codes: Sequence[int] = (0,),
) -> T:
    """Run a Git command and return the result of `read` on its output stream; otherwise like `run`."""
    assert command[0] in COMMANDS, command[0]
    environment = git_environment(os.environ, repo.top)
    program = find_program("git", environment)
    if program is None:
        raise MissingTool("Git is not installed outside this work tree.", "Install Git 2.30 or later.")
    settings = [part for setting in SETTINGS for part in ("-c", f"{setting.name}={setting.value}")]
    location_options = [f"--git-dir={repo.git_dir}", f"--work-tree={repo.top}", "--no-pager"]
    literal = [] if command[0] in NOT_LITERAL else ["--literal-pathspecs"]
    with TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        process = subprocess.Popen(
            [program, *location_options, *literal, *settings, *command],
            env=environment,
            cwd=repo.top,
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with _with_timeout(process, repo.seconds, command[0]) as stderr:
            result = read(cast(IO[bytes], process.stdout))
    if process.returncode not in allowed_codes:
        line = stderr[0].decode("utf-8", "replace").strip().split("\n")[0][:300]
        reason = "".join(character for character in line if character.isprintable())
        message = f"Git cannot answer {command[0]!r} in {repo.top}: {reason or process.returncode}."
        raise BaseUnavailable(message, "Run 'git fsck' in this clone, or clone it again.")
    return result


def _read_all(output: IO[bytes]) -> bytes:
    data = output.read(MAX_ANSWER + 1)
    if len(data) > MAX_ANSWER:
        raise BaseUnavailable(f"Git output exceeds {MAX_ANSWER:,} bytes.", "Pass the registry's folder.")
    return data


@contextmanager
def _with_timeout(process: Process, seconds: float, command: str) -> Iterator[list[bytes]]:
    """Wait for the process to end, with a timeout; yields a list that receives its stderr."""
    timed_out, stderr = Event(), list[bytes]()

    def stop() -> None:
        timed_out.set()
        _kill(process)

    # Git blocks when its stderr pipe is full, so a thread reads it.
    listener = Thread(target=lambda: stderr.append(cast(IO[bytes], process.stderr).read()[:10_000]))
    timer = Timer(seconds, stop)
    listener.start()
    timer.start()
    try:
        yield stderr
        process.wait()
    finally:
        timer.cancel()
        _kill(process)
        cast(IO[bytes], process.stdout).close()
        listener.join()
        cast(IO[bytes], process.stderr).close()
        timer.join()
        process.wait()
        if timed_out.is_set():
            hint = "Run 'git gc' in the clone, or clone it again."
            raise BaseUnavailable(f"Git did not answer {command!r} within {seconds:g} seconds.", hint)


def _kill(process: Process) -> None:
    """Kill a process that is still running, and its child processes."""
    if process.poll() is None:
        if sys.platform == "win32":
            process.kill()
        else:
            # The process may end between the check and the signal.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _read_folder(file: Path, info: os.stat_result, label: bytes) -> Path:
    """Return the folder that a small file names after a label, relative to the file's folder."""
    if not stat.S_ISREG(info.st_mode) or info.st_size > 10_000:
        raise _unusable(file, "is neither a folder nor a small file")
    data = file.read_bytes()
    if not data.startswith(label):
        raise _unusable(file, "does not begin with 'gitdir: '")
    target = os.fsdecode(data.removeprefix(label).rstrip(b"\r\n"))
    return Path(os.path.normpath(file.parent / target))


def _is_foreign(info: os.stat_result, top: Path) -> bool:
    """Return True if `.git` belongs to another user than its folder and us, which is possible in `/tmp`."""
    trusted_uids = (top.stat().st_uid, 0, os.geteuid() if hasattr(os, "geteuid") else 0)
    return info.st_uid not in trusted_uids


def _inside(folder: Path, top: Path) -> bool:
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(top))


def _unusable(entry: Path, what: str) -> BaseUnavailable:
    return BaseUnavailable(f"{entry} {what}.", "Run it in a clone where 'git status' works.")


# Name of a repository's remote, the same in every checkout.

_SCP = re.compile(r"(?:[^@/:]+@)?(?P<host>[^/:]+):(?P<path>[^/].*)")
_NO_SUCH_KEY = 1


def remote_name(folder: Path) -> str:
    """Return host and path of the remote `origin`, e.g. `github.com/air/contracts`, or "" if there is none.

    User, password, port and the suffix `.git` are removed, so HTTPS and SSH give the same name. A remote that
    is a local folder gives "". Raises BaseUnavailable if Git fails.
    """
    repo = find_repository(folder)
    if repo is None:
        return ""
    answer = run(repo, ("config", "--get", "remote.origin.url"), allowed_codes=(0, _NO_SUCH_KEY))
    return name_from_url(answer.decode(errors="replace").strip())


def name_from_url(url: str) -> str:
    """Return the name from a remote's URL, or "" if it has no host."""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
    else:
        match = _SCP.fullmatch(url)
        host, path = (match["host"].lower(), match["path"]) if match else ("", "")
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host}/{path}" if host and path else ""


# Creating a Git repository for a new registry with GitPython: the folder is the user's own, and trusted.

BRANCH = "main"
# Variables that make Git use another repository than the folder's.
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def require_no_repository(folder: Path) -> None:
    """Raise UsageError if a repository already exists, or if the environment redirects Git to another one.

    Raises MissingTool if Git is not installed.
    """
    if which("git") is None:
        raise MissingTool("Git is not installed.", "Install Git, or omit --git.")
    repo = find_repository(folder)
    if repo is not None:
        raise UsageError(
            f"{folder} is already in the Git repository {repo.top}.",
            "Omit --git, and commit the files there.",
        )
    variables = [name for name in _ELSEWHERE if name in os.environ]
    if variables:
        raise UsageError(
            f"{', '.join(variables)} points Git to another repository.", f"Unset {', '.join(variables)}."
        )


def make_repository(folder: Path, files: Sequence[Path], message: str) -> None:
    """Create a repository in a folder, on the branch `main`, and commit these files.

    The author comes from Git's settings `user.name` and `user.email`, else from the system user.
    Raises ReadError if Git fails, e.g. because of a hook from the user's template.
    """
    # Importing GitPython runs Git.
    from git import GitError, Repo

    try:
        with Repo.init(folder, initial_branch=BRANCH) as repo:
            repo.index.add([str(file.absolute()) for file in files])
            repo.index.commit(message)
    except GitError as error:
        reason = str(getattr(error, "stderr", "") or error).strip().removeprefix("stderr:").strip(" '\n")
        raise ReadError(
            f"Git could not commit in {folder}: {reason[:300]}.",
            "The files were written: fix the error, then commit them yourself.",
        ) from error


class OpenedBranch(NamedTuple):
    """A new branch with one commit, and the reason why it was not pushed, or ""."""

    name: str
    commit: str
    unpushed: str


def open_branch(top: Path, branch: str, file: str, data: bytes, message: str) -> OpenedBranch:
    """Commit a new file on a new branch from the remote's default branch, else from HEAD, and push it.

    The work tree and its branch are not changed. The author comes from Git's settings. Without a remote
    `origin`, nothing is pushed; if the push fails, the local branch is kept.

    Raises UsageError if the branch exists, and ReadError if Git fails.
    """
    with _trusted_clone(top) as repo:
        if _tips(repo, branch):
            raise UsageError(f"branch {branch} already exists.", "Delete it, or use it: git switch " + branch)
        start = _default_commit(repo)
        commit = _commit(repo, start, start, {file: data}, lambda _: message)
        repo.git.update_ref(f"refs/heads/{branch}", commit, "0" * len(commit))
        return OpenedBranch(branch, commit, _push(repo, branch))


class BranchState(StrEnum):
    """Result of writing a branch: its files are new, other ones, the same, or not dq's to change."""

    OPENED = "opened"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"


class WrittenBranch(NamedTuple):
    """A branch after writing it. `reason` is why it was skipped, or not pushed, or ""."""

    name: str
    state: BranchState
    commit: str = ""
    reason: str = ""


# Trailer of dq's commits with their tree: a commit that somebody amended has another one.
_TREE_TRAILER = "Dq-Tree: "


def write_branch(
    top: Path,
    branch: str,
    files: Mapping[str, bytes],
    message: str,
    is_same: Callable[[bytes, bytes], bool] = bytes.__eq__,
) -> WrittenBranch:
    """Write new files on a branch of dq's own, and push it; an existing branch gets one more commit.

    A branch is skipped if it has a commit of someone else, is checked out, or was merged, and if a file
    exists on the default branch. `is_same` compares the content of a file: if all are the same, nothing is
    committed. The work tree and its branch are not changed.

    Raises ReadError if Git fails.
    """
    with _trusted_clone(top) as repo:
        start = _default_commit(repo)
        existing = [file for file in files if _content(repo, start, file) is not None]
        if existing:
            return WrittenBranch(branch, BranchState.SKIPPED, reason=f"{existing[0]} already exists")
        tip, problem = _own_tip(repo, branch, start)
        if problem:
            return WrittenBranch(branch, BranchState.SKIPPED, tip, problem)
        if tip:
            base = str(repo.git.merge_base(start, tip))
            current = str(repo.git.diff("--name-only", "--no-renames", "-z", base, tip)).split("\0")
            contents = {file: _content(repo, tip, file) for file in current if file}
            if contents.keys() == files.keys() and all(
                content is not None and is_same(content, files[file]) for file, content in contents.items()
            ):
                return WrittenBranch(branch, BranchState.UNCHANGED, tip, _push(repo, branch, tip))
        else:
            base = start

        def signed(tree: str) -> str:
            return f"{message}\n\n{_TREE_TRAILER}{tree}"

        commit = _commit(repo, base, tip or start, files, signed)
        # A local branch may be behind the remote's.
        repo.git.update_ref(f"refs/heads/{branch}", commit)
        state = BranchState.UPDATED if tip else BranchState.OPENED
        return WrittenBranch(branch, state, commit, _push(repo, branch))


def _own_tip(repo: Repo, branch: str, start: str) -> tuple[str, str]:
    """Return the newest commit of a branch, "" if there is none, and why it must not be changed, or ""."""
    tips = _tips(repo, branch)
    if not tips:
        return "", ""
    ahead = [tip for tip in tips if all(_is_ancestor(repo, other, tip) for other in tips)]
    if not ahead:
        return tips[0], "it differs from the remote's branch of this name"
    tip = ahead[0]
    if repo.git.for_each_ref("--format=%(worktreepath)", f"refs/heads/{branch}").strip():
        return tip, "it is checked out"
    own_commits = list(repo.iter_commits(f"{start}..{tip}"))
    if not own_commits:
        return tip, "it was merged"
    for commit in own_commits:
        trailer = str(commit.message).rstrip().rpartition("\n")[2]
        if trailer != f"{_TREE_TRAILER}{commit.tree.hexsha}":
            return tip, f"commit {commit.hexsha[:12]} was not made by dq"
    return tip, ""


def _tips(repo: Repo, branch: str) -> list[str]:
    """Return the commits of a branch here and at the remote, as far as this clone knows them."""
    names = (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}")
    refs = {ref.path: str(ref.commit.hexsha) for ref in repo.references if ref.path in names}
    return list(dict.fromkeys(refs[name] for name in names if name in refs))


def _default_commit(repo: Repo) -> str:
    default = "refs/remotes/origin/HEAD"
    has_default = any(ref.path == default for ref in repo.references)
    return str(repo.commit(default if has_default else "HEAD").hexsha)


def _is_ancestor(repo: Repo, commit: str, other: str) -> bool:
    return commit == other or bool(repo.is_ancestor(repo.commit(commit), repo.commit(other)))


def _content(repo: Repo, commit: str, file: str) -> bytes | None:
    try:
        return bytes(repo.commit(commit).tree[file].data_stream.read())
    except KeyError:
        return None


def _commit(
    repo: Repo, base: str, parent: str, files: Mapping[str, bytes], message: Callable[[str], str]
) -> str:
    """Commit the files on top of the tree of `base`, with a message that may name the new tree."""
    with (
        TemporaryDirectory() as folder,
        repo.git.custom_environment(GIT_INDEX_FILE=str(Path(folder, "index"))),
    ):
        repo.git.read_tree(base)
        for file, data in files.items():
            content = Path(folder, "content")
            content.write_bytes(data)
            blob = repo.git.hash_object("-w", "--no-filters", str(content))
            repo.git.update_index("--add", "--cacheinfo", f"100644,{blob},{file}")
        tree = str(repo.git.write_tree())
    # commit-tree does not read the setting of `git commit`.
    is_signed = repo.git.config("--type=bool", "--default=false", "--get", "commit.gpgsign")
    signing = ("-S",) if is_signed == "true" else ()
    return str(repo.git.commit_tree(tree, "-p", parent, "-m", message(tree), *signing))


def _push(repo: Repo, branch: str, tip: str = "") -> str:
    """Push a branch, or the commit `tip` as one; return why it was not pushed, or ""."""
    from git import GitError

    if "origin" not in [remote.name for remote in repo.remotes]:
        return "there is no remote 'origin'"
    if tip and any(
        ref.path == f"refs/remotes/origin/{branch}" and ref.commit.hexsha == tip for ref in repo.references
    ):
        return ""
    try:
        repo.git.push("--set-upstream", "origin", f"refs/heads/{branch}:refs/heads/{branch}")
    except GitError:
        # Git's message may contain the remote's URL with a password.
        return "Git could not push it"
    return ""


@contextmanager
def _trusted_clone(top: Path) -> Iterator[Repo]:
    """Open a clone of the user's own with GitPython. Raises ReadError if Git fails."""
    # Importing GitPython runs Git.
    from git import GitError, Repo

    try:
        with Repo(top) as repo:
            yield repo
    except (GitError, ValueError) as error:
        reason = str(getattr(error, "stderr", "") or error).strip().removeprefix("stderr:").strip(" '\n")
        raise ReadError(
            f"Git could not commit in {top}: {reason[:300]}.", "Fix the error and run it again."
        ) from error


# Queries to Git: commits by name, objects by id, tags, and ignored files.

MAX_OBJECT = 64_000_000

# Characters that Git allows in the name of a branch, tag or commit, followed by `~` and `^`; never an option.
_REF = re.compile(r"(?!-)(?!.*\.\.)[\w./@{}+~^#-]+")
_STEPS = re.compile(r"([~^]\d*|\^\{\w*\}|@\{[\w.-]*\})*")
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# Names that are safe in a command for copying.
_TYPEABLE = re.compile(r"\w[\w./-]*")
_SHORT_ID = re.compile(r"[0-9a-f]{7,39}")

# Lookup order of a short name. A name that begins with a remote's is only looked up below refs/remotes:
# unlike in Git, no local branch and no tag called `origin/main` can take the place of the remote's branch.
_REMOTE_PLACES = ("refs/remotes/{}", "refs/remotes/{}/HEAD")
_LOCAL_PLACES = ("refs/heads/{}", "refs/tags/{}", "refs/{}")


# Fields of the tag's target; with a star, those of the target of an annotated tag.
_FIELDS = ("objectname", "objecttype", "committerdate:unix")


class BaseRefInvalid(UsageError):
    """The base is not the name of a commit."""

    rule = "base-ref-invalid"


def repository_for_ref(path: Path, ref: str) -> Repository:
    """Return the repository around a path, in which `ref` will be resolved.

    Raises BaseRefInvalid if `ref` cannot be a reference; it must never be interpreted as an option of Git.
    """
    if not _REF.fullmatch(ref):
        raise BaseRefInvalid(f"{ref!r} is not a valid branch, tag or commit.", "Use e.g. --base origin/main.")
    repo = find_repository(path)
    if repo is None:
        raise BaseUnavailable(
            f"{path} is not in a Git repository, so the base {ref!r} cannot be found.",
            "Run it in a clone of the registry: git clone URL.",
        )
    return repo


def resolve_commit(repo: Repository, ref: str) -> str:
    """Return the id of the commit that a reference names.

    Raises BaseUnavailable if it is not in this clone.
    """
    name = re.split(r"[~^]|@\{", ref, maxsplit=1)[0]
    steps = ref[len(name) :]
    if not _STEPS.fullmatch(steps):
        raise BaseRefInvalid(f"{ref!r} is not a valid branch, tag or commit.", "Use e.g. --base origin/main.")
    full = _full_name(repo, name, ref)
    kinds = _object_kinds(repo, [f"{full}{steps}^{{commit}}"]) if full else {}
    commit = next((id_ for id_, kind in kinds.items() if kind == "commit"), None)
    if commit is None:
        raise BaseUnavailable(f"{ref!r} is not in this clone.", _fetch(repo, ref))
    return commit


def merge_base(repo: Repository, ref: str, tip: str, head: str) -> str:
    """Return the merge base of a reference and HEAD; newer commits of the reference are not compared.

    `tip` and `head` are their commits.
    """
    common = run(repo, ("merge-base", tip, head), allowed_codes=(0, 1)).decode().split()
    if common:
        return common[0]
    message = f"{ref!r} and HEAD have no common commit in this clone."
    raise BaseUnavailable(message, _fetch(repo, ref))


def read_objects(
    repo: Repository, ids: Iterable[str], kind: str, max_size: int | None = None
) -> dict[str, bytes]:
    """Read the objects with these ids; each is verified against its id.

    `kind` is `commit`, `tree` or `blob`. Raises BaseUnavailable for missing or damaged objects, with the
    command that fetches them. With `max_size`, missing and larger objects are left out.
    """
    ordered_ids = sorted(set(ids))
    if not ordered_ids:
        return {}
    stdin = "".join(f"{id_}\n" for id_ in ordered_ids).encode()
    try:
        return run_with_input(
            repo,
            ("cat-file", "--batch"),
            stdin,
            lambda output: dict(_iter_objects(output, ordered_ids, kind, max_size)),
        )
    except _Missing as missing:
        message = f"{missing.args[0]} is {missing.args[1]} in this clone, so the base cannot be read."
        remote = _remotes(repo)[0]
        raise BaseUnavailable(message, f"Run: git fetch --refetch --no-filter {remote}") from missing


def commits_changing(repo: Repository, commit: str, path: str, limit: int) -> list[tuple[str, int]]:
    """Return the last first-parent commits that changed a path, newest first, as (id, Unix time)."""
    command = ("rev-list", "--first-parent", "--timestamp", f"--max-count={limit}", commit, "--", path)
    lines = (line.split() for line in run(repo, command).decode().splitlines())
    return [(id_, int(seconds)) for seconds, id_ in lines]


# Commits with their authors and signatures. OpenSSH verifies signatures without Git, which would start the
# program that the clone's configuration names.

_SIGNATURES = (b"gpgsig", b"gpgsig-sha256")
_IDENTITY = re.compile(rb"(?P<name>.*?) ?<(?P<address>[^<>]*)> (?P<seconds>-?\d{1,12}) [+-]\d{4}")


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """A commit: its tree, its parents, the names and addresses of author and committer, and its Unix time.

    `author` is the author's address, as the commit says: only a signature proves it. `payload` are the signed
    bytes, and `signature` the signature in PEM form, or b"" without exactly one.
    """

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    people: frozenset[str]
    time: int
    payload: bytes
    signature: bytes


def read_commits(repo: Repository, ids: Iterable[str]) -> dict[str, CommitInfo]:
    """Return the commits with these ids. Raises BaseUnavailable for missing or damaged ones."""
    return {id_: _parse_commit(id_, data) for id_, data in read_objects(repo, ids, "commit").items()}


def _parse_commit(id_: str, data: bytes) -> CommitInfo:
    header, _, message = data.partition(b"\n\n")
    # A line that begins with a space continues the header before it.
    fields = re.split(rb"\n(?! )", header)
    pairs = [(name, value) for name, _, value in (field.partition(b" ") for field in fields)]
    signatures = [value.replace(b"\n ", b"\n") for name, value in pairs if name in _SIGNATURES]
    unsigned = [field for field in fields if field.partition(b" ")[0] not in _SIGNATURES]
    identities = {name: match for name, value in pairs if (match := _IDENTITY.fullmatch(value))}
    if "".join(sorted(name.decode("ascii", "replace") for name in identities)) != "authorcommitter":
        raise BaseUnavailable(f"commit {id_} is damaged.", "Run 'git fsck', then clone it again.")
    return CommitInfo(
        id_,
        fields[0].removeprefix(b"tree ").decode("ascii", "replace"),
        tuple(value.decode("ascii", "replace") for name, value in pairs if name == b"parent"),
        identities[b"author"]["address"].decode("utf-8", "replace").strip(),
        frozenset(
            text
            for match in identities.values()
            for part in ("name", "address")
            if (text := match[part].decode("utf-8", "replace").strip())
        ),
        int(identities[b"committer"]["seconds"]),
        b"\n".join(unsigned) + b"\n\n" + message,
        signatures[0] + b"\n" if len(signatures) == 1 else b"",
    )


def has_ssh_signature(commit: CommitInfo) -> bool:
    """Return True if the commit has one signature, in the format of OpenSSH; it may be invalid."""
    return commit.signature.startswith(b"-----BEGIN SSH SIGNATURE-----")


def is_signed_by(repo: Repository, commit: CommitInfo, signer: str, allowed_signers: bytes) -> bool:
    """Return True if the commit has a valid SSH signature by a key of `signer`.

    `allowed_signers` has the keys in the form of ssh-keygen(1). Only lines that name the signer literally
    count, not patterns. A key's validity is that at the commit's time.

    Raises:
        MissingTool: OpenSSH is not installed.
        BaseUnavailable: It does not answer in time.
    """
    if not has_ssh_signature(commit) or not _SIGNER.fullmatch(signer):
        return False
    own_lines = [
        line
        for line in allowed_signers.splitlines()
        if signer.encode() in line.partition(b" ")[0].split(b",")
    ]
    if not own_lines:
        return False
    environment = git_environment(os.environ, repo.top)
    program = find_program("ssh-keygen", environment)
    if program is None:
        raise MissingTool("OpenSSH is not installed: signed commits cannot be verified.", "Install OpenSSH.")
    with TemporaryDirectory() as folder, TemporaryFile() as payload:
        signers, signature = Path(folder, "allowed_signers"), Path(folder, "signature")
        signers.write_bytes(b"\n".join(own_lines) + b"\n")
        signature.write_bytes(commit.signature)
        payload.write(commit.payload)
        payload.seek(0)
        options = ("-f", str(signers), "-I", signer, "-n", "git", "-s", str(signature))
        moment = datetime.fromtimestamp(commit.time, UTC).strftime("%Y%m%d%H%M%SZ")
        process = subprocess.Popen(
            [program, "-Y", "verify", *options, f"-Overify-time={moment}"],
            env=environment,
            cwd=folder,
            stdin=payload,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with _with_timeout(process, repo.seconds, "ssh-keygen"):
            _read_all(cast(IO[bytes], process.stdout))
    return process.returncode == 0


# Characters of a name in a file of allowed signers, without those of a pattern or a list.
_SIGNER = re.compile(r"[\w.+@/=:-]+")


def tags(repo: Repository, commit: str) -> list[tuple[str, str, int]]:
    """Return the tags reachable from a commit, as (name, commit, Unix time); other tags are irrelevant."""
    fields = ("refname:strip=2", *(f"{star}{field}" for star in ("", "*") for field in _FIELDS))
    form = "%00".join(f"%({field})" for field in fields)
    answer = run(repo, ("for-each-ref", f"--merged={commit}", f"--format={form}", "refs/tags/"))
    rows = (line.split("\0") for line in os.fsdecode(answer).split("\n") if line)
    return [
        (name, id_, int(time))
        for name, *ends in rows
        for id_, kind, time in (ends[:3], ends[3:])
        if kind == "commit"
    ]


def ignored_files(repo: Repository, names: Sequence[str]) -> set[str]:
    """Return the files, named from the top, that are excluded by ignore files."""
    if not names:
        return set()
    # A name that begins with a colon would be taken for a pattern.
    stdin = b"".join(b"./" + os.fsencode(name) + b"\0" for name in names)
    answer = run(repo, ("check-ignore", "-z", "--stdin", "--no-index"), stdin, allowed_codes=(0, 1))
    return {os.fsdecode(name.removeprefix(b"./")) for name in answer.split(b"\0") if name}


def is_sparse(repo: Repository) -> bool:
    """Return True if the work tree is a sparse checkout."""
    command = ("config", "--type=bool", "--get", "core.sparseCheckout")
    return run(repo, command, allowed_codes=(0, 1)).strip() == b"true"


def object_id(data: bytes, kind: str, sample_id: str) -> str:
    """Return the id of an object, with the hash that `sample_id` has by its length: SHA-1 or SHA-256."""
    digest = hashlib.sha1 if len(sample_id) == 40 else hashlib.sha256
    return digest(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def _full_name(repo: Repository, name: str, ref: str) -> str | None:
    """Return the full name or the id that `name` stands for, or None if there is none.

    `ref` is the reference as written. Raises BaseUnavailable if it may mean a remote's branch that is not in
    this clone, while a local branch or tag has the same name.
    """
    if name in ("", "@", "HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD"):
        return name if name.isupper() else "HEAD"
    if _ID.fullmatch(name):
        return name
    if name.startswith("refs/"):
        return name if name in _existing_refs(repo, [name]) else None
    commit = _abbreviated(repo, name)
    if commit is not None:
        return commit
    remote_names, local_names = (
        [p.format(name) for p in places] for places in (_REMOTE_PLACES, _LOCAL_PLACES)
    )
    existing = _existing_refs(repo, [*remote_names, *local_names])
    if not existing or existing[0] in remote_names:
        return next(iter(existing), None)
    (local, *_) = existing
    if _find_remote(repo, name):
        message = f"the remote's {ref!r} is not in this clone; {local} has the same name."
        raise BaseUnavailable(message, f"{_fetch(repo, name)}, or use --base {local}.")
    if local.startswith("refs/tags/"):
        # A tag that is named like a branch must not take its place.
        branch = next(iter(_list_refs(repo, [f"refs/remotes/*/{name}"])), None)
        if branch is not None:
            message = f"{ref!r} is ambiguous: it matches {local} and {branch}."
            raise BaseUnavailable(message, f"Use --base {branch.removeprefix('refs/remotes/')}.")
    return local


def _existing_refs(repo: Repository, names: Sequence[str]) -> list[str]:
    """Return the names that are refs, in the given order."""
    refs = _list_refs(repo, names)
    # A ref is also listed for a name that it lies below.
    return [name for name in names if name in refs]


def _list_refs(repo: Repository, patterns: Sequence[str]) -> list[str]:
    """Return the refs that match one of the `git for-each-ref` patterns."""
    answer = run(repo, ("for-each-ref", "--format=%(refname)", *patterns))
    return [line for line in answer.decode("utf-8", "replace").split("\n") if line]


def _abbreviated(repo: Repository, name: str) -> str | None:
    """Return the id of the only commit whose id begins with `name`, or None if it is not unique."""
    if not _SHORT_ID.fullmatch(name):
        return None
    ids = run(repo, ("rev-parse", f"--disambiguate={name}")).decode().split()
    commits = [id_ for id_, kind in _object_kinds(repo, ids).items() if kind == "commit"]
    return commits[0] if len(commits) == 1 else None


def _find_remote(repo: Repository, name: str) -> str | None:
    """Return the remote whose name `name` is or begins with; `origin` is one in every clone."""
    remotes = {*run(repo, ("remote",)).decode("utf-8", "replace").split("\n"), "origin"} - {""}
    owners = (remote for remote in sorted(remotes) if name == remote or name.startswith(f"{remote}/"))
    return next((remote for remote in owners if _TYPEABLE.fullmatch(remote)), None)


def _object_kinds(repo: Repository, names: Sequence[str]) -> dict[str, str]:
    """Resolve names to object ids and kinds; missing objects are left out."""
    stdin = "".join(f"{name}\n" for name in names).encode()
    answer = run(repo, ("cat-file", "--batch-check=%(objectname) %(objecttype)"), stdin) if names else b""
    pairs = (line.split(" ") for line in answer.decode("utf-8", "replace").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and _ID.fullmatch(pair[0])}


class _Missing(Exception):
    """An object is missing or damaged; `args` are its name and the reason."""


def _iter_objects(
    output: IO[bytes], ids: Sequence[str], kind: str, max_size: int | None
) -> Iterator[tuple[str, bytes]]:
    """Yield the objects in order; with `max_size`, without larger and missing ones."""
    total = 0
    for id_ in ids:
        header = output.readline(1_000).decode("utf-8", "replace").split()
        if max_size is not None and header == [id_, "missing"]:
            continue
        if len(header) != 3 or header[0] != id_:
            raise _Missing(f"{kind} {id_}", "missing")
        size = int(header[2])
        if max_size is not None and size > max_size:
            _skip(output, size + 1)
            continue
        total += size
        if size > MAX_OBJECT or total > MAX_ANSWER:
            raise BaseUnavailable(
                f"{kind} {id_} has {size:,} bytes, which exceeds the limit.", "Make it smaller."
            )
        data = output.read(size)
        output.read(1)
        if header[1] != kind or object_id(data, kind, id_) != id_:
            raise _Missing(f"{kind} {id_}", "damaged")
        yield id_, data


def _skip(output: IO[bytes], size: int) -> None:
    while size > 0 and (chunk := output.read(min(size, 1 << 20))):
        size -= len(chunk)


def _remotes(repo: Repository) -> list[str]:
    """Return the remotes with names that are safe in a command, at least one."""
    names = run(repo, ("remote",)).decode("utf-8", "replace").split("\n")
    return [name for name in names if _TYPEABLE.fullmatch(name)] or ["origin"]


def _fetch(repo: Repository, ref: str) -> str:
    """Return the command that fetches the reference and its history into this clone."""
    name = re.split(r"[~^]|@\{", ref, maxsplit=1)[0]
    matching_remote = _find_remote(repo, name)
    remote, branch = (
        (matching_remote, name[len(matching_remote) + 1 :]) if matching_remote else (_remotes(repo)[0], name)
    )
    shallow = (repo.common / "shallow").exists()
    deepen = "--unshallow " if shallow else ""
    if branch.isupper() or not _TYPEABLE.fullmatch(branch) or re.fullmatch(r"[0-9a-f]{7,40}", branch):
        return f"Run: git fetch {deepen}{remote}"
    # A single-branch clone has no refspec for other branches, so the command has an explicit one.
    command = f"git fetch {deepen}{remote} {branch}:refs/remotes/{remote}/{branch}"
    hint = " (in GitHub Actions: actions/checkout with fetch-depth: 0)" if shallow else ""
    return f"Run: {command}{hint}"


# Files of a commit, read from its trees: nothing is checked out, and links are not followed.

# A few objects can form a tree with a million files, or an extremely deep one.
MAX_ENTRIES = 2_000_000
MAX_DEPTH = 100
_CHUNK = 500
_ENDINGS = (b".yaml", b".yml")


class EntryKind(Enum):
    """Kind of a tree entry."""

    FILE = stat.S_IFREG
    FOLDER = stat.S_IFDIR
    LINK = stat.S_IFLNK
    SUBMODULE = 0o160000


_KIND_BY_MODE = {kind.value: kind for kind in EntryKind}


class TreeEntry(NamedTuple):
    """Entry of a tree: its kind and its object id."""

    kind: EntryKind
    id: str


def tree_files(
    repo: Repository, commits: Sequence[str], folder: str, *, deep: bool = True
) -> list[Mapping[str, TreeEntry]]:
    """Return the entries below a folder in each of the commits, by name from the top of the repository.

    Includes submodules and files that end in `.yaml` or `.yml`, and those directly in the folders above. With
    `deep` false, only those directly in the folder. `folder` is empty for the top.
    """
    entries_by_commit: dict[str, dict[str, TreeEntry]] = {commit: {} for commit in commits}
    parts = PurePosixPath(folder).parts
    # (commit, folder's name, its tree): all commits are read level by level, with one Git call per level.
    level = [(commit, "", tree) for commit, tree in _roots(repo, entries_by_commit).items()]
    trees: dict[str, list[tuple[str, TreeEntry]]] = {}
    count = depth = 0
    while level:
        new = {tree for _, _, tree in level} - trees.keys()
        trees |= {
            tree: list(_relevant_entries(data, tree))
            for tree, data in read_objects(repo, new, "tree").items()
        }
        next_level: list[tuple[str, str, str]] = []
        for commit, above, tree in level:
            count += len(trees[tree])
            if count > MAX_ENTRIES or depth > MAX_DEPTH:
                message = (
                    f"commit {commit} has more than {MAX_ENTRIES:,} files, or {MAX_DEPTH} nested folders."
                )
                raise BaseUnavailable(message, "Pass the folder of the registry.")
            for name, entry in trees[tree]:
                path = above + name
                if entry.kind is not EntryKind.FOLDER:
                    entries_by_commit[commit].setdefault(path, entry)
                elif deep if depth >= len(parts) else name == parts[depth]:
                    next_level.append((commit, f"{path}/", entry.id))
        level = next_level
        depth += 1
    return [entries_by_commit[commit] for commit in commits]


def tree_entries(repo: Repository, commits: Sequence[str], path: str) -> dict[str, TreeEntry]:
    """Return the entry at a path, file or folder, for each of the commits that has one."""
    entries = {commit: TreeEntry(EntryKind.FOLDER, tree) for commit, tree in _roots(repo, commits).items()}
    for part in path.split("/"):
        trees = read_objects(
            repo, {parent.id for parent in entries.values() if parent.kind is EntryKind.FOLDER}, "tree"
        )
        inside = {
            id_: next((entry for name, entry in _parse_tree(data, id_) if name == part), None)
            for id_, data in trees.items()
        }
        entries = {
            commit: entry
            for commit, parent in entries.items()
            if (entry := inside.get(parent.id)) is not None
        }
    return entries


def entry_contents(repo: Repository, entries: Mapping[str, TreeEntry]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the content of each entry by name, None if it is not a file; reads them in chunks to save
    memory.
    """
    items = list(entries.items())
    for start in range(0, len(items), _CHUNK):
        chunk = items[start : start + _CHUNK]
        blobs = read_objects(repo, {entry.id for _, entry in chunk if entry.kind is EntryKind.FILE}, "blob")
        yield from ((name, blobs.get(entry.id)) for name, entry in chunk)


def entry_content(repo: Repository, entry: TreeEntry | None) -> bytes | None:
    """Return the content of an entry, or None if it is not a file or does not exist."""
    return next((data for _, data in entry_contents(repo, {"": entry})), None) if entry else None


def _roots(repo: Repository, commits: Iterable[str]) -> dict[str, str]:
    """Return the root tree id of each commit."""
    return {
        id_: data.split(b"\n", 1)[0].removeprefix(b"tree ").decode("ascii", "replace")
        for id_, data in read_objects(repo, commits, "commit").items()
    }


def _relevant_entries(data: bytes, tree: str) -> Iterator[tuple[str, TreeEntry]]:
    return (
        (name, entry)
        for name, entry in _parse_tree(data, tree)
        if entry.kind in (EntryKind.FOLDER, EntryKind.SUBMODULE) or os.fsencode(name).endswith(_ENDINGS)
    )


def _parse_tree(data: bytes, tree: str) -> Iterator[tuple[str, TreeEntry]]:
    """Yield the entries of a tree, without crafted names that no work tree can contain."""
    start, width = 0, len(tree) // 2
    while start < len(data):
        end = data.find(b"\0", start)
        mode, _, name = data[start:end].partition(b" ")
        start = end + 1 + width
        if end < 0 or start > len(data) or not mode or mode.strip(b"01234567"):
            raise BaseUnavailable(f"tree {tree} is damaged.", "Run 'git fsck', then clone it again.")
        if name not in (b"", b".", b"..") and b"/" not in name and name.lower() != b".git":
            # Like Git: any other mode is a submodule.
            kind = _KIND_BY_MODE.get(stat.S_IFMT(int(mode, 8)), EntryKind.SUBMODULE)
            yield os.fsdecode(name), TreeEntry(kind, data[end + 1 : start].hex())
