"""Validation of a contract by the official JSON Schema of ODCS: `dq validate --official`.

Each release of the package `open-data-contract-standard` contains one schema. It validates the raw values of
the file, not our parsed models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from dq.contracts import install
from dq.contracts.model import SOURCE_MAP_KEY, Contract, describe_value
from dq.contracts.odcs import format_version as version_text
from dq.contracts.outcome import Location, MissingTool, join_limited, one_of, suggestion
from dq.contracts.yaml import source
from dq.validators.context import COLUMN, OfficialSchema
from dq.validators.policy.custom_rules import as_json, brief, locate
from dq.validators.policy.json_schema import unique_items
from dq.validators.rule import Violation

if TYPE_CHECKING:
    from jsonschema import ValidationError

EXTRA = "official"
PACKAGE = "open-data-contract-standard"

_UNEVALUATED = "unevaluatedProperties"
_ALTERNATIVES = ("oneOf", "anyOf")
# JSON Schema types, with the names that `read_as` uses.
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "a boolean",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}


def installed_schema() -> OfficialSchema:
    """Return the schema of the installed package. Raises MissingTool without it."""
    with install.require_extras(f"The official schema of ODCS needs {PACKAGE}", EXTRA):
        schema = json.loads(
            resources.files(PACKAGE.replace("-", "_")).joinpath("schema.json").read_text("utf-8")
        )
    version = schema["properties"]["apiVersion"]
    return OfficialSchema(metadata.version(PACKAGE), version["default"], frozenset(version["enum"]), schema)


def official_violations(official: OfficialSchema, data: bytes, contract: Contract) -> Iterator[Violation]:
    """Yield the violations of the official schema in a contract, once per path and reason.

    Raises MissingTool if the installed schema is for another version of ODCS.
    """
    _require_version(official, contract)
    top, _ = source.read(data, contract.place.file)
    if top is None:
        return
    errors = [_deepest(error) for error in _errors(official.schema, as_json(top))]
    failed = {
        _path(error)[:length]
        for error in errors
        if error.validator != _UNEVALUATED
        for length in range(len(_path(error)) + (0 if _is_type_missing(error, top) else 1))
    }
    reported: set[tuple[str, str]] = set()
    for error in errors:
        # If an element has another error, the schema reports known keys of it as unevaluated.
        if error.validator == _UNEVALUATED and _path(error) in failed:
            continue
        for violation in _violations(official, error, top):
            if (violation.path, violation.message) not in reported:
                reported.add((violation.path, violation.message))
                yield violation


def _require_version(official: OfficialSchema, contract: Contract) -> None:
    """Raise MissingTool unless the schema has the contract's ODCS version, ignoring the patch number.

    Newer schemas accept older versions too, but with different constraints.
    """
    version = version_text(contract.odcs)
    minor = version.rpartition(".")[0]
    if official.version.rpartition(".")[0] != minor or version not in official.accepted:
        raise MissingTool(
            f"{contract.place.file} follows ODCS {version}, but the installed {PACKAGE} {official.release} "
            f"contains the official schema of {official.version}.",
            f"{install.install_command(EXTRA)} '{PACKAGE}=={minor.lstrip('v')}.*'",
        )


def _errors(schema: Mapping[str, Any], document: object) -> Iterator[ValidationError]:
    """Yield the errors of a document by the draft of JSON Schema that its schema declares.

    Results per definition and value are cached: `unevaluatedProperties` evaluates them again on each level,
    which triples the time for each level of nested columns.
    """
    from jsonschema import Draft201909Validator, ValidationError, validators
    from referencing import Registry

    draft: Any = validators.validator_for(schema, Draft201909Validator)
    follow = draft.VALIDATORS["$ref"]
    results: dict[tuple[str, int], list[ValidationError]] = {}

    def reference(validator: Any, ref: str, value: object, schema: object) -> Iterator[ValidationError]:
        key = (ref, id(value))
        if key not in results:
            results[key] = list(follow(validator, ref, value, schema))
        return map(ValidationError.create_from, results[key])

    extend: Any = validators.extend  # it has no annotations
    validator = extend(draft, {"$ref": reference, "uniqueItems": unique_items})
    return validator(schema, registry=Registry()).iter_errors(document)  # type: ignore[no-any-return]


def _deepest(error: ValidationError) -> ValidationError:
    """Return the error of the best matching alternative, or the error itself."""
    from jsonschema.exceptions import best_match

    best = best_match([error])
    return error if best is None or best.validator in _ALTERNATIVES else best


def _path(error: ValidationError) -> tuple[str | int, ...]:
    return tuple(error.absolute_path)


def _is_type_missing(error: ValidationError, top: Mapping[str, Any]) -> bool:
    """Return True if the error only exists because a column has no `logicalType`.

    The schema's conditions also match an absent type: it requires `map` in such a column and rejects its
    options.
    """
    schema_path, steps = list(error.absolute_schema_path), _path(error)
    if "logicalTypeOptions" in steps:
        steps = steps[: steps.index("logicalTypeOptions")]
    elif schema_path[-2:] != ["then", "required"]:
        return False
    _, path, column = _locate(top, steps)
    return COLUMN.fullmatch(path) is not None and "logicalType" not in column


def _violations(
    official: OfficialSchema, error: ValidationError, top: Mapping[str, Any]
) -> Iterator[Violation]:
    """Yield the error as readable violations: one for each missing or unexpected key."""
    location, path, value = _locate(top, _path(error))
    schema = f"the official schema of ODCS {official.version}"
    doubt = _is_type_missing(error, top)
    problems: list[tuple[Location, str, str, str]] = []
    if error.validator == "required":
        missing = [name for name in _argument(error) if name not in value]
        problems = [
            (
                location,
                value[SOURCE_MAP_KEY].child_path(name),
                f"{schema} requires {name!r} here.",
                f"Add {name}.",
            )
            for name in missing
        ]
    elif error.validator in ("additionalProperties", _UNEVALUATED):
        schema_properties = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = [name for name in value if name not in schema_properties and repr(name) in error.message]
        problems = [
            (
                value[SOURCE_MAP_KEY].locate_key(name),
                value[SOURCE_MAP_KEY].child_path(name),
                f"{schema} has no key {name!r} here.",
                suggestion(name, schema_properties, "Remove it, or move it to customProperties."),
            )
            for name in extra
        ]
    else:
        problem, fix = _describe_value_error(error)
        problems = [(location, path, f"{schema} {problem}.", fix)]
    for place, problem_path, message, fix in problems:
        if doubt:
            message = f"{message.rstrip('.')}: it treats a column without logicalType as one of every type."
            fix = "Add logicalType for tools that validate with this schema; dq does not need it."
        yield Violation(place, message, fix, problem_path, doubt=doubt, kind=message)


def _locate(top: Mapping[str, Any], steps: tuple[str | int, ...]) -> tuple[Location, str, Any]:
    """Return the location of a part of a document, its path, and the part itself."""
    if not steps:
        return top[SOURCE_MAP_KEY].locate(), "", top
    key = str(steps[0])
    return locate(top[SOURCE_MAP_KEY], key, top[key], steps[1:])


def _argument(error: ValidationError) -> Any:
    return error.validator_value


def _describe_value_error(error: ValidationError) -> tuple[str, str]:
    """Return the problem with a value, phrased to follow the schema's name, and how to fix it."""
    argument, value = _argument(error), error.instance
    match error.validator:
        case "type":
            types = one_of([_TYPES[name] for name in ([argument] if isinstance(argument, str) else argument)])
            return f"requires {types} here, not {describe_value(value)}", f"Write {types}."
        case "enum" | "const":
            words = [str(word) for word in (argument if error.validator == "enum" else [argument])]
            return (
                f"does not allow {brief(repr(value))} here",
                suggestion(value, words, f"Write {one_of(words)}."),
            )
        case "pattern":
            return (
                f"requires text that matches {argument} here, not {brief(repr(value))}",
                "Write text of this form.",
            )
        case "oneOf" | "anyOf":
            required = {
                name
                for inner in error.context or ()
                if inner.validator == "required"
                for name in _argument(inner)
            }
            if len(required) > 1:
                names = join_limited(sorted(required), 12)
                return f"requires one of these keys here: {names}", "Add one of them."
            return (
                "allows several forms here, and this matches none of them",
                "Write it as described in the standard.",
            )
        case _:
            return f"does not allow this: {brief(error.message)}", "Write it as described in the standard."
