"""How what is promised no more ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from dq.contracts.shared.outcome import CycleStatus, IncidentKey
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.budget_alerts import withdraw_budget
from dq.dataquality.delivery.cycle import OPEN, CycleVerdict, Turn
from dq.dataquality.delivery.cycle_writes import Move, Tell, move_all
from dq.dataquality.delivery.state import watermarks
from dq.dataquality.delivery.state.keys import Key
from dq.dataquality.delivery.turn import ended, tell_platform
from dq.store.engine import Store


def withdraw(
    store: Store, withdrawn: Callable[[Key], str | None], now: datetime, tell: Tell
) -> tuple[Turn, ...]:
    """Ends what is promised no more: open cycles, their incidents, and the watch itself."""
    with store.read() as tx:
        marked = watermarks.through(tx)
    reasons = {key: reason for key in marked if (reason := withdrawn(key)) is not None}
    if not reasons:
        return ()
    turns: list[Turn] = []
    with store.write() as tx:
        standing = ledger.open_cycles(tx, now, {key[0] for key in reasons})
        told = watermarks.budgets_told(tx)
        for key, reason in reasons.items():
            withdraw_budget(tx, key, told.get(key), reason, now, tell)
            watermarks.unmark(tx, key)
            verdict = CycleVerdict(CycleStatus.WITHDRAWN, None, reason)
            open_ = [kept for kept in standing.get(key, ()) if kept.status in OPEN]
            moved = move_all(tx, [Move(kept, verdict, told=kept.told) for kept in open_], now)
            for kept in open_:
                if kept.id in moved:
                    turns.append(Turn(kept, verdict.status, reason))
                    if kept.told:
                        tell(tx, ended(IncidentKey(*key), kept, verdict, now))
        tell_platform(tx, turns, now, tell)
    return tuple(turns)
