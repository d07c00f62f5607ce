"""An error budget that is half used, exhausted, or burns too fast, is told; and when it has recovered.

Only where the objective allows a miss by now: of a product too young for one, each miss is told itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter

from sqlalchemy import Connection

from dq.contracts.shared.outcome import Breach, End, IncidentKey, Recovery, Severity
from dq.contracts.slo import Slo
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.budget import Budget, budget
from dq.dataquality.delivery.burn import RULES
from dq.dataquality.delivery.cycle_writes import Tell
from dq.dataquality.delivery.state import watermarks
from dq.dataquality.delivery.state.keys import Key

HALF, EXHAUSTED = "half", "exhausted"
# Subjects of the incident by how much of the budget is used, before the `+` and the first letters of burn
# rules. One level is broken at a time, so that title and figures are those of the present one.
_LEVELS: Mapping[str, tuple[str, ...]] = {"": (), HALF: (HALF,), EXHAUSTED: (EXHAUSTED,)}
# A store of an earlier release may have both levels open where the budget is exhausted.
_POSSIBLY_OPEN: Mapping[str, tuple[str, ...]] = {**_LEVELS, EXHAUSTED: (EXHAUSTED, HALF)}
_RANK = attrgetter("rank")
_BURNS = {rule.name[0]: rule.name for rule in RULES}


def _subjects(usage: str | None, levels: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    used, _, letters = (usage or "").partition("+")
    return (*levels[used], *(_BURNS[letter] for letter in letters))


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
        broken = _subjects(after, _LEVELS)
        for subject in broken:
            if subject not in _subjects(before, _LEVELS):
                tell(tx, _breach(slo, subject, found[slo.key], now))
        severity = max((_severity(slo, subject) for subject in broken), key=_RANK, default=None)
        for subject in _subjects(before, _POSSIBLY_OPEN):
            if subject not in broken:
                facts = (("budget", found[slo.key].line()),)
                title = f"the error budget of {slo.object.name} has recovered"
                tell(tx, Recovery(_incident(slo.key), subject, now, facts, title=title, severity=severity))
        watermarks.note_budget(tx, slo.key, after)


def withdraw_budget(
    tx: Connection, key: Key, told: str | None, reason: str, now: datetime, tell: Tell
) -> None:
    """Ends what was told of the budget of a promise that is no more."""
    for subject in _subjects(told, _POSSIBLY_OPEN):
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


def _severity(slo: Slo, subject: str) -> Severity:
    # What burns fast is over before anybody has looked.
    return slo.severity if subject in (EXHAUSTED, "fast") else Severity.WARNING


def _breach(slo: Slo, subject: str, found: Budget, now: datetime) -> Breach:
    half = "is used up" if found.bad == found.allowed else "is half used"
    state = {HALF: half, EXHAUSTED: "is exhausted"}.get(subject, f"burns too fast ({subject})")
    return Breach(
        key=_incident(slo.key),
        severity=_severity(slo, subject),
        subject=subject,
        title=f"the error budget of {slo.object.name} {state}",
        at=now,
        facts=(
            ("promised", f"{slo.delivery.objective} of the deliveries in {slo.delivery.window} in time"),
            ("seen", f"{found.good} of {found.good + found.bad}"),
            ("budget", found.line()),
        ),
    )
