"""JSON Schemas of the policy for custom properties: judged at the line of each value; nothing is fetched."""

from __future__ import annotations

from datetime import date

import pytest

from dq.contracts.outcome import Severity
from dq.validators import rule_page
from dq.validators.lint import lint
from dq.validators.policy.file import read

TODAY = date(2026, 11, 21)
ID = "custom-property-invalid"


def _found(rules, schemas: str, fragment: str):
    policy, wrong = read(f"customProperties:\n  {schemas}\n".encode(), "dq-policy.yaml", rules)
    assert wrong == []
    text, begins = rule_page.document(fragment)
    findings = lint(text.encode(), rule_page.BASE_FILE, rules=rules, policy=policy, today=TODAY)
    return [(one.at.line - begins, one.path, one.message) for one in findings if one.rule == ID]


CENTRE = (
    "contract: {required: [costCentre], additionalProperties: false, properties: {costCentre: {type: string,"
    " pattern: '^CC-[0-9]{4}$', description: 'CC- and four digits.'}, since: {type: string},"
    " owners: {type: array, items: {type: object, properties: {mail: {type: string}}}}}}"
)
GIVEN = "customProperties:\n  - {{property: costCentre, value: {0}}}\n"


def test_what_is_as_described_has_no_finding(rules):
    assert _found(rules, CENTRE, GIVEN.format("CC-0042")) == []


def test_a_missing_one_is_found_and_named(rules):
    (found,) = _found(rules, CENTRE, "domain: sales\n")

    assert found[1] == "customProperties"
    assert found[2] == "contract 'orders' lacks the custom property 'costCentre', which the policy requires."


def test_a_value_is_found_at_its_line(rules):
    (found,) = _found(rules, CENTRE, GIVEN.format("'42'"))

    assert found[:2] == (1, "customProperties[0].value")
    assert found[2] == "custom property 'costCentre': '42' does not match '^CC-[0-9]{4}$'."


def test_the_mend_is_what_the_schema_says(rules):
    policy, _ = read(f"customProperties:\n  {CENTRE}\n".encode(), "dq-policy.yaml", rules)
    text, _ = rule_page.document(GIVEN.format("'42'"))

    (found,) = [one for one in lint(text.encode(), "a.odcs.yaml", rules=rules, policy=policy, today=TODAY)
                if one.rule == ID]  # fmt: skip

    assert found.hint == "The policy says: CC- and four digits."
    assert found.severity is Severity.ERROR


def test_a_closed_set_refuses_others_at_their_line(rules):
    (found,) = _found(rules, CENTRE, GIVEN.format("CC-0042") + "  - {property: costCenter, value: CC-1}\n")

    assert found[:2] == (2, "customProperties[1].property")
    assert "costCenter" in found[2]


def test_a_part_of_a_value_is_found_where_it_stands(rules):
    owners = "  - property: owners\n    value:\n      - {mail: a@b.c}\n      - {mail: 4}\n"

    (found,) = _found(rules, CENTRE, GIVEN.format("CC-0042") + owners)

    assert found[:2] == (5, "customProperties[1].value[1].mail")


def test_an_unquoted_date_is_a_text_as_in_json(rules):
    assert _found(rules, CENTRE, GIVEN.format("CC-0042") + "  - {property: since, value: 2026-01-01}\n") == []


def test_a_property_of_dq_itself_is_not_the_organisation_s(rules):
    schemas = "object: {additionalProperties: false}"
    dataset = "{property: dataset, vendor: dq, value: {additionalColumns: warn}}"
    columns = "properties: [{name: a, logicalType: string}]"
    own = f"schema: [{{name: t, {columns}, customProperties: [{dataset}]}}]\n"

    assert _found(rules, schemas, own) == []


LEVELS = {
    "object": "schema: [{name: t, properties: [{name: a, logicalType: string}]}]\n",
    "property": "schema: [{name: t, properties: [{name: a, logicalType: string}]}]\n",
    "slaProperty": "slaProperties: [{property: retention, value: 1, unit: y}]\n",
    "server": "servers: [{server: lake, type: local, path: lake, format: parquet}]\n",
}


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_judged(rules, level):
    (found,) = _found(rules, f"{level}: {{required: [retentionClass]}}", LEVELS[level])

    assert found[2].startswith(f"{level} '")
    assert found[1].endswith("customProperties")


UNUSABLE = {
    "no schema": ("contract: {type: sometimes}", "contract.type"),
    "a reference that leaves it": (
        "contract: {properties: {a: {$ref: 'https://127.0.0.1:9/schema.json'}}}",
        "properties.a.$ref",
    ),
    "a file": ("contract: {properties: {a: {$ref: 'file:///etc/passwd'}}}", "properties.a.$ref"),
    "a broken pattern": ("contract: {properties: {a: {pattern: '('}}}", "properties.a.pattern"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_schema_that_cannot_be_used_is_a_finding_of_the_policy(rules, case):
    schemas, path = UNUSABLE[case]

    policy, wrong = read(f"customProperties:\n  {schemas}\n".encode(), "dq-policy.yaml", rules)

    assert [one.at.file for one in wrong] == ["dq-policy.yaml"]
    assert wrong[0].path.endswith(path)
    assert policy.schemas == {}


def test_a_reference_within_the_schema_that_names_nothing_is_a_finding_of_the_policy(rules):
    schemas = "contract: {properties: {a: {$ref: '#/$defs/none'}}}"

    _, wrong = read(f"customProperties:\n  {schemas}\n".encode(), "dq-policy.yaml", rules)

    assert [one.path for one in wrong] == ["customProperties.contract.properties.a.$ref"]


def test_a_schema_that_refers_to_itself_is_a_finding_of_the_policy(rules):
    schemas = "contract: {properties: {a: {$ref: '#/properties/a'}}}"

    policy, wrong = read(f"customProperties:\n  {schemas}\n".encode(), "dq-policy.yaml", rules)

    assert [one.path for one in wrong] == ["customProperties.contract.properties.a.$ref"]
    assert policy.schemas == {}
