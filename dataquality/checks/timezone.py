"""Timestamps are instants, or civil times without a zone, as `timezone` promises.

Why: A civil time that is read as an instant is wrong by hours, and nobody sees it in the value.
Bad: `logicalType: timestamp`, `logicalTypeOptions: {timezone: true}` and a column of `timestamp_ntz`.
Good: A column of `timestamp`; with `timezone: false` one of `timestamp_ntz`.
Nulls: Only types are compared; no row is read. Where the contract has a `physicalType`, that decides, and
where times are texts, their `format` tells whether a zone is written.
Mend: Write the column with the promised type, or correct `timezone`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.dataquality.clauses.clause import Clause, KindTerms, PropertyKeys, asking, documented
from dq.dataquality.clauses.kind import TypeAsked, judge_type, of_properties, of_schema

_TYPES = {True: "timestamp", False: "timestamp_ntz"}
_MEANT = {True: "instants", False: "civil times without a zone"}


def clauses(keys: PropertyKeys) -> Iterator[Clause]:
    prop, zoned = keys.property, keys.options.timezone if keys.options else None
    if zoned is None:
        return
    made = keys.option("timezone", _MEANT[zoned])
    if prop.physical_type:
        yield documented(made, f"physicalType {prop.physical_type} decides it")
    elif prop.logical_type != "timestamp":
        yield documented(made, "a time is a text, whose format tells whether a zone is written")
    else:
        kept = f"{{}}, which holds {made.allowed}"
        yield asking(made, KindTerms(TypeAsked(keys.column, (_TYPES[zoned],), kept, "type is {}")))


CHECK = replace(of_properties("timezone", __doc__, clauses), metrics=of_schema, judge=judge_type)
