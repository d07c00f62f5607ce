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
from dq.contracts.shared.spelling import nearest
from dq.validators.facts.lake import on_lake
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

# Types of other engines, as people write them -> ours.
_MEANT = {
    "int64": "bigint", "int32": "int", "int16": "smallint", "int8": "tinyint", "number": "decimal(18, 2)",
    "varchar2": "string", "nvarchar": "string", "float64": "double", "float32": "float", "str": "string",
    "datetime": "timestamp", "timestamptz": "timestamp", "uuid": "string", "json": "string",
    "bytes": "binary",
}  # fmt: skip


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
            yield fault(prop, "physicalType", f"physicalType {written!r}: {error}.", mend)


RULE = Rule("physical-type-unknown", Severity.WARNING, __doc__, check, after=("decimal-without-precision",))
