"""AWS Lake Formation: who may read which columns of the tables that dq registers, and how they are tagged."""

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
from dq.contracts.subscriptions import Subscription, covered
from dq.registry.aws.client import (
    ABSENT,
    THERE,
    Rate,
    account_of,
    aws_session,
    code_of,
    explained,
    opening,
    polite,
    unless,
)
from dq.registry.aws.glue_requests import Raw, Rule, refusals
from dq.registry.aws.lake_link import ConsumerAccount, permissions
from dq.registry.catalog import StepKind, StepResult
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, Key, TableSpec, fold_location
from dq.registry.tables import keep_row, lake_grant, lake_tag
from dq.store.engine import Store

# The words of a plan for Lake Formation: locations, tags and grants, each as one step.

FILTERED = "*"
"""In place of columns: a grant on a data filter, which names its columns itself."""


@dataclass(frozen=True, slots=True, order=True)
class GrantKey:
    """What a grant is about: the table, whom it lets read, and the data filter, or "" for none."""

    database: str
    table: str
    principal: str
    filter: str = ""

    @property
    def on(self) -> Key:
        return self.database, self.table

    def __str__(self) -> str:
        through = f" through {self.filter}" if self.filter else ""
        return f"{self.principal} on {self.database}.{self.table}{through}"


@dataclass(frozen=True, slots=True)
class DataFilter:
    """The rows and columns of a table that a grant on it lets see. Its name follows from both."""

    database: str
    table: str
    name: str
    expression: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisterLocation:
    """Gives a prefix in S3 to Lake Formation, which reads it with the role."""

    kind: ClassVar = StepKind.REGISTER_LOCATION
    location: str
    role: str

    def __str__(self) -> str:
        return f"+ location {self.location}, read with {self.role}"


@dataclass(frozen=True, slots=True)
class DefineTag:
    """Makes a tag with these values, or adds them to it."""

    kind: ClassVar = StepKind.DEFINE_TAG
    key: str
    values: tuple[str, ...]
    new: bool

    def __str__(self) -> str:
        return f"+ {'tag' if self.new else 'values of tag'} {self.key}: {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class _ColumnTag:
    on: Key
    key: str
    value: str
    columns: tuple[str, ...]


class TagColumns(_ColumnTag):
    """Gives columns of a table a value of a tag, in place of the value that they had."""

    __slots__ = ()
    kind: ClassVar = StepKind.TAG_COLUMNS

    def __str__(self) -> str:
        return f"~ {'.'.join(self.on)}: {self.key}={self.value} on {', '.join(self.columns)}"


class UntagColumns(_ColumnTag):
    """Takes a value of a tag from columns."""

    __slots__ = ()
    kind: ClassVar = StepKind.UNTAG_COLUMNS

    def __str__(self) -> str:
        return f"- {'.'.join(self.on)}: {self.key}={self.value} off {', '.join(self.columns)}"


@dataclass(frozen=True, slots=True)
class MakeFilter:
    """Makes the filter behind a grant, which has it alone."""

    kind: ClassVar = StepKind.MAKE_FILTER
    filter: DataFilter

    def __str__(self) -> str:
        one = self.filter
        return f"+ filter {one.name} of {one.database}.{one.table}: {one.expression}"


@dataclass(frozen=True, slots=True)
class DropFilter:
    """Removes the filter behind a grant that was taken back."""

    kind: ClassVar = StepKind.DROP_FILTER
    filter: DataFilter
    key: GrantKey

    def __str__(self) -> str:
        return f"- filter {self.filter.name} of {self.filter.database}.{self.filter.table}"


@dataclass(frozen=True, slots=True)
class Give:
    """Lets a principal SELECT columns. `files` are the subscriptions that ask for it."""

    kind: ClassVar = StepKind.GIVE
    key: GrantKey
    columns: tuple[str, ...]
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"+ SELECT for {self.key}: {_named(self.columns)} ({', '.join(self.files)})"


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Takes SELECT of columns from a principal, which dq gave it. `why` no subscription asks for it."""

    kind: ClassVar = StepKind.TAKE_BACK
    key: GrantKey
    columns: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"- SELECT for {self.key}: {_named(self.columns)} ({self.why})"


LakeStep = (
    RegisterLocation | DefineTag | TagColumns | UntagColumns | MakeFilter | DropFilter | Give | TakeBack
)


@dataclass(frozen=True, slots=True)
class LakePlan:
    """What would be done, in order, and what a reader has to know beside it.

    `spent` are notes of grants that are gone already: they are forgotten, and nothing is written for it.
    `asking` are the subscriptions that ask for each grant now.
    """

    steps: tuple[LakeStep, ...] = ()
    notes: tuple[str, ...] = ()
    spent: tuple[TakeBack, ...] = ()
    asking: tuple[tuple[GrantKey, frozenset[str]], ...] = ()


def _named(columns: Iterable[str]) -> str:
    return "what the filter shows" if tuple(columns) == (FILTERED,) else ", ".join(columns)


# From subscriptions to the grants that they ask for, and from classifications to the tags of columns.


@dataclass(slots=True)
class WantedGrants:
    """What subscriptions ask for: columns and asking files by key, and the data filters by their names."""

    columns: dict[GrantKey, set[str]] = field(default_factory=dict)
    files: dict[GrantKey, set[str]] = field(default_factory=dict)
    filters: dict[str, DataFilter] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, key: GrantKey, columns: Iterable[str], file: str) -> None:
        """One more subscription that asks for these columns."""
        self.columns.setdefault(key, set()).update(columns)
        self.files.setdefault(key, set()).add(file)


def wanted_grants(
    subscriptions: Iterable[Subscription],
    contracts: Iterable[Contract],
    tables: Mapping[Key, TableSpec],
    today: date | None = None,
) -> WantedGrants:
    """The grants that the subscriptions ask for, on these tables; with a day, those that hold then.

    Several of one principal are added up. Columns are always named one by one, so that one that is added to
    the contract is given to nobody who has not asked for it. Who names neither account nor principal is
    given nothing.
    """
    made = WantedGrants()
    by_identity = {one.identity: one for one in contracts}
    by_object = {
        (spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION), spec.parameter(OBJECT)): spec
        for spec in tables.values()
    }
    for one in subscriptions:
        contract = by_identity.get(one.identity)
        if contract is None or not (today is None or one.active(today)):
            continue
        if not one.reader:
            made.notes.append(f"{one.file} names no account: nothing is given to {one.consumer.team}.")
            continue
        for part in covered(one, contract):
            spec = by_object.get((contract.id, contract.version, part.object.name))
            if spec is not None and part.fields:
                # The whole column would show what nobody asked for and nobody approved.
                named = ", ".join(part.fields)
                said = f"only whole columns can be given, and {named} is a part of one."
                made.notes.append(f"{one.file}: {said}")
            columns = tuple(name.lower() for name in part.columns)
            if spec is None or not columns:
                continue
            if one.row_filter is None:
                made.add(GrantKey(*spec.key, one.reader), columns, one.file)
            else:
                expression = _expression(one.row_filter, ended=today is None)
                if expression is None:
                    made.notes.append(f"{one.file}: its row filter cannot be applied, so nothing is given.")
                    continue
                made_filter = _data_filter(spec.key, one.reader, expression, columns)
                made.filters[made_filter.name] = made_filter
                made.add(GrantKey(*spec.key, one.reader, made_filter.name), (FILTERED,), one.file)
    return made


def _expression(text: str, *, ended: bool) -> str | None:
    """The filter as Lake Formation is to read it, written anew: nothing of the stranger's text is sent.

    None where it is refused; of what has ended, the text by which an earlier dq named its filter.
    """
    # The parser of SQL takes time to start, and few subscriptions filter rows.
    from dq.contracts.sql.guard import Guarded, guarded_filter

    guarded = guarded_filter(text)
    if isinstance(guarded, Guarded):
        return guarded.sql
    return text.strip() if ended else None


def _data_filter(on: Key, reader: str, expression: str, columns: tuple[str, ...]) -> DataFilter:
    told = "\0".join((*on, reader, expression, *columns))
    return DataFilter(*on, f"dq_{hashlib.sha256(told.encode()).hexdigest()[:16]}", expression, columns)


def wanted_tags(contracts: Iterable[Contract], tables: Mapping[Key, TableSpec]) -> dict[Key, dict[str, str]]:
    """The classification of each classified column, in lower case, by table."""
    found: dict[Key, dict[str, str]] = {}
    by_version = {(one.id, one.version): one for one in contracts}
    for key, spec in tables.items():
        contract = by_version.get((spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION)))
        one = contract.object(spec.parameter(OBJECT)) if contract is not None else None
        if one is None:
            continue
        found[key] = {
            prop.column.lower(): " ".join(prop.classification.lower().split())
            for prop in one.properties
            if prop.classification and prop.classification.strip()
        }
    return found


# What Lake Formation refuses, or misunderstands, beside its own model: looked at before a request leaves.
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
_MOST_VALUES = 50

# Resource -> what may be granted on it.
MATRIX = {
    "Database": {"ALL", "ALTER", "CREATE_TABLE", "DESCRIBE", "DROP"},
    "Table": {"ALL", "ALTER", "DELETE", "DESCRIBE", "DROP", "INSERT", "SELECT"},
    "TableWithColumns": {"SELECT"},
    "DataCellsFilter": {"SELECT"},
    "DataLocation": {"DATA_LOCATION_ACCESS"},
}


def refuse(operation: Any, params: Raw) -> None:
    """Raises UsageError, with all that is wrong, for a request that Lake Formation would refuse."""
    wrong = refusals(operation, params, RULES)
    if wrong:
        raise UsageError(
            f"Lake Formation would not take this {operation.name}: {'; '.join(wrong)}.",
            "Nothing was sent; mend the subscription, the contract or the setting.",
        )


def _permissions(params: Raw) -> Iterator[str]:
    principal = (params.get("Principal") or {}).get("DataLakePrincipalIdentifier", "")
    if not _PRINCIPAL.fullmatch(principal):
        yield f"Principal: {principal!r} is no account, role, user or organization"
    resource = params.get("Resource") or {}
    if len(resource) != 1:
        yield "Resource: it must be exactly one"
    asked = {*(params.get("Permissions") or ()), *(params.get("PermissionsWithGrantOption") or ())}
    if not asked:
        yield "Permissions: none"
    for kind, inner in resource.items():
        strange = sorted(asked - MATRIX.get(kind, set()))
        if strange:
            yield f"Permissions: {', '.join(strange)} cannot be granted on {kind}"
        if kind == "TableWithColumns":
            yield from _columns(inner)


def _columns(inner: Raw) -> Iterator[str]:
    names, wildcard = inner.get("ColumnNames"), inner.get("ColumnWildcard")
    if (names is None) == (wildcard is None):
        yield "TableWithColumns: either ColumnNames or ColumnWildcard"
    if names is not None and (not names or len(set(names)) != len(names)):
        yield "ColumnNames: empty, or a column twice"


def _location(params: Raw) -> Iterator[str]:
    if not _LOCATION.fullmatch(params.get("ResourceArn", "")):
        yield f"ResourceArn: {params.get('ResourceArn')!r} is no bucket or prefix of S3"
    if params.get("UseServiceLinkedRole"):
        yield "UseServiceLinkedRole: its policy grows with every location; name a role"
    elif not _ROLE.fullmatch(params.get("RoleArn", "")):
        yield f"RoleArn: {params.get('RoleArn')!r} is no role"


def _tag(params: Raw) -> Iterator[str]:
    values = [*(params.get("TagValues") or ()), *(params.get("TagValuesToAdd") or ())]
    for text in (params.get("TagKey", ""), *values):
        if not _TAG.fullmatch(text) or text != text.lower():
            yield f"{text!r} is no tag: lower case letters, digits, spaces and _ . : * / = + - @ %"
    if not values or len(values) > _MOST_VALUES:
        yield f"{len(values)} values, where AWS takes 1 to {_MOST_VALUES} at once"


def _assignment(params: Raw) -> Iterator[str]:
    yield from _columns((params.get("Resource") or {}).get("TableWithColumns") or {})
    for tag in params.get("LFTags") or ():
        if len(tag.get("TagValues") or ()) != 1:
            yield f"LFTags: a column has one value of {tag.get('TagKey')!r}"


def _filter(params: Raw) -> Iterator[str]:
    data = params.get("TableData") or {}
    yield from _columns(data)
    if "FilterExpression" not in (data.get("RowFilter") or {}):
        yield "RowFilter: no FilterExpression"
    if not re.fullmatch(r"[0-9]{12}", data.get("TableCatalogId", "")):
        yield f"TableCatalogId: {data.get('TableCatalogId')!r} is no account"


# Operation -> what AWS keeps to itself about its request.
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


# Lake Formation itself: what it has of tables, columns, tags and locations, and each step carried out.

RATES = {"read": Rate(5, 20), "write": Rate(2, 10)}
EVERYBODY = "IAM_ALLOWED_PRINCIPALS"
_TURNS = 5
_TURN_SECONDS = 0.5
# Grants on one resource at the same time.
_MOVED = "ConcurrentModificationException"
# AWS answers so when a grant that is to be taken back is not there.
_NOT_GIVEN = "InvalidInputException"


@dataclass(frozen=True, slots=True)
class LiveGrants:
    """Who may SELECT what of a table. `wide` are principals whose grant names no columns."""

    columns: Mapping[GrantKey, frozenset[str]] = field(default_factory=dict)
    wide: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LakeFormation:
    """One account's Lake Formation. `pause` waits between turns when somebody else grants on the same table.

    Every method raises Unreadable when AWS does not answer or refuses, UsageError for what may not be sent.
    """

    client: Any
    account: str
    catalog: Mapping[str, str]
    pause: Callable[[float], None] = time.sleep

    def grants(self, on: Key) -> LiveGrants:
        """The grants on a table; none where there is no such table."""
        database, table = on
        columns: dict[GrantKey, set[str]] = {}
        wide: set[str] = set()
        resource = {"Table": {"DatabaseName": database, "Name": table, **self.catalog}}
        with explained(f"list who may read {database}.{table}"):
            rows = permissions(self.client.list_permissions, Resource=resource, **self.catalog)
        for row in rows:
            if "SELECT" not in row["Permissions"] and "ALL" not in row["Permissions"]:
                continue
            principal, of = row["Principal"]["DataLakePrincipalIdentifier"], row["Resource"]
            key = GrantKey(database, table, principal)
            if "DataCellsFilter" in of:
                key = GrantKey(database, table, principal, of["DataCellsFilter"]["Name"])
                columns[key] = {FILTERED}
            elif names := of.get("TableWithColumns", {}).get("ColumnNames"):
                columns.setdefault(key, set()).update(name.lower() for name in names)
            else:
                wide.add(principal)
        return LiveGrants({key: frozenset(names) for key, names in columns.items()}, frozenset(wide))

    def locations(self) -> list[str]:
        """The prefixes that are registered, as `s3://bucket/prefix`."""
        found: list[str] = []
        asked: dict[str, Any] = {}
        with explained("list the locations of Lake Formation"):
            while True:
                answer = self.client.list_resources(**asked)
                found += (
                    "s3://" + one["ResourceArn"].split(":::", 1)[-1] for one in answer["ResourceInfoList"]
                )
                if not answer.get("NextToken"):
                    return found
                asked = {"NextToken": answer["NextToken"]}

    def tag_values(self, key: str) -> list[str] | None:
        """The values that a tag may have; None where nobody has defined it."""
        with explained(f"read the tag {key}"):
            found = unless(ABSENT, self.client.get_lf_tag, TagKey=key, **self.catalog)
        return None if found is None else list(found["TagValues"])

    def column_tags(self, on: Key, key: str) -> dict[str, str]:
        """The value of the tag that each column has itself, not from its table; none without the table."""
        database, table = on
        resource = {"Table": {"DatabaseName": database, "Name": table, **self.catalog}}
        with explained(f"read the tags of {database}.{table}"):
            asked = {"Resource": resource, "ShowAssignedLFTags": True, **self.catalog}
            answer = unless(ABSENT, self.client.get_resource_lf_tags, **asked)
        return {
            column["Name"].lower(): tag["TagValues"][0]
            for column in (answer or {}).get("LFTagsOnColumns", ())
            for tag in column.get("LFTags", ())
            if tag["TagKey"] == key and tag.get("TagValues")
        }

    def carry_out(self, step: LakeStep) -> None:
        """Does one step; what is so already is no error."""
        with explained(f"do '{step}'"):
            for turn in range(1, _TURNS + 1):
                try:
                    self._do(step)
                except aws.ClientError as error:
                    if code_of(error) != _MOVED or turn == _TURNS:
                        raise
                    self.pause(_TURN_SECONDS * turn * random.uniform(0.5, 1.5))
                else:
                    return

    def _do(self, step: LakeStep) -> None:
        match step:
            case Give(key, columns):
                self.client.grant_permissions(**self._permission(key, columns))
            case TakeBack(key, columns):
                unless(_NOT_GIVEN, self.client.revoke_permissions, **self._permission(key, columns))
            case MakeFilter(one):
                data = {
                    **self._filter(one.database, one.table, one.name),
                    "RowFilter": {"FilterExpression": one.expression},
                    "ColumnNames": list(one.columns),
                }
                unless(THERE, self.client.create_data_cells_filter, TableData=data)
            case DropFilter(one, _):
                named = self._filter(one.database, one.table, one.name)
                unless(ABSENT, self.client.delete_data_cells_filter, **named)
            case RegisterLocation(location, role):
                arn = f"arn:aws:s3:::{location.removeprefix('s3://').rstrip('/')}"
                # Who has not opted in keeps the access that IAM gives.
                asked = {"ResourceArn": arn, "RoleArn": role, "HybridAccessEnabled": True}
                unless(THERE, self.client.register_resource, **asked)
            case DefineTag(key, values, new):
                if new:
                    asked = {"TagKey": key, "TagValues": list(values), **self.catalog}
                    self.client.create_lf_tag(**asked)
                else:
                    self.client.update_lf_tag(TagKey=key, TagValuesToAdd=list(values), **self.catalog)
            case TagColumns():
                self._tags(self.client.add_lf_tags_to_resource, step)
            case UntagColumns():
                self._tags(self.client.remove_lf_tags_from_resource, step)

    def _tags(self, call: Callable[..., Any], step: TagColumns | UntagColumns) -> None:
        resource = {"TableWithColumns": self._columns(step.on, step.columns)}
        tags = [{"TagKey": step.key, "TagValues": [step.value], **self.catalog}]
        failures = call(Resource=resource, LFTags=tags, **self.catalog).get("Failures") or []
        if failures:
            # The answer is 200 all the same.
            said = failures[0].get("Error", {})
            raise DqError(
                f"Lake Formation did not do '{step}': {said.get('ErrorCode')}: {said.get('ErrorMessage')}",
                "Mend that, then run again.",
            )

    def _permission(self, key: GrantKey, columns: tuple[str, ...]) -> dict[str, Any]:
        if key.filter:
            resource: dict[str, Any] = {"DataCellsFilter": self._filter(*key.on, key.filter)}
        else:
            resource = {"TableWithColumns": self._columns(key.on, columns)}
        asked = {
            "Principal": {"DataLakePrincipalIdentifier": key.principal},
            "Resource": resource,
            "Permissions": ["SELECT"],
            **self.catalog,
        }
        # Without it nobody in the account could give it to those who read.
        return asked | ({"PermissionsWithGrantOption": ["SELECT"]} if key.principal.isdecimal() else {})

    def _columns(self, on: Key, columns: tuple[str, ...]) -> dict[str, Any]:
        return {"DatabaseName": on[0], "Name": on[1], "ColumnNames": sorted(columns), **self.catalog}

    def _filter(self, database: str, table: str, name: str) -> dict[str, Any]:
        return {"TableCatalogId": self.account, "DatabaseName": database, "TableName": table, "Name": name}


def connect_lake(
    role_arn: str = "", catalog_id: str = "", account: str = "", *, rates: Mapping[str, Rate] = RATES
) -> LakeFormation:
    """Opens Lake Formation as the role, if one is named; `account` is the one of the catalog.

    Raises UsageError without a region or credentials, Unreadable when AWS does not answer.
    """
    with opening("Lake Formation"):
        client = polite(aws_session(role_arn, {"lakeformation": refuse}), "lakeformation", rates)
    return LakeFormation(client, account, {"CatalogId": catalog_id} if catalog_id else {})


def connect_consumer(role_arn: str = "") -> tuple[ConsumerAccount, str]:
    """The clients of one's own account, as the role, if one is named; and the account's id.

    Raises UsageError without a region or credentials, Unreadable when AWS does not answer.
    """
    with opening("Lake Formation, Glue and RAM"):
        session = aws_session(role_arn, {"lakeformation": refuse})
        ram, glue, lake = (polite(session, one, {}) for one in ("ram", "glue", "lakeformation"))
        return ConsumerAccount(ram, glue, lake), account_of(session)


# What dq gave in Lake Formation, kept in the store: only this is ever taken back.
#
# A grant is noted before it is given and forgotten after it was taken back, so that a kill in between
# leaves a note without a grant, and never a grant without a note.


@dataclass(frozen=True, slots=True)
class NotedGrant:
    """The columns that dq gave, the subscriptions that asked for it, and the filter behind it, if any."""

    columns: frozenset[str]
    files: frozenset[str]
    filter: DataFilter | None = None


@dataclass(frozen=True, slots=True)
class LakeNotes:
    """What dq gave in one catalog, whose id it is known by, and has not taken back."""

    store: Store
    catalog: str

    def grants(self) -> dict[GrantKey, NotedGrant]:
        """Every grant."""
        with self.store.read() as connection:
            rows = connection.execute(select(lake_grant).filter_by(catalog=self.catalog)).all()
        found = {}
        for row in rows:
            key = GrantKey(row.database_name, row.name, row.principal, row.filter)
            made = None
            if row.filter:
                made = DataFilter(*key.on, row.filter, row.expression, tuple(row.filter_columns))
            found[key] = NotedGrant(frozenset(row.columns), frozenset(row.files), made)
        return found

    def note_grant(self, key: GrantKey, noted: NotedGrant | None) -> None:
        """Keeps what dq gave under a key; None, and no columns, forget it."""
        here = self._on(key.on) | {"principal": key.principal, "filter": key.filter}
        values = None
        if noted is not None and noted.columns:
            values = {
                "columns": sorted(noted.columns),
                "files": sorted(noted.files),
                "expression": noted.filter.expression if noted.filter else "",
                "filter_columns": list(noted.filter.columns) if noted.filter else [],
            }
        keep_row(self.store, lake_grant, here, values)

    def tags(self, key: str) -> dict[Key, frozenset[str]]:
        """The columns to which dq gave a value of this tag, by table."""
        with self.store.read() as connection:
            rows = connection.execute(select(lake_tag).filter_by(catalog=self.catalog, tag=key)).all()
        return {(row.database_name, row.name): frozenset(row.columns) for row in rows}

    def note_tags(self, key: str, on: Key, columns: Collection[str]) -> None:
        """Keeps to which columns of a table dq gave a value of this tag."""
        values = {"columns": sorted(columns)} if columns else None
        keep_row(self.store, lake_tag, self._on(on) | {"tag": key}, values)

    def _on(self, on: Key) -> dict[str, str]:
        return {"catalog": self.catalog, "database_name": on[0], "name": on[1]}


# What Lake Formation lacks to be as contracts and subscriptions say. Reads, and writes nothing.


@dataclass(frozen=True, slots=True)
class LakeTerms:
    """What is to be kept in step; None is left alone.

    `places` are the locations of the tables of this run, by key: what dq gave on others is not looked at.
    `unclear` are subscription files, and folders of them, that nobody can understand now: what they asked
    for stays. `ended` is what subscriptions asked for that are over. `behind` are tables that are not as
    their contracts say, because the change was refused or failed: nothing is given on them.
    """

    places: Mapping[Key, str]
    locations: tuple[str, ...] | None = None
    role: str = ""
    tag: str = ""
    tags: Mapping[Key, Mapping[str, str]] | None = None
    grants: WantedGrants | None = None
    ended: WantedGrants = field(default_factory=WantedGrants)
    unclear: frozenset[str] = frozenset()
    behind: frozenset[Key] = frozenset()


def plan_lake(lake: LakeFormation, notes: LakeNotes, terms: LakeTerms) -> LakePlan:
    """The steps in their order: locations, tags, what is given, what is taken back.

    Raises Unreadable when AWS does not answer.
    """
    steps: list[LakeStep] = []
    told: list[str] = []
    grants = LakePlan()
    if terms.locations is not None:
        registered = lake.locations()
        steps += _locations(registered, terms)
        for (database, table), place in sorted(terms.places.items()):
            if place.startswith("s3://") and not _covered(place, [*registered, *terms.locations]):
                told.append(f"{database}.{table} lies at {place}, under no location of Lake Formation.")
    if terms.tags is not None:
        steps += _tags(lake, notes, terms.tag, terms.tags)
    if terms.grants is not None:
        grants = _grants(lake, notes.grants(), terms, terms.grants)
        told += terms.grants.notes
    every = dict.fromkeys([*told, *grants.notes])
    return LakePlan((*steps, *grants.steps), tuple(every), grants.spent, grants.asking)


def _locations(registered: list[str], terms: LakeTerms) -> Iterator[RegisterLocation]:
    there = list(registered)
    # The shorter first: it covers what lies below.
    for location in sorted({fold_location(one) for one in terms.locations or ()}, key=len):
        if not _covered(location, there):
            there.append(location)
            yield RegisterLocation(location, terms.role)


def _covered(location: str, there: list[str]) -> bool:
    wanted = fold_location(location) + "/"
    return any(wanted.startswith(fold_location(one) + "/") for one in there)


def _tags(
    lake: LakeFormation, notes: LakeNotes, tag: str, wanted: Mapping[Key, Mapping[str, str]]
) -> Iterator[LakeStep]:
    values = {value for columns in wanted.values() for value in columns.values()}
    defined = lake.tag_values(tag) if values else None
    missing = tuple(sorted(values - set(defined or ())))
    if missing:
        yield DefineTag(tag, missing, new=defined is None)
    noted = notes.tags(tag)
    removed: list[UntagColumns] = []
    for on, columns in sorted(wanted.items()):
        ours = noted.get(on, frozenset())
        if not columns and not ours:
            continue
        live = lake.column_tags(on, tag)
        lacking = {column: value for column, value in columns.items() if live.get(column) != value}
        gone = {column: live[column] for column in (ours - columns.keys()) & live.keys()}
        yield from (TagColumns(on, tag, *part) for part in _by_value(lacking))
        removed += (UntagColumns(on, tag, *part) for part in _by_value(gone))
    yield from removed


def _by_value(columns: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each value of a tag, with the columns that have it."""
    for value in sorted(set(columns.values())):
        yield value, tuple(sorted(column for column, own in columns.items() if own == value))


def _grants(
    lake: LakeFormation, noted: Mapping[GrantKey, NotedGrant], terms: LakeTerms, wanted: WantedGrants
) -> LakePlan:
    ours = {key: one for key, one in noted.items() if key.on in terms.places}
    keys = wanted.columns.keys() | ours.keys()
    live = {on: lake.grants(on) for on in sorted({key.on for key in keys | terms.ended.columns.keys()})}
    lacking = {key: _lacking(key, live, wanted) for key in keys}
    # Who is to get something else in place of what the table still has keeps the old until then.
    waiting = {(key.on, key.principal) for key in keys if lacking[key] and key.on in terms.behind}
    given: list[LakeStep] = []
    taken: list[LakeStep] = []
    notes: list[str] = []
    spent: list[TakeBack] = []
    for key in sorted(keys):
        there = live[key.on].columns.get(key, frozenset())
        asked = frozenset(wanted.columns.get(key, ()))
        mine = ours[key].columns if key in ours else frozenset()
        if lacking[key] and key.on in terms.behind:
            notes.append(f"{key}: nothing is given before the table is as its contract says.")
        elif lacking[key]:
            if key.filter:
                given.append(MakeFilter(wanted.filters[key.filter]))
            given.append(Give(key, lacking[key], tuple(sorted(wanted.files[key]))))
        if asked & there - mine:
            notes.append(f"{key}: SELECT was given by somebody else; dq will not take it back.")
        hidden = _unclear(ours[key].files, terms) if key in ours else []
        if hidden or (key.on, key.principal) in waiting:
            if mine - asked:
                why = f"{hidden[0]} cannot be understood" if hidden else "what replaces it is not given yet"
                notes.append(f"{key}: it stays, because {why}.")
            continue
        why = _why(key, terms)
        if gone := tuple(sorted((mine - asked) & there)):
            taken.append(TakeBack(key, gone, why))
        made = ours[key].filter if key in ours else None
        if made is not None and not asked:
            taken.append(DropFilter(made, key))
        elif over := tuple(sorted((mine - asked) - there)):
            spent.append(TakeBack(key, over, why))
    notes += _left(live, ours, terms, wanted)
    # What cannot be understood is asked for still, and not only until the next run.
    asking = tuple(
        (key, frozenset((*files, *_unclear(ours[key].files if key in ours else (), terms))))
        for key, files in sorted(wanted.files.items())
    )
    return LakePlan((*given, *taken), tuple(notes), tuple(spent), asking)


def _lacking(key: GrantKey, live: Mapping[Key, LiveGrants], wanted: WantedGrants) -> tuple[str, ...]:
    return tuple(sorted(wanted.columns.get(key, set()) - live[key.on].columns.get(key, frozenset())))


def _unclear(files: Iterable[str], terms: LakeTerms) -> list[str]:
    """Those of the files that are unclear, or lie below a folder that is."""
    return sorted(
        file for file in files if any(file == one or file.startswith(f"{one}/") for one in terms.unclear)
    )


def _why(key: GrantKey, terms: LakeTerms) -> str:
    files = sorted(terms.ended.files.get(key, ()))
    return f"{files[0]} is over" if files else "no subscription asks for it"


def _left(
    live: Mapping[Key, LiveGrants],
    ours: Mapping[GrantKey, NotedGrant],
    terms: LakeTerms,
    wanted: WantedGrants,
) -> Iterator[str]:
    """What lets more be read than subscriptions say, and is not dq's to take back."""
    for on, there in sorted(live.items()):
        if EVERYBODY in there.wide:
            yield f"{'.'.join(on)}: {EVERYBODY} has it, so that IAM alone decides who reads it."
        readers = {key.principal for key in wanted.columns if key.on == on}
        for principal in sorted(there.wide & readers):
            yield f"{'.'.join(on)}: somebody else gave {principal} all columns."
    for key, columns in sorted(terms.ended.columns.items()):
        mine = ours[key].columns if key in ours else frozenset()
        asked = wanted.columns.get(key, set())
        if (columns - asked - mine) & live[key.on].columns.get(key, frozenset()):
            file = sorted(terms.ended.files[key])[0]
            yield f"{key}: {file} is over, and dq has no note of having given it. Take it back by hand."


# Carries a plan for Lake Formation out: in order, idempotent, resumable after a kill at any point.


def apply_lake(lake: LakeFormation, notes: LakeNotes, plan: LakePlan) -> list[StepResult[LakeStep]]:
    """One result per step, in order. A grant needs its filter, and a filter goes after its grant: else a step
    that fails stops no other, so that nobody's grant outlives its end because of somebody else's.

    What is given is noted before, what is taken back is forgotten after Lake Formation has it no more.
    """
    run = _LakeRun(lake, notes, plan)
    failed: dict[str, DqError] = {}
    results: list[StepResult[LakeStep]] = []
    for step in plan.steps:
        through = _filter_of(step)
        error: DqError | None = None
        if through in failed:
            error = DqError(f"'{step}' was not tried, because a step before it failed.", failed[through].mend)
        else:
            try:
                run.carry_out(step)
            except DqError as fault:
                error = fault
                if through:
                    failed[through] = fault
        results.append(StepResult(step, error))
    return results


def _filter_of(step: LakeStep) -> str:
    """The name of the data filter that a step is about, which says the table and the reader too; or ""."""
    match step:
        case Give(key) | TakeBack(key):
            return key.filter
        case MakeFilter(made) | DropFilter(made):
            return made.name
    return ""


class _LakeRun:
    """A plan that is carried out, with what is noted of grants by now."""

    def __init__(self, lake: LakeFormation, notes: LakeNotes, plan: LakePlan) -> None:
        self.lake, self.notes, self.noted = lake, notes, notes.grants()
        self.filters = {step.filter.name: step.filter for step in plan.steps if isinstance(step, MakeFilter)}
        self.asking = dict(plan.asking)
        for one in plan.spent:
            self._forget(one)
        for key, files in plan.asking:
            if key in self.noted:
                self._note(key, replace(self.noted[key], files=files))

    def carry_out(self, step: LakeStep) -> None:
        """Does one step, and notes it."""
        match step:
            case Give(key, columns):
                before = self.noted.get(key, NotedGrant(frozenset(), frozenset()))
                made = self.filters.get(key.filter) or before.filter
                self._note(key, NotedGrant(before.columns | set(columns), self.asking[key], made))
            case TagColumns():
                self.notes.note_tags(step.key, step.on, self._tagged(step) | set(step.columns))
        self.lake.carry_out(step)
        match step:
            case TakeBack(key, columns):
                # Whether it was absent before is told by AWS in the words of an invalid request.
                if self.lake.grants(key.on).columns.get(key, frozenset()) & set(columns):
                    message = f"Lake Formation still has what '{step}' takes back."
                    raise DqError(message, "Run again, or revoke by hand.")
                # With a filter behind it, it is remembered until that is gone too.
                if not key.filter:
                    self._forget(step)
            case DropFilter(_, key):
                self.notes.note_grant(key, None)
            case UntagColumns():
                self.notes.note_tags(step.key, step.on, self._tagged(step) - set(step.columns))

    def _tagged(self, step: TagColumns | UntagColumns) -> frozenset[str]:
        return self.notes.tags(step.key).get(step.on, frozenset())

    def _note(self, key: GrantKey, noted: NotedGrant) -> None:
        if noted != self.noted.get(key):
            self.notes.note_grant(key, noted)
            self.noted[key] = noted

    def _forget(self, step: TakeBack) -> None:
        if step.key in self.noted:
            before = self.noted[step.key]
            self._note(step.key, replace(before, columns=before.columns - set(step.columns)))
