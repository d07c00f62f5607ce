"""Histories of the check `unusual`: daily runs of the table, the last one yesterday."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from fakes.examples import Example, contract_of

from dq.dataquality.checks.unusual import CHECK
from dq.dataquality.clauses.clause import CheckParameters, Clause
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model.run_context import PastMeasurement


def clause(contract: str) -> Clause:
    """The clause of the only rule about unusual numbers in the YAML of an object."""
    parsed = contract_of(Example("", contract, "", (), ""))
    (found,) = clauses_of(parsed, parsed.objects[0], {CHECK.id: CHECK})
    return found


def daily(contract: str, now: dt.datetime, **numbers: Sequence[float]) -> tuple[PastMeasurement, ...]:
    """Earlier numbers of the rule, by name; None for a run without one."""
    rule = clause(contract)
    assert isinstance(rule.test, CheckParameters), rule.refusal_reason
    days = len(next(iter(numbers.values())))
    return tuple(
        PastMeasurement(
            CHECK.id,
            rule.path,
            rule.test.value.fingerprint,
            now - dt.timedelta(days=days - day),
            None,
            tuple(
                ((name,), float(series[day])) for name, series in numbers.items() if series[day] is not None
            ),
        )
        for day in range(days)
    )
