"""A clone of the registry: its repository, its commits, and what to type when they are not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.errors import Unreadable, UsageError

if TYPE_CHECKING:
    from git import Commit, Repo

# What Git allows in the name of a branch, tag or commit, with `~` and `^` behind it; never an option.
_REF = re.compile(r"(?!-)(?!.*\.\.)[\w./@{}+~^#-]+")


class BaseUnavailable(Unreadable):
    """The base commit, or the way to it, is not in this clone."""

    rule = "base-unavailable"


class BaseRefInvalid(UsageError):
    """The base is no name of a commit."""

    rule = "base-ref-invalid"


def repository(root: Path, ref: str) -> Repo:
    """The repository around a folder, in which `ref` is to be looked up.

    Raises BaseRefInvalid for what cannot be a reference: it must never be taken for an option of Git.
    """
    from git import Repo
    from git.exc import InvalidGitRepositoryError, NoSuchPathError

    if not _REF.fullmatch(ref):
        raise BaseRefInvalid(f"{ref!r} is no name of a branch, tag or commit.", "Write --base origin/main.")
    try:
        repo = Repo(root, search_parent_directories=True)
    except (InvalidGitRepositoryError, NoSuchPathError) as error:
        raise BaseUnavailable(
            f"{root} is not in a Git repository, so there is no base {ref!r}.",
            "Run it in a clone of the registry: git clone URL.",
        ) from error
    if repo.bare:
        raise BaseUnavailable(f"{root} is a bare repository.", "Run it in a clone with a work tree.")
    return repo


def commit_of(repo: Repo, ref: str) -> Commit:
    """The commit that a reference names. Raises BaseUnavailable where it is not in this clone."""
    from git.exc import BadName, GitCommandError

    try:
        # The object itself may be missing in a shallow or partial clone although its name is known.
        found = repo.commit(
            repo.git.rev_parse("--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        )
        found.tree  # noqa: B018 - reads the object
    except (GitCommandError, BadName, ValueError, IndexError) as error:
        raise BaseUnavailable(f"{ref!r} is not in this clone.", _fetch(repo, ref)) from error
    return found


def merge_base(repo: Repo, ref: str) -> Commit:
    """Where HEAD left a reference: what the other side gained since is not part of a comparison."""
    theirs = commit_of(repo, ref)
    head = commit_of(repo, "HEAD")
    common = [one for one in repo.merge_base(theirs, head) if one is not None]
    if common:
        return common[0]
    message = f"{ref!r} and HEAD have no common commit in this clone."
    raise BaseUnavailable(message, _fetch(repo, ref))


def _fetch(repo: Repo, ref: str) -> str:
    """The command that brings the reference, and the way to it, into this clone."""
    remotes = [remote.name for remote in repo.remotes] or ["origin"]
    remote, _, branch = ref.partition("/")
    if remote not in remotes or not branch:
        remote, branch = remotes[0], ref
    shallow = repo.git.rev_parse("--is-shallow-repository") == "true"
    deepen = "--unshallow " if shallow else ""
    if re.fullmatch(r"[0-9a-f]{7,40}", branch):
        return f"Run: git fetch {deepen}{remote}"
    # A clone of one branch has no place for others, so the command says where it goes.
    command = f"git fetch {deepen}{remote} {branch}:refs/remotes/{remote}/{branch}"
    hint = " (in GitHub Actions: actions/checkout with fetch-depth: 0)" if shallow else ""
    return f"Run: {command}{hint}"
