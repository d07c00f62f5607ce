"""`dq check` and `dq publish` as tasks: each runs the command, in a process of its own or in the task's.

Results are kept and incidents opened as everywhere. A process of its own takes its JVM along when the task is
killed, and may be that of another environment, so that Airflow's own needs no Spark.
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

from dq.contracts.outcome import Severity, Status, Undeliverable

# A second try would find the same: the data breaks its contract, or the task is set up wrongly.
_BROKEN = "breaks its contract"
_FINAL = {1: _BROKEN, 2: "is set up wrongly"}
_LATER = {3: "could not be evaluated", 4: "could not tell everybody"}


class _Command(BaseOperator):
    """One command of dq. Exit codes 1 and 2 and broken data fail for good; all else may be tried again.

    `folder` is the working folder, where dq's settings and store are; `python` an interpreter that has dq,
    by default Airflow's own; `env` variables beside those of the worker. `run_in="process"` saves the start
    of another process: the command is run by the task itself, whose environment then needs all that it needs.
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
            raise ValueError(f"run_in={run_in!r}: write 'subprocess' or 'process'")
        if run_in == "process" and (python or env):
            raise ValueError("python and env are for a process of its own: leave out run_in='process'")
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
        """What the command prints as JSON. Raises AirflowException where it does not end well."""
        shared = _options({"object": self.object_name, "server": self.server, "format": "json"})
        # A rendered template may begin with a dash: it is a contract all the same, and no option.
        words = [name, *options, *shared, "--", self.contract]
        run = self._in_process if self.run_in == "process" else self._in_subprocess
        code, printed, said = run(words)
        if code:
            raise _failure(f"dq {name} {self.contract}", code, printed, said)
        return json.loads(printed)

    def _in_process(self, words: Sequence[str]) -> tuple[int, str, list[str]]:
        """The exit code, and what the command wrote to stdout and, line by line, to stderr."""
        from dq.cli.main import run

        out, err = StringIO(), StringIO()
        with chdir(self.folder) if self.folder else nullcontext(), redirect_stdout(out), redirect_stderr(err):
            code = run(list(words))
        said = err.getvalue().splitlines()
        for line in said:
            self.log.info("%s", line.rstrip())
        return code, out.getvalue(), [line.strip() for line in said]

    def _in_subprocess(self, words: Sequence[str]) -> tuple[int, str, list[str]]:
        """The same of a process of its own, whose lines are logged as they come."""
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
        said: list[str] = []
        listener = threading.Thread(target=self._listen, args=(process, said), daemon=True)
        listener.start()
        assert process.stdout is not None
        printed = process.stdout.read()
        code = process.wait()
        listener.join()
        return code, printed, said

    def _listen(self, process: subprocess.Popen[str], said: list[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.strip())
            self.log.info("%s", line.rstrip())

    def on_kill(self) -> None:
        """Ends the process, and the JVM below it."""
        if self._process is not None and self._process.poll() is None:
            # It may end between this look and the signal.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)


class DqCheckOperator(_Command):
    """Tests a delivery where it lies, as `dq check` does; the rows of XCom are the counts of each report.

    Without a `partition` all that was delivered and not tested yet; `whole_table` tests everything. `channel`
    is who is told of a breach, such as `console` or `slack:#sales-data`; by default those whom the contract
    names.
    """

    template_fields: Sequence[str] = (*_Command.template_fields, "channel")

    def __init__(self, *, whole_table: bool = False, channel: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.whole_table = whole_table
        self.channel = channel

    def execute(self, context: Any) -> list[dict[str, object]]:  # noqa: ARG002  # Airflow's own signature
        """Runs the check; gives contract, object, partitions and counts of each report."""
        label = "/".join(f"{key}={value}" for key, value in self.partition.items())
        options = _options({"partition": label, "channel": self.channel})
        options += ["--all"] if self.whole_table and not label else []
        kept = ("contract", "object", "partitions", "counts")
        reports = [{name: report.get(name) for name in kept} for report in self._run("check", options)]
        if any(not isinstance(report["counts"], dict) for report in reports):
            raise AirflowFailException(f"dq check {self.contract} tested nothing: it printed no counts")
        return reports


class DqPublishOperator(_Command):
    """Says that a delivery is complete, as `dq publish` does; gives the event that consumers hear.

    `audit` names what is staged, which is then tested first and published only if it keeps the contract.
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
        """Publishes; a second run of the same task changes nothing."""
        options = _options({"cycle": self.cycle, "rows": self.rows, "audit": self.audit})
        options += [f"--partition={'='.join(pair)}" for pair in self.partition.items()]
        # A retry is the same run, so that a redelivery counts once.
        options += ["--redelivery", f"--run={context['run_id']}"] if self.redelivery else []
        made: dict[str, object] = self._run("publish", [*options, f"--catalog={self.catalog}"])
        return made


def _options(values: Mapping[str, object]) -> list[str]:
    """Options with their values, each as one word, so that no value is read as an option of its own."""
    return [f"--{name}={value}" for name, value in values.items() if value not in (None, "")]


def _failure(task: str, code: int, printed: str, said: Sequence[str]) -> AirflowException:
    """What the task ends with. `printed` is the JSON of `dq check`, `said` what stood beside it.

    Exit codes 3 and 4 go before 1: the reports tell whether data was broken as well. It would not be tested
    again by a second try, which tests what was not tested yet, and would let it through.
    """
    results = _results(printed)
    broken = any(one["status"] == Status.FAIL and Severity(one["severity"]).blocks for one in results)
    final = broken or code in _FINAL
    verdict = _BROKEN if broken else _FINAL.get(code) or _LATER.get(code, "ended unexpectedly")
    wrong = [f"{one['message']}." for one in results if one["status"] in (Status.FAIL, Status.ERROR)]
    notes = [line for line in said if line.startswith("dq: ")] if code == Undeliverable.exit_code else []
    message = f"{task} {verdict} (exit {code}): {' '.join([*wrong[:5], *(notes or said)[-5:]])}"
    return (AirflowFailException if final else AirflowException)(message)


def _results(printed: str) -> list[dict[str, Any]]:
    try:
        reports = json.loads(printed)
    except ValueError:
        return []
    return [one for report in reports if isinstance(report, dict) for one in report.get("results") or ()]
