"""dq explain"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence

import typer

from dq.cli import output
from dq.dataquality.clauses.coverage import Account, State
from dq.operations.explain import explain


def command(
    what: str = typer.Argument(
        help="The id of a rule, such as cron-invalid, a custom check, or a contract's file."
    ),
    format: output.Format = output.FORMAT,
) -> None:
    """Print the page of a rule or a custom check; of a contract, what becomes of each of its clauses.

    Every clause is enforced by a check, documented only, or not evaluated, and the table says why: nothing
    is skipped in silence.

    Example: dq explain duplicate-property
    """
    outcome = explain(what)
    output.notes(outcome.findings)
    if format is output.Format.JSON:
        output.as_json(outcome.as_json())
    elif outcome.page is not None:
        output.block(outcome.page.text(min(shutil.get_terminal_size((88, 24)).columns, 88)))
    else:
        _describe(outcome.accounts)
    raise typer.Exit(outcome.exit_code)


def _describe(found: Sequence[Account]) -> None:
    rows = [
        (account.state.value, account.property or account.object, account.clause, account.reason)
        for account in found
    ]
    output.table(("state", "about", "clause", "how, or why not"), rows)
    counts = Counter(account.state for account in found)
    said = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    output.line()
    output.line(f"{len(found)} clauses: {said}.")
