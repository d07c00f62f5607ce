"""A cycle that moves, and what is told of its end."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dq.contracts.shared.outcome import Breach, CycleStatus, End, IncidentKey, Recovery
from dq.dataquality.delivery import blindness, ledger, mass
from dq.dataquality.delivery.cycle import OPEN, CycleVerdict, Kept, Turn
from dq.dataquality.delivery.cycle_writes import Tell, release_held
from dq.dataquality.delivery.wording import both_clocks, came, looked, promised, seen, wanted

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import CycleJudgement

# How a promise that was broken ended where nothing was delivered, and how that is told.
_ENDS = {
    CycleStatus.NEVER: (End.GIVEN_UP, "never came"),
    CycleStatus.EXCUSED: (End.EXCUSED, "does not count"),
    CycleStatus.WITHDRAWN: (End.WITHDRAWN, "is promised no more"),
}


def tell_platform(tx: Connection, turns: Iterable[Turn], now: datetime, tell: Tell) -> None:
    """Tells of every cause of blindness, and of every root of many misses, behind which nothing is left."""
    turned = list(turns)
    for cause in sorted({turn.kept.blind for turn in turned if turn.kept.blind}):
        if not ledger.any_blind(tx, cause):
            after = [turn.after for turn in turned if turn.kept.blind == cause]
            tell(tx, blindness.returned(cause, after, now))
    for root in sorted({turn.kept.held for turn in turned if turn.kept.held}):
        # Another watcher may have ended it meanwhile.
        if not ledger.any_held(tx, root) and (ends := ledger.held_statuses(tx, root)):
            tell(tx, mass.over(root, ends, now))
            release_held(tx, root)


def event(one: CycleJudgement, now: datetime) -> Breach | Recovery | None:
    """What the alerts room has to know about this judgement, if anything."""
    slo, kept, result = one.one.slo, one.kept, one.result
    if kept.status.good and not one.revoked:
        return None
    key, subject = IncidentKey(*slo.key), kept.cycle.due_at.isoformat()
    told = kept.told and not one.revoked
    if result.status is CycleStatus.MISSING and not told and now >= kept.tell_at:
        # What was taken away, or counts again, is news whatever was told of it before.
        at = max(at for at in (kept.cycle.breach_at, kept.counts_since, one.gone_since) if at)
        how = (
            "was taken away again"
            if one.gone_since
            else "is still being written"
            if one.arriving
            else "is missing"
        )
        return Breach(
            key=key,
            severity=slo.severity,
            subject=subject,
            title=f"{slo.object.name} {how}: {wanted(kept.cycle)}",
            at=at,
            facts=(
                ("promised", promised(slo, kept.cycle)),
                ("since", both_clocks(slo, at)),
                *looked(result, one.evidence, one.there),
            ),
            period=slo.period(kept.cycle.due_at),
        )
    if told and result.status not in OPEN:
        if result.lateness is not None:
            at = kept.cycle.due_at + result.lateness
            facts = (("delivered", seen(slo, kept.cycle, result)),)
            title = f"{slo.object.name} {came(slo, result.lateness)}: {wanted(kept.cycle)}"
            return Recovery(key, subject, at, facts, title=title)
        return ended(key, kept, result, now)
    return None


def ended(key: IncidentKey, kept: Kept, judged: CycleVerdict, now: datetime) -> Recovery:
    """What is told of a cycle that was missing, and that nobody waits for any more."""
    end, told = _ENDS[judged.status]
    subject, facts = kept.cycle.due_at.isoformat(), ((end.replace("_", " "), judged.reason),)
    return Recovery(key, subject, now, facts, end, f"{key.object} {told}: {wanted(kept.cycle)}")
