"""The JSON Schema of OpenLineage's run events, with the facets that dq writes, closed where dq adds nothing.

No package on PyPI ships the official files, so these are written from them, key by key: spec/OpenLineage.json
(2-0-x) and facets/*.json of https://github.com/OpenLineage/OpenLineage, in the versions that the client's
classes name as `_schemaURL`. They allow less than the official ones: no key that is not in them.
"""

from __future__ import annotations

from typing import Any

SPEC = "https://openlineage.io/spec"
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
NUMBER = {"type": "number"}
TIME = {"type": "string", "format": "date-time"}
URI = {"type": "string", "format": "uri"}
LIST = {"type": "array"}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }


def _facet(version: str, file: str, required: list[str], **properties: Any) -> dict[str, Any]:
    """A BaseFacet of OpenLineage.json: `_producer` and `_schemaURL` are required of each."""
    url = f"{SPEC}/facets/{version}/{file}.json#/$defs/{file}"
    base = {"_producer": URI, "_schemaURL": {"const": url}}
    return _object(["_producer", "_schemaURL", *required], **base, **properties)


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


# What the assertion of the data quality facet and a test of the test run facet share.
_TESTED = {
    "name": TEXT,
    "severity": {"enum": ["error", "warn"]},
    "description": TEXT,
    "expected": TEXT,
    "actual": TEXT,
    "content": TEXT,
    "contentType": TEXT,
    "params": {"type": "object"},
}
ASSERTIONS = _facet(
    "1-1-0",
    "DataQualityAssertionsDatasetFacet",
    ["assertions"],
    assertions=_array(
        _object(["assertion", "success"], assertion=TEXT, success={"type": "boolean"}, column=TEXT, **_TESTED)
    ),
)
METRICS = _facet(
    "1-0-3",
    "DataQualityMetricsInputDatasetFacet",
    ["columnMetrics"],
    rowCount=COUNT,
    bytes=COUNT,
    fileCount=COUNT,
    lastUpdated=TIME,
    columnMetrics={
        "type": "object",
        "additionalProperties": _object(
            [],
            nullCount=COUNT,
            distinctCount=COUNT,
            sum=NUMBER,
            count=NUMBER,
            min=NUMBER,
            max=NUMBER,
            quantiles={"type": "object", "additionalProperties": NUMBER},
        ),
    },
)
FIELDS = _array(
    _object(
        ["name"],
        name=TEXT,
        type=TEXT,
        description=TEXT,
        ordinal_position={"type": "integer"},
        fields={"$ref": "#/$defs/fields"},
    )
)
SCHEMA_FACET = _facet("1-2-0", "SchemaDatasetFacet", [], fields={"$ref": "#/$defs/fields"})
SYMLINKS = _facet(
    "1-0-1",
    "SymlinksDatasetFacet",
    [],
    identifiers=_array(_object(["namespace", "name", "type"], namespace=TEXT, name=TEXT, type=TEXT)),
)
OUTPUT = _facet(
    "1-0-2", "OutputStatisticsOutputDatasetFacet", [], rowCount=COUNT, size=COUNT, fileCount=COUNT
)
TAGS = _facet(
    "1-0-0", "TagsRunFacet", [], tags=_array(_object(["key", "value"], key=TEXT, value=TEXT, source=TEXT))
)
TESTS = _facet(
    "1-0-1",
    "TestRunFacet",
    ["tests"],
    tests=_array(
        _object(["name", "status"], status={"enum": ["pass", "fail", "skip"]}, type=TEXT, **_TESTED)
    ),
)
ERROR = _facet(
    "1-0-1",
    "ErrorMessageRunFacet",
    ["message", "programmingLanguage"],
    message=TEXT,
    programmingLanguage=TEXT,
    stackTrace=TEXT,
)
JOB_TYPE = _facet(
    "2-0-4",
    "JobTypeJobFacet",
    ["processingType", "integration"],
    processingType=TEXT,
    integration=TEXT,
    jobType=TEXT,
)
DATASET = {"namespace": {**TEXT, "minLength": 1}, "name": {**TEXT, "minLength": 1}}
DATASET["facets"] = _object([], schema=SCHEMA_FACET, symlinks=SYMLINKS)
INPUT = _object(
    ["namespace", "name"],
    **DATASET,
    inputFacets=_object([], dataQualityAssertions=ASSERTIONS, dataQualityMetrics=METRICS),
)
# $defs/RunEvent, which is $defs/BaseEvent with a run and a job.
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"fields": FIELDS},
    **_object(
        ["eventTime", "producer", "schemaURL", "eventType", "run", "job"],
        eventTime=TIME,
        producer=URI,
        schemaURL={"const": f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"},
        eventType={"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        run=_object(
            ["runId"],
            runId={"type": "string", "format": "uuid"},
            facets=_object([], tags=TAGS, test=TESTS, errorMessage=ERROR),
        ),
        job=_object(["namespace", "name"], namespace=TEXT, name=TEXT, facets=_object([], jobType=JOB_TYPE)),
        inputs=_array(INPUT),
        outputs=_array(
            _object(["namespace", "name"], **DATASET, outputFacets=_object([], outputStatistics=OUTPUT))
        ),
    ),
}
