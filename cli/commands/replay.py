"""dq cycles replay"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import typer

from dq.cli import output
from dq.dataquality.delivery.replay import ReplayedCycle
from dq.operations.audit import replay_stored
from dq.operations.runtime.context import parse_instant, runtime_context

_MAX_SHOWN = 50


def command(
    as_of: str = typer.Option(None, "--as-of", help="Show verdicts at this time, e.g. 2026-05-01T06:00:00Z."),
    contract: str = typer.Option(None, "--contract", help="Only deliveries of this contract, by its key."),
    format: output.Format = output.FORMAT,
) -> None:
    """Recompute delivery verdicts from stored evidence and report differences.

    Every status change of a delivery is stored with its evidence, so the verdicts can be recomputed by
    the same function. With --as-of, shows the verdicts at that time without comparing them.

    Exit codes: 0 no differences, 1 differences, 3 the store is empty, or an older dq stored deliveries
    without evidence.

    Example: dq cycles replay --as-of 2026-05-01T06:00:00Z
    """
    outcome = replay_stored(runtime_context().store(), contract, parse_instant(as_of) if as_of else None)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for replayed in outcome.different[:_MAX_SHOWN]:
            output.line(f"  {output.mark(False)} {_name(replayed)}: {'; '.join(replayed.differences)}")
        if outcome.at is not None:
            _describe(outcome.cycles, outcome.at)
        else:
            summary = f"deliveries recomputed: {len(outcome.cycles)}, different: {len(outcome.different)}"
            output.line(f"{summary}, without evidence (from an older dq): {outcome.unproven}")
    if outcome.is_empty:
        output.note("dq: no deliveries in the store. Is it the store used by 'dq watch'?")
    raise typer.Exit(outcome.exit_code)


def _describe(cycles: Iterable[ReplayedCycle], as_of: datetime) -> None:
    by_slo: dict[str, Counter[str]] = {}
    for replayed in cycles:
        cycle = replayed.record.cycle
        by_slo.setdefault(f"{cycle.contract}/{cycle.slo}", Counter())[replayed.status] += 1
    output.line(f"As of {as_of:%Y-%m-%d %H:%M}Z")
    for name, numbers in by_slo.items():
        output.line(
            f"  {name}: {', '.join(f'{count} {status}' for status, count in sorted(numbers.items()))}"
        )
    if not by_slo:
        output.line("  nothing was due")


def _name(replayed: ReplayedCycle) -> str:
    return (
        f"{replayed.record.cycle.contract}/{replayed.record.cycle.slo} due "
        f"{replayed.record.cycle.due_at:%Y-%m-%d %H:%M}Z"
    )
