"""dq audit"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from dq.cli.context import here
from dq.cli.options import PATHS
from dq.cli.terminal import output
from dq.dataquality.delivery.history import audit
from dq.dataquality.delivery.history.replay import keys
from dq.operations.registry_files import load, promises_of_all_times

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

    Example: dq audit registry
    """
    places = paths or [Path()]
    world = here(as_of, places)
    loaded = load(places, world.note)
    output.notes(loaded.findings)
    promises = promises_of_all_times(loaded.contracts)
    here_now = {contract.key for contract in loaded.contracts} | {key[0] for _, key in promises}
    with world.store().read() as tx:
        found = audit.audit(tx, [key for key in keys(tx) if key[0] in here_now], promises, world.as_of)
    if format is output.Format.JSON:
        wrong = [
            {"contract": one.key[0], "object": one.key[1], "slo": one.key[2],
             "due_at": one.due_at.isoformat(), "what": one.what}
            for one in found.wrong
        ]  # fmt: skip
        output.as_json({"agreeing": found.agreeing, "unproven": len(found.unproven), "wrong": wrong})
    else:
        for one in found.wrong[:_DRAWN]:
            due = f"{one.due_at:%Y-%m-%d %H:%M}Z"
            output.line(f"  {output.mark(False)} {one.key[0]}/{one.key[2]} due {due}: {one.what}")
        for (contract, hashed), times in Counter(
            (one.cycle.contract, one.contract_hash[:12]) for one in found.unproven
        ).items():
            why = f"no text of hash {hashed}… is here or in Git" if hashed else "an older dq kept no hash"
            output.line(f"  {output.mark(None)} {contract}: {times} not compared: {why}")
        output.line(
            f"deliveries that agree: {found.agreeing}, wrong: {len(found.wrong)}, "
            f"not compared: {len(found.unproven)}"
        )
    nothing = not (found.agreeing or found.wrong or found.unproven)
    if nothing:
        output.note("dq: the store holds no delivery of these contracts. Is it the one of 'dq watch'?")
    # What nobody could compare is not fine.
    raise typer.Exit(1 if found.wrong else 3 if nothing or found.unproven or loaded.findings else 0)
