"""What a change of a table's column means, in the words of `dq diff` for the same change of a contract."""

from __future__ import annotations

import json
from datetime import date

from dq.contracts.model import Contract
from dq.contracts.yaml.parse import parse
from dq.registry.action import ColumnJudge, Grade
from dq.validators.compat import DiffTerms, Judged, Mode, Verdict, diff
from dq.validators.compat.judged import Aspect


def column_judge(today: date) -> ColumnJudge:
    """The judge for a plan: what is a break there is breaking here, and all else is additive.

    The files that are there are read through the new columns too, so the mode is FULL; the engines are the
    usual ones, for a table does not say who reads it.
    """

    def judge(before: str | None, after: str | None, format: str) -> tuple[Grade, str]:
        found = diff(_contract(before), _contract(after), DiffTerms(today, Mode.FULL, format=format))
        changes = found.of(Aspect.COMPATIBILITY)
        if not changes:
            return Grade.METADATA, ""
        worst = max(changes, key=lambda one: one.verdict.rank)
        return (Grade.BREAKING if worst.verdict is Verdict.BREAK else Grade.ADDITIVE), _said(worst)

    return judge


def _said(change: Judged) -> str:
    return f"{change.rule}: {change.note.rstrip('.')}" if change.note else change.rule


def _contract(type_: str | None) -> Contract:
    """A contract that promises one column of this type beside one that is always there."""
    columns = [{"name": "k", "physicalType": "int"}]
    if type_ is not None:
        columns.append({"name": "c", "physicalType": type_})
    document = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": "t",
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": "t", "properties": columns}],
    }
    made = parse(json.dumps(document).encode(), "t.json").contract
    assert made is not None
    return made
