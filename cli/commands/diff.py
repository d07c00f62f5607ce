"""dq diff"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import typer

from dq.cli import output
from dq.contracts.escaping import markdown_code, markdown_text
from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError
from dq.operations.diff import diff, read_version
from dq.operations.runtime.context import runtime_context
from dq.validators.compat.classification import DEFAULT_ENGINES, Mode, Verdict
from dq.validators.compat.classified_change import (
    ClassifiedChange,
    Comparison,
    Concern,
    summary,
    version_sentence,
)

_COLORS = {Verdict.BREAK: "red", Verdict.WARN: "yellow", Verdict.OK: "green"}


def command(
    before: str = typer.Argument(help="Old version: a file, or REF:path of a file in Git."),
    after: str = typer.Argument(help="New version: a file, or REF:path of a file in Git."),
    mode: Mode = typer.Option(None, "--mode", help="Compatibility mode (default: the contract's)."),
    engines: str = typer.Option(
        ",".join(DEFAULT_ENGINES), "--engines", help="Engines that read the data, comma-separated."
    ),
    table_format: str = typer.Option(
        None, "--table-format", help="Table format, e.g. iceberg-v3 (default: the contract's)."
    ),
    subscriptions: Path = typer.Option(
        None, "--subscriptions", help="Folder of subscription files (default: the registry's)."
    ),
    today: str = typer.Option(None, "--today", help="Evaluate as of this date, e.g. 2026-05-01."),
    format: output.PageFormat = output.COMMENT_FORMAT,
) -> None:
    """Compare two versions of a contract: changes, affected consumers, required version bump.

    Compatibility and version policy are separate verdicts: a compatible change may still need a new
    version.

    Exit codes: 0 compatible and correctly versioned, 1 a breaking change or a version policy violation
    (--format json tells which), 2 invalid options, 3 a version could not be read.

    Example: dq diff origin/main:orders.odcs.yaml orders.odcs.yaml
    """
    day = _date(today) if today else runtime_context().now().date()
    old, new = read_version(before), read_version(after)
    comparison = diff(
        old,
        new,
        mode=mode,
        engines=[engine.strip() for engine in engines.split(",") if engine.strip()],
        table_format=table_format,
        subscriptions=subscriptions,
        today=day,
    )
    if format is output.PageFormat.JSON:
        output.as_json(comparison.as_dict())
    elif format is output.PageFormat.MARKDOWN:
        title = f"## {markdown_code(new.id)} {markdown_text(old.version)} → {markdown_text(new.version)}"
        from dq.cli.plan_output import change_sections

        output.block("\n\n".join([title, *change_sections(comparison)]) + "\n")
    else:
        _print(old, new, comparison, day)
    raise typer.Exit(1 if comparison.verdict is Verdict.BREAK else 0)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"invalid date --today {text!r}", "Use the format 2026-05-01.") from None


def _print(old: Contract, new: Contract, comparison: Comparison, today: date) -> None:
    output.line(f"{new.id} {old.version} → {new.version}")
    width = max(map(len, Concern))
    for part, verdict in comparison.verdicts.items():
        label = output.styled(f"{verdict.value:5}", fg=_COLORS[verdict], bold=True)
        output.line(f"  {part:{width}}  {label} {summary(comparison, part)}".rstrip())
    for part in Concern:
        for change in comparison.for_concern(part):
            _print_change(change, today)


def _print_change(change: ClassifiedChange, today: date) -> None:
    mark = output.styled(f"{change.verdict.value:5}", fg=_COLORS[change.verdict])
    output.line()
    output.line(f"  {mark} {change.rule}  {change.at}")
    output.line(f"        {change.problem}")
    if change.waived:
        output.line(f"        Waived: {change.waived}.")
    if change.verdict is Verdict.OK:
        return
    if change.concern is Concern.COMPATIBILITY:
        output.line(
            "        Affected: "
            f"{', '.join(change.affected)}.{change.subscribers_text}{version_sentence(change)}"
        )
    output.line(f"        {change.instead}")
    output.line("        To accept it, add this to the policy:")
    for line in change.waiver(today).splitlines():
        output.line(f"          {line}")
