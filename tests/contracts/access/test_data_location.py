"""Where data lies: variables, placeholders, one object or many, formats."""

from __future__ import annotations

import pytest
from fakes.reach import anywhere

from dq.contracts.access.data_location import DataLocation, resolve, select_server
from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: air\nversion: 1.0.0\n"
ONE = "schema:\n  - name: flights\n    physicalName: fct_flights\n"
TWO = ONE + "  - name: weather\n"


def contract(servers: str, schema: str = ONE) -> Contract:
    parsed = parse(f"{HEAD}servers:\n{servers}{schema}".encode(), "air.odcs.yaml")
    assert parsed.contract is not None
    assert parsed.findings == []
    return parsed.contract


def place(servers: str, schema: str = ONE, index: int = 0, **variables: str) -> DataLocation:
    made = contract(servers, schema)
    return resolve(made, made.objects[index], None, anywhere(**variables))


LOCAL = "  - {server: dev, type: local, path: %s, format: parquet}\n"


@pytest.mark.parametrize(
    ("path", "schema", "index", "expected"),
    [
        pytest.param("lake/air", ONE, 0, "lake/air", id="one object lies at the path itself"),
        pytest.param("lake/air/", ONE, 0, "lake/air", id="a slash at the end is dropped"),
        pytest.param("/", ONE, 0, "/", id="the root stays the root"),
        pytest.param("lake/air", TWO, 0, "lake/air/fct_flights", id="many objects: by physical name"),
        pytest.param("lake/air", TWO, 1, "lake/air/weather", id="many objects: else by name"),
        pytest.param("'lake/{object}/v1'", TWO, 1, "lake/weather/v1", id="placeholder object"),
        pytest.param("'lake/{model}/*.json'", TWO, 0, "lake/fct_flights/*.json", id="placeholder model"),
    ],
)
def test_a_path_is_the_objects_own(path: str, schema: str, index: int, expected: str) -> None:
    assert place(LOCAL % path, schema, index).path == expected


@pytest.mark.parametrize(
    ("path", "variables", "expected"),
    [
        pytest.param("${LAKE}/air", {"LAKE": "/data"}, "/data/air", id="a set variable"),
        pytest.param("${LAKE:-/tmp/lake}/air", {}, "/tmp/lake/air", id="the default of an unset one"),
        pytest.param("${LAKE:-/tmp/lake}/air", {"LAKE": ""}, "/tmp/lake/air", id="and of an empty one"),
        pytest.param("${LAKE:-/tmp/lake}/air", {"LAKE": "/d"}, "/d/air", id="set wins over default"),
        pytest.param("/x${SUFFIX:-}", {}, "/x", id="an empty default"),
        pytest.param("/x/${A}", {"A": "{object}"}, "/x/{object}", id="a value is never filled again"),
    ],
)
def test_variables_are_filled_in(path: str, variables: dict[str, str], expected: str) -> None:
    assert place(LOCAL % f"'{path}'", **variables).path == expected


def test_a_variable_without_value_is_named_with_its_mend() -> None:
    with pytest.raises(UsageError) as caught:
        place(LOCAL % "'${LAKE}/air'")

    said = "path '${LAKE}/air' needs the variable LAKE, which is not set."
    assert caught.value.message == f"air.odcs.yaml:6:38: contract 'air': {said}"
    assert caught.value.hint == "Set and allow it (DQ_VARS=LAKE LAKE=… dq …), or write ${LAKE:-default}."


def test_an_unknown_placeholder_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown placeholder \{table\}"):
        place(LOCAL % "'lake/{table}'")


def test_one_pattern_for_many_objects_is_refused() -> None:
    with pytest.raises(UsageError, match=r"is one pattern for 2 objects\. Write \{object\}"):
        place(LOCAL % "'lake/*.parquet'", TWO)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        pytest.param(
            "{server: p, type: s3, location: s3://lake/air, format: Delta}",
            DataLocation("p", "s3", "s3://lake/air", "delta"),
            id="s3",
        ),
        pytest.param(
            "{server: p, type: s3, location: s3://lake/air}",
            DataLocation("p", "s3", "s3://lake/air", "parquet"),
            id="s3 without a format",
        ),
        pytest.param(
            "{server: p, type: glue, account: '1', database: '${ENV}_air', location: s3://lake/air}",
            DataLocation("p", "glue", "s3://lake/air", "parquet", "test_air"),
            id="glue with a location",
        ),
        pytest.param(
            "{server: p, type: glue, account: '1', database: air}",
            DataLocation("p", "glue", "", "parquet", "air"),
            id="glue that alone knows the place",
        ),
        pytest.param(
            "{server: p, type: hive, host: metastore, database: air}",
            DataLocation("p", "hive", "", "parquet", "air"),
            id="hive",
        ),
        pytest.param(
            "{server: p, type: iceberg, catalog: c, catalogUrl: 'https://c'}",
            DataLocation("p", "iceberg", "", "iceberg"),
            id="iceberg",
        ),
        pytest.param(
            "{server: p, type: custom, path: /data/air, format: orc}",
            DataLocation("p", "custom", "/data/air", "orc"),
            id="custom",
        ),
    ],
)
def test_every_lake_server_says_where_and_how(server: str, expected: DataLocation) -> None:
    assert place(f"  - {server}\n", ENV="test") == expected


def test_the_objects_own_format_wins_over_the_servers() -> None:
    terms = "    customProperties: [{property: dataset, vendor: dq, value: {format: iceberg}}]\n"

    assert place(LOCAL % "lake", ONE + terms).format == "iceberg"


def test_a_server_that_is_no_lake_is_refused() -> None:
    with pytest.raises(UsageError, match="type 'kafka', which dq cannot read"):
        place("  - {server: p, type: kafka, host: broker}\n")


def test_a_custom_server_without_a_place_is_refused() -> None:
    with pytest.raises(UsageError, match=r"has no location for its data\. Add 'location' or 'path'"):
        place("  - {server: p, type: custom}\n")


def test_a_choice_of_servers_must_be_made() -> None:
    two = contract(
        "  - {server: dev, type: custom, path: a}\n  - {server: production, type: custom, path: b}\n"
    )

    with pytest.raises(UsageError, match="Choose one with --server: dev, production"):
        select_server(two, None)
    with pytest.raises(UsageError, match=r"no server 'prodution'\. Did you mean production\?"):
        select_server(two, "prodution")
    assert select_server(two, "production").get("path") == "b"


def test_a_contract_without_servers_says_so() -> None:
    parsed = parse(f"{HEAD}{ONE}".encode(), "air.odcs.yaml").contract
    assert parsed is not None

    with pytest.raises(UsageError, match="has no server for its data"):
        select_server(parsed, None)
