"""Rules that an object agrees with the data of another side, in its rows or in sum: parsed, with findings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from dq.contracts.metrics import (
    UNITS,
    ArgumentReader,
    check_operands,
    group_columns,
    implementation,
    is_number,
    named_columns,
    number_in_range,
    read_operators,
    single_properties,
)
from dq.contracts.model import OPERATORS, Contract, Property, Quality, SchemaObject
from dq.contracts.outcome import Finding, suggestion

# Name of the check in contracts -> its id; see `checks/agrees.py` and `checks/agrees_in_sum.py`.
AGREES, AGREES_IN_SUM = "agrees", "agreesInSum"
AGREEMENTS: Mapping[str, str] = {AGREES: "agrees", AGREES_IN_SUM: "agrees_in_sum"}
_KEYS = ("check", "arguments", "unit", *OPERATORS)
_ARGUMENTS = {
    AGREES: ("with", "key", "columns", "ignore", "rename", "tolerance", "cycles", "unit", *OPERATORS),
    AGREES_IN_SUM: ("with", "by", "sums", "rename", "tolerance", "unit", *OPERATORS),
}
_SIDE = {AGREES: ("server", "contract", "object"), AGREES_IN_SUM: ("server", "contract", "object", "where")}
_MAX_CYCLES = 366
_EXAMPLE = "with: {server: serverless}"


@dataclass(frozen=True, slots=True)
class OtherSide:
    """The other side: an object of a contract on a server.

    `contract` is an id, None for the same contract. `server` is None for the server that matches the one of
    the run. `where` is a condition on its rows as written, None for all rows.
    """

    object: str
    contract: str | None = None
    server: str | None = None
    where: str | None = None

    @property
    def name(self) -> str:
        """Name of its data among other objects, e.g. `orders@serverless` or `ledger/bookings`."""
        holder = f"{self.contract}/" if self.contract is not None else ""
        return f"{holder}{self.object}" + (f"@{self.server}" if self.server is not None else "")

    def __str__(self) -> str:
        holder = f"{self.contract}/" if self.contract is not None else ""
        rows = f" where {self.where}" if self.where is not None else ""
        return f"{holder}{self.object}" + (f" on {self.server}" if self.server is not None else "") + rows


@dataclass(frozen=True, slots=True)
class Agreement:
    """A parsed rule. Columns are named as in the data of the object that has the rule.

    `columns` are the compared ones besides the key (empty: all). `renamed` has pairs of a column and its name
    on the other side, `tolerance` pairs of a column and the largest difference of equal numbers. `bounds` are
    operators with their operands as written, of the number of rows that differ. `cycles` is the number of
    cycles in a row that must agree, 0 if only the compared rows count.
    """

    other: OtherSide
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    tolerance: tuple[tuple[str, Decimal], ...] = ()
    bounds: tuple[tuple[str, object], ...] = ()
    unit: str = ""
    cycles: int = 0

    @property
    def definition(self) -> str:
        """Hash of what is compared and when it agrees; results of another definition do not count."""
        compared = (str(self.other), self.key, self.columns, self.ignored, self.renamed)
        terms = (
            *compared,
            [(column, str(limit)) for column, limit in self.tolerance],
            self.bounds,
            self.unit,
        )
        return hashlib.sha256(repr(terms).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SumAgreement:
    """A parsed rule on numbers of rows and sums. Columns are named as in the data of the object of the rule.

    `by` are the columns that form groups, `sums` the columns whose sums are compared. `renamed` is that of an
    `Agreement`, and `tolerance` has the largest difference of equal sums. `bounds` are operators with their
    operands as written, of the largest difference: in rows, or in percent of the number of the other side.
    """

    other: OtherSide
    by: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    tolerance: tuple[tuple[str, Decimal], ...] = ()
    bounds: tuple[tuple[str, object], ...] = ()
    unit: str = ""


def is_agreement(quality: Quality) -> bool:
    """Return True for a rule that an object agrees with another side, in its rows or in sum."""
    check = implementation(quality).get("check")
    return isinstance(check, str) and check in AGREEMENTS


def agreements_of(schema_object: SchemaObject) -> dict[str, Agreement | SumAgreement]:
    """Return the valid rules of an object that it agrees with another side, by their paths."""
    rules = {
        quality.path(): read_agreement(schema_object, None, quality)
        for quality in schema_object.quality
        if is_agreement(quality)
    }
    return {path: rule for path, rule in rules.items() if not isinstance(rule, tuple)}


def cycle_agreements(schema_object: SchemaObject) -> dict[str, Agreement]:
    """Return the valid rules of an object that require cycles in a row, by their paths."""
    rules = agreements_of(schema_object).items()
    return {path: rule for path, rule in rules if isinstance(rule, Agreement) and rule.cycles}


def read_agreement(
    schema_object: SchemaObject, prop: Property | None, quality: Quality, contract: Contract | None = None
) -> Agreement | SumAgreement | tuple[Finding, ...]:
    """Return the parsed rule of an object, or all findings about it.

    With the contract, servers and objects that it does not have are findings.
    """
    check = str(implementation(quality)["check"])
    findings: list[Finding] = []
    path = quality.path("implementation")
    rule = ArgumentReader(quality.implementation, quality.locate("implementation"), path, findings)
    rule.report_unknown(_KEYS, "the implementation")
    if prop is not None:
        rule.report("", f"{check} compares the rows of an object.", "Move the rule to the object.")
    raw = rule.written.get("arguments")
    arguments = ArgumentReader(raw, rule.locate("arguments"), f"{path}.arguments", findings)
    if raw is not None and not isinstance(raw, dict):
        rule.report("arguments", "its arguments are not a mapping.", f"Write: arguments: {{{_EXAMPLE}}}")
    arguments.report_unknown(_ARGUMENTS[check], check)
    other = _other_side(arguments, schema_object, contract, _SIDE[check])
    columns = {
        name.lower(): column.column
        for column in schema_object.properties
        for name in (column.column, column.name or column.column)
    }
    renamed = _renamed(arguments, columns)
    if other is not None and other == OtherSide(schema_object.name) and not renamed:
        arguments.report("with", "the other side is the object itself.", f"Name a server: {_EXAMPLE}")
    tolerance = _tolerance(arguments, columns)
    bounds = [*read_operators(arguments), *read_operators(rule), *quality.operators()]
    check_operands(arguments if read_operators(arguments) else rule, bounds)
    unit = _unit(check, arguments, rule, quality)
    shared = (tuple(renamed.items()), tuple(tolerance.items()), tuple(bounds))
    if check == AGREES_IN_SUM:
        by, sums = _groups_and_sums(arguments, schema_object)
        for name in tolerance:
            if name not in sums:
                arguments.report("tolerance", f"{name!r} is not in sums.", "Write a column of sums.")
        if sums and unit != "percent" and (bounds or unit):
            holder = arguments if "unit" in arguments.written else rule
            holder.report("unit", "a difference of sums is bounded in percent.", "Write: unit: percent")
        if findings or other is None:
            return tuple(findings)
        return SumAgreement(other, by, sums, *shared, unit or ("percent" if sums else "rows"))
    key = _columns(arguments, "key", columns) or tuple(
        column.column for column in schema_object.primary_key()
    )
    if tolerance and not key:
        arguments.report("tolerance", "a tolerance needs a key.", "Add the columns that identify a row: key")
    cycles = 0.0
    if "cycles" in arguments.written:
        cycles = number_in_range(arguments, "cycles", 1, _MAX_CYCLES, 0, whole_number=True)
    compared = _columns(arguments, "columns", columns)
    ignored = _names(arguments, "ignore")
    return (
        tuple(findings)
        if findings or other is None
        else Agreement(other, key, compared, ignored, *shared, unit, int(cycles))
    )


def _unit(check: str, arguments: ArgumentReader, rule: ArgumentReader, quality: Quality) -> str:
    """Return the unit of the bounds, or "" if it is not given or was reported."""
    text = arguments.get("unit", rule.get("unit", quality.unit))
    unit = "" if text is None else UNITS.get(str(text).strip().lower())
    if unit is None:
        holder = arguments if "unit" in arguments.written else rule
        holder.report("unit", f"{check} has no unit {text!r}.", "It takes rows or percent.")
    return unit or ""


def _groups_and_sums(
    arguments: ArgumentReader, schema_object: SchemaObject
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that form groups, and those whose sums are compared."""
    columns = {name: path for name, path in single_properties(schema_object).items() if len(path[0]) == 1}
    by = group_columns(arguments, columns, schema_object)
    sums = named_columns(arguments, "sums", columns) if "sums" in arguments.written else ()
    types = {path: holders[-1].logical_type for path, holders in columns.values()}
    for path in sums:
        if types[path] not in (None, "integer", "number"):
            message = f"{path[0]!r} has the type {types[path]}, which has no sum."
            arguments.report("sums", message, "Write columns of type integer or number.")
    return tuple(path[0] for path in by), tuple(path[0] for path in sums)


def _other_side(
    arguments: ArgumentReader, schema_object: SchemaObject, contract: Contract | None, keys: Sequence[str]
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
    side.report_unknown(keys, "with")
    names: dict[str, str] = {}
    for key in keys:
        value = side.get(key)
        if isinstance(value, str) and value:
            names[key] = value
        elif key in side.written:
            kind = "a condition on the rows" if key == "where" else "a name"
            side.report(key, f"{key} is {value!r}.", f"Write {kind}.")
    if not names:
        if not side.written:
            arguments.report("with", "the other side is not named.", f"Write: {_EXAMPLE}")
        return None
    other = OtherSide(
        names.get("object", schema_object.name), *map(names.get, ("contract", "server", "where"))
    )
    if other.where is not None:
        _check_condition(side, other.where)
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


def _check_condition(side: ArgumentReader, text: str) -> None:
    """Report a condition that may not be run."""
    # Imported here, because only rules with a condition need the SQL parser.
    from dq.contracts.sql.guard import RejectedSql, validate_predicate

    condition = validate_predicate(text)
    if isinstance(condition, RejectedSql):
        end = "" if condition.reason.endswith("?") else "."
        side.report("where", f"where is refused: {condition.reason}{end}", condition.hint)


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
