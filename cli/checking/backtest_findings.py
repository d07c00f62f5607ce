"""A back-test as findings at the lines of its rules, and as Markdown, for whoever reviews a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dq.cli.checking.backtest_text import listed
from dq.cli.checking.backtested import UntestedPast
from dq.cli.checking.selection import Pair
from dq.contracts.escaping import markdown_code, markdown_text
from dq.contracts.shared.outcome import CheckResult, Finding, Severity, Status
from dq.contracts.shared.wording import counted
from dq.dataquality.backtest.report import Backtest, RuleHistory
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.run_context import Partition
from dq.validators.reports.markdown import table

RULE = "backtest"
# The first line of the comment, by which the next run finds it again.
MARKER = "<!-- dq backtest -->"
_LOOSEN = "Loosen the rule, or mend these partitions, before it is merged."
_TELL = "Mend what keeps it from being tested: until then nobody knows."
_HEADER = ("", "where", "rule", "would have failed in", "promised")


def findings(tested: Sequence[tuple[Pair, Backtest | UntestedPast]]) -> list[Finding]:
    """Each rule that would have failed or could not be tested in some partition, at its line."""
    found: list[Finding] = []
    for (contract, one), past in tested:
        if isinstance(past, UntestedPast):
            error = past.error
            said = Finding(RULE, Severity.ERROR, error.message, error.mend, one.at(), one.path(), contract.id)
            found.append(said)
        else:
            found += [each for rule in past.rules for each in _of(rule, unsure(past, rule), contract.id)]
            found += [
                Finding(RULE, Severity.ERROR, reason, _TELL, one.at(), one.path(), contract.id)
                for reason in _unread(past)
            ]
    return sorted(found, key=lambda one: one.at)


Where = Sequence[tuple[Partition, CheckResult]]


def unsure(past: Backtest, rule: RuleHistory) -> Where:
    """Where a rule could not tell, but for the partitions that no rule could be tested in."""
    unread = {one.partition for one in past.unread}
    return [one for one in rule.of(Status.ERROR) if one[0] not in unread]


def _unread(past: Backtest) -> Iterator[str]:
    """The partitions that could not be tested at all, by the reason."""
    for reason in dict.fromkeys(one.reason for one in past.unread):
        names = [label(one.partition) for one in past.unread if one.reason == reason]
        yield f"{past.object}: {listed(names)} could not be tested: {reason}"


def _of(rule: RuleHistory, unsure: Where, contract: str) -> Iterator[Finding]:
    what, last = f"{rule.property} {rule.check}".strip(), counted(len(rule.results), "partition")
    if failed := rule.of(Status.FAIL):
        named = listed([f"{label(where)} ({result.observed})" for where, result in reversed(failed)])
        said = f"{what}: would have failed in {len(failed)} of the last {last}: {named};"
        said += f" promised {rule.allowed}." if rule.allowed else "."
        yield _finding(rule, said.replace(";.", "."), _LOOSEN, contract)
    if unsure:
        named = listed([label(where) for where, _ in reversed(unsure)])
        why = unsure[-1][1].message
        said = f"{what}: could not be tested in {len(unsure)} of the last {last}: {named}; {why}."
        yield _finding(rule, said, _TELL, contract)


def _finding(rule: RuleHistory, message: str, mend: str, contract: str) -> Finding:
    return Finding(RULE, rule.severity, message, mend, rule.at, rule.clause, contract)


def in_repository(found: Finding, folder: Path) -> Finding:
    """The finding with its file named from the top of the repository, as services of pull requests do."""
    file = Path(os.path.normpath(folder / found.at.file))
    top = next((one for one in file.parents if (one / ".git").exists()), None)
    if top is None:
        return found
    return replace(found, at=replace(found.at, file=file.relative_to(top).as_posix()))


def as_markdown(tested: Sequence[tuple[Pair, Backtest | UntestedPast]], folder: Path) -> str:
    """A heading, a row for each rule that would not have held, and what was not tested."""
    pasts = [past for _, past in tested if isinstance(past, Backtest)]
    rules = [(rule, rule.of(Status.FAIL), unsure(past, rule)) for past in pasts for rule in past.rules]
    broken = [one for one in rules if one[1] or one[2]]
    heading = f"## Rules on their past: {len(broken)} of {len(rules)} would not have held"
    parts = [MARKER, heading if broken else f"## Rules on their past: all {len(rules)} would have held"]
    if not rules:
        parts = [MARKER, "## Rules on their past: none was tested"]
    if broken:
        parts.append(table(_HEADER, (_row(*one, folder) for one in broken)))
    for past in pasts:
        if past.partitions:
            span = f"{label(past.partitions[0])} to {label(past.partitions[-1])}"
            said = f"{past.contract}/{past.object}: {counted(len(past.partitions), 'partition')}, {span}."
            parts.append(markdown_text(said))
        parts += [f"❌ {markdown_text(said)}" for said in _unread(past)]
        if past.untold:
            names = ", ".join(f"{one.property} {one.check}".strip() for one in past.untold)
            parts.append(markdown_text(f"Not tested: {names}: {past.untold[0].reason}."))
    untested = [past for _, past in tested if isinstance(past, UntestedPast)]
    parts += [f"❌ {markdown_text(f'{one.contract}/{one.object}: {one.error}')}" for one in untested]
    return "\n\n".join(parts) + "\n"


def _row(rule: RuleHistory, failed: Where, unsure: Where, folder: Path) -> list[str]:
    at = in_repository(Finding(RULE, Severity.INFO, "", "", rule.at), folder).at
    said = []
    if failed:
        named = listed([f"{label(where)} ({result.observed})" for where, result in reversed(failed)])
        said.append(f"{len(failed)} of {len(rule.results)}: {named}")
    if unsure:
        said.append(f"could not tell in {len(unsure)}: {listed([label(where) for where, _ in unsure])}")
    grave = "❌" if rule.severity.blocks else "⚠️"
    what = f"{rule.property} {rule.check}".strip()
    place = markdown_code(f"{at.file}:{at.line}")
    return [
        grave,
        place,
        markdown_code(what),
        "<br>".join(map(markdown_text, said)),
        markdown_text(rule.allowed),
    ]
