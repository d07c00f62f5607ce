"""What the standard allows in a contract's own version passes, and what it refuses is told at the line."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes.odcs import FILE, document
from jsonschema import Draft201909Validator

from dq.contracts.outcome import Finding, Severity
from dq.validators.lint import lint, load_rules

HERE = Path(__file__).parent / "odcs"
RULES = load_rules()
TODAY = date(2026, 11, 21)


def _found(text: bytes) -> list[Finding]:
    return lint(text, FILE, rules=RULES, today=TODAY)


def _mappings(
    value: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every mapping's path, and its kind: the keys above it, and its `type` where it has one."""
    if isinstance(value, dict):
        yield path, (*("*" if isinstance(step, int) else step for step in path), str(value.get("type")))
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from _mappings(inner, (*path, key))


def _with_key(contract: dict[str, Any], path: tuple[str | int, ...], misspelt: bool) -> tuple[str, Any]:
    """The key that is added to the mapping at a path, and the contract with it."""
    made = copy.deepcopy(contract)
    holder: Any = made
    for step in path:
        holder = holder[step]
    key = f"{next(iter(holder), 'name')}s" if misspelt else "zzUnknown"
    holder[key] = "text"
    return key, made


@pytest.mark.slow
@pytest.mark.parametrize("misspelt", [False, True], ids=["unlike any", "like another"])
@pytest.mark.parametrize("version", ["3.0.2", "3.1.0", "3.2.0"])
def test_t63_an_unknown_key_is_an_error_where_the_schema_refuses_it(
    odcs_schemas: dict[str, Any], version: str, misspelt: bool
) -> None:
    contract = yaml.safe_load((HERE / f"v{version}.odcs.yaml").read_text("utf-8"))
    schema = Draft201909Validator(odcs_schemas[version])
    places = {kind: path for path, kind in _mappings(contract)}
    wrong = []

    for path in places.values():
        key, changed = _with_key(contract, path, misspelt)
        found = _found(yaml.dump(changed, Dumper=yaml.CSafeDumper, sort_keys=False).encode())
        errors = {one.rule for one in found if one.severity is Severity.ERROR}
        if schema.is_valid(changed) == bool(errors):
            wrong.append((path, key, sorted(errors)))

    assert wrong == []


TOLD = {
    "a key of a service level (T63)": (
        "v3.0.2",
        "slaProperties: [{property: latency, value: 4, unit: d, unity: h}]",
        ("warning", "unknown-key", "slaProperties[0] has no key 'unity'. Did you mean 'unit'?"),
    ),
    "a key of a service level, since 3.1 (T63)": (
        "v3.1.0",
        "slaProperties: [{property: latency, value: 4, unit: d, unity: h}]",
        ("error", "unknown-key", "slaProperties[0] has no key 'unity'. Did you mean 'unit'?"),
    ),
    "a required key that is misspelt (T63)": (
        "v3.0.2",
        "slaProperties: [{propery: latency, value: 4, unit: d}]",
        ("error", "unknown-key", "slaProperties[0] has no key 'propery'. Did you mean 'property'?"),
    ),
    "a key of the description (T63)": (
        "v3.2.0",
        "description: {purposes: x}",
        ("warning", "unknown-key", "description has no key 'purposes'. Did you mean 'purpose'?"),
    ),
    "a key of a server (T63)": (
        "v3.0.2",
        "servers: [{server: s, type: s3, location: 's3://b/p', formatt: parquet}]",
        ("warning", "unknown-key", "a server of type 's3' has no key 'formatt'. Did you mean 'format'?"),
    ),
    "a column's type in 3.0 (T63)": (
        "v3.0.2",
        "schema: [{name: t, properties: [{name: c, logicaltype: string}]}]",
        (
            "error",
            "unknown-key",
            "schema[0].properties[0] has no key 'logicaltype'. Did you mean 'logicalType'?",
        ),
    ),
    "a metric without a rule (T64)": (
        "v3.0.2",
        "schema: [{name: t, quality: [{metric: rowCount, mustBe: 1}]}]",
        (
            "error",
            "missing-key",
            "a library rule needs 'rule' in ODCS v3.0.2; 'metric' requires v3.1.0."
            " Write 'rule: rowCount', or 'apiVersion: v3.1.0' or later.",
        ),
    ),
    "a metric next to a rule (T64)": (
        "v3.0.2",
        "schema: [{name: t, quality: [{metric: rowCount, rule: rowCount, mustBe: 1}]}]",
        (
            "warning",
            "later-version",
            "'metric' requires ODCS v3.1.0; this contract uses v3.0.2."
            " Write 'apiVersion: v3.1.0' or later, or remove it.",
        ),
    ),
    "a rule without a metric (T64)": (
        "v3.1.0",
        "schema: [{name: t, quality: [{rule: duplicateCount, mustBe: 1}]}]",
        (
            "warning",
            "library-without-metric",
            "'rule' is deprecated since ODCS v3.1.0, whose schema requires 'metric'."
            " Write 'metric: duplicateValues'.",
        ),
    ),
    "a type of servers that came later (T64)": (
        "v3.0.0",
        "servers: [{server: s, type: impala, host: h, database: d}]",
        (
            "error",
            "later-version",
            "server type 'impala' requires ODCS v3.1.0."
            " Write 'apiVersion: v3.1.0' or later, or 'type: custom'.",
        ),
    ),
    "what the text of 3.0.0 has and its schema has not (T64)": (
        "v3.0.0",
        "schema: [{name: t, properties: [{name: c, physicalName: d}]}]",
        (
            "warning",
            "later-version",
            "'physicalName' requires ODCS v3.0.2; this contract uses v3.0.0."
            " Write 'apiVersion: v3.0.2' or later, or remove it.",
        ),
    ),
    "an enum without values (T64)": (
        "v3.2.0",
        "schema: [{name: t, properties: [{name: c, logicalType: string, enum: []}]}]",
        (
            "error",
            "wrong-type",
            "an enum needs a value; without one, no value would be allowed."
            " Write 'enum: [{value: …}]', or remove it.",
        ),
    ),
    "an entry of an enum that comes twice (T64)": (
        "v3.2.0",
        "schema: [{name: t, properties: [{name: c, logicalType: string, enum: [{value: a}, {value: a}]}]}]",
        (
            "error",
            "duplicate-enum-value",
            "duplicate enum value 'a'. Remove the duplicate, or write the intended value.",
        ),
    ),
    "a value of an enum that comes twice, labelled otherwise (T64)": (
        "v3.2.0",
        "schema: [{name: t, properties:"
        " [{name: c, logicalType: string, enum: [{value: a}, {value: a, label: A}]}]}]",
        (
            "warning",
            "duplicate-enum-value",
            "duplicate enum value 'a'. Remove the duplicate, or write the intended value.",
        ),
    ),
}


@pytest.mark.parametrize(("api", "text", "expected"), TOLD.values(), ids=TOLD)
def test_the_finding_is_as_severe_as_the_version_has_it(
    api: str, text: str, expected: tuple[str, str, str]
) -> None:
    found = _found(document(text, api))

    assert [(one.severity.value, one.rule, f"{one.message} {one.hint}") for one in found] == [expected]


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("servers: [{server: s, type: s3, locaton: 's3://b/p', format: parquet}]", ["missing-key"]),
        ("schema: [{name: t, quality: [{metrc: rowCount, mustBe: 1}]}]", ["library-without-metric"]),
        ("customProperties: [{propertyy: a, value: 1}]", []),
    ],
    ids=["a server's location", "a rule's metric", "a custom property's name"],
)
def test_t63_what_the_schema_asks_for_is_missed_next_to_the_key_that_it_allows(
    text: str, errors: list[str]
) -> None:
    found = _found(document(text, "v3.0.2"))

    assert [one.rule for one in found if one.severity is Severity.ERROR] == errors
    assert [one.rule for one in found if one.severity is Severity.WARNING] == ["unknown-key"]


@pytest.mark.parametrize("metric", ["[1]", "null"])
def test_t64_a_metric_that_is_no_text_is_one_error_in_3_0(metric: str) -> None:
    found = _found(document(f"schema: [{{name: t, quality: [{{metric: {metric}, mustBe: 1}}]}}]", "v3.0.2"))

    assert [one.rule for one in found if one.severity is Severity.ERROR] == ["wrong-type"]
