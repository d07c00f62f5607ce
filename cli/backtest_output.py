"""Back-tests and proposed rules for a reader, and as findings of a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dq.cli import output
from dq.contracts.escaping import markdown_code, markdown_text
from dq.contracts.outcome import CheckResult, Finding, Severity, Status, counted, first_of
from dq.contracts.yaml.insertion import commented
from dq.dataquality.backtest import Backtest, RuleHistory
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.run_context import Partition
from dq.dataquality.propose import Proposed
from dq.operations.backtest import Tested, UntestedPast
from dq.validators.reports.markdown import table

# A back-test for a reader: the rules that would not have held everywhere, and what was not tested.

# So many partitions are named beside a rule; JSON has all of them.
_NAMED = 3


def describe_backtest(found: Backtest) -> None:
    """The back-test for a reader: the rules that would not have held everywhere, and what was not tested."""
    head = f"{found.contract}/{found.object}"
    if not found.partitions:
        output.line(f"{output.styled(head, bold=True)}: it has no partition yet.")
        return
    first, last = label(found.partitions[0]), label(found.partitions[-1])
    count = f"{len(found.partitions)} of {found.present} partitions, {first} to {last}"
    output.line(output.styled(f"{head}: {count}", bold=True))
    quiet = []
    for rule in found.rules:
        failed, untested = rule.of(Status.FAIL), unsure(found, rule)
        if failed:
            _rule(rule, failed, good=False)
        if untested:
            _rule(rule, untested, good=None)
        if not failed and not untested:
            quiet.append(rule)
    tested = len(found.partitions) - len({one.partition for one in found.unread})
    if quiet and tested:
        empty = sum(len(one.of(Status.SKIPPED)) == tested for one in quiet)
        said = f"{counted(len(quiet), 'rule')} would have failed nowhere"
        output.line(f"  {said}{f', of which {empty} had nothing to test' if empty else ''}.")
    for text in _unread(found):
        output.line(f"  {output.mark(None)} {text}")
    _ways(found)
    if found.untold:
        said = ", ".join(dict.fromkeys(f"{one.property} {one.check}".strip() for one in found.untold))
        output.line(f"  {counted(len(found.untold), 'rule')} not tested: {said}: {found.untold[0].reason}.")


def _ways(found: Backtest) -> None:
    """Which rules cost a check of each partition, and why there were more than one pass."""
    apart = [rule for rule in found.rules if rule.together < len(rule.results) - len(found.unread)]
    if apart and len(found.partitions) > 1:
        # What keeps one rule from being asked of all keeps it in every partition; else these are partitions.
        names = dict.fromkeys(f"{rule.property} {rule.check}".strip() for rule in apart)
        output.line(f"  One partition after the other, not all in one pass: {listed(list(names))}.")


def _rule(rule: RuleHistory, where: Sequence[tuple[Partition, CheckResult]], *, good: bool | None) -> None:
    what = f"{rule.property} {rule.check}".strip()
    said = "could not tell" if good is None else "would have failed"
    limit = f", promised {rule.allowed}" if rule.allowed else ""
    count = f"{len(where)} of {len(rule.results)}"
    output.line(f"  {output.mark(good)} {what}: {said} in {count}{limit}  ({rule.at})")
    for partition, result in where[:_NAMED]:
        output.line(f"      {label(partition)}: {result.message if good is None else result.observed}")
    if len(where) > _NAMED:
        output.line(f"      … and {len(where) - _NAMED} more, the last one {label(where[-1][0])}")


def listed(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    return first_of(names, _NAMED)


# A back-test as findings at the lines of its rules, and as Markdown, for whoever reviews a pull request.

RULE = "backtest"
# The first line of the comment, by which the next run finds it again.
MARKER = "<!-- dq backtest -->"
_LOOSEN = "Loosen the rule, or mend these partitions, before it is merged."
_TELL = "Mend what keeps it from being tested: until then nobody knows."
_HEADER = ("", "where", "rule", "would have failed in", "promised")


def findings(tested: Sequence[Tested]) -> list[Finding]:
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
                Finding(
                    RULE, Severity.ERROR, f"{past.object}: {text}", _TELL, one.at(), one.path(), contract.id
                )
                for text in _unread(past)
            ]
    return sorted(found, key=lambda one: one.at)


Where = Sequence[tuple[Partition, CheckResult]]


def unsure(past: Backtest, rule: RuleHistory) -> Where:
    """Where a rule could not tell, but for the partitions that no rule could be tested in."""
    unread = {one.partition for one in past.unread}
    return [one for one in rule.of(Status.ERROR) if one[0] not in unread]


def _unread(past: Backtest) -> Iterator[str]:
    """The partitions that could not be tested at all, a sentence for each reason."""
    for reason in dict.fromkeys(one.reason for one in past.unread):
        names = [label(one.partition) for one in past.unread if one.reason == reason]
        yield f"{listed(names)} could not be tested: {reason}"


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


def as_markdown(tested: Sequence[Tested], folder: Path) -> str:
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
        parts += [f"❌ {markdown_text(f'{past.object}: {text}')}" for text in _unread(past)]
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


# Proposed rules for a reader: from what was learnt, what is proposed, and what is not, and why.


def describe_proposals(one: Proposed) -> None:
    """On stderr, for a reader: from what was learnt, what is proposed, and what is not promised, and why."""
    head = output.styled(f"{one.contract}/{one.object}", bold=True)
    rows = counted(one.rows, "row")
    if one.partitions:
        seen = f"{one.partitions:,} of {counted(one.present, 'partition')}, {rows}"
    else:
        seen = f"one snapshot of {rows}, which shows nothing of how it changes"
    output.note(f"{head}: learnt from {seen}.")
    output.note(f"  {counted(len(one.proposals), 'rule')} proposed, each tested on the same data.")
    if one.empty:
        output.note(f"  Without any value, so that nothing is promised: {_names(one.empty)}.")
    if one.unreadable:
        output.note(f"  Not read by Spark, so that nothing is proposed: {_names(one.unreadable)}.")
    if one.hidden:
        output.note(
            f"  Sensitive by classification, name or form, so that no value is shown: {_names(one.hidden)}."
        )
    for out in one.dropped:
        where = commented(out.proposal.column or one.object)
        output.note(f"  Left out: {where}: {out.proposal.says}: {commented(out.reason)}")


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(commented(name) for name in names)
