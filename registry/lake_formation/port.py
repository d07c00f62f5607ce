"""Lake Formation itself: what it has of tables, columns, tags and locations, and each step carried out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore import exceptions as aws

from dq.contracts.shared.errors import DqError
from dq.registry.glue.client import account_of, aws_session, polite
from dq.registry.glue.errors import ABSENT, THERE, code_of, explained, opening, unless
from dq.registry.glue.rates import Rate
from dq.registry.lake_formation.link import ConsumerAccount, permissions
from dq.registry.lake_formation.steps import (
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
from dq.registry.lake_formation.validation import refuse
from dq.registry.table import Key

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
