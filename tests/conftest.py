"""What all tests share: one small Spark session per run, and another one for the lakehouse formats.

Without adaptive execution, so that jobs can be counted; with a Hive metastore on Derby in a folder of its
own, because a session that began without one cannot get it later. Jars that are not Spark's change how it
parses and plans, and are downloaded: the tests that need them run last, in a JVM of their own.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes import compiled, jvm, lakehouse, postgres, stores, versions
from fragments import gate
from hypothesis import settings

from dq.operations.runtime.spark import SAFE_PATH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What is imported and collected lives as long as the run: a third of the time of collecting went into looking
# for rubbish in it.
gc.disable()

# No deadlines: a slow machine is no fault. In CI the examples are the same each time, so that a red run
# can be run again; on a desk they are new each time, so that they go on finding things.
settings.register_profile("dq", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("dq")

# Of what a test installs little is imported, and that compiles itself: to compile all took a minute and more.
os.environ |= {"UV_COMPILE_BYTECODE": "0", "PIP_COMPILE": "0"}

# Spark's tasks in Python take the first python3 on the path else, which may have neither dq nor pyarrow.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

compiled.share()
stores.hurry()

for name, value in jvm.SETTINGS.items():
    os.environ.setdefault(name, value)


@pytest.fixture(autouse=True)
def nothing_is_handed_down() -> Iterator[None]:
    """What a session of dq sets for the processes of its program is no setting of the next test's."""
    before = os.environ.get(SAFE_PATH)
    yield
    if before is None:
        os.environ.pop(SAFE_PATH, None)


@pytest.fixture(autouse=True)
def plans_are_compiled_where_they_are_looked_at(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames and not _jars(request.node):
        versions.choose(request.getfixturevalue("spark"), request.node)


def pytest_itemcollected(item: pytest.Item) -> None:
    versions.mark(item)
    if _jars(item):
        item.add_marker(pytest.mark.lakehouse)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_jars)
    # Who begins a session decides for all whether it has a metastore: who takes the tests' own goes first.
    first = next((one for one in items if "spark" in getattr(one, "fixturenames", ())), None)
    if first is not None:
        items.remove(first)
        items.insert(0, first)


def pytest_collection_finish() -> None:
    """From here on rubbish is looked for, but not in what was collected."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _jars(item: pytest.Item) -> bool:
    called = getattr(item, "callspec", None)
    return called is not None and called.params.get("spark") == "lakehouse"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A state store on each of its databases, with its tables; PostgreSQL where it is installed."""
    if request.param == "sqlite":
        yield stores.new_sqlite(tmp_path / "dq.db")
        return
    with postgres.new_store() as address:
        yield address


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of every scene, made once: to be copied, and never changed."""
    return gate.template(tmp_path_factory.mktemp("template") / "repository")


@pytest.fixture
def scene(
    pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> gate.Scene:
    """A copy of that repository, judged by the real command, with a canary beside it."""
    shutil.copytree(pristine, tmp_path / "repository", symlinks=True)
    return gate.Scene(tmp_path / "repository", tmp_path / "canary", monkeypatch.chdir, capfd)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from fakes import gateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway.remember_names()
    home = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark writes down the plan of every query for a page that nobody opens.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # Dates before 1900 as they are; Spark 3.5 refuses to write them otherwise.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/db;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home}",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        **versions.INTERPRETED,
    }
    if getattr(request, "param", "") == "lakehouse":
        settings |= lakehouse.settings(home)
    builder = SparkSession.builder.master("local[2]").appName("dq-tests").enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    # Jars are loaded when a JVM starts, and PySpark keeps one for as long as the process lives.
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    assert gateway is not None
    gateway.shutdown()
