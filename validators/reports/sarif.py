"""Findings as SARIF 2.1.0, for GitHub's code scanning and for editors.

Source: the OASIS standard (https://docs.oasis-open.org/sarif/sarif/v2.1.0/) and GitHub's page "SARIF
support for code scanning", which lists the properties that GitHub reads.
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
from dq.validators.lint import LintResult, PathBase, ReportFormat, TerminalOptions, lines, load_rules
from dq.validators.rule import Rule
from dq.validators.rule_page import explain

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Severity.CRITICAL: "error",
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}
# GitHub's names for the severity of a rule that is not about security.
_PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}
_INDEX = re.compile(r"\[\d+\]")
# SARIF interprets `[text](place)` in a message as a link; ours have no links, but quote user texts.
_LINK = re.compile(r"\[(?=[^\]]*\]\()")


def render(result: LintResult, _terminal: TerminalOptions) -> str:
    """Render one run with the pages of the reported rules, and a result for every finding.

    Columns count code points, from 1. Files are relative to the root of the repository.
    """
    rule_ids = sorted({finding.rule for finding in result.findings})
    rules = load_rules()
    driver = {
        "name": "dq",
        "fullName": "dq validate",
        "rules": [_descriptor(id_, rules, result.findings) for id_ in rule_ids],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "dq/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": _results(result, {id_: index for index, id_ in enumerate(rule_ids)}),
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return outcome.escape_json_document(json.dumps(document, indent=2)) + "\n"


def _descriptor(id_: str, rules: Mapping[str, Rule], findings: Iterable[Finding]) -> dict[str, object]:
    """Return the SARIF descriptor of a rule; a rule that is not built in has its id as summary."""
    gravest = max(
        (finding.severity for finding in findings if finding.rule == id_), key=lambda severity: severity.rank
    )
    rule = rules.get(id_)
    level = _LEVELS[rule.severity if rule else gravest]
    descriptor: dict[str, object] = {
        "id": id_,
        "defaultConfiguration": {"level": level},
        "properties": {"problem.severity": _PROBLEM[level], "tags": ["data-contract"]},
    }
    if rule is None:
        text = id_.replace("-", " ")
        return descriptor | {"shortDescription": {"text": text}, "help": {"text": text}}
    page = rule_page.parse(rule.page)
    return descriptor | {
        "shortDescription": {"text": _plain(page.summary)},
        "fullDescription": {"text": _plain(f"{page.summary} {page.why}")},
        "help": {"text": explain(rules, id_), "markdown": _markdown(page)},
    }


def _markdown(page: rule_page.Page) -> str:
    return (
        f"{page.summary}\n\n## Why\n\n{page.why}\n\n"
        f"## Bad\n\n```yaml\n{page.bad}```\n\n## Good\n\n```yaml\n{page.good}```\n\n## How to "
        f"fix\n\n{page.hint}\n"
    )


def _results(result: LintResult, indices: Mapping[str, int]) -> list[dict[str, object]]:
    source = {file: lines(data) for file, data in result.sources.items()}
    occurrences: Counter[str] = Counter()
    results = []
    for finding in result.findings:
        line = _line(source.get(finding.at.file, []), finding.at.line)
        fingerprint = _fingerprint(finding, line)
        occurrences[fingerprint] += 1
        results.append(
            _result(finding, indices[finding.rule], line, f"{fingerprint}:{occurrences[fingerprint]}")
        )
    return results


def _result(finding: Finding, index: int, line: str, fingerprint: str) -> dict[str, object]:
    position = finding.at
    region: dict[str, object] = {"startLine": position.line, "startColumn": position.column}
    if len(line.rstrip()) >= position.column:
        region["endColumn"] = len(line.rstrip()) + 1
        region["snippet"] = {"text": line}
    location: dict[str, object] = {
        "physicalLocation": {"artifactLocation": _artifact(position.file), "region": region}
    }
    if finding.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.path}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": _plain(f"{finding.message} {finding.hint}".rstrip())},
        "locations": [location],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
        "properties": {"severity": finding.severity.value, "contract": finding.contract},
    }


def _artifact(file: str) -> dict[str, str]:
    # A file name may contain bytes that are not valid text.
    uri = quote(os.fsencode(file))
    return {"uri": f"file://{uri}"} if file.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _fingerprint(finding: Finding, line: str) -> str:
    """Return a hash that is stable if lines or siblings are added: of the rule, the path without indexes, the
    line.

    It uses the contract's id instead of the file, so that a moved file keeps its alerts.
    """
    parts = (finding.contract or finding.at.file, finding.rule, _INDEX.sub("", finding.path), line.strip())
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _line(source: list[str], number: int) -> str:
    return source[number - 1] if number <= len(source) else ""


def _plain(text: str) -> str:
    return _LINK.sub(r"\\[", text)


REPORT = ReportFormat("sarif", render, PathBase.REPOSITORY)
