"""What the gate takes for the branch: commits, and what lies in the work tree as a commit would take it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from fragments.gate import AMOUNT, CONTRACT, Gated, Scene

ORDERS = "registry/orders.odcs.yaml"
DROPPED = CONTRACT.replace(AMOUNT, "")


def files(found: Gated) -> set[str]:
    return {one["file"] for one in found.findings}


def test_a_work_tree_with_line_breaks_of_windows_is_no_change(scene: Scene) -> None:
    scene.write(ORDERS, CONTRACT.replace("\n", "\r\n"))

    assert scene.gate().findings == []


def test_a_draft_that_is_ignored_is_left_out_until_it_is_committed(scene: Scene) -> None:
    scene.write(".gitignore", "draft*\n")
    scene.write("registry/draft.odcs.yaml", CONTRACT.replace("id: orders", "id: draft"))
    assert files(scene.gate()) == set()

    scene.git("add", "-f", "registry/draft.odcs.yaml")
    scene.commit("a draft")
    assert files(scene.gate()) == {"draft.odcs.yaml"}


def test_a_link_that_the_base_has_too_is_not_the_branch_s(scene: Scene) -> None:
    scene.git("checkout", "-q", "main")
    (scene.folder / "registry" / "same.odcs.yaml").symlink_to("orders.odcs.yaml")
    scene.commit("a link")
    scene.git("checkout", "-q", "-B", "change")

    assert scene.gate().findings == []


@pytest.mark.parametrize("put", ["nothing", "a file", "elsewhere"])
def test_a_registry_that_the_branch_takes_away_is_gone_and_keeps_its_policy(scene: Scene, put: str) -> None:
    scene.git("checkout", "-q", "main")
    scene.write(
        "registry/dq-policy.yaml",
        "rules: {missing-owner: {severity: error}}\n",
    )
    scene.commit("a policy")
    scene.git("checkout", "-q", "-B", "change")
    shutil.move(scene.folder / "registry", scene.folder / "elsewhere")
    if put != "elsewhere":
        shutil.rmtree(scene.folder / "elsewhere")
    if put == "a file":
        scene.write("registry", "nothing to see\n")
    scene.commit("away with it")

    found = scene.gate("registry")

    assert found.code == 1
    assert {one["rule"] for one in found.findings} == {"contract-removed", "policy-changed"}


def test_a_path_that_is_nowhere_is_exit_3(scene: Scene) -> None:
    found = scene.gate("registy")

    assert found.code == 3
    assert "exists neither in the work tree nor at 'main'" in found.err


def test_a_submodule_that_the_branch_leaves_alone_is_another_repository_s(scene: Scene) -> None:
    inner = scene.folder / "registry" / "theirs"
    scene.git("checkout", "-q", "main")
    subprocess.run(["git", "clone", "-q", str(scene.folder), str(inner)], check=True)
    scene.git("-c", "advice.addEmbeddedRepo=false", "add", "registry/theirs")
    scene.commit("a submodule")
    scene.git("checkout", "-q", "-B", "change")

    assert scene.gate().findings == []
    assert scene.gate("registry/theirs/registry", base="origin/main").code == 0


def test_a_repository_around_the_registry_s_that_has_no_commit_is_another(scene: Scene) -> None:
    subprocess.run(["git", "init", "-q", str(scene.folder.parent)], check=True)

    assert scene.gate().code == 0


def test_a_repository_of_sha_256_is_judged_alike(scene: Scene) -> None:
    shutil.rmtree(scene.folder / ".git")
    scene.git("init", "-q", "-b", "main", "--object-format=sha256")
    scene.git("config", "user.email", "ana@example.com")
    scene.git("config", "user.name", "Ana")
    scene.commit("promise orders")
    scene.git("checkout", "-q", "-b", "change")
    scene.write(ORDERS, DROPPED)

    assert "column-removed" in scene.gate().rules


def test_a_work_tree_beside_the_repository_is_judged_alike(scene: Scene) -> None:
    beside = scene.canary.parent / "beside"
    scene.git("worktree", "add", "-q", str(beside), "-b", "beside", "main")
    (beside / ORDERS).write_text(DROPPED)

    assert "column-removed" in scene.gate("../beside/registry").rules


def test_a_repository_without_a_commit_is_exit_3(scene: Scene) -> None:
    shutil.rmtree(scene.folder / ".git")
    scene.git("init", "-q", "-b", "main")

    assert scene.gate().code == 3


def test_a_time_that_no_calendar_has_is_no_notice(scene: Scene) -> None:
    marked = CONTRACT.replace("description: Sum.", "deprecated: true, description: Sum.")
    scene.git("checkout", "-q", "main")
    scene.write(ORDERS, marked.replace("version: 1.0.0", "version: 1.1.0"))
    scene.git("add", "-A")
    data = "tree {}\nparent {}\nauthor a <a> 1 +0000\ncommitter a <a> 99999999999999 +0000\n\nmark\n"
    text = data.format(scene.git("write-tree").strip(), scene.git("rev-parse", "HEAD").strip())
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"],
        cwd=scene.folder, input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    scene.git("reset", "-q", "--hard", made.stdout.strip())
    scene.git("checkout", "-q", "-B", "change")
    scene.write(ORDERS, DROPPED.replace("version: 1.0.0", "version: 2.0.0"))

    found = scene.gate()

    assert found.code == 1
    assert "column-removed" in found.rules


def test_a_tag_beside_the_base_gives_no_notice(scene: Scene) -> None:
    marked = CONTRACT.replace("description: Sum.", "deprecated: true, description: Sum.")
    scene.git("checkout", "-q", "-b", "side", "main")
    scene.write(ORDERS, marked)
    scene.git("add", "-A")
    scene.git("-c", "user.name=a", "commit", "-q", "-m", "old", "--date=2020-01-01T00:00:00Z")
    scene.git("tag", "orders/v0.9.0")
    scene.git("checkout", "-q", "main")
    scene.write(ORDERS, marked.replace("version: 1.0.0", "version: 1.1.0"))
    scene.commit("mark it today")
    scene.git("checkout", "-q", "-B", "change")
    scene.write(ORDERS, DROPPED.replace("version: 1.0.0", "version: 2.0.0"))

    assert "column-removed" in scene.gate().rules
