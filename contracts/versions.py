"""TABLE: which versions of ODCS we read, and in which one a key or a value arrived.

Source: the changelog and the JSON Schemas of ODCS 3.0.2, 3.1.0 and 3.2.0.
"""

from __future__ import annotations

Version = tuple[int, int, int]

SUPPORTED = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0")
NEWEST = "v3.2.0"

# (node type, key as written) -> first version that has it. What is absent here has been there since 3.0.0.
KEY_SINCE: dict[tuple[str, str], Version] = {
    ("Contract", "authoritativeDefinitions"): (3, 0, 1),
    ("Contract", "context"): (3, 2, 0),
    ("SchemaObject", "context"): (3, 2, 0),
    ("SchemaObject", "deprecated"): (3, 2, 0),
    ("SchemaObject", "synonyms"): (3, 2, 0),
    ("SchemaObject", "id"): (3, 1, 0),
    ("SchemaObject", "relationships"): (3, 1, 0),
    ("Property", "deprecated"): (3, 2, 0),
    ("Property", "synonyms"): (3, 2, 0),
    ("Property", "semanticType"): (3, 2, 0),
    ("Property", "enum"): (3, 2, 0),
    ("Property", "map"): (3, 2, 0),
    ("Property", "physicalName"): (3, 0, 2),
    ("Property", "id"): (3, 1, 0),
    ("Property", "relationships"): (3, 1, 0),
    ("SlaProperty", "customProperties"): (3, 2, 0),
    ("SlaProperty", "authoritativeDefinitions"): (3, 2, 0),
    ("SlaProperty", "id"): (3, 1, 0),
    ("SlaProperty", "description"): (3, 1, 0),
    ("SlaProperty", "schedule"): (3, 1, 0),
    ("SlaProperty", "scheduler"): (3, 1, 0),
    ("CustomProperty", "vendor"): (3, 2, 0),
    ("CustomProperty", "id"): (3, 1, 0),
    ("CustomProperty", "description"): (3, 1, 0),
    ("Quality", "id"): (3, 1, 0),
    ("Quality", "metric"): (3, 1, 0),
    ("Quality", "arguments"): (3, 1, 0),
    ("Relationship", "id"): (3, 2, 0),
    ("Server", "id"): (3, 1, 0),
    ("SupportChannel", "id"): (3, 1, 0),
    ("SupportChannel", "customProperties"): (3, 1, 0),
    ("Price", "id"): (3, 1, 0),
    ("Member", "id"): (3, 1, 0),
    ("Member", "tags"): (3, 1, 0),
    ("Member", "customProperties"): (3, 1, 0),
    ("Member", "authoritativeDefinitions"): (3, 1, 0),
    ("Role", "id"): (3, 1, 0),
    ("TypeOptions", "timezone"): (3, 1, 0),
    ("TypeOptions", "defaultTimezone"): (3, 1, 0),
}

# (node type, key, value) -> first version in which the key may have this value.
VALUE_SINCE: dict[tuple[str, str, str], Version] = {
    ("Property", "logicalType", "timestamp"): (3, 1, 0),
    ("Property", "logicalType", "time"): (3, 1, 0),
    ("Property", "logicalType", "map"): (3, 2, 0),
    ("Property", "logicalType", "vector"): (3, 2, 0),
    ("SchemaObject", "logicalType", "blob"): (3, 1, 0),
}

# Until 3.0.2 the metric of a library rule was its `rule`, and some had other names.
EARLIER_METRICS = {
    "duplicateCount": "duplicateValues",
    "nullCheck": "nullValues",
    "validValues": "invalidValues",
}


def of(text: str) -> Version:
    """The version that a contract writes, such as (3, 2, 0) for `v3.2.0`."""
    major, minor, patch = text.removeprefix("v").split(".")
    return int(major), int(minor), int(patch)


def text(version: Version) -> str:
    """The version as contracts write it."""
    return "v" + ".".join(str(part) for part in version)
