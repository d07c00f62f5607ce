"""dq as a process of an Airflow task or trigger, for Airflow 2.10 to 3.x.

Imports only Airflow and the standard library: dq may have an environment of its own, since Airflow 2 pins a
SQLAlchemy that dq cannot use.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from dq.contracts.check_result import Status
from dq.contracts.outcome import DeliveryError, ReadError, Severity, UsageError

try:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
except ImportError:  # before Airflow 3.1
    from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
try:
    from airflow.sdk import BaseOperator, BaseSensorOperator
except ImportError:  # Airflow 2
    from airflow.models import BaseOperator
    from airflow.sensors.base import BaseSensorOperator

__all__ = [
    "AirflowException", "AirflowFailException", "AirflowSkipException", "BaseOperator", "BaseSensorOperator",
    "Ended", "child_environment", "command_line", "failure", "options", "run_to_end", "terminate",
]  # fmt: skip

# Not retried: the data breaks its contract, or the task is configured wrongly.
_BREACH = "violates its contract"
_FINAL = {1: _BREACH, UsageError.exit_code: "is misconfigured"}
_RETRYABLE = {
    ReadError.exit_code: "could not be evaluated",
    DeliveryError.exit_code: "could not deliver all alerts",
}
# The environment of Airflow is not that of another interpreter, which would import Airflow's packages.
_OWN_PYTHON = ("PYTHONPATH", "PYTHONHOME")


class Ended(NamedTuple):
    """Exit code of a command, its stdout, and the lines of its stderr."""

    code: int
    printed: str
    stderr_lines: list[str]


def command_line(python: str | None, words: Sequence[str]) -> list[str]:
    """Return the command line of dq in this interpreter, by default Airflow's own.

    Raises AirflowFailException if the interpreter does not exist, or dq's dependencies are not installed.
    """
    # A dependency of dq that Airflow does not have.
    if python is None and find_spec("holidays") is None:
        raise AirflowFailException(
            "dq's dependencies are not installed in Airflow's environment. "
            "Pass python=, the interpreter of an environment that has dq."
        )
    if python is not None and not os.access(python, os.X_OK):
        raise AirflowFailException(
            f"python={python!r} is not an executable. Pass the interpreter of an environment that has dq."
        )
    return [python or sys.executable, "-P", "-m", "dq", *words]


def child_environment(python: str | None, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the process: Airflow's own and `env`, which takes precedence."""
    dropped = _OWN_PYTHON if python is not None else ()
    return {**{name: text for name, text in os.environ.items() if name not in dropped}, **env}


@lru_cache(maxsize=1)
def _slots(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:  # noqa: ARG001  # a semaphore has one loop
    """Return the limit of simultaneous processes of a triggerer, which may have thousands of triggers."""
    return asyncio.Semaphore((os.cpu_count() or 1) + 1)


async def run_to_end(
    words: Sequence[str], *, python: str | None, folder: str | None, env: Mapping[str, str], seconds: float
) -> Ended:
    """Run dq and return how it ended, without blocking the event loop.

    The process is killed if the caller is cancelled, and after `seconds`, which raises AirflowException.
    """
    command = command_line(python, words)
    async with _slots(asyncio.get_running_loop()):
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=child_environment(python, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), seconds)
        except TimeoutError:
            raise AirflowException(f"dq {words[0]} did not end within {seconds:g} seconds") from None
        finally:
            if process.returncode is None:
                terminate(process.pid, signal.SIGKILL)
                await process.wait()
    assert process.returncode is not None
    return Ended(
        process.returncode,
        out.decode(errors="replace"),
        [line.strip() for line in err.decode(errors="replace").splitlines()],
    )


def terminate(pid: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal to a process that was started in a session of its own, and to its children."""
    # It may have ended meanwhile.
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def options(values: Mapping[str, object]) -> list[str]:
    """Return options as `--name=value` words, so that no value is read as an option."""
    return [f"--{name}={value}" for name, value in values.items() if value not in (None, "")]


def failure(task: str, ended: Ended) -> AirflowException:
    """Return the exception that fails the task after a command that printed the JSON of `dq check`, if any.

    Exit codes 3 and 4 take precedence over 1, so the reports are searched for broken data: a retry checks
    only what was not checked yet, and would let broken data through.
    """
    code, reports = ended.code, _reports(ended.printed)
    results = [result for report in reports or () for result in report.get("results") or ()]
    broken = any(
        result["status"] == Status.FAIL and Severity(result["severity"]).blocks for result in results
    )
    # Python also ends with 1, without a report, e.g. if the interpreter does not have dq.
    started = code != 1 or reports is not None
    final = broken or (code in _FINAL and started)
    verdict = _BREACH if broken else _RETRYABLE.get(code, "ended unexpectedly")
    verdict = _FINAL[code] if final and not broken else verdict
    problems = [
        f"{result['message']}." for result in results if result["status"] in (Status.FAIL, Status.ERROR)
    ]
    notes = (
        [line for line in ended.stderr_lines if line.startswith("dq: ")]
        if code == DeliveryError.exit_code
        else []
    )
    details = " ".join([*problems[:5], *(notes or ended.stderr_lines)[-5:]])
    return (AirflowFailException if final else AirflowException)(f"{task} {verdict} (exit {code}): {details}")


def _reports(printed: str) -> list[dict[str, Any]] | None:
    """Return the reports of the JSON output, or None if it is not JSON."""
    try:
        document = json.loads(printed)
    except ValueError:
        return None
    return [report for report in document if isinstance(report, dict)] if isinstance(document, list) else []
