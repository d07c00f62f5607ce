"""An error budget that is half used, exhausted, or burns too fast, is told; and when it has recovered.

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
from dq.dataquality.delivery.burn import RULES
from dq.dataquality.delivery.state import watermarks
from dq.dataquality.delivery.state.keys import Key
from dq.dataquality.delivery.turn import Tell

HALF, EXHAUSTED = "half", "exhausted"
# What is broken when so much was told, before the `+` and the first letters of burn rules.
_BROKEN: Mapping[str, tuple[str, ...]] = {"": (), HALF: (HALF,), EXHAUSTED: (HALF, EXHAUSTED)}
_BURNS = {rule.name[0]: rule.name for rule in RULES}


def _broken(told: str | None) -> tuple[str, ...]:
    used, _, letters = (told or "").partition("+")
    return (*_BROKEN[used], *(_BURNS[letter] for letter in letters))


def budgets(tx: Connection, slos: Iterable[Slo], now: datetime) -> dict[Key, Budget]:
    """The budgets of these SLOs at `now`, asked for together."""
    wanted = {slo.key: slo for slo in slos}
    if not wanted:
        return {}
    found: dict[Key, Budget] = {}
    # Asked for by window: who delivers all day has many cycles in another one's.
    for window in {slo.window for slo in wanted.values()}:
        slos_of_it = {key: slo for key, slo in wanted.items() if slo.window == window}
        grace = max(slo.grace for slo in slos_of_it.values())
        rows = ledger.counted(tx, slos_of_it, now - window, now - window - grace)
        found |= {key: budget(rows[key], slo.objective, window, now) for key, slo in slos_of_it.items()}
    return found


def tell_budgets(
    tx: Connection, slos: Iterable[Slo], found: Mapping[Key, Budget], now: datetime, tell: Tell
) -> None:
    """Tells of every budget that is used otherwise than was told of it last."""
    told = watermarks.budgets_told(tx)
    for slo in slos:
        before, after = told.get(slo.key), _used(found[slo.key])
        if before == after:
            continue
        for subject in _broken(after):
            if subject not in _broken(before):
                tell(tx, _breach(slo, subject, found[slo.key], now))
        for subject in _broken(before):
            if subject not in _broken(after):
                facts = (("budget", found[slo.key].line()),)
                title = f"the error budget of {slo.object.name} has recovered"
                tell(tx, Recovery(_incident(slo.key), subject, now, facts, title=title))
        watermarks.note_budget(tx, slo.key, after)


def withdraw_budget(
    tx: Connection, key: Key, told: str | None, reason: str, now: datetime, tell: Tell
) -> None:
    """Ends what was told of the budget of a promise that is no more."""
    for subject in _broken(told):
        facts = (("withdrawn", reason),)
        title = f"the error budget of {key[1]} is promised no more"
        tell(tx, Recovery(_incident(key), subject, now, facts, End.WITHDRAWN, title))


def _used(found: Budget) -> str | None:
    # Of one allowed miss, the first is told itself, and the second exhausts.
    half = found.half_used and found.allowed > 1
    used = "" if not found.allowed else EXHAUSTED if found.exhausted else HALF if half else ""
    letters = "".join(name[0] for name in found.burning)
    return f"{used}+{letters}" if letters else used or None


def _incident(key: Key) -> IncidentKey:
    contract, one, slo = key
    return IncidentKey(contract, one, f"{slo}:budget")


def _breach(slo: Slo, subject: str, found: Budget, now: datetime) -> Breach:
    said = {HALF: "is half used", EXHAUSTED: "is exhausted"}.get(subject, f"burns too fast ({subject})")
    return Breach(
        key=_incident(slo.key),
        # What burns fast is over before anybody has looked.
        severity=slo.severity if subject in (EXHAUSTED, "fast") else Severity.WARNING,
        subject=subject,
        title=f"the error budget of {slo.object.name} {said}",
        at=now,
        facts=(
            ("promised", f"{slo.delivery.objective} of the deliveries in {slo.delivery.window} in time"),
            ("seen", f"{found.good} of {found.good + found.bad}"),
            ("budget", found.line()),
        ),
    )
