"""Evidence: what shows that a cycle's data arrived, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dq.contracts.extension import EvidenceSource

APART = timedelta(minutes=5)
"""Sources whose times are further apart than this disagree."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What one of the sources said of a cycle: when it arrived, or None where it has not wholly."""

    source: EvidenceSource
    delivered_at: datetime | None
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says about one cycle; instants are aware.

    `delivered_at` is the first instant at which the source's condition became true, by the source's own
    clock; None: the source was read and nothing is there. `first_seen` is when a watcher first saw it.
    `readable` is False when the source could not be read; `problem` then says why, without secrets.
    `rows` is the delivered row count where the source knows it. `names_cycle`: the source says itself
    which cycle it is for, so that nothing has to be guessed from its time. `settled`: it could not be read,
    and never will be. `arriving`: data is there that is still being written, and this is its newest time.
    `claims` are the answers of all sources that gave one, this one among them.
    """

    source: EvidenceSource
    delivered_at: datetime | None = None
    first_seen: datetime | None = None
    readable: bool = True
    problem: str = ""
    rows: int | None = None
    detail: str = ""
    names_cycle: bool = False
    settled: bool = False
    arriving: datetime | None = None
    claims: tuple[SourceAnswer, ...] = ()


def disagreeing(claims: tuple[SourceAnswer, ...], decided: EvidenceSource | None) -> list[SourceAnswer]:
    """The claims whose time is far from that of the source that decided."""
    times = {one.source: one.delivered_at for one in claims if one.delivered_at is not None}
    at = times.get(decided) if decided is not None else None
    if at is None:
        return []
    return [one for one in claims if one.delivered_at is not None and abs(one.delivered_at - at) > APART]
