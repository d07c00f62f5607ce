"""pandera: the source of a Python module with a schema for the Spark frames of each object.

The module needs pandera and pyspark, but not dq. All texts of the contract are ASCII literals.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.escaping import python
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.contracts.yaml.portable import commented
from dq.registry.exporting import Exported, ExportKind, LossReport, columns, supported_keys, unsupported_keys

# The docstring comes first, because a comment in the first two lines could set another encoding.
_HEAD = '''\
"""pandera schemas for Spark DataFrames, by object name."""

'''
_IMPORTS = '''\

import pandera.pyspark as pa
from pyspark.sql import types as T


def _typed(name, kind):
    """Check that a column has a type, whichever of its parts may be NULL."""

    def same(frame):
        return name not in frame.columns or frame.schema[name].dataType.simpleString() == kind

    return pa.Check(same, name="type", error=f"{name!r} is not a {kind}")


SCHEMAS = {
'''

# Type -> pandera's type. pandera supports others partly or not at all, and both timestamps are one type.
_TYPES = {
    **dict.fromkeys(("string", "char", "varchar"), "T.StringType()"),
    "boolean": "T.BooleanType()",
    "tinyint": "T.ByteType()",
    "smallint": "T.ShortType()",
    "int": "T.IntegerType()",
    "bigint": "T.LongType()",
    "float": "T.FloatType()",
    "double": "T.DoubleType()",
    "date": "T.DateType()",
    "binary": "T.BinaryType()",
}
_CHECKED = ("array", "map", "struct", "timestamp", "timestamp_ntz", "variant")
_TEXTS = ("char", "varchar")
_UNTYPED = ("interval",)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Types whose values `isin` can compare in Spark.
_LISTED = {"string": str, **dict.fromkeys(_TEXTS, str), **dict.fromkeys(_INTEGERS, int)}


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """Return the module, used as `SCHEMAS["orders"].validate(frame)`."""
    losses = LossReport()
    body = "".join(line + "\n" for schema_object in objects for line in _schema(schema_object, losses))
    unsupported = [*losses.all(), *unsupported_keys(contract, objects, SUPPORTED_KEYS)]
    head = [f"Made by 'dq export' from {contract.id} {contract.version}", *unsupported]
    comments = "".join(f"# {commented(line)}.\n" for line in head)
    return Exported(f"{_HEAD}{comments}{_IMPORTS}{body}}}\n", losses.all())


def _schema(schema_object: SchemaObject, losses: LossReport) -> Iterator[str]:
    """Yield the lines of the object's entry in the dict of pandera schemas."""
    typed = []
    yield f"    {python(schema_object.name)}: pa.DataFrameSchema("
    yield "        columns={"
    for prop, kind in columns(schema_object):
        if kind.name in _CHECKED:
            typed.append(f"            _typed({python(prop.column)}, {python(str(_plain(kind)))}),")
        yield from _column(schema_object, prop, kind, losses)
    yield "        },"
    if typed:
        yield from ("        checks=[", *typed, "        ],")
    keys = [prop.column for prop in schema_object.primary_key()]
    if keys and all(map(_is_addressable, keys)):
        yield f"        unique=[{', '.join(map(python, keys))}],"
    elif keys:
        losses.leave(schema_object.name, "the primary key")
    yield f"        name={python(schema_object.name)},"
    if schema_object.description:
        yield f"        description={python(schema_object.description)},"
    yield "    ),"


def _column(schema_object: SchemaObject, prop: Property, kind: DataType, losses: LossReport) -> Iterator[str]:
    path = f"{schema_object.name}.{prop.column}"
    data_type = "None" if kind.name in _UNTYPED else _TYPES.get(kind.name, "None")
    if kind.name == "decimal":
        data_type = f"T.DecimalType({', '.join(map(str, kind.numbers))})"
    if kind.name in _UNTYPED:
        losses.note(path, kind, "any type")
    elif str(_plain(kind)) != str(kind):
        losses.note(path, kind, str(_plain(kind)))
    required = bool(prop.required or prop.primary_key)
    if required and not _is_addressable(prop.column):
        losses.leave(path, "required")
    arguments = [data_type]
    if prop.enum:
        values = [entry.value for entry in prop.enum]
        value_type = _LISTED.get(kind.name)
        if value_type and _is_addressable(prop.column) and all(type(value) is value_type for value in values):
            arguments.append(f"pa.Check.isin([{', '.join(map(python, values))}])")
        else:
            losses.leave(path, "enum")
    arguments.append(f"nullable={not (required and _is_addressable(prop.column))}")
    if prop.business_name:
        arguments.append(f"title={python(prop.business_name)}")
    if prop.description:
        arguments.append(f"description={python(prop.description)}")
    yield f"            {python(prop.column)}: pa.Column({', '.join(arguments)}),"


def _is_addressable(name: str) -> bool:
    """Return True if pandera can address the column: Spark reads a dot in a name as access to a field."""
    return not set(name) & {".", "`"}


def _plain(kind: DataType) -> DataType:
    """Return the type in a frame, where strings have no length."""
    if kind.name in _TEXTS:
        return DataType("string")
    return DataType(kind.name, kind.numbers, tuple(map(_plain, kind.parts)), kind.names)


SUPPORTED_KEYS = supported_keys("description businessName required primaryKey enum", objects="description")
KIND = ExportKind("pandera", "a module with pandera schemas for Spark", write, SUPPORTED_KEYS)
