"""Evidence: what shows that a cycle's data arrived, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dq.contracts.extension import EvidenceSource


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says about one cycle; instants are aware.

    `delivered_at` is the first instant at which the source's condition became true, by the source's own
    clock; None: the source was read and nothing is there. `first_seen` is when a watcher first saw it.
    `readable` is False when the source could not be read; `problem` then says why, without secrets.
    `rows` is the delivered row count where the source knows it. `names_cycle`: the source says itself
    which cycle it is for, so that nothing has to be guessed from its time. `settled`: it could not be read,
    and never will be.
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
