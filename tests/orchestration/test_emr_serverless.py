"""`DqEmrServerlessOperator` in each Airflow, against moto and a platform that runs the submitted command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.airflow import Airflow
from fakes.command import Place, contract
from fakes.emr_serverless import ACCOUNT, BUCKET, Platform, platform

DAY = "2026-05-10"
PARTS = {
    "physicalType: bigint}": "physicalType: bigint, logicalTypeOptions: {minimum: 1}}",
    "tool: slack": "tool: console",
}


def write(folder: Path, *ids: int) -> None:
    """The file of the day, with these ids; small enough that dq needs no Spark."""
    day = folder / "lake" / "sales" / f"day={DAY}"
    day.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids}), day / "part.parquet")


@pytest.fixture
def emr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """A platform on which the day's partition can be checked."""
    Place(tmp_path).put("sales.odcs.yaml", contract("sales", **PARTS))
    write(tmp_path, 1, 2)
    with platform(tmp_path, monkeypatch) as running:
        yield running


def arguments(airflow: Airflow, emr: Platform, **more: object) -> dict[str, object]:
    return {
        "arguments": ["check", "sales.odcs.yaml", "--partition", f"day={DAY}"],
        "application": emr.application,
        "role": f"arn:aws:iam::{ACCOUNT}:role/dq",
        "entry": "s3://lake/dq_submit.py",
        "environment": "s3://lake/dq-env.tar.gz",
        "logs": f"s3://{BUCKET}/emr",
        "poll_seconds": 0.2,
        "log_seconds": 2.0,
        **airflow.where,
        **more,
    }


def ran(airflow: Airflow, emr: Platform, **more: object) -> dict[str, object]:
    answer, _ = airflow.ask(
        "run_task_with", emr.variables, "DqEmrServerlessOperator", arguments(airflow, emr, **more)
    )
    return dict(answer)


def test_a_check_on_emr_serverless_brings_its_report_back(airflow: Airflow, emr: Platform) -> None:
    answer = ran(airflow, emr, tags={"team": "sales"}, conf={"spark.executor.memory": "4g"})

    result = answer["result"]
    assert isinstance(result, dict), answer
    assert (result["exit_code"], emr.states) == (0, ["SUCCESS"])
    [report] = result["reports"]
    assert (report["contract"], report["partitions"]) == ("sales", [{"day": DAY}])
    assert report["counts"]["pass"] > 0
    [request] = emr.requests
    assert request["entryPointArguments"][:2] == ["check", "--format=json"]
    assert "--conf spark.executor.memory=4g" in request["sparkSubmitParameters"]


def test_broken_data_fails_the_task_for_good_and_names_the_check(airflow: Airflow, emr: Platform) -> None:
    write(emr.folder, 1, -5)

    answer = ran(airflow, emr)

    assert answer["final"]
    assert "violates its contract (exit 1): sales.id: 1 of 2 rows are less than 1" in str(answer["error"])


def test_without_its_report_an_exit_code_is_no_breach(newest: Airflow, emr: Platform) -> None:
    # spark-submit also ends with 1, e.g. if the environment cannot be unpacked.
    write(emr.folder, 1, -5)

    for more in ({"logs": None}, {"logs": f"s3://{BUCKET}/elsewhere"}):
        emr.uploads_logs = False
        answer = ran(newest, emr, **more)
        assert not answer["final"]
        assert "ended unexpectedly (exit 1)" in str(answer["error"])


def test_a_job_that_succeeded_without_a_report_is_no_passed_check(newest: Airflow, emr: Platform) -> None:
    emr.uploads_logs = False

    answer = ran(newest, emr)

    assert not answer["final"]
    assert f"its reports are not in s3://{BUCKET}/emr/applications/{emr.application}/jobs/" in str(
        answer["error"]
    )
    assert ran(newest, emr, logs=None)["result"]["reports"] is None  # type: ignore[index]


def test_a_wrong_request_fails_before_anything_is_sent(newest: Airflow, emr: Platform) -> None:
    answer = ran(newest, emr, role="dq")

    assert answer["final"]
    assert "is misconfigured (exit 2)" in str(answer["error"])
    assert "executionRoleArn" in str(answer["error"])
    assert emr.requests == []

    refused = ran(newest, emr, application="00nothing")
    assert refused["final"]
    assert "cannot start the job" in str(refused["error"])


def test_a_connection_needs_the_amazon_provider(airflow: Airflow, emr: Platform) -> None:
    answer = ran(airflow, emr, aws_conn_id="aws_sales")

    assert answer["final"]
    assert "The connection 'aws_sales' needs Airflow's Amazon provider" in str(answer["error"])
    assert emr.requests == []


def test_killing_the_task_cancels_the_job(airflow: Airflow, emr: Platform) -> None:
    emr.runs_jobs = False

    answer, log = airflow.ask("kill_task", emr.variables, "DqEmrServerlessOperator", arguments(airflow, emr))

    assert emr.states == ["CANCELLED"], log
    assert "ended as CANCELLED" in answer["error"]


DAG = """\
from datetime import datetime
from airflow import DAG
from dq.airflow import DqEmrServerlessOperator

with DAG("{name}", schedule=None, start_date=datetime(2026, 1, 1)) as dag:
    DqEmrServerlessOperator(task_id="check", deferrable=True, **{arguments!r})
"""


def test_a_deferred_task_ends_with_its_job(airflow: Airflow, emr: Platform, tmp_path: Path) -> None:
    name = f"emr_{airflow.python.parents[1].name.replace('-', '_').replace('.', '_')}"
    file = tmp_path / f"{name}.py"
    file.write_text(DAG.format(name=name, arguments=arguments(airflow, emr)))

    states, log = airflow.run(tmp_path, file, variables=emr.variables)

    assert states == {"check": "success"}, log
    assert emr.states == ["SUCCESS"]


def test_an_attempt_that_begins_again_asks_for_the_same_job(newest: Airflow, emr: Platform) -> None:
    # moto does not know client tokens: AWS returns the job of the first request.
    attempt = {"dag_id": "sales", "task_id": "check", "run_id": "scheduled", "map_index": -1, "try_number": 1}
    for number in (1, 1, 2):
        newest.ask(
            "run_task_with",
            emr.variables,
            "DqEmrServerlessOperator",
            arguments(newest, emr),
            {"ti": {**attempt, "try_number": number}},
        )

    first, again, retry = (request["token"] for request in emr.requests)
    assert first == again != retry
