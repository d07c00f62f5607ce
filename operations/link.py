"""`dq.link`: make a table shared by another AWS account readable in this account."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.install import require_extras
from dq.contracts.outcome import DqError, UsageError

if TYPE_CHECKING:
    from dq.registry.aws.lake_link import LinkStep


@dataclass(frozen=True, slots=True)
class LinkOutcome:
    """Missing or applied steps; `problem` is the error of the last step, if any."""

    steps: tuple[LinkStep, ...]
    problem: DqError | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of `dq link`: 3 something was refused or could not be read."""
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
    """Plan the steps to read a shared table in this account, and apply them with `apply`, as `dq link` does.

    `table` is `database.table` in the account `owner`, `principal` the ARN of the reader. `database` and
    `name` are those of the resource link, by default the same; `region` is the owner's, `role_arn` the role
    to assume.

    Raises UsageError for invalid arguments and for the owner's own credentials, and MissingTool without
    boto3.
    """
    shared_database, dot, shared_table = table.partition(".")
    if not (dot and shared_database and shared_table):
        raise UsageError(f"invalid table {table!r}: expected DATABASE.TABLE.", "Use e.g. sales.orders.")
    if not re.fullmatch("[0-9]{12}", owner):
        raise UsageError(f"--owner {owner!r} is not an AWS account ID.", "Use its 12 digits.")
    with require_extras("dq link needs boto3", "aws"):
        from dq.registry.aws.lake_formation import connect_consumer
        from dq.registry.aws.lake_link import LinkTerms
    side, account = connect_consumer(role_arn)
    if account == owner:
        raise UsageError(
            f"the current credentials belong to {owner}, the owner of the table.",
            "Run it with credentials of the consumer's account.",
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
                side.execute(step, terms)
    except DqError as error:
        return LinkOutcome(tuple(steps), error)
    return LinkOutcome(tuple(steps))
