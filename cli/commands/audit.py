"""dq cycles audit"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import PATHS
from dq.dataquality.delivery.replay import Audit
from dq.operations import audit
from dq.operations.runtime.context import here

_DRAWN = 50


def command(
    paths: list[Path] = PATHS,
    as_of: str = typer.Option(
        None, "--as-of", help="Compare the rows of this instant, such as 2026-05-01T06:00:00Z."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Compute all deliveries again from the contracts, as they are and as Git knows they were, and compare.

    Each row names the contract's text that promised it by its hash. What that text gives (due, breach,
    partitions) must be what the row says, and no delivery that it gives may lack a row.

    Exit codes: 0 the rows agree, 1 they do not, 3 something could not be read, or some rows, or none, be
    compared.

    Example: dq cycles audit registry
    """
    places = paths or [Path()]
    world = here(as_of, places)
    outcome = audit.run(world, world.store(), places)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        _describe(outcome.rows)
    if outcome.is_empty:
        output.note("dq: the store holds no delivery of these contracts. Is it the one of 'dq watch'?")
    raise typer.Exit(outcome.exit_code)


def _describe(rows: Audit) -> None:
    for wrong in rows.wrong[:_DRAWN]:
        due = f"{wrong.due_at:%Y-%m-%d %H:%M}Z"
        output.line(f"  {output.mark(False)} {wrong.key[0]}/{wrong.key[2]} due {due}: {wrong.what}")
    for (contract, hashed), times in Counter(
        (kept.cycle.contract, kept.contract_hash[:12]) for kept in rows.unproven
    ).items():
        why = f"no text of hash {hashed}… is here or in Git" if hashed else "an older dq kept no hash"
        output.line(f"  {output.mark(None)} {contract}: {times} not compared: {why}")
    output.line(
        f"deliveries that agree: {rows.agreeing}, wrong: {len(rows.wrong)}, "
        f"not compared: {len(rows.unproven)}"
    )
