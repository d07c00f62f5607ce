"""The consumer's side of a share, in the consumer's own account: accepted, linked, and given to who reads.

Sources: "Accepting and rejecting resource shares" of RAM, "Creating a resource link to a shared Data Catalog
table" and "Granting resource link permissions" of the Lake Formation guide: DESCRIBE is of the link, SELECT
of its target, and each is granted by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dq.contracts.outcome import DqError
from dq.registry.aws.client import ABSENT, THERE, explained, unless

_ACCEPTED = "ResourceShareInvitationAlreadyAcceptedException"


class LinkStepKind(StrEnum):
    """What is done, in this order."""

    ACCEPT = "accept the share"
    DATABASE = "create the database"
    LINK = "create the link"
    DESCRIBE = "grant DESCRIBE on the link"
    SELECT = "grant SELECT on the target"


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """The table that was shared, where it is linked, and who reads it there.

    `owner` is the account that shares, `account` one's own. `region` is the owner's, "" for the same.
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
    """One step, and what it is about; `invitation` is the ARN of the one to accept."""

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
        """What is missing, in order. Writes nothing.

        Raises Unreadable when AWS does not answer, and DqError where something else has the link's name.
        """
        found = [
            LinkStep(
                LinkStepKind.ACCEPT,
                f"{one['resourceShareName']} of {terms.owner}",
                one["resourceShareInvitationArn"],
            )
            for one in self._invitations(terms)
        ]
        if not self._has_database(terms):
            found.append(LinkStep(LinkStepKind.DATABASE, terms.link_database))
        link = f"{terms.link_database}.{terms.link}"
        if not self._linked(terms):
            found.append(
                LinkStep(LinkStepKind.LINK, f"{link} to {terms.owner}:{terms.database}.{terms.table}")
            )
        on_link = {"DatabaseName": terms.link_database, "Name": terms.link}
        if "DESCRIBE" not in self._granted(on_link, terms.principal):
            found.append(LinkStep(LinkStepKind.DESCRIBE, f"{link} for {terms.principal}"))
        if "SELECT" not in self._granted(_target(terms), terms.principal):
            found.append(
                LinkStep(LinkStepKind.SELECT, f"{terms.database}.{terms.table} for {terms.principal}")
            )
        return found

    def carry_out(self, step: LinkStep, terms: LinkTerms) -> None:
        """Does one step; what is so already is no error."""
        with explained(f"{step.kind} {step.about}"):
            match step.kind:
                case LinkStepKind.ACCEPT:
                    accept = self.ram.accept_resource_share_invitation
                    unless(_ACCEPTED, accept, resourceShareInvitationArn=step.invitation)
                case LinkStepKind.DATABASE:
                    unless(THERE, self.glue.create_database, DatabaseInput={"Name": terms.link_database})
                case LinkStepKind.LINK:
                    made = {"Name": terms.link, "TargetTable": _target(terms, link=True)}
                    create = self.glue.create_table
                    unless(THERE, create, DatabaseName=terms.link_database, TableInput=made)
                case LinkStepKind.DESCRIBE:
                    on_link = {"DatabaseName": terms.link_database, "Name": terms.link}
                    self._grant({"Table": on_link}, ["DESCRIBE"], terms.principal)
                case LinkStepKind.SELECT:
                    self._select(terms)

    def _select(self, terms: LinkTerms) -> None:
        """Gives on what the account got: columns where it got columns."""
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
                f"{terms.owner} has not shared {terms.database}.{terms.table} with {terms.account} so that "
                "it may be given on.",
                "Ask the owner for a subscription of this account, and anew where RAM's offer has expired.",
            )
        resource = {**_target(terms), "ColumnNames": sorted(columns)}
        self._grant({"TableWithColumns": resource}, ["SELECT"], terms.principal)

    def _grant(self, resource: Mapping[str, Any], permissions: list[str], principal: str) -> None:
        who = {"DataLakePrincipalIdentifier": principal}
        self.lake.grant_permissions(Principal=who, Resource=dict(resource), Permissions=permissions)

    def _invitations(self, terms: LinkTerms) -> list[dict[str, Any]]:
        """What the owner has offered and nobody has answered; inside of one organization there is none."""
        with explained("list the invitations of RAM"):
            return [
                one
                for page in self.ram.get_paginator("get_resource_share_invitations").paginate()
                for one in page["resourceShareInvitations"]
                if one["senderAccountId"] == terms.owner and one["status"] == "PENDING"
            ]

    def _has_database(self, terms: LinkTerms) -> bool:
        with explained(f"read {terms.link_database}"):
            return unless(ABSENT, self.glue.get_database, Name=terms.link_database) is not None

    def _linked(self, terms: LinkTerms) -> bool:
        with explained(f"read {terms.link_database}.{terms.link}"):
            read = self.glue.get_table
            found = unless(ABSENT, read, DatabaseName=terms.link_database, Name=terms.link)
        if found is None:
            return False
        there, wanted = found["Table"].get("TargetTable") or {}, _target(terms)
        if any(there.get(key) != value for key, value in wanted.items()):
            raise DqError(
                f"{terms.link_database}.{terms.link} is there, and no link to {terms.owner}:{terms.database}."
                f"{terms.table}.",
                "Choose another --name for the link.",
            )
        return True

    def _granted(self, table: Mapping[str, str], principal: str) -> set[str]:
        return {one for row in self._rows(table, principal) for one in row["Permissions"]}

    def _rows(self, table: Mapping[str, str], principal: str) -> list[dict[str, Any]]:
        """What a principal was granted on a table, or on columns of it; none where there is no such table."""
        who = {"DataLakePrincipalIdentifier": principal}
        with explained(f"list who may read {table['DatabaseName']}.{table['Name']}"):
            return permissions(self.lake.list_permissions, Principal=who, Resource={"Table": dict(table)})


def permissions(call: Callable[..., Any], **asked: Any) -> list[dict[str, Any]]:
    """What Lake Formation lists of a table, page by page; nothing where there is no such table."""
    rows: list[dict[str, Any]] = []
    while (answer := unless(ABSENT, call, **asked)) is not None:
        rows += answer["PrincipalResourcePermissions"]
        if not answer.get("NextToken"):
            return rows
        asked["NextToken"] = answer["NextToken"]
    return []


def _target(terms: LinkTerms, *, link: bool = False) -> dict[str, str]:
    region = {"Region": terms.region} if link and terms.region else {}
    return {"CatalogId": terms.owner, "DatabaseName": terms.database, "Name": terms.table, **region}
