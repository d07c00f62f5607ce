"""TABLE: what Git is asked, and with what it is started, so that no clone decides what else it does.

A stranger writes the tree that is checked out, `.gitattributes` and `.gitmodules` with it. What lies in
`.git` no commit can write; but a clone that was cached, restored or shared may hold anything, and the command
may run inside a hook or a job whose variables speak of another repository. Git of any version takes settings
that it does not know.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


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
