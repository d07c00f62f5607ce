"""SQL: a `CREATE TABLE` of Spark's for each object."""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.access.data_location import formats
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.sql.text import name as quoted
from dq.contracts.types import DataType
from dq.contracts.yaml.writing import commented
from dq.registry.exporting.exported import Exported, ExportKind, Losses, columns
from dq.registry.exporting.unsaid import words


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """The statements. A primary key is a comment: Spark 3.5 and 4.0 have no word for it."""
    losses = Losses()
    return Exported("\n".join(_statement(contract, one, losses) for one in objects), losses.all())


def _statement(contract: Contract, one: SchemaObject, losses: Losses) -> str:
    said = [
        f"  {quoted(prop.column)} {_type(kind)}"
        + (" NOT NULL" if prop.required else "")
        + _comment(prop.column, prop.description, losses)
        for prop, kind in columns(one)
    ]
    keys = ", ".join(quoted(prop.column) for prop in one.primary_key())
    if keys:
        losses.note(one.name, "the primary key", "a comment")
    lines = [f"-- PRIMARY KEY ({keys})" if keys else "", f"CREATE TABLE {quoted(one.column)} ("]
    lines += [",\n".join(said), ")", *_tail(contract, one, losses)]
    return "\n".join(line for line in lines if line) + ";\n"


def _tail(contract: Contract, one: SchemaObject, losses: Losses) -> Iterator[str]:
    found = formats(contract, one)
    if len(found) == 1:
        yield f"USING {next(iter(found))}"
    partitions = ", ".join(quoted(prop.column) for prop in one.partition_keys())
    if partitions:
        yield f"PARTITIONED BY ({partitions})"
    comment = _comment(one.name, one.description, losses)
    if comment:
        yield comment.lstrip()


def _comment(where: str, value: str | None, losses: Losses) -> str:
    """A comment with a literal as Spark reads it by default, in one line: catalogs refuse line ends."""
    if not value:
        return ""
    line = commented(value)
    if line != value:
        losses.note(where, "a description of several lines, or with signs that are not shown,", "one line")
    escaped = line.replace("\\", "\\\\").replace("'", "\\'")
    return f" COMMENT '{escaped}'"


def _type(kind: DataType) -> str:
    if kind.name == "struct":
        fields = zip(kind.names, kind.parts, strict=True)
        return f"STRUCT<{', '.join(f'{quoted(field)}: {_type(part)}' for field, part in fields)}>"
    if kind.parts:
        return f"{kind.name.upper()}<{', '.join(map(_type, kind.parts))}>"
    return str(kind).upper()


SAYS = words("description required primaryKey partitioned", objects="description")
KIND = ExportKind("sql", "CREATE TABLE statements of Spark SQL", write, SAYS, comment="--")
