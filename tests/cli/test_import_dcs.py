"""`dq import dcs`: a Data Contract Specification becomes a contract, and what has no word there is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dq.contracts.types import catalog_type
from dq.contracts.yaml.parse import read

CASE = Path(__file__).parent.parent / "cases" / "dcs" / "orders.yaml"


@pytest.fixture
def contract(dq, folder):
    shutil.copy(CASE, folder / "old.yaml")
    ran = dq("import", "dcs", "old.yaml", "-o", "made.odcs.yaml")
    assert ran.code == 0, ran.err
    assert dq("validate", "made.odcs.yaml").code == 0, dq("validate", "made.odcs.yaml").out
    return read(folder / "made.odcs.yaml")


def test_models_have_their_types_at_any_depth(contract):
    orders, lines = contract.objects

    assert {prop.column: str(catalog_type(prop)) for prop in orders.properties} == {
        "order_id": "string", "total": "decimal(12,2)", "any": "decimal(38,0)", "at": "timestamp",
        "clock": "string", "state": "string", "address": "struct<city:string,lines:array<string>>",
        "counts": "map<string,bigint>", "parent": "string",
    }  # fmt: skip
    columns = {prop.column: prop for prop in orders.properties}
    assert [columns[name].logical_type for name in ("any", "clock")] == ["number", "time"]
    city, more = columns["address"].properties
    assert (city.description, city.custom("pii").value) == ("The city.", True)
    assert more.items.logical_type_options.max_length == 40
    assert columns["counts"].map.value.description == "How many."
    assert [prop.column for prop in lines.primary_key()] == ["order_id", "sku"]


def test_definitions_are_filled_in_below_what_the_field_says(contract):
    one, other = (contract.objects[at].properties[0] for at in (0, 1))

    assert (one.business_name, one.classification, one.logical_type_options.format) == (
        "Order ID", "restricted", "uuid",
    )  # fmt: skip
    assert (one.required, one.unique, other.unique) == (True, True, None)
    assert [each.to for each in other.relationships] == ["orders.order_id"]


def test_terms_servers_quality_and_service_levels_come_along(contract):
    assert (contract.id, contract.version, contract.status) == (
        "urn:datacontract:checkout:orders", "1.2.0", "active",
    )  # fmt: skip
    [server] = contract.servers
    assert (server.type, server.get("location"), server.roles[0].role) == (
        "s3", "s3://lake/data/{model}/*.json", "reader",
    )  # fmt: skip
    assert (contract.description.usage, contract.description.limitations) == ("Reports.", "Not live.")
    levels = {one.property: (one.value, one.unit, one.element) for one in contract.sla_properties}
    assert levels == {
        "availability": (99.9, "percent", None), "retention": (1, "y", None),
        "frequency": (1, "d", None), "freshness": (25, "h", "orders.at"),
    }  # fmt: skip
    [rule] = contract.objects[0].quality
    assert (rule.query, rule.must_be_greater_than) == ("SELECT count(*) FROM {object}", 0)


def test_what_a_contract_cannot_say_is_told(dq, contract):
    told = dq("import", "dcs", "old.yaml", "-o", "again.odcs.yaml").err

    for more in (
        "servicelevels.support", "terms.policies", "info.contact", "state: minimum 3, on string", "lineage",
        "references nowhere.id, which does not exist", "quality dialect trino",
    ):  # fmt: skip
        assert more in told


def test_one_model_takes_its_own_service_levels(dq, contract):
    assert "freshness" not in dq("import", "dcs", "old.yaml", "--object", "lines").out
    assert "freshness" in dq("import", "dcs", "old.yaml", "--object", "orders").out
    assert dq("import", "dcs", "old.yaml", "-o", "made.odcs.yaml").code == 0


HEAD = "dataContractSpecification: 1.2.0\nid: x\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id: x", "is not a Data Contract Specification"),
        (HEAD, "has no model with fields"),
        (HEAD + "models: 7", "has no model with fields"),
        (HEAD + "models: {a: {fields: [7]}}", "has no model with fields"),
        ("[", "cannot be read as YAML"),
    ],
)
def test_what_is_none_is_said(dq, folder, text, reason):
    (folder / "x.yaml").write_text(text)
    ran = dq("import", "dcs", "x.yaml")

    assert (ran.code in (2, 3), ran.out, reason in ran.err) == (True, "", True), ran.err


def test_definitions_that_lead_in_a_circle_end(dq, folder):
    fields = "models: {a: {fields: {b: {$ref: '#/definitions/d'}, c: {$ref: '#/definitions/e'}}}}\n"
    (folder / "x.yaml").write_text(
        HEAD + fields + "definitions:\n  d: {$ref: '#/definitions/d', type: text}\n"
        "  e: {type: array, items: {$ref: '#/definitions/e'}}\n"
    )
    ran = dq("import", "dcs", "x.yaml")

    assert ran.code == 0
    assert "Nested too deeply" in ran.out
