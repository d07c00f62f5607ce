"""The example DAG and the sensor in a real Airflow, with its own database in SQLite: `make test-airflow`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer

import pytest
from fakes.command import Place, contract

pytest.importorskip("airflow", reason="Airflow has an environment of its own: make test-airflow")

EXAMPLE = Path(__file__).parents[2] / "examples" / "airflow" / "orders_dag.py"
# A first `dag.test()` takes ten seconds of a processor for what the next in its process finds there.
SERVE = """\
import importlib, json, os, sys, traceback
from datetime import datetime
sys.path.insert(0, os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
for line in sys.stdin:
    name, project, at = json.loads(line)
    os.environ["DQ_PROJECT"] = project
    os.chdir(project)
    states = {}
    try:
        run = importlib.import_module(name).dag.test(logical_date=datetime.fromisoformat(at))
        states = {one.task_id: str(one.state) for one in run.get_task_instances()}
    except Exception:
        traceback.print_exc()
    sys.modules.pop(name, None)
    print("STATES " + json.dumps(states), flush=True)
"""
DAY = "2026-05-10"
AS_TEXT = {
    "physicalType: bigint}": "physicalType: bigint, logicalTypeOptions: {minimum: 1}}",
    "format: parquet": "format: csv",
}
TOLD_HERE = {"tool: slack": "tool: console"}


@dataclass(frozen=True)
class Scheduler:
    """The process, and the one folder in which it looks for DAGs."""

    process: subprocess.Popen[str]
    dags: Path


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """A process of Airflow with a database of its own, in which one DAG after the other is run."""
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "dags").mkdir()
    settings = {
        **os.environ,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    }
    migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
    done = subprocess.run(migrate, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield Scheduler(process, folder / "dags")
        process.kill()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A registry of two products, of which `orders` has come for the day, and `sales` is written."""
    place = Place(tmp_path)
    for name in ("orders", "sales"):
        place.put(f"{name}.odcs.yaml", contract(name, **AS_TEXT, **TOLD_HERE))
        folder = tmp_path / "lake" / name / f"day={DAY}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text("id\n1\n2\n")
    arrived = datetime(2026, 5, 11, 5, tzinfo=UTC).timestamp()
    marker = tmp_path / "lake" / "orders" / f"day={DAY}" / "_SUCCESS"
    marker.touch()
    os.utime(marker, (arrived, arrived))
    registered = place.dq("register", "sales.odcs.yaml", "--apply")
    assert registered.code == 0, registered
    return tmp_path


def ran(
    scheduler: Scheduler, project: Path, file: Path, day: str = "2026-05-11"
) -> tuple[dict[str, str], str]:
    """The states of the DAG's tasks after `dag.test()`, and its log."""
    process = scheduler.process
    assert process.stdin is not None
    assert process.stdout is not None
    shutil.copy(file, scheduler.dags)
    process.stdin.write(json.dumps([file.stem, str(project), f"{day}T05:00:00+00:00"]) + "\n")
    process.stdin.flush()
    late = Timer(300, process.kill)
    late.start()
    log, states = "", ""
    for line in process.stdout:
        if line.startswith("STATES "):
            states = line.removeprefix("STATES ")
            break
        log += line
    late.cancel()
    assert states not in ("", "{}\n"), log
    return json.loads(states), log


def test_what_came_is_gated_and_published(scheduler: Scheduler, project: Path) -> None:
    states, log = ran(scheduler, project, EXAMPLE)

    assert states == dict.fromkeys(("wait", "gate", "publish"), "success"), log
    (line,) = (project / ".dq" / "published.jsonl").read_text().splitlines()
    assert json.loads(line)["data"]["partition"] == {"day": DAY}


def test_a_bad_partition_fails_the_gate_and_is_not_published(scheduler: Scheduler, project: Path) -> None:
    (project / "lake" / "sales" / f"day={DAY}" / "part.csv").write_text("id\n1\n-5\n")

    states, log = ran(scheduler, project, EXAMPLE)

    assert states == {"wait": "success", "gate": "failed", "publish": "upstream_failed"}, log
    assert "violates its contract (exit 1): sales.id: 1 of 2 rows are less than 1" in log
    assert not (project / ".dq" / "published.jsonl").exists()


@pytest.fixture
def unreached(tmp_path: Path) -> Path:
    """Broken data of a contract whose Slack nobody set up."""
    place = Place(tmp_path)
    place.put("sales.odcs.yaml", contract("sales", **AS_TEXT))
    place.put(f"lake/sales/day={DAY}/part.csv", "id\n1\n-5\n")
    return tmp_path


def test_broken_data_is_not_tried_again_where_nobody_could_be_told(unreached: Path) -> None:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from dq.airflow import DqCheckOperator

    gate = DqCheckOperator(
        task_id="gate", contract="sales.odcs.yaml", partition={"day": DAY}, folder=str(unreached)
    )
    with pytest.raises(AirflowFailException) as broken:
        gate.execute({})
    assert "violates its contract (exit 4): sales.id: 1 of 2 rows are less than 1" in str(broken.value)
    assert "cannot send through slack: Alerts in Slack need a bot token." in str(broken.value)

    # Mended, and the first alert still waits: a retry may find Slack set up.
    Place(unreached).put(f"lake/sales/day={DAY}/part.csv", "id\n1\n5\n")
    with pytest.raises(AirflowException) as untold:
        gate.execute({})
    assert not isinstance(untold.value, AirflowFailException)
    assert "could not deliver all alerts (exit 4): dq: cannot send through slack" in str(untold.value)


@pytest.mark.parametrize("run_in", ["subprocess", "process"])
def test_the_channel_of_a_task_is_told_and_not_that_of_the_contract(unreached: Path, run_in: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from dq.airflow import DqCheckOperator

    gate = DqCheckOperator(
        task_id="gate",
        contract="sales.odcs.yaml",
        folder=str(unreached),
        whole_table=True,
        channel="console",
        run_in=run_in,
    )
    with pytest.raises(AirflowFailException, match=r"violates its contract \(exit 1\)"):
        gate.execute({})


@pytest.mark.parametrize("contract", ["--dry-run", "--help", "--channel=file:/tmp/x", "-"])
def test_t19_a_contract_that_looks_like_an_option_is_a_contract_and_fails(
    project: Path, contract: str
) -> None:
    from airflow.sdk.exceptions import AirflowException

    from dq.airflow import DqCheckOperator, DqPublishOperator

    for operator in (DqCheckOperator, DqPublishOperator):
        task = operator(task_id="gate", contract=contract, partition={"day": DAY}, folder=str(project))
        with pytest.raises(AirflowException, match="does not exist"):
            task.execute({"run_id": "manual"})


@pytest.mark.parametrize("run_in", ["subprocess", "process"])
def test_t19_a_value_that_looks_like_an_option_is_a_value(project: Path, run_in: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from dq.airflow import DqCheckOperator, DqPublishOperator

    checked = DqCheckOperator(
        task_id="gate",
        contract="sales.odcs.yaml",
        object_name="--dry-run",
        folder=str(project),
        run_in=run_in,
    )
    with pytest.raises(AirflowFailException, match="no object '--dry-run' in these contracts"):
        checked.execute({})
    published = DqPublishOperator(
        task_id="publish", contract="sales.odcs.yaml", rows="--help", folder=str(project), run_in=run_in
    )
    with pytest.raises(AirflowFailException, match=r"is misconfigured \(exit 2\)"):
        published.execute({})
    assert not (project / ".dq" / "published.jsonl").exists()


def test_a_task_publishes_in_its_own_process(project: Path) -> None:
    from dq.airflow import DqPublishOperator

    tasks = [
        DqPublishOperator(
            task_id="publish",
            contract="sales.odcs.yaml",
            partition={"day": DAY},
            folder=str(project),
            run_in=run_in,
        )
        for run_in in ("process", "subprocess")
    ]
    here = Path.cwd()
    first, second = (task.execute({"run_id": "manual"}) for task in tasks)

    assert first["done"] == ["partition", "marker", "receipt", "notify"]
    assert second["done"] == []
    assert Path.cwd() == here
    with pytest.raises(ValueError, match="python and env need a separate process"):
        DqPublishOperator(task_id="a", contract="a", run_in="process", env={"A": "b"})
    with pytest.raises(ValueError, match="must be 'subprocess' or 'process'"):
        DqPublishOperator(task_id="a", contract="a", run_in="thread")


def test_t19_an_answer_without_counts_is_no_passed_check(project: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from dq.airflow import DqCheckOperator

    # An interpreter that makes a dry run of every check.
    python = project / "python"
    python.write_text(f'#!/bin/sh\na="$1 $2 $3"; shift 4\nexec "{sys.executable}" $a check --dry-run "$@"\n')
    python.chmod(0o755)
    gate = DqCheckOperator(
        task_id="gate", contract="sales.odcs.yaml", folder=str(project), whole_table=True, python=str(python)
    )

    with pytest.raises(AirflowFailException, match="tested nothing: its output has no counts"):
        gate.execute({})


def test_what_did_not_come_fails_the_sensor_with_the_reason(scheduler: Scheduler, project: Path) -> None:
    states, log = ran(scheduler, project, EXAMPLE, "2026-05-13")

    assert states == {"wait": "failed", "gate": "upstream_failed", "publish": "upstream_failed"}, log
    assert "Nothing arrived; given up" in log


WAITING = """\
import os
from datetime import datetime
from airflow.sdk import DAG
from dq.airflow import DqDeliverySensor

with DAG("{name}", schedule=None, start_date=datetime(2026, 1, 1)) as dag:
    DqDeliverySensor(
        task_id="wait", contract="orders.odcs.yaml", due="{due}", folder=os.environ["DQ_PROJECT"],
        poke_interval=1, deferrable={deferrable},
    )
"""


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_sensor_that_waits_ends_with_the_deadline_of_the_contract(
    scheduler: Scheduler, tmp_path: Path, deferrable: bool
) -> None:
    # Due two minutes ago, and told to be missing some seconds from now.
    now = datetime.now(UTC)
    due = now.replace(second=0, microsecond=0) - timedelta(minutes=2)
    grace = int((now - due).total_seconds()) - 60 + 12
    parts = {"0 6 * * *": "* * * * *", "30m": f"{grace}s", "{due - 1d:%F}": "{due:%FT%H-%M}"}
    Place(tmp_path).put("orders.odcs.yaml", contract("orders", **parts))
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    file = Place(tmp_path).put(
        f"waiting_{deferrable}.py",
        WAITING.format(name=f"w_{deferrable}", due=due.isoformat(), deferrable=deferrable),
    )

    states, log = ran(scheduler, tmp_path, file)

    assert states == {"wait": "failed"}, log
    assert "Nothing arrived by" in log
    assert datetime.now(UTC) > due + timedelta(seconds=grace + 60)


def test_a_trigger_goes_on_from_what_it_was_serialised_to(tmp_path: Path) -> None:
    from airflow._shared.module_loading import import_string

    from dq.airflow import DeliveryTrigger

    Place(tmp_path).put("orders.odcs.yaml", contract("orders"))
    due = "2026-05-11T06:00:00+00:00"
    made = DeliveryTrigger(
        str(tmp_path / "orders.odcs.yaml"),
        "orders",
        "daily",
        due,
        "2026-05-11T06:31:00+00:00",
        folder=str(tmp_path),
    )

    path, arguments = made.serialize()
    again = import_string(path)(**json.loads(json.dumps(arguments)))

    assert again.serialize() == made.serialize()
    assert again.look().due_at == datetime.fromisoformat(due)


def test_the_tasks_of_the_page_make_a_dag() -> None:
    from airflow.sdk import DAG

    page = (Path(__file__).parents[2] / "docs" / "how-to" / "airflow.md").read_text()
    code = page.split("```python not-run\n")[1].split("```")[0]
    with DAG("page", schedule=None) as dag:
        exec(code, {})

    assert [one.task_id for one in dag.topological_sort()] == ["wait", "gate", "publish"]
