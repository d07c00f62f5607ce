"""`dq check` and `dq publish` as Airflow tasks, run in a subprocess or in the process of the task.

Results are stored and incidents opened as on the command line. A subprocess takes its JVM along when the task
is killed, and may use another Python environment, so that Airflow's own environment needs no Spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import Any, Literal

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from dq.contracts.outcome import DeliveryError, Severity, Status

# Not retried: the data breaks its contract, or the task is configured wrongly.
_BREACH = "violates its contract"
_FINAL = {1: _BREACH, 2: "is misconfigured"}
_RETRYABLE = {3: "could not be evaluated", 4: "could not deliver all alerts"}


class _Command(BaseOperator):
    """Base operator for one dq command. Exit codes 1 and 2 and broken data fail without retry.

    `folder` is the working folder with dq's settings and store; `python` an interpreter that has dq
    installed, by default Airflow's own; `env` are variables in addition to the worker's. `run_in="process"`
    saves the start of a subprocess: the command runs in the task itself, which then needs all of its
    dependencies.
    """

    template_fields: Sequence[str] = ("contract", "object_name", "partition", "server", "folder", "env")

    def __init__(
        self,
        *,
        contract: str,
        partition: Mapping[str, str] | None = None,
        object_name: str | None = None,
        server: str | None = None,
        folder: str | None = None,
        python: str | None = None,
        env: Mapping[str, str] | None = None,
        run_in: Literal["subprocess", "process"] = "subprocess",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if run_in not in ("subprocess", "process"):
            raise ValueError(f"run_in={run_in!r}: must be 'subprocess' or 'process'")
        if run_in == "process" and (python or env):
            raise ValueError("python and env need a separate process: remove run_in='process'")
        self.run_in = run_in
        self.contract = contract
        self.partition = dict(partition or {})
        self.object_name = object_name
        self.server = server
        self.folder = folder
        self.python = python
        self.env = dict(env or {})
        self._process: subprocess.Popen[str] | None = None

    def _run(self, name: str, options: Sequence[str]) -> Any:
        """Run the command and return its JSON output. Raises AirflowException if it fails."""
        shared = _options({"object": self.object_name, "server": self.server, "format": "json"})
        # A rendered template may begin with a dash; `--` keeps it from being read as an option.
        words = [name, *options, *shared, "--", self.contract]
        run = self._in_process if self.run_in == "process" else self._in_subprocess
        code, printed, stderr_lines = run(words)
        if code:
            raise _failure(f"dq {name} {self.contract}", code, printed, stderr_lines)
        return json.loads(printed)

    def _in_process(self, words: Sequence[str]) -> tuple[int, str, list[str]]:
        """Run the command in this process; return its exit code, stdout, and the lines of stderr."""
        from dq.cli.main import run

        out, err = StringIO(), StringIO()
        with chdir(self.folder) if self.folder else nullcontext(), redirect_stdout(out), redirect_stderr(err):
            code = run(list(words))
        stderr_lines = err.getvalue().splitlines()
        for line in stderr_lines:
            self.log.info("%s", line.rstrip())
        return code, out.getvalue(), [line.strip() for line in stderr_lines]

    def _in_subprocess(self, words: Sequence[str]) -> tuple[int, str, list[str]]:
        """Run the command in a subprocess and log its stderr while it runs; return as `_in_process`."""
        command = [self.python or sys.executable, "-P", "-m", "dq", *words]
        self._process = process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        stderr_lines: list[str] = []
        listener = threading.Thread(target=self._listen, args=(process, stderr_lines), daemon=True)
        listener.start()
        assert process.stdout is not None
        printed = process.stdout.read()
        code = process.wait()
        listener.join()
        return code, printed, stderr_lines

    def _listen(self, process: subprocess.Popen[str], stderr_lines: list[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            stderr_lines.append(line.strip())
            self.log.info("%s", line.rstrip())

    def on_kill(self) -> None:
        """Terminate the subprocess and its JVM."""
        if self._process is not None and self._process.poll() is None:
            # It may end between `poll` and the signal.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)


class DqCheckOperator(_Command):
    """Checks a delivery where it is stored, as `dq check` does; XCom gets the counts of each report.

    Without `partition`, everything delivered and not yet checked; `whole_table` checks all rows. `channel`
    receives alerts, e.g. `console` or `slack:#sales-data`; by default the channels of the contract.
    """

    template_fields: Sequence[str] = (*_Command.template_fields, "channel")

    def __init__(self, *, whole_table: bool = False, channel: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.whole_table = whole_table
        self.channel = channel

    def execute(self, context: Any) -> list[dict[str, object]]:  # noqa: ARG002  # Airflow's own signature
        """Run the check; return contract, object, partitions and counts of each report."""
        label = "/".join(f"{key}={value}" for key, value in self.partition.items())
        options = _options({"partition": label, "channel": self.channel})
        options += ["--all"] if self.whole_table and not label else []
        report_keys = ("contract", "object", "partitions", "counts")
        reports = [{name: report.get(name) for name in report_keys} for report in self._run("check", options)]
        if any(not isinstance(report["counts"], dict) for report in reports):
            raise AirflowFailException(f"dq check {self.contract} tested nothing: its output has no counts")
        return reports


class DqPublishOperator(_Command):
    """Publishes a complete delivery, as `dq publish` does, and returns the event sent to consumers.

    `audit` names a staged folder or branch; it is checked first and published only if it meets the contract.
    """

    template_fields: Sequence[str] = (*_Command.template_fields, "cycle", "rows", "audit")

    def __init__(
        self,
        *,
        cycle: str | None = None,
        rows: int | str | None = None,
        audit: str | None = None,
        redelivery: bool = False,
        catalog: str = "local",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.cycle = cycle
        self.rows = rows
        self.audit = audit
        self.redelivery = redelivery
        self.catalog = catalog

    def execute(self, context: Any) -> dict[str, object]:
        """Publish the delivery; a second run of the same task changes nothing."""
        options = _options({"cycle": self.cycle, "rows": self.rows, "audit": self.audit})
        options += [f"--partition={'='.join(pair)}" for pair in self.partition.items()]
        # A retry is the same run, so that a redelivery counts once.
        options += ["--redelivery", f"--run={context['run_id']}"] if self.redelivery else []
        event: dict[str, object] = self._run("publish", [*options, f"--catalog={self.catalog}"])
        return event


def _options(values: Mapping[str, object]) -> list[str]:
    """Return options as `--name=value` words, so that no value is read as an option."""
    return [f"--{name}={value}" for name, value in values.items() if value not in (None, "")]


def _failure(task: str, code: int, printed: str, stderr_lines: Sequence[str]) -> AirflowException:
    """Return the exception that fails the task. `printed` is the JSON of `dq check`.

    Exit codes 3 and 4 take precedence over 1, so the reports are searched for broken data: a retry checks
    only what was not checked yet, and would let broken data through.
    """
    results = _results(printed)
    broken = any(
        result["status"] == Status.FAIL and Severity(result["severity"]).blocks for result in results
    )
    final = broken or code in _FINAL
    verdict = _BREACH if broken else _FINAL.get(code) or _RETRYABLE.get(code, "ended unexpectedly")
    problems = [
        f"{result['message']}." for result in results if result["status"] in (Status.FAIL, Status.ERROR)
    ]
    notes = (
        [line for line in stderr_lines if line.startswith("dq: ")] if code == DeliveryError.exit_code else []
    )
    message = f"{task} {verdict} (exit {code}): {' '.join([*problems[:5], *(notes or stderr_lines)[-5:]])}"
    return (AirflowFailException if final else AirflowException)(message)


def _results(printed: str) -> list[dict[str, Any]]:
    try:
        reports = json.loads(printed)
    except ValueError:
        return []
    return [
        result for report in reports if isinstance(report, dict) for result in report.get("results") or ()
    ]
