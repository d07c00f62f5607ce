"""A change of a metric of dq's own engine is looser, stricter, or another question."""

from __future__ import annotations

import pytest
from fragments.compat import TODAY

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.validators.compat.comparison import DiffTerms, diff

BEFORE = "check: quantile, arguments: {q: 0.95}, mustBeLessThan: 600"


def contract(implementation: str, version: str) -> Contract:
    text = (
        f"apiVersion: v3.2.0\nkind: DataContract\nid: f\nversion: {version}\nstatus: active\nschema:\n"
        "  - name: flights\n    properties:\n      - {name: carrier, logicalType: string}\n"
        "      - {name: air_time, logicalType: integer, quality: [{id: q, type: custom, engine: dq,"
        f" implementation: {{{implementation}}}}}]}}\n"
    )
    made = parse(text.encode(), "f.odcs.yaml").contract
    assert made is not None
    return made


CHANGES = {
    "a looser bound": (BEFORE.replace("600", "700"), ["quality-relaxed"]),
    "a stricter bound": (BEFORE.replace("600", "500"), ["quality-tightened"]),
    "the same in another form": (BEFORE.replace("q: 0.95", "q: 0.950"), []),
    "another bound": (BEFORE.replace("mustBeLessThan: 600", "mustBeGreaterThan: 6"), ["quality-changed"]),
    "another share": (BEFORE.replace("0.95", "0.9"), ["quality-changed"]),
    "groups": (BEFORE.replace("q: 0.95", "q: 0.95, by: carrier"), ["quality-changed"]),
    "another metric": (BEFORE.replace("quantile, arguments: {q: 0.95}", "max"), ["quality-changed"] * 2),
    "another unit": ("check: distinctCount, unit: percent, mustBe: 6", None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_judged_by_what_it_means(change: str) -> None:
    after, rules = CHANGES[change]
    before = "check: distinctCount, mustBe: 6" if rules is None else BEFORE

    found = diff(contract(before, "1.0.0"), contract(after, "2.0.0"), DiffTerms(today=TODAY)).changes

    told = [one.rule for one in found if one.rule != "version-bumped"]
    assert [one for one in told if one.startswith("quality")] == (
        ["quality-changed"] if rules is None else rules
    )
