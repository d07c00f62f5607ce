"""References from one contract into another: which contract and server are meant, and what is tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import dq
from dq.contracts.access.data_location import matching_server
from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import ForeignKey
from dq.dataquality.clauses.coverage import clause_coverage
from dq.dataquality.clauses.foreign_key import ContractSet
from dq.dataquality.clauses.kind import clauses_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "apiVersion: v3.2.0\nkind: DataContract\n"
CUSTOMERS = """
schema:
  - name: customers
    id: customers_tbl
    properties:
      - {name: id, id: id_field, logicalType: integer, physicalName: nr, classification: restricted}
      - {name: rank, logicalType: integer}
      - {name: tags, logicalType: array, items: {logicalType: string}}
      - {name: last_order, logicalType: integer, relationships: [{to: orders.id}]}
"""
ORDERS = """
schema:
  - name: orders
    properties:
      - {{name: id, logicalType: integer}}
      - {{name: customer, logicalType: integer, relationships: [{{to: {to}}}]}}
"""


def contract(text: str, id: str, file: str, version: str = "1.0.0") -> Contract:
    made = parse(f"{HEAD}id: {id}\nversion: {version}\n{text}".encode(), file)
    assert made.contract is not None, made.findings
    return made.contract


def shop(to: str, file: str = "sales/shop.odcs.yaml") -> Contract:
    return contract(ORDERS.format(to=to), "shop", file)


CRM = contract(CUSTOMERS, "crm", "sales/crm.odcs.yaml")
NEXT = contract(CUSTOMERS, "crm", "sales/crm-2.odcs.yaml", "2.1.0")
CASES = {
    "by the object's name": ("customers.id", (CRM,), "enforced relationship crm/customers.nr"),
    "by a file beside it": ("'crm.odcs.yaml#customers.id'", (CRM,), "enforced relationship crm/customers.nr"),
    "by ids in a file": (
        "'crm.odcs.yaml#/schema/customers_tbl/properties/id_field'",
        (CRM,),
        "enforced relationship crm/customers.nr",
    ),
    "by a file above": (
        "'../sales/crm.odcs.yaml#customers.id'",
        (CRM,),
        "enforced relationship crm/customers.nr",
    ),
    "one major among two, by its file": (
        "'crm-2.odcs.yaml#customers.id'",
        (CRM, NEXT),
        "enforced relationship crm@2/customers.nr",
    ),
    "two majors": ("customers.id", (CRM, NEXT), "not … several have the object 'customers': crm 1"),
    "nobody": ("customers.id", (), "not … no given contract has the object 'customers'"),
    "another file": ("'erp.odcs.yaml#customers.id'", (CRM,), "not … 'erp.odcs.yaml' was not given"),
    "the network": (
        "'https://example.com/sales/crm.odcs.yaml#customers.id'",
        (CRM,),
        "not … 'https://example.com/sales/crm.odcs.yaml' was not given",
    ),
    "no such column": (
        "customers.nr_",
        (CRM,),
        "not … in crm, 'customers.nr_' is not a column of that contract with a single value",
    ),
    "inside of an array": ("customers.tags", (CRM,), "enforced relationship crm/customers.tags"),
    "two for one": ("[customers.id, customers.rank]", (CRM,), "not … 'from' has 1 columns and 'to' has 2"),
}  # fmt: skip


@pytest.mark.parametrize(("to", "beside", "expected"), CASES.values(), ids=CASES)
def test_a_reference_leads_into_the_one_contract_that_is_meant(
    to: str, beside: tuple[Contract, ...], expected: str
) -> None:
    made = shop(to)
    one = made.objects[0]

    clauses = clauses_of(made, one, built_in(), ContractSet.from_contracts([made, *beside]))
    (account,) = [
        each for each in clause_coverage(made, one, clauses) if each.clause.startswith("relationship")
    ]
    aims = [str(each.test.target) for each in clauses if isinstance(each.test, ForeignKey)]

    told = " ".join([account.state, account.reason, *aims])
    assert [part for part in expected.split(" … ") if part not in told] == []


def test_contracts_that_refer_to_each_other_are_followed_once_each() -> None:
    made = shop("customers.id")
    both = ContractSet.from_contracts([made, CRM])

    found = {
        str(clause.test.target): clause.test.target.classified
        for each in (made, CRM)
        for clause in clauses_of(each, each.objects[0], built_in(), both)
        if isinstance(clause.test, ForeignKey)
    }

    assert found == {"crm/customers.nr": True, "shop/orders.id": False}


@pytest.mark.spark
def test_keys_are_looked_up_in_the_other_contracts_data(spark: SparkSession) -> None:
    made = shop("customers.id")
    orders = spark.createDataFrame([(1, 7), (2, 8), (3, None)], "id bigint, customer bigint")
    people = spark.createDataFrame([(7,), (None,)], "nr bigint")
    others = {"crm/customers": people}

    alone = dq.check(made, orders, other_objects=others)
    report = dq.check(made, orders, other_objects=others, registry=[CRM])
    good, bad = dq.split(made, orders, other_objects=others, registry=[CRM])

    assert [one for one in alone.results if one.check == "relationship"] == []
    (told,) = [one for one in report.results if one.check == "relationship"]
    assert told.message == (
        "orders.customer: 1 row does not match any crm/customers.nr; allowed: a key of crm/customers.nr"
    )
    # The column is classified there, and so here.
    assert told.samples == ({"customer": "***", "count": 1},)
    assert sorted(row.id for row in good.collect()) == [1, 3]
    assert [row.id for row in bad.collect()] == [2]


@pytest.mark.spark
def test_without_the_other_data_it_is_an_error_that_says_what_to_hand_in(spark: SparkSession) -> None:
    made = shop("customers.id")

    report = dq.check(made, spark.createDataFrame([(1, 7)], "id bigint, customer bigint"), registry=[CRM])

    assert report.exit_code == 3
    (told,) = [one for one in report.results if one.check == "relationship"]
    assert "pass other_objects={'crm/customers': …}" in told.message


LAKE = "{{server: {0}, type: local, path: /lake{1}}}"


def served(*servers: str, id: str = "crm") -> Contract:
    return contract(f"servers: [{', '.join(servers)}]", id, f"{id}.odcs.yaml")


PROD, TEST = LAKE.format("prod", ", environment: live"), LAKE.format("test", "")
LIVE, HOME = LAKE.format("warehouse", ", environment: live"), LAKE.format("home", "")
SERVERS = {
    "the same name": ((PROD, TEST), "test", (PROD, TEST), "test"),
    "the same environment": ((PROD, TEST), "prod", (LIVE, HOME), "warehouse"),
    "no choice on either side": ((HOME,), None, (TEST,), "test"),
    "a choice here, and another name there": (
        (PROD, TEST),
        "test",
        (HOME,),
        "no server that belongs to 'test'",
    ),
    "another environment": ((LIVE,), None, (LAKE.format("x", ", environment: test"),), "it has: x"),
    "none": ((HOME,), None, (), "it has: none"),
}


@pytest.mark.parametrize(("here", "name", "there", "expected"), SERVERS.values(), ids=SERVERS)
def test_data_of_two_environments_is_not_joined(
    here: tuple[str, ...], name: str | None, there: tuple[str, ...], expected: str
) -> None:
    try:
        found = matching_server(served(*here, id="shop"), name, served(*there))
    except UsageError as error:
        found = error.message

    assert expected in found
