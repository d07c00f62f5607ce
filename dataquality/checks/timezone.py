"""Timestamps are instants, or civil times without a zone, as `timezone` promises.

Why: A civil time that is read as an instant is wrong by hours, and the value does not show it.
Bad: `logicalType: timestamp`, `logicalTypeOptions: {timezone: true}` and a column of `timestamp_ntz`.
Good: A column of `timestamp`; with `timezone: false` one of `timestamp_ntz`.
Nulls: Only types are compared; no row is read. Where the contract has a `physicalType`, that decides, and
where times are texts, their `format` tells whether a zone is written.
How to fix: Write the column with the promised type, or correct `timezone`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.dataquality.clauses.clause import CheckParameters, Clause, PropertyKeys, documented_only, with_test
from dq.dataquality.clauses.kind import AllowedTypes, evaluate_type, property_check, schema_metrics

_TYPES = {True: "timestamp", False: "timestamp_ntz"}
_MEANT = {True: "instants", False: "civil times without a zone"}


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    prop, zoned = keys.property, keys.options.timezone if keys.options else None
    if zoned is None:
        return
    clause = keys.option("timezone", _MEANT[zoned])
    if prop.physical_type:
        yield documented_only(clause, f"physicalType {prop.physical_type} decides it")
    elif prop.logical_type != "timestamp":
        yield documented_only(clause, "times are strings; their format defines whether they have a zone")
    else:
        allowed = f"{{}}, which holds {clause.allowed}"
        yield with_test(
            clause, CheckParameters(AllowedTypes(keys.column, (_TYPES[zoned],), allowed, "type is {}"))
        )


CHECK = replace(property_check("timezone", __doc__, clauses), metrics=schema_metrics, evaluate=evaluate_type)
