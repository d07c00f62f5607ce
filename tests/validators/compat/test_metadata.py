"""Prose and classifications: what a change of them means where no promise changes."""

from __future__ import annotations

import pytest
from fragments.compat import TODAY

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import DiffTerms, diff


def contract(version: str, keys: str) -> Contract:
    text = (
        f"apiVersion: v3.2.0\nkind: DataContract\nid: f\nversion: {version}\nstatus: active\nschema:\n"
        f"  - {{name: orders, properties: [{{name: id{keys}}}]}}\n"
    )
    made = parse(text.encode(), "f.odcs.yaml").contract
    assert made is not None
    return made


def judged(before: str, after: str, *versions: str) -> dict[str, str]:
    first, second = versions or ("1.0.0", "1.1.0")
    changes = diff(contract(first, before), contract(second, after), DiffTerms(today=TODAY)).changes
    return {change.rule: change.verdict.value for change in changes if change.rule != "version-bump-ok"}


@pytest.mark.parametrize(
    ("before", "after", "rules"),
    [
        ("", ", classification: restricted", {"description-changed": "ok"}),
        (", classification: public", ", classification: restricted", {"classification-raised": "warn"}),
        (", classification: restricted", "", {"classification-lowered": "warn"}),
    ],
    ids=["declared", "raised", "removed"],
)
def test_t65_a_first_classification_is_no_raise(before: str, after: str, rules: dict[str, str]) -> None:
    assert judged(before, after) == rules


@pytest.mark.parametrize("version", ["1.0.0", "0.3.0"])
@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (", description: a", ", description: b", "warn"),
        ("", ", businessName: Number", "warn"),
        (", required: true", "", "break"),
        ("", "}, {name: added", "break"),
    ],
    ids=["a description", "a business name", "a broken promise", "a column more"],
)
def test_t65_prose_under_the_same_version_is_a_warning(
    version: str, before: str, after: str, verdict: str
) -> None:
    assert judged(before, after, version, version)["version-not-bumped"] == verdict
