"""Random contracts on tables of Iceberg and Delta with a past: dq answers as plain Python does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from fakes import lakehouse
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.comparing import agree
from oracle.lakehouse_writers import Lakehouse, numbered
from oracle.tables import Case, cases
from oracle.test_random_tables import CALM, EXAMPLES
from oracle.values import SCALARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [*lakehouse.MARKS, pytest.mark.slow]
# Iceberg has no integers of fewer than 32 bits; names with signs are a matter of each format.
TYPES = st.sampled_from([one for one in SCALARS if one.name not in ("tinyint", "smallint")])
lakes = cases(("a", "Id", "select", "žluť"), TYPES)


@pytest.mark.parametrize("form", ["iceberg", "delta"])
@settings(max_examples=max(1, EXAMPLES // 8), suppress_health_check=CALM)
@given(case=lakes)
def test_a_table_with_a_past_is_checked_as_its_rows_are(spark: SparkSession, case: Case, form: str) -> None:
    tables = {name: numbered(table) for name, table in case.tables.items()}
    agree(spark, replace(case, tables=tables), Lakehouse(form))
