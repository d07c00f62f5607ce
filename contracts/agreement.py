"""Rules that an object agrees with the data of another side: its parsed rule, and all findings about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.metrics import (
    UNITS,
    ArgumentReader,
    check_operands,
    implementation,
    is_number,
    read_operators,
)
from dq.contracts.model import OPERATORS, Contract, Property, Quality, SchemaObject
from dq.contracts.outcome import Finding, suggestion

# Name of the check in contracts; see `checks/agrees.py`.
AGREES = "agrees"
_KEYS = ("check", "arguments", "unit", *OPERATORS)
_ARGUMENTS = ("with", "key", "columns", "ignore", "rename", "tolerance", "unit", *OPERATORS)
_SIDE = ("server", "contract", "object")
_EXAMPLE = "with: {server: serverless}"


@dataclass(frozen=True, slots=True)
class OtherSide:
    """The other side: an object of a contract on a server.

    `contract` is an id, None for the same contract. `server` is None for the server that matches the one of
    the run.
    """

    object: str
    contract: str | None = None
    server: str | None = None

    @property
    def name(self) -> str:
        """Name of its data among other objects, e.g. `orders@serverless` or `ledger/bookings`."""
        holder = f"{self.contract}/" if self.contract is not None else ""
        return f"{holder}{self.object}" + (f"@{self.server}" if self.server is not None else "")

    def __str__(self) -> str:
        holder = f"{self.contract}/" if self.contract is not None else ""
        return f"{holder}{self.object}" + (f" on {self.server}" if self.server is not None else "")


@dataclass(frozen=True, slots=True)
class Agreement:
    """A parsed rule. Columns are named as in the data of the object that has the rule.

    `columns` are the compared ones besides the key (empty: all). `renamed` has pairs of a column and its name
    on the other side, `tolerance` pairs of a column and the largest difference of equal numbers. `bounds` are
    operators with their operands as written, of the number of rows that differ.
    """

    other: OtherSide
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    tolerance: tuple[tuple[str, Decimal], ...] = ()
    bounds: tuple[tuple[str, object], ...] = ()
    unit: str = ""


def is_agreement(quality: Quality) -> bool:
    """Return True for a rule that an object agrees with another side."""
    return implementation(quality).get("check") == AGREES


def agreements_of(schema_object: SchemaObject) -> list[Agreement]:
    """Return the valid rules of an object that it agrees with another side."""
    rules = (
        read_agreement(schema_object, None, quality)
        for quality in schema_object.quality
        if is_agreement(quality)
    )
    return [rule for rule in rules if isinstance(rule, Agreement)]


def read_agreement(
    schema_object: SchemaObject, prop: Property | None, quality: Quality, contract: Contract | None = None
) -> Agreement | tuple[Finding, ...]:
    """Return the parsed rule of an object, or all findings about it.

    With the contract, servers and objects that it does not have are findings.
    """
    findings: list[Finding] = []
    path = quality.path("implementation")
    rule = ArgumentReader(quality.implementation, quality.locate("implementation"), path, findings)
    rule.report_unknown(_KEYS, "the implementation")
    if prop is not None:
        rule.report("", f"{AGREES} compares the rows of an object.", "Move the rule to the object.")
    raw = rule.written.get("arguments")
    arguments = ArgumentReader(raw, rule.locate("arguments"), f"{path}.arguments", findings)
    if raw is not None and not isinstance(raw, dict):
        rule.report("arguments", "its arguments are not a mapping.", f"Write: arguments: {{{_EXAMPLE}}}")
    arguments.report_unknown(_ARGUMENTS, AGREES)
    other = _other_side(arguments, schema_object, contract)
    columns = {
        name.lower(): column.column
        for column in schema_object.properties
        for name in (column.column, column.name or column.column)
    }
    renamed = _renamed(arguments, columns)
    if other is not None and other == OtherSide(schema_object.name) and not renamed:
        arguments.report("with", "the other side is the object itself.", f"Name a server: {_EXAMPLE}")
    key = _columns(arguments, "key", columns) or tuple(
        column.column for column in schema_object.primary_key()
    )
    tolerance = _tolerance(arguments, columns)
    if tolerance and not key:
        arguments.report("tolerance", "a tolerance needs a key.", "Add the columns that identify a row: key")
    bounds = [*read_operators(arguments), *read_operators(rule), *quality.operators()]
    check_operands(arguments if read_operators(arguments) else rule, bounds)
    unit_text = arguments.get("unit", rule.get("unit", quality.unit))
    unit = "" if unit_text is None else UNITS.get(str(unit_text).strip().lower(), "?")
    if unit == "?":
        holder = arguments if "unit" in arguments.written else rule
        holder.report("unit", f"{AGREES} has no unit {unit_text!r}.", "It takes rows or percent.")
    if findings or other is None:
        return tuple(findings)
    return Agreement(
        other,
        key,
        _columns(arguments, "columns", columns),
        _names(arguments, "ignore"),
        tuple(renamed.items()),
        tuple(tolerance.items()),
        tuple(bounds),
        unit,
    )


def _other_side(
    arguments: ArgumentReader, schema_object: SchemaObject, contract: Contract | None
) -> OtherSide | None:
    """Return the other side, or None if it was reported."""
    raw = arguments.written.get("with")
    if not isinstance(raw, dict):
        if "with" in arguments.written:
            arguments.report("with", f"with is {raw!r}.", f"Write a mapping: {_EXAMPLE}")
        else:
            arguments.report_missing("with", f"Add to the arguments: {_EXAMPLE}")
        return None
    side = ArgumentReader(raw, arguments.locate("with"), f"{arguments.path}.with", arguments.faults)
    side.report_unknown(_SIDE, "with")
    names: dict[str, str] = {}
    for key in _SIDE:
        value = side.get(key)
        if isinstance(value, str) and value:
            names[key] = value
        elif key in side.written:
            side.report(key, f"{key} is {value!r}.", "Write a name.")
    if not names:
        if not side.written:
            arguments.report("with", "the other side is not named.", f"Write: {_EXAMPLE}")
        return None
    other = OtherSide(names.get("object", schema_object.name), names.get("contract"), names.get("server"))
    if contract is not None and other.contract is None:
        servers = [server.server or "" for server in contract.servers]
        if other.server is not None and other.server not in servers:
            hint = suggestion(other.server, servers, f"It has: {', '.join(servers) or 'none'}.")
            side.report("server", f"{other.server!r} is not a server of this contract.", hint)
        objects = [schema.name for schema in contract.objects]
        if other.object not in objects:
            hint = suggestion(other.object, objects, f"It has: {', '.join(objects)}.")
            side.report("object", f"{other.object!r} is not an object of this contract.", hint)
    return other


def _names(arguments: ArgumentReader, key: str) -> tuple[str, ...]:
    """Return the names in an argument, which is a name or a list of names."""
    value = arguments.get(key)
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and names and all(isinstance(name, str) and name for name in names):
        return tuple(dict.fromkeys(names))
    if key in arguments.written:
        arguments.report(key, f"{key} is {value!r}.", f"Write names of columns: {key}: [order_id]")
    return ()


def _columns(arguments: ArgumentReader, key: str, columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns in an argument, as named in the data."""
    is_listed = isinstance(arguments.get(key), list)
    names = enumerate(_names(arguments, key))
    return tuple(
        _column(arguments, key, name, columns, index if is_listed else None) for index, name in names
    )


def _column(
    arguments: ArgumentReader, key: str, name: object, columns: Mapping[str, str], index: int | None = None
) -> str:
    column = columns.get(str(name).lower())
    if column is None:
        hint = suggestion(name, columns.values(), "Write a property of the object.")
        arguments.report(key, f"{name!r} is not a column of the object.", hint, index)
    return column or str(name)


def _mapping(arguments: ArgumentReader, key: str, example: str) -> Mapping[object, object]:
    value = arguments.get(key)
    if isinstance(value, dict):
        return value
    if key in arguments.written:
        arguments.report(key, f"{key} is {value!r}.", f"Write a mapping: {key}: {{{example}}}")
    return {}


def _renamed(arguments: ArgumentReader, columns: Mapping[str, str]) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for name, other in _mapping(arguments, "rename", "amount: amt").items():
        if isinstance(other, str) and other:
            renamed[_column(arguments, "rename", name, columns)] = other
        else:
            arguments.report("rename", f"the other name of {name!r} is {other!r}.", "Write a name.")
    return renamed


def _tolerance(arguments: ArgumentReader, columns: Mapping[str, str]) -> dict[str, Decimal]:
    tolerance: dict[str, Decimal] = {}
    for name, value in _mapping(arguments, "tolerance", "amount: 0.01").items():
        if is_number(value) and value >= 0:  # type: ignore[operator]  # a number
            tolerance[_column(arguments, "tolerance", name, columns)] = Decimal(str(value))
        else:
            message = f"the tolerance of {name!r} is {value!r}."
            arguments.report("tolerance", message, "Write a number from 0: tolerance: {amount: 0.01}")
    return tolerance
