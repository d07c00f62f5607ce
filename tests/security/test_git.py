"""Git in the hands of a stranger: what a branch or a clone may hold runs no code and moves no verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fragments.gate import AMOUNT, CONTRACT, Gated, Scene
from fragments.git_tricks import CHANGED, ORDERS, TRICKS, Trick, contract

BARE_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = {bare}\n\tfsmonitor = {program}\n{more}"


def bare_folder(where: Path, scene: Scene, bare: str = "true", more: str = "") -> None:
    """A folder that looks like a Git directory, with a base of its own: the state that is checked out."""
    subprocess.run(["git", "clone", "-q", "--bare", str(scene.folder), str(where)], check=True)
    for hook in (where / "hooks").iterdir():
        hook.unlink()
    head = scene.git("rev-parse", "HEAD").strip()
    (where / "packed-refs").write_text(f"{head} refs/heads/change\n{head} refs/heads/main\n")
    (where / "config").write_text(BARE_CONFIG.format(bare=bare, program=scene.program(), more=more))
    (where / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (where / "refs" / "keep").write_text("")
    # A policy of its own makes it the registry's root, where the root is looked for in the work tree.
    (where / "dq-policy.yaml").write_text("profile: default\n")


# --- S1: a folder of the branch that looks like a repository


@pytest.mark.parametrize(
    ("bare", "more"),
    [
        pytest.param("false", "\tworktree = ..\n", id="with a work tree"),
        pytest.param("false", "", id="without a work tree"),
        pytest.param("true", "", id="bare"),
    ],
)
@pytest.mark.parametrize(
    ("folder", "path", "here"),
    [
        pytest.param("registry", "registry", ".", id="the path given"),
        pytest.param("registry", ".", "registry", id="the working folder"),
        pytest.param("registry", "registry/sales", ".", id="above the path given"),
        pytest.param("registry/sales", "registry", ".", id="below the path given"),
        pytest.param("registry/.hidden", "registry", ".", id="hidden"),
    ],
)
def test_a_folder_that_looks_like_a_repository_runs_nothing_and_brings_no_base(
    scene: Scene, bare: str, more: str, folder: str, path: str, here: str
) -> None:
    scene.write("registry/orders.odcs.yaml", CONTRACT.replace(AMOUNT, ""))
    scene.commit("drop amount")
    plain = scene.gate("registry")
    bare_folder(scene.folder / "made", scene, bare, more)
    for file in (scene.folder / "made").iterdir():
        target = scene.folder / folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    (scene.folder / "made").rmdir()
    scene.commit("a folder of ours")

    found = scene.gate(path, here=here)

    assert not scene.canary.exists()
    assert (found.code, found.rules - {"policy-changed"}) == (plain.code, plain.rules)
    assert (found.code, "column-removed" in found.rules) == (1, True)


# --- S7: a policy of the branch


LAX = "rules: {missing-owner: {severity: off}}\n"
OWNER = "team: {members: [{username: ana@example.com, role: owner}]}\n"


@pytest.mark.parametrize(
    ("policy", "moved"),
    [
        pytest.param("registry/dq-policy.yaml", False, id="beside the contracts"),
        pytest.param("dq-policy.yaml", False, id="in place"),
        pytest.param("registry/dq-policy.yaml", True, id="moved"),
    ],
)
def test_a_policy_of_the_branch_does_not_weaken_the_gate(scene: Scene, policy: str, moved: bool) -> None:
    scene.git("checkout", "-q", "main")
    (scene.folder / "registry" / "dq-policy.yaml").unlink()
    scene.write("dq-policy.yaml", "rules: {missing-owner: {severity: error}}\n")
    scene.commit("ask for owners")
    scene.git("checkout", "-q", "-B", "change")
    scene.write("registry/orders.odcs.yaml", CONTRACT.replace(OWNER, "").replace("Sum.", "Total."))
    scene.write(policy, LAX)
    if moved:
        (scene.folder / "dq-policy.yaml").unlink()
    scene.commit("no owner, and that is fine")

    found = scene.gate("registry")

    assert found.code == 1
    assert ("error", "missing-owner") in found.severities
    assert ("warning", "policy-changed") in found.severities


# --- forty tricks, and more


@pytest.fixture(scope="module")
def branch(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with a branch that breaks a contract and brings another one."""
    folder = tmp_path_factory.mktemp("branch") / "repository"
    shutil.copytree(pristine, folder)
    made = Scene(folder, folder, None, None)
    made.write(ORDERS, CHANGED)
    made.write("registry/returns.odcs.yaml", contract("returns"))
    made.commit("drop amount, promise returns")
    return folder


@pytest.fixture(scope="module")
def plain(branch: Path, tmp_path_factory: pytest.TempPathFactory) -> Gated:
    """What the gate says of that branch before anybody plays a trick."""
    folder = tmp_path_factory.mktemp("plain") / "repository"
    shutil.copytree(branch, folder, symlinks=True)
    return Scene(folder, folder, None, None).gate_as_process()


@pytest.fixture
def played(
    branch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Scene:
    shutil.copytree(branch, tmp_path / "repository", symlinks=True)
    return Scene(tmp_path / "repository", tmp_path / "canary", monkeypatch.chdir, capfd)


@pytest.mark.parametrize("trick", [pytest.param(one, id=f"{one.who}-{one.id}") for one in TRICKS])
def test_a_trick_runs_nothing_and_moves_no_verdict(
    trick: Trick, plain: Gated, played: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = trick.base.format(main=played.git("rev-parse", "main").strip())
    trick.play(played)
    played.canary.unlink(missing_ok=True)
    for name, value in trick.variables.items():
        monkeypatch.setenv(name, value.format(home=played.canary.parent, path=os.environ["PATH"]))

    found = (played.gate_as_process if trick.process else played.gate)("registry", base=base)

    assert not played.canary.exists()
    assert plain.code == 1
    assert "column-removed" in {one[0] for one in plain.verdict}
    if trick.outcome == "unknown":
        assert (found.code, found.out) == (3, ""), found
        assert found.err.startswith("dq: ")
    elif trick.outcome == "refused":
        assert found.code == 1
        assert ("error", "not-a-plain-file") in found.severities
    elif trick.outcome == "more":
        assert found.code == 1
        assert found.verdict >= plain.verdict
    else:
        assert (found.code, found.verdict) == (plain.code, plain.verdict), found.err


def test_the_tricks_are_forty_and_more() -> None:
    assert len({one.id for one in TRICKS}) == len(TRICKS) >= 40
