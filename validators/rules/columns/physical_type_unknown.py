"""Unknown physicalType: not a type of Spark, Hive or Glue.

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

How to fix: Write the type in Spark SQL syntax. Contracts without a lake server may use other types.
"""

import re

from dq.contracts import types
from dq.contracts.model import Property
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, is_on_lake, nearest, violation

# Types of other engines -> Spark SQL types.
_ALIASES = {
    "int64": "bigint", "int32": "int", "int16": "smallint", "int8": "tinyint", "number": "decimal(18, 2)",
    "varchar2": "string", "nvarchar": "string", "float64": "double", "float32": "float", "str": "string",
    "datetime": "timestamp", "timestamptz": "timestamp", "uuid": "string", "json": "string",
    "bytes": "binary",
}  # fmt: skip

# Names of nested types -> an example in Spark SQL syntax.
_NESTED = {
    **dict.fromkeys(("object", "struct", "record", "row"), "struct<name:string,amount:bigint>"),
    **dict.fromkeys(("array", "list"), "array<struct<name:string,amount:bigint>>"),
    **dict.fromkeys(("map", "dict"), "map<string,bigint>"),
}
_LONGEST = 100

# A type of databases, not of lakes; the checker reports that it is not evaluated.
_TIME = re.compile(r"(?i)\s*time(tz)?\s*(\(\d\))?(\s+with(out)? time zone)?\s*")


def check(contract: Contract, context: Context) -> Violations:
    if not is_on_lake(contract):
        return
    for prop in context.walk.properties:
        physical_type = prop.physical_type
        if physical_type is None or (prop.logical_type == "time" and _TIME.fullmatch(physical_type)):
            continue
        try:
            types.parse(physical_type)
        except types.NotAType as error:
            name = re.split(r"[^a-z0-9_]", physical_type.strip().lower())[0]
            similar = _ALIASES.get(name) or nearest(name, types.CANONICAL)
            is_known = name in types.CANONICAL
            hint = f"Write {similar!r}." if similar and not is_known else "Write it in Spark SQL syntax."
            message = f"physicalType {physical_type!r}: {error}."
            yield violation(prop, "physicalType", message, _nested_hint(prop, name) or hint, kind=str(error))


def _nested_hint(prop: Property, name: str) -> str | None:
    """Return a hint for a struct, array or map, with its declared parts if the contract has any."""
    example = _NESTED.get(name)
    if example is None:
        return None
    if prop.properties or prop.items is not None or prop.map is not None:
        declared = types.catalog_type(prop.model_copy(update={"physical_type": None}))
        if declared.parts and len(str(declared)) <= _LONGEST:
            return f"Write '{declared}' to match its nested elements, or omit physicalType."
    return f"Include the nested types, e.g. '{example}'."


RULE = Rule("physical-type-unknown", Severity.WARNING, __doc__, check, after=("decimal-without-precision",))
