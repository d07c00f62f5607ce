"""`dq.link`: make tables shared by another AWS account readable in this account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.install import require_extras
from dq.contracts.outcome import DqError, UsageError, pluralize
from dq.registry.consumer_stack import LinkScope, template

if TYPE_CHECKING:
    from dq.registry.aws.lake_link import ConsumerAccount, LinkStep, LinkTerms

_ACCOUNT = re.compile("[0-9]{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LinkOutcome:
    """Missing or applied steps. `notes` name tables that are not linked and why.

    `problems` are errors: the first step of a table that fails ends the steps of this table.
    """

    steps: tuple[LinkStep, ...]
    problems: tuple[DqError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq link`: 2 for invalid settings, 3 something was refused or could not be read."""
        return min((2 if isinstance(problem, UsageError) else 3 for problem in self.problems), default=0)

    def as_dict(self) -> dict[str, object]:
        """Return the outcome as JSON values: what the function of `dq link --emit-stack` returns and logs."""
        return {
            "steps": [{"action": step.kind.value, "subject": step.about} for step in self.steps],
            "problems": [{"message": problem.message, "hint": problem.hint} for problem in self.problems],
            "notes": list(self.notes),
        }


def link(
    *tables: str,
    owner: str,
    principal: str,
    database: str | None = None,
    name: str | None = None,
    region: str = "",
    role_arn: str = "",
    apply: bool = False,
    prune: bool = False,
) -> LinkOutcome:
    """Plan the steps to read shared tables in this account, and apply them with `apply`, as `dq link` does.

    `tables` are `database.table` in the account `owner`; without any, all tables that it shares. `principal`
    is the ARN of the reader. `database` and `name` are those of the resource link, by default the same;
    `region` is the owner's, `role_arn` the role to assume. `prune` takes back the links in `database` that dq
    created, and what it granted, for tables that the owner no longer shares.

    Raises UsageError for invalid arguments and for the owner's own credentials, and MissingTool without
    boto3.
    """
    scope = _scope(tables, owner, principal, database, name, region)
    if scope.database is None and (prune or not tables):
        missing = "with --prune" if prune else "without a table"
        raise UsageError(f"--database is required {missing}.", "Name the database of the links.")
    with require_extras("dq link needs boto3", "aws"):
        from dq.registry.aws.lake_formation import connect_consumer
    side, account = connect_consumer(role_arn)
    if account == owner:
        raise UsageError(
            f"the current credentials belong to {owner}, the owner of the table.",
            "Run it with credentials of the consumer's account.",
        )
    steps: list[LinkStep] = []
    problems: list[DqError] = []
    notes: list[str] = []
    try:
        for step in side.invitations(owner):
            steps.append(step)
            if apply:
                side.accept(step)
        shared = side.shared_tables(owner) if prune or not tables else None
        desired = list(_terms(side, scope, account, shared, prune))
    except DqError as error:
        return LinkOutcome(tuple(steps), (error,))
    if not desired:
        notes.append(f"{owner} shares no tables with {account}.")
    for terms in desired:
        try:
            plan = side.plan(terms, shared)
            notes += [plan.note] if plan.note else []
            for step in plan.steps:
                steps.append(step)
                if apply:
                    side.execute(step, terms)
        except DqError as error:
            problems.append(error)
    return LinkOutcome(tuple(steps), tuple(problems), tuple(notes))


def link_stack(
    *tables: str,
    owner: str,
    principal: str,
    database: str | None = None,
    name: str | None = None,
    region: str = "",
) -> dict[str, object]:
    """Return the CloudFormation template of a function that links and prunes like `link`. Calls no AWS.

    Raises UsageError for invalid arguments.
    """
    return template(_scope(tables, owner, principal, database, name, region))


def _scope(
    tables: Sequence[str], owner: str, principal: str, database: str | None, name: str | None, region: str
) -> LinkScope:
    """Return the checked arguments, with names in lower case, as Glue stores them."""
    for table in tables:
        shared_database, dot, shared_table = table.partition(".")
        if not (dot and shared_database and shared_table):
            raise UsageError(f"invalid table {table!r}: expected DATABASE.TABLE.", "Use e.g. sales.orders.")
    if not _ACCOUNT.fullmatch(owner):
        raise UsageError(f"--owner {owner!r} is not an AWS account ID.", "Use its 12 digits.")
    if name is not None and len(tables) != 1:
        raise UsageError(
            f"--name names one link, and {pluralize(len(tables), 'table')} were passed.",
            "Link each table with a name of its own separately.",
        )
    lower = tuple(dict.fromkeys(table.lower() for table in tables))
    return LinkScope(
        owner,
        principal,
        database.lower() if database else None,
        lower,
        name.lower() if name else None,
        region,
    )


def _terms(
    side: ConsumerAccount, scope: LinkScope, account: str, shared: Sequence[str] | None, prune: bool
) -> Iterator[LinkTerms]:
    """Yield the terms of each requested table, then with `prune` of those that were linked for the reader."""
    from dq.registry.aws.lake_link import LinkTerms

    records = side.records(scope.database) if scope.database else {}
    links = {record.target: link for link, record in records.items()}
    tables = list(scope.tables or shared or ())
    if prune:
        for record in records.values():
            owner, _, table = record.target.partition(":")
            is_for_reader = scope.principal in record.grants or not record.grants
            if owner == scope.owner and is_for_reader and table not in {*tables, *(shared or ())}:
                tables.append(table)
    for table in tables:
        shared_database, _, shared_table = table.partition(".")
        yield LinkTerms(
            scope.owner,
            shared_database,
            shared_table,
            account,
            scope.database or shared_database,
            scope.name or links.get(f"{scope.owner}:{table}") or shared_table,
            scope.principal,
            scope.region,
        )
