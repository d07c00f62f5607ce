"""Tricks with Git: who can play each one, how it is set up, and what the gate may say afterwards.

`tree`: anybody who opens a pull request, by what is committed. `names`: whoever may push branches and tags.
`clone`: no commit writes into `.git`, but a clone that was cached, restored or shared may hold anything.
`caller`: the variables of the process that starts the command, such as those of a hook.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import unicodedata
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fragments.gate import AMOUNT, CONTRACT, Scene

CHANGED = CONTRACT.replace(AMOUNT, "")
ORDERS = "registry/orders.odcs.yaml"
LINES = "registry/sales/lines.odcs.yaml"


def contract(id_: str) -> str:
    return CONTRACT.replace("id: orders", f"id: {id_}")


@dataclass(frozen=True)
class Trick:
    """`play` sets it up; `base` and `variables` are what the command is called with.

    `outcome`: the `same` findings as without it, `more` beside the same, the file `refused` as a finding, or
    `unknown`, which is exit code 3.
    """

    id: str
    who: str
    play: Callable[[Scene], None]
    outcome: str = "same"
    base: str = "main"
    variables: Mapping[str, str] = field(default_factory=dict)
    process: bool = False


def settings(**values: str) -> Callable[[Scene], None]:
    """Settings in `.git/config`; `{program}` in a value is a program that leaves the canary."""

    def play(scene: Scene) -> None:
        for name, value in values.items():
            key = name.replace("__", ".").replace("_", "-")
            scene.git("config", "--add", key, value.format(program=scene.program(), canary=scene.canary))

    return play


def attributes(line: str, **values: str) -> Callable[[Scene], None]:
    """A committed `.gitattributes`, with the settings that its drivers need."""

    def play(scene: Scene) -> None:
        scene.write(".gitattributes", f"{line}\n")
        scene.git("add", ".gitattributes")
        scene.git("commit", "-q", "-m", "attributes")
        settings(**values)(scene)

    return play


def file(name: str, text: str | bytes, *, commit: bool = True) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.write(name, text)
        if commit:
            scene.commit("a file")

    return play


def both(*plays: Callable[[Scene], None]) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        for one in plays:
            one(scene)

    return play


# --- what is committed


def submodule(url: str, name: str = "evil") -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        url_ = url.format(program=scene.program(), canary=scene.canary)
        scene.write(
            ".gitmodules", f'[submodule "{name}"]\n\tpath = evil\n\turl = {url_}\n\tupdate = !{url_}\n'
        )
        head = scene.git("rev-parse", "HEAD").strip()
        scene.git("update-index", "--add", "--cacheinfo", f"160000,{head},evil")
        scene.commit("a submodule")

    return play


def checked_out_submodule(scene: Scene) -> None:
    """`registry` becomes a submodule whose own base is what is checked out in it."""
    inner = scene.folder / "registry"
    for command in (
        ("init", "-q", "-b", "main"),
        ("-c", "user.email=a@example.com", "-c", "user.name=a", "add", "-A"),
        ("-c", "user.email=a@example.com", "-c", "user.name=a", "commit", "-q", "-m", "a base of our own"),
    ):
        subprocess.run(["git", *command], cwd=inner, check=True)
    scene.git("rm", "-r", "-q", "--cached", "registry")
    scene.git("add", "registry")
    scene.git("commit", "-q", "-m", "a submodule")


def submodule_below(scene: Scene) -> None:
    """A folder of contracts becomes a submodule."""
    inner = scene.folder / "registry" / "sales"
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=inner, check=True)
    identity = ["-c", "user.email=a@example.com", "-c", "user.name=a"]
    subprocess.run(["git", "add", "-A"], cwd=inner, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", "x"], cwd=inner, check=True)
    scene.git("rm", "-r", "-q", "--cached", "registry/sales")
    scene.git("add", "registry/sales")
    scene.git("commit", "-q", "-m", "a submodule")


def link(name: str, target: str) -> Callable[[Scene], None]:
    """A committed link in place of what was there."""

    def play(scene: Scene) -> None:
        path = scene.folder / name
        outside = scene.canary.parent / "outside"
        shutil.move(path, outside)
        path.symlink_to(target.format(outside=outside))
        scene.commit("a link")

    return play


def tree(
    change: Callable[[dict[bytes, tuple[bytes, bytes]]], list[tuple[bytes, bytes, bytes]]],
) -> Callable[[Scene], None]:
    """A tree made by hand in place of HEAD's `registry`; the work tree stays as it is."""

    def write(scene: Scene, data: bytes) -> str:
        command = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
        done = subprocess.run(command, cwd=scene.folder, input=data, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def read(scene: Scene, name: str) -> dict[bytes, tuple[bytes, bytes]]:
        listed = scene.git("ls-tree", "-z", name).split("\0")
        rows = (row.split("\t") for row in listed if row)
        return {
            name.encode(): (mode.split()[0].lstrip("0").encode(), bytes.fromhex(mode.split()[2]))
            for mode, name in rows
        }

    def play(scene: Scene) -> None:
        inner = b"".join(b"%s %s\0%s" % row for row in change(read(scene, "HEAD:registry")))
        top = read(scene, "HEAD:")
        top[b"registry"] = (b"40000", bytes.fromhex(write(scene, inner)))
        outer = b"".join(b"%s %s\0%s" % (mode, name, id_) for name, (mode, id_) in sorted(top.items()))
        command = ("commit-tree", write(scene, outer), "-p", "HEAD", "-m", "a tree made by hand")
        scene.git("update-ref", "refs/heads/change", scene.git(*command).strip())

    return play


def rows(
    entries: dict[bytes, tuple[bytes, bytes]], *more: tuple[bytes, bytes, bytes]
) -> list[tuple[bytes, bytes, bytes]]:
    return [*((mode, name, id_) for name, (mode, id_) in entries.items()), *more]


def bomb(scene: Scene) -> None:
    """Twenty trees that are ten to the power of twenty files."""
    blob = scene.git("rev-parse", f"HEAD:{ORDERS}").strip()
    data = b"".join(b"100644 %d.yaml\0%s" % (index, bytes.fromhex(blob)) for index in range(10))
    command = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    for _ in range(20):
        done = subprocess.run(command, cwd=scene.folder, input=data, capture_output=True, check=True)
        id_ = bytes.fromhex(done.stdout.decode().strip())
        data = b"".join(b"40000 %d\0%s" % (index, id_) for index in range(10))
    tree(lambda entries: rows(entries, (b"40000", b"zzz", id_)))(scene)


def names_of_all_kinds(scene: Scene) -> None:
    for index, name in enumerate(
        (
            "--output=x",
            "-c core.pager=x",
            ":(top)orders",
            ":!orders",
            ":(exclude)*",
            "a*?[b]",
            "line\nbreak",
            "tab\tescape\x1b[31m",
            "\u202eright",
            " blank ",
            "`touch x`$(touch y)",
            os.fsdecode(b"\xff\xfe"),
        )
    ):
        path = os.fsencode(scene.folder / "registry") + b"/" + os.fsencode(name) + b".odcs.yaml"
        Path(os.fsdecode(path)).write_text(contract(f"named-{index}"))
    scene.commit("names")


def pair(one: str, other: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.write(f"registry/{one}.odcs.yaml", contract("pair-one"))
        scene.write(f"registry/{other}.odcs.yaml", contract("pair-two"))
        scene.commit("a pair")

    return play


# --- names


def named(*names: str, at: str = "HEAD") -> Callable[[Scene], None]:
    """References to a commit: what is checked out, as a rule, of which nothing differs."""

    def play(scene: Scene) -> None:
        commit = scene.git("rev-parse", at).strip()
        (scene.folder / ".git" / "packed-refs").write_text(
            "# pack-refs with: peeled fully-peeled sorted \n"
            + "".join(f"{commit} {name}\n" for name in sorted(names))
        )

    return play


def remote(scene: Scene) -> None:
    scene.git("update-ref", "refs/remotes/origin/main", "main")


# --- the clone


def hooks(scene: Scene) -> None:
    listed = (
        "applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit"
        " post-index-change post-merge post-rewrite pre-applypatch pre-auto-gc pre-commit pre-merge-commit"
        " pre-push pre-rebase prepare-commit-msg push-to-checkout reference-transaction sendemail-validate"
    )
    for folder in (scene.folder / ".git" / "hooks", scene.canary.parent / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in listed.split():
            shutil.copy(scene.program(), folder / name)
    scene.git("config", "core.hooksPath", str(scene.canary.parent / "hooks"))


def without_blobs(**values: str) -> Callable[[Scene], None]:
    """A partial clone: what the base held is not there, and the promised remote is a trap."""

    def play(scene: Scene) -> None:
        blob = scene.git("rev-parse", f"main:{ORDERS}").strip()
        (scene.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
        scene.git("config", "core.repositoryformatversion", "1")
        scene.git("config", "extensions.partialClone", "origin")
        scene.git("config", "remote.origin.promisor", "true")
        scene.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
        settings(**values)(scene)

    return play


def lying_object(scene: Scene) -> None:
    """The file of an object holds another one."""
    blob = scene.git("rev-parse", f"main:{ORDERS}").strip()
    path = scene.folder / ".git" / "objects" / blob[:2] / blob[2:]
    data = CHANGED.encode()
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob %d\0%s" % (len(data), data)))


def lying_commit_graph(scene: Scene) -> None:
    """A cache that says of the base's commit that it has the tree of HEAD."""
    scene.git("commit-graph", "write", "--reachable")
    path = scene.folder / ".git" / "objects" / "info" / "commit-graph"
    old, new = (bytes.fromhex(scene.git("rev-parse", f"{one}^{{tree}}").strip()) for one in ("main", "HEAD"))
    data = path.read_bytes()[:-20].replace(old, new)
    path.chmod(0o644)
    path.write_bytes(data + hashlib.sha1(data).digest())


def another_repository(scene: Scene) -> Path:
    """A repository whose main is what is checked out here, and whose settings start programs."""
    path = scene.canary.parent / "other.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(scene.folder), str(path)], check=True)
    head = scene.git("rev-parse", "HEAD").strip()
    subprocess.run(["git", "update-ref", "refs/heads/main", head], cwd=path, check=True)
    subprocess.run(["git", "config", "core.fsmonitor", str(scene.program())], cwd=path, check=True)
    return path


def commondir(scene: Scene) -> None:
    (scene.folder / ".git" / "commondir").write_text(f"{another_repository(scene)}\n")


def alternates(scene: Scene) -> None:
    other = another_repository(scene)
    info = scene.folder / ".git" / "objects" / "info"
    (info / "alternates").write_text(f"{other / 'objects'}\n")
    (info / "http-alternates").write_text("http://127.0.0.1:9/objects\n")


def replace(scene: Scene) -> None:
    scene.git("replace", "main", "HEAD")
    scene.git("replace", "-f", f"main:{ORDERS}", f"HEAD:{ORDERS}")


def grafts(scene: Scene) -> None:
    """HEAD is said to be a parent of main, so that nothing would differ."""
    head, main = (scene.git("rev-parse", one).strip() for one in ("HEAD", "main"))
    (scene.folder / ".git" / "info").mkdir(exist_ok=True)
    (scene.folder / ".git" / "info" / "grafts").write_text(f"{main} {head}\n{head}\n")


def shallow(scene: Scene) -> None:
    head = scene.git("rev-parse", "HEAD").strip()
    (scene.folder / ".git" / "shallow").write_text(f"{head}\n")


def included(name: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        more = scene.canary.parent / "more.config"
        more.write_text(f"[core]\n\tfsmonitor = {scene.program()}\n\tsshCommand = {scene.program()}\n")
        scene.git("config", name, str(more))

    return play


def worktree_settings(scene: Scene) -> None:
    scene.git("config", "extensions.worktreeConfig", "true")
    scene.git("config", "--worktree", "core.fsmonitor", str(scene.program()))


def flagged(*flags: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        scene.git("update-index", *flags, ORDERS)

    return play


def index(data: bytes | None) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        (scene.folder / ".git" / "index").unlink()
        if data is not None:
            (scene.folder / ".git" / "index").write_bytes(data)

    return play


def sparse(scene: Scene) -> None:
    """Most folders are left out of the work tree, the registry too."""
    # What was copied looks changed until Git has looked at it, and changed files are not left out.
    scene.git("status")
    scene.git("sparse-checkout", "set", "--cone", "--sparse-index", "elsewhere")


def pointed_into_the_tree(scene: Scene) -> None:
    shutil.move(scene.folder / ".git", scene.folder / "evil")
    (scene.folder / ".git").write_text("gitdir: evil\n")


def pointed_outside(scene: Scene) -> None:
    shutil.move(scene.folder / ".git", scene.canary.parent / "moved.git")
    (scene.folder / ".git").write_text(f"gitdir: {scene.canary.parent / 'moved.git'}\n")
    subprocess.run(["git", "config", "core.fsmonitor", str(scene.program())], cwd=scene.folder, check=True)


def commands(scene: Scene) -> None:
    """Aliases that would shadow every command that the door may ask."""
    for name in ("cat-file", "for-each-ref", "merge-base", "rev-parse", "rev-list", "check-ignore", "config"):
        scene.git("config", f"alias.{name}", f"!{scene.program()}")


def excluded(scene: Scene) -> None:
    (scene.folder / ".git" / "info").mkdir(exist_ok=True)
    (scene.folder / ".git" / "info" / "exclude").write_text("*\n")
    (scene.folder / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil\n")


# --- the caller


def program_called_git(folder: str) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        target = scene.folder / folder / "git"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(scene.program(), target)
        scene.commit("a program called git")

    return play


def with_other(scene: Scene) -> None:
    another_repository(scene)


def with_program(scene: Scene) -> None:
    scene.program()


OTHER, PROGRAM, CANARY = "{home}/other.git", "{home}/program", "{home}/canary"

TRICKS = (
    # What is committed.
    Trick(
        "attributes-filter",
        "tree",
        attributes(
            "* filter=evil",
            filter__evil__clean="{program}",
            filter__evil__smudge="{program}",
            filter__evil__process="{program}",
            filter__evil__required="true",
        ),
    ),
    Trick("attributes-diff-driver", "tree", attributes("* diff=evil", diff__evil__command="{program}")),
    Trick(
        "attributes-textconv",
        "tree",
        attributes("* diff=evil", diff__evil__textconv="{program}", diff__evil__cachetextconv="true"),
    ),
    Trick("attributes-merge-driver", "tree", attributes("* merge=evil", merge__evil__driver="{program}")),
    Trick("attributes-no-diff", "tree", attributes("* -diff -text binary")),
    Trick("attributes-export", "tree", attributes("* export-subst export-ignore ident")),
    Trick("attributes-encoding", "tree", attributes("*.odcs.yaml working-tree-encoding=UTF-16")),
    Trick(
        "attributes-line-ends",
        "tree",
        both(
            attributes("* text eol=crlf"),
            lambda scene: [
                scene.write(name, (scene.folder / name).read_bytes().replace(b"\n", b"\r\n"))
                for name in (ORDERS, LINES)
            ],
        ),
    ),
    Trick("submodule-ext", "tree", submodule("ext::sh -c touch% {canary}")),
    Trick("submodule-option", "tree", submodule("-u./{program}")),
    Trick("submodule-name", "tree", submodule("./x", "../../hooks")),
    Trick("submodule-for-registry", "tree", checked_out_submodule, "unknown"),
    Trick("submodule-for-folder", "tree", submodule_below, "unknown"),
    Trick("ignore-everything", "tree", file(".gitignore", "*\n!.gitignore\n")),
    Trick("ignore-is-a-link", "tree", both(file(".gitignore", ""), link(".gitignore", "/etc/passwd"))),
    Trick("contract-becomes-a-link", "tree", link(ORDERS, "{outside}"), "refused"),
    Trick("folder-becomes-a-link", "tree", link("registry/sales", "{outside}"), "more"),
    Trick("registry-becomes-a-link", "tree", link("registry", "{outside}"), "unknown"),
    Trick("tree-with-twins", "tree", tree(lambda entries: rows(entries, *rows(entries)))),
    Trick(
        "tree-with-dots",
        "tree",
        tree(
            lambda entries: rows(
                entries, (b"40000", b"..", entries[b"sales"][1]), (b"40000", b".", entries[b"sales"][1])
            )
        ),
    ),
    Trick(
        "tree-with-slashes",
        "tree",
        tree(
            lambda entries: rows(
                entries, (b"100644", b"sales/lines.odcs.yaml", entries[b"orders.odcs.yaml"][1])
            )
        ),
    ),
    Trick(
        "tree-with-git-folder",
        "tree",
        tree(
            lambda entries: rows(
                entries, (b"40000", b".git", entries[b"sales"][1]), (b"40000", b".GIT", entries[b"sales"][1])
            )
        ),
    ),
    Trick(
        "tree-with-odd-modes",
        "tree",
        tree(
            lambda entries: rows(
                entries,
                (b"0", b"x.yaml", entries[b"orders.odcs.yaml"][1]),
                (b"177777", b"y.yaml", entries[b"orders.odcs.yaml"][1]),
            )
        ),
    ),
    Trick("tree-bomb", "tree", bomb, "unknown"),
    Trick("names-of-all-kinds", "tree", names_of_all_kinds, "more"),
    Trick("pair-by-case", "tree", pair("pair", "PAIR"), "more"),
    Trick(
        "pair-by-unicode",
        "tree",
        pair(unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
        "more",
    ),
    # Branches and tags.
    Trick("tag-called-as-the-branch", "names", named("refs/tags/main")),
    Trick(
        "tag-called-as-the-remote-branch",
        "names",
        both(remote, named("refs/tags/origin/main")),
        base="origin/main",
    ),
    Trick(
        "branch-called-as-the-remote-branch",
        "names",
        both(remote, named("refs/heads/origin/main")),
        base="origin/main",
    ),
    Trick(
        "branch-called-as-the-commit",
        "names",
        lambda scene: named(f"refs/heads/{scene.git('rev-parse', 'main').strip()}")(scene),
        base="{main}",
    ),
    Trick(
        "branch-called-as-the-short-commit",
        "names",
        lambda scene: named(
            f"refs/heads/{scene.git('rev-parse', 'main').strip()[:9]}",
            f"refs/tags/{scene.git('rev-parse', 'main').strip()[:9]}",
        )(scene),
        base="{main:.9}",
    ),
    Trick("branch-called-head", "names", named("refs/heads/HEAD", "refs/tags/HEAD", at="main")),
    Trick(
        "names-like-options",
        "names",
        named("refs/heads/--output=x", "refs/tags/--exec=touch", "refs/heads/-"),
    ),
    Trick("tags-of-other-versions", "names", named("refs/tags/orders/v1.0.0", "refs/tags/orders/v0.9.0")),
    # A clone that somebody prepared.
    Trick(
        "names-no-ref-may-have",
        "clone",
        named("refs/heads/a..b", "refs/heads/\x1b[31m", "refs/../x", "refs/heads/x.lock", "main"),
    ),
    Trick(
        "file-called-as-the-branch",
        "clone",
        lambda scene: shutil.copy(
            scene.folder / ".git" / "refs" / "heads" / "change", scene.folder / ".git" / "main"
        ),
    ),
    Trick("replace-refs", "clone", replace),
    Trick("grafts", "clone", grafts),
    Trick("shallow", "clone", shallow, "unknown"),
    Trick("alternates", "clone", alternates),
    Trick("lying-object", "clone", lying_object, "unknown"),
    Trick("lying-commit-graph", "clone", lying_commit_graph),
    Trick("hooks", "clone", hooks),
    Trick("fsmonitor", "clone", settings(core__fsmonitor="{program}")),
    Trick(
        "pager",
        "clone",
        settings(core__pager="{program}", pager__cat_file="{program}", pager__rev_list="{program}"),
    ),
    Trick("editor", "clone", settings(core__editor="{program}", sequence__editor="{program}")),
    Trick("askpass", "clone", settings(core__askPass="{program}", credential__helper="!{program}")),
    Trick(
        "gpg", "clone", settings(gpg__program="{program}", log__showSignature="true", commit__gpgSign="true")
    ),
    Trick("external-diff", "clone", settings(diff__external="{program}", diff__tool="{program}")),
    Trick("aliases", "clone", commands),
    Trick(
        "alternate-refs-command", "clone", both(alternates, settings(core__alternateRefsCommand="{program}"))
    ),
    Trick(
        "partial-clone-ext",
        "clone",
        without_blobs(
            remote__origin__url="ext::sh -c touch% {canary}",
            protocol__ext__allow="always",
            protocol__allow="always",
        ),
        "unknown",
    ),
    Trick(
        "partial-clone-ssh",
        "clone",
        without_blobs(remote__origin__url="ssh://127.0.0.1/x", core__sshCommand="{program}"),
        "unknown",
    ),
    Trick(
        "partial-clone-upload-pack",
        "clone",
        without_blobs(remote__origin__url="file:///tmp", remote__origin__uploadpack="{program}"),
        "unknown",
    ),
    Trick(
        "partial-clone-helper",
        "clone",
        without_blobs(remote__origin__url="x", remote__origin__vcs="ext", credential__helper="!{program}"),
        "unknown",
    ),
    Trick("index-assume-unchanged", "clone", flagged("--assume-unchanged")),
    Trick("index-skip-worktree", "clone", flagged("--skip-worktree")),
    Trick("index-split", "clone", flagged("--split-index")),
    Trick("index-of-no-kind", "clone", index(b"\xff" * 100)),
    Trick("index-gone", "clone", index(None)),
    Trick(
        "sparse-checkout",
        "clone",
        sparse,
        "unknown",
    ),
    Trick(
        "info-exclude-and-attributes",
        "clone",
        both(excluded, settings(filter__evil__clean="{program}", diff__evil__textconv="{program}")),
    ),
    Trick("git-file-outside", "clone", pointed_outside),
    Trick("git-file-into-the-tree", "clone", pointed_into_the_tree, "unknown"),
    Trick("commondir", "clone", commondir, "unknown"),
    Trick("core-worktree", "clone", settings(core__worktree="/")),
    Trick("core-bare", "clone", settings(core__bare="true")),
    Trick("include", "clone", included("include.path")),
    Trick("include-if", "clone", included("includeIf.gitdir:/.path")),
    Trick("worktree-settings", "clone", worktree_settings),
    # The process that calls.
    Trick(
        "git-dir-of-a-hook",
        "caller",
        with_other,
        variables={"GIT_DIR": OTHER, "GIT_WORK_TREE": "/", "GIT_COMMON_DIR": OTHER, "GIT_NAMESPACE": "x"},
    ),
    Trick(
        "git-index-of-a-hook",
        "caller",
        with_other,
        variables={
            "GIT_INDEX_FILE": "/dev/null",
            "GIT_OBJECT_DIRECTORY": f"{OTHER}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{OTHER}/objects",
            "GIT_QUARANTINE_PATH": OTHER,
            "GIT_PREFIX": "x/",
        },
    ),
    Trick(
        "programs-by-variable",
        "caller",
        with_program,
        variables=dict.fromkeys(
            (
                "GIT_EXTERNAL_DIFF",
                "GIT_PAGER",
                "PAGER",
                "GIT_EDITOR",
                "EDITOR",
                "GIT_ASKPASS",
                "SSH_ASKPASS",
                "GIT_SSH",
                "GIT_SSH_COMMAND",
                "GIT_PROXY_COMMAND",
            ),
            PROGRAM,
        ),
    ),
    Trick(
        "traces-by-variable",
        "caller",
        with_program,
        variables=dict.fromkeys(
            (
                "GIT_TRACE",
                "GIT_TRACE_SETUP",
                "GIT_TRACE_PACKET",
                "GIT_TRACE_PERFORMANCE",
                "GIT_TRACE2",
                "GIT_TRACE2_EVENT",
                "GIT_TRACE2_PERF",
                "GIT_TRACE_CURL",
            ),
            CANARY,
        ),
    ),
    Trick(
        "settings-by-variable",
        "caller",
        with_program,
        variables={
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": PROGRAM,
            "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={PROGRAM}'",
            "GIT_CEILING_DIRECTORIES": "{home}/repository",
            "GIT_DISCOVERY_ACROSS_FILESYSTEM": "0",
            "GIT_SHALLOW_FILE": "/dev/zero",
            "GIT_REPLACE_REF_BASE": "refs/heads/",
        },
    ),
    Trick(
        "program-in-the-working-folder",
        "caller",
        program_called_git("."),
        variables={"PATH": ".:{path}"},
        process=True,
    ),
    Trick(
        "program-in-the-tree",
        "caller",
        program_called_git("bin"),
        variables={
            "PATH": "{home}/repository/bin:{path}",
            "GIT_PYTHON_GIT_EXECUTABLE": "./git",
            "GIT_EXEC_PATH": "{home}/repository/bin",
        },
        process=True,
    ),
)
