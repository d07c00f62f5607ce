"""Projects of `dq init --ci`: repositories in which the commands of the written pipelines run and decide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from dq.cli.main import run

ANSWERS = (
    "--id", "orders", "--domain", "sales", "--owner", "ana@example.com", "--channel", "#sales",
    "--schedule", "30 7 * * *", "--tz", "Europe/Berlin",
)  # fmt: skip
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
# What the systems set; settings of a repository that was just created are empty.
GITHUB = {"github.base_ref": "main"}
FILES = {
    "github": {".github/workflows/contracts.yml"},
    "gitlab": {".gitlab-ci.yml"},
    "codepipeline": {"buildspec/validate.yml", "buildspec/register.yml", "codepipeline.yaml"},
}
SHARED = {"contracts/orders.odcs.yaml", "contracts/dq-policy.yaml", "requirements.txt", ".gitignore"}


@dataclass(frozen=True)
class Job:
    """Commands of a job, and its variables."""

    commands: list[str]
    variables: dict[str, str]


def github_job(project: Path, name: str) -> Job:
    """The `run` steps of a job of the workflow, with the variables of each."""
    workflow = yaml.safe_load((project / ".github/workflows/contracts.yml").read_text())

    def filled(values: Mapping[str, Any]) -> dict[str, str]:
        return {
            key: EXPRESSION.sub(lambda match: GITHUB.get(match[1], ""), str(value))
            for key, value in values.items()
        }

    steps = [step for step in workflow["jobs"][name]["steps"] if "run" in step]
    variables = filled(workflow["env"])
    for step in steps:
        variables |= filled(step.get("env", {}))
    return Job([step["run"] for step in steps], variables)


def gitlab_job(project: Path, name: str) -> Job:
    """The scripts of a job of the pipeline."""
    pipeline = yaml.safe_load((project / ".gitlab-ci.yml").read_text())
    job = pipeline[name]
    predefined = {
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_PROJECT_DIR": str(project),
        "AWS_ID_TOKEN": "token",
    }
    return Job(
        [*pipeline["default"]["before_script"], *job["script"]],
        {**pipeline["variables"], **job.get("variables", {}), **predefined},
    )


def codebuild_job(project: Path, name: str) -> Job:
    """The commands of a buildspec."""
    spec = yaml.safe_load((project / f"buildspec/{name}.yml").read_text())
    commands = [command for phase in spec["phases"].values() for command in phase["commands"]]
    variables = {**spec["env"].get("variables", {}), "CODEBUILD_WEBHOOK_BASE_REF": "refs/heads/main"}
    return Job(commands, variables)


JOBS: dict[str, Callable[[Path, str], Job]] = {
    "github": github_job, "gitlab": gitlab_job, "codepipeline": codebuild_job,
}  # fmt: skip


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=ana", "-c", "user.email=ana@example.com", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture(params=JOBS)
def ci(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def checkout(tmp_path: Path, ci: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone, as the CI system has it, of the project that was pushed to a server."""
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "ana")
        monkeypatch.setenv(f"{name}_EMAIL", "ana@example.com")
    assert run(["init", str(tmp_path / "project"), *ANSWERS, "--git", "--ci", ci]) == 0
    git(tmp_path, "clone", "--bare", "project", "origin.git")
    git(tmp_path, "clone", "origin.git", "checkout")
    return tmp_path / "checkout"


def run_job(project: Path, ci: str, name: str) -> subprocess.CompletedProcess[str]:
    """Run the commands of a job in one shell, which ends with the first that fails."""
    job = JOBS[ci](project, name)
    install, *commands = job.commands
    assert install == "pip install --quiet -r requirements.txt"
    environment = {
        "HOME": str(project.parent),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **job.variables,
        "CATALOG": "local",
    }
    assert job.variables["CATALOG"] == "glue" if name == "register" else True
    return subprocess.run(
        ["bash", "-e", "-c", "\n".join(commands)],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def change(project: Path, old: str, new: str) -> None:
    """Commit a change of the contract to a branch."""
    file = project / "contracts/orders.odcs.yaml"
    assert old in file.read_text()
    git(project, "checkout", "-q", "-B", "feature", "origin/main")
    file.write_text(file.read_text().replace(old, new))
    git(project, "commit", "-qam", "change")


def test_the_gate_passes_a_compatible_change_and_fails_a_breaking_one(checkout: Path, ci: str) -> None:
    unchanged = run_job(checkout, ci, "validate")
    assert unchanged.returncode == 0, unchanged

    # The contract is a draft, in which everything may change.
    change(checkout, "status: draft", "status: active")
    git(checkout, "push", "-q", "origin", "feature:main")

    more = "      - name: note\n        logicalType: string\n        physicalType: string\n    quality:"
    change(checkout, "    quality:", more)
    change_of_version = checkout / "contracts/orders.odcs.yaml"
    change_of_version.write_text(change_of_version.read_text().replace("version: 0.1.0", "version: 0.2.0"))
    git(checkout, "commit", "-qam", "version")
    compatible = run_job(checkout, ci, "validate")
    assert compatible.returncode == 0, compatible

    change(checkout, "logicalType: number\n        physicalType: decimal(18,2)", "logicalType: string")
    breaking = run_job(checkout, ci, "validate")
    assert breaking.returncode == 1, breaking
    assert "amount" in breaking.stdout


def test_after_the_merge_the_contract_is_registered_once(checkout: Path, ci: str) -> None:
    draft = run_job(checkout, ci, "register")
    assert (draft.returncode, "orders is draft, so it is not registered" in draft.stderr) == (0, True), draft
    change(checkout, "status: draft", "status: active")

    first = run_job(checkout, ci, "register")
    again = run_job(checkout, ci, "register")

    assert (first.returncode, again.returncode) == (0, 0), (first, again)
    assert "1 table: 1 create." in first.stdout
    assert "1 table: 1 no-op." in again.stdout
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""


def test_everything_is_committed_and_what_is_installed_is_this_version(checkout: Path, ci: str) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True)

    assert set(listed.stdout.split()) == SHARED | FILES[ci]
    [requirement] = [
        line for line in (checkout / "requirements.txt").read_text().splitlines() if not line.startswith("#")
    ]
    assert requirement == f"dq-contracts[aws,postgres]=={version('dq-contracts')}"


def test_files_that_exist_are_kept_and_named(
    tmp_path: Path, ci: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = sorted(FILES[ci] | SHARED)
    for name in mine:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"mine: {name}\n")

    assert run(["init", str(tmp_path), *ANSWERS, "--ci", ci, "--airflow"]) == 0

    assert [(tmp_path / name).read_text() for name in mine] == [f"mine: {name}\n" for name in mine]
    printed = capsys.readouterr().out
    assert sorted(re.findall(r"Kept (\S+), which exists\.", printed)) == sorted(
        str(tmp_path / name) for name in mine
    )
    assert re.findall(r"Wrote (\S+)\.", printed) == [str(tmp_path / "dags/orders_dag.py")]


def test_no_pipeline_runs_what_a_fork_sends_with_secrets(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path), *ANSWERS, "--ci", "github"]) == 0
    workflow = yaml.safe_load((tmp_path / ".github/workflows/contracts.yml").read_text())

    assert set(workflow[True]) == {"pull_request", "push"}  # YAML 1.1 reads `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    validate = yaml.safe_dump(workflow["jobs"]["validate"])
    assert "secrets." not in validate
    # An expression in a command would be replaced before the shell reads it.
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert [command for command in commands if "${{" in command] == []
    uses = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert [name for name in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []


def test_the_stack_of_codepipeline_passes_cfn_lint(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path), *ANSWERS, "--ci", "codepipeline"]) == 0

    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), tmp_path / "codepipeline.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout


def test_the_texts_of_the_answers_are_texts_in_the_dag(tmp_path: Path) -> None:
    assert run(["init", str(tmp_path), *ANSWERS, "--airflow"]) == 0

    code = (tmp_path / "dags/orders_dag.py").read_text()
    compile(code, "orders_dag.py", "exec")
    assert 'schedule="30 7 * * *"' in code
    assert 'tz="Europe/Berlin"' in code
    assert '"contract": "contracts/orders.odcs.yaml"' in code


def test_an_unknown_system_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", str(tmp_path), *ANSWERS, "--ci", "jenkins"]) == 2
    assert "jenkins" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
