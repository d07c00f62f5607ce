"""TABLE: the order in which a contract's keys are written, by kind of mapping.

The order of the sections is that of the ODCS documentation: who and what first, then where, then the
schema, then what is promised about it. `*` stands for every key that is not named, in the writer's order.
A mapping without a row keeps its order: it belongs to the organisation.
"""

from __future__ import annotations

REST = "*"
_TAIL = "tags authoritativeDefinitions customProperties"


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(text.split())
    return keys if REST in keys else (*keys, REST)


# Kind of mapping -> its keys. `<<`, where YAML merges another mapping, stands first everywhere.
ORDER: dict[str, tuple[str, ...]] = {
    "Contract": _keys(
        "apiVersion kind id name version status tenant domain dataProduct contractCreatedTs tags description "
        "context servers team roles support price schema slaDefaultElement slaProperties "
        "authoritativeDefinitions * customProperties"
    ),
    "Description": _keys("purpose usage limitations authoritativeDefinitions customProperties"),
    "Instructions": _keys("instructions verifiedStatements constraints"),
    "VerifiedStatement": _keys(f"id question answer {_TAIL}"),
    "Constraint": _keys(f"id constraint {_TAIL}"),
    "Server": _keys("id server type environment description * roles customProperties"),
    "Team": _keys(f"id name description members {_TAIL}"),
    "Member": _keys(f"id username name role description dateIn dateOut replacedByUsername comment {_TAIL}"),
    "Role": _keys("id role access description firstLevelApprovers secondLevelApprovers customProperties"),
    "SupportChannel": _keys("id channel tool scope url invitationUrl description customProperties"),
    "Price": _keys("id priceAmount priceCurrency priceUnit"),
    "SchemaObject": _keys(
        "id name physicalName logicalType physicalType businessName description deprecated "
        "dataGranularityDescription context synonyms tags authoritativeDefinitions customProperties "
        "relationships * properties quality"
    ),
    "Property": _keys(
        "id name physicalName logicalType physicalType businessName description deprecated required unique "
        "partitioned partitionKeyPosition primaryKey primaryKeyPosition classification encryptedName "
        "criticalDataElement semanticType logicalTypeOptions enum examples synonyms transformSourceObjects "
        "transformLogic transformDescription tags authoritativeDefinitions customProperties relationships "
        "* items map properties quality"
    ),
    "MapTypes": _keys("key value"),
    "TypeOptions": _keys(
        "minLength maxLength pattern format minimum exclusiveMinimum maximum exclusiveMaximum multipleOf "
        "timezone defaultTimezone minItems maxItems uniqueItems required minProperties maxProperties "
        "elementType dimensions distanceMetric embeddingModel embeddingModelVersion normalized"
    ),
    "EnumValue": _keys(f"id value label description {_TAIL}"),
    "Synonym": _keys("id synonym locale source status description customProperties"),
    "Relationship": _keys("id type from to customProperties"),
    "Quality": _keys(
        "id name type metric rule engine query implementation arguments validValues mustBe mustNotBe "
        "mustBeGreaterThan mustBeGreaterOrEqualTo mustBeLessThan mustBeLessOrEqualTo mustBeBetween "
        "mustNotBeBetween unit dimension severity description businessImpact method scheduler schedule "
        f"{_TAIL}"
    ),
    "SlaProperty": _keys(
        "id property value valueExt unit element driver description scheduler schedule "
        "authoritativeDefinitions customProperties"
    ),
    "CustomProperty": _keys("id property vendor description value"),
    "AuthoritativeDefinition": _keys("id url type description"),
}

_EVERYWHERE = {
    "customProperties": "CustomProperty",
    "authoritativeDefinitions": "AuthoritativeDefinition",
    "roles": "Role",
    "quality": "Quality",
    "properties": "Property",
    "relationships": "Relationship",
    "synonyms": "Synonym",
}
# Kind of mapping -> the kinds of the mappings below its keys, directly or as items of a list.
INSIDE: dict[str, dict[str, str]] = {
    "Contract": {
        "description": "Description",
        "context": "Instructions",
        "servers": "Server",
        "team": "Team",
        "support": "SupportChannel",
        "price": "Price",
        "schema": "SchemaObject",
        "slaProperties": "SlaProperty",
    },
    "Instructions": {"verifiedStatements": "VerifiedStatement", "constraints": "Constraint"},
    "Team": {"members": "Member"},
    "SchemaObject": {"context": "Instructions"},
    "Property": {
        "items": "Property",
        "map": "MapTypes",
        "logicalTypeOptions": "TypeOptions",
        "enum": "EnumValue",
    },
    "MapTypes": {"key": "Property", "value": "Property"},
}


def kind_below(kind: str, key: str, listed: bool) -> str:
    """The kind of the mapping that stands under this key, or the empty text where anything may stand.

    `listed` says that it is an item of a list there.
    """
    if kind not in ORDER:
        return ""
    if (kind, key, listed) == ("Contract", "team", True):
        return "Member"  # ODCS 3.0 lists the members
    return INSIDE.get(kind, {}).get(key) or _EVERYWHERE.get(key, "")


def position(kind: str, key: str) -> int:
    """Where the key stands among the keys of such a mapping; for sorting, which must be stable."""
    order = ORDER.get(kind)
    if key == "<<":
        return -1
    if order is None:
        return 0
    return order.index(key) if key in order else order.index(REST)
