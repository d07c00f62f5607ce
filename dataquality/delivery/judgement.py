"""From what was seen of a cycle to what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.cycle import CycleJudgement, CycleVerdict, Grounds, Remains
from dq.dataquality.delivery.sources import presence
from dq.dataquality.delivery.sources.evidence import Evidence
from dq.dataquality.delivery.sources.rewriting import of_files
from dq.dataquality.delivery.sources.snapshot import of_snapshot
from dq.dataquality.delivery.status import judge_on

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import Sighting


def judgement(seen: Sighting, now: datetime, looked_at: datetime | None) -> CycleJudgement:
    """What becomes of a cycle at `now`; `looked_at` is the last tick before this one, if there was one."""
    if seen.presence is not None:
        return _again(seen, seen.presence, now)
    result, evidence = _judged(seen, now, looked_at)
    kept, look_again_at = seen.kept, None
    # A miss that was seen stays one: what cannot be read afterwards takes nothing back.
    if kept.status is CycleStatus.MISSING and result.status is CycleStatus.UNKNOWN:
        result = CycleVerdict(CycleStatus.MISSING, None, kept.reason)
    if result.status.good and evidence is not None:
        look_again_at = presence.next_look(kept.cycle, seen.one.place, evidence.claims, now)
    gone_since = None if result.status.good else kept.gone_since
    return CycleJudgement(seen.one, kept, result, evidence, look_again_at, gone_since, there=seen.there)


def _judged(
    seen: Sighting, now: datetime, looked_at: datetime | None
) -> tuple[CycleVerdict, Evidence | None]:
    slo, kept, evidence = seen.one.slo, seen.kept, seen.evidence
    cycle, missing = kept.cycle, kept.status is CycleStatus.MISSING
    give_up_at = cycle.due_at + slo.give_up_after if slo.give_up_after else None
    if not cycle.partitions:
        evidence, give_up_at = of_snapshot(missing, evidence, seen.window, give_up_at or seen.ahead)
    blind = kept.status is CycleStatus.UNKNOWN
    evidence = of_files(cycle, evidence, seen_missing=missing, seen_blind=blind, looked_at=looked_at)
    if evidence is not None and evidence.delivered_at is not None:
        evidence = replace(evidence, first_seen=kept.first_seen_at or now)
    grounds = Grounds(
        evidence, give_up_at, slo.delivery.empty == "allowed", revoked=kept.reason if kept.revoked else ""
    )
    # What is no delivery, being empty, is no evidence of one.
    return judge_on(cycle, grounds, now), None if grounds.is_empty else evidence


def _again(seen: Sighting, found: Remains, now: datetime) -> CycleJudgement:
    """A delivery that was good, looked at again: it is taken for gone when it is so for a while."""
    kept, cycle = seen.kept, seen.kept.cycle
    lateness = kept.delivered_at - cycle.due_at if kept.delivered_at else None
    claims = kept.claims
    if found.anew is not None:
        claims = tuple(replace(one, delivered_at=found.anew) for one in claims)
    evidence = Evidence(
        kept.source or "file", kept.delivered_at, first_seen=kept.first_seen_at, claims=claims
    )
    same = CycleVerdict(kept.status, lateness, kept.reason)
    if not found.gone:
        following = presence.next_look(cycle, seen.one.place, claims, now)
        return CycleJudgement(seen.one, kept, same, evidence, following, anew=found.anew)
    since = kept.gone_since or now
    sure_at = since + presence.CONFIRMED_AFTER
    if now < sure_at:
        return CycleJudgement(seen.one, kept, same, evidence, sure_at, since)
    delivered = f"{kept.delivered_at:%F %T}Z" if kept.delivered_at else "before"
    reason = (
        f"Delivered {delivered}, and taken away again: nothing is left in {found.gone} since {since:%F %T}Z."
    )
    give_up = seen.one.slo.give_up_after
    grounds = Grounds(None, cycle.due_at + give_up if give_up else None, revoked=reason)
    return CycleJudgement(seen.one, kept, judge_on(cycle, grounds, now), None, None, since)
