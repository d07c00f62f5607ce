"""TABLE: where the JSON Schema of a version takes more, or asks for less, than the standard names.

What stands there is told all the same, as a warning: a misspelt key promises nothing. Source: the JSON
Schemas of ODCS 3.0.0 to 3.2.0 (`additionalProperties`, `unevaluatedProperties`, `required`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dq.contracts.shared.outcome import Finding, Severity
from dq.contracts.shared.spelling import nearest
from dq.contracts.versions import Version

# Of every version: the mapping that takes any key.
_OPEN = re.compile(r"description")
# Of 3.0: the mappings that take no key but their own. Everything else took any key before 3.1.
_CLOSED_IN_3_0 = re.compile(r"(schema\[\d+\](\.properties\[\d+\]|\.items)*(\.logicalTypeOptions)?)?")
# Of 3.0: what lacked the keys that 3.1 asks for.
_ASKS_LESS_IN_3_0 = re.compile(r"(.*\.)?(customProperties|team)\[\d+\]")
_KEYS = ("unknown-key", "later-version")
# Keys of which a later version has more values: a value that the version has not is no further key.
_LATER_VALUES = ("logicalType", "type")


def softened(findings: Iterable[Finding], odcs: Version, cut: Iterable[str]) -> list[Finding]:
    """The findings, those as warnings that the schema of the contract's own version does not share.

    `cut` are the paths that were left out of the contract, among them those of required keys that are
    missing.
    """
    absent: dict[str, list[str]] = defaultdict(list)
    for path in cut:
        holder, _, key = path.rpartition(".")
        absent[holder].append(key)
    return [
        replace(finding, severity=Severity.WARNING) if _allowed(finding, odcs, absent) else finding
        for finding in findings
    ]


def _allowed(finding: Finding, odcs: Version, absent: Mapping[str, list[str]]) -> bool:
    if finding.rule not in (*_KEYS, "missing-key"):
        return False
    holder, _, key = finding.path.rpartition(".")
    if odcs < (3, 1, 0) and _ASKS_LESS_IN_3_0.fullmatch(holder):
        return True
    if finding.rule == "missing-key" or any(_means(key, name) for name in absent.get(holder, ())):
        # The key that was meant is required: its absence is told by this finding alone.
        return False
    if _OPEN.fullmatch(holder):
        return True
    if odcs >= (3, 1, 0) or _CLOSED_IN_3_0.fullmatch(holder):
        return False
    return finding.rule == "unknown-key" or key not in _LATER_VALUES


def _means(key: str, absent: str) -> bool:
    return key != absent and (key == "$ref" or nearest(key, [absent]) is not None)
