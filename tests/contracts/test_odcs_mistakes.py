"""One mistake gives one finding, with the right rule, at the place where the mistake is."""

from __future__ import annotations

from datetime import date

import pytest
from fakes.odcs import FILE, Mistake, document, mistakes

from dq.contracts.outcome import Finding
from dq.operations.gate import unenforced
from dq.validators.lint import lint, load_rules

RULES = load_rules()
TODAY = date(2026, 11, 21)
MISTAKES = tuple(mistakes())


def _found(contract: bytes) -> list[Finding]:
    return lint(contract, FILE, rules=RULES, today=TODAY, unenforced=unenforced)


def test_there_are_enough_mistakes() -> None:
    assert len({one.contract for one in MISTAKES}) == len(MISTAKES) >= 120


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: f"{one.rule}-{one.at[0]}-{one.at[1]}")
def test_a_mistake_is_one_finding_at_its_place(mistake: Mistake) -> None:
    found = _found(mistake.contract)

    assert [(one.rule, (one.at.line, one.at.column)) for one in found] == [(mistake.rule, mistake.at)]


HINTS = {
    "a list of words for an enum": (
        "schema: [{name: t, properties: [{name: c, logicalType: string, enum: [a, b]}]}]",
        "every item of enum must be a mapping, not the text 'a'. Write enum: [{value: \"a\"}, …].",
    ),
    "a list of digits for an enum (T62)": (
        "schema: [{name: t, properties: [{name: c, logicalType: string, enum: ['01', b]}]}]",
        "every item of enum must be a mapping, not the text '01'. Write enum: [{value: \"01\"}, …].",
    ),
    "a channel that YAML takes for a comment": (
        "support:\n  - channel: #climate\n    tool: slack",
        "channel is empty. Give 'channel' a value, or remove it."
        " YAML treats unquoted text after '#' as a comment.",
    ),
    "a reference of JSON Schema": (
        "schema: [{$ref: '#/orders'}]",
        "schema[0] has no key '$ref'. ODCS has no $ref: write the element out,"
        " or share it with a YAML anchor.",
    ),
    "a column that is misspelt in SQL, after an alias": (
        "schema: [{name: t, properties: [{name: amount}], quality:"
        " [{type: sql, query: 'SELECT count(*) FROM {object} o WHERE o.amuont < 0', mustBe: 0}]}]",
        "'t' has no property 'amuont'. Did you mean 'amount'?",
    ),
    "an id with a slash": (
        "id: sales/orders",
        "id 'sales/orders' contains '/'; only ASCII letters, digits, '-', '_', '.' and ':' are allowed."
        " Choose a permanent id.",
    ),
    "a template that was not filled": (
        "name: {{title}}",
        "this is a template that has not been rendered: {{…}}. Render it, or put it in quotes.",
    ),
    "a key at the wrong place": (
        "username: ana",
        "the contract has no key 'username'. It belongs under 'team'.",
    ),
    "a member where the team is": (
        "team: {username: ana}",
        "team has no key 'username'. It belongs under 'members'.",
    ),
    "nullable: false (T62)": (
        "schema: [{name: t, properties: [{name: c, nullable: false}]}]",
        "schema[0].properties[0] has no key 'nullable'. Write 'required: true'.",
    ),
    "isNullable: true (T62)": (
        "schema: [{name: t, properties: [{name: c, isNullable: true}]}]",
        "schema[0].properties[0] has no key 'isNullable'."
        " Remove it: a value may be NULL unless the property has 'required: true'.",
    ),
    "nullable with a word (T62)": (
        "schema: [{name: t, properties: [{name: c, nullable: maybe}]}]",
        "schema[0].properties[0] has no key 'nullable'."
        " Write 'required: true' if no value may be NULL, or remove it.",
    ),
    "a type that is a logical one (T62)": (
        "schema: [{name: t, properties: [{name: c, type: string}]}]",
        "schema[0].properties[0] has no key 'type'. Write 'logicalType: string'.",
    ),
    "a type of a table (T62)": (
        "schema: [{name: t, properties: [{name: c, type: 'decimal(10, 2)'}]}]",
        "schema[0].properties[0] has no key 'type'."
        " Write 'logicalType: number' and 'physicalType: \"decimal(10, 2)\"'.",
    ),
    "a type next to a logical one (T62)": (
        "schema: [{name: t, properties: [{name: c, logicalType: string, type: varchar(10)}]}]",
        "schema[0].properties[0] has no key 'type'. Write 'physicalType: varchar(10)'.",
    ),
    "the type of an object (T62)": (
        "schema: [{name: t, type: table}]",
        "schema[0] has no key 'type'. Write 'physicalType: table'.",
    ),
    "a type of the contract, which has none (T62)": (
        "type: table",
        "the contract has no key 'type'. Put your own keys under 'customProperties'.",
    ),
    "columns (T62)": (
        "schema: [{name: t, columns: [{name: c}]}]",
        "schema[0] has no key 'columns'. ODCS calls it 'properties'.",
    ),
    "columns as a mapping (T62)": (
        "schema: [{name: t, columns: {c: {}}}]",
        "schema[0] has no key 'columns'."
        " ODCS calls it 'properties', a list: 'properties: [{name: …, logicalType: …}]'.",
    ),
    "a primary key of ODCS 2 (T62)": (
        "schema: [{name: t, properties: [{name: c, isPrimaryKey: true}]}]",
        "schema[0].properties[0] has no key 'isPrimaryKey'. Write 'primaryKey: true'.",
    ),
    "a schema for editors (T62)": (
        "$schema: https://example.com/odcs.json",
        "the contract has no key '$schema'. Write it as a comment for editors:"
        " '# yaml-language-server: $schema=https://example.com/odcs.json'.",
    ),
    "a description that is a text (T62)": (
        "description: 'One row: per \"order\".'",
        "description must be a mapping, not the text 'One row: per \"order\".'."
        ' Write description: {purpose: "One row: per \\"order\\"."}.',
    ),
    "a word where only one is possible (T62)": (
        "kind: Treaty",
        "unknown kind 'Treaty'. Write DataContract.",
    ),
    "a word that is like nothing": (
        "silver: a",
        "the contract has no key 'silver'. Put your own keys under 'customProperties'.",
    ),
}


@pytest.mark.parametrize(("text", "said"), HINTS.values(), ids=HINTS)
def test_the_finding_says_what_was_meant(text: str, said: str) -> None:
    found = _found(document(text, "v3.2.0"))

    assert [f"{one.message} {one.hint}" for one in found] == [said]


FOREIGN = {
    "dbt": "version: 2\nmodels:\n  - name: orders\n    columns: [{name: id}]\n",
    "Kubernetes": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}\n",
    "the Open Data Product Specification": (
        "schema: https://opendataproducts.org/v3.1\nversion: 3.1\nproduct: {en: {}}\n"
    ),
    "the Open Data Product Standard": "apiVersion: v1.0.0\nkind: DataProduct\nid: a\nstatus: draft\n",
    "OpenAPI": "openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths: {}\n",
}


@pytest.mark.parametrize(("name", "text"), FOREIGN.items(), ids=FOREIGN)
def test_a_file_of_another_kind_is_one_finding_that_names_it(name: str, text: str) -> None:
    found = _found(text.encode())

    assert [one.rule for one in found] == ["not-a-contract"]
    assert f"this looks like {name}" in found[0].message


def test_other_rows_of_the_same_list_keep_their_findings() -> None:
    text = (
        "schema: [{name: t, properties: [{name: c, logicalType: string, enum: [{value: a}, b, {valu: c}]}]}]"
    )

    found = _found(document(text, "v3.2.0"))

    assert [(one.rule, one.path) for one in found] == [
        ("wrong-type", "schema[0].properties[0].enum[1]"),
        ("unknown-key", "schema[0].properties[0].enum[2].valu"),
    ]
