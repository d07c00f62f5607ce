"""The JSON Schema of OORS messages as dq writes them, closed: no key that is not in it.

No package on PyPI ships Bitol's own schema of this draft (datacontract-cli 1.2.8 was looked through). So this
one is written by hand after the pages and examples of v0.8.1: Fundamentals, Results, Run Lifecycle, and
full.oors.json. Of lists of values that these do not give whole, it allows those that dq writes.
Source: https://bitol-io.github.io/open-observability-results-standard.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 0}
NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
STATUS = {"enum": ["pass", "fail", "warn", "error", "skip", "unknown"]}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


_ONE = (
    *("mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo"),
    *("mustBeLessThan", "mustBeLessOrEqualTo"),
)
_TWO = ("mustBeBetween", "mustNotBeBetween")
THRESHOLD = {
    **_object(
        [],
        **{name: {"type": "number"} for name in _ONE},
        **dict.fromkeys(_TWO, NUMBERS),
    ),
    "minProperties": 1,
    "maxProperties": 1,
}
CUSTOM = {
    "type": "array",
    "items": _object(["property", "value"], property=TEXT, value={"type": "string"}),
}
RESULT = _object(
    ["id", "type", "name", "status"],
    id=TEXT,
    type={"enum": ["check", "metric"]},
    name=TEXT,
    status=STATUS,
    relatesTo={"type": "string", "pattern": "^schema/"},
    severity={"enum": ["critical", "high"]},
    target=_object(
        ["resourceType", "resourceIdentifier"],
        resourceType={"const": "table"},
        resourceIdentifier=TEXT,
        filter=TEXT,
    ),
    measure=_object(
        ["metric"],
        metric=TEXT,
        value={"type": "number"},
        threshold=THRESHOLD,
        unit={"enum": ["rows", "percent"]},
        rowCount=COUNT,
        failedRowCount=COUNT,
    ),
    message=TEXT,
    customProperties=CUSTOM,
)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        ["apiVersion", "kind", "id", "observedAt", "source", "status", "results"],
        apiVersion={"const": "v0.8.1"},
        kind={"const": "ObservabilityResults"},
        id={"type": "string", "format": "uuid"},
        observedAt={"type": "string", "format": "date-time"},
        source=_object(["process"], process=TEXT, runId=TEXT, vendor=TEXT),
        contract=_object(
            ["contractId"], contractId=TEXT, standard={"const": "ODCS"}, version=TEXT, server=TEXT
        ),
        status=STATUS,
        results={"type": "array", "items": RESULT, "minItems": 1},
        customProperties=CUSTOM,
    ),
}
