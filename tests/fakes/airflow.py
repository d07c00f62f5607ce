"""Environments of Airflow, in which dq may be installed without its dependencies: `make test-airflow`.

`DQ_AIRFLOW` lists their interpreters. The tests themselves run in the environment of dq, as its users do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from fakes.airflow_worker import ANSWER

PYTHONS = [Path(name) for name in os.environ.get("DQ_AIRFLOW", "").split(os.pathsep) if name]
WORKER = Path(__file__).with_name("airflow_worker.py")
_LIMIT_SECONDS = 300


@dataclass(frozen=True)
class Airflow:
    """An environment of Airflow: a process that runs tasks, and the one folder in which it looks for DAGs.

    `separate` is true if dq's dependencies are not installed there.
    """

    python: Path
    version: str
    separate: bool
    settings: dict[str, str]
    process: subprocess.Popen[str]
    dags: Path

    @property
    def where(self) -> dict[str, str]:
        """The argument by which an operator finds dq, if it needs one."""
        return {"python": sys.executable} if self.separate else {}

    def ask(self, action: str, *arguments: object) -> tuple[Any, str]:
        """The answer of the worker, and its log."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([action, arguments]) + "\n")
        self.process.stdin.flush()
        late = Timer(_LIMIT_SECONDS, self.process.kill)
        late.start()
        log, answer = "", None
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                answer = json.loads(line.removeprefix(ANSWER))
                break
            log += line
        late.cancel()
        assert answer is not None, log
        return answer, log

    def run(
        self, project: Path, file: Path, day: str = "2026-05-11", variables: Mapping[str, str] | None = None
    ) -> tuple[dict[str, str], str]:
        """The states of the DAG's tasks after `dag.test()`, and its log."""
        shutil.copy(file, self.dags)
        own = {"DQ_PYTHON": sys.executable} if self.separate else {}
        return self.ask(
            "run_dag", file.stem, str(project), f"{day}T05:00:00+00:00", {**own, **(variables or {})}
        )

    def task(self, operator: str, context: dict[str, Any] | None = None, **arguments: object) -> Any:
        """The result of a task, or its error."""
        answer, _ = self.ask("run_task", operator, arguments, context or {})
        return answer


def settings(home: Path) -> dict[str, str]:
    """Variables of an Airflow with a database of its own."""
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    }
