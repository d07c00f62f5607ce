"""dq propose"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import backtest_output, output
from dq.contracts.escaping import shell_word
from dq.dataquality.propose import LAST
from dq.operations.propose import ProposeRequest, run
from dq.operations.runtime.context import runtime_context


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
    outcome = run(runtime_context(None, [contract]), ProposeRequest(contract, file, last, object, server))
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
        return
    if file is None:
        output.block(outcome.text.rstrip("\r\n"))
    for proposed in outcome.proposals:
        backtest_output.describe_proposals(proposed)
    if file is not None and outcome.is_changed:
        output.line(f"Wrote {file}.")
        output.line("Next: review each rule and its evidence, then run")
        output.line(f"  dq validate {shell_word(str(file))}")
