"""dq validate"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import typer

from dq.cli import output
from dq.contracts.access.discovery import skipped_summary
from dq.contracts.access.files import UNREADABLE, FileRejected, write
from dq.contracts.outcome import ReadError, UsageError
from dq.operations.gate import GateOutcome, lint_registry
from dq.operations.runtime.context import RuntimeContext, processors, registry_root, runtime_context
from dq.operations.validate import parse_mode
from dq.validators.lint import LintResult, PathBase, ReportFormat, TerminalOptions, relocate
from dq.validators.reports import load_report as report_of
from dq.validators.reports import names


def command(
    paths: list[Path] = typer.Argument(None, help="Contract files or folders (default: the working folder)."),
    format: str = typer.Option("text", "--format", help=f"Output format: {', '.join(names())}."),
    report: list[str] = typer.Option(
        None, "--report", help="Also write a report to a file, FORMAT=FILE; repeatable."
    ),
    policy: Path = typer.Option(
        None, "--policy", help="Policy file (default: the registry's dq-policy.yaml)."
    ),
    base: str = typer.Option(
        None, "--base", help="Validate changes since this Git reference, and their effect on consumers."
    ),
    mode: str = typer.Option(
        None,
        "--mode",
        help="With --base, compatibility mode: FORWARD (protect readers), BACKWARD (writers), FULL, NONE.",
    ),
    official: bool = typer.Option(
        False,
        "--official",
        help="Also validate against the official ODCS JSON Schema; needs the extra 'official'.",
    ),
    no_cache: bool = typer.Option(
        False,
        "--no-cache",
        help="Evaluate all contracts, also those that have not changed since the last run.",
    ),
) -> None:
    """Validate contracts: lint, policy and, with --base, breaking changes.

    Needs no data, Java or network. All findings are reported at once, with location, reason and fix; 'dq
    explain RULE' shows details. With --base, only contracts changed since that Git reference are read,
    and the policy and waivers of the base apply; if the branch changes them, the stricter of both
    applies.

    Exit codes: 0 no errors, 1 errors found, 2 invalid policy or option, 3 unreadable path.

    Example: dq validate registry --report sarif=dq.sarif
    """
    context = runtime_context()
    report_format = report_of(format)
    files = [_file(text) for text in report or []]
    places, judged_as = paths or [Path()], parse_mode(mode)
    if judged_as and not base:
        raise UsageError(f"--mode {mode} needs --base.", "Add e.g. --base origin/main.")
    if base:
        # Imported here because it pulls in Git access and the comparison rules.
        from dq.operations.pull_request import lint_pull_request

        gated = lint_pull_request(context, places, base, judged_as, policy, official=official)
    else:
        linted = lint_registry(
            places,
            policy,
            context.now().date(),
            processors(),
            official=official,
            cache_folder=None if no_cache else context.cache_folder(),
        )
        gated = GateOutcome(linted, registry_root(places[0]))
    linted, root = gated.linted, gated.root
    for file_format, file in files:
        named = _with_reader_paths(linted, file_format, root, context)
        _write(
            file,
            _summary(named, gated)
            if file_format.id == "markdown"
            else file_format.render(named, TerminalOptions()),
        )
    output.report(report_format, _with_reader_paths(linted, report_format, root, context))
    if linted.skipped:
        output.note(f"dq: {skipped_summary(linted.skipped)}")
    if gated.comparison is not None and gated.comparison.changes:
        from dq.validators.compat.classified_change import summary as verdict_in_words

        for part, verdict in gated.comparison.verdicts.items():
            reason = verdict_in_words(gated.comparison, part)
            output.note(f"{part.capitalize()}: {verdict}{f' ({reason})' if reason else ''}.")
    raise typer.Exit(_code(linted))


def _code(linted: LintResult) -> int:
    if any(finding.rule == UNREADABLE for finding in linted.findings):
        return ReadError.exit_code
    return 1 if any(finding.severity.blocks for finding in linted.findings) else 0


def _summary(linted: LintResult, gated: GateOutcome) -> str:
    """Return the Markdown report with the changes and the required version."""
    from dq.cli.plan_output import change_sections
    from dq.validators.reports.markdown import summary

    if gated.comparison is None or not gated.comparison.changes:
        return summary(linted)
    return summary(linted, change_sections(gated.comparison))


def _file(text: str) -> tuple[ReportFormat, Path]:
    name, equals, file = text.partition("=")
    if not (equals and file):
        raise UsageError(f"--report {text} has no file.", f"Use --report {name}=FILE.")
    return report_of(name), Path(file)


def _write(file: Path, text: str) -> None:
    try:
        write(file, text.encode("utf-8", "backslashreplace"))
    except FileRejected as error:
        raise UsageError(f"the report {error.message}", "Choose another file for --report.") from error


def _with_reader_paths(
    linted: LintResult, report: ReportFormat, root: Path, context: RuntimeContext
) -> LintResult:
    """Return the findings with their files relative to the base that the report format expects."""
    if report.path_base is PathBase.REGISTRY:
        return linted
    if report.path_base is PathBase.WORKING_FOLDER:
        return relocate(linted, PurePosixPath(Path(os.path.relpath(root, context.folder)).as_posix()))
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    return relocate(linted, PurePosixPath(root.relative_to(top).as_posix()))
