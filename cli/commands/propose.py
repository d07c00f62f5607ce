"""dq propose"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import backtest_output, deliveries_output, output
from dq.cli.context import ACCOUNT, ROLE
from dq.contracts.escaping import shell_word
from dq.contracts.outcome import UsageError
from dq.dataquality.propose import LAST
from dq.operations.arrivals import LAST as LAST_ARRIVALS
from dq.operations.deliveries import OBJECTIVE, ProposeDeliveriesRequest, run_proposal
from dq.operations.propose import ProposeRequest, run
from dq.operations.runtime.context import runtime_context


def command(
    contract: Path = typer.Argument(help="Contract file."),
    file: Path = typer.Option(
        None, "--output", "-o", help="Output file, may be the contract itself (default: stdout)."
    ),
    last: int = typer.Option(
        None,
        "--last",
        min=1,
        help=f"Number of newest partitions to profile (default: {LAST}; with --deliveries {LAST_ARRIVALS}).",
    ),
    object: str = typer.Option(None, "--object", help="Only this object."),
    server: str = typer.Option(None, "--server", help="Server to use if the contract has more than one."),
    deliveries: bool = typer.Option(
        False, "--deliveries", help="Propose delivery terms from past arrivals instead of rules."
    ),
    zone: list[str] = typer.Option([], "--zone", help="With --deliveries: preferred time zone, repeatable."),
    holidays: list[str] = typer.Option(
        [], "--holidays", help="With --deliveries: public holidays to try, e.g. DE-BY, repeatable."
    ),
    objective: str = typer.Option(
        None, "--objective", help=f"With --deliveries: share on time to aim at (default: {OBJECTIVE})."
    ),
    catalog: str = typer.Option(
        "",
        "--catalog",
        help="With --deliveries: use the times at which partitions were registered in this catalog: glue.",
    ),
    role_arn: str = ROLE,
    catalog_id: str = ACCOUNT,
    format: output.Format = output.FORMAT,
) -> None:
    """Profile the data and add suggested rules to a contract.

    Every rule has a comment with its evidence. The rest of the file does not change, and existing rules
    are neither changed nor repeated. Review the suggestions: data shows what was, not what is intended.

    With --deliveries, proposes when data is due instead: schedule, time zone, grace and objective, from the
    times at which partitions, commits or files arrived. Needs no Spark. If files were rewritten since,
    --catalog glue uses the times at which the partitions were registered.

    Exit codes: 0 written, or nothing to suggest, 2 invalid options, or Spark or Java is missing, 3 the
    contract or its data could not be read.

    Example: dq propose registry/orders.odcs.yaml --output registry/orders.odcs.yaml
    """
    if deliveries:
        _propose_deliveries(
            ProposeDeliveriesRequest(
                contract,
                file,
                object,
                server,
                tuple(zone),
                tuple(holidays),
                objective or OBJECTIVE,
                last or LAST_ARRIVALS,
                catalog,
                role_arn,
                catalog_id,
            ),
            format,
        )
        return
    only_deliveries = {
        "--zone": zone,
        "--holidays": holidays,
        "--objective": objective,
        "--catalog": catalog,
        "--role-arn": role_arn,
        "--catalog-id": catalog_id,
    }
    for name, value in only_deliveries.items():
        if value:
            raise UsageError(f"{name} needs --deliveries.", "Add --deliveries, or remove the option.")
    last = last or LAST
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


def _propose_deliveries(request: ProposeDeliveriesRequest, format: output.Format) -> None:
    outcome = run_proposal(runtime_context(None, [request.contract]), request)
    if format is output.Format.JSON:
        output.as_json(outcome.as_list())
        return
    if request.output is None:
        output.block(outcome.text.rstrip("\r\n"))
    for proposal in outcome.proposals:
        deliveries_output.describe_proposal(proposal)
    if request.output is not None and outcome.is_changed:
        output.line(f"Wrote {request.output}.")
        output.line("Next: review the terms and their evidence, then run")
        output.line(f"  dq backtest --deliveries {shell_word(str(request.output))}")
