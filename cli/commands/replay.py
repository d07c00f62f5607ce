"""dq replay"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import typer

from dq.cli.context import here
from dq.cli.terminal import output
from dq.contracts.shared.outcome import UsageError
from dq.contracts.shared.units import iso
from dq.dataquality.delivery.history import replay
from dq.dataquality.delivery.history.replay import Replayed, keys
from dq.operations.runtime.context import instant
from dq.operations.watch import delivery_as_dict

_DRAWN = 50


def command(
    as_of: str = typer.Option(
        None, "--as-of", help="How it stood at this instant, such as 2026-05-01T06:00:00Z."
    ),
    contract: str = typer.Option(
        None, "--contract", help="Only the deliveries of this contract, by its key."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Judge all deliveries again from the stored evidence, and compare with what is stored.

    Every change of a delivery's status was kept with what it rested on, so the verdicts can be derived again
    by the same function. With --as-of, as it stood at an instant, which nothing is compared with.

    Exit codes: 0 the store says the same, 1 it does not, 3 some of it has no proof (of an older dq), or it
    holds nothing.

    Example: dq replay --as-of 2026-05-01T06:00:00Z
    """
    world = here()
    at = instant(as_of) if as_of else None
    with world.store().read() as tx:
        wanted = [key for key in keys(tx) if contract in (None, key[0])]
        if contract is not None and not wanted:
            raise UsageError(
                f"no delivery of {contract!r} is stored.", "Name a contract as 'dq status' does."
            )
        found = list(replay.replay(tx, wanted, at))
    wrong = [one for one in found if one.differences]
    unproven = sum(not one.proven for one in found)
    if format is output.Format.JSON:
        shown = found if at is not None else wrong
        output.as_json(
            {
                "cycles": len(found),
                "unproven": unproven,
                "different": len(wrong),
                "shown": [*map(_row, shown)],
            }
        )
    else:
        for one in wrong[:_DRAWN]:
            output.line(f"  {output.mark(False)} {_name(one)}: {'; '.join(one.differences)}")
        if at is not None:
            _describe(found, at)
        else:
            said = f"deliveries judged again: {len(found)}, different: {len(wrong)}"
            output.line(f"{said}, of an older dq without proof: {unproven}")
    if not found and at is None:
        output.note("dq: the store holds no delivery. Is it the one of 'dq watch'?")
    # What nobody could derive is not fine.
    raise typer.Exit(1 if wrong else 3 if unproven or (not found and at is None) else 0)


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


def _row(one: Replayed) -> dict[str, object]:
    return {
        **delivery_as_dict(one.kept.cycle),
        "status": one.status,
        "delivered_at": iso(one.delivered_at),
        "reason": one.reason,
        "proven": one.proven,
        "differences": list(one.differences),
    }
