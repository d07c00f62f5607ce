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

ENFORCED = "enforced"
_READERS = (DOCUMENTED, "it is for readers")
_OWN = (DOCUMENTED, SILENT["customProperties"])
# The keys of a rule, whatever its type.
OF_QUALITY: Mapping[str, Told] = {
    "type": (ENFORCED, "it says how the rule is tested, see above"),
    "metric": (ENFORCED, "it says what is counted, see above"),
    "rule": (ENFORCED, "the name that `metric` had in ODCS 3.0"),
    "arguments": (ENFORCED, "those of the metric; another one is an error"),
    "query": (ENFORCED, "of the type sql; what may not run is refused"),
    "engine": (ENFORCED, "of the type custom; `dq` is run, every other engine is not"),
    "implementation": (ENFORCED, "of the type custom, where its engine is run"),
    "unit": (ENFORCED, "`rows`, by default, or `percent`; another one is an error"),
    "severity": (
        ENFORCED,
        "a failed rule of severity info or warning does not fail the run; an unknown word counts as error",
    ),
    "customProperties": (ENFORCED, "`scope` says which rows are meant; all others are your own"),
    "schedule": (DOCUMENTED, "it tells when the rule is to be run; `dq check` runs it when it is called"),
    "scheduler": (DOCUMENTED, "it tells what starts the rule"),
    "id": (DOCUMENTED, SILENT["id"]),
    **dict.fromkeys(("name", "description", "tags", "authoritativeDefinitions"), _READERS),
    **dict.fromkeys(("dimension", "method", "businessImpact"), (DOCUMENTED, "it tells what the rule is for")),
}
OF_RELATIONSHIPS: Mapping[str, Told] = {
    "from": (ENFORCED, "the columns whose keys are looked up; on a property it is that property"),
    "to": (ENFORCED, "the columns in which they must stand"),
    "type": (ENFORCED, "`foreignKey` is the only one"),
    "id": (DOCUMENTED, SILENT["id"]),
    "customProperties": _OWN,
}
OF_SERVICE_LEVELS: Mapping[str, Told] = {
    "property": (ENFORCED, "it says what is promised, see above"),
    "value": (ENFORCED, "the length of time, of those that are tested"),
    "unit": (ENFORCED, "s, min, h, d, w, mo, y or the word in full; a bare m is an error"),
    "element": (ENFORCED, "the object, or the column that shows the age"),
    "schedule": (ENFORCED, "with delivery terms: when the data is due"),
    "customProperties": (
        ENFORCED,
        "`delivery`: 'dq watch' holds every partition due to it, so that no check looks for gaps; all"
        " others are your own",
    ),
    "valueExt": (DOCUMENTED, "ODCS does not say what it means"),
    "driver": (DOCUMENTED, "it tells who wants it"),
    "scheduler": (DOCUMENTED, "dq reads every schedule as cron"),
    "id": (DOCUMENTED, SILENT["id"]),
    "description": _READERS,
    "authoritativeDefinitions": _READERS,
}
OF_ENUM_VALUES: Mapping[str, Told] = {
    "value": (ENFORCED, "a value that the column may have"),
    "id": (DOCUMENTED, SILENT["id"]),
    "customProperties": _OWN,
    **dict.fromkeys(("label", "description", "tags", "authoritativeDefinitions"), _READERS),
}
