"""Plans, drift and results of `dq register`, and the contract changes of a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dq.cli import output
from dq.contracts.escaping import markdown_code, markdown_text
from dq.operations.register import ManagedResources, RegisterOutcome, resource_lines
from dq.registry.catalog import Action, ActionKind, CatalogPlan
from dq.registry.plan import ActionOutcome, ActionResult, RunLogEntry, change_lines, render
from dq.validators.compat.classification import Verdict
from dq.validators.compat.classified_change import Comparison, Concern, summary
from dq.validators.reports.markdown import table

# A plan as text, as JSON, and as a comment on a pull request.

# The first line of the comment, by which the next run finds it again.
MARKER = "<!-- dq register -->"
# A comment on GitHub holds 65,536 characters.
_MAX_COMMENT_CHARS = 50_000
_TABLES_HEADER = ("", "table", "impact", "change")


def describe(plan: CatalogPlan, results: Sequence[ActionResult], *, applied: bool) -> None:
    """Print the plan as a diff, and the results."""
    for text in render(plan):
        output.line(f"  {text}")
    for result in results:
        if result.error is not None:
            output.line(f"  {output.mark(False)} {result.error}")
    if applied:
        done = sum(result.outcome is ActionOutcome.DONE for result in results)
        # Orphans that are kept, and changes that another run has just made, do not count.
        attempted = sum(
            result.action.writes and result.outcome is not ActionOutcome.UNCHANGED for result in results
        )
        output.line(f"Applied {done} of {attempted} changes.")
    elif any(action.writes and action.kind is not ActionKind.ORPHAN for action in plan.actions):
        output.line("No changes made. Use --apply to apply this plan.")


def as_markdown(outcome: RegisterOutcome) -> str:
    """Return the plan as the comment on a pull request; what does not fit is counted."""
    plan, findings = outcome.plan, outcome.findings
    counts = Counter(action.kind for action in plan.actions)
    summary_ = ", ".join(f"{counts[kind]} {kind}" for kind in ActionKind if counts[kind])
    parts = [MARKER, f"## Catalog: {summary_ or 'nothing to do'}"]
    rows = [_row(action) for action in plan.actions if action.kind is not ActionKind.NOOP]
    parts += _fitting_table(_TABLES_HEADER, rows, "tables")
    if findings:
        parts.append("### Not registered")
        refused = [
            (markdown_code(str(finding.at)), markdown_text(f"{finding.message} {finding.hint}".strip()))
            for finding in findings
        ]
        parts += _fitting_table(("where", "why"), refused, "findings")
    for governed in outcome.governed:
        if lines := resource_lines(governed):
            parts.append(f"### {governed.name}")
            parts += _fitting_table(("what",), [(markdown_text(line),) for line in lines], "changes")
    parts += [f"Orphans not evaluated: {markdown_text(reason)}." for reason in outcome.unclear[:1]]
    return "\n\n".join(parts) + "\n"


def describe_governed(governed: ManagedResources, *, applied: bool) -> None:
    """Print the steps of a managed resource, and their results."""
    for text in resource_lines(governed):
        output.line(f"  {text}")
    for result in governed.results:
        if result.error is not None:
            output.line(f"  {output.mark(False)} {result.error}")
    steps = len(governed.steps)
    if governed.error is not None:
        output.line(f"{governed.name}: required changes unknown.")
    elif applied:
        done = sum(result.error is None for result in governed.results)
        output.line(f"{governed.name}: applied {done} of {steps} changes.")
    else:
        output.line(f"{governed.name}: {steps} changes." if steps else f"{governed.name}: nothing to do.")


def show_log(lines: Sequence[RunLogEntry], form: output.PageFormat) -> None:
    """Print the changes made to the tables of a catalog, oldest first."""
    if form is output.PageFormat.JSON:
        output.as_json([_log_entry_dict(entry) for entry in lines])
        return
    rows = [
        (
            f"{entry.run.started_at:%Y-%m-%d %H:%M}Z",
            entry.run.id[:8],
            ".".join(entry.key),
            entry.kind,
            entry.grade,
            entry.ending,
        )
        for entry in lines
    ]
    if form is output.PageFormat.MARKDOWN:
        header = ("when", "run", "table", "action", "impact", "outcome")
        output.block(table(header, [[markdown_text(cell) for cell in row] for row in rows]) + "\n")
        return
    for row, entry in zip(rows, lines, strict=True):
        output.line(f"  {'  '.join(row)}{f': {entry.error}' if entry.error else ''}")
    if not lines:
        output.line("No applied changes recorded.")


def _log_entry_dict(entry: RunLogEntry) -> dict[str, object]:
    return {
        "at": entry.run.started_at.isoformat(),
        "run": entry.run.id,
        "registry": entry.run.registry,
        "catalog": entry.catalog,
        "table": ".".join(entry.key),
        "kind": entry.kind,
        "impact": entry.grade,
        "outcome": entry.ending,
        "before": entry.before,
        "after": entry.after,
        "error": entry.error,
    }


def _row(action: Action) -> tuple[str, ...]:
    grade = markdown_text(action.impact) if action.writes else ""
    lines = [action.note] if action.note else []
    lines += change_lines(action)
    return (
        markdown_text(action.kind),
        markdown_code(".".join(action.key)),
        grade,
        "<br>".join(map(markdown_text, lines)),
    )


def _fitting_table(header: Sequence[str], rows: Sequence[Sequence[str]], what: str) -> list[str]:
    remaining_chars, fitting = _MAX_COMMENT_CHARS // 3, []
    for row in rows:
        remaining_chars -= sum(len(cell) + 3 for cell in row)
        if remaining_chars < 0:
            break
        fitting.append(row)
    omitted = len(rows) - len(fitting)
    parts = [table(header, fitting)] if fitting else []
    return [*parts, f"{omitted} more {what} omitted; `dq register` lists all of them."] if omitted else parts


# Contract changes as Markdown: the two verdicts, each with its changes.

_CHANGES_HEADER = ("verdict", "change", "where", "what")
_TITLES = {Concern.COMPATIBILITY: "Compatibility", Concern.VERSION_POLICY: "Version policy"}


def change_sections(comparison: Comparison) -> list[str]:
    """Return a heading and a table for each of the two verdicts; [] if nothing changed."""
    parts = []
    for part, verdict in comparison.verdicts.items():
        reason = summary(comparison, part)
        parts.append(f"### {_TITLES[part]}: {verdict}" + (f" ({markdown_text(reason)})" if reason else ""))
        rows = [
            (
                markdown_text(change.verdict.value),
                markdown_code(change.rule),
                markdown_code(change.path or change.contract),
                markdown_text(
                    change.problem + (change.subscribers_text if change.verdict is not Verdict.OK else "")
                ),
            )
            for change in comparison.for_concern(part)
        ]
        if rows:
            parts.append(table(_CHANGES_HEADER, rows))
    return parts
