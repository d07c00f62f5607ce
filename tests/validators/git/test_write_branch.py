"""Branches of dq's own: written, updated, and never changed after somebody else has."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dq.validators.git.repository import BranchState, WrittenBranch, write_branch

NAME = "discover/orders"
FILE = "sales/orders.odcs.yaml"


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=Eve", "-c", "user.email=eve@example.com", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[user]\nname = Dee\nemail = dee@example.com\n")
    origin = tmp_path / "origin"
    git(tmp_path, "init", "-q", "-b", "main", str(origin))
    (origin / "dq-policy.yaml").write_text("profile: default\n")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "start")
    git(origin, "config", "receive.denyCurrentBranch", "ignore")
    git(tmp_path, "clone", "-q", str(origin), str(tmp_path / "clone"))
    return tmp_path / "clone"


def write(clone: Path, text: str = "one\n", file: str = FILE) -> WrittenBranch:
    return write_branch(clone, NAME, {file: text.encode()}, "discover: orders")


def shown(clone: Path, file: str = FILE) -> str:
    return git(clone, "show", f"{NAME}:{file}")


def test_a_branch_is_opened_updated_and_left_alone_if_nothing_changed(clone: Path) -> None:
    opened = write(clone)
    assert (opened.state, opened.reason) == (BranchState.OPENED, "")
    assert git(clone.parent / "origin", "show", f"{NAME}:{FILE}") == "one"
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "branch", "--show-current") == "main"

    assert write(clone) == WrittenBranch(NAME, BranchState.UNCHANGED, opened.commit)
    updated = write(clone, "two\n")
    assert updated.state is BranchState.UPDATED
    assert git(clone.parent / "origin", "show", f"{NAME}:{FILE}") == "two"
    # A fast forward: reviews of the first commit stay.
    assert git(clone, "rev-parse", f"{NAME}^") == opened.commit


def test_an_update_has_the_new_files_only(clone: Path) -> None:
    write(clone)
    write(clone, file="sales/renamed.odcs.yaml")

    assert git(clone, "diff", "--name-only", "main", NAME) == "sales/renamed.odcs.yaml"


def test_another_clone_updates_what_it_fetched(clone: Path, tmp_path: Path) -> None:
    write(clone)
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(tmp_path / "origin"), str(other))

    assert write(other).state is BranchState.UNCHANGED
    assert write(other, "two\n").state is BranchState.UPDATED
    git(clone, "fetch", "-q")
    # The local branch is behind the remote's.
    assert write(clone, "three\n").state is BranchState.UPDATED
    assert git(clone, "rev-list", "--count", f"main..{NAME}") == "3"


@pytest.mark.parametrize("edit", ["commit", "amend", "merge"])
def test_a_branch_with_somebody_elses_commit_is_not_touched(clone: Path, tmp_path: Path, edit: str) -> None:
    write(clone)
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", "-b", NAME, str(tmp_path / "origin"), str(work))
    (work / FILE).write_text("edited\n")
    git(work, "add", "-A")
    if edit == "merge":
        git(work, "commit", "-qm", "edit\n\nDq-Tree: " + "0" * 40)
    else:
        git(work, "commit", "-q", *(["--amend", "--no-edit"] if edit == "amend" else ["-m", "edit"]))
    git(work, "push", "-q", "--force")
    git(clone, "fetch", "-q")
    git(clone, "update-ref", f"refs/heads/{NAME}", f"refs/remotes/origin/{NAME}")
    skipped = write(clone, "two\n")

    assert skipped.state is BranchState.SKIPPED
    assert "was not made by dq" in skipped.reason
    assert shown(clone) == "edited"


def test_a_branch_that_differs_from_the_remotes_is_not_touched(clone: Path, tmp_path: Path) -> None:
    write(clone)
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", "-b", NAME, str(tmp_path / "origin"), str(work))
    (work / FILE).write_text("edited\n")
    git(work, "commit", "-qam", "edit", "--amend")
    git(work, "push", "-q", "--force")
    git(clone, "fetch", "-q")

    assert write(clone, "two\n").reason == "it differs from the remote's branch of this name"


def test_edits_that_were_not_fetched_are_not_overwritten(clone: Path, tmp_path: Path) -> None:
    write(clone)
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", "-b", NAME, str(tmp_path / "origin"), str(work))
    (work / FILE).write_text("edited\n")
    git(work, "commit", "-qam", "edit")
    git(work, "push", "-q")

    assert write(clone, "two\n").reason == "Git could not push it"
    assert git(tmp_path / "origin", "show", f"{NAME}:{FILE}") == "edited"


def test_a_merged_or_checked_out_branch_is_not_touched(clone: Path) -> None:
    write(clone)
    git(clone, "switch", "-q", NAME)
    assert write(clone, "two\n").reason == "it is checked out"
    git(clone, "switch", "-q", "main")
    git(clone, "merge", "-q", "--ff-only", NAME)
    git(clone, "push", "-q", "origin", "main")

    assert write(clone, "two\n").reason == f"{FILE} already exists"
    git(clone, "rm", "-q", FILE)
    git(clone, "commit", "-qm", "remove")
    git(clone, "push", "-q", "origin", "main")
    assert write(clone, "two\n").reason == "it was merged"


def test_without_a_remote_it_is_a_local_branch(tmp_path: Path, clone: Path) -> None:
    git(clone, "remote", "remove", "origin")

    assert write(clone).reason == "there is no remote 'origin'"
    assert shown(clone) == "one"
