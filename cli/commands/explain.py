"""dq explain"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence

import typer

from dq.cli import output
from dq.dataquality.clauses.coverage import ClauseCoverage, EnforcementState
from dq.operations.explain import explain


def command(
    what: str = typer.Argument(help="Rule id, e.g. cron-invalid, custom check, or contract file."),
    format: output.Format = output.FORMAT,
) -> None:
    """Explain a rule or check, or show how each clause of a contract is enforced.

    For a contract, lists every clause as enforced, documented only or not evaluated, with the reason.

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


def _describe(accounts: Sequence[ClauseCoverage]) -> None:
    rows = [
        (account.state.value, account.property or account.object, account.clause, account.reason)
        for account in accounts
    ]
    output.table(("state", "object or column", "clause", "reason"), rows)
    counts = Counter(account.state for account in accounts)
    summary = ", ".join(f"{counts[state]} {state.value}" for state in EnforcementState if counts[state])
    output.line()
    output.line(f"{len(accounts)} clauses: {summary}.")
