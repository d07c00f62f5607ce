"""What a change of a table's columns means, in the words of `dq diff` for the same change of a contract."""

from __future__ import annotations

import json
from datetime import date

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.registry.diff import Grade, SchemaJudge
from dq.registry.table import TableSpec
from dq.validators.compat import DiffTerms, Judged, Mode, Verdict, diff
from dq.validators.compat.classified_change import Aspect

_TABLE = "t"
# The files that are there lack a new column, and catalogs read it as NULL: no reader breaks.
_READABLE = frozenset({"column-added-required"})


def schema_judge(today: date) -> SchemaJudge:
    """The judge for a plan: what is a break there is breaking here, and all else is additive.

    The files that are there are read through the new columns too, so the mode is FULL; the engines are the
    usual ones, for a table does not say who reads it. Columns are compared as a whole, with their places:
    in some formats a place is the identity of a column.
    """

    def judge(live: TableSpec, wanted: TableSpec) -> dict[str, tuple[Grade, str]]:
        terms = DiffTerms(today, Mode.FULL, format=wanted.format)
        worst: dict[str, Judged] = {}
        for change in diff(_contract(live, wanted), _contract(wanted, wanted), terms).of(
            Aspect.COMPATIBILITY
        ):
            column = change.path.partition(".")[2]
            if column not in worst or worst[column].verdict.rank < change.verdict.rank:
                worst[column] = change
        return {column: (_grade(change), _rule(change)) for column, change in worst.items()}

    return judge


def _grade(change: Judged) -> Grade:
    breaks = change.verdict is Verdict.BREAK and change.rule not in _READABLE
    return Grade.BREAKING if breaks else Grade.ADDITIVE


def _rule(change: Judged) -> str:
    return f"{change.rule}: {change.note.rstrip('.')}" if change.note else change.rule


def _contract(spec: TableSpec, promises: TableSpec) -> Contract:
    """A contract of the table's columns behind one that is always there.

    No catalog knows which columns are required, so both sides of a comparison have that from `promises`.
    """
    columns: list[dict[str, object]] = [{"name": "__first", "physicalType": "int"}]
    for column in spec.columns:
        promise = promises.column(column.name)
        required = {"required": True} if promise is not None and promise.promised else {}
        columns.append({"name": column.name, "physicalType": column.type, **required})
    document = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": _TABLE,
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": _TABLE, "properties": columns}],
    }
    contract = parse(json.dumps(document).encode(), "t.json").contract
    assert contract is not None
    return contract
