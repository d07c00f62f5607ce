"""AWS Lake Formation: grants on columns of the tables that dq registers, and tags of columns."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar

from botocore import exceptions as aws
from sqlalchemy import select

from dq.contracts.model import Contract
from dq.contracts.outcome import DqError, UsageError
from dq.contracts.subscriptions import Subscription, covered_objects
from dq.registry.aws.client import (
    ALREADY_EXISTS,
    NOT_FOUND,
    Rate,
    account_of,
    aws_session,
    call_ignoring,
    error_code,
    explained,
    opening,
    rate_limited_client,
)
from dq.registry.aws.glue_requests import Raw, Rule, request_problems
from dq.registry.aws.lake_link import ConsumerAccount, permissions
from dq.registry.catalog import StepKind, StepResult
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, Key, TableSpec, fold_location
from dq.registry.tables import keep_row, lake_grant, lake_tag
from dq.store.engine import Store

# Steps of a plan for Lake Formation: locations, tags and grants.

FILTERED = "*"
"""Placeholder for the columns of a grant on a data filter, which has its own columns."""


@dataclass(frozen=True, slots=True, order=True)
class GrantKey:
    """Identity of a grant: the table, the principal, and the data filter, or ""."""

    database: str
    table: str
    principal: str
    filter: str = ""

    @property
    def table_key(self) -> Key:
        return self.database, self.table

    def __str__(self) -> str:
        through = f" through {self.filter}" if self.filter else ""
        return f"{self.principal} on {self.database}.{self.table}{through}"


@dataclass(frozen=True, slots=True)
class DataFilter:
    """Filter of rows and columns of a table for a grant. Its name follows from both."""

    database: str
    table: str
    name: str
    expression: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisterLocation:
    """Register an S3 prefix with Lake Formation, which reads it with the role."""

    kind: ClassVar = StepKind.REGISTER_LOCATION
    location: str
    role: str

    def __str__(self) -> str:
        return f"+ location {self.location}, read with {self.role}"


@dataclass(frozen=True, slots=True)
class DefineTag:
    """Create a tag with these values, or add them to it."""

    kind: ClassVar = StepKind.DEFINE_TAG
    key: str
    values: tuple[str, ...]
    new: bool

    def __str__(self) -> str:
        return f"+ {'tag' if self.new else 'values of tag'} {self.key}: {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class _ColumnTag:
    table_key: Key
    key: str
    value: str
    columns: tuple[str, ...]


class TagColumns(_ColumnTag):
    """Set the value of a tag on columns of a table, replacing the previous value."""

    __slots__ = ()
    kind: ClassVar = StepKind.TAG_COLUMNS

    def __str__(self) -> str:
        return f"~ {'.'.join(self.table_key)}: {self.key}={self.value} on {', '.join(self.columns)}"


class UntagColumns(_ColumnTag):
    """Remove a value of a tag from columns."""

    __slots__ = ()
    kind: ClassVar = StepKind.UNTAG_COLUMNS

    def __str__(self) -> str:
        return f"- {'.'.join(self.table_key)}: {self.key}={self.value} off {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class CreateFilter:
    """Create the data filter of a grant; no other grant uses it."""

    kind: ClassVar = StepKind.CREATE_FILTER
    filter: DataFilter

    def __str__(self) -> str:
        data_filter = self.filter
        return (
            f"+ filter {data_filter.name} of {data_filter.database}.{data_filter.table}: "
            f"{data_filter.expression}"
        )


@dataclass(frozen=True, slots=True)
class DropFilter:
    """Delete the data filter of a revoked grant."""

    kind: ClassVar = StepKind.DROP_FILTER
    filter: DataFilter
    key: GrantKey

    def __str__(self) -> str:
        return f"- filter {self.filter.name} of {self.filter.database}.{self.filter.table}"


@dataclass(frozen=True, slots=True)
class GrantSelect:
    """Grant SELECT on columns to a principal. `files` are the subscriptions that require it, and `origins`
    the same with the commits behind them.
    """

    kind: ClassVar = StepKind.GRANT_SELECT
    key: GrantKey
    columns: tuple[str, ...]
    files: tuple[str, ...]
    origins: tuple[str, ...] = ()

    def __str__(self) -> str:
        sources = "; ".join(self.origins or self.files)
        return f"+ SELECT for {self.key}: {_column_names(self.columns)} ({sources})"


@dataclass(frozen=True, slots=True)
class RevokeSelect:
    """Revoke SELECT on columns that dq granted to a principal, for a `reason`."""

    kind: ClassVar = StepKind.REVOKE_SELECT
    key: GrantKey
    columns: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"- SELECT for {self.key}: {_column_names(self.columns)} ({self.reason})"


LakeStep = (
    RegisterLocation
    | DefineTag
    | TagColumns
    | UntagColumns
    | CreateFilter
    | DropFilter
    | GrantSelect
    | RevokeSelect
)


@dataclass(frozen=True, slots=True)
class LakePlan:
    """The steps in order, with notes for the reader.

    `stale` are recorded grants that no longer exist in Lake Formation: only their records are deleted.
    `requested_by` are the subscriptions that require each grant now.
    """

    steps: tuple[LakeStep, ...] = ()
    notes: tuple[str, ...] = ()
    stale: tuple[RevokeSelect, ...] = ()
    requested_by: tuple[tuple[GrantKey, frozenset[str]], ...] = ()


def with_origins(plan: LakePlan, origin: Callable[[str], str]) -> LakePlan:
    """Return the plan with the origin of each grant: a text with the subscription's file and its commit."""
    steps = tuple(
        replace(step, origins=tuple(map(origin, step.files))) if isinstance(step, GrantSelect) else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def _column_names(columns: Iterable[str]) -> str:
    return "the columns of the filter" if tuple(columns) == (FILTERED,) else ", ".join(columns)


# From subscriptions to desired grants, and from classifications to tags of columns.


@dataclass(slots=True)
class DesiredGrants:
    """Grants that subscriptions require: columns and files by key, and data filters by name."""

    columns: dict[GrantKey, set[str]] = field(default_factory=dict)
    files: dict[GrantKey, set[str]] = field(default_factory=dict)
    filters: dict[str, DataFilter] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, key: GrantKey, columns: Iterable[str], file: str) -> None:
        """Add these columns, required by the subscription in `file`."""
        self.columns.setdefault(key, set()).update(columns)
        self.files.setdefault(key, set()).add(file)


def desired_grants(
    subscriptions: Iterable[Subscription],
    contracts: Iterable[Contract],
    tables: Mapping[Key, TableSpec],
    today: date | None = None,
) -> DesiredGrants:
    """Return the grants on these tables that the subscriptions require; with `today`, those active then.

    Subscriptions of one principal are merged. Columns are always listed, so that a column added to the
    contract later is not granted without a request. A subscription without account and principal gets no
    grant.
    """
    desired = DesiredGrants()
    by_identity = {contract.identity: contract for contract in contracts}
    by_object = {
        (spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION), spec.parameter(OBJECT)): spec
        for spec in tables.values()
    }
    for subscription in subscriptions:
        contract = by_identity.get(subscription.identity)
        if contract is None or not (today is None or subscription.is_active(today)):
            continue
        if not subscription.reader:
            desired.notes.append(
                f"{subscription.file} names no account: nothing is granted to {subscription.consumer.team}."
            )
            continue
        for part in covered_objects(subscription, contract):
            spec = by_object.get((contract.id, contract.version, part.object.name))
            if spec is not None and part.fields:
                # The whole column would show fields that were neither requested nor approved.
                fields = ", ".join(part.fields)
                reason = f"only whole columns can be granted, and {fields} is part of one."
                desired.notes.append(f"{subscription.file}: {reason}")
            columns = tuple(name.lower() for name in part.columns)
            if spec is None or not columns:
                continue
            if subscription.row_filter is None:
                desired.add(GrantKey(*spec.key, subscription.reader), columns, subscription.file)
            else:
                expression = _expression(subscription.row_filter, is_expired=today is None)
                if expression is None:
                    desired.notes.append(
                        f"{subscription.file}: its row filter cannot be applied, so nothing is granted."
                    )
                    continue
                data_filter = _data_filter(spec.key, subscription.reader, expression, columns)
                desired.filters[data_filter.name] = data_filter
                desired.add(
                    GrantKey(*spec.key, subscription.reader, data_filter.name), (FILTERED,), subscription.file
                )
    return desired


def _expression(text: str, *, is_expired: bool) -> str | None:
    """Return the filter rendered from its syntax tree, or None if it is rejected. User text is never sent.

    For an expired subscription, a rejected filter is returned as text: earlier versions of dq derived the
    filter's name from it.
    """
    # Imported here because the SQL parser loads slowly and few subscriptions filter rows.
    from dq.contracts.sql.guard import ValidatedSql, validate_row_filter

    guarded = validate_row_filter(text)
    if isinstance(guarded, ValidatedSql):
        return guarded.sql
    return text.strip() if is_expired else None


def _data_filter(table_key: Key, reader: str, expression: str, columns: tuple[str, ...]) -> DataFilter:
    identity = "\0".join((*table_key, reader, expression, *columns))
    return DataFilter(
        *table_key, f"dq_{hashlib.sha256(identity.encode()).hexdigest()[:16]}", expression, columns
    )


def desired_tags(contracts: Iterable[Contract], tables: Mapping[Key, TableSpec]) -> dict[Key, dict[str, str]]:
    """Return the classification of each classified column, in lower case, by table."""
    tags: dict[Key, dict[str, str]] = {}
    by_version = {(contract.id, contract.version): contract for contract in contracts}
    for key, spec in tables.items():
        contract = by_version.get((spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION)))
        schema_object = contract.object(spec.parameter(OBJECT)) if contract is not None else None
        if schema_object is None:
            continue
        tags[key] = {
            prop.column.lower(): " ".join(prop.classification.lower().split())
            for prop in schema_object.properties
            if prop.classification and prop.classification.strip()
        }
    return tags


# Constraints of Lake Formation outside of AWS's model, checked before a request is sent.
#
# Sources: the API reference and "Lake Formation permissions reference" of the developer guide.

_PRINCIPAL = re.compile(
    r"[0-9]{12}|arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[\w+=,.@/-]+"
    r"|arn:aws[a-z-]*:organizations::[0-9]{12}:(organization|ou)/[a-z0-9/-]+",
    re.ASCII,
)
_LOCATION = re.compile(r"arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^*?\s]+)?", re.ASCII)
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+", re.ASCII)
_TAG = re.compile(r"[\w .:*/=+@%-]+")
_MAX_VALUES = 50

# Resource -> permissions that may be granted on it.
MATRIX = {
    "Database": {"ALL", "ALTER", "CREATE_TABLE", "DESCRIBE", "DROP"},
    "Table": {"ALL", "ALTER", "DELETE", "DESCRIBE", "DROP", "INSERT", "SELECT"},
    "TableWithColumns": {"SELECT"},
    "DataCellsFilter": {"SELECT"},
    "DataLocation": {"DATA_LOCATION_ACCESS"},
}


def refuse(operation: Any, params: Raw) -> None:
    """Raise UsageError, with all problems, for a request that Lake Formation would reject."""
    problems = request_problems(operation, params, RULES)
    if problems:
        raise UsageError(
            f"Lake Formation would reject this {operation.name}: {'; '.join(problems)}.",
            "Nothing was sent; fix the subscription, the contract or the setting.",
        )


def _permissions(params: Raw) -> Iterator[str]:
    principal = (params.get("Principal") or {}).get("DataLakePrincipalIdentifier", "")
    if not _PRINCIPAL.fullmatch(principal):
        yield f"Principal: {principal!r} is not an account, role, user or organization"
    resource = params.get("Resource") or {}
    if len(resource) != 1:
        yield "Resource: exactly one is required"
    requested = {*(params.get("Permissions") or ()), *(params.get("PermissionsWithGrantOption") or ())}
    if not requested:
        yield "Permissions: none"
    for kind, inner in resource.items():
        unsupported = sorted(requested - MATRIX.get(kind, set()))
        if unsupported:
            yield f"Permissions: {', '.join(unsupported)} cannot be granted on {kind}"
        if kind == "TableWithColumns":
            yield from _columns(inner)


def _columns(inner: Raw) -> Iterator[str]:
    names, wildcard = inner.get("ColumnNames"), inner.get("ColumnWildcard")
    if (names is None) == (wildcard is None):
        yield "TableWithColumns: either ColumnNames or ColumnWildcard"
    if names is not None and (not names or len(set(names)) != len(names)):
        yield "ColumnNames: empty, or a duplicate column"


def _location(params: Raw) -> Iterator[str]:
    if not _LOCATION.fullmatch(params.get("ResourceArn", "")):
        yield f"ResourceArn: {params.get('ResourceArn')!r} is not an S3 bucket or prefix"
    if params.get("UseServiceLinkedRole"):
        yield "UseServiceLinkedRole: its policy grows with every location; set a role"
    elif not _ROLE.fullmatch(params.get("RoleArn", "")):
        yield f"RoleArn: {params.get('RoleArn')!r} is not a role"


def _tag(params: Raw) -> Iterator[str]:
    values = [*(params.get("TagValues") or ()), *(params.get("TagValuesToAdd") or ())]
    for text in (params.get("TagKey", ""), *values):
        if not _TAG.fullmatch(text) or text != text.lower():
            yield f"{text!r} is not a tag: use lower case letters, digits, spaces and _ . : * / = + - @ %"
    if not values or len(values) > _MAX_VALUES:
        yield f"{len(values)} values, but AWS allows 1 to {_MAX_VALUES} at once"


def _assignment(params: Raw) -> Iterator[str]:
    yield from _columns((params.get("Resource") or {}).get("TableWithColumns") or {})
    for tag in params.get("LFTags") or ():
        if len(tag.get("TagValues") or ()) != 1:
            yield f"LFTags: a column must have one value of {tag.get('TagKey')!r}"


def _filter(params: Raw) -> Iterator[str]:
    data = params.get("TableData") or {}
    yield from _columns(data)
    if "FilterExpression" not in (data.get("RowFilter") or {}):
        yield "RowFilter: no FilterExpression"
    if not re.fullmatch(r"[0-9]{12}", data.get("TableCatalogId", "")):
        yield f"TableCatalogId: {data.get('TableCatalogId')!r} is not an account ID"


# Operation -> rule for constraints that AWS's model does not have.
RULES: dict[str, Rule] = {
    "GrantPermissions": _permissions,
    "RevokePermissions": _permissions,
    "RegisterResource": _location,
    "CreateLFTag": _tag,
    "UpdateLFTag": _tag,
    "AddLFTagsToResource": _assignment,
    "RemoveLFTagsFromResource": _assignment,
    "CreateDataCellsFilter": _filter,
}


# The client: reads grants, tags and locations, and executes steps.

RATES = {"read": Rate(5, 20), "write": Rate(2, 10)}
EVERYONE = "IAM_ALLOWED_PRINCIPALS"
_ATTEMPTS = 5
_BACKOFF_SECONDS = 0.5
# Concurrent grants on one resource.
_CONFLICT = "ConcurrentModificationException"
# Error code of AWS when the grant to revoke does not exist.
_NOT_GRANTED = "InvalidInputException"


@dataclass(frozen=True, slots=True)
class LiveGrants:
    """SELECT grants on a table. `unrestricted` are principals with a grant on all columns."""

    columns: Mapping[GrantKey, frozenset[str]] = field(default_factory=dict)
    unrestricted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LakeFormation:
    """One account's Lake Formation. `pause` waits between attempts after a concurrent grant.

    Every method raises ReadError when AWS does not answer or rejects a request, UsageError for an invalid
    request.
    """

    client: Any
    account: str
    catalog: Mapping[str, str]
    pause: Callable[[float], None] = time.sleep

    def grants(self, table_key: Key) -> LiveGrants:
        """Return the grants on a table; empty if it does not exist."""
        database, table = table_key
        columns: dict[GrantKey, set[str]] = {}
        unrestricted: set[str] = set()
        resource = {"Table": {"DatabaseName": database, "Name": table, **self.catalog}}
        with explained(f"list who may read {database}.{table}"):
            rows = permissions(self.client.list_permissions, Resource=resource, **self.catalog)
        for row in rows:
            if "SELECT" not in row["Permissions"] and "ALL" not in row["Permissions"]:
                continue
            principal, granted_on = row["Principal"]["DataLakePrincipalIdentifier"], row["Resource"]
            key = GrantKey(database, table, principal)
            if "DataCellsFilter" in granted_on:
                key = GrantKey(database, table, principal, granted_on["DataCellsFilter"]["Name"])
                columns[key] = {FILTERED}
            elif names := granted_on.get("TableWithColumns", {}).get("ColumnNames"):
                columns.setdefault(key, set()).update(name.lower() for name in names)
            else:
                unrestricted.add(principal)
        return LiveGrants({key: frozenset(names) for key, names in columns.items()}, frozenset(unrestricted))

    def locations(self) -> list[str]:
        """Return the registered prefixes, as `s3://bucket/prefix`."""
        locations: list[str] = []
        request: dict[str, Any] = {}
        with explained("list the locations of Lake Formation"):
            while True:
                answer = self.client.list_resources(**request)
                locations += (
                    "s3://" + info["ResourceArn"].split(":::", 1)[-1] for info in answer["ResourceInfoList"]
                )
                if not answer.get("NextToken"):
                    return locations
                request = {"NextToken": answer["NextToken"]}

    def tag_values(self, key: str) -> list[str] | None:
        """Return the values of a tag, or None if it is not defined."""
        with explained(f"read the tag {key}"):
            answer = call_ignoring(NOT_FOUND, self.client.get_lf_tag, TagKey=key, **self.catalog)
        return None if answer is None else list(answer["TagValues"])

    def database_tags(self, database: str) -> dict[str, str]:
        """Return the tags of a database, of several values the first; empty if it does not exist."""
        resource = {"Database": {"Name": database, **self.catalog}}
        with explained(f"read the tags of {database}"):
            request = {"Resource": resource, **self.catalog}
            answer = call_ignoring(NOT_FOUND, self.client.get_resource_lf_tags, **request) or {}
        tags = answer.get("LFTagOnDatabase", ())
        return {tag["TagKey"]: tag["TagValues"][0] for tag in tags if tag.get("TagValues")}

    def column_tags(self, table_key: Key, key: str) -> dict[str, str]:
        """Return the tag's value of each column, without values inherited from the table.

        Empty if the table does not exist.
        """
        database, table = table_key
        resource = {"Table": {"DatabaseName": database, "Name": table, **self.catalog}}
        with explained(f"read the tags of {database}.{table}"):
            request = {"Resource": resource, "ShowAssignedLFTags": True, **self.catalog}
            answer = call_ignoring(NOT_FOUND, self.client.get_resource_lf_tags, **request)
        return {
            column["Name"].lower(): tag["TagValues"][0]
            for column in (answer or {}).get("LFTagsOnColumns", ())
            for tag in column.get("LFTags", ())
            if tag["TagKey"] == key and tag.get("TagValues")
        }

    def execute(self, step: LakeStep) -> None:
        """Execute one step. Succeeds if its result exists already."""
        with explained(f"do '{step}'"):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._do(step)
                except aws.ClientError as error:
                    if error_code(error) != _CONFLICT or attempt == _ATTEMPTS:
                        raise
                    self.pause(_BACKOFF_SECONDS * attempt * random.uniform(0.5, 1.5))
                else:
                    return

    def _do(self, step: LakeStep) -> None:
        match step:
            case GrantSelect(key, columns):
                self.client.grant_permissions(**self._permission(key, columns))
            case RevokeSelect(key, columns):
                call_ignoring(_NOT_GRANTED, self.client.revoke_permissions, **self._permission(key, columns))
            case CreateFilter(data_filter):
                data = {
                    **self._filter(data_filter.database, data_filter.table, data_filter.name),
                    "RowFilter": {"FilterExpression": data_filter.expression},
                    "ColumnNames": list(data_filter.columns),
                }
                call_ignoring(ALREADY_EXISTS, self.client.create_data_cells_filter, TableData=data)
            case DropFilter(data_filter, _):
                filter_key = self._filter(data_filter.database, data_filter.table, data_filter.name)
                call_ignoring(NOT_FOUND, self.client.delete_data_cells_filter, **filter_key)
            case RegisterLocation(location, role):
                arn = f"arn:aws:s3:::{location.removeprefix('s3://').rstrip('/')}"
                # Hybrid mode: principals that have not opted in keep their IAM access.
                request = {"ResourceArn": arn, "RoleArn": role, "HybridAccessEnabled": True}
                call_ignoring(ALREADY_EXISTS, self.client.register_resource, **request)
            case DefineTag(key, values, new):
                if new:
                    request = {"TagKey": key, "TagValues": list(values), **self.catalog}
                    self.client.create_lf_tag(**request)
                else:
                    self.client.update_lf_tag(TagKey=key, TagValuesToAdd=list(values), **self.catalog)
            case TagColumns():
                self._tags(self.client.add_lf_tags_to_resource, step)
            case UntagColumns():
                self._tags(self.client.remove_lf_tags_from_resource, step)

    def _tags(self, call: Callable[..., Any], step: TagColumns | UntagColumns) -> None:
        resource = {"TableWithColumns": self._columns(step.table_key, step.columns)}
        tags = [{"TagKey": step.key, "TagValues": [step.value], **self.catalog}]
        failures = call(Resource=resource, LFTags=tags, **self.catalog).get("Failures") or []
        if failures:
            # The call returns 200 in spite of failures.
            error = failures[0].get("Error", {})
            raise DqError(
                f"Lake Formation did not do '{step}': {error.get('ErrorCode')}: {error.get('ErrorMessage')}",
                "Fix that, then run again.",
            )

    def _permission(self, key: GrantKey, columns: tuple[str, ...]) -> dict[str, Any]:
        if key.filter:
            resource: dict[str, Any] = {"DataCellsFilter": self._filter(*key.table_key, key.filter)}
        else:
            resource = {"TableWithColumns": self._columns(key.table_key, columns)}
        request = {
            "Principal": {"DataLakePrincipalIdentifier": key.principal},
            "Resource": resource,
            "Permissions": ["SELECT"],
            **self.catalog,
        }
        # An account needs the grant option to grant access to its readers.
        return request | ({"PermissionsWithGrantOption": ["SELECT"]} if key.principal.isdecimal() else {})

    def _columns(self, table_key: Key, columns: tuple[str, ...]) -> dict[str, Any]:
        return {
            "DatabaseName": table_key[0],
            "Name": table_key[1],
            "ColumnNames": sorted(columns),
            **self.catalog,
        }

    def _filter(self, database: str, table: str, name: str) -> dict[str, Any]:
        return {"TableCatalogId": self.account, "DatabaseName": database, "TableName": table, "Name": name}


def connect_lake(
    role_arn: str = "", catalog_id: str = "", account: str = "", *, rates: Mapping[str, Rate] = RATES
) -> LakeFormation:
    """Open Lake Formation, as `role_arn` if set; `account` is the account of the catalog.

    Raises UsageError without a region or credentials, ReadError when AWS does not answer.
    """
    with opening("Lake Formation"):
        client = rate_limited_client(aws_session(role_arn, {"lakeformation": refuse}), "lakeformation", rates)
    return LakeFormation(client, account, {"CatalogId": catalog_id} if catalog_id else {})


def connect_consumer(role_arn: str = "") -> tuple[ConsumerAccount, str]:
    """Return the clients of the own account, as `role_arn` if set, and the account's id.

    Raises UsageError without a region or credentials, ReadError when AWS does not answer.
    """
    with opening("Lake Formation, Glue and RAM"):
        session = aws_session(role_arn, {"lakeformation": refuse})
        ram, glue, lake = (
            rate_limited_client(session, service, {}) for service in ("ram", "glue", "lakeformation")
        )
        return ConsumerAccount(ram, glue, lake), account_of(session)


# Grants and tags made by dq, recorded in the store: only these are ever revoked.
#
# A grant is recorded before it is made, and its record deleted after it was revoked, so that a kill in
# between can leave a record without a grant, but never a grant without a record.


@dataclass(frozen=True, slots=True)
class RecordedGrant:
    """The columns that dq granted, the subscriptions that require them, and the data filter, if any."""

    columns: frozenset[str]
    files: frozenset[str]
    filter: DataFilter | None = None


@dataclass(frozen=True, slots=True)
class LakeState:
    """Recorded grants and tags of dq in the catalog with this id."""

    store: Store
    catalog: str

    def grants(self) -> dict[GrantKey, RecordedGrant]:
        """Return all recorded grants."""
        with self.store.read() as connection:
            rows = connection.execute(select(lake_grant).filter_by(catalog=self.catalog)).all()
        grants = {}
        for row in rows:
            key = GrantKey(row.database_name, row.name, row.principal, row.filter)
            data_filter = None
            if row.filter:
                data_filter = DataFilter(
                    *key.table_key, row.filter, row.expression, tuple(row.filter_columns)
                )
            grants[key] = RecordedGrant(frozenset(row.columns), frozenset(row.files), data_filter)
        return grants

    def record_grant(self, key: GrantKey, grant: RecordedGrant | None) -> None:
        """Record a grant; None or a grant without columns deletes the record."""
        row_key = self._table_columns(key.table_key) | {"principal": key.principal, "filter": key.filter}
        values = None
        if grant is not None and grant.columns:
            values = {
                "columns": sorted(grant.columns),
                "files": sorted(grant.files),
                "expression": grant.filter.expression if grant.filter else "",
                "filter_columns": list(grant.filter.columns) if grant.filter else [],
            }
        keep_row(self.store, lake_grant, row_key, values)

    def tags(self, key: str) -> dict[Key, frozenset[str]]:
        """Return the columns with this tag set by dq, by table."""
        with self.store.read() as connection:
            rows = connection.execute(select(lake_tag).filter_by(catalog=self.catalog, tag=key)).all()
        return {(row.database_name, row.name): frozenset(row.columns) for row in rows}

    def record_tags(self, key: str, table_key: Key, columns: Collection[str]) -> None:
        """Record the columns of a table with this tag set by dq."""
        values = {"columns": sorted(columns)} if columns else None
        keep_row(self.store, lake_tag, self._table_columns(table_key) | {"tag": key}, values)

    def _table_columns(self, table_key: Key) -> dict[str, str]:
        return {"catalog": self.catalog, "database_name": table_key[0], "name": table_key[1]}


# Plans the changes that bring Lake Formation in line with contracts and subscriptions. Read-only.


@dataclass(frozen=True, slots=True)
class LakeTerms:
    """Desired state of Lake Formation; parts that are None are not managed.

    `table_locations` are the locations of this run's tables, by key: grants on other tables are ignored.
    `unreadable` are subscription files, and folders of them, that cannot be read now: their grants stay.
    `expired` are the grants of expired subscriptions. `outdated` are tables whose change was refused or
    failed: no new grants are made on them.
    """

    table_locations: Mapping[Key, str]
    locations: tuple[str, ...] | None = None
    role: str = ""
    tag: str = ""
    tags: Mapping[Key, Mapping[str, str]] | None = None
    grants: DesiredGrants | None = None
    expired: DesiredGrants = field(default_factory=DesiredGrants)
    unreadable: frozenset[str] = frozenset()
    outdated: frozenset[Key] = frozenset()


def plan_lake(lake: LakeFormation, state: LakeState, terms: LakeTerms) -> LakePlan:
    """Return the steps in order: locations, tags, grants, revocations.

    Raises ReadError when AWS does not answer.
    """
    steps: list[LakeStep] = []
    messages: list[str] = []
    grants = LakePlan()
    if terms.locations is not None:
        registered = lake.locations()
        steps += _locations(registered, terms)
        for (database, table), location in sorted(terms.table_locations.items()):
            if location.startswith("s3://") and not _covered(location, [*registered, *terms.locations]):
                messages.append(
                    f"{database}.{table} is at {location}, which is not in a location of Lake Formation."
                )
    if terms.tags is not None:
        steps += _tags(lake, state, terms.tag, terms.tags)
    if terms.grants is not None:
        grants = _grants(lake, state.grants(), terms, terms.grants)
        messages += terms.grants.notes
    unique_messages = dict.fromkeys([*messages, *grants.notes])
    return LakePlan((*steps, *grants.steps), tuple(unique_messages), grants.stale, grants.requested_by)


def _locations(registered: list[str], terms: LakeTerms) -> Iterator[RegisterLocation]:
    known_locations = list(registered)
    # Shorter first, because it covers longer ones.
    for location in sorted({fold_location(prefix) for prefix in terms.locations or ()}, key=len):
        if not _covered(location, known_locations):
            known_locations.append(location)
            yield RegisterLocation(location, terms.role)


def _covered(location: str, locations: list[str]) -> bool:
    prefix = fold_location(location) + "/"
    return any(prefix.startswith(fold_location(other) + "/") for other in locations)


def _tags(
    lake: LakeFormation, state: LakeState, tag: str, desired: Mapping[Key, Mapping[str, str]]
) -> Iterator[LakeStep]:
    values = {value for columns in desired.values() for value in columns.values()}
    defined = lake.tag_values(tag) if values else None
    missing = tuple(sorted(values - set(defined or ())))
    if missing:
        yield DefineTag(tag, missing, new=defined is None)
    recorded = state.tags(tag)
    removed: list[UntagColumns] = []
    for table_key, columns in sorted(desired.items()):
        managed = recorded.get(table_key, frozenset())
        if not columns and not managed:
            continue
        live = lake.column_tags(table_key, tag)
        lacking = {column: value for column, value in columns.items() if live.get(column) != value}
        obsolete = {column: live[column] for column in (managed - columns.keys()) & live.keys()}
        yield from (TagColumns(table_key, tag, *part) for part in _by_value(lacking))
        removed += (UntagColumns(table_key, tag, *part) for part in _by_value(obsolete))
    yield from removed


def _by_value(columns: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Group the columns by their value of a tag."""
    for value in sorted(set(columns.values())):
        yield value, tuple(sorted(column for column, own in columns.items() if own == value))


def _grants(
    lake: LakeFormation, recorded: Mapping[GrantKey, RecordedGrant], terms: LakeTerms, desired: DesiredGrants
) -> LakePlan:
    managed = {key: grant for key, grant in recorded.items() if key.table_key in terms.table_locations}
    keys = desired.columns.keys() | managed.keys()
    live = {
        table_key: lake.grants(table_key)
        for table_key in sorted({key.table_key for key in keys | terms.expired.columns.keys()})
    }
    lacking = {key: _lacking(key, live, desired) for key in keys}
    # Keep old grants of principals whose new grants have to wait for the table.
    pending = {
        (key.table_key, key.principal) for key in keys if lacking[key] and key.table_key in terms.outdated
    }
    grant_steps: list[LakeStep] = []
    revoke_steps: list[LakeStep] = []
    notes: list[str] = []
    stale: list[RevokeSelect] = []
    for key in sorted(keys):
        current = live[key.table_key].columns.get(key, frozenset())
        requested = frozenset(desired.columns.get(key, ()))
        managed_columns = managed[key].columns if key in managed else frozenset()
        if lacking[key] and key.table_key in terms.outdated:
            notes.append(f"{key}: nothing is granted until the table matches its contract.")
        elif lacking[key]:
            if key.filter:
                grant_steps.append(CreateFilter(desired.filters[key.filter]))
            grant_steps.append(GrantSelect(key, lacking[key], tuple(sorted(desired.files[key]))))
        if requested & current - managed_columns:
            notes.append(f"{key}: SELECT was granted by someone else; dq will not revoke it.")
        unreadable = _unreadable_files(managed[key].files, terms) if key in managed else []
        if unreadable or (key.table_key, key.principal) in pending:
            if managed_columns - requested:
                reason = (
                    f"{unreadable[0]} cannot be parsed"
                    if unreadable
                    else "its replacement is not granted yet"
                )
                notes.append(f"{key}: it is kept, because {reason}.")
            continue
        reason = _revoke_reason(key, terms)
        if revoked := tuple(sorted((managed_columns - requested) & current)):
            revoke_steps.append(RevokeSelect(key, revoked, reason))
        data_filter = managed[key].filter if key in managed else None
        if data_filter is not None and not requested:
            revoke_steps.append(DropFilter(data_filter, key))
        elif stale_columns := tuple(sorted((managed_columns - requested) - current)):
            stale.append(RevokeSelect(key, stale_columns, reason))
    notes += _excess_access(live, managed, terms, desired)
    # Unreadable subscriptions stay recorded as requesters, also for later runs.
    requested_by = tuple(
        (key, frozenset((*files, *_unreadable_files(managed[key].files if key in managed else (), terms))))
        for key, files in sorted(desired.files.items())
    )
    return LakePlan((*grant_steps, *revoke_steps), tuple(notes), tuple(stale), requested_by)


def _lacking(key: GrantKey, live: Mapping[Key, LiveGrants], desired: DesiredGrants) -> tuple[str, ...]:
    return tuple(sorted(desired.columns.get(key, set()) - live[key.table_key].columns.get(key, frozenset())))


def _unreadable_files(files: Iterable[str], terms: LakeTerms) -> list[str]:
    """Return the files that are unreadable or in an unreadable folder."""
    return sorted(
        file
        for file in files
        if any(file == path or file.startswith(f"{path}/") for path in terms.unreadable)
    )


def _revoke_reason(key: GrantKey, terms: LakeTerms) -> str:
    files = sorted(terms.expired.files.get(key, ()))
    return f"{files[0]} has ended" if files else "no subscription requests it"


def _excess_access(
    live: Mapping[Key, LiveGrants],
    managed: Mapping[GrantKey, RecordedGrant],
    terms: LakeTerms,
    desired: DesiredGrants,
) -> Iterator[str]:
    """Return notes about grants that exceed the subscriptions and were not made by dq."""
    for table_key, grants in sorted(live.items()):
        if EVERYONE in grants.unrestricted:
            yield f"{'.'.join(table_key)}: {EVERYONE} has access, so only IAM decides who can read it."
        readers = {key.principal for key in desired.columns if key.table_key == table_key}
        for principal in sorted(grants.unrestricted & readers):
            yield f"{'.'.join(table_key)}: someone else granted {principal} all columns."
    for key, columns in sorted(terms.expired.columns.items()):
        managed_columns = managed[key].columns if key in managed else frozenset()
        requested = desired.columns.get(key, set())
        if (columns - requested - managed_columns) & live[key.table_key].columns.get(key, frozenset()):
            file = sorted(terms.expired.files[key])[0]
            yield f"{key}: {file} has ended, and dq has no record of this grant. Revoke it manually."


# Executes a plan for Lake Formation: in order, idempotent, resumable after a kill at any point.


def apply_lake(lake: LakeFormation, state: LakeState, plan: LakePlan) -> list[StepResult[LakeStep]]:
    """Execute the steps in order and return one result per step.

    A grant needs its filter, and a filter is deleted after its grant. Otherwise a failed step does not stop
    the others, so that no expired grant survives because of another failure. Grants are recorded before they
    are made; records are deleted after the revocation.
    """
    run = _LakeRun(lake, state, plan)
    failed: dict[str, DqError] = {}
    results: list[StepResult[LakeStep]] = []
    for step in plan.steps:
        filter_name = _filter_name(step)
        error: DqError | None = None
        if filter_name in failed:
            error = DqError(
                f"'{step}' was not attempted, because an earlier step failed.", failed[filter_name].hint
            )
        else:
            try:
                run.execute(step)
            except DqError as failure:
                error = failure
                if filter_name:
                    failed[filter_name] = failure
        results.append(StepResult(step, error))
    return results


def _filter_name(step: LakeStep) -> str:
    """Return the name of the step's data filter, which identifies table and reader too, or ""."""
    match step:
        case GrantSelect(key) | RevokeSelect(key):
            return key.filter
        case CreateFilter(data_filter) | DropFilter(data_filter):
            return data_filter.name
    return ""


class _LakeRun:
    """Execution of a plan, with the grants recorded so far."""

    def __init__(self, lake: LakeFormation, state: LakeState, plan: LakePlan) -> None:
        self.lake, self.state, self.recorded = lake, state, state.grants()
        self.filters = {
            step.filter.name: step.filter for step in plan.steps if isinstance(step, CreateFilter)
        }
        self.requested_by = dict(plan.requested_by)
        for step in plan.stale:
            self._forget(step)
        for key, files in plan.requested_by:
            if key in self.recorded:
                self._record(key, replace(self.recorded[key], files=files))

    def execute(self, step: LakeStep) -> None:
        """Execute one step and record it."""
        match step:
            case GrantSelect(key, columns):
                before = self.recorded.get(key, RecordedGrant(frozenset(), frozenset()))
                data_filter = self.filters.get(key.filter) or before.filter
                self._record(
                    key, RecordedGrant(before.columns | set(columns), self.requested_by[key], data_filter)
                )
            case TagColumns():
                self.state.record_tags(step.key, step.table_key, self._tagged(step) | set(step.columns))
        self.lake.execute(step)
        match step:
            case RevokeSelect(key, columns):
                # AWS reports a missing grant as an invalid request, so verify the result.
                if self.lake.grants(key.table_key).columns.get(key, frozenset()) & set(columns):
                    message = f"Lake Formation still has what '{step}' revokes."
                    raise DqError(message, "Run again, or revoke by hand.")
                # A grant with a data filter stays recorded until the filter is deleted too.
                if not key.filter:
                    self._forget(step)
            case DropFilter(_, key):
                self.state.record_grant(key, None)
            case UntagColumns():
                self.state.record_tags(step.key, step.table_key, self._tagged(step) - set(step.columns))

    def _tagged(self, step: TagColumns | UntagColumns) -> frozenset[str]:
        return self.state.tags(step.key).get(step.table_key, frozenset())

    def _record(self, key: GrantKey, grant: RecordedGrant) -> None:
        if grant != self.recorded.get(key):
            self.state.record_grant(key, grant)
            self.recorded[key] = grant

    def _forget(self, step: RevokeSelect) -> None:
        if step.key in self.recorded:
            before = self.recorded[step.key]
            self._record(step.key, replace(before, columns=before.columns - set(step.columns)))
