"""The GitHub Action and the pre-commit hooks work in a real Git repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fakes import workflow

from dq.validators import rule_page

ROOT = Path(__file__).parents[2]
GOOD = rule_page.document("")[0]
BAD = rule_page.document("status: activ\nid: orders\nversion: 1.10\n")[0]
BAD_LINE = BAD.splitlines().index("version: 1.10") + 1


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A Git repository with a good contract, committed."""
    made = tmp_path / "repository"
    (made / "contracts").mkdir(parents=True)
    (made / "contracts" / "orders.odcs.yaml").write_text(GOOD)
    (made / "contracts" / "dq-policy.yaml").write_text("profile: default\n")
    git(made, "init", "-q", "-b", "main")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "Promise orders")
    return made


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def act(repository: Path, **inputs: str) -> workflow.Ran:
    """The action without its install step: the dq on the PATH is the one that is tested."""
    temp = repository.parent / "temp"
    return workflow.run(ROOT / "action.yml", repository, temp, install="false", **inputs)


# --- the action


def test_good_contracts_pass_and_the_summary_says_so(repository):
    ran = act(repository)

    assert (ran.code, ran.outputs["exit-code"]) == (0, "0")
    assert ran.log == "dq: 1 contract, no findings.\n"
    assert ran.summary == "<!-- dq validate -->\n\n## Data contracts: 1 contract, no findings\n"


def test_a_mistake_is_annotated_on_its_line_in_the_repository(repository):
    (repository / "contracts" / "orders.odcs.yaml").write_text(BAD)

    ran = act(repository, path="contracts")

    assert (ran.code, ran.outputs["exit-code"]) == (1, "1")
    assert f"::error file=contracts/orders.odcs.yaml,line={BAD_LINE},col=10,title=wrong-type::" in ran.log
    assert f"`contracts/orders.odcs.yaml:{BAD_LINE}`" in ran.summary


def test_reports_are_files_that_a_later_step_can_upload(repository):
    (repository / "contracts" / "orders.odcs.yaml").write_text(BAD)

    ran = act(repository, formats="sarif, junit,json")

    folder = Path(ran.outputs["reports"])
    assert sorted(file.name for file in folder.iterdir()) == ["dq.json", "dq.junit", "dq.sarif"]
    artifact = json.loads((folder / "dq.sarif").read_text())["runs"][0]["results"][0]["locations"][0]
    assert artifact["physicalLocation"]["artifactLocation"]["uri"] == "contracts/orders.odcs.yaml"
    assert ran.summary == ""
    assert "::error" not in ran.log


def test_another_policy_is_taken(repository):
    (repository / "contracts" / "orders.odcs.yaml").write_text(
        GOOD.replace("status: active", "status: activ")
    )
    (repository / "strict.yaml").write_text("profile: strict\n")

    assert act(repository).code == 0
    assert act(repository, policy="strict.yaml").code == 1


def test_what_cannot_be_judged_is_never_fine(repository):
    ran = act(repository, path="nowhere")

    assert (ran.code, ran.outputs["exit-code"]) == (3, "3")
    assert "nowhere does not exist" in ran.log
    assert ran.summary == "dq could not judge the contracts (exit code 3); the log says why.\n"


def test_a_second_use_in_a_job_does_not_show_the_first_one_s_summary(repository):
    first = act(repository)
    second = act(repository, path="nowhere")

    assert first.outputs["reports"] != second.outputs["reports"]
    assert "no findings" not in second.summary


def test_an_input_is_never_run(repository):
    ran = act(repository, path="contracts $(touch pwned) ;touch${IFS}pwned")

    assert ran.code == 3
    assert not (repository / "pwned").exists()


# --- results of contracts that have not changed


def many(repository: Path) -> None:
    for number in range(60):
        text = GOOD.replace("id: orders", f"id: orders-{number}")
        (repository / "contracts" / f"o{number}.odcs.yaml").write_text(text)


def push(repository: Path, sha: str) -> workflow.Ran:
    """A job begins with an empty temporary folder."""
    shutil.rmtree(repository.parent / "temp", ignore_errors=True)
    job = {"GITHUB_EVENT_NAME": "push", "GITHUB_SHA": sha}
    return workflow.run(
        ROOT / "action.yml", repository, repository.parent / "temp", job, install="false", path="contracts"
    )


def results(folder: Path) -> bytes:
    (file,) = folder.rglob("validate-*")
    return file.read_bytes()


def test_a_push_reuses_the_results_of_the_push_before_it_even_if_that_failed(repository):
    many(repository)
    (repository / "contracts" / "bad.odcs.yaml").write_text(BAD)
    first = push(repository, "a" * 40)
    (repository / "contracts" / "bad.odcs.yaml").write_text(BAD)
    temp, caches = repository.parent / "temp", repository.parent / "caches"
    before = results(temp / "dq-cache")
    assert [results(cache) for cache in caches.iterdir()] == [before]

    second = push(repository, "b" * 40)

    assert first.code == second.code == 1
    assert first.log == second.log
    # Nothing was new, so the restored file is as it was.
    assert results(temp / "dq-cache") == before
    assert sorted(cache.name[-1] for cache in caches.iterdir()) == ["a", "b"]


def test_a_pull_request_neither_restores_nor_saves_results(repository):
    """Its author could write a cache under the same key, from another job of the branch."""
    many(repository)
    caches = repository.parent / "caches"

    act(repository, path="contracts")
    assert not caches.exists()

    push(repository, "a" * 40)
    shutil.rmtree(repository.parent / "temp")
    (caches / "dq-validate---").mkdir()
    (caches / "dq-validate---" / "poison").touch()
    act(repository, path="contracts")
    assert not (repository.parent / "temp" / "dq-cache" / "poison").exists()
    assert len(list(caches.iterdir())) == 2


# --- the catalog's plan


@pytest.fixture
def gh(tmp_path: Path) -> Path:
    """A `gh` that keeps what it is asked for, and answers with the comments in `comments`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> {folder}/asked\n"
        f'case "$*" in *--paginate*) cat {folder}/comments;; *) cp "${{7#body=@}}" {folder}/body;; esac\n'
    )
    (folder / "gh").chmod(0o755)
    (folder / "comments").write_text("")
    (folder / "asked").write_text("")
    return folder


def plan(repository: Path, gh: Path, **inputs: str) -> workflow.Ran:
    job = {
        "PATH": os.pathsep.join([str(gh), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "GITHUB_REPOSITORY": "acme/registry",
        "DQ_STORE_URL": f"sqlite:///{gh}/store.db",
        "DQ_LAKE_ROOTS": "s3://bucket,s3://lake,s3://example",
    }
    given = {"catalog": "local", "path": "contracts", "token": "t0ken"} | inputs
    return workflow.run(ROOT / "action.yml", repository, gh.parent / "temp", job, install="false", **given)


def test_the_plan_of_the_catalog_is_one_comment_that_is_written_anew(repository, gh):
    first = plan(repository, gh, pull_request="7")
    (gh / "comments").write_text("41\n42\n")
    second = plan(repository, gh, pull_request="7")

    asked = (gh / "asked").read_text().splitlines()
    body = (gh / "body").read_text()
    assert (first.code, second.code) == (0, 0), first.log
    assert "--method POST repos/acme/registry/issues/7/comments" in asked[1]
    assert "--method PATCH repos/acme/registry/issues/comments/41" in asked[3]
    assert len(asked) == 4
    assert body.startswith("<!-- dq register -->\n\n## Catalog: 1 create\n")
    assert body in second.summary
    assert Path(second.outputs["plan"]).read_text() == body


def test_without_a_pull_request_the_plan_is_in_the_summary_alone(repository, gh):
    ran = plan(repository, gh)

    assert ran.code == 0, ran.log
    assert "## Catalog: 1 create" in ran.summary
    assert (gh / "asked").read_text() == ""
    assert Path(ran.outputs["dq"]).name == "dq"


def test_a_contract_that_the_gate_refuses_is_not_planned(repository, gh):
    (repository / "contracts" / "orders.odcs.yaml").write_text(BAD)

    ran = plan(repository, gh, pull_request="7")

    assert (ran.code, ran.outputs["plan"]) == (1, "")
    assert (gh / "asked").read_text() == ""


def test_a_catalog_that_cannot_be_planned_is_told_and_never_green(repository, gh):
    ran = plan(repository, gh, pull_request="7", catalog="nowhere")

    assert ran.code == 2
    assert "could not be planned (exit code 2)" in (gh / "body").read_text()


@pytest.mark.parametrize("number", ["7; touch pwned", "../8", "$(touch pwned)"])
def test_what_is_no_number_of_a_pull_request_is_refused(repository, gh, number):
    ran = plan(repository, gh, pull_request=number)

    assert ran.code == 2
    assert (gh / "asked").read_text() == ""
    assert not list(repository.rglob("pwned"))


# --- the hooks


def commit(repository: Path, *hooks: str, args: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """A commit of everything with our hooks installed by pre-commit, the dq on the PATH in their place.

    pre-commit would install the hooks' package from the network; all else is as in our file.
    """
    ours = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    ours_here = {"language": "system", **({"args": args} if args else {})}
    chosen = [hook | ours_here for hook in ours if hook["id"] in hooks]
    assert len(chosen) == len(hooks)
    config = {"repos": [{"repo": "local", "hooks": chosen}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PRE_COMMIT_HOME": str(repository.parent / "pre-commit"),
        "GIT_AUTHOR_NAME": "Ana", "GIT_AUTHOR_EMAIL": "ana@example.com",
        "GIT_COMMITTER_NAME": "Ana", "GIT_COMMITTER_EMAIL": "ana@example.com",
    }  # fmt: skip
    commands = (
        ["pre-commit", "install"],
        ["git", "add", "-A"],
        ["git", "commit", "-q", "-m", "Change orders"],
    )
    for command in commands:
        done = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    return done


def test_a_commit_with_a_mistake_is_stopped_with_the_mend(repository):
    (repository / "contracts" / "orders.odcs.yaml").write_text(BAD)

    done = commit(repository, "dq-validate")

    assert done.returncode == 1
    assert 'Quote it: version: "1.10".' in done.stderr
    assert git(repository, "log", "--format=%s") == "Promise orders\n"


def test_a_commit_without_a_mistake_goes_through(repository):
    (repository / "contracts" / "orders.odcs.yaml").write_text(GOOD + "tags: [sales]\n")

    done = commit(repository, "dq-validate")

    assert done.returncode == 0, done.stderr
    assert git(repository, "log", "-1", "--format=%s") == "Change orders\n"


def test_a_changed_policy_is_judged_too(repository):
    (repository / "contracts" / "dq-policy.yaml").write_text("profile: strickt\n")

    done = commit(repository, "dq-validate", args=["contracts"])

    assert done.returncode == 1
    assert "the policy is invalid" in done.stderr


def test_a_commit_that_touches_no_contract_is_not_judged(repository):
    (repository / "readme.txt").write_text("hello")

    done = commit(repository, "dq-validate", "dq-fmt")

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("(no files to check)Skipped") == 2


def test_a_messy_contract_is_written_anew_and_the_second_commit_goes_through(repository):
    contract = repository / "contracts" / "orders.odcs.yaml"
    contract.write_text("tags:\n- sales  # ours\n" + GOOD)

    first = commit(repository, "dq-fmt")
    second = commit(repository, "dq-fmt")

    assert first.returncode == 1
    assert "files were modified by this hook" in first.stderr
    assert second.returncode == 0, second.stderr
    assert "tags:\n  - sales  # ours\n" in contract.read_text()


def test_a_file_whose_name_begins_with_a_dash_is_a_file_for_the_hook(repository):
    contract = repository / "--diff.odcs.yaml"
    contract.write_text("tags:\n- sales  # ours\n" + GOOD)

    done = commit(repository, "dq-fmt")

    assert done.returncode == 1
    assert "files were modified by this hook" in done.stderr
    assert "tags:\n  - sales  # ours\n" in contract.read_text()
