"""JSON Schemas of a stranger's policy cost a bounded number of steps (T13, T14, T15)."""

from __future__ import annotations

from datetime import date

import pytest
from fragments.gate import CONTRACT, Scene
from fragments.hostile_schemas import HOSTILE_SCHEMAS, custom_properties, policy

from dq.cli.main import run
from dq.validators.lint import lint, load_rules
from dq.validators.policy.file import read


def test_there_are_forty_hostile_schemas_or_more() -> None:
    assert len(HOSTILE_SCHEMAS) >= 40


@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_a_hostile_schema_is_a_finding_and_the_other_contracts_are_judged(
    scene: Scene, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    scene.write("registry/dq-policy.yaml", policy(name))
    scene.write("registry/orders.odcs.yaml", CONTRACT + custom_properties(name))
    broken = CONTRACT.replace("id: orders", "id: lines").replace("logicalType: integer", "logicalType: strng")
    scene.write("registry/sales/lines.odcs.yaml", broken)
    scene.enter(scene.folder)

    code = run(["validate", "registry", "--format", "json"])

    out = capfd.readouterr().out
    assert code == 1
    assert "dq-policy.yaml" in out or "custom-property-invalid" in out
    assert "strng" in out


def test_a_policy_of_ordinary_size_is_evaluated_for_a_wide_table() -> None:
    schemas = (
        (
            "customProperties: {property: {required: [pii], properties: {pii: {enum: [yes, no]},"
            " owner: {type: string, pattern: '^[a-z]+@[a-z.]+$'}}}}\n"
        )
        .replace("yes", "'yes'")
        .replace("no]", "'no']")
    )
    columns = "".join(
        f"      - {{name: c{number}, logicalType: string, customProperties: [{{property: pii, value: 'no'}},"
        " {property: owner, value: ana@example.com}]}\n"
        for number in range(1_000)
    )
    rules = load_rules()
    made, wrong = read(schemas.encode(), "dq-policy.yaml", rules)
    text = CONTRACT + columns

    findings = lint(text.encode(), "a.odcs.yaml", rules=rules, policy=made, today=date(2026, 11, 21))

    assert wrong == []
    assert "were not evaluated" not in "".join(finding.message for finding in findings)


def test_an_own_rule_takes_no_pattern_that_could_run_for_ever(scene: Scene) -> None:
    for pattern in ("^(?P<x>a+)+$", "(?i)^(a|A)+$", "(?s)^(.|\\n)+$"):
        scene.write(
            "registry/dq-policy.yaml",
            f"own: {{x: {{select: contract, message: m, assert: {{domain: {{matches: '{pattern}'}}}}}}}}\n",
        )
        scene.enter(scene.folder)

        assert run(["validate", "registry"]) == 2
