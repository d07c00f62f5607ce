"""TABLE: the keys of rules, relationships, service levels and enum values, which no account lists."""

from __future__ import annotations

from collections.abc import Mapping

from dq.dataquality.clauses.coverage import DOCUMENTED, SILENT, Told

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
