"""From a contract to its tables: names, facts, types, and what no catalog would take."""

from __future__ import annotations

import pytest
from fakes.flights import flights

from dq.contracts.access.data_location import DataLocation
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse
from dq.registry.table import TableColumn, TableSpec, digest, fold_location, spec_from_json, specs

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: air-flights\nversion: 1.2.0\n"
PLACE = DataLocation("lake", "s3", "s3://lake/air", "parquet")


def made(text: str, place: DataLocation = PLACE, registry: str = "") -> list[TableSpec]:
    contract = parse((HEAD + text).encode(), "air.odcs.yaml").contract
    assert contract is not None
    return specs(contract, lambda _: place, registry)


def test_a_table_says_what_the_contract_promises() -> None:
    spec = flights("s3a://lake/air/")

    assert (spec.database, spec.name, spec.location) == ("air_flights", "flights", "s3://lake/air")
    assert spec.columns == (TableColumn("id", "bigint", "The key."), TableColumn("price", "decimal(18,2)"))
    assert spec.partitions == (TableColumn("flight_date", "date"), TableColumn("hour", "int"))
    assert dict(spec.parameters) == {
        "dq.managed-by": "dq",
        "dq.contract-id": "air-flights",
        "dq.contract-version": "1.0.0",
        "dq.object": "Flights",
        "dq.owner": "Air Operations",
        "dq.domain": "air",
        "dq.owned-keys": "dq.contract-id,dq.contract-version,dq.domain,dq.managed-by,dq.object,"
        "dq.owned-keys,dq.owner,dq.spec-hash",
        "dq.spec-hash": digest(spec),
    }


def test_the_digest_changes_with_anything_but_itself() -> None:
    digests = {
        digest(flights("s3://lake/air", **change))
        for change in (
            {},
            {"version": "1.0.1"},
            {"comment": "Else."},
            {"description": "Else."},
            {"id_type": "int"},
            {"format": "orc"},
        )
    }

    assert len(digests) == 6
    assert digest(flights("s3a://lake/air/")) in digests


def test_a_specification_survives_json() -> None:
    assert spec_from_json(flights("s3://lake/air").as_json()) == flights("s3://lake/air")


SCHEMA = "schema:\n  - name: t\n    properties: [{name: a, logicalType: string}]\n"


@pytest.mark.parametrize(
    ("text", "place", "database"),
    [
        pytest.param(
            "domain: d\n", DataLocation("s", "glue", "", "parquet", "Prod_Air"), "prod_air", id="the server's"
        ),
        pytest.param(
            "domain: Air\ndataProduct: Flight Ops\n", PLACE, "air_flight_ops", id="domain and product"
        ),
        pytest.param("dataProduct: flights\n", PLACE, "flights", id="product alone"),
        pytest.param("name: 2026 Flights\n", PLACE, "_2026_flights", id="the contract's name"),
        pytest.param("", PLACE, "air_flights", id="the contract's id"),
    ],
)
def test_the_database_has_a_name(text: str, place: DataLocation, database: str) -> None:
    assert made(text + SCHEMA, place)[0].database == database


def test_a_pattern_of_files_is_registered_as_its_folder() -> None:
    place = DataLocation("lake", "s3", "s3://lake/air/*/part-*.parquet", "parquet")

    assert made(SCHEMA, place)[0].location == "s3://lake/air"


def test_a_registry_marks_its_tables() -> None:
    assert made(SCHEMA, registry="github.com/acme/registry")[0].parameter("dq.registry") == (
        "github.com/acme/registry"
    )


def test_the_owner_is_a_member_of_that_role_where_the_team_has_no_name() -> None:
    team = "team:\n  members:\n    - {username: ann, role: analyst}\n    - {username: bo, role: Data Owner}\n"

    assert made(team + SCHEMA)[0].parameter("dq.owner") == "bo"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        pytest.param(
            "  - {name: 'a b', properties: [{name: a}]}",
            r"air\.odcs\.yaml:6:5: no catalog accepts the name air_flights\.a b\.",
            id="a table name with a space",
        ),
        pytest.param(
            "  - {name: t, properties: [{name: 'a-b'}]}", "column name 'a-b' of t", id="a column with a dash"
        ),
        pytest.param(
            "  - {name: t, properties: [{name: a}, {name: A}]}",
            "has a duplicate column 'a'",
            id="twins by case",
        ),
        pytest.param(
            "  - {name: t, properties: [{name: a, partitioned: true}]}",
            "no columns besides its partition keys",
            id="only keys",
        ),
        pytest.param(
            "  - {name: t, properties: [{name: a}, {name: k, physicalType: array<int>, partitioned: true}]}",
            "partition key 'k' has type array<int>",
            id="a nested key",
        ),
        pytest.param(
            "  - {name: t, properties: [{name: a}]}\n  - {name: T, properties: [{name: a}]}",
            r"two objects map to the table air_flights\.t\.",
            id="two objects, one table",
        ),
    ],
)
def test_what_no_catalog_takes_is_refused_at_its_place(schema: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(f"schema:\n{schema}\n")


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("s3a://b/p/", "s3://b/p"),
        ("file:///data/x", "/data/x"),
        ("file:/data/x/", "/data/x"),
        ("/", "/"),
        ("", ""),
        ("hdfs://name/x", "hdfs://name/x"),
    ],
)
def test_one_place_has_one_spelling(written: str, folded: str) -> None:
    assert fold_location(written) == folded


def test_a_table_says_what_is_promised_where_to_ask_and_what_is_classified() -> None:
    text = """\
status: active
support:
  - {channel: "#air", tool: slack}
  - {channel: "air@example.org"}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: flights.id
    schedule: "0 6 * * *"
    scheduler: cron
    customProperties:
      - {property: delivery, vendor: dq, value: {timezone: Europe/Berlin, objective: "99%"}}
schema:
  - name: flights
    properties:
      - {name: id, logicalType: integer, classification: internal}
      - name: passenger
        logicalType: object
        properties:
          - {name: name, logicalType: string, classification: restricted}
"""
    spec = made(text)[0]

    assert spec.parameter("dq.lifecycle") == "active"
    assert spec.parameter("dq.channel") == "slack:#air, air@example.org"
    assert spec.parameter("dq.classification") == "internal, restricted"
    assert spec.parameter("dq.slo") == "daily: 0 6 * * * Europe/Berlin, 99%"
