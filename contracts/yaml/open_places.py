"""TABLE: where the JSON Schema of a version takes more, or asks for less, than the standard names.

What stands there is told all the same, as a warning: a misspelt key promises nothing. Source: the JSON
Schemas of ODCS 3.0.2, 3.1.0 and 3.2.0 (`additionalProperties`, `unevaluatedProperties`, `required`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from dq.contracts.shared.outcome import Finding, Severity
from dq.contracts.versions import Version

# Of every version: the mapping that takes any key.
_OPEN = re.compile(r"description")
# Of 3.0: the mappings that take no key but their own. Everything else took any key before 3.1.
_CLOSED_IN_3_0 = re.compile(r"(schema\[\d+\](\.properties\[\d+\]|\.items)*(\.logicalTypeOptions)?)?")
# Of 3.0: what lacked the keys that 3.1 asks for.
_ASKS_LESS_IN_3_0 = re.compile(r"(.*\.)?(customProperties|team)\[\d+\]")

_KEYS = ("unknown-key", "later-version")


def softened(findings: Iterable[Finding], odcs: Version) -> list[Finding]:
    """The findings, those as warnings that the schema of the contract's own version does not share."""
    return [
        replace(finding, severity=Severity.WARNING) if _allowed(finding, odcs) else finding
        for finding in findings
    ]


def _allowed(finding: Finding, odcs: Version) -> bool:
    if finding.rule not in (*_KEYS, "missing-key"):
        return False
    if finding.mend.startswith("Did you mean"):
        # The key that was meant is missing, and what follows from that is not told beside this.
        return False
    holder = finding.path.rpartition(".")[0]
    if finding.rule == "missing-key":
        return odcs < (3, 1, 0) and _ASKS_LESS_IN_3_0.fullmatch(holder) is not None
    if _OPEN.fullmatch(holder):
        return True
    return (
        odcs < (3, 1, 0)
        and "logicalType" not in finding.path.rpartition(".")[2]
        and (_CLOSED_IN_3_0.fullmatch(holder) is None)
    )
