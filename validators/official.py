"""The official JSON Schema of ODCS as a second opinion of a contract: `dq validate --official`.

The package `open-data-contract-standard` carries one schema in each of its releases. It judges the values of
the file, and not what our own models make of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from dq.contracts import install
from dq.contracts.model import PLACE, Contract, read_as
from dq.contracts.odcs import text as version_text
from dq.contracts.outcome import Location, MissingTool, first_of, one_of, suggestion
from dq.contracts.yaml import source
from dq.validators.context import COLUMN, OfficialSchema
from dq.validators.policy.custom_rules import as_json, brief, locate
from dq.validators.policy.json_schema import unique_items
from dq.validators.rule import Fault

if TYPE_CHECKING:
    from jsonschema import ValidationError

EXTRA = "official"
PACKAGE = "open-data-contract-standard"

_UNEVALUATED = "unevaluatedProperties"
_ALTERNATIVES = ("oneOf", "anyOf")
# JSON Schema's types, as `read_as` calls the kinds of values.
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}


def installed_schema() -> OfficialSchema:
    """Return the schema of the installed package. Raises MissingTool without it."""
    with install.needing(f"The official schema of ODCS needs {PACKAGE}", EXTRA):
        schema = json.loads(
            resources.files(PACKAGE.replace("-", "_")).joinpath("schema.json").read_text("utf-8")
        )
    version = schema["properties"]["apiVersion"]
    return OfficialSchema(metadata.version(PACKAGE), version["default"], frozenset(version["enum"]), schema)


def official_faults(official: OfficialSchema, data: bytes, contract: Contract) -> Iterator[Fault]:
    """Yield what the official schema refuses in the text of a contract, each place and reason once.

    Raises MissingTool where the installed schema is that of another version of ODCS.
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
    seen: set[tuple[str, str]] = set()
    for error in errors:
        # Of what holds a mistake, the schema calls parts unknown that it knows.
        if error.validator == _UNEVALUATED and _path(error) in failed:
            continue
        for fault in _faults(official, error, top):
            if (fault.path, fault.message) not in seen:
                seen.add((fault.path, fault.message))
                yield fault


def _require_version(official: OfficialSchema, contract: Contract) -> None:
    """Raises MissingTool unless the schema is that of the contract's version, up to its last number.

    Newer schemas list older versions too, and refuse or allow in them what those do not.
    """
    version = version_text(contract.odcs)
    minor = version.rpartition(".")[0]
    if official.version.rpartition(".")[0] != minor or version not in official.accepted:
        raise MissingTool(
            f"{contract.place.file} follows ODCS {version}, and the installed {PACKAGE} {official.release} "
            f"has the official schema of {official.version}.",
            f"{install.install_command(EXTRA)} '{PACKAGE}=={minor.lstrip('v')}.*'",
        )


def _errors(schema: Mapping[str, Any], document: object) -> Iterator[ValidationError]:
    """Yield the errors of a document by the draft of JSON Schema that its schema names.

    What a definition says of a value is remembered: `unevaluatedProperties` asks again on each level, which
    takes three times as long for each level of nested columns.
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
    """Return the error of the alternative that comes nearest, or the error itself."""
    from jsonschema.exceptions import best_match

    best = best_match([error])
    return error if best is None or best.validator in _ALTERNATIVES else best


def _path(error: ValidationError) -> tuple[str | int, ...]:
    return tuple(error.absolute_path)


def _is_type_missing(error: ValidationError, top: Mapping[str, Any]) -> bool:
    """Return whether the schema takes a column without `logicalType` for one of the type of this error.

    Its conditions hold of what is absent: it asks for `map` in such a column, and refuses its options.
    """
    schema_path, steps = list(error.absolute_schema_path), _path(error)
    if "logicalTypeOptions" in steps:
        steps = steps[: steps.index("logicalTypeOptions")]
    elif schema_path[-2:] != ["then", "required"]:
        return False
    _, path, column = _located(top, steps)
    return COLUMN.fullmatch(path) is not None and "logicalType" not in column


def _faults(official: OfficialSchema, error: ValidationError, top: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the error in a reader's words: one fault for each key that is missing or too much."""
    at, path, value = _located(top, _path(error))
    schema = f"the official schema of ODCS {official.version}"
    doubt = _is_type_missing(error, top)
    problems: list[tuple[Location, str, str, str]] = []
    if error.validator == "required":
        missing = [name for name in _argument(error) if name not in value]
        problems = [
            (at, value[PLACE].below(name), f"{schema} requires {name!r} here.", f"Add {name}.")
            for name in missing
        ]
    elif error.validator in ("additionalProperties", _UNEVALUATED):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        extra = [name for name in value if name not in known and repr(name) in error.message]
        problems = [
            (
                value[PLACE].at_key(name),
                value[PLACE].below(name),
                f"{schema} has no key {name!r} here.",
                suggestion(name, known, "Remove it, or say it in customProperties."),
            )
            for name in extra
        ]
    else:
        problem, fix = _of_value(error)
        problems = [(at, path, f"{schema} {problem}.", fix)]
    for place, where, message, fix in problems:
        if doubt:
            message = f"{message.rstrip('.')}: it takes a column without logicalType for one of every type."
            fix = "Write logicalType for tools that validate by this schema; dq needs no change."
        yield Fault(place, message, fix, where, doubt=doubt, kind=message)


def _located(top: Mapping[str, Any], steps: tuple[str | int, ...]) -> tuple[Location, str, Any]:
    """Return where a part of a document stands, its path, and the part itself."""
    if not steps:
        return top[PLACE].at(), "", top
    key = str(steps[0])
    return locate(top[PLACE], key, top[key], steps[1:])


def _argument(error: ValidationError) -> Any:
    return error.validator_value


def _of_value(error: ValidationError) -> tuple[str, str]:
    """Return what is wrong with a value, after the schema's name, and how to fix it."""
    argument, value = _argument(error), error.instance
    match error.validator:
        case "type":
            types = one_of([_TYPES[name] for name in ([argument] if isinstance(argument, str) else argument)])
            return f"requires {types} here, not {read_as(value)}", f"Write {types}."
        case "enum" | "const":
            words = [str(word) for word in (argument if error.validator == "enum" else [argument])]
            return (
                f"does not allow {brief(repr(value))} here",
                suggestion(value, words, f"Write {one_of(words)}."),
            )
        case "pattern":
            return (
                f"requires a text that matches {argument} here, not {brief(repr(value))}",
                "Write a text of this form.",
            )
        case "oneOf" | "anyOf":
            required = {
                name
                for inner in error.context or ()
                if inner.validator == "required"
                for name in _argument(inner)
            }
            if len(required) > 1:
                names = first_of(sorted(required), 12)
                return f"requires one of these keys here: {names}", "Add the one that is meant."
            return (
                "allows several forms here, and this is none of them",
                "Write it as the standard describes it.",
            )
        case _:
            return f"refuses this: {brief(error.message)}", "Write it as the standard describes it."
