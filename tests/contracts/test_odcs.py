"""We judge the form of a contract as the official JSON Schema of its own version does.

Contracts of ours that use every key of a version are changed in one place at a time, and both judge the
result. Where they differ, the difference is one of the few that docs/explanation/odcs.md explains.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator
from jsonschema.validators import extend

from dq.contracts import odcs as servers
from dq.contracts.odcs import SUPPORTED
from dq.contracts.outcome import Severity
from dq.validators.lint import lint, load_rules

HERE = Path(__file__).parent / "odcs"
FILE = "harbour-calls.odcs.yaml"
RULES = load_rules()
TODAY = date(2026, 11, 21)
VERSIONS = ("3.0.2", "3.1.0", "3.2.0")

# Rules that no JSON Schema can express, or that it should: docs/explanation/odcs.md says why.
STRICTER = {
    "bounds-reversed", "cron-invalid", "custom-without-engine", "enum-type-mismatch", "id-form",
    "key-not-for-quality-type", "library-without-metric", "min-above-max", "operator-missing",
    "option-type-mismatch", "option-value-invalid", "partition-positions", "percent-out-of-range",
    "physical-type-unknown", "primary-key-positions", "property-without-name", "reference-unknown",
    "relationship-without-target", "sla-element-unknown", "sla-value-not-number", "sql-not-read-only",
    "sql-without-query", "unknown-unit", "version-not-semver", "wrong-type", "duplicate-id",
    "metric-property-unknown", "placeholder-unknown", "pattern-invalid", "duplicate-property",
    "duplicate-object", "ambiguous-unit", "duplicate-contract", "element-id-form", "metric-not-for-level",
}  # fmt: skip
# ODCS 3.0's schema is open at most places; 3.0.2 also lets a custom property be empty.
STRICTER_IN_3_0 = {"unknown-key", "missing-key", "metric-unknown", "later-version"}
# Paths at which the schema sees something that we do not.
LAXER = {"authoritativeDefinitions.*.id", "price.id", "team.id", "members.*.id"}

OTHERS: list[Any] = ["text", 7, -1, 1.5, True, None, [], {}, ["a"], {"a": 1}, ""]


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield (*path, key)
        yield from _places(inner, (*path, key))


def _changed(
    document: dict[str, Any], path: tuple[str | int, ...], how: str, other: object
) -> dict[str, Any]:
    made = copy.deepcopy(document)
    holder: Any = made
    for step in path[:-1]:
        holder = holder[step]
    if how == "drop":
        del holder[path[-1]]
    elif how == "rename" and isinstance(holder, dict):
        holder[f"{path[-1]}Zz"] = holder.pop(path[-1])
    else:
        holder[path[-1]] = copy.deepcopy(other)
    return made


def _sample(document: dict[str, Any], count: int) -> list[tuple[str, dict[str, Any]]]:
    """`count` documents with one change each, always the same ones, with a name for each."""
    draw = random.Random(17)
    places = draw.sample(sorted(_places(document), key=str), count)
    made = []
    for path in places:
        how = draw.choice(("drop", "rename", "replace", "replace"))
        other = draw.choice(OTHERS)
        name = ".".join("*" if isinstance(step, int) else step for step in path)
        made.append((f"{name} {how} {other!r}", _changed(document, path, how, other)))
    return made


def remembering() -> Any:
    """A validator that looks once at equal entries of a list: of a changed document nearly all are as before.

    An entry is judged by itself, wherever it stands.
    """
    one_by_one = Draft201909Validator.VALIDATORS["items"]
    good: set[tuple[str, str]] = set()

    def items(validator: Any, each: Any, entries: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(each, dict) or not isinstance(entries, list):
            yield from one_by_one(validator, each, entries, schema)
            return
        for entry in entries:
            seen = (repr(each), repr(entry))
            if seen not in good:
                errors = list(one_by_one(validator, each, [entry], schema))
                yield from errors
                if not errors:
                    good.add(seen)

    return extend(Draft201909Validator, {"items": items})


def _errors(document: dict[str, Any]) -> set[str]:
    text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    found = lint(text, FILE, rules=RULES, today=TODAY)
    return {one.rule for one in found if one.severity is Severity.ERROR}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_contract_with_every_key_of_its_version_is_good_for_both(
    odcs_schemas: dict[str, Any], version: str
) -> None:
    document = yaml.safe_load((HERE / f"v{version}.odcs.yaml").read_text("utf-8"))

    assert Draft201909Validator(odcs_schemas[version]).is_valid(document)
    assert lint((HERE / f"v{version}.odcs.yaml").read_bytes(), FILE, rules=RULES, today=TODAY) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_one_change_is_judged_alike_or_for_a_known_reason(odcs_schemas: dict[str, Any], version: str) -> None:
    document = yaml.safe_load((HERE / f"v{version}.odcs.yaml").read_text("utf-8"))
    schema = remembering()(odcs_schemas[version])
    known = STRICTER | (STRICTER_IN_3_0 if version.startswith("3.0") else set())
    unexplained = []

    for name, changed in _sample(document, 110):
        ours = _errors(changed)
        if schema.is_valid(changed):
            unexplained += [f"we alone refuse {name}: {rule}" for rule in ours - known]
        elif not ours and not any(name.startswith(path) for path in LAXER):
            unexplained.append(f"the schema alone refuses {name}")

    assert unexplained == []


@pytest.mark.parametrize("version", VERSIONS)
def test_server_types_take_the_keys_of_the_schema(odcs_schemas: dict[str, Any], version: str) -> None:
    """A row per type; `stream` of a custom server is not in 3.0.2, and nobody is hurt by it there."""
    odcs = tuple(int(part) for part in version.split("."))
    definitions = odcs_schemas[version]["$defs"]
    theirs = {
        one["if"]["properties"]["type"]["const"]: definitions["ServerSource"][
            one["then"]["$ref"].rpartition("/")[2]
        ]
        for one in definitions["Server"]["allOf"]
    }

    ours = {type_: row for type_, row in servers.SERVER_TYPES.items() if row.since <= odcs}

    assert ours.keys() == theirs.keys()
    for type_, row in ours.items():
        later = {key for key, since in servers.LATER_KEYS.items() if since > odcs}
        assert {*row.required, *row.optional} - later - {"stream"} == set(theirs[type_]["properties"]) - {
            "stream"
        }, type_
        extra, until = servers.EARLIER_REQUIRED.get(type_, ((), odcs))
        required = {*row.required, *(extra if odcs < until else ())}
        assert required == set(theirs[type_].get("required", ())), type_


def test_every_version_that_the_schemas_name_is_read_or_refused_by_name(odcs_schemas: dict[str, Any]) -> None:
    named = odcs_schemas["3.2.0"]["properties"]["apiVersion"]["enum"]

    assert {one for one in named if not one.startswith("v2")} == set(SUPPORTED)
