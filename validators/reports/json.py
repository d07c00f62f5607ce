"""Findings as JSON, for machines: one object with `findings` and `counts`."""

from __future__ import annotations

import json

from dq.contracts.shared import printable
from dq.validators.lint import Linted
from dq.validators.lint.report import ReportFormat, Screen, counts


def render(linted: Linted, _screen: Screen) -> str:
    """`{findings: [{rule, severity, message, mend, file, line, column, path, contract}], counts}`.

    `counts` has the number of files and of findings by severity. `dq schema findings` prints the schema.
    """
    document = {
        "findings": [finding.as_dict() for finding in linted.findings],
        "counts": {
            "files": len(linted.files),
            **{severity.value: number for severity, number in counts(linted.findings).items()},
        },
    }
    return printable.in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


REPORT = ReportFormat("json", render)
