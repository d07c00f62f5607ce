"""The base is the remote's branch, whatever a clone calls its own branches and tags (T17)."""

from __future__ import annotations

import pytest
from fragments.gate import AMOUNT, CONTRACT, Scene

from dq.cli.main import run


@pytest.fixture
def clone(scene: Scene) -> Scene:
    """A branch that drops a column, in a clone whose remote `origin` has not been fetched."""
    scene.git("remote", "add", "origin", "https://git.example.com/air/contracts.git")
    scene.write("registry/orders.odcs.yaml", CONTRACT.replace(AMOUNT, ""))
    scene.commit("drop amount")
    return scene


@pytest.mark.parametrize("kind", ["branch", "tag"])
@pytest.mark.parametrize("base", ["origin/main", "origin/main~0"])
def test_a_local_branch_or_tag_named_like_the_remotes_branch_is_not_the_base(
    clone: Scene, kind: str, base: str
) -> None:
    clone.git(kind, "origin/main")

    result = clone.gate(base=base)

    assert (result.code, result.out) == (3, "")
    assert "git fetch origin main" in result.err
    assert f"refs/{'heads' if kind == 'branch' else 'tags'}/origin/main" in result.err


@pytest.mark.parametrize("base", ["heads/origin/main", "refs/heads/origin/main"])
def test_the_local_branch_is_the_base_where_its_full_name_is_written(clone: Scene, base: str) -> None:
    clone.git("branch", "origin/main", "main")

    result = clone.gate(base=base)

    assert (result.code, "column-removed" in result.rules) == (1, True)


def test_the_remotes_branch_is_the_base_next_to_a_local_one_of_the_same_name(clone: Scene) -> None:
    clone.git("branch", "origin/main")
    clone.git("tag", "origin/main")
    clone.git("update-ref", "refs/remotes/origin/main", "main")

    result = clone.gate(base="origin/main")

    assert (result.code, "column-removed" in result.rules) == (1, True)


@pytest.mark.parametrize(
    ("names", "base"),
    [
        pytest.param(["refs/heads/origin"], "origin", id="a branch named like the remote"),
        pytest.param(["refs/tags/origin"], "origin", id="a tag named like the remote"),
        pytest.param(["refs/origin/main"], "origin/main", id="a ref outside of branches and tags"),
        pytest.param(["refs/remotes/origin/main", "refs/tags/main"], "main", id="a tag named like a branch"),
    ],
)
def test_a_name_that_may_mean_the_remotes_branch_is_refused(
    clone: Scene, names: list[str], base: str
) -> None:
    clone.git("branch", "-m", "main", "trunk")
    for name in names:
        clone.git("update-ref", name, "HEAD")

    result = clone.gate(base=base)

    assert (result.code, result.out) == (3, "")
    assert names[-1] in result.err


def test_a_repository_without_a_remote_knows_no_origin(scene: Scene) -> None:
    scene.git("branch", "origin/main")

    result = scene.gate(base="origin/main")

    assert result.code == 3
    assert "refs/heads/origin/main" in result.err


def test_a_remote_whose_name_has_a_slash_is_a_remote(clone: Scene) -> None:
    clone.git("remote", "add", "team/upstream", "https://git.example.com/air/fork.git")
    clone.git("branch", "team/upstream/main")

    result = clone.gate(base="team/upstream/main")

    assert result.code == 3
    assert "git fetch team/upstream main" in result.err


@pytest.mark.parametrize(
    "command",
    [
        ["diff", "origin/main:registry/orders.odcs.yaml", "registry/orders.odcs.yaml"],
        ["backtest", "registry", "--base", "origin/main", "--last", "1"],
    ],
    ids=["diff", "backtest"],
)
def test_every_command_with_a_base_refuses_the_local_branch(
    clone: Scene, command: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone.git("branch", "origin/main")
    monkeypatch.chdir(clone.folder)

    code = run(command)

    assert code == 3
    assert "git fetch origin main" in capfd.readouterr().err
