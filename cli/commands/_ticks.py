"""A tick of `dq watch`, for people and for machines."""

from __future__ import annotations

from collections import Counter

from dq.cli.terminal import output
from dq.contracts.schedule import Cycle
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


def delivery_as_dict(cycle: Cycle) -> dict[str, object]:
    """What tells one delivery from all others, for machines."""
    return {
        "contract": cycle.contract,
        "object": cycle.object,
        "slo": cycle.slo,
        "due_at": cycle.due_at.isoformat(),
    }


def as_dict(done: Tick) -> dict[str, object]:
    """The tick for machines."""
    return {
        "at": done.at.isoformat(),
        "slos": done.slos,
        "new_cycles": done.new_cycles,
        "open": done.open,
        "changes": [
            {
                **delivery_as_dict(change.kept.cycle),
                "partitions": [label(partition) for partition in change.kept.cycle.partitions],
                "before": change.kept.status,
                "after": change.after,
                "reason": change.reason,
            }
            for change in done.changes
        ],
        "unknown": [{**delivery_as_dict(one.kept.cycle), "reason": one.reason} for one in done.unknown],
    }
