"""Rules of type text: the words are the promise, wherever the rule stands in its list."""

from __future__ import annotations

import pytest
from fragments.compat import TODAY

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import DiffTerms, diff

UNIQUE = "{type: text, description: Each order id is unique.}"
CUSTOMER = "{type: text, description: Each order has a customer.}"


def contract(version: str, *rules: str) -> Contract:
    text = (
        f"apiVersion: v3.2.0\nkind: DataContract\nid: f\nversion: {version}\nstatus: active\nschema:\n"
        f"  - {{name: orders, properties: [{{name: id, quality: [{', '.join(rules)}]}}]}}\n"
    )
    made = parse(text.encode(), "f.odcs.yaml").contract
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("before", "after", "rules"),
    [
        ([UNIQUE], [CUSTOMER], {"quality-removed", "quality-added"}),
        ([UNIQUE, CUSTOMER], [CUSTOMER, UNIQUE], set()),
        ([UNIQUE, CUSTOMER], [CUSTOMER], {"quality-removed"}),
        ([UNIQUE], [UNIQUE.replace("Each order id", "each  ORDER id")], set()),
        ([UNIQUE.replace("{", "{id: u, ")], [CUSTOMER.replace("{", "{id: u, ")], {"quality-changed"}),
        ([UNIQUE], [UNIQUE.replace("{", "{id: u, ")], set()),
    ],
    ids=["another promise", "swapped", "removed", "white space", "the same id", "an id is added"],
)
def test_t61_a_promise_that_is_removed_reads_as_removed(
    before: list[str], after: list[str], rules: set[str]
) -> None:
    changes = diff(contract("1.0.0", *before), contract("2.0.0", *after), DiffTerms(today=TODAY)).changes

    assert {change.rule for change in changes if change.rule.startswith("quality")} == rules
