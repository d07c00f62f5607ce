"""The example DAG, the operators and the sensor in each Airflow that is supported: `make test-airflow`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.airflow import Airflow, Deployment, kill
from fakes.command import Place, contract

EXAMPLE = Path(__file__).parents[2] / "examples" / "airflow" / "orders_dag.py"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "airflow.md"
DAY = "2026-05-10"
POSITIVE = {"physicalType: bigint}": "physicalType: bigint, logicalTypeOptions: {minimum: 1}}"}
TO_CONSOLE = {"tool: slack": "tool: console"}


def write(folder: Path, product: str, *ids: int) -> None:
    """The file of the day, with these ids; small enough that dq needs no Spark."""
    day = folder / "lake" / product / f"day={DAY}"
    day.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids}), day / "part.parquet")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A registry of two products, of which `orders` has come for the day, and `sales` is written."""
    place = Place(tmp_path)
    for name in ("orders", "sales"):
        place.put(f"{name}.odcs.yaml", contract(name, **POSITIVE, **TO_CONSOLE))
        write(tmp_path, name, 1, 2)
    arrived = datetime(2026, 5, 11, 5, tzinfo=UTC).timestamp()
    marker = tmp_path / "lake" / "orders" / f"day={DAY}" / "_SUCCESS"
    marker.touch()
    os.utime(marker, (arrived, arrived))
    registered = place.dq("register", "sales.odcs.yaml", "--apply")
    assert registered.code == 0, registered
    return tmp_path


def test_what_came_is_gated_and_published(airflow: Airflow, project: Path) -> None:
    states, log = airflow.run(project, EXAMPLE)

    assert states == dict.fromkeys(("wait", "gate", "publish"), "success"), log
    (line,) = (project / ".dq" / "published.jsonl").read_text().splitlines()
    assert json.loads(line)["data"]["partition"] == {"day": DAY}


def test_a_bad_partition_fails_the_gate_and_is_not_published(airflow: Airflow, project: Path) -> None:
    write(project, "sales", 1, -5)

    states, log = airflow.run(project, EXAMPLE)

    assert states == {"wait": "success", "gate": "failed", "publish": "upstream_failed"}, log
    assert "violates its contract (exit 1): sales.id: 1 of 2 rows are less than 1" in log
    assert not (project / ".dq" / "published.jsonl").exists()


@pytest.fixture
def unreached(tmp_path: Path) -> Path:
    """Broken data of a contract whose Slack nobody set up."""
    place = Place(tmp_path)
    place.put("sales.odcs.yaml", contract("sales", **POSITIVE))
    write(tmp_path, "sales", 1, -5)
    return tmp_path


def test_broken_data_is_not_tried_again_where_nobody_could_be_told(newest: Airflow, unreached: Path) -> None:
    arguments = {
        "contract": "sales.odcs.yaml", "partition": {"day": DAY}, "folder": str(unreached), **newest.where,
    }  # fmt: skip
    broken = newest.task("DqCheckOperator", **arguments)
    assert broken["final"]
    assert "violates its contract (exit 4): sales.id: 1 of 2 rows are less than 1" in broken["error"]
    assert "cannot send through slack: Alerts in Slack need a bot token." in broken["error"]

    # Mended, and the first alert still waits: a retry may find Slack set up.
    write(unreached, "sales", 1, 5)
    untold = newest.task("DqCheckOperator", **arguments)
    assert not untold["final"]
    assert "could not deliver all alerts (exit 4): dq: cannot send through slack" in untold["error"]


@pytest.mark.parametrize("run_in", ["subprocess", "process"])
def test_the_channel_of_a_task_is_told_and_not_that_of_the_contract(
    newest: Airflow, unreached: Path, run_in: str
) -> None:
    gate = newest.task(
        "DqCheckOperator",
        contract="sales.odcs.yaml",
        partition={"day": DAY},
        folder=str(unreached),
        channel="console",
        **_run_in(newest, run_in),
    )
    assert gate["final"]
    assert "violates its contract (exit 1)" in gate["error"]


def _run_in(airflow: Airflow, run_in: str) -> dict[str, object]:
    """The arguments of a task that runs in its own process, or in another."""
    if run_in == "process" and airflow.separate:
        pytest.skip("dq's dependencies are not in this Airflow's environment")
    return {"run_in": run_in, **airflow.where}


@pytest.mark.parametrize("contract", ["--dry-run", "--help", "--channel=file:/tmp/x", "-"])
def test_t19_a_contract_that_looks_like_an_option_is_a_contract_and_fails(
    newest: Airflow, project: Path, contract: str
) -> None:
    for operator in ("DqCheckOperator", "DqPublishOperator"):
        task = newest.task(
            operator, {"run_id": "manual"},
            contract=contract, partition={"day": DAY}, folder=str(project), **newest.where,
        )  # fmt: skip
        assert "does not exist" in task["error"]


@pytest.mark.parametrize("run_in", ["subprocess", "process"])
def test_t19_a_value_that_looks_like_an_option_is_a_value(
    newest: Airflow, project: Path, run_in: str
) -> None:
    shared = {"contract": "sales.odcs.yaml", "folder": str(project), **_run_in(newest, run_in)}
    checked = newest.task("DqCheckOperator", object_name="--dry-run", **shared)
    assert checked["final"]
    assert "no object '--dry-run' in these contracts" in checked["error"]

    published = newest.task("DqPublishOperator", {"run_id": "manual"}, rows="--help", **shared)
    assert published["final"]
    assert "is misconfigured (exit 2)" in published["error"]
    assert not (project / ".dq" / "published.jsonl").exists()


def test_a_task_publishes_in_its_own_process(airflow: Airflow, project: Path) -> None:
    shared = {"contract": "sales.odcs.yaml", "partition": {"day": DAY}, "folder": str(project)}
    first, second = (
        airflow.task("DqPublishOperator", {"run_id": "manual"}, **shared, **_run_in(airflow, run_in))
        for run_in in ("process", "subprocess")
    )

    assert first["result"]["done"] == ["partition", "marker", "receipt", "notify"]
    assert second["result"]["done"] == []


def test_arguments_that_exclude_each_other_are_refused(newest: Airflow) -> None:
    def refused(**arguments: object) -> str:
        error: str = newest.task("DqPublishOperator", contract="a", **arguments)["error"]
        return error

    assert "python and env need a separate process" in refused(run_in="process", env={"A": "b"})
    assert "must be 'subprocess' or 'process'" in refused(run_in="thread")


def test_t19_an_answer_without_counts_is_no_passed_check(newest: Airflow, project: Path) -> None:
    # An interpreter that makes a dry run of every check.
    python = project / "python"
    python.write_text(f'#!/bin/sh\na="$1 $2 $3"; shift 4\nexec "{sys.executable}" $a check --dry-run "$@"\n')
    python.chmod(0o755)
    gate = newest.task(
        "DqCheckOperator", contract="sales.odcs.yaml", partition={"day": DAY}, folder=str(project),
        python=str(python),
    )  # fmt: skip

    assert gate["final"]
    assert "tested nothing: its output has no counts" in gate["error"]


def test_without_dq_a_task_says_what_to_pass_and_reports_no_breach(airflow: Airflow, project: Path) -> None:
    shared = {"contract": "sales.odcs.yaml", "partition": {"day": DAY}, "folder": str(project)}
    for operator in ("DqCheckOperator", "DqDeliverySensor"):
        absent = airflow.task(operator, python="/opt/nothing/bin/python", **shared)
        assert absent["final"]
        assert (
            "python='/opt/nothing/bin/python' is not an executable. Pass the interpreter" in absent["error"]
        )

        # A Python that has no dq ends with 1, as a broken contract does.
        bare = airflow.task(operator, python=sys._base_executable, **shared)  # type: ignore[attr-defined]
        assert not bare["final"]
        assert "ended unexpectedly (exit 1)" in bare["error"]
        assert "No module named dq" in bare["error"]

        if airflow.separate:
            missing = airflow.task(operator, **shared)
            assert missing["final"]
            assert "dependencies are not installed in Airflow's environment" in missing["error"]
            assert "Pass python=" in missing["error"]


def test_the_variables_of_airflow_are_no_path_for_the_python_of_dq(
    newest: Airflow, project: Path, tmp_path: Path
) -> None:
    # MWAA sets PYTHONPATH to the folders of its own packages.
    (tmp_path / "typer.py").write_text("raise SystemExit('typer of Airflow')\n")
    asked = {
        "DqCheckOperator": {"contract": "sales.odcs.yaml", "partition": {"day": DAY}},
        "DqDeliverySensor": {"contract": "orders.odcs.yaml", "due": "2026-05-11T06:00:00Z"},
    }
    variables = {"PYTHONPATH": str(tmp_path)}
    answers = [
        newest.ask(
            "run_task_with", variables, name, {**arguments, "folder": str(project), "python": sys.executable}
        )[0]
        for name, arguments in asked.items()
    ]

    assert [list(answer) for answer in answers] == [["result"], ["result"]], answers


def test_importing_the_operators_imports_nothing_that_dq_depends_on(airflow: Airflow) -> None:
    heavy = ("dq.cli", "dq.operations", "dq.contracts.model", "sqlglot", "boto3")
    code = f"import sys, dq.airflow; print([name for name in {heavy} if name in sys.modules])"
    printed = subprocess.run(
        [airflow.python, "-P", "-c", code], env=airflow.settings, capture_output=True, text=True, check=True
    ).stdout

    assert printed.splitlines()[-1] == "[]"


def test_what_did_not_come_fails_the_sensor_with_the_reason(airflow: Airflow, project: Path) -> None:
    states, log = airflow.run(project, EXAMPLE, "2026-05-13")

    assert states == {"wait": "failed", "gate": "upstream_failed", "publish": "upstream_failed"}, log
    assert "Nothing arrived; given up" in log


WAITING = """\
import os
from datetime import datetime
from airflow import DAG
from dq.airflow import DqDeliverySensor

with DAG("{name}", schedule=None, start_date=datetime(2026, 1, 1)) as dag:
    DqDeliverySensor(
        task_id="wait", contract="orders.odcs.yaml", due="{due}", folder=os.environ["DQ_PROJECT"],
        poke_interval=1, deferrable={deferrable}, python=os.environ.get("DQ_PYTHON"),
    )
"""


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_sensor_that_waits_ends_with_the_deadline_of_the_contract(
    airflow: Airflow, tmp_path: Path, deferrable: bool
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

    states, log = airflow.run(tmp_path, file)

    assert states == {"wait": "failed"}, log
    assert "Nothing arrived by" in log
    assert datetime.now(UTC) > due + timedelta(seconds=grace + 60)


def test_the_dag_of_a_new_project_waits_and_checks(airflow: Airflow, tmp_path: Path) -> None:
    written = Place(tmp_path).dq(
        "init", ".", "--id", "items", "--domain", "sales", "--owner", "ana", "--channel", "#sales",
        "--schedule", "0 5 * * *", "--tz", "UTC", "--airflow",
    )  # fmt: skip
    assert written.code == 0, written
    file = tmp_path / "contracts/items.odcs.yaml"
    file.write_text(file.read_text().replace("status: draft", "status: active").replace("slack", "console"))
    day = tmp_path / "lake" / "items" / f"day={DAY}"
    day.mkdir(parents=True)
    amounts = pa.array([1, 2], pa.decimal128(18, 2))
    pq.write_table(pa.table({"key": ["a", "b"], "amount": amounts}), day / "part.parquet")
    (day / "_SUCCESS").touch()
    arrived = datetime(2026, 5, 11, 4, tzinfo=UTC).timestamp()
    for name in ("part.parquet", "_SUCCESS"):
        os.utime(day / name, (arrived, arrived))

    dag = tmp_path / "dags/items_dag.py"
    dag.write_text(re.sub(r"datetime\(\d+, \d+, \d+,", "datetime(2026, 1, 1,", dag.read_text()))

    states, log = airflow.run(tmp_path, dag)

    assert states == {"wait": "success", "check": "success"}, log


def test_a_sensor_waits_until_a_table_is_complete_and_never_passes_a_hole(
    airflow: Airflow, project: Path
) -> None:
    def result(until: str) -> Any:
        return airflow.task(
            "DqDeliverySensor", contract="orders.odcs.yaml", until=until, folder=str(project),
            deferrable=False, poke_interval=1, timeout=3, **airflow.where,
        )  # fmt: skip

    place = Place(project)
    place.dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", "2026-05-11T05:00:00Z")
    undecided = result("2026-05-11T23:00:00+00:00")
    for instant in ("2026-05-11T07:00:00Z", "2026-05-12T07:00:00Z"):
        place.dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", instant)
    complete, hole = result("2026-05-11T23:00:00+00:00"), result("2026-05-12T06:00:00+00:00")

    # What nobody evaluated is neither complete nor a hole.
    assert "timed out" in undecided["error"].lower() or "time is out" in undecided["error"].lower()
    assert complete["result"]["complete"] is True
    assert hole["final"]
    assert "not complete until 2026-05-12T06:00:00+00:00. day=2026-05-11 is incomplete." in hole["error"]


@pytest.mark.slow
def test_a_sensor_outlives_its_triggerer(airflow: Airflow, tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    (project := tmp_path / "project").mkdir()
    due = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=1)
    parts = {"0 6 * * *": "* * * * *", "30m": "1h", "{due - 1d:%F}": "{due:%FT%H-%M}"}
    Place(project).put("orders.odcs.yaml", contract("orders", **parts))
    (project / "lake" / "orders").mkdir(parents=True)
    variables = {"DQ_PROJECT": str(project), **({"DQ_PYTHON": sys.executable} if airflow.separate else {})}
    with Deployment(airflow.python, airflow.version, home, variables) as deployment:
        text = WAITING.format(name="waiting", due=due.isoformat(), deferrable=True)
        Place(home).put(
            "dags/waiting.py", text.replace("schedule=None", "schedule=None, is_paused_upon_creation=False")
        )
        triggerer = deployment.start_triggerer()
        deployment.airflow("dags", "reserialize")
        deployment.airflow("dags", "trigger", "waiting", "--run-id", "once")
        deployment.wait_for("deferred", "waiting", "once")

        kill(triggerer)
        Place(project).put(f"lake/orders/day={due:%FT%H-%M}/_SUCCESS", "")
        deployment.start_triggerer()

        deployment.wait_for("success", "waiting", "once")


@pytest.mark.parametrize("argument", ["due", "until"])
def test_an_instant_that_is_none_fails_without_a_retry(
    airflow: Airflow, project: Path, argument: str
) -> None:
    # Airflow renders the end of the interval of a run without one as this text.
    task = airflow.task(
        "DqDeliverySensor",
        contract="orders.odcs.yaml",
        folder=str(project),
        **{argument: "None"},
        **airflow.where,
    )

    assert task["final"]
    assert "invalid time 'None'" in task["error"]


@pytest.mark.parametrize(
    ("until", "result"),
    [(None, ("never", None)), ("2026-05-11T12:00:00+00:00", ("on_time", True))],
    ids=["one delivery", "all until an instant"],
)
def test_a_trigger_goes_on_from_what_it_was_serialised_to(
    airflow: Airflow, tmp_path: Path, project: Path, until: str | None, result: tuple[str, bool | None]
) -> None:
    folder = tmp_path / "empty"
    Place(folder).put("orders.odcs.yaml", contract("orders"))
    if until:
        folder = project
        for instant in ("2026-05-11T05:00:00Z", "2026-05-11T07:00:00Z"):
            Place(project).dq("watch", "orders.odcs.yaml", "--channel", "console", "--as-of", instant)
    arguments = {
        "contract": str(folder / "orders.odcs.yaml"),
        "object_name": "orders",
        "slo": "daily",
        "due": "2026-05-11T06:00:00+00:00",
        "decide_at": "2026-05-11T06:31:00+00:00",
        "poke_seconds": 1.0,
        "server": None,
        "folder": str(folder),
        "python": None,
        "env": {},
        "until": until,
        **airflow.where,
    }

    answer, log = airflow.ask("run_trigger", "dq.airflow.trigger.DeliveryTrigger", arguments)

    assert answer["serialized"] == ["dq.airflow.trigger.DeliveryTrigger", arguments], log
    event = answer["event"]
    assert (event["due_at"], event["status"], event["complete"]) == (arguments["due"], *result)


def test_the_tasks_of_the_page_make_a_dag(airflow: Airflow) -> None:
    code = PAGE.read_text().split("```python not-run\n")[1].split("```")[0]

    tasks, log = airflow.ask("tasks_of", code)

    assert tasks == ["wait", "gate", "publish"], log
