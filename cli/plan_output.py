"""Plans, drift and results of `dq register`, and the changes that a pull request makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dq.cli import output
from dq.contracts.escaping import markdown_code, markdown_text
from dq.operations.register import Governed, RegisterOutcome, governed_lines
from dq.registry.catalog import Action, ActionKind, CatalogPlan
from dq.registry.plan import Ending, Logged, Result, change_lines, render
from dq.validators.compat.classification import Verdict
from dq.validators.compat.classified_change import Aspect, Comparison, summary
from dq.validators.reports.markdown import table

# A plan for people, for machines, and as a comment on a pull request.

# The first line of the comment, by which the next run finds it again.
MARKER = "<!-- dq register -->"
# A comment on GitHub holds 65,536 characters.
_ROOM = 50_000
_TABLES_HEADER = ("", "table", "grade", "what")


def describe(plan: CatalogPlan, results: Sequence[Result], *, applied: bool) -> None:
    """The plan as a diff, and what became of it."""
    for text in render(plan):
        output.line(f"  {text}")
    for one in results:
        if one.error is not None:
            output.line(f"  {output.mark(False)} {one.error}")
    if applied:
        done = sum(one.ending is Ending.DONE for one in results)
        # Orphans that were not to be pruned, and what another run has just done, are no changes of this one.
        tried = sum(one.action.writes and one.ending is not Ending.UNCHANGED for one in results)
        output.line(f"Applied {done} of {tried} changes.")
    elif any(action.writes and action.kind is not ActionKind.ORPHAN for action in plan.actions):
        output.line("Nothing was written. Add --apply to make it so.")


def as_markdown(outcome: RegisterOutcome) -> str:
    """The plan as the one comment on a pull request that is kept; what does not fit is counted."""
    plan, findings = outcome.plan, outcome.findings
    counts = Counter(action.kind for action in plan.actions)
    said = ", ".join(f"{counts[kind]} {kind}" for kind in ActionKind if counts[kind])
    parts = [MARKER, f"## Catalog: {said or 'nothing to do'}"]
    rows = [_row(action) for action in plan.actions if action.kind is not ActionKind.NOOP]
    parts += _fitting(_TABLES_HEADER, rows, "tables")
    if findings:
        parts.append("### Not registered")
        wrong = [
            (markdown_code(str(one.at)), markdown_text(f"{one.message} {one.mend}".strip()))
            for one in findings
        ]
        parts += _fitting(("where", "why"), wrong, "findings")
    for governed in outcome.governed:
        if lines := governed_lines(governed):
            parts.append(f"### {governed.name}")
            parts += _fitting(("what",), [(markdown_text(line),) for line in lines], "changes")
    parts += [f"Orphans are not judged: {markdown_text(reason)}." for reason in outcome.unclear[:1]]
    return "\n\n".join(parts) + "\n"


def describe_governed(governed: Governed, *, applied: bool) -> None:
    """The steps as lines, what became of them, and what has to be known beside them."""
    for text in governed_lines(governed):
        output.line(f"  {text}")
    for one in governed.results:
        if one.error is not None:
            output.line(f"  {output.mark(False)} {one.error}")
    steps = len(governed.steps)
    if governed.error is not None:
        output.line(f"{governed.name}: it is not known what is to be done.")
    elif applied:
        done = sum(one.error is None for one in governed.results)
        output.line(f"{governed.name}: applied {done} of {steps} changes.")
    else:
        output.line(f"{governed.name}: {steps} changes." if steps else f"{governed.name}: nothing to do.")


def show_log(lines: Sequence[Logged], form: output.PageFormat) -> None:
    """What runs did with the tables of a catalog, oldest first."""
    if form is output.PageFormat.JSON:
        output.as_json([_logged(one) for one in lines])
        return
    rows = [
        (f"{one.run.at:%Y-%m-%d %H:%M}Z", one.run.id[:8], ".".join(one.key), one.kind, one.grade, one.ending)
        for one in lines
    ]
    if form is output.PageFormat.MARKDOWN:
        header = ("when", "run", "table", "action", "grade", "ending")
        output.block(table(header, [[markdown_text(cell) for cell in row] for row in rows]) + "\n")
        return
    for row, one in zip(rows, lines, strict=True):
        output.line(f"  {'  '.join(row)}{f': {one.error}' if one.error else ''}")
    if not lines:
        output.line("No run has changed anything here, as far as this store remembers.")


def _logged(one: Logged) -> dict[str, object]:
    return {
        "at": one.run.at.isoformat(),
        "run": one.run.id,
        "registry": one.run.registry,
        "catalog": one.catalog,
        "table": ".".join(one.key),
        "kind": one.kind,
        "grade": one.grade,
        "ending": one.ending,
        "before": one.before,
        "after": one.after,
        "error": one.error,
    }


def _row(action: Action) -> tuple[str, ...]:
    grade = markdown_text(action.grade) if action.writes else ""
    lines = [action.note] if action.note else []
    lines += change_lines(action)
    return (
        markdown_text(action.kind),
        markdown_code(".".join(action.key)),
        grade,
        "<br>".join(map(markdown_text, lines)),
    )


def _fitting(header: Sequence[str], rows: Sequence[Sequence[str]], what: str) -> list[str]:
    room, fitting = _ROOM // 3, []
    for row in rows:
        room -= sum(len(cell) + 3 for cell in row)
        if room < 0:
            break
        fitting.append(row)
    left = len(rows) - len(fitting)
    made = [table(header, fitting)] if fitting else []
    return [*made, f"{left} more {what} did not fit here; `dq register` lists all of them."] if left else made


# The changes of contracts as Markdown: the two verdicts apart, each with its changes.

_CHANGES_HEADER = ("verdict", "change", "where", "what")
_TITLES = {Aspect.COMPATIBILITY: "Compatibility", Aspect.VERSION_POLICY: "Version policy"}


def sections(found: Comparison) -> list[str]:
    """A heading and a table for each of the two questions; nothing where nothing changed."""
    made = []
    for part, verdict in found.verdicts.items():
        said = summary(found, part)
        made.append(f"### {_TITLES[part]}: {verdict}" + (f" ({markdown_text(said)})" if said else ""))
        rows = [
            (
                markdown_text(one.verdict.value),
                markdown_code(one.rule),
                markdown_code(one.path or one.contract),
                markdown_text(one.problem + (one.subscribed if one.verdict is not Verdict.OK else "")),
            )
            for one in found.of(part)
        ]
        if rows:
            made.append(table(_CHANGES_HEADER, rows))
    return made
