"""What was written anew while nobody looked: its time does not tell when it came."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from dq.contracts.schedule import Cycle
from dq.dataquality.delivery.sources.evidence import Evidence

WATCHED = timedelta(minutes=15)
"""A watcher whose last tick was so little before a breach was there: what came since is late."""


def of_files(
    cycle: Cycle,
    evidence: Evidence | None,
    *,
    seen_missing: bool,
    seen_blind: bool,
    looked_at: datetime | None,
) -> Evidence | None:
    """Evidence that a compaction may have moved, with what it is worth.

    Files that are newer than the breach are late where somebody saw that nothing was there, or looked
    shortly before the breach (`looked_at` is the last tick before this one, None: there was none). Else an
    older time that another source has counts, and without one nobody knows. `seen_blind`: who looked last
    could not see.
    """
    if evidence is None or evidence.delivered_at is None or evidence.delivered_at <= cycle.breach_at:
        return evidence
    if evidence.names_cycle or not _moves(cycle, evidence) or seen_missing:
        return evidence
    if not seen_blind and looked_at is not None and looked_at >= cycle.breach_at - WATCHED:
        return evidence
    older = [
        one for one in evidence.claims if one.delivered_at is not None and one.delivered_at <= cycle.breach_at
    ]
    if older:
        return replace(evidence, source=older[0].source, delivered_at=older[0].delivered_at)
    problem = (
        f"it was written {evidence.delivered_at:%F %T}Z, after the breach, and may have been there before: "
        "nobody looked in between"
    )
    return replace(evidence, delivered_at=None, readable=False, problem=problem, settled=True)


def _moves(cycle: Cycle, evidence: Evidence) -> bool:
    """Whether a source has the time of the newest write: files, and a marker that each one overwrites."""
    return evidence.source == "file" or (evidence.source == "marker" and not cycle.partitions)
