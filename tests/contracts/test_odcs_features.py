"""No valid feature of ODCS 3.0.0 to 3.2.0 is refused, and what is doubted or not enforced is said."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
import yaml
from fakes.odcs import FILE, Feature, features
from jsonschema import Draft201909Validator

from dq.contracts.odcs import SUPPORTED
from dq.operations.gate import unenforced
from dq.validators.lint import lint, load_rules

RULES = load_rules()
TODAY = date(2026, 11, 21)
FEATURES = tuple(features())
VERSIONS = tuple(version.removeprefix("v") for version in SUPPORTED)
# The JSON Schema of 3.0.2 says that the schema of a DuckDB is a number, which its text does not.
MISPRINTS = {("3.0.2", "servers.type: duckdb")}
# 3.0 takes any key there, or a text says nothing that a schema could refuse.
ALLOWED_BEFORE = {
    "authoritativeDefinitions.id and description",
    "servers.location from a variable with a default",
    "support.channel alone",
    "team.name and description",
}


def _rules(feature: Feature, version: str) -> list[tuple[str, str]]:
    found = lint(feature.contract(version), FILE, rules=RULES, today=TODAY, unenforced=unenforced)
    return sorted({(one.severity.value, one.rule) for one in found if one.rule != "file-name-not-id"})


def test_there_are_enough_features_and_each_has_its_own_name() -> None:
    names = [feature.key for feature in FEATURES]

    assert len(names) >= 300
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_valid_feature_is_no_error_and_has_only_the_doubts_that_are_listed(version: str) -> None:
    of_version = [feature for feature in FEATURES if feature.is_of(version)]

    found = {feature.key: _rules(feature, version) for feature in of_version}

    listed = {feature.key: [("warning", rule) for rule in sorted(feature.warns)] for feature in of_version}
    assert {key: rules for key, rules in found.items() if rules != listed[key]} == {}


@pytest.mark.parametrize("version", ["3.0.2", "3.1.0", "3.2.0"])
def test_every_feature_is_valid_by_the_official_schema(odcs_schemas: dict[str, Any], version: str) -> None:
    schema = Draft201909Validator(odcs_schemas[version])

    refused = {
        feature.key
        for feature in FEATURES
        if feature.is_of(version) and not schema.is_valid(_plain(feature.contract(version)))
    }

    assert refused == {key for of, key in MISPRINTS if of == version}


def test_a_feature_is_a_finding_in_the_version_before_it_arrives() -> None:
    early = [(one, _before(one.since)) for one in FEATURES if one.since != "3.0.0"]

    silent = {one.key for one, version in early if _rules(one, version) == []}

    assert silent == ALLOWED_BEFORE


def _before(since: str) -> str:
    return VERSIONS[VERSIONS.index(since) - 1]


def _plain(document: bytes) -> Any:
    """As JSON has it, with dates as the text that they are."""
    return json.loads(json.dumps(yaml.load(document, yaml.CSafeLoader), default=str))
