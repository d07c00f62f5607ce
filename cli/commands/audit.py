"""dq cycles audit"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import PATHS
from dq.dataquality.delivery.replay import Audit
from dq.operations import audit
from dq.operations.runtime.context import runtime_context

_MAX_SHOWN = 50


def command(
    paths: list[Path] = PATHS,
    as_of: str = typer.Option(
        None, "--as-of", help="Compare the deliveries stored at this time, e.g. 2026-05-01T06:00:00Z."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Recompute all deliveries from the contracts, current and past versions in Git, and report differences.

    Each stored delivery refers to the version of the contract that promised it, by hash. Its due time,
    breach time and partitions must match that version, and every delivery the version promises must be
    stored.

    Exit codes: 0 no differences, 1 differences, 3 something could not be read, or some deliveries could
    not be compared.

    Example: dq cycles audit registry
    """
    places = paths or [Path()]
    context = runtime_context(as_of, places)
    outcome = audit.run(context, context.store(), places)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_dict())
    else:
        _describe(outcome.rows)
    if outcome.is_empty:
        output.note("dq: no deliveries of these contracts in the store. Is it the store used by 'dq watch'?")
    raise typer.Exit(outcome.exit_code)


def _describe(rows: Audit) -> None:
    for difference in rows.wrong[:_MAX_SHOWN]:
        due = f"{difference.due_at:%Y-%m-%d %H:%M}Z"
        output.line(
            f"  {output.mark(False)} {difference.key[0]}/{difference.key[2]} due {due}: {difference.problem}"
        )
    for (contract, contract_hash), times in Counter(
        (record.cycle.contract, record.contract_hash[:12]) for record in rows.unproven
    ).items():
        why = (
            f"no version with hash {contract_hash}… in files or Git"
            if contract_hash
            else "no hash stored by an older dq"
        )
        output.line(f"  {output.mark(None)} {contract}: {times} not compared: {why}")
    output.line(
        f"deliveries: matching: {rows.agreeing}, wrong: {len(rows.wrong)}, not compared: {len(rows.unproven)}"
    )
