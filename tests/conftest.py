"""What all tests share: one small Spark session per run.

Without adaptive execution, so that jobs can be counted; with a Hive metastore on Derby in a folder of its
own, because a session that began without one cannot get it later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadlines: a slow machine is no fault. In CI the examples are the same each time, so that a red run
# can be run again; on a desk they are new each time, so that they go on finding things.
settings.register_profile("dq", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("dq")

# Hundreds of small queries end before the optimizing compiler pays: half of the CPU without it.
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    home = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home}/db;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home} {SMALL}",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
    }
    builder = SparkSession.builder.master("local[2]").appName("dq-tests").enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
