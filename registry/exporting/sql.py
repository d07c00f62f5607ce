"""SQL: a `CREATE TABLE` of Spark's for each object."""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.access.data_location import formats
from dq.contracts.escaping import spark_literal, spark_name_in_file
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import commented
from dq.registry.exporting import Exported, ExportKind, Losses, columns, parts, words


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """The statements. A primary key is a comment: Spark 3.5 and 4.0 have no word for it.

    Raises UsageError for a name that is evaluated in spite of its quotes.
    """
    losses = Losses()
    return Exported("\n".join(_statement(contract, one, losses) for one in objects), losses.all())


def _statement(contract: Contract, one: SchemaObject, losses: Losses) -> str:
    said = [
        f"  {spark_name_in_file(prop.column)} {_type(prop.column, prop, kind, losses)}"
        + (" NOT NULL" if prop.required else "")
        + _comment(prop.column, prop.description, losses)
        for prop, kind in columns(one)
    ]
    keys = ", ".join(spark_name_in_file(prop.column) for prop in one.primary_key())
    if keys:
        losses.note(one.name, "the primary key", "a comment")
    lines = [f"-- PRIMARY KEY ({keys})" if keys else "", f"CREATE TABLE {spark_name_in_file(one.column)} ("]
    lines += [",\n".join(said), ")", *_tail(contract, one, losses)]
    return "\n".join(line for line in lines if line) + ";\n"


def _tail(contract: Contract, one: SchemaObject, losses: Losses) -> Iterator[str]:
    found = formats(contract, one)
    if len(found) == 1:
        yield f"USING {next(iter(found))}"
    partitions = ", ".join(spark_name_in_file(prop.column) for prop in one.partition_keys())
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
    return f" COMMENT {spark_literal(line)}"


def _type(where: str, prop: Property | None, kind: DataType, losses: Losses) -> str:
    inside = parts(prop, kind)
    if kind.name == "struct":
        fields = [
            f"{spark_name_in_file(name)}: {_type(f'{where}.{name}', one, part, losses)}"
            + (" NOT NULL" if one and one.required else "")
            + _comment(f"{where}.{name}", one.description if one else None, losses)
            for name, (one, part) in zip(kind.names, inside, strict=True)
        ]
        return f"STRUCT<{', '.join(fields)}>"
    if kind.parts:
        signs = {"array": ("[]",), "map": (".^", ".*")}[kind.name]
        types = [_type(f"{where}{sign}", *part, losses) for sign, part in zip(signs, inside, strict=True)]
        return f"{kind.name.upper()}<{', '.join(types)}>"
    return str(kind).upper()


SAYS = words("description required primaryKey partitioned", "description required", objects="description")
KIND = ExportKind("sql", "CREATE TABLE statements of Spark SQL", write, SAYS, comment="--")
