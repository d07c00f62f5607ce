"""dq explain"""

from __future__ import annotations

import inspect
import shutil
from collections import Counter
from pathlib import Path

import typer

from dq.cli.context import note
from dq.cli.terminal import output
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import UsageError
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import Account, State, accounts
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.clauses.plugins import installed, package
from dq.dataquality.clauses.plugins import load as load_check
from dq.dataquality.clauses.preparation import foreseen
from dq.dataquality.model.run_context import Unusable
from dq.operations.registry_files import load
from dq.validators.lint import rules_of
from dq.validators.rule_page import Explained, of_change, of_rule


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
    path = Path(what)
    if not path.exists():
        width = min(shutil.get_terminal_size((88, 24)).columns, 88)
        page = _page(what)
        output.as_json(page.as_dict()) if format is output.Format.JSON else output.block(page.text(width))
        return
    loaded = load([path], note)
    output.notes(loaded.findings)
    neighbours = Neighbours.of(loaded.contracts)
    found = [account for contract in loaded.contracts for account in _accounts(contract, neighbours)]
    if format is output.Format.JSON:
        output.as_json([account.as_dict() for account in found])
    else:
        _describe(found)
    raise typer.Exit(3 if loaded.findings else 0)


def _page(name: str) -> Explained:
    """The page of a rule of the gate, what a rule of changes says, or the page of a custom check."""
    from dq.validators.compat.classified_change import RULES

    if name in RULES:
        return of_change(name, *RULES[name])
    if name not in rules_of() and name in installed():
        return _custom(name)
    return of_rule(rules_of(), name)


def _custom(name: str) -> Explained:
    """The page of a check that a package registers: the docstring of its function."""
    by = ", ".join(package(one) for one in installed()[name])
    try:
        said = inspect.getdoc(load_check(name)) or "It says nothing of itself."
    except Unusable as error:
        raise UsageError(f"{error}.", "Mend or remove the package.") from error
    return Explained(name, "custom check", said, facts=(f"a custom check of {by}",))


def _accounts(contract: Contract, neighbours: Neighbours) -> list[Account]:
    return [
        account
        for one in contract.objects
        for account in accounts(contract, one, foreseen(contract, one, built_in(), neighbours))
    ]


def _describe(found: list[Account]) -> None:
    rows = [
        (account.state.value, account.property or account.object, account.clause, account.reason)
        for account in found
    ]
    output.table(("state", "about", "clause", "how, or why not"), rows)
    counts = Counter(account.state for account in found)
    said = ", ".join(f"{counts[state]} {state.value}" for state in State if counts[state])
    output.line()
    output.line(f"{len(found)} clauses: {said}.")
