"""The JSON Schema of the policy says what the reader says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from dq.validators.policy.file import json_schema, read
from dq.validators.rule import Rule

GOOD = [
    "profile: strict",
    "rules: {missing-owner: {severity: error}, comment-too-long: {column_characters: 90}}",
    "sections: [{for: {path: a/**}, profile: strict, rules: {missing-owner: {severity: info}}}]",
    "own: {a: {select: object, where: {tags: {contains: x}}, assert: {name: {matches: ^a}}, message: m.}}",
    "waivers: [{rule: missing-owner, contract: a, path: team, reason: r, by: b, expires: '2027-01-01'}]",
]
BAD = [
    "profil: strict",
    "profile: lax",
    "rules: {missing-owner: {severty: error}}",
    "rules: {comment-too-long: {column_characters: many}}",
    "sections: [{profile: strict}]",
    "own: {a: {select: object, assert: {name: {matchs: ^a}}, message: m.}}",
    "own: {a: {select: table, assert: {name: {exists: true}}, message: m.}}",
    "waivers: [{rule: missing-owner, contract: a, path: team, reason: r, by: b}]",
]


@pytest.fixture(scope="module")
def schema(rules: dict[str, Rule]) -> dict[str, Any]:
    made = json_schema(rules)
    Draft202012Validator.check_schema(made)
    return made


@pytest.mark.parametrize(("text", "good"), [(one, True) for one in GOOD] + [(one, False) for one in BAD])
def test_schema_and_reader_agree(
    schema: dict[str, Any], rules: dict[str, Rule], text: str, good: bool
) -> None:
    assert Draft202012Validator(schema).is_valid(yaml.safe_load(text)) == good
    assert (read(text.encode(), "dq-policy.yaml", rules)[1] == []) == good
