"""The JSON Schema of SARIF 2.1.0, as far as dq writes it and GitHub reads it."""

from __future__ import annotations

from typing import Any


def _closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """An object as SARIF's schema has them: closed, but for what is inside `properties`."""
    return {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": {**properties, "properties": {"type": "object"}},
    }


TEXT = {"type": "string", "minLength": 1}
MESSAGE = _closed(["text"], text=TEXT, markdown=TEXT)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
COUNT = {"type": "integer", "minimum": 1}
# No package on PyPI ships the official schema, so this is written from the standard (the sections named
# here) and from GitHub's page on what code scanning reads. It allows less than the official one.
SCHEMA = _closed(
    ["$schema", "version", "runs"],  # 3.13 sarifLog object
    **{"$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"}},
    version={"const": "2.1.0"},
    runs={
        "type": "array",
        "minItems": 1,
        "items": _closed(  # 3.14 run object
            ["tool", "results"],
            tool=_closed(  # 3.18 tool object
                ["driver"],
                driver=_closed(  # 3.19 toolComponent object
                    ["name", "rules"],
                    name=TEXT,
                    fullName=TEXT,
                    rules={
                        "type": "array",
                        "items": _closed(  # 3.49 reportingDescriptor object; help is GitHub's demand
                            ["id", "shortDescription", "help"],
                            id=TEXT,
                            shortDescription=MESSAGE,
                            fullDescription=MESSAGE,
                            help=MESSAGE,
                            defaultConfiguration=_closed([], level=LEVEL),  # 3.50
                        ),
                    },
                ),
            ),
            automationDetails=_closed(["id"], id={"type": "string", "pattern": "/$"}),  # 3.17
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},  # 3.14.27
            invocations={
                "type": "array",
                "items": _closed(["executionSuccessful"], executionSuccessful={"type": "boolean"}),  # 3.20
            },
            results={
                "type": "array",
                "items": _closed(  # 3.27 result object
                    ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
                    ruleId=TEXT,
                    ruleIndex={"type": "integer", "minimum": 0},
                    level=LEVEL,
                    message=MESSAGE,
                    locations={
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 1,
                        "items": _closed(  # 3.28 location object
                            ["physicalLocation"],
                            physicalLocation=_closed(  # 3.29
                                ["artifactLocation", "region"],
                                artifactLocation=_closed(  # 3.4
                                    ["uri"],
                                    uri={"type": "string", "pattern": "^[A-Za-z0-9%._~/:-]+$"},
                                    uriBaseId={"const": "%SRCROOT%"},
                                ),
                                region=_closed(  # 3.30
                                    ["startLine", "startColumn"],
                                    startLine=COUNT,
                                    startColumn=COUNT,
                                    endColumn=COUNT,
                                    snippet=_closed(["text"], text=TEXT),  # 3.3 artifactContent
                                ),
                            ),
                            logicalLocations={
                                "type": "array",
                                "items": _closed([], fullyQualifiedName=TEXT),  # 3.33
                            },
                        ),
                    },
                    partialFingerprints=_closed(  # 3.27.17; GitHub reads this one
                        ["primaryLocationLineHash"],
                        primaryLocationLineHash={"type": "string", "pattern": "^[0-9a-f]{16}:[1-9][0-9]*$"},
                    ),
                ),
            },
        ),
    },
)
