"""CSV and JSON through a catalog: Spark SQL and Athena's SerDes read what a check does, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fakes import hive_ddl
from fakes.opened import open_frame
from fakes.reach import anywhere

from dq.contracts.access.data_location import DataLocation, resolve
from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.spark.dataset import locate
from dq.registry.aws.glue import Glue
from dq.registry.catalog import FORMAT_RULE, ActionKind, Catalog, CatalogSettings, ChangedField, Impact
from dq.registry.catalogs import open_catalog
from dq.registry.plan import ActionOutcome, apply, propose, render
from dq.registry.table import LIFECYCLE, RETIRED, TableSpec, UnsupportedReaderOptions, marked, specs
from dq.store.engine import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
domain: text_terms
servers:
  - server: lake
    type: {type}
    format: {format}
    customProperties: [{{property: csv, vendor: dq, value: {{{terms}}}}}]
schema:
  - name: {name}
    properties:
{columns}
"""
TEXTS = """\
      - {name: Id, logicalType: string}
      - {name: note, logicalType: string, physicalType: varchar(20)}
"""
TYPED = """\
      - {name: Id, logicalType: integer, physicalType: bigint}
      - {name: price, logicalType: number, physicalType: 'decimal(10,2)'}
      - {name: day, logicalType: date, physicalType: date}
      - {name: note, logicalType: string}
"""
NESTED = """\
      - {name: Id, logicalType: integer, physicalType: bigint}
      - name: Place
        logicalType: object
        properties: [{name: Zip, logicalType: string}, {name: at, logicalType: timestamp}]
      - {name: Tags, logicalType: array, items: {logicalType: integer, physicalType: int}}
"""


@dataclass(frozen=True)
class Case:
    """A file and how its contract describes it; `refused` is what Glue says instead of taking it."""

    columns: str
    body: str | bytes
    terms: str = ""
    refused: str = ""
    format: str = "csv"


CASES = {
    "rfc_4180": Case(TEXTS, 'Id,note\n1,"a,b"\n2,"5"""\n3,c\\d\n4,"e\\f"\n5,\n'),
    "no_quotes": Case(TYPED, 'Id,price,day,note\n1,1.50,2026-11-20,"a\n2,,,\n', "quote: none"),
    "semicolons": Case(TYPED, "Id;price;day;note\n1;1.50;2026-11-20;a,b\n", "quote: none, delimiter: ;"),
    "tabs": Case(TYPED, "Id\tprice\tday\tnote\n1\t1.50\t\ta,b\n", 'quote: none, delimiter: "\\t"'),
    "no_header": Case(TYPED, "1,1.50,2026-11-20,a\n", "quote: none, header: false"),
    "single_quotes": Case(TEXTS, "Id,note\n1,'a,\"b'\n2,'it''s'\n", 'quote: "\'"'),
    "backslashes": Case(TEXTS, 'Id,note\n1,"a\\"b"\n2,"c\\\\d"\n', "escape: '\\'"),
    "break_in_quotes": Case(TEXTS, 'Id,note\n1,"a\nb"\n'),
    "typed_in_quotes": Case(
        TYPED, 'Id,price,day,note\n1,"1.50",2026-11-20,"a,b"\n', "", "reads only strings, and id is a bigint"
    ),
    "null_text": Case(
        TYPED, "Id,price,day,note\nNA,1.50,NA,NA\n2,,,\n", "quote: none, nullText: NA", "one text for NULL"
    ),
    "null_in_quotes": Case(
        TEXTS, 'Id,note\n1,NA\n2,"NA"\n3,""\n4,\n', "nullText: NA", "does not support NULL"
    ),
    "latin": Case(
        TYPED,
        "Id,price,day,note\n1,1.50,,\u00e4\n".encode("latin-1"),
        "quote: none, encoding: latin1",
        "Athena reads only UTF-8, and the files are in iso8859-1",
    ),
    "json": Case(
        NESTED,
        '{"Id": 1, "Place": {"Zip": "07", "at": "2026-11-20T10:00:00Z"}, "Tags": [1, null]}\n{"Id": 2}\n',
        format="json",
    ),
    "json_utf_16": Case(
        NESTED,
        '{"Id": 1, "Place": {"Zip": "\u00e4", "at": "2026-11-20T10:00:00Z"}, "Tags": [1]}\n'.encode(
            "utf-16-le"
        ),
        "encoding: utf-16-le",
        "Athena reads only UTF-8",
        "json",
    ),
}
# Hive's text input splits at every line end; that no SerDe can mend, and no term says it.
_BY_LINES = frozenset({"break_in_quotes"})


def contract(name: str, case: Case, server: str) -> Contract:
    text = CONTRACT.format(
        type=server, format=case.format, terms=case.terms, name=name, columns=case.columns.rstrip("\n")
    )
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert parsed.findings == []
    assert parsed.contract is not None
    return parsed.contract


def wanted(name: str, case: Case, lake: str) -> TableSpec:
    """The table in a lake in S3 or in a folder."""
    server = f"s3\n    location: {lake}/{name}" if "://" in lake else f"local\n    path: {lake}/{name}"
    made = contract(name, case, server)

    def place(one: Any) -> DataLocation:
        return resolve(made, one, None, anywhere())

    return specs(made, place)[0]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    for name, case in CASES.items():
        (folder / name).mkdir()
        body = case.body if isinstance(case.body, bytes) else case.body.encode()
        (folder / name / f"part.{case.format}").write_bytes(body)
    return folder


def rows(frame: DataFrame) -> list[tuple[str | None, ...]]:
    """Every row as texts, in the order of the contract."""
    shown = [f"CAST(`{name}` AS STRING)" for name in ("id", *sorted(frame.columns, key=str.lower))]
    return sorted((tuple(row) for row in frame.selectExpr(*shown).collect()), key=str)


def checked(spark: SparkSession, name: str, case: Case, lake: Path) -> list[tuple[str | None, ...]]:
    """What `dq check` reads."""
    made = contract(name, case, f"local\n    path: {lake}/{name}")
    return rows(open_frame(spark, locate(made, made.objects[0], None, anywhere())))


def register(catalog: Catalog, store: Store, spec: TableSpec, **options: Any) -> list[ActionOutcome]:
    made = propose(catalog, [spec], store)
    return [result.outcome for result in apply(catalog, made, store, **options)]


@pytest.mark.spark
@pytest.mark.parametrize("name", CASES)
def test_spark_sql_reads_through_hive_what_a_check_reads(
    spark: SparkSession, store: Store, lake: Path, name: str
) -> None:
    catalog = open_catalog("hive", CatalogSettings(session=lambda: spark))
    spec = wanted(name, CASES[name], str(lake))

    assert register(catalog, store, spec) == [ActionOutcome.DONE]

    found = rows(spark.table(f"text_terms.{name}"))
    assert found == checked(spark, name, CASES[name], lake)
    assert found
    assert register(catalog, store, spec) == [ActionOutcome.UNCHANGED]
    spark.sql("DROP DATABASE text_terms CASCADE")


@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.refused])
def test_spark_and_the_serdes_of_athena_read_through_glue_what_a_check_reads(
    spark: SparkSession, glue: object, glue_catalog: Glue, store: Store, lake: Path, name: str
) -> None:
    case = CASES[name]
    register(glue_catalog, store, wanted(name, case, "s3://lake"))
    table = glue_catalog.connection.client.get_table(DatabaseName="text_terms", Name=name)["Table"]

    by_spark = rows(spark.table(hive_ddl.make(spark, table, "text_terms", str(lake))))

    expected = checked(spark, name, case, lake)
    assert by_spark == expected
    if case.format == "csv" and name not in _BY_LINES:
        made = hive_ddl.make(spark, table, "text_terms", str(lake), by_serde=True)
        found = rows(spark.table(made))
        # Athena skips as many lines as it is told; Spark, which reads by the class here, skips none.
        if table["Parameters"].get("skip.header.line.count") == "1":
            found = [row for row in found if row[0] not in (None, "Id")]
        # And the class for quotes has no NULL.
        quoted = "quote: none" not in case.terms
        expected = [tuple("" if quoted and cell is None else cell for cell in row) for row in expected]
        assert found == expected
    spark.sql("DROP DATABASE text_terms CASCADE")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refused])
def test_what_no_serde_understands_is_refused_before_a_call(glue_catalog: Glue, name: str) -> None:
    with pytest.raises(UnsupportedReaderOptions, match=CASES[name].refused):
        glue_catalog.vet(wanted(name, CASES[name], "s3://lake"))


@pytest.mark.spark
def test_an_encoding_that_spark_does_not_read_is_refused(spark: SparkSession) -> None:
    hive = open_catalog("hive", CatalogSettings(session=lambda: spark))

    with pytest.raises(UnsupportedReaderOptions, match="Spark cannot read text in cp1252"):
        hive.vet(wanted("probe", Case(TYPED, "", "encoding: cp1252"), "/lake"))


def test_a_nested_column_of_csv_is_refused_at_its_line() -> None:
    with pytest.raises(UsageError, match=r"'Place' has type struct<.*CSV holds only plain values") as caught:
        wanted("probe", Case(NESTED, ""), "s3://lake")

    assert caught.value.at is not None
    assert caught.value.at.line == 17


@pytest.fixture(params=["local", "glue", pytest.param("hive", marks=pytest.mark.spark)])
def catalog(request: pytest.FixtureRequest, store: Store) -> Iterator[Catalog]:
    if request.param == "local":
        yield open_catalog("local", CatalogSettings(store=store))
    elif request.param == "glue":
        request.getfixturevalue("glue")
        yield request.getfixturevalue("glue_catalog")
    else:
        spark = request.getfixturevalue("spark")
        yield open_catalog("hive", CatalogSettings(session=lambda: spark))
        spark.sql("DROP DATABASE IF EXISTS text_terms CASCADE")


def test_another_delimiter_breaks_readers_in_the_plan_as_in_dq_diff(
    catalog: Catalog, store: Store, tmp_path: Path
) -> None:
    lake = "s3://lake" if catalog.id.startswith("glue") else str(tmp_path)
    before = wanted("probe", Case(TYPED, "", "quote: none"), lake)
    after = wanted("probe", Case(TYPED, "", "quote: none, delimiter: ;"), lake)
    assert "    + reader's quote: ''" in render(propose(catalog, [before], store))
    register(catalog, store, before)

    (action,) = propose(catalog, [after], store).actions

    changes = [change for change in action.changes if change.field is ChangedField.READER]
    assert [(one.name, one.before, one.after, one.rule) for one in changes] == [
        ("delimiter", None, ";", FORMAT_RULE)
    ]
    assert action.impact is Impact.BREAKING
    assert register(catalog, store, after) == [ActionOutcome.REFUSED]
    assert register(catalog, store, after, allow=frozenset({Impact.BREAKING})) == [ActionOutcome.DONE]
    live = catalog.read(*after.key)
    assert live is not None
    assert live.spec.reader == after.reader
    assert register(catalog, store, after) == [ActionOutcome.UNCHANGED]


def test_the_keys_of_json_are_kept_as_the_contract_spells_them(
    catalog: Catalog, store: Store, tmp_path: Path
) -> None:
    lake = "s3://lake" if catalog.id.startswith("glue") else str(tmp_path)
    folded = (
        NESTED.replace("Id", "id").replace("Place", "place").replace("Zip", "zip").replace("Tags", "tags")
    )
    lower = wanted("probe", Case(folded, "", format="json"), lake)
    spelt = wanted("probe", Case(NESTED, "", format="json"), lake)
    register(catalog, store, lower)

    (action,) = propose(catalog, [spelt], store).actions

    assert {(one.field, one.name) for one in action.changes if one.field is ChangedField.SPELLING} == {
        (ChangedField.SPELLING, name) for name in ("id", "place", "tags")
    }
    assert register(catalog, store, spelt) == [ActionOutcome.DONE]
    live = catalog.read(*spelt.key)
    assert live is not None
    assert [column.spelled for column in live.spec.columns] == [
        "Id bigint", "Place struct<Zip:string,at:timestamp>", "Tags array<int>",
    ]  # fmt: skip


def others_tell_the_serde(client: Any) -> None:
    """Another writer gives the table another delimiter, and takes away what Spark reads."""
    live = client.get_table(DatabaseName="text_terms", Name="probe")["Table"]
    storage, parameters = live["StorageDescriptor"], dict(live["Parameters"])
    storage["SerdeInfo"]["Parameters"] |= {"field.delim": "|", "theirs": "1"}
    del parameters["spark.sql.sources.schema"]
    table = {"Name": "probe", "TableType": "EXTERNAL_TABLE", "PartitionKeys": []}
    client.update_table(
        DatabaseName="text_terms",
        TableInput=table | {"StorageDescriptor": storage, "Parameters": parameters},
        VersionId=live["VersionId"],
        SkipArchive=True,
    )


def test_a_retired_table_is_read_on_as_others_made_it(glue: object, glue_catalog: Glue, store: Store) -> None:
    spec = wanted("probe", Case(TYPED, "", "quote: none"), "s3://lake")
    register(glue_catalog, store, spec)
    client = glue_catalog.connection.client
    others_tell_the_serde(client)
    before = client.get_table(DatabaseName="text_terms", Name="probe")["Table"]

    endings = register(glue_catalog, store, marked(spec, {LIFECYCLE: RETIRED}))

    after = client.get_table(DatabaseName="text_terms", Name="probe")["Table"]
    assert endings == [ActionOutcome.DONE]
    assert after["StorageDescriptor"] == before["StorageDescriptor"]
    assert "spark.sql.sources.schema" not in after["Parameters"]
    assert after["Parameters"][LIFECYCLE] == RETIRED


def test_what_another_told_the_serde_is_drift_and_put_back(
    glue: object, glue_catalog: Glue, store: Store
) -> None:
    spec = wanted("probe", Case(TYPED, "", "quote: none"), "s3://lake")
    register(glue_catalog, store, spec)
    client = glue_catalog.connection.client
    others_tell_the_serde(client)

    (action,) = propose(glue_catalog, [spec], store).actions
    endings = register(glue_catalog, store, spec, allow=frozenset({Impact.BREAKING}))

    assert action.kind is ActionKind.DRIFT
    assert ("delimiter", "|", None) in {(one.name, one.before, one.after) for one in action.changes}
    assert "spark.sql.sources.schema" in {one.name for one in action.changes}
    assert endings == [ActionOutcome.DONE]
    told = client.get_table(DatabaseName="text_terms", Name="probe")["Table"]
    assert told["StorageDescriptor"]["SerdeInfo"]["Parameters"]["field.delim"] == ","
    assert told["StorageDescriptor"]["SerdeInfo"]["Parameters"]["theirs"] == "1"
    assert "spark.sql.sources.schema" in told["Parameters"]


def test_a_table_that_is_json_no_more_is_not_read_as_such(
    glue: object, glue_catalog: Glue, store: Store
) -> None:
    json = wanted("probe", Case(NESTED, "", format="json"), "s3://lake")
    parquet = wanted("probe", Case(NESTED, "", format="parquet"), "s3://lake")
    register(glue_catalog, store, json)

    endings = register(glue_catalog, store, parquet, allow=frozenset(Impact))

    table = glue_catalog.connection.client.get_table(DatabaseName="text_terms", Name="probe")["Table"]
    assert endings == [ActionOutcome.DONE]
    assert not [key for key in table["Parameters"] if key.startswith("spark.")]
    assert table["Parameters"]["classification"] == "parquet"
    assert table["StorageDescriptor"]["SerdeInfo"]["Parameters"] == {"serialization.format": "1"}
    assert register(glue_catalog, store, parquet) == [ActionOutcome.UNCHANGED]


def test_a_table_that_moves_is_read_by_spark_where_it_is(
    glue: object, glue_catalog: Glue, store: Store
) -> None:
    here = wanted("probe", Case(NESTED, "", format="json"), "s3://lake")
    there = wanted("probe", Case(NESTED, "", format="json"), "s3://lake/other")
    register(glue_catalog, store, here)

    assert register(glue_catalog, store, there, allow=frozenset(Impact)) == [ActionOutcome.DONE]

    storage = glue_catalog.connection.client.get_table(DatabaseName="text_terms", Name="probe")["Table"][
        "StorageDescriptor"
    ]
    assert storage["SerdeInfo"]["Parameters"]["path"] == storage["Location"] == "s3://lake/other/probe/"


def test_a_partition_follows_the_reader_of_its_table(glue: object, glue_catalog: Glue, store: Store) -> None:
    keys = "      - {name: hour, logicalType: integer, physicalType: int, partitioned: true}\n"
    before = wanted("probe", Case(TYPED + keys, "", "quote: none"), "s3://lake")
    after = wanted("probe", Case(TYPED + keys, "", "quote: none, delimiter: ;"), "s3://lake")
    register(glue_catalog, store, before)
    glue_catalog.add_partition(*before.key, (("hour", "7"),), "s3://lake/probe/hour=7")

    register(glue_catalog, store, after, allow=frozenset({Impact.BREAKING}))

    (found,) = glue_catalog.connection.client.get_partitions(DatabaseName="text_terms", TableName="probe")[
        "Partitions"
    ]
    assert found["StorageDescriptor"]["SerdeInfo"]["Parameters"]["field.delim"] == ";"


def test_the_texts_of_a_specification_come_back_from_plain_values() -> None:
    from dq.registry.table import spec_from_json

    spec = wanted("probe", Case(NESTED, "", "encoding: utf-16-le", format="json"), "s3://lake")

    assert spec_from_json(spec.as_json()) == spec
    assert replace(spec, reader=()).as_json().keys().isdisjoint({"reader"})
