"""dq cycles replay"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import typer

from dq.cli import output
from dq.dataquality.delivery.replay import Replayed
from dq.operations.audit import replay_stored
from dq.operations.runtime.context import here, instant

_DRAWN = 50


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
    outcome = replay_stored(here().store(), contract, instant(as_of) if as_of else None)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        for one in outcome.different[:_DRAWN]:
            output.line(f"  {output.mark(False)} {_name(one)}: {'; '.join(one.differences)}")
        if outcome.at is not None:
            _describe(outcome.cycles, outcome.at)
        else:
            said = f"deliveries judged again: {len(outcome.cycles)}, different: {len(outcome.different)}"
            output.line(f"{said}, of an older dq without proof: {outcome.unproven}")
    if outcome.is_empty:
        output.note("dq: the store holds no delivery. Is it the one of 'dq watch'?")
    raise typer.Exit(outcome.exit_code)


def _describe(found: Iterable[Replayed], at: datetime) -> None:
    by_slo: dict[str, Counter[str]] = {}
    for one in found:
        cycle = one.kept.cycle
        by_slo.setdefault(f"{cycle.contract}/{cycle.slo}", Counter())[one.status] += 1
    output.line(f"As of {at:%Y-%m-%d %H:%M}Z")
    for name, numbers in by_slo.items():
        output.line(
            f"  {name}: {', '.join(f'{count} {status}' for status, count in sorted(numbers.items()))}"
        )
    if not by_slo:
        output.line("  nothing was due")


def _name(one: Replayed) -> str:
    return f"{one.kept.cycle.contract}/{one.kept.cycle.slo} due {one.kept.cycle.due_at:%Y-%m-%d %H:%M}Z"
