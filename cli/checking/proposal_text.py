"""Proposed rules for a reader: from what was learnt, what is proposed, and what is not, and why."""

from __future__ import annotations

from dq.cli.terminal import output
from dq.contracts.shared.wording import counted
from dq.contracts.yaml.writing import commented
from dq.dataquality.proposal.propose import Proposed


def describe(one: Proposed) -> None:
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
