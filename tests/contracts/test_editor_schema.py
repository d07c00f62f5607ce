"""The schema for editors takes what dq takes and marks what dq would not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from dq.contracts.extension import editor_schema
from dq.validators import rule_page

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "registry").glob("*.odcs.yaml"))
SCHEMA = editor_schema()


class _AsEditors(yaml.SafeLoader):
    """Reads dates as text, as the YAML extension of VS Code does."""


_AsEditors.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in all_ if not tag.endswith("timestamp")]
    for first, all_ in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def faults(text: str) -> list[str]:
    document: Any = yaml.load(text, Loader=_AsEditors)  # a safe loader all the same
    return [error.json_path for error in Draft7Validator(SCHEMA).iter_errors(document)]


def test_it_is_a_schema_of_draft_7() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_it_takes_the_examples(file: Path) -> None:
    assert faults(file.read_text()) == []


def sla(value: str, property_: str = "delivery", vendor: str = ", vendor: dq") -> str:
    return f"slaProperties: [{{customProperties: [{{property: {property_}{vendor}, value: {value}}}]}}]"


@pytest.mark.parametrize(
    "text",
    [
        sla("{grace: 45m, partition: {day: '{due:%Y}'}}"),
        sla("{partition: {day: ['{due:%Y}', a]}, calendar: {skip: [2026-12-25], valid_until: 2027-01-31}}"),
        sla("{whatever: 1}", vendor=", vendor: other"),
        sla("{whatever: 1}", property_="own"),
        rule_page.document("")[0],
    ],
)
def test_it_takes_what_dq_takes(text: str) -> None:
    assert faults(text) == []


ENTRY = "customProperties: [{{property: {}, vendor: dq, value: {}}}]"
WRONG = {
    "a misspelt key of a delivery": (sla("{grce: 45m}"), "$.slaProperties[0].customProperties[0].value"),
    "a word that is not one": (sla("{dst: later}"), "$.slaProperties[0].customProperties[0].value.dst"),
    "without a vendor too": (sla("{grce: 1}", vendor=""), "$.slaProperties[0].customProperties[0].value"),
    "a partition that is a number": (sla("{partition: {day: 1}}"), None),
    "a delivery of ODCS 3.1": (
        "customProperties: [{property: 'delivery:daily', value: {grce: 1}}]",
        "$.customProperties[0].value",
    ),
    "a dataset": (f"schema: [{{{ENTRY.format('dataset', '{marke: x}')}}}]", None),
    "a scope of an object's rule": (
        f"schema: [{{quality: [{{{ENTRY.format('scope', '{row: x}')}}}]}}]",
        None,
    ),
    "a scope of a nested property's rule": (
        "schema: [{properties: [{items: {properties: [{quality: [{"
        + ENTRY.format("scope", "{row: x}")
        + "}]}]}}]}]",
        "$.schema[0].properties[0].items.properties[0].quality[0].customProperties[0].value",
    ),
    "a route": (f"support: [{{{ENTRY.format('route', '{severities: [fatal]}')}}}]", None),
}


@pytest.mark.parametrize(("text", "where"), WRONG.values(), ids=WRONG)
def test_it_marks_what_dq_refuses(text: str, where: str | None) -> None:
    (found,) = faults(text)

    assert where in (None, found)
