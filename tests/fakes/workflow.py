"""Runs the steps of a composite action as GitHub's runner would: inputs, expressions, environment files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
CONDITION = re.compile(r"([\w.-]+) (==|!=) '([^']*)'")


@dataclass(frozen=True)
class Ran:
    """What one run of the action left: its exit code, log, step summary and outputs."""

    code: int
    log: str
    summary: str
    outputs: dict[str, str]


def run(
    action: Path, workspace: Path, temp: Path, job: Mapping[str, str] | None = None, **inputs: str
) -> Ran:
    """Runs the action in the workspace; inputs are by their names with `_` for `-`.

    `job` are variables of the job, which the steps see unless they set them. The programs beside this
    Python are on the PATH, unless the job has another one.
    """
    described = yaml.safe_load(action.read_text())
    given = {name: str(one["default"]) for name, one in described["inputs"].items()}
    unknown = {name.replace("_", "-") for name in inputs} - set(given)
    assert not unknown, f"the action has no inputs {unknown}"
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    known = {f"inputs.{name}": value for name, value in given.items()} | {
        "github.action_path": str(action.parent)
    }
    temp.mkdir(exist_ok=True)
    files = {name: temp / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    code, log = 0, ""
    for step in described["runs"]["steps"]:
        if code or not _holds(step.get("if"), known):
            continue
        code, said = _step(step, workspace, temp, files, known, job or {})
        log += said
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value
    outputs = {name: _filled(one["value"], known) for name, one in described["outputs"].items()}
    return Ran(code, log, files["GITHUB_STEP_SUMMARY"].read_text(), outputs)


def _step(
    step: dict[str, Any],
    workspace: Path,
    temp: Path,
    files: dict[str, Path],
    known: dict[str, str],
    job: Mapping[str, str],
) -> tuple[int, str]:
    assert step["shell"] == "bash"
    assert not EXPRESSION.search(step["run"]), "an input as text of a script can run anything"
    added = [*files["GITHUB_PATH"].read_text().splitlines(), str(Path(sys.executable).parent)]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "DQ_"))},
        "PATH": os.pathsep.join([*added, os.environ["PATH"]]),
        **job,
        **{name: str(file) for name, file in files.items()},
        "RUNNER_TEMP": str(temp),
        "GITHUB_WORKSPACE": str(workspace),
        **{name: _filled(value, known) for name, value in step.get("env", {}).items()},
    }
    script = temp / "step.sh"
    script.write_text(step["run"])
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def _holds(condition: str | None, known: dict[str, str]) -> bool:
    if condition is None:
        return True
    found = CONDITION.fullmatch(condition)
    assert found, f"not a condition that this runner knows: {condition}"
    return (known[found[1]] == found[3]) is (found[2] == "==")


def _filled(text: str, known: dict[str, str]) -> str:
    return EXPRESSION.sub(lambda found: known.get(found[1], ""), str(text))
