"""TABLE: the keys of rules, relationships, service levels and enum values, which no account lists."""

from __future__ import annotations

from collections.abc import Mapping

from dq.dataquality.clauses.coverage import DOCUMENTED, SILENT, KeyState

ENFORCED = "enforced"
_READERS = (DOCUMENTED, "it is informational")
_OWN = (DOCUMENTED, SILENT["customProperties"])
# The keys of a rule, whatever its type.
OF_QUALITY: Mapping[str, KeyState] = {
    "type": (ENFORCED, "how the rule is tested, see above"),
    "metric": (ENFORCED, "what is counted, see above"),
    "rule": (ENFORCED, "the name of `metric` in ODCS 3.0"),
    "arguments": (ENFORCED, "those of the metric; any other is an error"),
    "query": (ENFORCED, "for the type sql; forbidden queries are refused"),
    "engine": (ENFORCED, "for the type custom; only the engine `dq` is run"),
    "implementation": (ENFORCED, "for the type custom, if its engine is run"),
    "unit": (ENFORCED, "`rows` (the default) or `percent`; any other is an error"),
    "severity": (
        ENFORCED,
        "a failed rule of severity info or warning does not fail the run; an unknown word counts as error",
    ),
    "customProperties": (ENFORCED, "`scope` selects the rows; all others are your own"),
    "schedule": (DOCUMENTED, "when to run the rule; `dq check` runs it whenever it is called"),
    "scheduler": (DOCUMENTED, "what starts the rule"),
    "id": (DOCUMENTED, SILENT["id"]),
    **dict.fromkeys(("name", "description", "tags", "authoritativeDefinitions"), _READERS),
    **dict.fromkeys(("dimension", "method", "businessImpact"), (DOCUMENTED, "the purpose of the rule")),
}
OF_RELATIONSHIPS: Mapping[str, KeyState] = {
    "from": (ENFORCED, "the columns whose keys are looked up; for a property, that property"),
    "to": (ENFORCED, "the columns that must contain them"),
    "type": (ENFORCED, "only `foreignKey` exists"),
    "id": (DOCUMENTED, SILENT["id"]),
    "customProperties": _OWN,
}
OF_SERVICE_LEVELS: Mapping[str, KeyState] = {
    "property": (ENFORCED, "the kind of service level, see above"),
    "value": (ENFORCED, "the duration, for those that are tested"),
    "unit": (ENFORCED, "s, min, h, d, w, mo, y or the full word; a bare m is an error"),
    "element": (ENFORCED, "the object, or the column that determines the age"),
    "schedule": (ENFORCED, "with delivery terms: when the data is due"),
    "customProperties": (
        ENFORCED,
        "`delivery`: 'dq watch' monitors every partition, so no check looks for gaps; all others are"
        " your own",
    ),
    "valueExt": (DOCUMENTED, "ODCS does not say what it means"),
    "driver": (DOCUMENTED, "who needs it"),
    "scheduler": (DOCUMENTED, "dq reads every schedule as cron"),
    "id": (DOCUMENTED, SILENT["id"]),
    "description": _READERS,
    "authoritativeDefinitions": _READERS,
}
OF_ENUM_VALUES: Mapping[str, KeyState] = {
    "value": (ENFORCED, "a value that the column may have"),
    "id": (DOCUMENTED, SILENT["id"]),
    "customProperties": _OWN,
    **dict.fromkeys(("label", "description", "tags", "authoritativeDefinitions"), _READERS),
}
