"""TABLE: the keys of ODCS that no check enforces, each with what becomes of it and why.

States are those of `accounting.State`. A key that stands neither here nor in a clause of a check is "not
evaluated": a later version of the standard cannot slip through.
"""

from __future__ import annotations

from collections.abc import Mapping

Told = tuple[str, str]
DOCUMENTED, NOT_EVALUATED = "documented only", "not evaluated"

# Keys that describe and promise nothing about the data, and those whose parts are accounted by themselves.
SILENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("description", "businessName", "tags", "authoritativeDefinitions", "synonyms", "context"),
        "it is for readers",
    ),
    "id": "it names this place of the contract",
    "name": "it names the object; that a property's column is there is tested",
    "customProperties": "they are the organisation's own; what dq adds to ODCS stands in them",
    "deprecated": "it is for readers",
    "examples": "they show values; the gate holds them against the type",
    "dataGranularityDescription": "it is for readers",
    **dict.fromkeys(
        ("properties", "items", "map", "quality", "relationships", "logicalTypeOptions"),
        "its parts are listed by themselves",
    ),
}
REASONS: Mapping[str, Told] = {
    "physicalName": (DOCUMENTED, "it says where the data is, and is used to find it"),
    "physicalType": (
        NOT_EVALUATED,
        "it is no type of Spark, so that no column can be compared with it; logicalType is tested",
    ),
    "logicalType": (DOCUMENTED, "it says what kind of thing this is"),
    "classification": (DOCUMENTED, "it masks samples; data does not show how sensitive it is"),
    "encryptedName": (DOCUMENTED, "it names another column; whether that one is encrypted cannot be seen"),
    "criticalDataElement": (DOCUMENTED, "it is a mark for readers"),
    "semanticType": (DOCUMENTED, "it is a mark for readers"),
    "transformSourceObjects": (DOCUMENTED, "it tells where the values come from"),
    "transformLogic": (DOCUMENTED, "it tells how the values are made"),
    "transformDescription": (DOCUMENTED, "it tells how the values are made"),
    "partitioned": (
        DOCUMENTED,
        "it is compared with the catalog by 'dq register', and used to read partitions",
    ),
    "partitionKeyPosition": (DOCUMENTED, "it is compared with the catalog by 'dq register'"),
    "primaryKeyPosition": (DOCUMENTED, "it orders the columns of the key"),
    "defaultTimezone": (DOCUMENTED, "it tells how bounds, ages and civil times are read"),
    "distanceMetric": (DOCUMENTED, "it tells how vectors are compared"),
    "embeddingModel": (DOCUMENTED, "it tells how vectors are made"),
    "embeddingModelVersion": (DOCUMENTED, "it tells how vectors are made"),
}
# The same key means something else on an object.
OF_OBJECTS: Mapping[str, Told] = {
    "physicalType": (DOCUMENTED, "it says whether this is a table, a view or a topic"),
}

_HUMAN = (DOCUMENTED, "it is about people and plans; the data does not show it")
_WATCHED = "say when in a schedule with delivery terms, and 'dq watch' holds it to that"
# By the name as ODCS writes it.
LEVELS: Mapping[str, Told] = {
    **dict.fromkeys(
        ("generalAvailability", "endOfSupport", "endOfLife", "timeToDetect", "timeToNotify", "timeToRepair"),
        _HUMAN,
    ),
    **dict.fromkeys(
        ("availability", "throughput", "errorRate"),
        (DOCUMENTED, "it is about the service that hands the data out; the data does not show it"),
    ),
    "frequency": (NOT_EVALUATED, f"rows do not show when they came: {_WATCHED}"),
    "timeOfAvailability": (NOT_EVALUATED, f"rows do not show when they came: {_WATCHED}"),
}
