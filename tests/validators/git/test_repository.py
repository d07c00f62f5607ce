"""The door to Git: which repository it takes, what a name means, and what happens when Git cannot tell."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread

import pytest
from fragments.registry import Registry

from dq.validators.git import repository as git_objects
from dq.validators.git.repository import (
    ENVIRONMENT,
    BaseRefInvalid,
    BaseUnavailable,
    find_repository,
    git_environment,
    is_tracked,
    read_objects,
    repository_for_ref,
    resolve_commit,
    run,
)

CONTRACT = b"id: orders\n"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    made = Registry(tmp_path / "registry")
    made.commit({"a/orders.odcs.yaml": CONTRACT, "b/-x.odcs.yaml": b"id: x\n"})
    return made


# --- which repository


def test_the_nearest_folder_with_a_git_entry_is_the_repository(registry: Registry) -> None:
    found = find_repository(registry.folder / "a" / "nothing" / "here")

    assert found is not None
    assert (found.top, found.git_dir) == (registry.folder, registry.folder / ".git")


def test_a_folder_that_looks_bare_is_no_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)

    assert find_repository(tmp_path / "bare" / "objects") is None


def test_a_work_tree_beside_the_repository_is_one(registry: Registry, tmp_path: Path) -> None:
    registry.repo.git.worktree("add", "-q", str(tmp_path / "beside"), "-b", "beside")

    found = find_repository(tmp_path / "beside")

    assert found is not None
    assert (found.top, found.common) == (tmp_path / "beside", registry.folder / ".git")
    assert resolve_commit(found, "main") == registry.repo.head.commit.hexsha


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("gitdir: ../nowhere\n", "not a folder", id="leads nowhere"),
        pytest.param("gitdir: a\n", "own work tree", id="leads into the tree"),
        pytest.param("../registry/.git\n", "does not begin", id="says something else"),
        pytest.param("gitdir: " + "x" * 20_000, "small file", id="is large"),
    ],
)
def test_a_git_file_that_leads_astray_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text(text)

    with pytest.raises(BaseUnavailable, match=reason):
        find_repository(tmp_path / "tree" / "a")


def test_a_git_entry_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")

    with pytest.raises(BaseUnavailable, match="small file"):
        find_repository(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_git_folder_that_somebody_else_put_there_is_refused(registry: Registry) -> None:
    os.chown(registry.folder / ".git", 12_345, 12_345)
    with pytest.raises(BaseUnavailable, match="has another owner"):
        find_repository(registry.folder)

    # A checkout of another user, as containers in CI have them, is fine.
    os.chown(registry.folder, 12_345, 12_345)
    found = find_repository(registry.folder)
    assert found is not None
    assert resolve_commit(found, "main")


# --- what a name means


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ("main", "second"),
        ("heads/main", "second"),
        ("refs/heads/main", "second"),
        ("HEAD", "second"),
        ("@", "second"),
        ("main~1", "first"),
        ("main^", "first"),
        ("HEAD~1^{commit}", "first"),
        ("origin/main", "first"),
        ("origin", "first"),
        ("v1", "first"),
        ("v1^{}", "first"),
        ("@{u}", "first"),
        ("FIRST", "first"),
        ("SHORT", "first"),
        ("SHORT^0", "first"),
        ("beef123", "second"),
    ],
)
def test_a_name_is_the_commit_that_git_means(registry: Registry, ref: str, expected: str) -> None:
    git = registry.repo.git
    first = registry.repo.head.commit.hexsha
    second = registry.commit({"a/orders.odcs.yaml": b"id: other\n"})
    git.tag("-a", "v1", "-m", "first", first)
    git.branch("beef123")
    git.update_ref("refs/remotes/origin/main", first)
    git.symbolic_ref("refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git.config("branch.main.remote", "origin")
    git.config("branch.main.merge", "refs/heads/main")
    git.config("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    found = repository_for_ref(registry.folder, "main")

    name = ref.replace("FIRST", first).replace("SHORT", first[:10])
    assert resolve_commit(found, name) == {"first": first, "second": second}[expected]


@pytest.mark.parametrize("ref", ["main:a", "HEAD^{/x y}", "-x", "a..b", "a b", "a\nb", "@{1 day ago}", "*"])
def test_what_is_no_name_of_a_commit_is_refused(registry: Registry, ref: str) -> None:
    with pytest.raises(BaseRefInvalid):
        resolve_commit(repository_for_ref(registry.folder, ref), ref)


@pytest.mark.parametrize("ref", ["nothing", "0" * 40, "deadbeef", "HEAD~9", "main^3", "HEAD^{tree}", "refs"])
def test_a_name_of_no_commit_is_told_with_the_command_that_brings_it(registry: Registry, ref: str) -> None:
    with pytest.raises(BaseUnavailable, match="not in this clone") as refused:
        resolve_commit(repository_for_ref(registry.folder, ref), ref)

    assert refused.value.hint.startswith("Run: git fetch origin")


# --- what Git cannot tell


def test_git_that_does_not_answer_is_ended(registry: Registry, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    registry.repo.git.config("include.path", str(tmp_path / "pipe"))
    found = find_repository(registry.folder, seconds=0.5)
    assert found is not None

    with pytest.raises(BaseUnavailable, match="did not answer"):
        resolve_commit(found, "main")


def test_a_damaged_object_is_not_believed(registry: Registry) -> None:
    found = repository_for_ref(registry.folder, "main")
    blob = git_objects.object_id(CONTRACT, "blob", "0" * 40)
    path = registry.folder / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"no zlib")

    with pytest.raises(BaseUnavailable) as refused:
        read_objects(found, [blob], "blob")

    assert "--refetch" in refused.value.hint


def test_an_object_of_another_kind_is_not_taken(registry: Registry) -> None:
    found = repository_for_ref(registry.folder, "main")

    with pytest.raises(BaseUnavailable, match="damaged"):
        read_objects(found, [resolve_commit(found, "main")], "tree")


def test_a_partial_clone_reaches_nobody_and_the_command_mends_it(registry: Registry, tmp_path: Path) -> None:
    registry.commit({"a/orders.odcs.yaml": b"id: other\n"})
    registry.repo.git.config("uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    url = f"file://{registry.folder}"
    subprocess.run(["git", "clone", "-q", "--filter=blob:none", url, str(clone)], check=True)
    found = repository_for_ref(clone, "main")
    blob = git_objects.object_id(CONTRACT, "blob", "0" * 40)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(0.2)
        port = listening.getsockname()[1]
        git = ["git", "-C", str(clone)]
        subprocess.run([*git, "config", "remote.origin.url", f"git://127.0.0.1:{port}/x"], check=True)

        with pytest.raises(BaseUnavailable) as refused:
            read_objects(found, [blob], "blob")

        with pytest.raises(TimeoutError):
            listening.accept()
    subprocess.run([*git, "config", "remote.origin.url", url], check=True)
    command = refused.value.hint.removeprefix("Run: ").split()
    subprocess.run(command, cwd=clone, check=True, capture_output=True)
    assert read_objects(found, [blob], "blob") == {blob: CONTRACT}


def test_what_is_not_listed_is_never_asked(registry: Registry) -> None:
    found = repository_for_ref(registry.folder, "main")

    with pytest.raises(AssertionError, match="log"):
        run(found, ("log",))


def test_a_process_of_git_has_nothing_of_the_caller_but_what_is_listed(tmp_path: Path) -> None:
    caller = {"GIT_DIR": "x", "GIT_TRACE": "1", "HOME": "/home/ana", "LD_PRELOAD": "x.so", "PATH": "/bin:."}

    made = git_environment(caller, tmp_path)

    listed = {one.name for one in ENVIRONMENT}
    assert made.keys() - listed == {"HOME", "PATH"}
    assert made["PATH"] == "/bin"


def test_the_environment_of_the_caller_is_as_it_was(registry: Registry) -> None:
    before = dict(os.environ)

    resolve_commit(repository_for_ref(registry.folder, "main"), "main")

    assert dict(os.environ) == before


def test_without_git_the_reason_is_told(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(registry.folder))

    with pytest.raises(Exception, match="Git is not installed") as refused:
        resolve_commit(repository_for_ref(registry.folder, "main"), "main")

    assert getattr(refused.value, "exit_code", None) == 2


# --- what is tracked


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a", True),
        ("a/orders.odcs.yaml", True),
        ("b/-x.odcs.yaml", True),
        ("a/nothing", False),
        ("nothing", False),
        (":(top)*", False),
        ("*", False),
        ("a*", False),
        ("../outside", False),
        ("link/orders.odcs.yaml", True),
    ],
)
def test_a_path_is_tracked_where_the_index_has_something_there(
    registry: Registry, path: str, expected: bool
) -> None:
    (registry.folder / "link").symlink_to("a")

    assert is_tracked(registry.folder / path) is expected


def test_what_is_tracked_is_told_without_gitpython_and_runs_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'canary'}\n")
    program.chmod(0o755)
    registry.repo.git.config("core.fsmonitor", str(program))
    code = (
        "import sys\nfrom pathlib import Path\nfrom dq.validators.git.repository import is_tracked\n"
        "print(is_tracked(Path('a')), 'git' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=registry.folder, capture_output=True, text=True, check=True
    )

    assert done.stdout == "True False\n"
    assert not (tmp_path / "canary").exists()


def test_other_threads_see_the_whole_environment_while_git_is_started(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DQ_CANARY", "there")
    found = find_repository(registry.folder)
    assert found is not None
    ended, missing, looks = Event(), 0, 0

    def look() -> None:
        nonlocal missing, looks
        while not ended.is_set():
            missing += os.environ.get("DQ_CANARY") != "there"
            looks += 1

    reader = Thread(target=look)
    reader.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: run(found, ("rev-parse", "HEAD")), range(200)))
    finally:
        ended.set()
        reader.join()

    assert looks > 1_000
    assert missing == 0


def test_an_index_that_cannot_be_read_is_no_answer(registry: Registry) -> None:
    (registry.folder / ".git" / "index").write_bytes(b"\xff" * 100)

    with pytest.raises(BaseUnavailable):
        is_tracked(registry.folder / "a")
