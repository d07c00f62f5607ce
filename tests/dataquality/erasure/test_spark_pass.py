"""Spark's tasks find what threads find, and leave no key on a disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.erasure import KEY, OTHER

from dq.dataquality.erasure.files import SearchedTable, identity_column, list_table
from dq.dataquality.erasure.keys import Keys
from dq.dataquality.erasure.passes import search_listing
from dq.dataquality.model.column import Column
from dq.lake.storage import LocalFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_spark_finds_what_threads_find(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(5):
        emails = [f"user{at}@example.com" for at in range(number * 100, number * 100 + 100)]
        pq.write_table(pa.table({"email": [*emails, OTHER]}), tmp_path / f"part-{number}.parquet")
    (tmp_path / "_damaged").write_bytes(b"PAR1")
    columns = (identity_column(Column(("email",)), "text"),)
    table = SearchedTable("people", str(tmp_path), "parquet", columns, frozenset({"email"}))
    listing = list_table(LocalFiles(), table)
    # More than Spark keeps in a task, so that it is broadcast through files.
    keys = Keys((OTHER.upper(), KEY, *(f"User{at}@example.com" for at in range(0, 60_000, 7))))

    local = search_listing(listing, keys, with_rows=True)
    tasks = search_listing(listing, keys, with_rows=True, spark=lambda: spark, most_local_bytes=0)

    assert tasks.files == local.files
    assert sum(hit.rows for result in tasks.files for hit in result.hits) == 5 + 72
    assert tasks.gaps == local.gaps
    assert len(tasks.gaps) == 1
    assert sorted(map(str, tasks.rows)) == sorted(map(str, local.rows))


@pytest.mark.spark
def test_a_search_that_tasks_cannot_run_is_a_gap_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"email": [KEY]}), tmp_path / "part-0.parquet")
    columns = (identity_column(Column(("email",)), "text"),)
    table = SearchedTable("people", str(tmp_path), "parquet", columns, frozenset({"email"}))
    listing = list_table(LocalFiles(), table)
    context = spark.sparkContext
    python = context.pythonExec
    context.pythonExec = str(tmp_path / "no-python")
    try:
        search = search_listing(
            listing, Keys((KEY,)), with_rows=False, spark=lambda: spark, most_local_bytes=0
        )
    finally:
        context.pythonExec = python

    [gap] = search.gaps
    assert search.files == []
    assert gap.why.startswith("Spark could not search it: the Python of Spark's tasks (")
    assert "no-python" in gap.why
    assert KEY not in gap.why


@pytest.mark.spark
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI", "UNICODE_CI_AI"])
@pytest.mark.parametrize("normalize", ["exact", "text"])
def test_keys_are_found_in_columns_with_a_collation(
    spark: SparkSession, tmp_path: Path, collation: str, normalize: str
) -> None:
    """The order of a collation is another one than that of the bytes, which bounds and filters are about."""
    if spark.version < "4":
        pytest.skip("Spark 3.5 has no collations.")
    texts = ["anna@example.com", "Bob@example.com", "ZOE@EXAMPLE.COM", "zz@example.com  "]
    frame = spark.createDataFrame([(text,) for text in texts], "email string")
    frame = frame.selectExpr(f"email COLLATE {collation} AS email")
    writer = frame.coalesce(1).write.option("parquet.bloom.filter.enabled#email", "true")
    writer.mode("overwrite").parquet(str(tmp_path))
    columns = (identity_column(Column(("email",)), normalize),)
    table = SearchedTable("people", str(tmp_path), "parquet", columns, frozenset({"email"}))
    others = ("zoe@example.com", "ANNA@EXAMPLE.COM", "zz@example.com")

    found = [
        sum(
            hit.rows
            for result in search_listing(list_table(LocalFiles(), table), Keys((key,)), with_rows=False).files
            for hit in result.hits
        )
        for key in (*texts, *others)
    ]

    # An exact key is its bytes, whatever the collation says is equal.
    assert found == [1] * 4 + ([0] * 3 if normalize == "exact" else [1] * 3)
