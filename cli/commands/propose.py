"""dq propose"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from dq.cli import backtest_output, output
from dq.contracts.access import files
from dq.contracts.escaping import shell_word
from dq.contracts.outcome import UsageError
from dq.dataquality.propose import LAST
from dq.operations import propose
from dq.operations.check import formats, objects
from dq.operations.propose import PastRows
from dq.operations.registry_files import load, only
from dq.operations.runtime.context import here
from dq.operations.runtime.spark import session


def command(
    contract: Path = typer.Argument(help="Contract file."),
    file: Path = typer.Option(
        None, "--output", "-o", help="Output file, may be the contract itself (default: stdout)."
    ),
    last: int = typer.Option(LAST, "--last", min=1, help="Number of newest partitions to profile."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    format: output.Format = output.FORMAT,
) -> None:
    """Profile the data and add suggested rules to a contract.

    Every rule has a comment with its evidence. The rest of the file does not change, and existing rules
    are neither changed nor repeated. Review the suggestions: data shows what was, not what is intended.

    Exit codes: 0 written, or nothing to suggest, 2 invalid options, or Spark or Java is missing, 3 the
    contract or its data could not be read.

    Example: dq propose registry/orders.odcs.yaml --output registry/orders.odcs.yaml
    """
    world = here(None, [contract])
    loaded = load([contract], world.note)
    known = only(loaded)
    itself = file is not None and file.exists() and file.samefile(contract)
    if file is not None and os.path.lexists(file) and not itself:
        raise UsageError(f"{file} is there already.", "Name another --output, or the contract itself.")
    pairs = objects(loaded, object)
    wanted = PastRows(world, session(world, formats=formats(world, pairs, server)), last, server)
    before, data, made = propose.with_rules(wanted, contract, known, [one for _, one in pairs])
    if file is not None and itself and data != before:
        files.replace(files.named(contract), before, data)
    elif file is not None and not itself:
        files.write(file, data)
    if format is output.Format.JSON:
        output.as_json([one.as_dict() for one in made])
        return
    if file is None:
        output.block(data.decode("utf-8-sig").rstrip("\r\n"))
    for one in made:
        backtest_output.describe_proposals(one)
    if file is not None and data != before:
        output.line(f"Wrote {file}.")
        output.line("Next: read each rule and its evidence, then run")
        output.line(f"  dq validate {shell_word(str(file))}")
