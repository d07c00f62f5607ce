"""Findings as JSON, for machines: one object with `findings` and `counts`, and the JSON Schema of it."""

from __future__ import annotations

import json

from dq.contracts import outcome
from dq.contracts.outcome import Severity
from dq.validators.lint import LintResult, ReportFormat, TerminalOptions, count_by_severity

# Findings as JSON, for machines: one object with `findings` and `counts`.


def render(result: LintResult, _terminal: TerminalOptions) -> str:
    """Render `{findings: [{rule, severity, message, hint, file, line, column, path, contract}], counts}`.

    `counts` has the number of files and of findings by severity. `dq schema findings` prints the schema.
    """
    document = {
        "findings": [finding.as_dict() for finding in result.findings],
        "counts": {
            "files": len(result.files),
            **{severity.value: number for severity, number in count_by_severity(result.findings).items()},
        },
    }
    return outcome.escape_json_document(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


REPORT = ReportFormat("json", render)


# JSON Schema (2020-12) of the output of `dq validate --format json`.


def findings_schema() -> dict[str, object]:
    """Return the schema. It is closed: new keys are added with a new schema, and keys are never removed."""
    finding: dict[str, object] = {
        "rule": _text("Id of the rule; 'dq explain' shows its page.", pattern="^[a-z0-9]+(-[a-z0-9]+)*$"),
        "severity": {
            "enum": [severity.value for severity in Severity],
            "description": "error and critical fail the run.",
        },
        "message": _text("What is wrong, with the value found."),
        "hint": _text("How to fix it; may be empty."),
        "file": _text("Relative to the registry's root, or absolute outside of it.", minLength=1),
        "line": _count("Counts from 1.", minimum=1),
        "column": _count("In code points, counts from 1.", minimum=1),
        "path": _text("Path inside the document, e.g. schema[0].name; empty for the whole document."),
        "contract": _text("Id of the contract; empty when it could not be read."),
    }
    counts: dict[str, object] = {
        "files": _count("Contracts that were read."),
        **{severity.value: _count("Findings of this severity.") for severity in reversed(Severity)},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Findings of dq validate",
        **_closed({"findings": {"type": "array", "items": _closed(finding)}, "counts": _closed(counts)}),
    }


def _text(description: str, **constraints: object) -> dict[str, object]:
    return {"type": "string", "description": description, **constraints}


def _count(description: str, minimum: int = 0) -> dict[str, object]:
    return {"type": "integer", "minimum": minimum, "description": description}


def _closed(properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }
