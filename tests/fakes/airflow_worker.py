"""Runs in an environment of Airflow: reads requests, a line of JSON each, and answers with one on stdout.

Imports nothing of the tests, since dq's dependencies may be missing here.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
import threading
import time
import traceback
from contextlib import chdir, suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any

ANSWER = "ANSWER "


def run_dag(name: str, project: str, at: str, variables: dict[str, str]) -> dict[str, str]:
    """The states of the DAG's tasks after `dag.test()`."""
    os.environ |= {"DQ_PROJECT": project, **variables}
    sys.modules.pop(name, None)
    dag = importlib.import_module(name).dag
    date = "logical_date" if "logical_date" in inspect.signature(dag.test).parameters else "execution_date"
    with chdir(project):
        run = dag.test(**{date: datetime.fromisoformat(at)})
    return {task.task_id: str(task.state) for task in run.get_task_instances()}


def run_task(operator: str, arguments: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """The result of the operator's `execute`, or the error that fails the task, and whether it is final."""
    from dq import airflow
    from dq.airflow.command import AirflowException, AirflowFailException

    before = os.getcwd()  # noqa: PTH109
    try:
        result = getattr(airflow, operator)(task_id="task", **arguments).execute(context)
    except AirflowException as error:
        return {"error": str(error), "final": isinstance(error, AirflowFailException)}
    except ValueError as error:
        return {"error": str(error), "final": None}
    assert os.getcwd() == before  # noqa: PTH109
    return {"result": result}


def run_task_with(
    variables: dict[str, str],
    operator: str,
    arguments: dict[str, Any],
    context: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """As `run_task`, in a process with these variables, and context by attributes."""
    before = dict(os.environ)
    os.environ |= variables
    try:
        objects = {name: SimpleNamespace(**values) for name, values in (context or {}).items()}
        return run_task(operator, arguments, objects)
    finally:
        os.environ.clear()
        os.environ |= before


def kill_task(variables: dict[str, str], operator: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """As `run_task_with`; the task is killed as soon as it has started a job."""
    from dq import airflow
    from dq.airflow.command import AirflowException

    os.environ |= variables
    task = getattr(airflow, operator)(task_id="task", **arguments)

    def kill() -> None:
        while task._job_run is None:
            time.sleep(0.1)
        task.on_kill()

    threading.Thread(target=kill, daemon=True).start()
    try:
        return {"result": task.execute({})}
    except AirflowException as error:
        return {"error": str(error)}


def tasks_of(code: str) -> list[str]:
    """The ids of the tasks that this code adds to a DAG, in their order."""
    from airflow import DAG

    with DAG("page", schedule=None) as dag:
        exec(code, {})
    return [task.task_id for task in dag.topological_sort()]


def run_trigger(path: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The trigger from its serialised form: that form again, and the first event."""
    module, _, name = path.rpartition(".")
    trigger = getattr(importlib.import_module(module), name)(**arguments)
    path, kwargs = trigger.serialize()

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    return {"serialized": [path, kwargs], "event": asyncio.run(first())}


if __name__ == "__main__":
    sys.path.insert(0, os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    with suppress(ImportError):
        # Airflow 2 needs this table to delete an earlier run.
        import airflow.providers.fab.auth_manager.models  # noqa: F401
    for line in sys.stdin:
        action, arguments = json.loads(line)
        answer: object = None
        try:
            answer = globals()[action](*arguments)
        except Exception:  # noqa: BLE001  # the log goes to the test
            traceback.print_exc()
        sys.stdout.write(ANSWER + json.dumps(answer) + "\n")
        sys.stdout.flush()
