"""SQL: a `CREATE TABLE` statement of Spark SQL for each object."""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.access.data_location import data_formats
from dq.contracts.escaping import spark_literal, spark_name_in_file
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.contracts.yaml.portable import commented
from dq.registry.exporting import Exported, ExportKind, LossReport, columns, parts, supported_keys


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """Return the statements. A primary key is a comment: Spark 3.5 and 4.0 have no syntax for it.

    Raises UsageError for a name that is evaluated in spite of its quotes.
    """
    losses = LossReport()
    return Exported(
        "\n".join(_statement(contract, schema_object, losses) for schema_object in objects), losses.all()
    )


def _statement(contract: Contract, schema_object: SchemaObject, losses: LossReport) -> str:
    column_lines = [
        f"  {spark_name_in_file(prop.column)} {_type(prop.column, prop, kind, losses)}"
        + (" NOT NULL" if prop.required else "")
        + _comment(prop.column, prop.description, losses)
        for prop, kind in columns(schema_object)
    ]
    keys = ", ".join(spark_name_in_file(prop.column) for prop in schema_object.primary_key())
    if keys:
        losses.note(schema_object.name, "the primary key", "a comment")
    lines = [
        f"-- PRIMARY KEY ({keys})" if keys else "",
        f"CREATE TABLE {spark_name_in_file(schema_object.column)} (",
    ]
    lines += [",\n".join(column_lines), ")", *_tail(contract, schema_object, losses)]
    return "\n".join(line for line in lines if line) + ";\n"


def _tail(contract: Contract, schema_object: SchemaObject, losses: LossReport) -> Iterator[str]:
    table_formats = data_formats(contract, schema_object)
    if len(table_formats) == 1:
        yield f"USING {next(iter(table_formats))}"
    partitions = ", ".join(spark_name_in_file(prop.column) for prop in schema_object.partition_keys())
    if partitions:
        yield f"PARTITIONED BY ({partitions})"
    comment = _comment(schema_object.name, schema_object.description, losses)
    if comment:
        yield comment.lstrip()


def _comment(path: str, value: str | None, losses: LossReport) -> str:
    """Return a COMMENT clause with a default Spark literal, in one line: catalogs reject line breaks."""
    if not value:
        return ""
    line = commented(value)
    if line != value:
        losses.note(path, "a description with several lines or invisible characters", "one line")
    return f" COMMENT {spark_literal(line)}"


def _type(path: str, prop: Property | None, kind: DataType, losses: LossReport) -> str:
    children = parts(prop, kind)
    if kind.name == "struct":
        fields = [
            f"{spark_name_in_file(name)}: {_type(f'{path}.{name}', inner, part, losses)}"
            + (" NOT NULL" if inner and inner.required else "")
            + _comment(f"{path}.{name}", inner.description if inner else None, losses)
            for name, (inner, part) in zip(kind.names, children, strict=True)
        ]
        return f"STRUCT<{', '.join(fields)}>"
    if kind.parts:
        signs = {"array": ("[]",), "map": (".^", ".*")}[kind.name]
        types = [_type(f"{path}{sign}", *part, losses) for sign, part in zip(signs, children, strict=True)]
        return f"{kind.name.upper()}<{', '.join(types)}>"
    return str(kind).upper()


SUPPORTED_KEYS = supported_keys(
    "description required primaryKey partitioned", "description required", objects="description"
)
KIND = ExportKind("sql", "CREATE TABLE statements of Spark SQL", write, SUPPORTED_KEYS, comment="--")
