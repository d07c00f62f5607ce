"""A clause keeps its name when a column moves."""

from __future__ import annotations

import pytest

from dq.contracts.model import Contract, clause_namer
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import clauses_of

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\nschema:\n  - name: orders\n"
RULES = """\
    quality:
      - {id: some, metric: rowCount, mustBeGreaterThan: 0}
      - {name: many, metric: rowCount, mustBeLessThan: 9}
      - {metric: rowCount, mustBeLessThan: 8}
    properties:
"""
COLUMNS = [
    "      - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}\n",
    "      - {id: st, name: state, logicalType: string, enum: [{value: open}]}\n",
    "      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}\n",
    "      - {name: tags, logicalType: array, items: {logicalType: string, required: true}}\n",
    "      - name: buyer\n        logicalType: object\n        properties:\n"
    "          - {name: age, logicalType: integer, required: true}\n",
]


def names(text: str) -> set[str]:
    parsed = parse(text.encode(), "shop.odcs.yaml")
    assert isinstance(parsed.contract, Contract), parsed.findings
    [one] = parsed.contract.objects
    name = clause_namer(one)
    return {name(clause.path) for clause in clauses_of(parsed.contract, one, built_in())}


def test_the_order_of_columns_changes_no_name() -> None:
    there = names(HEAD + RULES + "".join(COLUMNS))

    assert there == names(HEAD + RULES + "".join(reversed(COLUMNS)))
    assert not any("[" in one for one in there)
    assert there >= {
        "schema/orders/primaryKey",
        "schema/orders/quality/some",
        "schema/orders/quality/many",
        "schema/orders/quality/2",
        "schema/orders/properties/st/enum",
        "schema/orders/properties/customer/relationships/customers.id",
        "schema/orders/properties/buyer/properties/age/required",
    }


@pytest.mark.parametrize("same", ["id: twice", "name: twice"])
def test_what_shares_its_name_keeps_its_position(same: str) -> None:
    rules = "".join(f"      - {{{same}, metric: rowCount, mustBeGreaterThan: {n}}}\n" for n in range(2))

    found = names(HEAD + "    quality:\n" + rules + "    properties:\n" + COLUMNS[0])

    assert {"schema/orders/quality/0", "schema/orders/quality/1"} <= found
