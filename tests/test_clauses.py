"""No clause of ODCS is forgotten: the page of clauses is held against the official JSON Schema of 3.2."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from _clauses import clause_rows

from dq.contracts.odcs import SERVICE_LEVELS
from dq.dataquality.clauses.coverage import SERVICE_LEVEL_REASONS

STATES = {"enforced", "documented only", "not evaluated"}


@pytest.fixture(scope="module")
def page() -> dict[str, set[str]]:
    """The clauses of each section."""
    rows = clause_rows()
    assert {state for section in rows.values() for _, state in section} <= STATES
    assert all(how for section in rows.values() for _, how in section.values())
    return {section: {name for name, _ in found} for section, found in rows.items()}


@pytest.fixture(scope="module")
def standard() -> dict[str, Any]:
    """The definitions of the official schema, as the standard's own package has it."""
    text = files("open_data_contract_standard").joinpath("schema.json").read_text("utf-8")
    schema = json.loads(text)
    assert "v3.2.0" in schema["properties"]["apiVersion"]["enum"]
    return schema["$defs"]


def keys(*definitions: dict[str, Any]) -> set[str]:
    return {key for one in definitions for key in one.get("properties", {})}


def conditions(standard: dict[str, Any]) -> list[tuple[list[str], dict[str, Any]]]:
    """Logical types, and the keys that a property has besides when it is of one of them."""
    found = []
    for one in standard["SchemaBaseProperty"]["allOf"]:
        tests = one.get("if", {}).get("anyOf") or [one.get("if", {})]
        names = [test["properties"]["logicalType"]["const"] for test in tests if "properties" in test]
        if names:
            found.append((names, one["then"]["properties"]))
    return found


def test_every_key_of_an_element_is_on_the_page(page, standard) -> None:
    element = standard["SchemaElement"]
    besides = {key for _, more in conditions(standard) for key in more}

    assert keys(element, standard["SchemaObject"]) - page["Objects"] == set()
    assert (keys(element, standard["SchemaBaseProperty"]) | besides) - page["Properties"] == set()
    assert {"properties", "items", "map"} <= besides


def test_every_option_of_every_logical_type_is_on_the_page(page, standard) -> None:
    forgotten, seen = [], 0
    for names, more in conditions(standard):
        for name in names:
            options = keys(more.get("logicalTypeOptions", {}))
            seen += len(options)
            found = page.get(f"Options of the logical type {name}", set())
            forgotten += [f"{name}.{option}" for option in options - found]

    assert forgotten == []
    assert seen > 40


def test_every_word_of_a_list_is_on_the_page(page, standard) -> None:
    base = standard["SchemaBaseProperty"]["properties"]
    quality = standard["DataQuality"]["properties"]
    metrics = standard["DataQualityLibrary"]["properties"]["metric"]["enum"]
    rules = " ".join(page["Quality rules"])

    assert set(base["logicalType"]["enum"]) - page["Logical types"] == set()
    assert [one for one in metrics if f"metric: {one} on" not in rules] == []
    # The type library is told by its metrics.
    assert [one for one in quality["type"]["enum"] if f"type: {one}" not in rules] == ["library"]


def test_every_named_format_is_on_the_page(page, standard) -> None:
    named = {
        f"{name} ({kind})"
        for kinds, more in conditions(standard)
        for kind in kinds
        if kind in ("string", "integer", "number")
        for form in [more["logicalTypeOptions"]["properties"]["format"]]
        for name in form.get("enum", form.get("examples"))
    }

    assert named - page["Formats"] == set()
    assert len(named) > 15


def test_every_key_of_a_rule_a_relationship_and_a_service_level_is_on_the_page(page, standard) -> None:
    rules = [standard[f"DataQuality{kind}"] for kind in ("", "Library", "Sql", "Custom")]
    operators = keys(*standard["DataQualityOperators"]["oneOf"])

    assert keys(*rules) - page["Keys of a quality rule"] == set()
    assert operators - page["Operators"] == set()
    assert len(operators) == 8
    assert keys(standard["RelationshipBase"]) - page["Relationships"] == set()
    assert keys(standard["EnumValue"]) - page["Values of enum"] == set()
    level = standard["ServiceLevelAgreementProperty"]
    assert keys(level) - page["Keys of a service level"] == set()


def test_every_service_level_of_the_standard_is_on_the_page(page) -> None:
    named = {name for name, _ in SERVICE_LEVELS.values()}

    assert (named | set(SERVICE_LEVEL_REASONS)) - page["Service levels"] == set()
