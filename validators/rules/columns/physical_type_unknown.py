"""A physicalType is not a type of Spark, Hive or Glue.

Why: The table cannot be created with it, and the type of the column is never checked.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: integer, physicalType: int64}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: integer, physicalType: bigint}

Mend: Write the type as Spark SQL does. Contracts of which no server is a lake may use other types.
"""

import re

from dq.contracts import types
from dq.contracts.model import Property
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, nearest, on_lake

# Types of other engines, as people write them -> ours.
_MEANT = {
    "int64": "bigint", "int32": "int", "int16": "smallint", "int8": "tinyint", "number": "decimal(18, 2)",
    "varchar2": "string", "nvarchar": "string", "float64": "double", "float32": "float", "str": "string",
    "datetime": "timestamp", "timestamptz": "timestamp", "uuid": "string", "json": "string",
    "bytes": "binary",
}  # fmt: skip

# Words for a type that has parts -> how Spark SQL writes one.
_NESTED = {
    **dict.fromkeys(("object", "struct", "record", "row"), "struct<name:string,amount:bigint>"),
    **dict.fromkeys(("array", "list"), "array<struct<name:string,amount:bigint>>"),
    **dict.fromkeys(("map", "dict"), "map<string,bigint>"),
}
_LONGEST = 100

# What databases have and lakes do not; the checker says that it is not tested.
_TIME = re.compile(r"(?i)\s*time(tz)?\s*(\(\d\))?(\s+with(out)? time zone)?\s*")


def check(contract: Contract, context: Context) -> Faults:
    if not on_lake(contract):
        return
    for prop in context.walk.properties:
        written = prop.physical_type
        if written is None or (prop.logical_type == "time" and _TIME.fullmatch(written)):
            continue
        try:
            types.parse(written)
        except types.NotAType as error:
            word = re.split(r"[^a-z0-9_]", written.strip().lower())[0]
            hint = _MEANT.get(word) or nearest(word, types.CANONICAL)
            known = word in types.CANONICAL
            mend = f"Write {hint!r}." if hint and not known else "Write it as Spark SQL does."
            message = f"physicalType {written!r}: {error}."
            yield fault(prop, "physicalType", message, _nested(prop, word) or mend, kind=str(error))


def _nested(prop: Property, word: str) -> str | None:
    """How to write a struct, array or map: with the parts that the contract declares, where it does."""
    example = _NESTED.get(word)
    if example is None:
        return None
    if prop.properties or prop.items is not None or prop.map is not None:
        declared = types.catalog_type(prop.model_copy(update={"physical_type": None}))
        if declared.parts and len(str(declared)) <= _LONGEST:
            return f"Write '{declared}', which its parts make, or leave physicalType out."
    return f"Write it with the types of its parts, e.g. '{example}'."


RULE = Rule("physical-type-unknown", Severity.WARNING, __doc__, check, after=("decimal-without-precision",))
