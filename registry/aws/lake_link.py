"""The consumer's side of a share: accept it, create a resource link, and grant it to the reader.

Sources: "Accepting and rejecting resource shares" of RAM, "Creating a resource link to a shared Data Catalog
table" and "Granting resource link permissions" of the Lake Formation guide: DESCRIBE is granted on the link,
SELECT on its target, separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dq.contracts.outcome import DqError
from dq.registry.aws.client import ALREADY_EXISTS, NOT_FOUND, call_ignoring, explained

_ACCEPTED = "ResourceShareInvitationAlreadyAcceptedException"


class LinkStepKind(StrEnum):
    """Kinds of steps, in the order in which they are done."""

    ACCEPT = "accept the share"
    DATABASE = "create the database"
    LINK = "create the link"
    DESCRIBE = "grant DESCRIBE on the link"
    SELECT = "grant SELECT on the target"


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """The shared table, its link, and the reader.

    `owner` is the account that shares, `account` the consumer's own. `region` is the owner's, "" if the same.
    """

    owner: str
    database: str
    table: str
    account: str
    link_database: str
    link: str
    principal: str
    region: str = ""


@dataclass(frozen=True, slots=True)
class LinkStep:
    """One step and its subject; `invitation` is the ARN of the invitation to accept."""

    kind: LinkStepKind
    about: str
    invitation: str = ""

    def __str__(self) -> str:
        return f"+ {self.kind} {self.about}"


@dataclass(frozen=True, slots=True)
class ConsumerAccount:
    """The clients of the consumer's account: RAM, Glue and Lake Formation."""

    ram: Any
    glue: Any
    lake: Any

    def steps(self, terms: LinkTerms) -> list[LinkStep]:
        """Return the missing steps, in order. Read-only.

        Raises ReadError when AWS does not answer, and DqError if another table has the link's name.
        """
        steps = [
            LinkStep(
                LinkStepKind.ACCEPT,
                f"{invitation['resourceShareName']} of {terms.owner}",
                invitation["resourceShareInvitationArn"],
            )
            for invitation in self._invitations(terms)
        ]
        if not self._has_database(terms):
            steps.append(LinkStep(LinkStepKind.DATABASE, terms.link_database))
        link = f"{terms.link_database}.{terms.link}"
        if not self._is_linked(terms):
            steps.append(
                LinkStep(LinkStepKind.LINK, f"{link} to {terms.owner}:{terms.database}.{terms.table}")
            )
        on_link = {"DatabaseName": terms.link_database, "Name": terms.link}
        if "DESCRIBE" not in self._granted_permissions(on_link, terms.principal):
            steps.append(LinkStep(LinkStepKind.DESCRIBE, f"{link} for {terms.principal}"))
        if "SELECT" not in self._granted_permissions(_target(terms), terms.principal):
            steps.append(
                LinkStep(LinkStepKind.SELECT, f"{terms.database}.{terms.table} for {terms.principal}")
            )
        return steps

    def execute(self, step: LinkStep, terms: LinkTerms) -> None:
        """Execute one step. Succeeds if its result exists already."""
        with explained(f"{step.kind} {step.about}"):
            match step.kind:
                case LinkStepKind.ACCEPT:
                    accept = self.ram.accept_resource_share_invitation
                    call_ignoring(_ACCEPTED, accept, resourceShareInvitationArn=step.invitation)
                case LinkStepKind.DATABASE:
                    call_ignoring(
                        ALREADY_EXISTS, self.glue.create_database, DatabaseInput={"Name": terms.link_database}
                    )
                case LinkStepKind.LINK:
                    table_input = {"Name": terms.link, "TargetTable": _target(terms, link=True)}
                    create = self.glue.create_table
                    call_ignoring(
                        ALREADY_EXISTS, create, DatabaseName=terms.link_database, TableInput=table_input
                    )
                case LinkStepKind.DESCRIBE:
                    on_link = {"DatabaseName": terms.link_database, "Name": terms.link}
                    self._grant({"Table": on_link}, ["DESCRIBE"], terms.principal)
                case LinkStepKind.SELECT:
                    self._select(terms)

    def _select(self, terms: LinkTerms) -> None:
        """Grant SELECT on what was shared with the account: on columns, if columns were shared."""
        columns: set[str] = set()
        for row in self._rows(_target(terms), terms.account):
            if "SELECT" not in row.get("PermissionsWithGrantOption", ()):
                continue
            resource = row["Resource"].get("TableWithColumns", {})
            if not resource.get("ColumnNames"):
                columns.clear()
                self._grant({"Table": _target(terms)}, ["SELECT"], terms.principal)
                return
            columns |= set(resource["ColumnNames"])
        if not columns:
            raise DqError(
                f"{terms.owner} has not shared {terms.database}.{terms.table} with {terms.account} "
                "with the grant option.",
                "Ask the owner for a subscription of this account, or for a new one if RAM's "
                "offer has expired.",
            )
        resource = {**_target(terms), "ColumnNames": sorted(columns)}
        self._grant({"TableWithColumns": resource}, ["SELECT"], terms.principal)

    def _grant(self, resource: Mapping[str, Any], permissions: list[str], principal: str) -> None:
        principal_id = {"DataLakePrincipalIdentifier": principal}
        self.lake.grant_permissions(Principal=principal_id, Resource=dict(resource), Permissions=permissions)

    def _invitations(self, terms: LinkTerms) -> list[dict[str, Any]]:
        """Return the pending invitations of the owner. Within one organization there are none."""
        with explained("list the invitations of RAM"):
            return [
                invitation
                for page in self.ram.get_paginator("get_resource_share_invitations").paginate()
                for invitation in page["resourceShareInvitations"]
                if invitation["senderAccountId"] == terms.owner and invitation["status"] == "PENDING"
            ]

    def _has_database(self, terms: LinkTerms) -> bool:
        with explained(f"read {terms.link_database}"):
            return call_ignoring(NOT_FOUND, self.glue.get_database, Name=terms.link_database) is not None

    def _is_linked(self, terms: LinkTerms) -> bool:
        with explained(f"read {terms.link_database}.{terms.link}"):
            read = self.glue.get_table
            answer = call_ignoring(NOT_FOUND, read, DatabaseName=terms.link_database, Name=terms.link)
        if answer is None:
            return False
        current, target = answer["Table"].get("TargetTable") or {}, _target(terms)
        if any(current.get(key) != value for key, value in target.items()):
            raise DqError(
                f"{terms.link_database}.{terms.link} exists and is not a link to "
                f"{terms.owner}:{terms.database}."
                f"{terms.table}.",
                "Choose another --name for the link.",
            )
        return True

    def _granted_permissions(self, table: Mapping[str, str], principal: str) -> set[str]:
        return {permission for row in self._rows(table, principal) for permission in row["Permissions"]}

    def _rows(self, table: Mapping[str, str], principal: str) -> list[dict[str, Any]]:
        """Return a principal's grants on a table or its columns; empty if the table does not exist."""
        principal_id = {"DataLakePrincipalIdentifier": principal}
        with explained(f"list who may read {table['DatabaseName']}.{table['Name']}"):
            return permissions(
                self.lake.list_permissions, Principal=principal_id, Resource={"Table": dict(table)}
            )


def permissions(call: Callable[..., Any], **request: Any) -> list[dict[str, Any]]:
    """Return Lake Formation's permissions on a table, of all pages; empty if the table does not exist."""
    rows: list[dict[str, Any]] = []
    while (answer := call_ignoring(NOT_FOUND, call, **request)) is not None:
        rows += answer["PrincipalResourcePermissions"]
        if not answer.get("NextToken"):
            return rows
        request["NextToken"] = answer["NextToken"]
    return []


def _target(terms: LinkTerms, *, link: bool = False) -> dict[str, str]:
    region = {"Region": terms.region} if link and terms.region else {}
    return {"CatalogId": terms.owner, "DatabaseName": terms.database, "Name": terms.table, **region}
