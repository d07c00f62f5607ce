"""What `CREATE TABLE` statements declare, in any dialect that sqlglot reads."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.contracts.types import DataType, NotAType, parse


class NotDdl(ValueError):
    """The text is no SQL, or none of this dialect; the message says where."""


@dataclass(frozen=True, slots=True)
class DdlColumn:
    """A column. `type` is None where Spark has no such type; `written` is the type as it stands there."""

    name: str
    type: DataType | None
    written: str
    comment: str
    required: bool


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


def data_type(text: str, dialect: str) -> DataType | None:
    """The type of Spark that a type of this dialect is; None where Spark has none, or it is no type."""
    try:
        with _quiet():
            made = exp.DataType.build(text, dialect=dialect or None, udt=True)
            return parse(made.sql(dialect="spark"))
    except (SqlglotError, RecursionError, NotAType):
        return None


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
    return DdlTable(table.db, table.name, tuple(columns), tuple(keys), tuple(partitions), **said,
                    unsaid=tuple(unsaid))  # fmt: skip


def _column(part: exp.ColumnDef, dialect: str) -> tuple[DdlColumn, bool, list[str]]:
    kind: exp.DataType | None = part.args.get("kind")
    written = kind.sql(dialect=dialect) if kind is not None else ""
    made: DataType | None = None
    if kind is not None:
        try:
            made = parse(kind.sql(dialect="spark"))
        except NotAType:
            made = None
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
    return DdlColumn(part.name, made, written, comment, required), is_key, unsaid
