"""A back-test for a reader: the rules that would not have held everywhere, and what was not tested."""

from __future__ import annotations

from collections.abc import Sequence

from dq.cli.terminal import output
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.shared.wording import counted, first_of
from dq.dataquality.backtest.report import Backtest, RuleHistory
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.run_context import Partition

# So many partitions are named beside a rule; JSON has all of them.
_NAMED = 3


def describe(found: Backtest) -> None:
    """The back-test for a reader: the rules that would not have held everywhere, and what was not tested."""
    head = f"{found.contract}/{found.object}"
    if not found.partitions:
        output.line(f"{output.styled(head, bold=True)}: it has no partition yet.")
        return
    first, last = label(found.partitions[0]), label(found.partitions[-1])
    count = f"{len(found.partitions)} of {found.present} partitions, {first} to {last}"
    output.line(output.styled(f"{head}: {count}", bold=True))
    unread = {one.partition for one in found.unread}
    quiet = []
    for rule in found.rules:
        unsure = [one for one in rule.of(Status.ERROR) if one[0] not in unread]
        failed = rule.of(Status.FAIL)
        if failed:
            _rule(rule, failed, good=False)
        if unsure:
            _rule(rule, unsure, good=None)
        if not failed and not unsure:
            quiet.append(rule)
    tested = len(found.partitions) - len(unread)
    if quiet and tested:
        empty = sum(len(one.of(Status.SKIPPED)) == tested for one in quiet)
        said = f"{counted(len(quiet), 'rule')} would have failed nowhere"
        output.line(f"  {said}{f', of which {empty} had nothing to test' if empty else ''}.")
    for reason in dict.fromkeys(one.reason for one in found.unread):
        names = [label(one.partition) for one in found.unread if one.reason == reason]
        output.line(f"  {output.mark(None)} {listed(names)} could not be tested: {reason}")
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
