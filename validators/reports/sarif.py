"""Findings as SARIF 2.1.0, for GitHub's code scanning and for editors.

Source: the OASIS standard (https://docs.oasis-open.org/sarif/sarif/v2.1.0/) and GitHub's page "SARIF
support for code scanning", which says what of it GitHub reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from dq.contracts import outcome
from dq.contracts.outcome import Finding, Severity
from dq.validators import rule_page
from dq.validators.lint import From, Linted, ReportFormat, Screen, lines, rules_of
from dq.validators.rule import Rule
from dq.validators.rule_page import explain

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}
# What GitHub calls the severity of a rule that is not about security.
_PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}
_INDEX = re.compile(r"\[\d+\]")
# A message of SARIF reads `[text](place)` as a link; ours have none, but quote what users write.
_LINK = re.compile(r"\[(?=[^\]]*\]\()")


def render(linted: Linted, _screen: Screen) -> str:
    """One run with the pages of the rules that spoke, and a result for every finding.

    Columns count code points, from 1. A file is named from the root of the repository.
    """
    used = sorted({finding.rule for finding in linted.findings})
    shelf = rules_of()
    driver = {
        "name": "dq",
        "fullName": "dq validate",
        "rules": [_descriptor(id_, shelf, linted.findings) for id_ in used],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "dq/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": _results(linted, {id_: index for index, id_ in enumerate(used)}),
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return outcome.in_json(json.dumps(document, indent=2)) + "\n"


def _descriptor(id_: str, shelf: Mapping[str, Rule], findings: Iterable[Finding]) -> dict[str, object]:
    """The rule as readers of SARIF see it; one that is not on the shelf has its id for a summary."""
    gravest = max((one.severity for one in findings if one.rule == id_), key=lambda one: one.rank)
    rule = shelf.get(id_)
    level = _LEVELS[rule.severity if rule else gravest]
    made: dict[str, object] = {
        "id": id_,
        "defaultConfiguration": {"level": level},
        "properties": {"problem.severity": _PROBLEM[level], "tags": ["data-contract"]},
    }
    if rule is None:
        text = id_.replace("-", " ")
        return made | {"shortDescription": {"text": text}, "help": {"text": text}}
    said = rule_page.parse(rule.page)
    return made | {
        "shortDescription": {"text": _plain(said.summary)},
        "fullDescription": {"text": _plain(f"{said.summary} {said.why}")},
        "help": {"text": explain(shelf, id_), "markdown": _markdown(said)},
    }


def _markdown(said: rule_page.Page) -> str:
    return (
        f"{said.summary}\n\n## Why\n\n{said.why}\n\n"
        f"## Bad\n\n```yaml\n{said.bad}```\n\n## Good\n\n```yaml\n{said.good}```\n\n## Mend\n\n{said.mend}\n"
    )


def _results(linted: Linted, indices: Mapping[str, int]) -> list[dict[str, object]]:
    source = {file: lines(data) for file, data in linted.sources.items()}
    seen: Counter[str] = Counter()
    results = []
    for finding in linted.findings:
        written = _line(source.get(finding.at.file, []), finding.at.line)
        print_ = _fingerprint(finding, written)
        seen[print_] += 1
        results.append(_result(finding, indices[finding.rule], written, f"{print_}:{seen[print_]}"))
    return results


def _result(finding: Finding, index: int, written: str, fingerprint: str) -> dict[str, object]:
    at = finding.at
    region: dict[str, object] = {"startLine": at.line, "startColumn": at.column}
    if len(written.rstrip()) >= at.column:
        region["endColumn"] = len(written.rstrip()) + 1
        region["snippet"] = {"text": written}
    location: dict[str, object] = {
        "physicalLocation": {"artifactLocation": _artifact(at.file), "region": region}
    }
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": _plain(f"{finding.message} {finding.mend}".rstrip())},
        "locations": [location],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "properties": {"severity": finding.severity.value, "contract": finding.contract},
    }


def _artifact(file: str) -> dict[str, str]:
    # A file's name may hold bytes that are no text.
    uri = quote(os.fsencode(file))
    return {"uri": f"file://{uri}"} if file.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _fingerprint(finding: Finding, written: str) -> str:
    """What stays the same when lines or neighbours come and go: the rule, the place by its keys, the line.

    The contract stands for the file, so that a moved file keeps its alerts.
    """
    parts = (finding.contract or finding.at.file, finding.rule, _INDEX.sub("", finding.path), written.strip())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _line(source: list[str], number: int) -> str:
    return source[number - 1] if number <= len(source) else ""


def _plain(text: str) -> str:
    return _LINK.sub(r"\\[", text)


REPORT = ReportFormat("sarif", render, From.REPOSITORY)
