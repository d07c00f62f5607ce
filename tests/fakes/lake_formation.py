"""moto's Lake Formation behind the shim of Glue: it refuses what AWS refuses and moto lets through.

moto keeps a grant for each list of columns that somebody named; AWS keeps columns. So a grant goes to moto
column by column, and comes back as one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakes.glue import Answer, GlueShim

Forward = Callable[[str, dict[str, Any]], "Answer"]
"""Asks moto: an operation of Lake Formation, or one of Glue after `glue:`, and its body."""

OPERATIONS = frozenset(
    {
        "GrantPermissions", "RevokePermissions", "ListPermissions", "RegisterResource", "ListResources",
        "CreateLFTag", "GetLFTag", "UpdateLFTag", "AddLFTagsToResource", "RemoveLFTagsFromResource",
        "GetResourceLFTags", "CreateDataCellsFilter", "DeleteDataCellsFilter",
    }
)  # fmt: skip
WRITES = ("Grant", "Revoke", "Register", "Create", "Update", "Add", "Remove", "Delete")
_PRINCIPAL = re.compile(r"\d{12}|IAM_ALLOWED_PRINCIPALS|arn:aws:iam::\d{12}:(role|user)/\S+")
_MATRIX = {
    "Table": {"ALL", "ALTER", "DELETE", "DESCRIBE", "DROP", "INSERT", "SELECT"},
    "TableWithColumns": {"SELECT"},
    "DataCellsFilter": {"SELECT"},
}
_PAGE = 2


@dataclass
class LakeFormationShim:
    """What moto does not keep: the tags of columns, and data filters. `page` is how much it lists at once."""

    tags: dict[tuple[str, str], dict[str, dict[str, str]]] = field(default_factory=dict)
    filters: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    page: int = _PAGE

    def reset(self) -> None:
        self.page = _PAGE
        self.tags.clear()
        self.filters.clear()

    def answer(self, operation: str, body: dict[str, Any], forward: Forward) -> Answer:
        return getattr(self, f"_{operation}")(body, forward)  # type: ignore[no-any-return]

    def _GrantPermissions(self, body: dict[str, Any], forward: Forward) -> Answer:
        return self._wrong(body, forward) or self._by_column("GrantPermissions", body, forward)

    def _RevokePermissions(self, body: dict[str, Any], forward: Forward) -> Answer:
        wrong = self._wrong(body, forward)
        if wrong is not None:
            return wrong
        there = _permissions(forward)
        for one in _columnwise(body["Resource"]):
            if (body["Principal"], one) not in [(row["Principal"], row["Resource"]) for row in there]:
                return refused("InvalidInputException", "No permissions revoked. Grantee has no permissions.")
        return self._by_column("RevokePermissions", body, forward)

    def _by_column(self, operation: str, body: dict[str, Any], forward: Forward) -> Answer:
        for one in _columnwise(body["Resource"]):
            answer = forward(operation, {**body, "Resource": one})
        return answer

    def _ListPermissions(self, body: dict[str, Any], forward: Forward) -> Answer:
        table = body["Resource"]["Table"]
        on = table["DatabaseName"], table["Name"]
        if not _columns(on, forward):
            return refused("EntityNotFoundException", "Table not found.")
        rows: dict[str, dict[str, Any]] = {}
        for row in _permissions(forward):
            inner = dict(next(iter(row["Resource"].values())))
            if (inner["DatabaseName"], inner.get("Name" if "TableName" not in inner else "TableName")) != on:
                continue
            names = inner.pop("ColumnNames", [])
            kind = next(iter(row["Resource"]))
            key = json.dumps([row["Principal"], kind, inner], sort_keys=True)
            made = rows.setdefault(key, {**row, "Resource": {kind: inner}})
            if names:
                made["Resource"][kind].setdefault("ColumnNames", []).extend(names)
        start = int(body.get("NextToken") or 0)
        every = [rows[key] for key in sorted(rows)]
        page: dict[str, Any] = {"PrincipalResourcePermissions": every[start : start + self.page]}
        if start + self.page < len(every):
            page["NextToken"] = str(start + self.page)
        return answered(page)

    def _RegisterResource(self, body: dict[str, Any], forward: Forward) -> Answer:
        arn = body["ResourceArn"]
        if not re.fullmatch(r"arn:aws:s3:::[a-z0-9.-]{3,63}(/.+)?", arn):
            return refused("InvalidInputException", "Resource is not a location.")
        there = json.loads(forward("ListResources", {}).body)["ResourceInfoList"]
        if any(f"{arn}/".startswith(f"{one['ResourceArn']}/") for one in there):
            return refused("AlreadyExistsException", "Resource is already registered.")
        return forward("RegisterResource", body)

    def _ListResources(self, body: dict[str, Any], forward: Forward) -> Answer:
        return forward("ListResources", body)

    def _CreateLFTag(self, body: dict[str, Any], forward: Forward) -> Answer:
        if any(text != text.lower() for text in (body["TagKey"], *body["TagValues"])):
            return refused("InvalidInputException", "Tags are kept in lower case.")
        if self._GetLFTag({"TagKey": body["TagKey"]}, forward).status == 200:
            return refused("AlreadyExistsException", "Tag key already exists.")
        return forward("CreateLFTag", body)

    def _GetLFTag(self, body: dict[str, Any], forward: Forward) -> Answer:
        answer = forward("GetLFTag", body)
        # moto knows every key, with no value.
        if answer.status != 200 or not json.loads(answer.body)["TagValues"]:
            return refused("EntityNotFoundException", "Tag key does not exist.")
        return answer

    def _UpdateLFTag(self, body: dict[str, Any], forward: Forward) -> Answer:
        return forward("UpdateLFTag", {"TagValuesToDelete": [], **body})

    def _AddLFTagsToResource(self, body: dict[str, Any], forward: Forward) -> Answer:
        inner = body["Resource"]["TableWithColumns"]
        on = inner["DatabaseName"], inner["Name"]
        failures = []
        if not set(inner["ColumnNames"]) <= _columns(on, forward):
            return refused("EntityNotFoundException", "Column not found.")
        for tag in body["LFTags"]:
            defined = forward("GetLFTag", {"TagKey": tag["TagKey"]})
            values = json.loads(defined.body).get("TagValues", []) if defined.status == 200 else []
            if not set(tag["TagValues"]) <= set(values):
                error = {"ErrorCode": "EntityNotFoundException", "ErrorMessage": "Tag value is not defined."}
                failures.append({"LFTag": tag, "Error": error})
                continue
            for column in inner["ColumnNames"]:
                self.tags.setdefault(on, {}).setdefault(column, {})[tag["TagKey"]] = tag["TagValues"][0]
        return answered({"Failures": failures})

    def _RemoveLFTagsFromResource(self, body: dict[str, Any], forward: Forward) -> Answer:
        inner = body["Resource"]["TableWithColumns"]
        tagged = self.tags.get((inner["DatabaseName"], inner["Name"]), {})
        for column in inner["ColumnNames"]:
            for tag in body["LFTags"]:
                tagged.get(column, {}).pop(tag["TagKey"], None)
        return answered({"Failures": []})

    def _GetResourceLFTags(self, body: dict[str, Any], forward: Forward) -> Answer:
        table = body["Resource"]["Table"]
        on = table["DatabaseName"], table["Name"]
        if not _columns(on, forward):
            return refused("EntityNotFoundException", "Table not found.")
        columns = [
            {"Name": name, "LFTags": [{"TagKey": key, "TagValues": [value]} for key, value in tags.items()]}
            for name, tags in self.tags.get(on, {}).items()
            if tags
        ]
        return answered({"LFTagsOnColumns": columns})

    def _CreateDataCellsFilter(self, body: dict[str, Any], forward: Forward) -> Answer:
        data = body["TableData"]
        on = data["DatabaseName"], data["TableName"]
        if not set(data["ColumnNames"]) <= _columns(on, forward):
            return refused("EntityNotFoundException", "Column not found.")
        if (*on, data["Name"]) in self.filters:
            return refused("AlreadyExistsException", "Filter exists.")
        self.filters[(*on, data["Name"])] = data
        return answered({})

    def _DeleteDataCellsFilter(self, body: dict[str, Any], forward: Forward) -> Answer:
        if self.filters.pop((body["DatabaseName"], body["TableName"], body["Name"]), None) is None:
            return refused("EntityNotFoundException", "Filter not found.")
        return answered({})

    def _wrong(self, body: dict[str, Any], forward: Forward) -> Answer | None:
        principal = body["Principal"]["DataLakePrincipalIdentifier"]
        if not _PRINCIPAL.fullmatch(principal):
            return refused("InvalidInputException", f"Invalid principal {principal}")
        ((kind, inner),) = body["Resource"].items()
        if not set(body["Permissions"]) <= _MATRIX[kind]:
            return refused("InvalidInputException", f"Permissions are not of {kind}.")
        on = inner["DatabaseName"], inner["TableName" if kind == "DataCellsFilter" else "Name"]
        there = _columns(on, forward)
        if not there:
            return refused("EntityNotFoundException", "Table not found.")
        if not set(inner.get("ColumnNames", ())) <= there:
            return refused("EntityNotFoundException", "Column not found.")
        if kind == "DataCellsFilter" and (*on, inner["Name"]) not in self.filters:
            return refused("EntityNotFoundException", "Filter not found.")
        return None


def _columnwise(resource: dict[str, Any]) -> list[dict[str, Any]]:
    ((kind, inner),) = resource.items()
    if kind != "TableWithColumns":
        return [resource]
    return [{kind: {**inner, "ColumnNames": [name]}} for name in inner["ColumnNames"]]


def _permissions(forward: Forward) -> list[dict[str, Any]]:
    answer = json.loads(forward("ListPermissions", {}).body)
    every: list[dict[str, Any]] = answer["PrincipalResourcePermissions"]
    return every


def _columns(on: tuple[str, str], forward: Forward) -> set[str]:
    answer = forward("glue:GetTable", {"DatabaseName": on[0], "Name": on[1]})
    if answer.status != 200:
        return set()
    table = json.loads(answer.body)["Table"]
    return {one["Name"] for one in (*table["StorageDescriptor"]["Columns"], *table["PartitionKeys"])}


def answered(body: dict[str, Any]) -> Answer:
    from fakes.glue import Answer

    return Answer(200, json.dumps(body).encode())


def refused(code: str, message: str) -> Answer:
    from fakes.glue import Answer

    return Answer(400, json.dumps({"__type": code, "Message": message}).encode(), code)


def granted(shim: GlueShim) -> dict[tuple[str, str, str], list[str]]:
    """Every grant that moto has, column by column: (database, table, principal) to its columns, sorted."""
    from fakes.glue import lake_forward

    found: dict[tuple[str, str, str], list[str]] = {}
    for row in _permissions(lake_forward(shim)):
        inner = row["Resource"].get("TableWithColumns")
        if inner is not None:
            key = inner["DatabaseName"], inner["Name"], row["Principal"]["DataLakePrincipalIdentifier"]
            found.setdefault(key, []).extend(inner["ColumnNames"])
    return {key: sorted(columns) for key, columns in found.items()}
