"""Who is made from whom, by what contracts declare."""

from __future__ import annotations

import json

import pytest

from dq.contracts.lineage import consumers, inputs
from dq.contracts.yaml.parse import parse


def contract(name, objects, version="1.0.0", file=None, **more):
    document = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": name,
        "version": version,
        "status": "active",
        "schema": objects,
        **more,
    }
    parsed = parse(json.dumps(document).encode(), file or f"registry/{name}.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def table(name, *columns, **more):
    return {"name": name, "properties": [{"name": "id", "logicalType": "integer"}, *columns], **more}


def declares(*names):
    return [{"property": "inputs", "value": list(names)}]


CRM = contract("crm", [table("customers"), table("visits", physicalName="visits_v2")])


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("crm", {("crm", "customers"), ("crm", "visits")}),
        ("crm/customers", {("crm", "customers")}),
        ("crm.customers", {("crm", "customers")}),
        ("crm.customers.id", {("crm", "customers")}),
        ("customers", {("crm", "customers")}),
        ("visits_v2", {("crm", "visits")}),
        ("crm.odcs.yaml#customers.id", {("crm", "customers")}),
        ("crm.odcs.yaml#/schema/customers", {("crm", "customers")}),
        ("../registry/crm.odcs.yaml#customers", {("crm", "customers")}),
        ("nobody", set()),
        ("", set()),
    ],
)
def test_an_input_is_a_contract_or_an_object_of_one(said, meant):
    sales = contract("sales", [table("orders", customProperties=declares(said))])

    assert inputs([CRM, sales]).get(("sales", "orders"), frozenset()) == meant


def test_a_contracts_inputs_are_those_of_all_its_objects():
    sales = contract("sales", [table("orders"), table("lines")], customProperties=declares("crm/customers"))

    found = inputs([sales, CRM])

    assert found == {("sales", name): {("crm", "customers")} for name in ("orders", "lines")}


def test_relationships_and_the_sources_of_columns_are_inputs():
    orders = table(
        "orders",
        {"name": "customer", "logicalType": "integer", "relationships": [{"to": "customers.id"}]},
        {"name": "visit", "logicalType": "integer", "transformSourceObjects": ["visits_v2"]},
    )

    found = inputs([contract("sales", [orders]), CRM])

    assert found == {("sales", "orders"): {("crm", "customers"), ("crm", "visits")}}


def test_a_name_of_several_contracts_is_nobodys_and_ones_own_goes_before():
    other = contract("erp", [table("customers"), table("orders", customProperties=declares("customers"))])
    third = contract("bi", [table("report", customProperties=declares("customers"))])

    found = inputs([CRM, other, third])

    assert found == {("erp", "orders"): {("erp", "customers")}}


def test_two_majors_are_two_products():
    second = contract("crm", [table("customers")], version="2.0.0", file="registry/crm2.odcs.yaml")
    sales = contract("sales", [table("orders", customProperties=declares("crm@2", "crm"))])

    found = inputs([CRM, second, sales])

    # `crm` is the key of the first major, and the id of both.
    assert found == {("sales", "orders"): {("crm@2", "customers")}}


def test_an_object_is_not_made_from_itself():
    loop = contract("loop", [table("a", customProperties=declares("loop", "a"))])

    assert inputs([loop]) == {}


def test_whoever_uses_it_through_others_is_a_consumer_too():
    declared = {
        ("b", "b"): {("a", "a")},
        ("c", "c"): {("b", "b"), ("a", "a")},
        ("d", "d"): {("c", "c")},
        ("a", "a"): {("d", "d")},
        ("e", "e"): {("f", "f")},
    }

    assert consumers(declared, ("a", "a")) == {("b", "b"): 1, ("c", "c"): 1, ("d", "d"): 2}


@pytest.mark.parametrize("value", ["crm", 5, None, {"crm": 1}, [5, None, ["crm"]]])
def test_what_is_no_list_of_names_names_nothing(value):
    odd = contract("odd", [table("orders")], customProperties=[{"property": "inputs", "value": value}])

    assert inputs([CRM, odd]) == {}
