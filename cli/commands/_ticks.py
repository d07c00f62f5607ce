"""A tick of `dq watch`, for people."""

from __future__ import annotations

from collections import Counter

from dq.cli import output
from dq.dataquality.delivery.cycle import label
from dq.dataquality.delivery.tick import Tick


def describe(done: Tick, *, quiet: bool = False) -> None:
    """The tick in a few lines; `quiet` says only what changed."""
    for change in done.changes:
        cycle = change.kept.cycle
        what = ", ".join(label(partition) for partition in cycle.partitions) or "snapshot"
        good = True if change.after.good else False if change.after.bad else None
        output.line(f"  {output.mark(good)} {cycle.contract} {what}: {change.after}. {change.reason}")
    # One place that cannot be read is one fact, however many deliveries lie there.
    for (contract, reason), times in Counter(
        (unknown.kept.cycle.contract, unknown.reason) for unknown in done.unknown
    ).items():
        output.note(f"  ? {contract}: {reason}{f' ({times} deliveries)' if times > 1 else ''}")
    if quiet:
        return
    output.line(
        f"{done.at:%Y-%m-%d %H:%M}Z, SLOs: {done.slos}, new cycles: {done.new_cycles}, "
        f"changed: {len(done.changes)}, still open: {done.open}"
    )
