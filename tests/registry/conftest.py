"""What the tests of this room share: stores, contracts, and one Spark session on Derby."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dq.store.engine import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(f"sqlite:///{tmp_path}/state.db")
    yield made
    made.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("metastore")
    derby = f"jdbc:derby:;databaseName={home}/db;create=true"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("dq-registry-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", derby)
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home}")
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
