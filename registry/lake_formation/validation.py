"""What Lake Formation refuses, or misunderstands, beside its own model: looked at before a request leaves.

Sources: the API reference and "Lake Formation permissions reference" of the developer guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dq.contracts.shared.errors import UsageError
from dq.registry.glue.model_limits import Raw, Rule, refusals

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
