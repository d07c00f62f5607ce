"""Environments of Airflow, in which dq may be installed without its dependencies: `make test-airflow`.

`DQ_AIRFLOW` lists their interpreters. The tests themselves run in the environment of dq, as its users do.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Self

from fakes.airflow_worker import ANSWER
from fakes.ports import free_port

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


class Deployment:
    """The daemons of an Airflow while the block runs; the test starts the triggerer, and may kill it."""

    def __init__(self, python: Path, version: str, home: Path, variables: Mapping[str, str]) -> None:
        (home / "dags").mkdir()
        self._python, self._log = python, (home / "daemons.log").open("a")
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._names = ["scheduler"]
        self._port: int | None = None
        self._variables = {
            **settings(home),
            **variables,
            # The executor of Airflow 2 starts tasks by this name.
            "PATH": f"{python.absolute().parent}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
        }
        if not version.startswith("2."):
            self._port = port = free_port()
            self._names = ["api-server", "scheduler", "dag-processor"]
            self._variables |= {
                "AIRFLOW__API__PORT": str(port),
                "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://localhost:{port}/execution/",
                "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test " * 4,
            }

    def __enter__(self) -> Self:
        self.airflow("db", "migrate")
        for name in self._names:
            self._daemons.append(self._start(name))
            if name == "api-server":
                self._wait_for_server()
        return self

    def _wait_for_server(self) -> None:
        """Wait until the API server answers: a task that the scheduler starts before fails."""
        deadline = time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("localhost", self._port or 0), timeout=1):
                return
            time.sleep(0.2)
        raise AssertionError(f"the API server does not answer: see {self._log.name}")

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            kill(daemon)
        self._log.close()

    def start_triggerer(self) -> subprocess.Popen[bytes]:
        triggerer = self._start("triggerer")
        self._daemons.append(triggerer)
        return triggerer

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._python, "-m", "airflow", name],
            env=self._variables,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def airflow(self, *words: str) -> str:
        """Output of Airflow's command line."""
        command = [self._python, "-m", "airflow", *words]
        ended = subprocess.run(
            command, env=self._variables, capture_output=True, text=True, check=False, timeout=_LIMIT_SECONDS
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def wait_for(self, state: str, dag: str, run: str) -> None:
        """Wait until the only task of a run is in this state."""
        seen, deadline = "", time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < deadline:
            printed = self.airflow("tasks", "states-for-dag-run", dag, run, "--output", "json")
            [task] = json.loads(printed[printed.index("[{") :])
            seen = task["state"]
            if seen == state:
                return
            ended = [daemon.args for daemon in self._daemons[: len(self._names)] if daemon.poll() is not None]
            assert not ended, f"{ended}: see {self._log.name}"
            assert seen not in ("failed", "success", "upstream_failed"), f"{seen}, not {state}"
            time.sleep(1)
        raise AssertionError(f"still {seen}, not {state}")


def kill(daemon: subprocess.Popen[bytes]) -> None:
    """Kill a daemon and its children, as a machine that is lost."""
    with suppress(ProcessLookupError):
        os.killpg(daemon.pid, signal.SIGKILL)
    daemon.wait()
