"""Classification of one change: effects, levels, verdicts, and comparators of columns and partitions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple

from dq.contracts.diff import Change, ChangeKind, FlatElement, PhysicalType
from dq.contracts.extension import dataset
from dq.contracts.model import Contract
from dq.contracts.service_levels import parse_date
from dq.contracts.types import (
    HIDDEN,
    HIDDEN_V1,
    SCHEMA_EVOLUTION,
    DataType,
    SchemaEvolution,
    format_profile,
    schema_evolution,
)

# Effect, level and mode of a change, and the verdict, which depends on these three only.


class Effect(StrEnum):
    """Effect of a change on the data that a contract allows.

    `weaken`: more data is allowed, so readers may see values that were excluded before. `strengthen`: less
    data is allowed, so writers and old data may violate the contract. `replace`: neither set contains the
    other. `policy`: the change does not affect data.
    """

    NEUTRAL = "neutral"
    WEAKEN = "weaken"
    STRENGTHEN = "strengthen"
    REPLACE = "replace"
    POLICY = "policy"


class Level(StrEnum):
    """Severity of a change for those it affects."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class Verdict(StrEnum):
    """Result of a change in a mode, mildest first."""

    OK = "ok"
    WARN = "warn"
    BREAK = "break"

    @property
    def rank(self) -> int:
        """0 for ok to 2 for break, for comparing."""
        return list(Verdict).index(self)


class Bump(StrEnum):
    """Smallest version increment that announces a change, smallest first."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """0 for none to 3 for major, for comparing."""
        return list(Bump).index(self)


class Mode(StrEnum):
    """Compatibility mode: the parties that a change must not break.

    FORWARD: consumers, whose old queries run on the new catalog and new data. BACKWARD: history and writers,
    whose old files and jobs must satisfy the new contract. FULL: both. NONE: no party, changes are only
    reported. TRANSITIVE modes compare with every earlier version of the same major, not only the last one.
    """

    FORWARD = "FORWARD"
    BACKWARD = "BACKWARD"
    FULL = "FULL"
    NONE = "NONE"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def direct(self) -> Mode:
        """The mode for one pair of versions."""
        return Mode(self.value.removesuffix("_TRANSITIVE"))

    @property
    def transitive(self) -> bool:
        """True if the change is compared with all earlier versions of the major."""
        return self.value.endswith("_TRANSITIVE")


# Effect -> the modes that it affects. Policy applies in every mode because it is not about data.
AFFECTED_MODES: dict[Effect, frozenset[Mode]] = {
    Effect.NEUTRAL: frozenset(),
    Effect.WEAKEN: frozenset({Mode.FORWARD, Mode.FULL}),
    Effect.STRENGTHEN: frozenset({Mode.BACKWARD, Mode.FULL}),
    Effect.REPLACE: frozenset({Mode.FORWARD, Mode.BACKWARD, Mode.FULL}),
    Effect.POLICY: frozenset({Mode.FORWARD, Mode.BACKWARD, Mode.FULL, Mode.NONE}),
}
_VERDICT = {Level.INFO: Verdict.OK, Level.WARN: Verdict.WARN, Level.ERROR: Verdict.BREAK}


def verdict(effect: Effect, level: Level, mode: Mode) -> Verdict:
    """Return the verdict on a change in a mode."""
    return _VERDICT[level] if mode.direct in AFFECTED_MODES[effect] else Verdict.OK


class ChangeClassification(NamedTuple):
    """Classification of one change: rule, effect and level.

    `bump` is the version increment if the change breaks nothing. `note` has details of this case, e.g. the
    engine that fails.
    """

    rule: str
    effect: Effect
    level: Level
    bump: Bump = Bump.MINOR
    note: str = ""
    engine: str = ""


def neutral(rule: str, bump: Bump = Bump.MINOR, note: str = "") -> ChangeClassification:
    """Return the classification of a harmless change."""
    return ChangeClassification(rule, Effect.NEUTRAL, Level.INFO, bump, note)


def weaken(rule: str, level: Level = Level.ERROR, note: str = "") -> ChangeClassification:
    """Return the classification of a change that relaxes a guarantee to consumers."""
    return ChangeClassification(rule, Effect.WEAKEN, level, note=note)


def strengthen(rule: str, level: Level = Level.ERROR, note: str = "") -> ChangeClassification:
    """Return the classification of a change that adds a restriction for writers and history."""
    return ChangeClassification(rule, Effect.STRENGTHEN, level, note=note)


def replace(rule: str, level: Level = Level.ERROR, note: str = "") -> ChangeClassification:
    """Return the classification of a change that replaces one guarantee with another."""
    return ChangeClassification(rule, Effect.REPLACE, level, note=note)


def policy(
    rule: str, level: Level = Level.ERROR, bump: Bump = Bump.NONE, note: str = ""
) -> ChangeClassification:
    """Return the classification of a change that violates the version policy, in any mode."""
    return ChangeClassification(rule, Effect.POLICY, level, bump, note)


def required_bump(classification: ChangeClassification, mode: Mode) -> Bump:
    """Return the smallest bump that announces a change, for versions from 1.0 on.

    A change that breaks consumers is a major change in any mode, since versions are for consumers. A change
    that breaks the parties protected by the mode is a major change too.
    """
    if classification.effect is Effect.POLICY:
        return classification.bump
    verdicts = [
        verdict(classification.effect, classification.level, affected_mode)
        for affected_mode in (Mode.FORWARD, mode)
    ]
    minimum = (
        Bump.MAJOR if Verdict.BREAK in verdicts else Bump.MINOR if Verdict.WARN in verdicts else Bump.NONE
    )
    return max(classification.bump, minimum, key=lambda bump: bump.rank)


# TABLE: which stored type can be read as which other, by table format and engine, with sources.
#
# Rows are types, columns are readers. `Y`: read correctly; `L`: lossy, or depends on the values; `N`: not
# readable, or wrong results; `?`: no source found, treated as no; `=`: the reader does not distinguish the
# two types. Unlisted pairs are `N`.

# Column -> its source.
SOURCES: Mapping[str, str] = {
    "Ice2": "Iceberg spec v1-2, Schema Evolution",
    "Ice3": "Iceberg spec v3, Schema Evolution",
    "D3": "Delta docs, delta-type-widening (3.2 preview: byte, short)",
    "D4": "Delta PROTOCOL.md, Type Widening (4.0)",
    "Hudi": "Hudi SchemaChangeUtils.java (schema on read)",
    "Avro": "Avro spec, Schema Resolution; AVRO-299, AVRO-1533",
    "ORC": "ORC SchemaEvolution, list of conversions",
    "Sp3": "Spark 3.5 vectorized Parquet reader; spark#34308",
    "Sp4": "Spark 4.0 Parquet reader; spark#44368",
    "TrP": "Trino docs, hive.md partition coercions; trino#21556",
    "Ath": "Athena User Guide, updates-changing-column-type",
    "RS": "AWS re:Post redshift-spectrum-data-errors: the type must match the Parquet file",
}
_COLUMNS = tuple(SOURCES)

# From, to, then one cell for each column in the order of SOURCES.
#                                  Ice2 Ice3 D3 D4 Hudi Avro ORC Sp3 Sp4 TrP Ath RS
_ROWS = """
    tinyint        int             Y Y Y Y = = Y Y Y Y Y ?
    tinyint        smallint        Y Y Y Y = = Y Y Y Y Y ?
    smallint       int             Y Y Y Y = = Y Y Y Y Y ?
    tinyint        bigint          Y Y N Y Y Y Y N Y Y Y N
    smallint       bigint          Y Y N Y Y Y Y N Y Y Y N
    int            bigint          Y Y N Y Y Y Y N Y Y Y N
    float          double          Y Y N Y Y Y Y ? Y Y Y N
    tinyint        double          N N N Y Y Y Y N Y N N N
    smallint       double          N N N Y Y Y Y N Y N N N
    int            double          N N N Y Y Y Y N Y N N N
    int            float           N N N N L L L N N N N N
    bigint         double          N N N N L L L N N L N N
    bigint         float           N N N N L L L N N N N N
    int            decimal-fits    N N N Y Y N Y N Y Y N N
    bigint         decimal-fits    N N N Y Y N Y N Y Y N N
    decimal        decimal-wider   Y Y N Y Y N Y ? Y Y N ?
    decimal        decimal-scaled  N N N Y Y N L N Y L N N
    decimal        decimal         N N N N N N L N N L N N
    float          decimal         N N N N L N L N N L N N
    double         decimal         N N N N L N L N N L N N
    double         float           N N N N N N L N N L N N
    date           timestamp       N Y N N N N Y N N N N N
    date           timestamp_ntz   N Y N Y N N Y N Y N N N
    timestamp      date            N N N N N N L N N L N N
    int            string          N N N N Y N Y N N Y N N
    bigint         string          N N N N Y N Y N N Y N N
    decimal        string          N N N N Y N Y N N Y N N
    float          string          N N N N Y N Y N N Y N N
    double         string          N N N N Y N Y N N Y N N
    date           string          N N N N Y N Y N N Y N N
    boolean        string          N N N N N N Y N N Y N N
    timestamp      string          N N N N N N Y N N Y N N
    string         int             N N N N N N L N N L L N
    string         bigint          N N N N N N L N N L L N
    string         date            N N N N L N L N N L N N
    string         decimal         N N N N L N L N N N N N
    string         binary          N N N N N Y L Y Y L N N
    binary         string          N N N N N Y L Y Y L N N
    decimal        int             N N N N N N L N N L N N
"""
MATRIX: Mapping[tuple[str, str], Mapping[str, str]] = {
    (row[0], row[1]): dict(zip(_COLUMNS, row[2:], strict=True))
    for row in (line.split() for line in _ROWS.strip().splitlines())
}

# Format -> the column with the format's own rules, which hold for every reader. For file formats without such
# rules the engine decides; an engine without a column counts as unable to read.
FORMAT_COLUMN: Mapping[str, str] = {
    "iceberg-v1": "Ice2",
    "iceberg-v2": "Ice2",
    "iceberg-v3": "Ice3",
    "delta-3": "D3",
    "delta-4": "D4",
    "hudi": "Hudi",
    "avro": "Avro",
    "orc-index": "ORC",
    "orc-name": "ORC",
}
ENGINE_COLUMN: Mapping[str, str] = {
    "spark": "Sp4",
    "spark-3": "Sp3",
    "trino": "TrP",
    "trino-451": "TrP",
    "athena": "Ath",
    "redshift-spectrum": "RS",
}
# (engine, from, to): conversions for which an engine version silently returns wrong results.
WRONG: Mapping[tuple[str, str, str], str] = {
    ("trino-451", "int", "decimal-fits"): "trino#21556: 0.05 for 5 before Trino 452",
    ("trino-451", "bigint", "decimal-fits"): "trino#21556: 0.05 for 5 before Trino 452",
}

# Order of width, used to distinguish narrowing from other type changes.
_WIDTH = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "float": 5, "double": 6}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


@dataclass(frozen=True, slots=True)
class Readability:
    """Result of reading old data as the new type; if unreadable, the reader that fails and the source."""

    is_readable: bool
    reader: str = ""
    source: str = ""


def check_readability(
    before: DataType, after: DataType, format_: str, engines: tuple[str, ...]
) -> Readability:
    """Check that every declared engine can read data of one type as another in this format."""
    key = (_name(before), _target(before, after))
    cells = MATRIX.get(key, {})
    format_column = FORMAT_COLUMN.get(format_)
    if format_column is not None:
        return _cell(cells.get(format_column, "N"), format_, SOURCES[format_column])
    for engine in engines:
        column = ENGINE_COLUMN.get(engine)
        known_bug = WRONG.get((engine, *key))
        if column is None or known_bug is not None or format_ not in ("parquet-name", "parquet-index"):
            return Readability(False, engine, known_bug or f"no source for {engine} on {format_}")
        result = _cell(cells.get(column, "N"), engine, SOURCES[column])
        if not result.is_readable:
            return result
    return Readability(bool(engines))


def _cell(cell: str, reader: str, source: str) -> Readability:
    return Readability(True) if cell in ("Y", "=") else Readability(False, reader, source)


def _name(type_: DataType) -> str:
    return "string" if type_.name in ("varchar", "char") else type_.name


def _target(before: DataType, after: DataType) -> str:
    """Return the target type's name in the matrix; for a decimal it depends on precision and scale."""
    if after.name != "decimal" or len(after.numbers) != 2:
        return _name(after)
    precision, scale = after.numbers
    if before.name in _DIGITS:
        return "decimal-fits" if precision - scale >= _DIGITS[before.name] else "decimal"
    if before.name == "decimal" and len(before.numbers) == 2:
        extra_precision, extra_scale = precision - before.numbers[0], scale - before.numbers[1]
        if extra_scale == 0 and extra_precision > 0:
            return "decimal-wider"
        if extra_scale > 0 and extra_precision >= extra_scale:
            return "decimal-scaled"
    return "decimal"


def narrows(before: DataType, after: DataType) -> bool:
    """Return True if the new type holds fewer values of the same kind than the old one."""
    if before.name == after.name == "decimal" and len(before.numbers) == len(after.numbers) == 2:
        integer_digits = (before.numbers[0] - before.numbers[1], after.numbers[0] - after.numbers[1])
        return (
            integer_digits[1] <= integer_digits[0]
            and after.numbers[1] <= before.numbers[1]
            and before != after
        )
    old_width, new_width = _WIDTH.get(before.name), _WIDTH.get(after.name)
    if old_width is not None and new_width is not None:
        return new_width < old_width
    if before.name == "decimal" and after.name in _DIGITS:
        return _target(after, before) == "decimal-fits"
    return False


# Context of a classification besides the change: formats, engines, dates; all passed in.

DEFAULT_ENGINES = ("athena", "spark", "redshift-spectrum")
NOTICE_DAYS = 90

# Server types that imply a format.
_SERVER_FORMATS = {"iceberg": "iceberg", "databricks": "delta"}
_ENGINE = re.compile(r"([a-z-]*[a-z])[ _-]?(<=|>=|<|>|=|==)?[ v]?(\d+)?(?:\.\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ComparisonContext:
    """Formats by object name, engines, date, and deprecation dates of columns.

    `format`, if set, overrides the format of every object. `deprecated_since` has dates by element path, from
    the history; the custom property `deprecatedSince` is the equivalent in the file.
    """

    today: date
    engines: tuple[str, ...] = DEFAULT_ENGINES
    format: str | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    notice_days: int = NOTICE_DAYS
    deprecated_since: Mapping[str, date] = field(default_factory=dict)
    before: FlatElement | None = None

    def format_for(self, object_name: str) -> str:
        """Return the format profile of an object's data."""
        return format_profile(self.format or self.formats.get(object_name, ""))

    def structure_for(self, element: FlatElement) -> SchemaEvolution:
        """Return how the object's format resolves columns or struct fields."""
        return schema_evolution(self.format_for(element.object_name), self.engines, nested=element.nested)


def object_formats(contract: Contract) -> dict[str, str]:
    """Return each object's format by its physical name, from its `dataset` terms or else its server."""
    server = next((server for server in contract.servers if server.get("format")), None)
    kind = next(
        (
            _SERVER_FORMATS[candidate.type]
            for candidate in contract.servers
            if candidate.type in _SERVER_FORMATS
        ),
        "",
    )
    default_format = (server.get("format") if server else None) or kind
    return {
        schema_object.column: dataset(schema_object)[0].format or default_format
        for schema_object in contract.objects
    }


def normalize_engine(text: str) -> str:
    """Normalize an engine name: `spark<=3.5` and `spark 3` to `spark-3`, `trino<452` to `trino-451`.

    Versions that make no difference are dropped. An unknown engine is returned unchanged and treated as
    unable to read any conversion.
    """
    normalized = text.strip().lower().split(" partitions")[0].removesuffix("-hive").replace(" ", "-")
    match = _ENGINE.fullmatch(normalized)
    if match is None:
        return normalized
    name, sign, number = match[1].strip("-"), match[2] or "", int(match[3]) if match[3] else None
    name = {"redshift": "redshift-spectrum", "spectrum": "redshift-spectrum", "emr": "spark"}.get(name, name)
    if name == "spark" and number is not None and (number < 4 or (number == 4 and sign == "<")):
        return "spark-3"
    if name == "trino" and number is not None and (number < 452 or (number == 452 and sign == "<")):
        return "trino-451" if sign in ("<", "<=", "=", "==", "") else name
    return name if name in ENGINE_COLUMN else normalized


# Comparators of columns and tables: added, removed, moved, renamed.

_PARTS = ("[]", "{key}", "{}")


def presence(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a column that was added, removed or moved to another level."""
    if change.action is ChangeKind.MOVED:
        return replace("column-moved", note="No table format can move a column into or out of a struct.")
    if change.action is ChangeKind.ADDED and change.new is not None:
        return _column_added(change, change.new, context)
    assert change.old is not None
    return _column_removed(change, change.old, context)


def _column_added(change: Change, new: FlatElement, context: ComparisonContext) -> ChangeClassification:
    if new.column in _PARTS:
        return strengthen("type-declared", Level.INFO)
    row = context.structure_for(new)
    if change.facts.get("reused"):
        return replace("column-name-reused", note="Another column used this name before.")
    if change.facts.get("middle") and not row.add_middle:
        return replace("column-added-middle", note=f"Columns are matched by position ({row.source}).")
    if new.normal("required") is None:
        return neutral("column-added-optional")
    if new.normal("customProperties.default") is None:
        return strengthen("column-added-required")
    if row.defaults:
        return neutral("column-added-defaulted")
    format_ = context.format_for(new.object_name)
    return strengthen("column-added-required", note=f"{format_} does not apply defaults to existing rows.")


def _column_removed(change: Change, old: FlatElement, context: ComparisonContext) -> ChangeClassification:
    if old.column in _PARTS:
        return weaken("type-undeclared", Level.WARN)
    row = context.structure_for(old)
    hint = change.facts.get("hint")
    note = f"It looks like a rename to {hint!r}: give both the same id." if hint else ""
    rule = "column-removed"
    since = _deprecated_since(old, context)
    if since is not None:
        notice_elapsed = since + timedelta(days=context.notice_days) <= context.today
        rule = "column-removed-deprecated" if notice_elapsed else rule
        qualifier = "at least" if notice_elapsed else "less than"
        note = f"Deprecated since {since}, {qualifier} {context.notice_days} days ago."
    if row.remove:
        return weaken(rule, note=note)
    return replace(rule, note=f"{note} The columns after it shift ({row.source}).".strip())


def _deprecated_since(old: FlatElement, context: ComparisonContext) -> date | None:
    if old.normal("deprecated") is None:
        return None
    raw = old.source_value("customProperties.deprecatedSince")
    declared = parse_date(str(raw)) if raw is not None else None
    return context.deprecated_since.get(old.path, declared)


def column_rename(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a column that was renamed in the data."""
    if str(change.before).lower() == str(change.after).lower():
        return replace("column-case-changed", Level.WARN)
    assert change.old is not None
    row = context.structure_for(change.old)
    if row.rename:
        return weaken("column-renamed", note="Old queries use the old name; the data stays readable.")
    return replace("column-renamed", note=f"Values in old files are read as null ({row.source}).")


def column_order(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of column order."""
    element = change.new or change.old
    assert element is not None
    children = element.parts[0] if element.parts else element
    row = context.structure_for(children)
    if row.reorder:
        return neutral("column-reordered")
    return replace("column-reordered", note=f"Columns are matched by position ({row.source}).")


def table_presence(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a table that was added or removed."""
    if change.action is ChangeKind.ADDED:
        return neutral("table-added")
    hint = change.facts.get("hint")
    return weaken("table-removed", note=f"It looks like a rename to {hint!r}." if hint else "")


def table_rename(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a table that was renamed in the catalog."""
    case_only = str(change.before).lower() == str(change.after).lower()
    return replace("table-renamed", Level.WARN if case_only else Level.ERROR)


# Comparators of column types, for readers and for existing files.

_TEXT = frozenset({"string", "varchar", "char"})
_HARM = {Effect.NEUTRAL: 0, Effect.STRENGTHEN: 1, Effect.WEAKEN: 1, Effect.REPLACE: 2, Effect.POLICY: 2}


def physical_type(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of physicalType by the rules of the format and the engines."""
    before, after = change.before, change.after
    if change.action is ChangeKind.ADDED:
        return strengthen("type-declared", Level.INFO)
    if change.action is ChangeKind.REMOVED:
        return weaken("type-undeclared", Level.WARN)
    if not isinstance(before, PhysicalType) or not isinstance(after, PhysicalType):
        return replace("type-changed")
    if before.type is None or after.type is None:
        return _adjust_for_column(
            change, context, replace("type-changed", note="dq does not know this type.")
        )
    if before.type == after.type:
        return neutral("type-alias", Bump.PATCH)
    element = change.old or change.new
    format_ = context.format_for(element.object_name if element else "")
    return _adjust_for_column(change, context, _compare_types(before.type, after.type, format_, context))


def _compare_types(
    before: DataType, after: DataType, format_: str, context: ComparisonContext
) -> ChangeClassification:
    if before == after:
        return neutral("type-alias", Bump.PATCH)
    if before.name == after.name and before.parts:
        return _compare_nested(before, after, format_, context)
    if before.name in _TEXT and after.name in _TEXT:
        return _compare_lengths(before, after)
    if narrows(before, after):
        return replace("type-narrowed", note=f"{before} does not fit into {after}.")
    result = check_readability(before, after, format_, context.engines)
    if not result.is_readable:
        note = f"{result.reader or format_} cannot read {before} as {after} ({result.source})."
        return replace("type-changed", note=note)._replace(engine=result.reader)
    # A table format gives every reader the current type. Without one, a reader that still expects the old
    # type may fail on files with the wider type.
    shared = SCHEMA_EVOLUTION[format_].shared if format_ in SCHEMA_EVOLUTION else False
    return weaken("type-widened", Level.WARN if shared else Level.ERROR)


def _compare_lengths(before: DataType, after: DataType) -> ChangeClassification:
    old_length, new_length = (type_.numbers[0] if type_.numbers else math.inf for type_ in (before, after))
    if old_length == new_length:
        return replace("type-changed", note="char pads its values, varchar does not.")
    if new_length > old_length:
        return weaken("type-length-increased", Level.WARN)
    return strengthen("type-length-decreased")


def _compare_nested(
    before: DataType, after: DataType, format_: str, context: ComparisonContext
) -> ChangeClassification:
    """Return the worst classification of the parts. The key type of a map must not change."""
    if before.name == "map" and before.parts[0] != after.parts[0]:
        return replace("type-changed", note="No format allows a change of a map's key type.")
    parts = zip(before.parts, after.parts, strict=False)
    classifications = [
        _compare_types(first, second, format_, context) for first, second in parts if first != second
    ]
    if before.name == "struct":
        classifications += _compare_fields(before, after)
    return max(
        classifications,
        key=lambda classification: (_HARM[classification.effect], classification.level is Level.ERROR),
    )


def _compare_fields(before: DataType, after: DataType) -> list[ChangeClassification]:
    shared = min(len(before.names), len(after.names))
    if before.names[:shared] != after.names[:shared]:
        return [replace("type-changed", note="Fields of the struct changed name or position.")]
    if len(after.names) > shared:
        return [neutral("column-added-optional")]
    return [weaken("column-removed")] if len(before.names) > shared else [neutral("type-alias", Bump.PATCH)]


def _adjust_for_column(
    change: Change, context: ComparisonContext, classification: ChangeClassification
) -> ChangeClassification:
    """Return the classification, adjusted if the column is a partition key or reuses a name."""
    if classification.effect is Effect.NEUTRAL or classification.rule.startswith("type-length"):
        return classification
    if is_partition_key(change, context):
        return replace("partition-type-changed", note=classification.note)
    if is_name_reused(change):
        return replace("column-name-reused", note="Another column used this name before: its id differs.")
    return classification


def is_name_reused(change: Change) -> bool:
    """Return True if the two columns have the same name but different ids."""
    if change.old is None or change.new is None:
        return False
    first, second = dict(change.old.keys).get("id"), dict(change.new.keys).get("id")
    return bool(first) and bool(second) and first != second


def is_partition_key(change: Change, context: ComparisonContext) -> bool:
    """Return True if the old data was partitioned by the changed column."""
    if context.before is None or change.old is None:
        return False
    for schema_object in context.before.parts:
        partition = schema_object.normal("partition")
        if schema_object.object_name == change.old.object_name and isinstance(partition, tuple):
            path = change.old.path.removeprefix(f"{schema_object.column}.")
            return any(path == name for name, _ in partition)
    return False


def logical_type(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of logicalType; if both sides have physical types, these decide readability."""
    if change.action is ChangeKind.ADDED:
        return strengthen("type-declared", Level.INFO)
    if change.action is ChangeKind.REMOVED:
        return weaken("type-undeclared", Level.WARN)
    pair = (change.before, change.after)
    if pair == ("integer", "number"):
        return _adjust_for_column(change, context, weaken("type-generalized"))
    if pair == ("number", "integer"):
        return _adjust_for_column(change, context, strengthen("type-specialized"))
    if (pair == ("date", "timestamp") or change.after == "string") and _is_readable(change, context):
        return _adjust_for_column(change, context, weaken("type-generalized"))
    return _adjust_for_column(change, context, replace("type-changed"))


def _is_readable(change: Change, context: ComparisonContext) -> bool:
    """Return True if the physical types of both sides make old data readable."""
    before = change.old.normal("physicalType") if change.old else None
    after = change.new.normal("physicalType") if change.new else None
    if not isinstance(before, PhysicalType) or not isinstance(after, PhysicalType):
        return False
    if before.type is None or after.type is None or change.old is None:
        return False
    if before.type == after.type:
        return True
    format_ = context.format_for(change.old.object_name)
    return check_readability(before.type, after.type, format_, context.engines).is_readable


# Comparators of partitions: a new layout for files in folders, a minor change for hidden partitions.

_PART_OF_TIME = re.compile(
    r"(^|_)(year|month|week|day|date|dt|ds|hour|minute|hh|mm|yyyy|dd)s?(_|$)", re.IGNORECASE
)

Keys = tuple[tuple[str, str], ...]


def partition(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of the partition keys and their transforms."""
    rule = _partition_rule(_partition_keys(change.before), _partition_keys(change.after))
    row = SCHEMA_EVOLUTION.get(context.format_for(change.object_name))
    kind = row.partition if row else ""
    if kind == HIDDEN or (kind == HIDDEN_V1 and rule == "partition-added"):
        return neutral(rule, note="Old and new partitions coexist, and queries do not depend on them.")
    if kind == HIDDEN_V1:
        return replace(rule, Level.WARN, "Iceberg v1 should not reorder or drop partition fields.")
    return replace(rule, note="Paths and filters change, and the data must be rewritten.")


def _partition_keys(value: object) -> Keys:
    return value if isinstance(value, tuple) else ()


def _partition_rule(before: Keys, after: Keys) -> str:
    old_names, new_names = [name for name, _ in before], [name for name, _ in after]
    added, removed = (
        [name for name in new_names if name not in old_names],
        [name for name in old_names if name not in new_names],
    )
    if added or removed:
        # Splitting days into hours changes the granularity of the same time column; it adds no new dimension.
        finer = all(_PART_OF_TIME.search(name) for name in (*added, *removed))
        timed = any(_PART_OF_TIME.search(name) for name in old_names) and any(
            _PART_OF_TIME.search(name) for name in new_names
        )
        if finer and timed:
            return "partition-granularity-changed"
        return "partition-removed" if removed else "partition-added"
    return "partition-reordered" if old_names != new_names else "partition-granularity-changed"


def grain(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of a partition column's format, which sets the partition granularity."""
    row = SCHEMA_EVOLUTION.get(context.format_for(change.object_name))
    rule = "partition-granularity-changed"
    return neutral(rule) if row and row.partition == HIDDEN else replace(rule)
