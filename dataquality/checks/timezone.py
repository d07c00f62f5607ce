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

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, KindTerms, asking, documented, of_option, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, of_schema, result, schema_in
from dq.dataquality.model.column import Column, columns, resolve

_TYPES = {True: "timestamp", False: "timestamp_ntz"}
_MEANT = {True: "instants", False: "civil times without a zone"}


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        options = prop.logical_type_options
        if options is None or options.timezone is None:
            continue
        made = of_option("timezone", one, prop, column, "timezone", _MEANT[options.timezone])
        if prop.physical_type:
            yield documented(made, f"physicalType {prop.physical_type} decides it")
        elif prop.logical_type != "timestamp":
            yield documented(made, "a time is a text, whose format tells whether a zone is written")
        else:
            yield asking(made, KindTerms((column, _TYPES[options.timezone])))


def judge(clause: Clause, values: Values) -> CheckResult:
    schema = schema_in(values)
    column, wanted = terms_of(clause, tuple)
    assert isinstance(column, Column)
    subject = f"{clause.object}.{clause.property}"
    found = resolve(schema, column)
    if isinstance(found, str):
        return result(clause, Status.ERROR, "not measured", f"{subject}: {found}")
    if found.name == wanted:
        return result(clause, Status.PASS, str(found), f"{subject}: {found}, which holds {clause.allowed}")
    message = f"{subject}: type is {found}; allowed: {clause.allowed}, which Spark keeps as {wanted}"
    return result(clause, Status.FAIL, str(found), message)


CHECK = CheckKind("timezone", __doc__, clauses, of_schema, judge)
