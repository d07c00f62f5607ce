"""Findings as JUnit XML, which every CI server shows: a suite per contract file, a case per rule.

There is no standard; this is the format that Jenkins, GitLab and Azure read (testmoapp/junitxml).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dq.contracts.escaping import xml, xml_attribute
from dq.contracts.outcome import Finding
from dq.validators.lint import LintResult, PathBase, ReportFormat, TerminalOptions


def render(result: LintResult, _terminal: TerminalOptions) -> str:
    """Render blocking findings as failures of their case, and others as output of a passing case.

    A file without findings is one passing case.
    """
    by_file: dict[str, list[Finding]] = {file: [] for file in result.files}
    for finding in result.findings:
        by_file.setdefault(finding.at.file, []).append(finding)
    suites = [_suite(file, findings) for file, findings in by_file.items()]
    tests, failures = (
        sum(column) for column in zip((0, 0), *(numbers for _, numbers in suites), strict=True)
    )
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="dq validate" tests="{tests}" failures="{failures}" errors="0">',
            *(line for lines, _ in suites for line in lines),
            "</testsuites>",
            "",
        ]
    )


def _suite(file: str, findings: list[Finding]) -> tuple[list[str], tuple[int, int]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    cases = [_case(file, rule, rule_findings) for rule, rule_findings in by_rule.items()]
    if not cases:
        file_attribute = xml_attribute(file)
        cases = [[f'    <testcase classname="{file_attribute}" name="no findings" file="{file_attribute}"/>']]
    failures = sum(_blocks(rule_findings) for rule_findings in by_rule.values())
    contract = next((finding.contract for finding in findings if finding.contract), file)
    head = f'name="{xml_attribute(contract)}" tests="{len(cases)}" failures="{failures}" errors="0"'
    lines = [f"  <testsuite {head}>", *(line for case in cases for line in case), "  </testsuite>"]
    return lines, (len(cases), failures)


def _case(file: str, rule: str, findings: list[Finding]) -> list[str]:
    first = findings[0]
    lines = (
        f"{finding.at}: {finding.severity}: {finding.message} {finding.hint}".rstrip() for finding in findings
    )
    output = xml("\n".join(lines))
    file_attribute = xml_attribute(file)
    head = (
        f'classname="{file_attribute}" name="{xml_attribute(rule)}" file="{file_attribute}" '
        f'line="{first.at.line}"'
    )
    body = f"      <system-out>{output}</system-out>"
    if _blocks(findings):
        worst = next(finding for finding in findings if finding.severity.blocks)
        suffix = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        message = xml_attribute(f"{worst.message}{suffix}")
        body = f'      <failure message="{message}" type="{worst.severity}">{output}</failure>'
    return [f"    <testcase {head}>", body, "    </testcase>"]


def _blocks(findings: Iterable[Finding]) -> bool:
    return any(finding.severity.blocks for finding in findings)


REPORT = ReportFormat("junit", render, PathBase.REPOSITORY)
