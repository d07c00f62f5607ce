"""Odd contracts in a catalog of Iceberg: Spark writes to their tables, and Spark and pyiceberg read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from fakes import lakehouse
from fakes.iceberg import RestProxy
from fragments.odd_contracts import ODD, Odd, contract
from pyiceberg.catalog.rest import RestCatalog

from dq.cli.main import run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [*lakehouse.MARKS, pytest.mark.slow]

WITH_DATA = {
    name: odd
    for name, odd in ODD.items()
    if odd.select and odd.format == "parquet" and odd.ends.get("iceberg", "create") == "create"
}


def table(name: str, odd: Odd) -> str:
    return f"odd.{(odd.table or name).lower()}"


@pytest.fixture(scope="module")
def theirs(
    iceberg_server: RestProxy, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestCatalog]:
    """All of them registered by one run; Spark knows the catalog as `rest`."""
    iceberg_server.reset()
    folder = tmp_path_factory.mktemp("odd")
    registry = folder / "registry"
    registry.mkdir()
    (registry / "dq-policy.yaml").write_text("registry: odd\n")
    for name, odd in WITH_DATA.items():
        (registry / f"{name}.odcs.yaml").write_text(contract(name, odd, "iceberg"))
    said = StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        for key, value in iceberg_server.environment.items():
            patch.setenv(key, value)
        with redirect_stdout(said), redirect_stderr(StringIO()):
            assert run(["register", "registry", "--catalog", "iceberg", "--apply", "--format", "json"]) == 0
    assert {one["outcome"] for one in json.loads(said.getvalue())["actions"]} == {"done"}
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": iceberg_server.address,
        ".cache-enabled": "false",
    }.items():
        spark.conf.set(f"spark.sql.catalog.rest{key}", value)
    yield RestCatalog("theirs", uri=iceberg_server.address)
    iceberg_server.reset()


@pytest.mark.parametrize("name", WITH_DATA)
def test_spark_writes_and_reads_what_the_contract_promises_and_pyiceberg_reads_it_too(
    theirs: RestCatalog, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    own = table(name, WITH_DATA[name])
    promised = spark.sql(WITH_DATA[name].select)

    promised.coalesce(1).writeTo(f"rest.{own}").append()
    pq.write_table(theirs.load_table(own).scan().to_arrow(), tmp_path / "read.parquet")

    assert rows(spark.table(f"rest.{own}")) == rows(promised)
    assert rows(spark.read.parquet(str(tmp_path / "read.parquet"))) == rows(promised)


def rows(frame: DataFrame) -> list[str]:
    """Every row as JSON, its columns by name and in lower case."""
    names = sorted(frame.columns, key=str.lower)
    told = ", ".join(f"'{name.lower()}', `{name}`" for name in names)
    return sorted(row[0] for row in frame.selectExpr(f"lower(to_json(named_struct({told})))").collect())
