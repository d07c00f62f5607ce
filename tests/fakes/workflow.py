"""Runs the steps of a composite action as GitHub's runner would: inputs, expressions, environment files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")
CONDITION = re.compile(r"([\w.-]+) (==|!=) '([^']*)'")
CACHE = re.compile(r"actions/cache/(restore|save)@[0-9a-f]{40}")


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
    job = job or {}
    known = {f"inputs.{name}": value for name, value in given.items()} | {
        "github.action_path": str(action.parent),
        "github.event_name": job.get("GITHUB_EVENT_NAME", "pull_request"),
        "github.sha": job.get("GITHUB_SHA", ""),
        "runner.temp": str(temp),
    }
    temp.mkdir(exist_ok=True)
    files = {name: temp / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    code, log = 0, ""
    for step in described["runs"]["steps"]:
        condition = step.get("if", "").removeprefix("always() && ")
        if (code and condition == step.get("if", "")) or not _holds(condition, known):
            continue
        if "uses" in step:
            _cache(step, temp.parent / "caches", known)
            continue
        failed, said = _step(step, workspace, temp, files, known, job)
        code = code or failed
        log += said
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            known[f"steps.{step['id']}.outputs.{name}"] = value
    outputs = {name: _filled(one["value"], known) for name, one in described["outputs"].items()}
    return Ran(code, log, files["GITHUB_STEP_SUMMARY"].read_text(), outputs)


def _cache(step: dict[str, Any], caches: Path, known: dict[str, str]) -> None:
    """Restores or saves a folder as actions/cache does: a key is written once."""
    path, key = (_filled(step["with"][name], known) for name in ("path", "key"))
    (kind,) = CACHE.fullmatch(step["uses"]).groups()
    if kind == "save":
        if not (caches / key).exists():
            shutil.copytree(path, caches / key)
        return
    known[f"steps.{step['id']}.outputs.cache-hit"] = str((caches / key).exists()).lower()
    prefix = _filled(step["with"]["restore-keys"], known)
    others = (
        [] if not caches.exists() else [cache for cache in caches.iterdir() if cache.name.startswith(prefix)]
    )
    newest = sorted(others, key=lambda cache: (cache.name == key, cache.stat().st_ctime_ns))
    if newest:
        shutil.copytree(newest[-1], path, dirs_exist_ok=True)


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


def _holds(condition: str, known: dict[str, str]) -> bool:
    for part in condition.split(" && ") if condition else ():
        found = CONDITION.fullmatch(part)
        assert found, f"not a condition that this runner knows: {condition}"
        # What a step that did not run would have left is empty.
        value = known.get(found[1], "") if found[1].startswith("steps.") else known[found[1]]
        if (value == found[3]) is not (found[2] == "=="):
            return False
    return True


def _filled(text: str, known: dict[str, str]) -> str:
    return EXPRESSION.sub(lambda found: known.get(found[1], ""), str(text))
