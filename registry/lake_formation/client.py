"""Lake Formation itself: what it has, each step carried out, and what it refuses."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore import exceptions as aws

from dq.contracts.shared.outcome import DqError, UsageError
from dq.registry.glue.client import (
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
from dq.registry.glue.conversion import Raw
from dq.registry.glue.validation import Rule, refusals
from dq.registry.lake_formation.desired import (
    FILTERED,
    DefineTag,
    DropFilter,
    Give,
    GrantKey,
    LakeStep,
    MakeFilter,
    RegisterLocation,
    TagColumns,
    TakeBack,
    UntagColumns,
)
from dq.registry.lake_formation.link import ConsumerAccount, permissions
from dq.registry.table import Key

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
        for row in self._listed(on):
            if "SELECT" not in row["Permissions"] and "ALL" not in row["Permissions"]:
                continue
            principal, resource = row["Principal"]["DataLakePrincipalIdentifier"], row["Resource"]
            key = GrantKey(database, table, principal)
            if "DataCellsFilter" in resource:
                key = GrantKey(database, table, principal, resource["DataCellsFilter"]["Name"])
                columns[key] = {FILTERED}
            elif names := resource.get("TableWithColumns", {}).get("ColumnNames"):
                columns.setdefault(key, set()).update(name.lower() for name in names)
            else:
                wide.add(principal)
        return LiveGrants({key: frozenset(names) for key, names in columns.items()}, frozenset(wide))

    def _listed(self, on: Key) -> list[dict[str, Any]]:
        database, table = on
        resource = {"Table": {"DatabaseName": database, "Name": table, **self.catalog}}
        with explained(f"list who may read {database}.{table}"):
            return permissions(self.client.list_permissions, Resource=resource, **self.catalog)

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
