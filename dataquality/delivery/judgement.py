"""From what was seen of a cycle to what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dq.contracts.shared.data_formats import LAKEHOUSE
from dq.contracts.shared.outcome import CycleStatus
from dq.dataquality.delivery.sources import presence
from dq.dataquality.delivery.sources.absence import MissingPart, path_of
from dq.dataquality.delivery.sources.evidence import Evidence
from dq.dataquality.delivery.sources.probe import label
from dq.dataquality.delivery.sources.rewriting import of_files
from dq.dataquality.delivery.sources.snapshot import of_snapshot
from dq.dataquality.delivery.status import CycleVerdict, Grounds, judge_on

if TYPE_CHECKING:
    from dq.dataquality.delivery.ledger import Kept
    from dq.dataquality.delivery.sighting import Sighting
    from dq.dataquality.delivery.watch import Watched


# As long as its own path, a receipt and the time alone can move it.
_MAY_REST = (CycleStatus.MISSING, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class CycleRest:
    """What of a cycle is looked for, and when it is judged again whatever is seen; None for never."""

    parts: tuple[MissingPart, ...]
    until: datetime | None


def rest_of(one: Watched, root: str, kept: Kept, now: datetime, settle: timedelta) -> CycleRest | None:
    """How a cycle may rest that was judged at `now`; None for one that has to be judged at every tick.

    It may where a partition's own path shows its delivery. That it cannot be seen moves no miss. `settle` is
    how long after its breach a miss is told.
    """
    cycle, slo = kept.cycle, one.slo
    if kept.status not in _MAY_REST or not cycle.partitions or one.place.format in LAKEHOUSE:
        return None
    if kept.excuse or kept.arriving_since is not None:
        return None
    times = [] if kept.told else [kept.held_until or cycle.breach_at + settle]
    if kept.status is CycleStatus.MISSING and slo.give_up_after:
        times.append(cycle.due_at + slo.give_up_after)
    if any(at <= now for at in times):
        return None
    places = [(partition, path_of(slo, one.place, partition)) for partition in cycle.partitions]
    state = (kept.status, kept.told, kept.held_until)
    parts = (
        MissingPart(kept.id, number, *state, label(partition), root if path else None, path)
        for number, (partition, path) in enumerate(places)
    )
    return CycleRest(tuple(parts), min(times, default=None))


@dataclass(frozen=True, slots=True)
class CycleJudgement:
    """A cycle as it was kept, and as it stands now.

    `look_again_at`: when what was delivered is looked at again. `gone_since`: since when nothing of it is
    left. `anew`: it was written again at this time, which changes nothing. `there`, of one
    that is about to be told: where it was looked for, and what stands there.
    """

    one: Watched
    kept: Kept
    result: CycleVerdict
    evidence: Evidence | None
    look_again_at: datetime | None = None
    gone_since: datetime | None = None
    anew: datetime | None = None
    there: tuple[str, str] = ("", "")

    @property
    def revoked(self) -> bool:
        """Whether what was good has just been found to be taken away."""
        return self.kept.status.good and not self.result.status.good

    @property
    def arriving(self) -> bool:
        """Whether data is there that is still being written."""
        return self.evidence is not None and self.evidence.arriving is not None

    @property
    def differs(self) -> bool:
        """Whether there is anything to write, beside what is told of it."""
        return (
            self.result.status is not self.kept.status
            or self.arriving != (self.kept.arriving_since is not None)
            or self.look_again_at != self.kept.look_again_at
            or self.gone_since != self.kept.gone_since
        )


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


def _again(seen: Sighting, found: presence.Remains, now: datetime) -> CycleJudgement:
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
