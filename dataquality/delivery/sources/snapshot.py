"""Which updates of a table without partitions are meant for which cycle."""

from __future__ import annotations

from datetime import datetime, timedelta

from dq.contracts.schedule import Cycle
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleWindow
from dq.dataquality.delivery.sources.evidence import Evidence

# A snapshot that comes in the last quarter before a due instant is meant for that one.
EARLY = 0.25


def window_of(slo: Slo, cycle: Cycle) -> tuple[CycleWindow, datetime | None]:
    """When an update without a partition value is meant for a cycle, and when the third next one is due.

    One update serves one cycle: from a quarter of the gap before it is due until a quarter before the
    next one.
    """
    due = cycle.due_at
    before = slo.schedule.latest(due - timedelta(seconds=1))
    ahead = [following.at for following, _ in zip(slo.schedule.after(due), range(3), strict=False)]
    opens = due - (due - before.at) * EARLY if before else None
    closes = ahead[0] - (ahead[0] - due) * EARLY if ahead else None
    return CycleWindow(before.at if before else None, opens, closes), ahead[-1] if ahead else None


def of_snapshot(
    seen_missing: bool, evidence: Evidence | None, window: CycleWindow, give_up_at: datetime | None
) -> tuple[Evidence | None, datetime | None]:
    """Whether an update without a partition value is meant for this cycle.

    After the third next one is due, a snapshot that never came is given up.
    """
    if evidence is None or evidence.delivered_at is None or evidence.names_cycle:
        return evidence, give_up_at
    if window.opens is not None and evidence.delivered_at < window.opens:
        return None, give_up_at
    closes = window.closes
    if closes is not None and evidence.delivered_at >= closes:
        # What is there now belongs to a later cycle, and what came for this one, if anything, is overwritten:
        # only who looked in time knows that nothing did.
        if not seen_missing:
            problem = "a later update has overwritten what may have come for it, and nobody looked before"
            return Evidence(evidence.source, readable=False, problem=problem, settled=True), give_up_at
        return None, min(give_up_at or closes, closes)
    return evidence, give_up_at
