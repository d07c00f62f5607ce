"""`dq.link`: a table that another account of AWS shares, made readable in one's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.install import needing
from dq.contracts.outcome import DqError, UsageError

if TYPE_CHECKING:
    from dq.registry.aws.lake_link import LinkStep


@dataclass(frozen=True, slots=True)
class LinkOutcome:
    """What is lacking, or was done; with `problem`, why the last step was refused."""

    steps: tuple[LinkStep, ...]
    problem: DqError | None = None

    @property
    def exit_code(self) -> int:
        """As `dq link` ends: 3 something was refused or could not be read."""
        if self.problem is None:
            return 0
        return 2 if isinstance(self.problem, UsageError) else 3


def link(
    table: str,
    *,
    owner: str,
    principal: str,
    database: str | None = None,
    name: str | None = None,
    region: str = "",
    role_arn: str = "",
    apply: bool = False,
) -> LinkOutcome:
    """What a shared table lacks to be read in this account, and with `apply` do it, as `dq link` does.

    `table` is `database.table` of the account `owner`, `principal` the ARN of who reads it. `database` and
    `name` are the link's, by default the same; `region` is the owner's, `role_arn` the role to take on.

    Raises UsageError for what cannot be understood and for the owner's own credentials, and MissingTool
    without boto3.
    """
    shared_database, dot, shared_table = table.partition(".")
    if not (dot and shared_database and shared_table):
        raise UsageError(f"{table!r} is no database.table.", "Write it as sales.orders.")
    if not re.fullmatch("[0-9]{12}", owner):
        raise UsageError(f"--owner {owner!r} is no account.", "Write its 12 digits.")
    with needing("dq link needs boto3", "aws"):
        from dq.registry.aws.lake_formation import connect_consumer
        from dq.registry.aws.lake_link import LinkTerms
    side, account = connect_consumer(role_arn)
    if account == owner:
        raise UsageError(
            f"These are the credentials of {owner}, which owns the table.",
            "Run it with those of the consumer's account.",
        )
    terms = LinkTerms(
        owner,
        shared_database,
        shared_table,
        account,
        database or shared_database,
        name or shared_table,
        principal,
        region,
    )
    steps: list[LinkStep] = []
    try:
        for step in side.steps(terms):
            steps.append(step)
            if apply:
                side.carry_out(step, terms)
    except DqError as error:
        return LinkOutcome(tuple(steps), error)
    return LinkOutcome(tuple(steps))
