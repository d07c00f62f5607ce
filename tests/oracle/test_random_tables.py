"""Random contracts on random tables: dq on Spark answers as plain Python does.

A few cases, which in CI are the same each time. benchmarks/random_tests.py is the long run of it; what it
finds is shrunk to a small contract and a few rows.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from fakes.lakehouse import SPARK
from hypothesis import HealthCheck, assume, given, settings
from oracle.comparing import agree
from oracle.tables import Case, cases
from oracle.writers import Pyarrow, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Not marked as slow, so that both Sparks are asked.
pytestmark = pytest.mark.spark
# Half as many on 3.5: they are the same ones.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "4" if SPARK.startswith("3.") else "8"))
# The session is shared on purpose, and a case is as large as a table with its contract.
CALM = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
]


@settings(max_examples=EXAMPLES, suppress_health_check=CALM)
@given(case=cases())
def test_parquet_of_another_writer_is_checked_as_its_rows_are(spark: SparkSession, case: Case) -> None:
    agree(spark, case, Pyarrow())


@settings(max_examples=EXAMPLES // 2, suppress_health_check=CALM)
@given(case=cases())
def test_parquet_of_spark_is_checked_as_its_rows_are(spark: SparkSession, case: Case) -> None:
    agree(spark, case, Spark())


@settings(max_examples=EXAMPLES // 2, suppress_health_check=CALM)
@given(case=cases())
def test_orc_is_checked_as_its_rows_are(spark: SparkSession, case: Case) -> None:
    # Spark 3.5 loses what follows a back-quote in the name of a column of ORC. Both write the last key of a
    # map for all where they are dates.
    assume("`" not in repr(case) and "map<date" not in repr(case))

    agree(spark, case, Spark("orc"))
