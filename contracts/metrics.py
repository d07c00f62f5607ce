"""Metrics of dq's own engine in contracts: their definitions, arguments, and parsed rules."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from dq.contracts.extension import scope
from dq.contracts.model import (
    OPERATORS,
    SOURCE_MAP_KEY,
    Property,
    Quality,
    SchemaObject,
    SourceMap,
    strip_source_maps,
)
from dq.contracts.outcome import Finding, Location, error_finding, nearest, suggestion

# TABLE: metrics of dq's own engine: column types, arguments and units.

_NUMBERS = ("integer", "number")
_ROWS = ("rows", "percent")


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """Definition of a metric.

    Attributes:
        name: Name in a contract.
        check: Id of the check plug-in.
        types: Allowed logical types of its column (empty: any). Without a logical type, the data decides.
        own: Arguments in addition to those of every metric.
        units: Units that are allowed without a comparison with earlier runs.
        columns: Number of columns of a rule on the object: 0 if it is only allowed on a property, None for
            one or more.
        by_size: True if the value grows with the table, so that a sample cannot estimate it.
    """

    name: str
    check: str
    types: tuple[str, ...] = _NUMBERS
    own: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    columns: int | None = 0
    by_size: bool = False


_KINDS = (
    MeasureKind("min", "min"),
    MeasureKind("max", "max"),
    MeasureKind("mean", "mean"),
    MeasureKind("sum", "sum", by_size=True),
    MeasureKind("stddev", "stddev"),
    MeasureKind("quantile", "quantile", own=("q",)),
    MeasureKind("distinctCount", "distinct_count", (), ("properties",), _ROWS, None, by_size=True),
    MeasureKind("distinctRatio", "distinct_ratio", (), ("properties",), ("percent",), None),
    MeasureKind("uniqueRatio", "unique_ratio", (), ("properties",), ("percent",), None),
    MeasureKind("compareColumns", "compare_columns", (), ("properties", "property", "operator"), _ROWS, 2),
    MeasureKind(
        "sequenceGaps", "sequence_gaps", ("integer", "date"), ("step", "start"), _ROWS, 0, by_size=True
    ),
)
METRICS: Mapping[str, MeasureKind] = {kind.name: kind for kind in _KINDS}

# Parameters of a comparison with earlier runs: key -> (default, minimum, maximum).
BASELINE_PARAMETERS: Mapping[str, tuple[float, float, float]] = {
    "runs": (28, 1, 1_000),
    "minimum": (7, 1, 1_000),
    "deviations": (3.5, 0, 1_000),
    "slack": (20, 0, 1_000),
}
DIRECTIONS = ("both", "fewer", "more")
BASELINES = ("previous", "weekday", "usual")
SHARED_ARGUMENTS = ("by", "against", *BASELINE_PARAMETERS, "direction")
COMPARISONS: Mapping[str, str] = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "<>"}
UNITS: Mapping[str, str] = {"rows": "rows", "percent": "percent", "%": "percent"}
# Types with values that are suitable as names of groups.
GROUP_COLUMN_TYPES = ("string", "integer", "number", "boolean", "date")
MAX_GROUP_COLUMNS = 3


# Parsed metric rules; nothing here reads data.

ColumnPath = tuple[str, ...]
"""Path from the row to a column, by names in the data."""


@dataclass(frozen=True, slots=True)
class Against:
    """Baseline that a value is compared with instead of a fixed bound.

    Attributes:
        mode: `previous` is the run before, `weekday` the last one of the same weekday, `usual` the median of
            the last `runs` if at least `minimum` are known, with a tolerance of the larger of `deviations`
            times their robust standard deviation and the share `slack` of the median.
        direction: Deviations that fail: both, fewer or more.
    """

    mode: str
    runs: int = 28
    minimum: int = 7
    deviations: float = 3.5
    slack: float = 0.2
    direction: str = "both"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A parsed metric rule.

    Attributes:
        columns: Measured columns; for a rule on a property its own column.
        by: Columns that form groups.
        share: Share of a quantile.
        start: First value of a sequence; days since 1970 if `dated`.
        bounds: Operators with their operands as written; empty for a comparison with `usual`.
    """

    kind: MeasureKind
    columns: tuple[ColumnPath, ...]
    by: tuple[ColumnPath, ...] = ()
    against: Against | None = None
    share: Decimal = Decimal("0.5")
    step: int = 1
    start: int = 0
    dated: bool = False
    comparison: str = ""
    family: str = ""
    bounds: tuple[tuple[str, object], ...] = ()
    unit: str = ""


# Arguments of a metric: each is read at its location, and all problems are reported.


_RULE = "measure-invalid"


class ArgumentReader:
    """Reads the values of a mapping of the contract, and collects the findings about them."""

    __slots__ = ("_at", "_unknown", "faults", "path", "place", "written")

    def __init__(self, raw: object, location: Location, path: str, faults: list[Finding]) -> None:
        self.written: Mapping[str, object] = {}
        self.place: SourceMap | None = None
        self._unknown = 0
        self._at, self.path, self.faults = location, path, faults
        if isinstance(raw, dict):
            place = raw.get(SOURCE_MAP_KEY)
            self.place = place if isinstance(place, SourceMap) else None
            self.written = {key: value for key, value in raw.items() if key != SOURCE_MAP_KEY}

    def get(self, key: str, default: object = None) -> object:
        """Return the value of a key, as plain values."""
        return strip_source_maps(self.written.get(key, default))

    def locate(self, key: str | None = None, index: int | None = None) -> Location:
        """Return the location of a value."""
        return self._at if self.place is None else self.place.locate(key, index)

    def report(self, key: str, message: str, hint: str, index: int | None = None) -> None:
        """Report a problem of the value of a key, or of one item of its list."""
        item = "" if index is None else f"[{index}]"
        path = f"{self.path}.{key}{item}" if key else self.path
        self.faults.append(error_finding(_RULE, message, hint, self.locate(key or None, index), path))

    def report_missing(self, key: str, hint: str) -> None:
        """Report a missing argument, unless an unknown key was reported in its place."""
        if self._unknown:
            self._unknown -= 1
        else:
            self.report("", f"argument {key!r} is missing.", hint)

    def report_unknown(self, allowed: Iterable[str], owner: str) -> None:
        """Report every unknown key, at the key."""
        names = tuple(allowed)
        for key in self.written:
            if key in names:
                continue
            self._unknown += 1
            hint = suggestion(key, names, f"It takes {', '.join(names)}.")
            key_location = self._at if self.place is None else self.place.locate_key(key)
            self.faults.append(
                error_finding(_RULE, f"{owner} has no key {key!r}.", hint, key_location, f"{self.path}.{key}")
            )


def is_number(value: object) -> bool:
    """Return True for a finite number that is not a boolean."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def number_in_range(
    arguments: ArgumentReader, key: str, minimum: float, maximum: float, default: float, *, whole_number: bool
) -> float:
    """Return a number in a range, both ends included."""
    value = arguments.get(key, default)
    fits = is_number(value) and minimum <= value <= maximum  # type: ignore[operator]  # a number
    if fits and not (whole_number and not isinstance(value, int)):
        return value  # type: ignore[return-value]  # a number
    kind = "a whole number" if whole_number else "a number"
    arguments.report(key, f"{key} is {value!r}.", f"Write {kind} from {minimum:g} to {maximum:,.0f}.")
    return default


def quantile_share(arguments: ArgumentReader) -> Decimal:
    """Return the share of a quantile, from 0 to 1."""
    value = arguments.get("q")
    if is_number(value) and 0 <= value <= 1:  # type: ignore[operator]  # a number
        return Decimal(repr(value))
    if "q" not in arguments.written:
        arguments.report_missing("q", "Add to the arguments, for the median: q: 0.5")
    else:
        arguments.report("q", f"the share of a quantile is {value!r}.", "Write a number from 0 to 1: q: 0.95")
    return Decimal("0.5")


def sequence_start(arguments: ArgumentReader, is_date: bool) -> int:
    """Return the start of a sequence: a whole number, or the days since 1970 of a date."""
    value = arguments.get("start")
    if value is None and "start" not in arguments.written:
        return 0
    if is_date:
        try:
            day = value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
            return (dt.date(day.year, day.month, day.day) - dt.date(1970, 1, 1)).days
        except ValueError:
            arguments.report(
                "start", f"start is {value!r}.", "Write a date of the sequence: start: 2026-01-01"
            )
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    else:
        arguments.report("start", f"start is {value!r}.", "Write a whole number of the sequence: start: 1")
    return 0


def check_operands(reader: ArgumentReader, operators_found: Sequence[tuple[str, object]]) -> None:
    """Report problems of operators and operands: there must be one operator with a finite number or a
    range.
    """
    if len(operators_found) > 1:
        names = ", ".join(name for name, _ in operators_found)
        reader.report(
            operators_found[1][0],
            f"the rule has {len(operators_found)} operators ({names}).",
            "Keep one of them.",
        )
        return
    for name, operand in operators_found:
        if name in ("mustBeBetween", "mustNotBeBetween"):
            pair = (
                isinstance(operand, list) and len(operand) == 2 and all(is_number(item) for item in operand)
            )
            if not pair or operand[0] > operand[1]:  # type: ignore[index]  # a list
                reader.report(name, f"{name} is {operand!r}.", f"Write two numbers in order: {name}: [1, 9]")
        elif not is_number(operand):
            reader.report(name, f"{name} is {operand!r}.", f"Write a number: {name}: 1")


def read_operators(reader: ArgumentReader) -> list[tuple[str, object]]:
    """Return the operators in a mapping, by their ODCS names."""
    return [(name, reader.get(name)) for name in OPERATORS if name in reader.written]


ColumnIndex = Mapping[str, tuple[ColumnPath, tuple[Property, ...]]]


def single_properties(schema_object: SchemaObject) -> ColumnIndex:
    """Return the properties with one value per row, by name in the contract and in the data: path and
    parents.
    """
    columns: dict[str, tuple[ColumnPath, tuple[Property, ...]]] = {}
    for path in schema_object.single_valued_paths():
        names = tuple(prop.column for prop in path)
        columns.setdefault(".".join(prop.name or prop.column for prop in path), (names, path))
        columns.setdefault(".".join(names), (names, path))
    return columns


def is_classified(path: tuple[Property, ...]) -> bool:
    """Return True if the top-level column of a property, or anything nested in it, is classified."""
    pending = [path[0]]
    while pending:
        prop = pending.pop()
        if prop.classification is not None:
            return True
        pending += prop.children()
    return False


# Parsing of a quality rule with a metric of dq's own engine.

ENGINE = "dq"
_KEYS = ("check", "arguments", "unit", *OPERATORS)
# Logical types that can be compared with each other.
_FAMILIES = {"integer": "number", "number": "number"}


def named_metric(quality: Quality) -> MeasureKind | None:
    """Return the metric of a rule of dq's engine, or None for every other rule."""
    name = implementation(quality).get("check")
    return METRICS.get(name) if isinstance(name, str) else None


def implementation(quality: Quality) -> dict[str, object]:
    """Return the implementation of a rule of dq's own engine; empty for every other rule."""
    if quality.type != "custom" or quality.engine != ENGINE:
        return {}
    settings = strip_source_maps(quality.implementation)
    if isinstance(settings, str):
        return {"check": settings.strip()}
    return settings if isinstance(settings, dict) else {}


def read_metric_rule(
    kind: MeasureKind, schema_object: SchemaObject, prop: Property | None, quality: Quality
) -> Measurement | tuple[Finding, ...]:
    """Return the parsed rule of an object or of one of its properties, or all findings about it,
    unordered.
    """
    findings: list[Finding] = []
    path = quality.path("implementation")
    rule = ArgumentReader(quality.implementation, quality.locate("implementation"), path, findings)
    rule.report_unknown(_KEYS, "the implementation")
    raw = rule.written.get("arguments")
    arguments = ArgumentReader(raw, rule.locate("arguments"), f"{path}.arguments", findings)
    if raw is not None and not isinstance(raw, dict):
        rule.report("arguments", "its arguments are not a mapping.", "Write: arguments: {by: [country]}")
    arguments.report_unknown((*kind.own, *SHARED_ARGUMENTS), kind.name)
    columns = single_properties(schema_object)
    column_path = next((names for names, holders in columns.values() if holders[-1] is prop), None)
    metric_rule = Measurement(
        kind,
        _columns(kind, rule, arguments, columns, prop, column_path),
        group_columns(arguments, columns, schema_object),
    )
    metric_rule = replace(metric_rule, against=_read_baseline(arguments))
    metric_rule = _with_own_arguments(kind, metric_rule, arguments, columns, prop)
    metric_rule = _with_bounds(metric_rule, rule, quality)
    _check_columns(metric_rule, rule, arguments, columns)
    return metric_rule if not findings else tuple(findings)


def _columns(
    kind: MeasureKind,
    rule: ArgumentReader,
    arguments: ArgumentReader,
    columns: ColumnIndex,
    prop: Property | None,
    column_path: ColumnPath | None,
) -> tuple[ColumnPath, ...]:
    """Return the measured columns: that of the property, or those that a rule on the object names."""
    if prop is not None:
        if column_path is None:
            message = "a value inside an array or map is not a column of its own."
            rule.report("", message, "Move the rule to a column.")
        if "properties" in arguments.written:
            hint = "Leave it out, or move the rule to the object."
            arguments.report("properties", "a rule on a property measures that property.", hint)
        other = named_columns(arguments, "property", columns) if kind.name == "compareColumns" else ()
        return (*([column_path] if column_path else ()), *other)
    if kind.columns == 0:
        rule.report("", f"{kind.name} measures one column.", "Move the rule to that property.")
        return ()
    if "property" in arguments.written:
        arguments.report(
            "property", "a rule on an object names its columns in properties.", "Write properties."
        )
    column_paths = named_columns(arguments, "properties", columns)
    if kind.columns and len(column_paths) not in (0, kind.columns):
        message = f"{kind.name} takes {kind.columns} columns, not {len(column_paths)}."
        arguments.report("properties", message, "Write two: properties: [ordered_on, shipped_on]")
    return column_paths


def named_columns(arguments: ArgumentReader, key: str, columns: ColumnIndex) -> tuple[ColumnPath, ...]:
    """Return the columns of an argument that is a name or a list of names."""
    value = arguments.get(key)
    single = isinstance(value, str)
    names = [value] if single else value
    if not isinstance(names, list) or not names:
        if key in arguments.written:
            arguments.report(key, f"{key} is {value!r}.", f"Write names of properties: {key}: [country]")
        else:
            arguments.report_missing(key, f"Add to the arguments: {key}: …")
        return ()
    column_paths: list[ColumnPath] = []
    for index, name in enumerate(names):
        item_index = None if single else index
        if not isinstance(name, str) or name not in columns:
            hint = suggestion(name, columns, "Write a property of the object.")
            arguments.report(key, f"{name!r} is not a column of the object.", hint, item_index)
        elif columns[name][0] in column_paths:
            arguments.report(key, f"{name!r} is listed twice.", "Remove one of them.", item_index)
        else:
            column_paths.append(columns[name][0])
    return tuple(column_paths)


def group_columns(
    arguments: ArgumentReader, columns: ColumnIndex, schema_object: SchemaObject
) -> tuple[ColumnPath, ...]:
    """Return the columns of the argument `by`, whose values are names of groups."""
    if "by" not in arguments.written:
        return ()
    column_paths = named_columns(arguments, "by", columns)
    if len(column_paths) > MAX_GROUP_COLUMNS:
        arguments.report("by", f"by has {len(column_paths)} columns.", f"Write at most {MAX_GROUP_COLUMNS}.")
    holders = dict(columns.values())
    names_value = arguments.get("by")
    names = names_value if isinstance(names_value, list) else []
    listed_paths = [columns[name][0] if isinstance(name, str) and name in columns else None for name in names]
    for column_path in column_paths:
        index = listed_paths.index(column_path) if column_path in listed_paths else None
        name, prop = ".".join(column_path), holders[column_path][-1]
        if is_classified(holders[column_path]):
            message = f"{name!r} is classified, but its values would be shown as group names."
            arguments.report("by", message, "Group by a column without classification.", index)
        elif prop.logical_type not in (None, *GROUP_COLUMN_TYPES):
            message = f"{name!r} has the type {prop.logical_type}, which cannot be grouped by."
            arguments.report(
                "by",
                message,
                f"Group by a column of {schema_object.name} of type {', '.join(GROUP_COLUMN_TYPES)}.",
                index,
            )
    return column_paths


def _read_baseline(arguments: ArgumentReader) -> Against | None:
    value = arguments.get("against")
    baseline_keys = [key for key in (*BASELINE_PARAMETERS, "direction") if key in arguments.written]
    if "against" not in arguments.written:
        for key in baseline_keys:
            arguments.report(
                key, f"{key} only applies to a comparison with earlier runs.", "Add: against: usual"
            )
        return None
    if not isinstance(value, str) or value not in BASELINES:
        hint = suggestion(value, BASELINES, f"Write one of {', '.join(BASELINES)}.")
        arguments.report("against", f"against is {value!r}.", hint)
        return None
    if value != "usual":
        for key in baseline_keys:
            arguments.report(
                key, f"{key} only applies with against: usual.", f"Remove it, or against: {value}."
            )
        return Against(value)
    parameters = {
        key: number_in_range(
            arguments, key, minimum_value, maximum_value, default, whole_number=key in ("runs", "minimum")
        )
        for key, (default, minimum_value, maximum_value) in BASELINE_PARAMETERS.items()
    }
    direction = arguments.get("direction", "both")
    if direction not in DIRECTIONS:
        arguments.report(
            "direction", f"direction is {direction!r}.", f"Write one of {', '.join(DIRECTIONS)}."
        )
        direction = "both"
    if parameters["minimum"] > parameters["runs"]:
        message = (
            f"minimum {parameters['minimum']} is more than runs {parameters['runs']}, so learning "
            "would never end."
        )
        arguments.report("minimum", message, "Write a smaller minimum.")
    slack = parameters["slack"] / 100
    runs, minimum = int(parameters["runs"]), int(parameters["minimum"])
    return Against(value, runs, minimum, parameters["deviations"], slack, str(direction))


def _with_own_arguments(
    kind: MeasureKind,
    metric_rule: Measurement,
    arguments: ArgumentReader,
    columns: ColumnIndex,
    prop: Property | None,
) -> Measurement:
    """Return the rule with the arguments that only this metric has."""
    if kind.name == "quantile":
        return replace(metric_rule, share=quantile_share(arguments))
    if kind.name == "sequenceGaps":
        dated = prop is not None and prop.logical_type == "date"
        step = int(number_in_range(arguments, "step", 1, 10**9, 1, whole_number=True))
        return replace(metric_rule, step=step, start=sequence_start(arguments, dated), dated=dated)
    if kind.name != "compareColumns":
        return metric_rule
    operator = arguments.get("operator")
    if operator not in COMPARISONS:
        if "operator" in arguments.written:
            arguments.report(
                "operator", f"operator is {operator!r}.", f"Write one of {' '.join(COMPARISONS)}."
            )
        else:
            arguments.report_missing("operator", 'Add to the arguments: operator: "<="')
        return metric_rule
    families = [_family(column_path, columns) for column_path in metric_rule.columns]
    known_families = {family for family in families if family}
    if len(known_families) > 1:
        families_text = " and ".join(sorted(known_families))
        arguments.report(
            "", f"columns of type {families_text} cannot be compared.", "Name two columns of one type."
        )
    return replace(metric_rule, comparison=COMPARISONS[str(operator)], family=next(iter(known_families), ""))


def _family(column_path: ColumnPath, columns: ColumnIndex) -> str:
    logical = columns[".".join(column_path)][1][-1].logical_type or ""
    return _FAMILIES.get(logical, logical)


def _with_bounds(metric_rule: Measurement, rule: ArgumentReader, quality: Quality) -> Measurement:
    """Return the rule with its operator and unit, from the implementation or the quality rule."""
    own_operators = read_operators(rule)
    all_operators = own_operators + quality.operators()
    check_operands(rule, all_operators)
    is_usual = metric_rule.against is not None and metric_rule.against.mode == "usual"
    if all_operators and is_usual:
        rule.report(
            all_operators[0][0], "with against: usual, earlier runs set the bounds.", "Remove the operator."
        )
    elif (
        not all_operators
        and not is_usual
        and metric_rule.kind.name == "compareColumns"
        and metric_rule.against is None
    ):
        all_operators = [("mustBe", 0)]
    elif not all_operators and not is_usual:
        rule.report("", f"{metric_rule.kind.name} has no bound.", "Add one: mustBeGreaterThan: 0")
    unit_text = rule.get("unit", quality.unit)
    unit = "" if unit_text is None else UNITS.get(str(unit_text).strip().lower(), "?")
    units = ("percent",) if metric_rule.against else metric_rule.kind.units
    if is_usual and unit:
        rule.report("unit", "with against: usual, the unit is that of the metric.", "Remove the unit.")
    elif unit and unit not in units:
        hint = f"It takes {' or '.join(units)}." if units else "Leave it out."
        if not units:
            hint += " A change against an earlier run can be in percent: against: previous"
        rule.report("unit", f"{metric_rule.kind.name} has no unit {unit_text!r}.", hint)
    return replace(metric_rule, bounds=tuple(all_operators), unit=unit)


def _check_columns(
    metric_rule: Measurement, rule: ArgumentReader, arguments: ArgumentReader, columns: ColumnIndex
) -> None:
    """Report measured columns of a type that the metric does not support, or that may not be compared."""
    kind = metric_rule.kind
    for column_path in metric_rule.columns:
        name = ".".join(column_path)
        _, holders = columns[name]
        logical = holders[-1].logical_type
        if kind.types and logical is not None and logical not in kind.types:
            message = f"{name!r} has the type {logical}, but {kind.name} needs {' or '.join(kind.types)}."
            rule.report("check", message, "Move the rule to a column of that type.")
        if metric_rule.against and is_classified(holders):
            # Values that may not be shown are not stored.
            message = f"{name!r} is classified, so no earlier values are stored to compare with."
            arguments.report("against", message, "Use a fixed bound.")


# Rules about unusual numbers: which numbers, and how many false alarms are accepted.

UNUSUAL = "unusual"
"""Check of dq's engine that compares numbers with a forecast from earlier runs."""
OBJECT_NUMBERS = ("rowCount", "bytes", "arrival")
_NUMERIC_NUMBERS = ("mean", "sum", "stddev")
PROPERTY_NUMBERS = ("nullShare", "distinctCount", *_NUMERIC_NUMBERS)
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
_FALSE_ALARMS = re.compile(r"(\d{1,4})/(year|month|week)")
_TIMES_A_YEAR = {"year": 1, "month": 12, "week": 52}
# Spelling until it was replaced.
_ROW_COUNT_ANOMALY = "rowCountAnomaly"


@dataclass(frozen=True, slots=True)
class UnusualRule:
    """A parsed rule about unusual numbers.

    Attributes:
        numbers: Names of the numbers, in the order of the contract.
        column: Column of the numbers, or None in a rule on the object.
        false_alarms: Accepted false alarms, e.g. `1/year`.
        alarms_a_year: The same as a number a year.
        expected: Dates whose numbers are right, though they may be unusual.
    """

    numbers: tuple[str, ...]
    column: ColumnPath | None
    false_alarms: str = "1/year"
    alarms_a_year: float = 1.0
    expected: tuple[dt.date, ...] = ()


def quantile_of(number: str) -> Decimal | None:
    """Return the share of a quantile such as `p99`, or None for other numbers."""
    match = _QUANTILE.fullmatch(number)
    return Decimal(match[1]) / 100 if match else None


def is_unusual_rule(quality: Quality) -> bool:
    """Return True for a rule about unusual numbers, also in the spelling that is no longer read."""
    return implementation(quality).get("check") in (UNUSUAL, _ROW_COUNT_ANOMALY)


def read_unusual_rule(
    schema_object: SchemaObject, prop: Property | None, quality: Quality
) -> UnusualRule | tuple[Finding, ...]:
    """Return the parsed rule of an object or of one of its properties, or all findings about it."""
    findings: list[Finding] = []
    path = quality.path("implementation")
    rule = ArgumentReader(quality.implementation, quality.locate("implementation"), path, findings)
    if implementation(quality).get("check") == _ROW_COUNT_ANOMALY:
        hint = "Write: implementation: {check: unusual, arguments: {of: [rowCount], falseAlarms: 1/year}}"
        rule.report("", f"{_ROW_COUNT_ANOMALY} has been replaced by {UNUSUAL}.", hint)
        return tuple(findings)
    rule.report_unknown(("check", "arguments"), "the implementation")
    raw = rule.written.get("arguments")
    arguments = ArgumentReader(raw, rule.locate("arguments"), f"{path}.arguments", findings)
    if raw is not None and not isinstance(raw, dict):
        rule.report("arguments", "its arguments are not a mapping.", "Write: arguments: {of: [rowCount]}")
    arguments.report_unknown(("of", "falseAlarms", "expected"), UNUSUAL)
    if quality.operators():
        name = quality.operators()[0][0]
        rule.report("", f"earlier runs set the bounds of {UNUSUAL}.", f"Remove {name}.")
    column = None
    if prop is not None:
        columns = single_properties(schema_object)
        column, holders = next((entry for entry in columns.values() if entry[1][-1] is prop), (None, ()))
        if column is None:
            message = "a value inside an array or map is not a column of its own."
            rule.report("", message, "Move the rule to a column.")
        numbers = _numbers(arguments, PROPERTY_NUMBERS, "nullShare", quantiles=True)
        _check_number_types(numbers, arguments, prop, is_hidden=bool(holders) and is_classified(holders))
    else:
        numbers = _numbers(arguments, OBJECT_NUMBERS, "rowCount", quantiles=False)
        if (without_rows := [name for name in numbers if name != "rowCount"]) and scope(quality)[0].where:
            message = f"{without_rows[0]} is about a delivery, not about the rows of a scope."
            arguments.report("of", message, "Remove where from the scope of the rule.")
    text = arguments.get("falseAlarms", "1/year")
    match = _FALSE_ALARMS.fullmatch(text) if isinstance(text, str) else None
    if match is None or not int(match[1]):
        arguments.report("falseAlarms", f"falseAlarms is {text!r}.", "Write e.g. 1/year, 2/month or 1/week.")
        match = None
    alarms = float(match[1]) * _TIMES_A_YEAR[match[2]] if match else 1.0
    expected = _expected_dates(arguments)
    return UnusualRule(numbers, column, str(text), alarms, expected) if not findings else tuple(findings)


def _numbers(
    arguments: ArgumentReader, names: tuple[str, ...], default: str, *, quantiles: bool
) -> tuple[str, ...]:
    """Return the numbers that `of` lists."""
    value = arguments.get("of", [default])
    listed = [value] if isinstance(value, str) else value
    allowed = ", ".join((*names, "quantiles, e.g. p99") if quantiles else names)
    if not isinstance(listed, list) or not listed:
        arguments.report("of", f"of is {value!r}.", f"Write a list of numbers: of: [{default}]")
        return ()
    numbers: list[str] = []
    for index, name in enumerate(listed):
        if not isinstance(name, str) or (name not in names and not (quantiles and quantile_of(name))):
            elsewhere, place = (
                (OBJECT_NUMBERS, "the object") if quantiles else (PROPERTY_NUMBERS, "a property")
            )
            similar = nearest(str(name), (*names, *elsewhere))
            hints = [f"Did you mean {similar!r}?"] if similar not in (None, name) else []
            if similar in elsewhere:
                hints.append(f"Write it in a rule on {place}.")
            hint = " ".join(hints) or f"It takes {allowed}."
            arguments.report("of", f"{name!r} is not a number of this rule.", hint, index)
        elif name in numbers:
            arguments.report("of", f"{name!r} is listed twice.", "Remove one of them.", index)
        else:
            numbers.append(name)
    return tuple(numbers)


def _check_number_types(
    numbers: tuple[str, ...], arguments: ArgumentReader, prop: Property, *, is_hidden: bool
) -> None:
    for name in numbers:
        is_numeric = name in _NUMERIC_NUMBERS or quantile_of(name) is not None
        if is_numeric and prop.logical_type not in (None, *_NUMBERS):
            message = f"{prop.name!r} has the type {prop.logical_type}, but {name} needs a number."
            arguments.report("of", message, "Remove it, or move the rule to a column of numbers.")
        if is_hidden and name != "nullShare":
            message = f"{prop.name!r} is classified, so no earlier {name} is stored to compare with."
            arguments.report("of", message, "Keep only nullShare.")


def _expected_dates(arguments: ArgumentReader) -> tuple[dt.date, ...]:
    value = arguments.get("expected", [])
    dates: list[dt.date] = []
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        try:
            day = item if isinstance(item, dt.date) else dt.date.fromisoformat(str(item))
            dates.append(dt.date(day.year, day.month, day.day))
        except ValueError:
            arguments.report("expected", f"{item!r} is not a date.", "Write dates: [2026-11-27]", index)
    return tuple(dates)
