"""What `CREATE TABLE` statements declare, in any dialect that sqlglot reads."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.contracts.sql.dialects.column_types import column_type
from dq.contracts.types import DataType, NotAType, parse


class NotDdl(ValueError):
    """The text is no SQL, or none of this dialect; the message says where."""


@dataclass(frozen=True, slots=True)
class DdlPart:
    """What is said of a field of a struct."""

    comment: str
    required: bool


@dataclass(frozen=True, slots=True)
class DdlColumn:
    """A column. `type` is None where Spark has no such type; `written` is the type as it stands there.

    `notes` say what is in doubt of the type, `logical` is its logical type where that is not the usual one.
    `inside` is what is said of the parts of a nested type, by their path in the column, such as `city` or
    `lines[].sku`.
    """

    name: str
    type: DataType | None
    written: str
    comment: str
    required: bool
    inside: Mapping[str, DdlPart] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    logical: str = ""


@dataclass(slots=True)
class DialectTypes:
    """Reads types of one dialect; gathers what is in doubt, and what is said of the parts of nested ones."""

    dialect: str
    notes: list[str] = field(default_factory=list)
    inside: dict[str, DdlPart] = field(default_factory=dict)
    logical: str = ""

    def read(self, kind: exp.DataType, path: str = "") -> DataType | None:
        """The type of Spark, None where Spark has none. `path` is where it stands in its column."""
        parts = kind.expressions
        name = kind.this.name if isinstance(kind.this, exp.DataType.Type) else ""
        if name == "STRUCT" and parts and all(isinstance(part, exp.ColumnDef) for part in parts):
            return self._struct(parts, path)
        places = {"ARRAY": ("[]",), "MAP": (".^", ".*"), "LOWCARDINALITY": ("",)}.get(name, ())
        if places and len(places) == len(parts) and all(isinstance(part, exp.DataType) for part in parts):
            inner = [self.read(part, f"{path}{sign}") for part, sign in zip(parts, places, strict=True)]
            known = tuple(part for part in inner if part is not None)
            if len(known) < len(inner):
                return None
            return known[0] if name == "LOWCARDINALITY" else DataType(name.lower(), (), known)
        row = column_type(self.dialect, name, [part.name for part in parts])
        if row is None:
            return _parsed(kind.sql(dialect="spark"))
        if row.note:
            self.notes.append(f"{path.lstrip('.')}: {row.note}" if path else row.note)
        if not path:
            self.logical = row.logical
        return None if row.spark is None else _parsed(row.spark)

    def _struct(self, fields: list[exp.ColumnDef], path: str) -> DataType | None:
        names, parts = [field.name for field in fields], []
        for each in fields:
            below = f"{path}.{each.name}"
            part = self.read(each.args["kind"], below) if each.args.get("kind") is not None else None
            if part is None:
                return None
            parts.append(part)
            described, _, _ = _constraints(each, "spark")
            if described.comment or described.required:
                self.inside[below.lstrip(".")] = described
        if len({name.lower() for name in names}) < len(names):
            return None
        return DataType("struct", (), tuple(parts), tuple(names))


def _parsed(text: str) -> DataType | None:
    try:
        return parse(text)
    except NotAType:
        return None


@dataclass(frozen=True, slots=True)
class DdlTable:
    """A table. `keys` are the primary key's columns, `partitions` the names of the partition keys."""

    database: str
    name: str
    columns: tuple[DdlColumn, ...]
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    comment: str
    location: str
    format: str
    unsaid: tuple[str, ...]


def dialects() -> list[str]:
    """The dialects that can be named."""
    return sorted(name for name in sqlglot.Dialects.__members__.values() if name)


def data_type(text: str, dialect: str) -> tuple[DataType | None, DialectTypes]:
    """The type of Spark that a type of this dialect is, None where Spark has none or it is no type; and
    what is in doubt of it."""
    types = DialectTypes(dialect)
    try:
        with _quiet():
            return types.read(exp.DataType.build(text, dialect=dialect or None, udt=True)), types
    except (SqlglotError, RecursionError):
        return None, types


def tables(text: str, dialect: str) -> tuple[list[DdlTable], list[str]]:
    """Every table that the text creates with its columns, and the beginnings of the statements that create
    one and do not say its columns, or in words that are not understood. Raises NotDdl.
    """
    try:
        with _quiet():
            statements = sqlglot.parse(text, dialect=dialect)
    except (SqlglotError, RecursionError) as error:
        raise NotDdl(str(error).splitlines()[0][:200] if str(error) else "it is nested too deep") from error
    found: list[DdlTable] = []
    unread: list[str] = []
    for one in statements:
        if isinstance(one, exp.Create) and one.kind == "TABLE" and isinstance(one.this, exp.Schema):
            found.append(_table(one, dialect))
        elif isinstance(one, exp.Create | exp.Command):
            with _quiet():
                written = one.sql(dialect=dialect)
            if _CREATES.match(written):
                unread.append(" ".join(written.split())[:80])
    return found, unread


_CREATES = re.compile(
    r"\s*CREATE\s+(OR\s+REPLACE\s+)?((EXTERNAL|FOREIGN|TEMP|TEMPORARY|TRANSIENT|UNLOGGED)\s+)*TABLE\b",
    re.IGNORECASE,
)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what sqlglot writes to the terminal of statements that it does not know: it quotes them."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _table(one: exp.Create, dialect: str) -> DdlTable:
    schema: exp.Schema = one.this
    table = schema.this
    columns, keys, partitions, unsaid = [], [], [], []
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            column, is_key, extra = _column(part, dialect)
            columns.append(column)
            keys += [column.name] if is_key else []
            unsaid += extra
        else:
            found = part.find(exp.PrimaryKey)
            if found is not None:
                keys += [each.name for each in found.expressions]
            else:
                unsaid.append(part.sql(dialect=dialect))
    said = {"comment": "", "location": "", "format": ""}
    for each in one.args["properties"].expressions if one.args.get("properties") else ():
        if isinstance(each, exp.SchemaCommentProperty):
            said["comment"] = each.this.name
        elif isinstance(each, exp.LocationProperty):
            said["location"] = each.this.name
        elif isinstance(each, exp.FileFormatProperty):
            said["format"] = each.this.name.lower() if each.this else ""
        elif isinstance(each, exp.PartitionedByProperty):
            inner = each.this.expressions if isinstance(each.this, exp.Schema | exp.Tuple) else [each.this]
            for key in inner:
                if isinstance(key, exp.ColumnDef):
                    column, _, extra = _column(key, dialect)
                    columns.append(column)
                    unsaid += extra
                elif not isinstance(key, exp.Column | exp.Identifier):
                    unsaid.append(f"PARTITIONED BY {key.sql(dialect=dialect)}")
                    continue
                partitions.append(key.name)
        else:
            unsaid.append(each.sql(dialect=dialect))
    return DdlTable(table.db, table.name, tuple(columns), tuple(keys), tuple(partitions), **said,
                    unsaid=tuple(unsaid))  # fmt: skip


def _column(part: exp.ColumnDef, dialect: str) -> tuple[DdlColumn, bool, list[str]]:
    kind: exp.DataType | None = part.args.get("kind")
    written = kind.sql(dialect=dialect) if kind is not None else ""
    types = DialectTypes(dialect)
    made = types.read(kind) if isinstance(kind, exp.DataType) else None
    said, is_key, unsaid = _constraints(part, dialect)
    column = DdlColumn(
        part.name,
        made,
        written,
        said.comment,
        said.required,
        types.inside,
        tuple(types.notes),
        types.logical,
    )
    return column, is_key, unsaid


def _constraints(part: exp.ColumnDef, dialect: str) -> tuple[DdlPart, bool, list[str]]:
    """What is said of a column or field, whether it is the primary key, and what has no word here."""
    comment, required, is_key, unsaid = "", False, False, []
    for constraint in part.args.get("constraints") or ():
        what = constraint.args.get("kind")
        if isinstance(what, exp.NotNullColumnConstraint):
            required = not what.args.get("allow_null")
        elif isinstance(what, exp.PrimaryKeyColumnConstraint):
            is_key = required = True
        elif isinstance(what, exp.CommentColumnConstraint):
            comment = what.this.name
        else:
            unsaid.append(f"{part.name}: {constraint.sql(dialect=dialect)}")
    return DdlPart(comment, required), is_key, unsaid
