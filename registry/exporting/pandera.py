"""pandera: the source of a Python module with a schema for each object's frames of Spark.

It needs pandera and pyspark and not dq. Every text of a contract stands in it as a literal of plain ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.escaping import python
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import commented
from dq.registry.exporting import Exported, ExportKind, Losses, columns, unsaid, words

# A comment in the first two lines could name another encoding, in which the rest reads otherwise.
_HEAD = '''\
"""Schemas of pandera for frames of Spark, by the names of their objects."""

'''
_IMPORTS = '''\

import pandera.pyspark as pa
from pyspark.sql import types as T


def _typed(name, kind):
    """A check that a column has a type, whichever of its parts may be NULL."""

    def same(frame):
        return name not in frame.columns or frame.schema[name].dataType.simpleString() == kind

    return pa.Check(same, name="type", error=f"{name!r} is no {kind}")


SCHEMAS = {
'''

# Type -> pandera's word for it. The others it knows in part or not at all; its two timestamps are one.
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
_WHOLE = ("tinyint", "smallint", "int", "bigint")
# Types of values whose like Spark can look up in a list.
_LISTED = {"string": str, **dict.fromkeys(_TEXTS, str), **dict.fromkeys(_WHOLE, int)}


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """The module: `SCHEMAS["orders"].validate(frame)`."""
    losses = Losses()
    body = "".join(line + "\n" for one in objects for line in _schema(one, losses))
    lost = [*losses.all(), *unsaid(contract, objects, SAYS)]
    head = [f"Made by 'dq export' from {contract.id} {contract.version}", *lost]
    comments = "".join(f"# {commented(line)}.\n" for line in head)
    return Exported(f"{_HEAD}{comments}{_IMPORTS}{body}}}\n", losses.all())


def _schema(one: SchemaObject, losses: Losses) -> Iterator[str]:
    typed = []
    yield f"    {python(one.name)}: pa.DataFrameSchema("
    yield "        columns={"
    for prop, kind in columns(one):
        if kind.name in _CHECKED:
            typed.append(f"            _typed({python(prop.column)}, {python(str(_plain(kind)))}),")
        yield from _column(one, prop, kind, losses)
    yield "        },"
    if typed:
        yield from ("        checks=[", *typed, "        ],")
    keys = [prop.column for prop in one.primary_key()]
    if keys and all(map(_askable, keys)):
        yield f"        unique=[{', '.join(map(python, keys))}],"
    elif keys:
        losses.leave(one.name, "the primary key")
    yield f"        name={python(one.name)},"
    if one.description:
        yield f"        description={python(one.description)},"
    yield "    ),"


def _column(one: SchemaObject, prop: Property, kind: DataType, losses: Losses) -> Iterator[str]:
    where = f"{one.name}.{prop.column}"
    written = "None" if kind.name in _UNTYPED else _TYPES.get(kind.name, "None")
    if kind.name == "decimal":
        written = f"T.DecimalType({', '.join(map(str, kind.numbers))})"
    if kind.name in _UNTYPED:
        losses.note(where, kind, "any type")
    elif str(_plain(kind)) != str(kind):
        losses.note(where, kind, str(_plain(kind)))
    required = bool(prop.required or prop.primary_key)
    if required and not _askable(prop.column):
        losses.leave(where, "required")
    said = [written]
    if prop.enum:
        values = [each.value for each in prop.enum]
        wanted = _LISTED.get(kind.name)
        if wanted and _askable(prop.column) and all(type(each) is wanted for each in values):
            said.append(f"pa.Check.isin([{', '.join(map(python, values))}])")
        else:
            losses.leave(where, "enum")
    said.append(f"nullable={not (required and _askable(prop.column))}")
    if prop.business_name:
        said.append(f"title={python(prop.business_name)}")
    if prop.description:
        said.append(f"description={python(prop.description)}")
    yield f"            {python(prop.column)}: pa.Column({', '.join(said)}),"


def _askable(name: str) -> bool:
    """Whether pandera finds a column by its name, which it gives to Spark as it is: a point leads inside."""
    return not set(name) & {".", "`"}


def _plain(kind: DataType) -> DataType:
    """The type in a frame, where texts have no length."""
    if kind.name in _TEXTS:
        return DataType("string")
    return DataType(kind.name, kind.numbers, tuple(map(_plain, kind.parts)), kind.names)


SAYS = words("description businessName required primaryKey enum", objects="description")
KIND = ExportKind("pandera", "a module with schemas of pandera for Spark", write, SAYS)
