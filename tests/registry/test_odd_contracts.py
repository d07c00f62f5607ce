"""Odd contracts on every catalog: registered and read back with their data, or refused alone, at a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes import hive_ddl
from fragments.odd_contracts import ODD, contract

from dq.cli.main import run
from dq.registry.aws.glue import Glue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOGS = [
    "local",
    "glue",
    pytest.param("hive", marks=pytest.mark.spark),
    pytest.param("iceberg", marks=[pytest.mark.spark, pytest.mark.slow]),
]
WITH_DATA = [name for name, odd in ODD.items() if odd.select]
KINDS = ("create", "wait", "held")


@dataclass(frozen=True)
class Registered:
    """What one run over all odd contracts said."""

    catalog: str
    folder: Path
    actions: dict[str, dict[str, Any]]
    findings: dict[str, list[dict[str, Any]]]
    second: dict[str, Any]
    repaired: list[dict[str, Any]]


def command(*words: str) -> Any:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        run([*words])
    return json.loads(out.getvalue())


def ends(name: str, catalog: str) -> str:
    return ODD[name].ends.get(catalog, "create")


def table(name: str) -> str:
    return f"odd.{(ODD[name].table or name).lower()}"


@pytest.fixture(scope="session")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of all, each as its writer lays it down."""
    folder = tmp_path_factory.mktemp("odd")
    for name in WITH_DATA:
        odd = ODD[name]
        place = folder / (odd.path or f"lake/{name}").removesuffix("/*.parquet")
        if odd.files:
            place.mkdir(parents=True)
            for file, body in odd.files.items():
                (place / file).write_text(body)
            continue
        writer = spark.sql(odd.select).coalesce(1).write.format(odd.format)
        keys = [key for line in odd.properties.splitlines() if "partitioned: true" in line
                for key in [line.partition("name: ")[2].partition(",")[0]]]  # fmt: skip
        if name == "by_three":
            keys.sort()
        (writer.partitionBy(*keys) if keys else writer).save(str(place))
    return folder


@pytest.fixture(scope="module", params=CATALOGS)
def registered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Registered]:
    catalog = request.param
    folder = tmp_path_factory.mktemp(catalog)
    if catalog == "hive":
        folder = request.getfixturevalue("lake")
        request.getfixturevalue("spark")
    registry = folder / "registry"
    registry.mkdir(exist_ok=True)
    (registry / "dq-policy.yaml").write_text("registry: odd\n")
    for name, odd in ODD.items():
        (registry / f"{name}.odcs.yaml").write_text(contract(name, odd, catalog))
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        patch.delenv("DQ_STORE_URL", raising=False)
        patch.setenv("DQ_LAKE_ROOTS", f"s3://lake,{folder}")
        if catalog == "glue":
            shim = request.getfixturevalue("glue_server")
            shim.reset()
            for key, value in shim.environment.items():
                patch.setenv(key, value)
        if catalog == "iceberg":
            proxy = request.getfixturevalue("iceberg_server")
            proxy.reset()
            for key, value in proxy.environment.items():
                patch.setenv(key, value)
        words = ("register", "registry", "--catalog", catalog, "--apply", "--format", "json")
        said, second = command(*words), command(*words)
        repair = ("repair", "registry", "--catalog", catalog, "--apply", "--format", "json")
        repaired = [command(*repair), command(*repair)][1] if catalog == "hive" else []
        actions = {one["table"]: one for one in said["actions"]}
        findings: dict[str, list[dict[str, Any]]] = {}
        for one in said["findings"]:
            findings.setdefault(Path(one["file"]).name.removesuffix(".odcs.yaml"), []).append(one)
        yield Registered(catalog, folder, actions, findings, second, repaired)
    if catalog == "hive":
        request.getfixturevalue("spark").sql("DROP DATABASE IF EXISTS odd CASCADE")


@pytest.mark.parametrize("name", ODD)
def test_a_contract_is_registered_or_refused_alone_with_its_reason(registered: Registered, name: str) -> None:
    expected = ends(name, registered.catalog)
    action = registered.actions.get(table(name))
    found = registered.findings.get(name, [])

    if expected in KINDS:
        assert action is not None, found
        assert (action["kind"], found) == (expected, [])
        assert action["outcome"] == ("done" if expected == "create" else "unchanged"), action["error"]
        return
    assert action is None
    assert len(found) == bool(expected), found
    for one in found:
        assert expected in one["message"] + one["hint"]
        here = [at for at, line in enumerate(_lines(name, registered), 1) if line.endswith("# here")]
        assert one["line"] in (here or range(1, 99))
        assert one["hint"]


def _lines(name: str, registered: Registered) -> list[str]:
    return (registered.folder / "registry" / f"{name}.odcs.yaml").read_text().splitlines()


def test_a_second_run_has_nothing_to_do(registered: Registered) -> None:
    kinds = {one["table"]: one["kind"] for one in registered.second["actions"]}
    expected = {
        table(name): "no-op" if ends(name, registered.catalog) == "create" else ends(name, registered.catalog)
        for name in ODD
        if ends(name, registered.catalog) in KINDS
    }

    assert kinds == expected


@pytest.mark.spark
@pytest.mark.parametrize("registered", ["hive"], indirect=True)
def test_a_second_repair_finds_every_partition_where_it_is(registered: Registered) -> None:
    found = {one["table"]: one for one in registered.repaired}

    assert {"odd.by_text", "odd.by_umlaut", "odd.by_timestamp", "odd.spaces"} <= found.keys()
    for one in found.values():
        assert (one["missing"], one["dangling"], one["moved"], one["errors"]) == ([], [], [], []), one


@pytest.mark.spark
@pytest.mark.parametrize("registered", ["hive"], indirect=True)
@pytest.mark.parametrize("name", [name for name in WITH_DATA if ends(name, "hive") == "create"])
def test_spark_sql_reads_the_data_through_hive(
    registered: Registered, spark: SparkSession, name: str
) -> None:
    assert rows(spark.table(table(name))) == rows(spark.sql(ODD[name].select))


@pytest.mark.spark
@pytest.mark.parametrize("registered", ["glue"], indirect=True)
@pytest.mark.parametrize("name", [name for name in WITH_DATA if ends(name, "glue") == "create"])
def test_spark_sql_reads_the_data_through_what_stands_in_glue(
    registered: Registered, spark: SparkSession, glue_catalog: Glue, lake: Path, name: str
) -> None:
    database, own = table(name).split(".")
    client = glue_catalog.connection.client
    raw = client.get_table(DatabaseName=database, Name=own)["Table"]
    _add_partitions(glue_catalog, raw, lake)
    partitions = client.get_partitions(DatabaseName=database, TableName=own)["Partitions"]

    made = hive_ddl.make(spark, raw, "odd_glue", str(lake / "lake"), partitions)

    assert rows(spark.table(made)) == rows(spark.sql(ODD[name].select))
    spark.sql(f"DROP TABLE {made}")


def _add_partitions(catalog: Glue, raw: dict[str, Any], lake: Path) -> None:
    """What `dq publish` would have added: each folder of the lake by its values."""
    from urllib.parse import unquote

    keys = [key["Name"] for key in raw["PartitionKeys"]]
    place = raw["StorageDescriptor"]["Location"].removeprefix("s3://").rstrip("/")
    for file in sorted((lake / place).rglob("part-*")) if keys else []:
        steps = file.parent.relative_to(lake / place).parts
        values = tuple((key, unquote(step.partition("=")[2])) for key, step in zip(keys, steps, strict=True))
        catalog.add_partition(raw["DatabaseName"], raw["Name"], values, f"s3://{place}/{'/'.join(steps)}")


def rows(frame: DataFrame) -> list[str]:
    """Every row as JSON, its columns by name and in lower case."""
    names = sorted(frame.columns, key=str.lower)
    # Glue has no timestamp without a zone: the same instant stands for it, in the zone of the session.
    shown = {name: f"CAST(`{name}` AS STRING)" if kind.startswith("timestamp") else f"`{name}`"
             for name, kind in frame.dtypes}  # fmt: skip
    told = ", ".join(f"'{name.lower()}', {shown[name]}" for name in names)
    return sorted(row[0] for row in frame.selectExpr(f"lower(to_json(named_struct({told})))").collect())
