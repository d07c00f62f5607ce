"""What one change means: effects, levels, verdicts, and comparators of columns and partitions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from typing import NamedTuple

from dq.contracts.diff import Change, FlatElement, Motion, Physical, date_of
from dq.contracts.extension import dataset
from dq.contracts.model import Contract
from dq.contracts.types import HIDDEN, HIDDEN_V1, STRUCTURES, DataType, Structure, profile, structure

# The words of a judgement (effect, level, mode, verdict), and what it looks at besides the change.

# Effect, level and mode of a change, and the verdict that follows from the three and nothing else.


class Effect(StrEnum):
    """What a change does to the data that a contract admits.

    `weaken`: more data than before, so readers meet what they were promised not to. `strengthen`: less, so
    writers and old data fall out. `replace`: neither contains the other. `policy`: no matter of data.
    """

    NEUTRAL = "neutral"
    WEAKEN = "weaken"
    STRENGTHEN = "strengthen"
    REPLACE = "replace"
    POLICY = "policy"


class Level(StrEnum):
    """How much the change matters to whom it hits."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class Verdict(StrEnum):
    """What a change means in a mode, mildest first."""

    OK = "ok"
    WARN = "warn"
    BREAK = "break"

    @property
    def rank(self) -> int:
        """0 for ok to 2 for break, for comparing."""
        return list(Verdict).index(self)


class Bump(StrEnum):
    """The smallest change of the version that announces a change, smallest first."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"

    @property
    def rank(self) -> int:
        """0 for none to 3 for major, for comparing."""
        return list(Bump).index(self)


class Mode(StrEnum):
    """Whom a change may not break.

    FORWARD: consumers, whose old queries meet the new catalog and new data. BACKWARD: history and writers,
    whose old files and jobs meet the new contract. FULL: both. NONE: nobody, changes are only told.
    TRANSITIVE ones look at every earlier version of the same major, not only at the last.
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
        """Whether all earlier versions of the major count."""
        return self.value.endswith("_TRANSITIVE")


# Effect -> the modes that it hits. Policy hits in every mode, for it is not about data.
HITS: dict[Effect, frozenset[Mode]] = {
    Effect.NEUTRAL: frozenset(),
    Effect.WEAKEN: frozenset({Mode.FORWARD, Mode.FULL}),
    Effect.STRENGTHEN: frozenset({Mode.BACKWARD, Mode.FULL}),
    Effect.REPLACE: frozenset({Mode.FORWARD, Mode.BACKWARD, Mode.FULL}),
    Effect.POLICY: frozenset({Mode.FORWARD, Mode.BACKWARD, Mode.FULL, Mode.NONE}),
}
_VERDICT = {Level.INFO: Verdict.OK, Level.WARN: Verdict.WARN, Level.ERROR: Verdict.BREAK}


def verdict(effect: Effect, level: Level, mode: Mode) -> Verdict:
    """What a change means in a mode."""
    return _VERDICT[level] if mode.direct in HITS[effect] else Verdict.OK


class Judgement(NamedTuple):
    """What the table says of one change: a rule, what it does, and how much that matters.

    `bump` announces the change where it breaks nothing; `note` is what only this case can say, such as
    the engine that fails.
    """

    rule: str
    effect: Effect
    level: Level
    bump: Bump = Bump.MINOR
    note: str = ""
    engine: str = ""


def neutral(rule: str, bump: Bump = Bump.MINOR, note: str = "") -> Judgement:
    """A change that hurts nobody."""
    return Judgement(rule, Effect.NEUTRAL, Level.INFO, bump, note)


def weaken(rule: str, level: Level = Level.ERROR, note: str = "") -> Judgement:
    """A promise to consumers that is loosened."""
    return Judgement(rule, Effect.WEAKEN, level, note=note)


def strengthen(rule: str, level: Level = Level.ERROR, note: str = "") -> Judgement:
    """A promise that binds writers and history tighter."""
    return Judgement(rule, Effect.STRENGTHEN, level, note=note)


def replace(rule: str, level: Level = Level.ERROR, note: str = "") -> Judgement:
    """A promise that is exchanged for another."""
    return Judgement(rule, Effect.REPLACE, level, note=note)


def policy(rule: str, level: Level = Level.ERROR, bump: Bump = Bump.NONE, note: str = "") -> Judgement:
    """A fault in how the change is made, whatever the mode."""
    return Judgement(rule, Effect.POLICY, level, bump, note)


def required_bump(judgement: Judgement, mode: Mode) -> Bump:
    """The smallest bump that announces a change, above 1.0.

    Versions speak to consumers, so what breaks them is a major whatever the mode; what breaks those whom
    the mode protects is one as well.
    """
    if judgement.effect is Effect.POLICY:
        return judgement.bump
    hits = [verdict(judgement.effect, judgement.level, one) for one in (Mode.FORWARD, mode)]
    asked = Bump.MAJOR if Verdict.BREAK in hits else Bump.MINOR if Verdict.WARN in hits else Bump.NONE
    return max(judgement.bump, asked, key=lambda one: one.rank)


# TABLE: which stored type can be read as which other, by table format and engine, with sources.
#
# Rows of types, columns of readers. `Y` read right; `L` lossy, or depends on the values; `N` not, or not
# right; `?` no source found, which counts as no; `=` the reader does not tell the two types apart. Unlisted
# is `N`.

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

# Format -> the column that its own rules give, whoever reads. Formats of files without such rules are
# read as each engine likes, and an engine without a column there is "no".
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
# (engine, from, to) where an engine's version is known to give wrong results silently.
WRONG: Mapping[tuple[str, str, str], str] = {
    ("trino-451", "int", "decimal-fits"): "trino#21556: 0.05 for 5 before Trino 452",
    ("trino-451", "bigint", "decimal-fits"): "trino#21556: 0.05 for 5 before Trino 452",
}

# Order of width, for telling a narrowing from another exchange of types.
_WIDTH = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "float": 5, "double": 6}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


@dataclass(frozen=True, slots=True)
class Readable:
    """Whether old data can be read as the new type; where not, which reader fails and by which source."""

    yes: bool
    reader: str = ""
    source: str = ""


def readable(before: DataType, after: DataType, format_: str, engines: tuple[str, ...]) -> Readable:
    """Whether every declared engine reads data of one type as another, in files of this format."""
    key = (_name(before), _target(before, after))
    cells = MATRIX.get(key, {})
    own = FORMAT_COLUMN.get(format_)
    if own is not None:
        return _cell(cells.get(own, "N"), format_, SOURCES[own])
    for engine in engines:
        column = ENGINE_COLUMN.get(engine)
        wrong = WRONG.get((engine, *key))
        if column is None or wrong is not None or format_ not in ("parquet-name", "parquet-index"):
            return Readable(False, engine, wrong or f"no source for {engine} on {format_}")
        found = _cell(cells.get(column, "N"), engine, SOURCES[column])
        if not found.yes:
            return found
    return Readable(bool(engines))


def _cell(cell: str, reader: str, source: str) -> Readable:
    return Readable(True) if cell in ("Y", "=") else Readable(False, reader, source)


def _name(type_: DataType) -> str:
    return "string" if type_.name in ("varchar", "char") else type_.name


def _target(before: DataType, after: DataType) -> str:
    """The column's row for a decimal depends on whether all digits have room."""
    if after.name != "decimal" or len(after.numbers) != 2:
        return _name(after)
    precision, scale = after.numbers
    if before.name in _DIGITS:
        return "decimal-fits" if precision - scale >= _DIGITS[before.name] else "decimal"
    if before.name == "decimal" and len(before.numbers) == 2:
        more, finer = precision - before.numbers[0], scale - before.numbers[1]
        if finer == 0 and more > 0:
            return "decimal-wider"
        if finer > 0 and more >= finer:
            return "decimal-scaled"
    return "decimal"


def narrows(before: DataType, after: DataType) -> bool:
    """Whether the new type holds fewer values of the same sort than the old one."""
    if before.name == after.name == "decimal" and len(before.numbers) == len(after.numbers) == 2:
        whole = (before.numbers[0] - before.numbers[1], after.numbers[0] - after.numbers[1])
        return whole[1] <= whole[0] and after.numbers[1] <= before.numbers[1] and before != after
    first, second = _WIDTH.get(before.name), _WIDTH.get(after.name)
    if first is not None and second is not None:
        return second < first
    if before.name == "decimal" and after.name in _DIGITS:
        return _target(after, before) == "decimal-fits"
    return False


# What a judgement looks at besides the change: formats, engines, dates; all of it handed in.

DEFAULT_ENGINES = ("athena", "spark", "redshift-spectrum")
NOTICE_DAYS = 90

# Server types whose format needs no saying.
_SERVER_FORMATS = {"iceberg": "iceberg", "databricks": "delta"}
_ENGINE = re.compile(r"([a-z-]*[a-z])[ _-]?(<=|>=|<|>|=|==)?[ v]?(\d+)?(?:\.\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Setting:
    """Formats by object name, engines, the date, and since when a column is deprecated.

    `format` stands for every object when it is given. `deprecated_since` has dates by element path, from
    the history; a custom property `deprecatedSince` says the same in the file.
    """

    today: date
    engines: tuple[str, ...] = DEFAULT_ENGINES
    format: str | None = None
    formats: Mapping[str, str] = field(default_factory=dict)
    notice_days: int = NOTICE_DAYS
    deprecated_since: Mapping[str, date] = field(default_factory=dict)
    before: FlatElement | None = None

    def format_of(self, object_name: str) -> str:
        """The row of the format table by which an object's data is read."""
        return profile(self.format or self.formats.get(object_name, ""))

    def structure_of(self, element: FlatElement) -> Structure:
        """How the format of an element's object finds columns, or fields of a struct."""
        return structure(self.format_of(element.object_name), self.engines, nested=element.nested)


def formats_of(contract: Contract) -> dict[str, str]:
    """The format of each object by its name in the data: its `dataset` terms, else what its server says."""
    server = next((server for server in contract.servers if server.get("format")), None)
    kind = next((_SERVER_FORMATS[one.type] for one in contract.servers if one.type in _SERVER_FORMATS), "")
    usual = (server.get("format") if server else None) or kind
    return {one.column: dataset(one)[0].format or usual for one in contract.objects}


def engine(text: str) -> str:
    """The engine that a text means: `spark<=3.5` and `spark 3` are `spark-3`, `trino<452` is `trino-451`.

    A version that makes no difference is left out; an unknown engine stands as it is, and nothing is known
    to be readable by it.
    """
    word = text.strip().lower().split(" partitions")[0].removesuffix("-hive").replace(" ", "-")
    match = _ENGINE.fullmatch(word)
    if match is None:
        return word
    name, sign, number = match[1].strip("-"), match[2] or "", int(match[3]) if match[3] else None
    name = {"redshift": "redshift-spectrum", "spectrum": "redshift-spectrum", "emr": "spark"}.get(name, name)
    if name == "spark" and number is not None and (number < 4 or (number == 4 and sign == "<")):
        return "spark-3"
    if name == "trino" and number is not None and (number < 452 or (number == 452 and sign == "<")):
        return "trino-451" if sign in ("<", "<=", "=", "==", "") else name
    return name if name in ENGINE_COLUMN else word


# What it means when columns, their types and the partition change.

# What it means when columns and tables come, go, move or change their name.

_PARTS = ("[]", "{key}", "{}")


def presence(change: Change, setting: Setting) -> Judgement:
    """A column that came, went, or went to another level."""
    if change.action is Motion.MOVED:
        return replace("column-moved", note="No table format moves a column into or out of a struct.")
    if change.action is Motion.ADDED and change.new is not None:
        return _added(change, change.new, setting)
    assert change.old is not None
    return _removed(change, change.old, setting)


def _added(change: Change, new: FlatElement, setting: Setting) -> Judgement:
    if new.column in _PARTS:
        return strengthen("type-declared", Level.INFO)
    row = setting.structure_of(new)
    if change.facts.get("reused"):
        return replace("column-name-reused", note="Another column had this name before.")
    if change.facts.get("middle") and not row.add_middle:
        return replace("column-added-middle", note=f"Columns are found by position ({row.source}).")
    if new.normal("required") is None:
        return neutral("column-added-optional")
    if new.normal("customProperties.default") is None:
        return strengthen("column-added-required")
    if row.defaults:
        return neutral("column-added-defaulted")
    format_ = setting.format_of(new.object_name)
    return strengthen("column-added-required", note=f"{format_} does not fill a default into old rows.")


def _removed(change: Change, old: FlatElement, setting: Setting) -> Judgement:
    if old.column in _PARTS:
        return weaken("type-undeclared", Level.WARN)
    row = setting.structure_of(old)
    hint = change.facts.get("hint")
    note = f"It looks like a rename to {hint!r}: give both the same id." if hint else ""
    rule = "column-removed"
    since = _deprecated_since(old, setting)
    if since is not None:
        waited = since + timedelta(days=setting.notice_days) <= setting.today
        rule = "column-removed-deprecated" if waited else rule
        kept = "at least" if waited else "less than"
        note = f"It is deprecated since {since}, {kept} {setting.notice_days} days ago."
    if row.remove:
        return weaken(rule, note=note)
    return replace(rule, note=f"{note} Columns behind it shift ({row.source}).".strip())


def _deprecated_since(old: FlatElement, setting: Setting) -> date | None:
    if old.normal("deprecated") is None:
        return None
    shown = old.shown("customProperties.deprecatedSince")
    written = date_of(str(shown)) if shown is not None else None
    return setting.deprecated_since.get(old.path, written)


def renamed(change: Change, setting: Setting) -> Judgement:
    """A column under another name in the data."""
    if str(change.before).lower() == str(change.after).lower():
        return replace("column-case-changed", Level.WARN)
    assert change.old is not None
    row = setting.structure_of(change.old)
    if row.rename:
        return weaken("column-renamed", note="Old queries name the old column; its data stays readable.")
    return replace("column-renamed", note=f"Old files are read as null ({row.source}).")


def ordered(change: Change, setting: Setting) -> Judgement:
    """The same columns in another order."""
    element = change.new or change.old
    assert element is not None
    children = element.parts[0] if element.parts else element
    row = setting.structure_of(children)
    if row.reorder:
        return neutral("column-reordered")
    return replace("column-reordered", note=f"Columns are found by position ({row.source}).")


def table_presence(change: Change, _: Setting) -> Judgement:
    """A table that came or went."""
    if change.action is Motion.ADDED:
        return neutral("table-added")
    hint = change.facts.get("hint")
    return weaken("table-removed", note=f"It looks like a rename to {hint!r}." if hint else "")


def table_renamed(change: Change, _: Setting) -> Judgement:
    """A table under another name in the catalog."""
    same = str(change.before).lower() == str(change.after).lower()
    return replace("table-renamed", Level.WARN if same else Level.ERROR)


# What a change of a column's type means to those who read it and to files that are already written.

_TEXT = frozenset({"string", "varchar", "char"})
_HARM = {Effect.NEUTRAL: 0, Effect.STRENGTHEN: 1, Effect.WEAKEN: 1, Effect.REPLACE: 2, Effect.POLICY: 2}


def physical(change: Change, setting: Setting) -> Judgement:
    """A change of physicalType, by the format's and the engines' own rules."""
    before, after = change.before, change.after
    if change.action is Motion.ADDED:
        return strengthen("type-declared", Level.INFO)
    if change.action is Motion.REMOVED:
        return weaken("type-undeclared", Level.WARN)
    if not isinstance(before, Physical) or not isinstance(after, Physical):
        return replace("type-changed")
    if before.type is None or after.type is None:
        return _elsewhere(change, setting, replace("type-changed", note="dq does not know this type."))
    if before.type == after.type:
        return neutral("type-alias", Bump.PATCH)
    element = change.old or change.new
    format_ = setting.format_of(element.object_name if element else "")
    return _elsewhere(change, setting, _types(before.type, after.type, format_, setting))


def _types(before: DataType, after: DataType, format_: str, setting: Setting) -> Judgement:
    if before == after:
        return neutral("type-alias", Bump.PATCH)
    if before.name == after.name and before.parts:
        return _nested(before, after, format_, setting)
    if before.name in _TEXT and after.name in _TEXT:
        return _length(before, after)
    if narrows(before, after):
        return replace("type-narrowed", note=f"{before} does not fit into {after}.")
    found = readable(before, after, format_, setting.engines)
    if not found.yes:
        note = f"{found.reader or format_} cannot read {before} as {after} ({found.source})."
        return replace("type-changed", note=note)._replace(engine=found.reader)
    # A table format hands every reader the current type. Where files speak for themselves, a reader that
    # still expects the old type meets files that are wider than it can take.
    shared = STRUCTURES[format_].shared if format_ in STRUCTURES else False
    return weaken("type-widened", Level.WARN if shared else Level.ERROR)


def _length(before: DataType, after: DataType) -> Judgement:
    first, second = (one.numbers[0] if one.numbers else math.inf for one in (before, after))
    if first == second:
        return replace("type-changed", note="char pads its values, varchar does not.")
    if second > first:
        return weaken("type-length-increased", Level.WARN)
    return strengthen("type-length-decreased")


def _nested(before: DataType, after: DataType, format_: str, setting: Setting) -> Judgement:
    """The worst of the parts. The key of a map may not change at all."""
    if before.name == "map" and before.parts[0] != after.parts[0]:
        return replace("type-changed", note="The key of a map cannot change its type in any format.")
    parts = zip(before.parts, after.parts, strict=False)
    found = [_types(first, second, format_, setting) for first, second in parts if first != second]
    if before.name == "struct":
        found += _fields(before, after)
    return max(found, key=lambda one: (_HARM[one.effect], one.level is Level.ERROR))


def _fields(before: DataType, after: DataType) -> list[Judgement]:
    shared = min(len(before.names), len(after.names))
    if before.names[:shared] != after.names[:shared]:
        return [replace("type-changed", note="Fields of the struct changed their name or place.")]
    if len(after.names) > shared:
        return [neutral("column-added-optional")]
    return [weaken("column-removed")] if len(before.names) > shared else [neutral("type-alias", Bump.PATCH)]


def _elsewhere(change: Change, setting: Setting, judged: Judgement) -> Judgement:
    """The same judgement where the column's place makes it another one: a partition key, a reused name."""
    if judged.effect is Effect.NEUTRAL or judged.rule.startswith("type-length"):
        return judged
    if is_partition_key(change, setting):
        return replace("partition-type-changed", note=judged.note)
    if reused(change):
        return replace("column-name-reused", note="Another column had this name before: its id differs.")
    return judged


def reused(change: Change) -> bool:
    """Whether the two columns share a name but not their ids."""
    if change.old is None or change.new is None:
        return False
    first, second = dict(change.old.keys).get("id"), dict(change.new.keys).get("id")
    return bool(first) and bool(second) and first != second


def is_partition_key(change: Change, setting: Setting) -> bool:
    """Whether the changed column is one that the data was laid out by."""
    if setting.before is None or change.old is None:
        return False
    for one in setting.before.parts:
        partition = one.normal("partition")
        if one.object_name == change.old.object_name and isinstance(partition, tuple):
            path = change.old.path.removeprefix(f"{one.column}.")
            return any(path == name for name, _ in partition)
    return False


def logical(change: Change, setting: Setting) -> Judgement:
    """A change of logicalType; where physical types stand on both sides, they say what can be read."""
    if change.action is Motion.ADDED:
        return strengthen("type-declared", Level.INFO)
    if change.action is Motion.REMOVED:
        return weaken("type-undeclared", Level.WARN)
    pair = (change.before, change.after)
    if pair == ("integer", "number"):
        return _elsewhere(change, setting, weaken("type-generalized"))
    if pair == ("number", "integer"):
        return _elsewhere(change, setting, strengthen("type-specialized"))
    if (pair == ("date", "timestamp") or change.after == "string") and _carried(change, setting):
        return _elsewhere(change, setting, weaken("type-generalized"))
    return _elsewhere(change, setting, replace("type-changed"))


def _carried(change: Change, setting: Setting) -> bool:
    """Whether the physical types on both sides make the exchange readable."""
    before = change.old.normal("physicalType") if change.old else None
    after = change.new.normal("physicalType") if change.new else None
    if not isinstance(before, Physical) or not isinstance(after, Physical):
        return False
    if before.type is None or after.type is None or change.old is None:
        return False
    if before.type == after.type:
        return True
    format_ = setting.format_of(change.old.object_name)
    return readable(before.type, after.type, format_, setting.engines).yes


# What a change of the partition means: a new layout for files in folders, little for hidden partitions.

_PART_OF_TIME = re.compile(
    r"(^|_)(year|month|week|day|date|dt|ds|hour|minute|hh|mm|yyyy|dd)s?(_|$)", re.IGNORECASE
)

Keys = tuple[tuple[str, str], ...]


def partition(change: Change, setting: Setting) -> Judgement:
    """The keys by which the data is laid out, each with its transform where it has one."""
    rule = _rule(_keys(change.before), _keys(change.after))
    row = STRUCTURES.get(setting.format_of(change.object_name))
    kind = row.partition if row else ""
    if kind == HIDDEN or (kind == HIDDEN_V1 and rule == "partition-added"):
        return neutral(rule, note="Old and new partitions coexist, and queries do not name them.")
    if kind == HIDDEN_V1:
        return replace(rule, Level.WARN, "Iceberg v1 should not reorder or drop partition fields.")
    return replace(rule, note="Paths and filters change, and the table is laid out anew.")


def _keys(value: object) -> Keys:
    return value if isinstance(value, tuple) else ()


def _rule(before: Keys, after: Keys) -> str:
    first, second = [name for name, _ in before], [name for name, _ in after]
    came, went = [one for one in second if one not in first], [one for one in first if one not in second]
    if came or went:
        # Days that are split into hours are the same time at another grain, not a new dimension.
        finer = all(_PART_OF_TIME.search(one) for one in (*came, *went))
        timed = any(_PART_OF_TIME.search(one) for one in first) and any(
            _PART_OF_TIME.search(one) for one in second
        )
        if finer and timed:
            return "partition-granularity-changed"
        return "partition-removed" if went else "partition-added"
    return "partition-reordered" if first != second else "partition-granularity-changed"


def grain(change: Change, setting: Setting) -> Judgement:
    """The format of a partition column says how fine the partitions are."""
    row = STRUCTURES.get(setting.format_of(change.object_name))
    rule = "partition-granularity-changed"
    return neutral(rule) if row and row.partition == HIDDEN else replace(rule)
