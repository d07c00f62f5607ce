"""One mistake gives one finding."""

from __future__ import annotations

import pytest

from dq.validators.lint import ancestors

# Fragment, and the rules that speak about it.
CASES = {
    "a misspelt logicalType does not make its options homeless": (
        "schema: [{name: t, properties: [{name: a, logicalType: strng, logicalTypeOptions: {format: y}}]}]",
        ["unknown-value"],
    ),
    "a misspelt key logicalType does not either": (
        "schema: [{name: t, properties: [{name: a, logicalTyp: date, logicalTypeOptions: {format: y}}]}]",
        ["unknown-key"],
    ),
    "an absent logicalType is one finding however many options there are": (
        "schema: [{name: t, properties: [{name: a, logicalTypeOptions: "
        "{minLength: 1, maxLength: 2, pattern: a, format: email}}]}]",
        ["option-not-for-type"],
    ),
    "keys that may be null are one finding for all objects": (
        "schema: [{name: t, properties: [{name: a, primaryKey: true, required: false}]}, "
        "{name: u, properties: [{name: a, primaryKey: true, required: false}]}]",
        ["primary-key-optional"],
    ),
    "a misspelt operator is not a missing one": (
        "schema: [{name: t, quality: [{metric: rowCount, mustBeGreatrThan: 1}]}]",
        ["unknown-key"],
    ),
    "an operator of the wrong type is not a missing one": (
        "schema: [{name: t, quality: [{metric: rowCount, mustBeGreaterThan: many}]}]",
        ["wrong-type"],
    ),
    "a bound of the wrong type does not leave one bound too few": (
        "schema: [{name: t, quality: [{metric: rowCount, mustBeBetween: [a, 2]}]}]",
        ["wrong-type"],
    ),
    "a team of the wrong form is not a missing owner": ("team: [{role: owner}]", ["missing-key"]),
    "a misspelt team is not a missing owner": (
        "team: null\nteams: {name: sales}",
        ["unknown-key", "wrong-type"],
    ),
    "a channel without its key is not a missing one": (
        "support: [{tool: slack, scope: notifications}]",
        ["missing-key"],
    ),
    "a required key that is misspelt is not missing besides": (
        "support: [{chanel: a, scope: notifications}]",
        ["unknown-key"],
    ),
    "a misspelt apiVersion is not missing besides": (
        "---\napiVersoin: v3.2.0\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n"
        "team: {name: a}\nsupport: [{channel: a, scope: notifications}]\nschema: [{name: a}]",
        ["unknown-key"],
    ),
    "a misspelt version has no wrong form besides": (
        "---\napiVersion: v3.2.0\nkind: DataContract\nid: orders\nvresion: 1.0.0\nstatus: active\n"
        "team: {name: a}\nsupport: [{channel: a, scope: notifications}]\nschema: [{name: a}]",
        ["unknown-key"],
    ),
    "a schema of the wrong type is not a missing one": ("schema: orders", ["wrong-type"]),
    "a position of the wrong type leaves no gap": (
        "schema: [{name: t, properties: ["
        "{name: a, partitioned: true, partitionKeyPosition: one}, "
        "{name: b, partitioned: true, partitionKeyPosition: 2}]}]",
        ["wrong-type"],
    ),
    "an object that lacks its name is not an unknown element": (
        "schema: [{nam: t, properties: [{name: a}]}]\n"
        "slaProperties: [{property: latency, value: 1, unit: h, element: t}]",
        ["unknown-key"],
    ),
    "a column without name is not an unknown element": (
        "schema: [{name: t, properties: [{name: 1}]}]\n"
        "slaProperties: [{property: latency, value: 1, unit: h, element: t.a}]",
        ["wrong-type"],
    ),
    "an id of the wrong type has no wrong form": ("id: 12", ["wrong-type"]),
    "a version of the wrong type is no unknown version": ("version: 1.10", ["wrong-type"]),
    "a bare decimal has no unknown type besides": (
        "schema: [{name: t, properties: [{name: a, logicalType: array, physicalType: array<decimal>}]}]",
        ["decimal-without-precision"],
    ),
    "a twin is not told about its capital letter": (
        "schema: [{name: t, properties: [{name: a}, {name: A}]}]",
        ["duplicate-property"],
    ),
    "a key of a later version is not judged besides": (
        "apiVersion: v3.1.0\nschema: [{name: t, properties: [{name: a, logicalType: map}]}]",
        ["later-version", "map-without-types"],
    ),
    "what is not the consequence is still said": (
        "schema: [{name: t, properties: [{name: a, logicalType: strng}, {name: a}]}]",
        ["unknown-value", "duplicate-property"],
    ),
    "a retention of the wrong form is not a missing one": (
        "schema: [{name: t, properties: [{name: a, classification: pii}]}]\n"
        "slaProperties: [{property: retention, valeu: 1, unit: y}]",
        ["unknown-key"],
    ),
}


@pytest.mark.parametrize(("fragment", "expected"), CASES.values(), ids=CASES)
def test_consequences_are_left_out(lint_fragment, fragment: str, expected: list[str]) -> None:
    assert sorted(one.rule for one in lint_fragment(fragment + "\n")) == sorted(expected)


def test_the_paths_above_a_path_come_nearest_first() -> None:
    assert list(ancestors("schema[0].properties[2].name")) == [
        "schema[0].properties[2]",
        "schema[0].properties",
        "schema[0]",
        "schema",
    ]
