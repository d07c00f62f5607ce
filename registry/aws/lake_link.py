"""The consumer's side of a share: accept it, create a resource link, and grant it to the reader.

Sources: "Accepting and rejecting resource shares" of RAM, "Creating a resource link to a shared Data Catalog
table", "Granting resource link permissions" and "Resource link handling in AWS Glue APIs" of the Lake
Formation guide: DESCRIBE is granted on the link, SELECT on its target, separately. A link has no properties
of its own, so the database of the links has the records of what dq created and granted, in its parameters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from dq.contracts.outcome import DqError
from dq.registry.aws.client import ALREADY_EXISTS, NOT_FOUND, call_ignoring, explained

_ACCEPTED = "ResourceShareInvitationAlreadyAcceptedException"
_DENIED = "AccessDeniedException"
# Error code of AWS when the grant to revoke does not exist.
_NOT_GRANTED = "InvalidInputException"
_RECORD = "dq.link."
# Grants in a record: DESCRIBE on the link; SELECT on the whole target, on a column, on a data filter.
_DESCRIBE, _TABLE, _COLUMN, _FILTER = "describe", "table", "column:", "filter:"
# What UpdateDatabase has to repeat, so that it stays.
_DATABASE_INPUT = ("Name", "Description", "LocationUri", "CreateTableDefaultPermissions", "FederatedDatabase")


class LinkStepKind(StrEnum):
    """Kinds of steps, in the order in which they are done."""

    ACCEPT = "accept the share"
    DATABASE = "create the database"
    LINK = "create the link"
    DESCRIBE = "grant DESCRIBE on the link"
    SELECT = "grant SELECT on the target"
    REVOKE_SELECT = "revoke SELECT on the target"
    REVOKE_DESCRIBE = "revoke DESCRIBE on the link"
    UNLINK = "delete the link"


_REMOVALS = (LinkStepKind.REVOKE_SELECT, LinkStepKind.REVOKE_DESCRIBE, LinkStepKind.UNLINK)


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

    @property
    def target(self) -> str:
        """The shared table, as `owner:database.table`."""
        return f"{self.owner}:{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class LinkStep:
    """One step and its subject.

    `invitation` is the ARN of the invitation to accept; `grants` are granted or revoked, as in a record.
    """

    kind: LinkStepKind
    about: str
    invitation: str = ""
    grants: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{'-' if self.kind in _REMOVALS else '+'} {self.kind} {self.about}"


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """Record of what dq created and granted for a link. `created` is False for a link that was there before.

    `target` is `owner:database.table`, `grants` what dq granted, by reader.
    """

    target: str
    created: bool = False
    grants: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to take back."""
        return not self.created and not self.grants

    def granted(self, principal: str) -> frozenset[str]:
        """Return what dq granted to a reader."""
        return self.grants.get(principal, frozenset())


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """The missing steps for a table. `note` tells why a table is not linked, "" if it is."""

    steps: tuple[LinkStep, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerAccount:
    """The clients of the consumer's account: RAM, Glue and Lake Formation.

    Every method raises ReadError when AWS does not answer or refuses.
    """

    ram: Any
    glue: Any
    lake: Any

    def invitations(self, owner: str) -> list[LinkStep]:
        """Return the steps to accept the owner's pending shares. Within one organization there are none."""
        with explained("list the invitations of RAM"):
            return [
                LinkStep(
                    LinkStepKind.ACCEPT,
                    f"{invitation['resourceShareName']} of {owner}",
                    invitation["resourceShareInvitationArn"],
                )
                for page in self.ram.get_paginator("get_resource_share_invitations").paginate()
                for invitation in page["resourceShareInvitations"]
                if invitation["senderAccountId"] == owner and invitation["status"] == "PENDING"
            ]

    def accept(self, step: LinkStep) -> None:
        """Accept a share; succeeds if it is accepted already."""
        with explained(f"{step.kind} {step.about}"):
            accept = self.ram.accept_resource_share_invitation
            call_ignoring(_ACCEPTED, accept, resourceShareInvitationArn=step.invitation)

    def shared_tables(self, owner: str) -> list[str]:
        """Return the tables that the owner shares with this account, as `database.table`, sorted."""
        tables: set[str] = set()
        request = {"ResourceShareType": "FOREIGN"}
        with explained("list the shared tables"):
            while True:
                answer = self.glue.search_tables(**request)
                tables |= {
                    f"{table['DatabaseName']}.{table['Name']}"
                    for table in answer["TableList"]
                    if table.get("CatalogId") == owner
                }
                if not answer.get("NextToken"):
                    return sorted(tables)
                request["NextToken"] = answer["NextToken"]

    def records(self, database: str) -> dict[str, LinkRecord]:
        """Return the records of dq in a database, by name of the link; empty if it does not exist."""
        return _records(self._database(database))

    def plan(self, terms: LinkTerms, shared: Collection[str] | None = None) -> LinkPlan:
        """Return the missing steps for a table, in order. Read-only.

        `shared` are all tables that the owner shares, as `database.table`. For a table that is not among
        them, and on which Lake Formation shows no grant, the steps remove the link and the grants that dq
        made. With None, only grants on columns are removed. Raises DqError if another table has the
        name of the link.
        """
        database = self._database(terms.link_database)
        record = _record_of(database, terms)
        rows = self._target_rows(terms)
        account, reader = (
            _select_grants(rows, terms.account, onward=True),
            _select_grants(rows, terms.principal),
        )
        granted = record.granted(terms.principal)
        if shared is not None and not account and not reader - granted:
            if f"{terms.database}.{terms.table}" in shared:
                reader_names = f"{terms.account} with the grant option, or with {terms.principal}"
                return LinkPlan((), f"{terms.target} is shared, but not with {reader_names}.")
            note = f"{terms.target} is not shared with {terms.account}."
            return LinkPlan(tuple(_removal(terms, record)), note)
        steps = [] if database is not None else [LinkStep(LinkStepKind.DATABASE, terms.link_database)]
        if self._link_target(terms) is None:
            steps.append(_step(LinkStepKind.LINK, terms))
        if not self._is_described(terms):
            steps.append(_step(LinkStepKind.DESCRIBE, terms, {_DESCRIBE}))
        lacking = account - reader if _TABLE not in reader else frozenset()
        if lacking or not reader:
            steps.append(_step(LinkStepKind.SELECT, terms, lacking))
        excess = (granted & reader) - account
        if excess and _TABLE not in account:
            steps.append(_step(LinkStepKind.REVOKE_SELECT, terms, excess))
        return LinkPlan(tuple(steps))

    def execute(self, step: LinkStep, terms: LinkTerms) -> None:
        """Execute one step and record it. Succeeds if its result exists already.

        A creation is recorded before, a removal after it, so that a kill in between can leave a record
        without its link or grant, but never a link or grant without a record.
        """
        with explained(f"{step.kind} {step.about}"):
            match step.kind:
                case LinkStepKind.ACCEPT:
                    self.accept(step)
                case LinkStepKind.DATABASE:
                    call_ignoring(
                        ALREADY_EXISTS, self.glue.create_database, DatabaseInput={"Name": terms.link_database}
                    )
                case LinkStepKind.LINK:
                    self._record(terms, created=True)
                    table_input = {"Name": terms.link, "TargetTable": _target(terms, link=True)}
                    create = self.glue.create_table
                    call_ignoring(
                        ALREADY_EXISTS, create, DatabaseName=terms.link_database, TableInput=table_input
                    )
                case LinkStepKind.DESCRIBE:
                    self._grant(terms, step.grants)
                case LinkStepKind.SELECT:
                    self._grant(terms, step.grants or self._shared_grants(terms))
                case LinkStepKind.REVOKE_SELECT:
                    self._revoke(
                        terms, step.grants & _select_grants(self._target_rows(terms), terms.principal)
                    )
                    self._record(terms, revoked=step.grants)
                case LinkStepKind.REVOKE_DESCRIBE:
                    self._revoke(terms, step.grants)
                    self._record(terms, revoked=step.grants)
                case LinkStepKind.UNLINK:
                    if self._link_target(terms) is not None:
                        delete = self.glue.delete_table
                        call_ignoring(NOT_FOUND, delete, DatabaseName=terms.link_database, Name=terms.link)
                    self._record(terms, created=False)

    def _shared_grants(self, terms: LinkTerms) -> frozenset[str]:
        """Return what was shared with the account to pass on: columns, if columns were shared."""
        grants = _select_grants(self._target_rows(terms), terms.account, onward=True)
        if not grants:
            raise DqError(
                f"{terms.owner} has not shared {terms.database}.{terms.table} with {terms.account} "
                "with the grant option.",
                "Ask the owner for a subscription of this account, or for a new one if RAM's "
                "offer has expired.",
            )
        return grants

    def _grant(self, terms: LinkTerms, grants: frozenset[str]) -> None:
        self._record(terms, granted=grants)
        for resource, permission in _resources(terms, grants):
            self.lake.grant_permissions(
                Principal=_principal(terms), Resource=resource, Permissions=[permission]
            )

    def _revoke(self, terms: LinkTerms, grants: frozenset[str]) -> None:
        for resource, permission in _resources(terms, grants):
            revoke = self.lake.revoke_permissions
            request = {"Principal": _principal(terms), "Resource": resource, "Permissions": [permission]}
            call_ignoring(_NOT_GRANTED, revoke, **request)

    def _record(
        self,
        terms: LinkTerms,
        *,
        created: bool | None = None,
        granted: frozenset[str] = frozenset(),
        revoked: frozenset[str] = frozenset(),
    ) -> None:
        """Change the record of a link in the parameters of its database; delete it when it is empty."""
        database = self.glue.get_database(Name=terms.link_database)["Database"]
        record = _record_of(database, terms)
        grants = {**record.grants, terms.principal: (record.granted(terms.principal) | granted) - revoked}
        record = replace(
            record,
            created=record.created if created is None else created,
            grants={principal: names for principal, names in grants.items() if names},
        )
        parameters = dict(database.get("Parameters") or {})
        before = parameters.pop(_RECORD + terms.link, None)
        after = None if record.is_empty else _as_text(record)
        if after == before:
            return
        if after is not None:
            parameters[_RECORD + terms.link] = after
        repeated = {key: database[key] for key in _DATABASE_INPUT if database.get(key) is not None}
        self.glue.update_database(
            Name=terms.link_database, DatabaseInput={**repeated, "Parameters": parameters}
        )

    def _database(self, name: str) -> Mapping[str, Any] | None:
        with explained(f"read {name}"):
            answer = call_ignoring(NOT_FOUND, self.glue.get_database, Name=name)
        if answer is None:
            return None
        if answer["Database"].get("TargetDatabase"):
            raise DqError(
                f"database {name} is a link to a database of another account, which cannot contain links.",
                "Choose another --database for the links.",
            )
        return dict(answer["Database"])

    def _link_target(self, terms: LinkTerms) -> Mapping[str, Any] | None:
        """Return the target of the link, or None if there is no table of its name."""
        with explained(f"read {terms.link_database}.{terms.link}"):
            read = self.glue.get_table
            answer = call_ignoring(NOT_FOUND, read, DatabaseName=terms.link_database, Name=terms.link)
        if answer is None:
            return None
        current: Mapping[str, Any] = answer["Table"].get("TargetTable") or {}
        if any(current.get(key) != value for key, value in _target(terms).items()):
            raise DqError(
                f"{terms.link_database}.{terms.link} exists and is not a link to {terms.target}.",
                "Choose another --name for the link.",
            )
        return current

    def _is_described(self, terms: LinkTerms) -> bool:
        on_link = {"DatabaseName": terms.link_database, "Name": terms.link}
        with explained(f"list who may read {terms.link_database}.{terms.link}"):
            rows = permissions(
                self.lake.list_permissions, Principal=_principal(terms), Resource={"Table": on_link}
            )
        return any("DESCRIBE" in row["Permissions"] for row in rows)

    def _target_rows(self, terms: LinkTerms) -> list[dict[str, Any]]:
        """Return the grants on the shared table, its columns and data filters; empty if it is not shared."""

        def listed(**request: Any) -> Any:
            # Without a share, AWS may hide the table or refuse to list it.
            return call_ignoring(_DENIED, self.lake.list_permissions, **request)

        with explained(f"list who may read {terms.target}"):
            return permissions(listed, Resource={"Table": _target(terms)}, IncludeRelated="TRUE")


def permissions(call: Callable[..., Any], **request: Any) -> list[dict[str, Any]]:
    """Return Lake Formation's permissions on a table, of all pages; empty if the table does not exist."""
    rows: list[dict[str, Any]] = []
    while (answer := call_ignoring(NOT_FOUND, call, **request)) is not None:
        rows += answer["PrincipalResourcePermissions"]
        if not answer.get("NextToken"):
            return rows
        request["NextToken"] = answer["NextToken"]
    return []


def _select_grants(
    rows: Sequence[Mapping[str, Any]], principal: str, *, onward: bool = False
) -> frozenset[str]:
    """Return on what a principal has SELECT, as in a record; with `onward`, what it may pass on."""
    grants: set[str] = set()
    for row in rows:
        permitted = row.get("PermissionsWithGrantOption" if onward else "Permissions", ())
        if row["Principal"]["DataLakePrincipalIdentifier"] != principal or not {"SELECT", "ALL"} & set(
            permitted
        ):
            continue
        resource = row["Resource"]
        if "DataCellsFilter" in resource:
            grants.add(_FILTER + resource["DataCellsFilter"]["Name"])
        elif names := resource.get("TableWithColumns", {}).get("ColumnNames"):
            grants |= {_COLUMN + name.lower() for name in names}
        else:
            grants.add(_TABLE)
    if _TABLE in grants:
        return frozenset(grant for grant in grants if not grant.startswith(_COLUMN))
    return frozenset(grants)


def _resources(terms: LinkTerms, grants: Collection[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the resources of Lake Formation that these grants are on, with the permission."""
    if _DESCRIBE in grants:
        yield {"Table": {"DatabaseName": terms.link_database, "Name": terms.link}}, "DESCRIBE"
    if _TABLE in grants:
        yield {"Table": _target(terms)}, "SELECT"
    if columns := _names(grants, _COLUMN):
        yield {"TableWithColumns": {**_target(terms), "ColumnNames": columns}}, "SELECT"
    for name in _names(grants, _FILTER):
        data_filter = {"DatabaseName": terms.database, "TableName": terms.table, "Name": name}
        yield {"DataCellsFilter": {"TableCatalogId": terms.owner, **data_filter}}, "SELECT"


def _names(grants: Collection[str], kind: str) -> list[str]:
    return sorted(grant.removeprefix(kind) for grant in grants if grant.startswith(kind))


def _step(kind: LinkStepKind, terms: LinkTerms, grants: Collection[str] = ()) -> LinkStep:
    """Return a step with its subject: the link or the shared table, the reader, columns and data filters."""
    link = f"{terms.link_database}.{terms.link}"
    if kind in (LinkStepKind.LINK, LinkStepKind.UNLINK):
        return LinkStep(kind, f"{link} to {terms.target}")
    subject = link if _DESCRIBE in grants else f"{terms.database}.{terms.table}"
    names = [*_names(grants, _COLUMN), *(f"filter {name}" for name in _names(grants, _FILTER))]
    listed = f": {', '.join(names)}" if names else ""
    return LinkStep(kind, f"{subject} for {terms.principal}{listed}", grants=frozenset(grants))


def _removal(terms: LinkTerms, record: LinkRecord) -> Iterator[LinkStep]:
    """Yield the steps that take back what dq granted to the reader, and its link after the last reader."""
    granted = record.granted(terms.principal)
    if selected := granted - {_DESCRIBE}:
        yield _step(LinkStepKind.REVOKE_SELECT, terms, selected)
    if _DESCRIBE in granted:
        yield _step(LinkStepKind.REVOKE_DESCRIBE, terms, {_DESCRIBE})
    if record.created and not record.grants.keys() - {terms.principal}:
        yield _step(LinkStepKind.UNLINK, terms)


def _records(database: Mapping[str, Any] | None) -> dict[str, LinkRecord]:
    parameters = (database or {}).get("Parameters") or {}
    texts = {key.removeprefix(_RECORD): text for key, text in parameters.items() if key.startswith(_RECORD)}
    return {link: record for link, text in texts.items() if (record := _as_record(text)) is not None}


def _record_of(database: Mapping[str, Any] | None, terms: LinkTerms) -> LinkRecord:
    """Return the record of a link, empty if there is none or if it is about another table."""
    record = _records(database).get(terms.link)
    return record if record is not None and record.target == terms.target else LinkRecord(terms.target)


def _as_text(record: LinkRecord) -> str:
    grants = {principal: sorted(names) for principal, names in sorted(record.grants.items())}
    return json.dumps({"target": record.target, "created": record.created, "grants": grants})


def _as_record(text: str) -> LinkRecord | None:
    """Return the record of a text, or None if dq did not write it."""
    try:
        raw = json.loads(text)
        grants = {str(principal): frozenset(map(str, names)) for principal, names in raw["grants"].items()}
        return LinkRecord(str(raw["target"]), raw["created"] is True, grants)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _principal(terms: LinkTerms) -> dict[str, str]:
    return {"DataLakePrincipalIdentifier": terms.principal}


def _target(terms: LinkTerms, *, link: bool = False) -> dict[str, str]:
    region = {"Region": terms.region} if link and terms.region else {}
    return {"CatalogId": terms.owner, "DatabaseName": terms.database, "Name": terms.table, **region}
