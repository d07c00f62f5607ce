"""A change of an attribute shows its values; one that came or went says so."""

from __future__ import annotations

import pytest
from fragments.compat import TODAY

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import DiffTerms, diff


def contract(version: str, keys: str) -> Contract:
    text = (
        f"apiVersion: v3.2.0\nkind: DataContract\nid: f\nversion: {version}\nstatus: active\nschema:\n"
        f"  - {{name: orders{keys}, properties: [{{name: id}}]}}\n"
    )
    made = parse(text.encode(), "f.odcs.yaml").contract
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("before", "after", "ending"),
    [
        (", businessName: Orders", "", " (removed: Orders)."),
        ("", ", businessName: Orders", " (added: Orders)."),
        (", businessName: Orders", ", businessName: Sales", " (Orders → Sales)."),
    ],
    ids=["removed", "added", "changed"],
)
def test_t62_a_value_that_came_or_went_is_not_an_arrow_to_nothing(
    before: str, after: str, ending: str
) -> None:
    changes = diff(contract("1.0.0", before), contract("1.1.0", after), DiffTerms(today=TODAY)).changes

    assert [change.problem[-len(ending) :] for change in changes if change.attribute == "businessName"] == [
        ending
    ]
