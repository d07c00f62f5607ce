"""The promises about columns and types that metadata alone can tell of."""

from __future__ import annotations

from collections.abc import Mapping

from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import Status, Unreadable
from dq.contracts.types import DataType, row_type
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.preparation import asked_of, select
from dq.dataquality.local.metadata.facts import Judge
from dq.dataquality.model.column import field
from dq.dataquality.model.run_context import Occasion
from dq.dataquality.object_check import by_schema


def judge_of(contract: Contract, one: SchemaObject) -> Judge:
    """What `dq check` would say of the columns and types of an object's files, where a promise is broken."""
    kinds = built_in()
    clauses = select(contract, one, kinds).clauses
    promised = row_type(one)
    keys = [prop.column for prop in one.partition_keys()]

    def broken(schema: DataType, unread: Mapping[str, str]) -> list[str]:
        for name, reason in unread.items():
            if field(promised, name) is not None:
                raise Unreadable(f"{one.name}.{name}: {reason}.", "Write this column with another type.")
        placed = {name: field(promised, name) for name in keys if field(schema, name) is None}
        more = {name: kind for name, kind in placed.items() if kind is not None}
        whole = DataType("struct", (), (*schema.parts, *more.values()), (*schema.names, *more))
        asked = asked_of(whole, clauses, Occasion(None))
        results = by_schema(asked, kinds, whole).values()
        return [result.message for result in results if result.status is Status.FAIL]

    return broken
