"""dq backtest"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli.checking import backtested
from dq.cli.checking.backtested import PastRequest, UntestedPast
from dq.cli.checking.selection import formats, objects, with_rules
from dq.cli.loading.contracts import load
from dq.cli.terminal import output
from dq.cli.world.concurrency import at_once
from dq.cli.world.environment import here, processors
from dq.cli.world.spark import session
from dq.contracts.shared.errors import Unreadable
from dq.dataquality.backtest.run import LAST
from dq.dataquality.clauses.foreign_key import Neighbours


def command(
    paths: list[Path] = typer.Argument(
        None, help="Contract files or folders; by default the working folder."
    ),
    last: int = typer.Option(LAST, "--last", min=1, help="How many of the newest partitions are tested."),
    object: str = typer.Option(None, "--object", help="Only this object."),
    rule: list[str] = typer.Option(
        [], "--rule", help="Only the clauses of this check, path, or id or name of a quality rule."
    ),
    server: str = typer.Option(None, "--server", help="The server, where a contract has several."),
    parallel: int = typer.Option(
        None,
        "--parallel",
        min=1,
        help="How many are tested at once; by default by the processors.",
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Say of each rule in which partitions of history it would have failed, on Spark.

    Before a new rule is merged: what would it have said of the last 90 days? Each partition is tested as
    'dq check --partition' would test it. Nothing is kept, and nobody is told. Rules that compare with
    earlier runs compare with the partitions before. Rules about the whole table are not tested, and named.

    Exit codes: 0 no rule would have failed, 1 an error-level rule would have, 2 the options cannot be
    understood or Spark or Java is missing, 3 something could not be tested.

    Example: dq backtest flights.odcs.yaml --last 30 --rule row_count
    """
    places = paths or [Path()]
    world = here(None, places)
    loaded = load(places)
    for finding in loaded.findings:
        output.note(str(finding))
    neighbours = Neighbours.of(loaded.contracts)
    pairs = with_rules(objects(loaded, object), rule, neighbours)
    threads = parallel or at_once(processors())
    spark = session(world, formats=formats(world, pairs, server))
    history = PastRequest(world, spark, neighbours, last, threads, server, tuple(rule))
    done = [backtested.test(history, pair) for pair in pairs]
    for one in done:
        if isinstance(one, UntestedPast):
            output.problem(one.error, f"{one.contract}/{one.object}: ")
    if format is output.Format.JSON:
        broken = [{"contract": None, "object": None, "error": str(finding)} for finding in loaded.findings]
        output.as_json([*broken, *({"error": None, **one.as_dict()} for one in done)])
    else:
        for one in done:
            if not isinstance(one, UntestedPast):
                backtested.describe(one)
    codes = [one.exit_code for one in done] + [Unreadable.exit_code if loaded.findings else 0]
    raise typer.Exit(next((code for code in (3, 1) if code in codes), 0))
