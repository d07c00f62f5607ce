"""`dq check` and `dq publish` as Airflow tasks, run in a subprocess or in the process of the task.

Results are stored and incidents opened as on the command line. A subprocess takes its JVM along when the task
is killed, and may use another Python environment, so that Airflow's own needs neither Spark nor dq's
dependencies.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, Literal

from dq.airflow.command import (
    AirflowFailException,
    BaseOperator,
    Ended,
    child_environment,
    command_line,
    failure,
    options,
    terminate,
)


class CommandOperator(BaseOperator):
    """Base of operators that run dq in a process.

    `folder` is the working folder with dq's settings and store; `python` an interpreter that has dq
    installed, by default Airflow's own; `env` are variables in addition to the worker's.
    """

    template_fields: Sequence[str] = ("folder", "env")

    def __init__(
        self,
        *,
        folder: str | None = None,
        python: str | None = None,
        env: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.folder = folder
        self.python = python
        self.env = dict(env or {})
        self._process: subprocess.Popen[str] | None = None

    def _in_subprocess(self, words: Sequence[str]) -> Ended:
        """Run the command in a subprocess and log its stderr while it runs."""
        self._process = process = subprocess.Popen(
            command_line(self.python, words),
            cwd=self.folder,
            env=child_environment(self.python, self.env),
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
        return Ended(code, printed, stderr_lines)

    def _listen(self, process: subprocess.Popen[str], stderr_lines: list[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            stderr_lines.append(line.strip())
            self.log.info("%s", line.rstrip())

    def on_kill(self) -> None:
        """Terminate the subprocess and its JVM."""
        if self._process is not None and self._process.poll() is None:
            terminate(self._process.pid)


class _ContractOperator(CommandOperator):
    """Base operator for one command on a contract. Exit codes 1 and 2 and broken data fail without retry.

    `run_in="process"` saves the start of a subprocess: the command runs in the task itself, which then needs
    all of its dependencies.
    """

    template_fields: Sequence[str] = (
        *CommandOperator.template_fields, "contract", "object_name", "partition", "server",
    )  # fmt: skip

    def __init__(
        self,
        *,
        contract: str,
        partition: Mapping[str, str] | None = None,
        object_name: str | None = None,
        server: str | None = None,
        run_in: Literal["subprocess", "process"] = "subprocess",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if run_in not in ("subprocess", "process"):
            raise ValueError(f"run_in={run_in!r}: must be 'subprocess' or 'process'")
        if run_in == "process" and (self.python or self.env):
            raise ValueError("python and env need a separate process: remove run_in='process'")
        self.run_in = run_in
        self.contract = contract
        self.partition = dict(partition or {})
        self.object_name = object_name
        self.server = server

    def _run(self, name: str, options_: Sequence[str]) -> Any:
        """Run the command and return its JSON output. Raises AirflowException if it fails."""
        shared = options({"object": self.object_name, "server": self.server, "format": "json"})
        # A rendered template may begin with a dash; `--` keeps it from being read as an option.
        words = [name, *options_, *shared, "--", self.contract]
        ended = (self._in_process if self.run_in == "process" else self._in_subprocess)(words)
        if ended.code:
            raise failure(f"dq {name} {self.contract}", ended)
        return json.loads(ended.printed)

    def _in_process(self, words: Sequence[str]) -> Ended:
        """Run the command in this process and log its stderr."""
        try:
            from dq.cli.main import run
        except ImportError as error:
            raise AirflowFailException(
                f"run_in='process' needs dq's dependencies in Airflow's environment: {error}. "
                "Install them, or pass python= instead."
            ) from error

        out, err = StringIO(), StringIO()
        with chdir(self.folder) if self.folder else nullcontext(), redirect_stdout(out), redirect_stderr(err):
            code = run(list(words))
        stderr_lines = err.getvalue().splitlines()
        for line in stderr_lines:
            self.log.info("%s", line.rstrip())
        return Ended(code, out.getvalue(), [line.strip() for line in stderr_lines])


class DqCheckOperator(_ContractOperator):
    """Checks a delivery where it is stored, as `dq check` does; XCom gets the counts of each report.

    Without `partition`, everything delivered and not yet checked; `whole_table` checks all rows. `channel`
    receives alerts, e.g. `console` or `slack:#sales-data`; by default the channels of the contract.
    """

    template_fields: Sequence[str] = (*_ContractOperator.template_fields, "channel")

    def __init__(self, *, whole_table: bool = False, channel: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.whole_table = whole_table
        self.channel = channel

    def execute(self, context: Any) -> list[dict[str, object]]:  # noqa: ARG002  # Airflow's own signature
        """Run the check; return contract, object, partitions and counts of each report."""
        label = "/".join(f"{key}={value}" for key, value in self.partition.items())
        words = options({"partition": label, "channel": self.channel})
        words += ["--all"] if self.whole_table and not label else []
        return summaries(f"dq check {self.contract}", self._run("check", words))


class DqPublishOperator(_ContractOperator):
    """Publishes a complete delivery, as `dq publish` does, and returns the event sent to consumers.

    `audit` names a staged folder or branch; it is checked first and published only if it meets the contract.
    """

    template_fields: Sequence[str] = (*_ContractOperator.template_fields, "cycle", "rows", "audit")

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
        words = options({"cycle": self.cycle, "rows": self.rows, "audit": self.audit})
        words += [f"--partition={'='.join(pair)}" for pair in self.partition.items()]
        # A retry is the same run, so that a redelivery counts once.
        words += ["--redelivery", f"--run={context['run_id']}"] if self.redelivery else []
        event: dict[str, object] = self._run("publish", [*words, f"--catalog={self.catalog}"])
        return event


def summaries(task: str, reports: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return contract, object, partitions and counts of each report, as XCom stores them.

    Raises AirflowFailException for a report without counts, e.g. of a dry run.
    """
    report_keys = ("contract", "object", "partitions", "counts")
    short = [{name: report.get(name) for name in report_keys} for report in reports]
    if any(not isinstance(report["counts"], dict) for report in short):
        raise AirflowFailException(f"{task} tested nothing: its output has no counts")
    return short
