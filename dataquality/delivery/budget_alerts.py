"""An error budget that is half used, and one that is exhausted, are told; and when it has recovered.

Only where the objective allows a miss by now: of a product too young for one, each miss is told itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection

from dq.contracts.shared.outcome import Breach, End, IncidentKey, Recovery, Severity
from dq.contracts.slo import Slo
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.budget import Budget, budget
from dq.dataquality.delivery.state import watermarks
from dq.dataquality.delivery.turn import Key, Tell

HALF, EXHAUSTED = "half", "exhausted"
# What is broken when so much was told.
_BROKEN: Mapping[str | None, tuple[str, ...]] = {None: (), HALF: (HALF,), EXHAUSTED: (HALF, EXHAUSTED)}


def budgets(tx: Connection, slos: Iterable[Slo], now: datetime) -> dict[Key, Budget]:
    """The budgets of these SLOs at `now`, asked for at once."""
    wanted = {slo.key: slo for slo in slos}
    if not wanted:
        return {}
    rows = ledger.counted(tx, wanted, now - max(slo.window for slo in wanted.values()))
    return {key: budget(rows[key], slo.objective, slo.window, now) for key, slo in wanted.items()}


def tell_budgets(
    tx: Connection, slos: Iterable[Slo], found: Mapping[Key, Budget], now: datetime, tell: Tell
) -> None:
    """Tells of every budget that is used otherwise than was told of it last."""
    told = watermarks.budgets_told(tx)
    for slo in slos:
        before, after = told.get(slo.key), _used(found[slo.key])
        if before == after:
            continue
        for subject in _BROKEN[after]:
            if subject not in _BROKEN[before]:
                tell(tx, _breach(slo, subject, found[slo.key], now))
        for subject in _BROKEN[before]:
            if subject not in _BROKEN[after]:
                facts = (("budget", found[slo.key].line()),)
                tell(tx, Recovery(_incident(slo.key), subject, now, facts))
        watermarks.note_budget(tx, slo.key, after)


def withdraw_budget(
    tx: Connection, key: Key, told: str | None, reason: str, now: datetime, tell: Tell
) -> None:
    """Ends what was told of the budget of a promise that is no more."""
    for subject in _BROKEN[told]:
        facts = (("withdrawn", reason),)
        tell(tx, Recovery(_incident(key), subject, now, facts, End.WITHDRAWN))


def _used(found: Budget) -> str | None:
    if not found.allowed:
        return None
    # Of one allowed miss, the first is told itself, and the second exhausts.
    half = found.half_used and found.allowed > 1
    return EXHAUSTED if found.exhausted else HALF if half else None


def _incident(key: Key) -> IncidentKey:
    contract, one, slo = key
    return IncidentKey(contract, one, f"{slo}:budget")


def _breach(slo: Slo, subject: str, found: Budget, now: datetime) -> Breach:
    said = "is exhausted" if subject == EXHAUSTED else "is half used"
    return Breach(
        key=_incident(slo.key),
        severity=slo.severity if subject == EXHAUSTED else Severity.WARNING,
        subject=subject,
        title=f"the error budget of {slo.object.name} {said}",
        at=now,
        facts=(
            ("promised", f"{slo.delivery.objective} of the deliveries in {slo.delivery.window} in time"),
            ("seen", f"{found.good} of {found.good + found.bad}"),
            ("budget", found.line()),
        ),
    )
