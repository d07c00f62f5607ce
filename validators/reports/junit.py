"""Findings as JUnit XML, which every CI server shows: a suite per contract file, a case per rule.

There is no standard; this is the form that Jenkins, GitLab and Azure read (testmoapp/junitxml).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from dq.contracts.escaping import xml, xml_attribute
from dq.contracts.outcome import Finding
from dq.validators.lint import From, Linted, ReportFormat, Screen


def render(linted: Linted, _screen: Screen) -> str:
    """What blocks is a failure of its case; what does not is the output of a case that passes.

    A file without findings is one case that passes.
    """
    by_file: dict[str, list[Finding]] = {file: [] for file in linted.files}
    for finding in linted.findings:
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
    cases = [_case(file, rule, found) for rule, found in by_rule.items()]
    if not cases:
        named = xml_attribute(file)
        cases = [[f'    <testcase classname="{named}" name="no findings" file="{named}"/>']]
    failures = sum(_blocks(found) for found in by_rule.values())
    contract = next((finding.contract for finding in findings if finding.contract), file)
    head = f'name="{xml_attribute(contract)}" tests="{len(cases)}" failures="{failures}" errors="0"'
    lines = [f"  <testsuite {head}>", *(line for case in cases for line in case), "  </testsuite>"]
    return lines, (len(cases), failures)


def _case(file: str, rule: str, findings: list[Finding]) -> list[str]:
    first = findings[0]
    listed = (f"{one.at}: {one.severity}: {one.message} {one.mend}".rstrip() for one in findings)
    told = xml("\n".join(listed))
    named = xml_attribute(file)
    head = f'classname="{named}" name="{xml_attribute(rule)}" file="{named}" line="{first.at.line}"'
    body = f"      <system-out>{told}</system-out>"
    if _blocks(findings):
        worst = next(one for one in findings if one.severity.blocks)
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        message = xml_attribute(f"{worst.message}{more}")
        body = f'      <failure message="{message}" type="{worst.severity}">{told}</failure>'
    return [f"    <testcase {head}>", body, "    </testcase>"]


def _blocks(findings: Iterable[Finding]) -> bool:
    return any(finding.severity.blocks for finding in findings)


REPORT = ReportFormat("junit", render, From.REPOSITORY)
