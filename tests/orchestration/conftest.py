"""One worker process for each Airflow; see fakes/airflow.py."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from fakes.airflow import PYTHONS, WORKER, Airflow, settings

REASON = "Airflow has environments of its own: make test-airflow"


@pytest.fixture(
    scope="session",
    params=PYTHONS or [pytest.param(None, marks=pytest.mark.skip(reason=REASON))],
    ids=lambda python: python.parents[1].name.removeprefix(".venv-") if python else "airflow",
)
def airflow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """A process of one Airflow, in which one DAG after the other is run."""
    python, home = request.param, tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    variables = settings(home)
    migrate = subprocess.run(
        [python, "-m", "airflow", "db", "migrate"], env=variables, capture_output=True, text=True, check=False
    )
    assert migrate.returncode == 0, migrate.stderr
    look = "import importlib.util as u, airflow; print(airflow.__version__, u.find_spec('sqlglot') is None)"
    seen = subprocess.run([python, "-c", look], env=variables, capture_output=True, text=True, check=True)
    version, separate = seen.stdout.split()[-2:]
    with subprocess.Popen(
        [python, "-P", WORKER],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield Airflow(python, version, separate == "True", variables, process, home / "dags")
        process.kill()


@pytest.fixture
def newest(airflow: Airflow) -> Airflow:
    """The last Airflow of the list, for what does not depend on its version."""
    if airflow.python != PYTHONS[-1]:
        pytest.skip("the same code in each Airflow: tested in the newest")
    return airflow
