"""Back-tests and proposed rules for a reader, and as findings of a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dq.cli import output
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.escaping import markdown_code, markdown_text
from dq.contracts.outcome import Finding, Severity, join_limited, pluralize
from dq.contracts.yaml.portable import commented
from dq.dataquality.backtest import Backtest, RuleHistory
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.run_context import Partition
from dq.dataquality.propose import Proposed
from dq.operations.backtest import Tested, UntestedPast
from dq.validators.reports.markdown import table

# A back-test as text.

# Maximum number of partitions named per rule; JSON has all of them.
_MAX_NAMED = 3


def describe_backtest(backtest: Backtest) -> None:
    """Print a back-test: the rules that would have failed somewhere, and what was not tested."""
    head = f"{backtest.contract}/{backtest.object}"
    if not backtest.partitions:
        output.line(f"{output.styled(head, bold=True)}: no partitions yet.")
        return
    first, last = label(backtest.partitions[0]), label(backtest.partitions[-1])
    count = f"{len(backtest.partitions)} of {backtest.present} partitions, {first} to {last}"
    output.line(output.styled(f"{head}: {count}", bold=True))
    passing = []
    for rule in backtest.rules:
        failed, untested = rule.with_status(Status.FAIL), undecided(backtest, rule)
        if failed:
            _describe_rule(rule, failed, good=False)
        if untested:
            _describe_rule(rule, untested, good=None)
        if not failed and not untested:
            passing.append(rule)
    tested = len(backtest.partitions) - len({unread.partition for unread in backtest.unreadable})
    if passing and tested:
        empty = sum(len(passing_rule.with_status(Status.SKIPPED)) == tested for passing_rule in passing)
        summary = f"{pluralize(len(passing), 'rule')} would never have failed"
        output.line(f"  {summary}{f' ({empty} had nothing to test)' if empty else ''}.")
    for text in _unread_partitions(backtest):
        output.line(f"  {output.mark(None)} {text}")
    _describe_separate_passes(backtest)
    if backtest.untested:
        summary = ", ".join(
            dict.fromkeys(
                f"{untested_rule.property} {untested_rule.check}".strip()
                for untested_rule in backtest.untested
            )
        )
        output.line(
            f"  {pluralize(len(backtest.untested), 'rule')} not tested: {summary}: "
            f"{backtest.untested[0].reason}."
        )


def _describe_separate_passes(backtest: Backtest) -> None:
    """Print the rules that needed a separate pass for each partition."""
    unbatched_rules = [
        rule for rule in backtest.rules if rule.batched_count < len(rule.results) - len(backtest.unreadable)
    ]
    if unbatched_rules and len(backtest.partitions) > 1:
        # Only the rules are named: one that cannot be batched cannot be for any partition.
        names = dict.fromkeys(f"{rule.property} {rule.check}".strip() for rule in unbatched_rules)
        output.line(f"  Tested one partition at a time instead of in one pass: {listed(list(names))}.")


def _describe_rule(
    rule: RuleHistory, results: Sequence[tuple[Partition, CheckResult]], *, good: bool | None
) -> None:
    rule_name = f"{rule.property} {rule.check}".strip()
    verdict = "could not be tested" if good is None else "would have failed"
    limit = f", expected {rule.allowed}" if rule.allowed else ""
    count = f"{len(results)} of {len(rule.results)}"
    output.line(f"  {output.mark(good)} {rule_name}: {verdict} in {count}{limit}  ({rule.at})")
    for partition, result in results[:_MAX_NAMED]:
        output.line(f"      {label(partition)}: {result.message if good is None else result.observed}")
    if len(results) > _MAX_NAMED:
        output.line(f"      … and {len(results) - _MAX_NAMED} more, the latest {label(results[-1][0])}")


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    return join_limited(names, _MAX_NAMED)


# A back-test as findings at the lines of its rules, and as Markdown, for reviews of pull requests.

RULE = "backtest"
# The first line of the comment, by which the next run finds it again.
MARKER = "<!-- dq backtest -->"
_LOOSEN_HINT = "Relax the rule, or fix these partitions, before merging."
_TEST_HINT = "Fix what prevents the test: until then the result is unknown."
_HEADER = ("", "where", "rule", "would have failed in", "expected")


def findings(tested: Sequence[Tested]) -> list[Finding]:
    """Return a finding for each rule that would have failed or could not be tested in some partition."""
    rule_findings: list[Finding] = []
    for (contract, schema_object), past in tested:
        if isinstance(past, UntestedPast):
            error = past.error
            past_finding = Finding(
                RULE,
                Severity.ERROR,
                error.message,
                error.hint,
                schema_object.locate(),
                schema_object.path(),
                contract.id,
            )
            rule_findings.append(past_finding)
        else:
            rule_findings += [
                finding
                for rule in past.rules
                for finding in _rule_findings(rule, undecided(past, rule), contract.id)
            ]
            rule_findings += [
                Finding(
                    RULE,
                    Severity.ERROR,
                    f"{past.object}: {text}",
                    _TEST_HINT,
                    schema_object.locate(),
                    schema_object.path(),
                    contract.id,
                )
                for text in _unread_partitions(past)
            ]
    return sorted(rule_findings, key=lambda finding: finding.at)


PartitionResults = Sequence[tuple[Partition, CheckResult]]


def undecided(past: Backtest, rule: RuleHistory) -> PartitionResults:
    """Return the errors of a rule, without those of partitions in which no rule could be tested."""
    unread = {partition.partition for partition in past.unreadable}
    return [result for result in rule.with_status(Status.ERROR) if result[0] not in unread]


def _unread_partitions(past: Backtest) -> Iterator[str]:
    """Yield one sentence per reason with the partitions that could not be tested."""
    for reason in dict.fromkeys(partition.reason for partition in past.unreadable):
        names = [label(partition.partition) for partition in past.unreadable if partition.reason == reason]
        yield f"{listed(names)} could not be tested: {reason}"


def _rule_findings(
    rule: RuleHistory, undecided_results: PartitionResults, contract: str
) -> Iterator[Finding]:
    rule_name, last = f"{rule.property} {rule.check}".strip(), pluralize(len(rule.results), "partition")
    if failed := rule.with_status(Status.FAIL):
        failed_partitions = listed(
            [f"{label(partition)} ({result.observed})" for partition, result in reversed(failed)]
        )
        message = f"{rule_name}: would have failed in {len(failed)} of the last {last}: {failed_partitions};"
        message += f" expected {rule.allowed}." if rule.allowed else "."
        yield _finding(rule, message.replace(";.", "."), _LOOSEN_HINT, contract)
    if undecided_results:
        failed_partitions = listed([label(partition) for partition, _ in reversed(undecided_results)])
        why = undecided_results[-1][1].message
        message = (
            f"{rule_name}: could not be tested in {len(undecided_results)} of the last {last}: "
            f"{failed_partitions}; {why}."
        )
        yield _finding(rule, message, _TEST_HINT, contract)


def _finding(rule: RuleHistory, message: str, hint: str, contract: str) -> Finding:
    return Finding(RULE, rule.severity, message, hint, rule.at, rule.clause, contract)


def in_repository(finding: Finding, folder: Path) -> Finding:
    """Return the finding with its file relative to the top of the repository, as code hosts expect."""
    file = Path(os.path.normpath(folder / finding.at.file))
    top = next((folder_ for folder_ in file.parents if (folder_ / ".git").exists()), None)
    if top is None:
        return finding
    return replace(finding, at=replace(finding.at, file=file.relative_to(top).as_posix()))


def as_markdown(tested: Sequence[Tested], folder: Path) -> str:
    """Return Markdown: a heading, a row for each rule that would have failed, and what was not tested."""
    pasts = [past for _, past in tested if isinstance(past, Backtest)]
    rules = [
        (rule, rule.with_status(Status.FAIL), undecided(past, rule)) for past in pasts for rule in past.rules
    ]
    broken = [rule for rule in rules if rule[1] or rule[2]]
    heading = f"## Backtest: {len(broken)} of {len(rules)} rules would not have passed"
    parts = [MARKER, heading if broken else f"## Backtest: all {len(rules)} rules would have passed"]
    if not rules:
        parts = [MARKER, "## Backtest: no rules tested"]
    if broken:
        parts.append(table(_HEADER, (_row(*rule, folder) for rule in broken)))
    for past in pasts:
        if past.partitions:
            span = f"{label(past.partitions[0])} to {label(past.partitions[-1])}"
            summary = (
                f"{past.contract}/{past.object}: {pluralize(len(past.partitions), 'partition')}, {span}."
            )
            parts.append(markdown_text(summary))
        parts += [f"❌ {markdown_text(f'{past.object}: {text}')}" for text in _unread_partitions(past)]
        if past.untested:
            names = ", ".join(f"{rule.property} {rule.check}".strip() for rule in past.untested)
            parts.append(markdown_text(f"Not tested: {names}: {past.untested[0].reason}."))
    untested = [past for _, past in tested if isinstance(past, UntestedPast)]
    parts += [
        f"❌ {markdown_text(f'{untested_past.contract}/{untested_past.object}: {untested_past.error}')}"
        for untested_past in untested
    ]
    return "\n\n".join(parts) + "\n"


def _row(
    rule: RuleHistory, failed: PartitionResults, undecided_results: PartitionResults, folder: Path
) -> list[str]:
    location = in_repository(Finding(RULE, Severity.INFO, "", "", rule.at), folder).at
    details = []
    if failed:
        named = listed([f"{label(partition)} ({result.observed})" for partition, result in reversed(failed)])
        details.append(f"{len(failed)} of {len(rule.results)}: {named}")
    if undecided_results:
        details.append(
            f"could not be tested in {len(undecided_results)}: "
            f"{listed([label(partition) for partition, _ in undecided_results])}"
        )
    sign = "❌" if rule.severity.blocks else "⚠️"
    rule_name = f"{rule.property} {rule.check}".strip()
    place = markdown_code(f"{location.file}:{location.line}")
    return [
        sign,
        place,
        markdown_code(rule_name),
        "<br>".join(map(markdown_text, details)),
        markdown_text(rule.allowed),
    ]


# Suggested rules as text.


def describe_proposals(proposed: Proposed) -> None:
    """Print on stderr the profiled data, the number of suggested rules, and what was left out and why."""
    head = output.styled(f"{proposed.contract}/{proposed.object}", bold=True)
    rows = pluralize(proposed.rows, "row")
    if proposed.partitions:
        profiled = f"{proposed.partitions:,} of {pluralize(proposed.present, 'partition')}, {rows}"
    else:
        profiled = f"one snapshot of {rows}, which does not show how the data changes"
    output.note(f"{head}: profiled {profiled}.")
    output.note(f"  {pluralize(len(proposed.proposals), 'rule')} suggested, each tested on the same data.")
    if proposed.empty:
        output.note(f"  Without values, no rules suggested: {_names(proposed.empty)}.")
    if proposed.unreadable:
        output.note(f"  Not readable by Spark, no rules suggested: {_names(proposed.unreadable)}.")
    if proposed.hidden:
        output.note(
            f"  Sensitive by classification, name or format, values not shown: {_names(proposed.hidden)}."
        )
    for dropped in proposed.dropped:
        location = commented(dropped.proposal.column or proposed.object)
        output.note(f"  Omitted: {location}: {dropped.proposal.summary}: {commented(dropped.reason)}")


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(commented(name) for name in names)
