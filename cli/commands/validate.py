"""dq validate"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import typer

from dq.cli import output
from dq.contracts.access.discovery import told
from dq.contracts.access.files import UNREADABLE, FileRefused, write
from dq.contracts.outcome import Unreadable, UsageError
from dq.operations.gate import GateOutcome, judge
from dq.operations.runtime.context import World, here, processors, registry_root
from dq.operations.validate import mode_of
from dq.validators.lint import From, Linted, ReportFormat, Screen, moved
from dq.validators.reports import names
from dq.validators.reports import report as report_of


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
) -> None:
    """Validate contracts: lint, policy and, with --base, breaking changes.

    Needs no data, Java or network. All findings are reported at once, with location, reason and fix; 'dq
    explain RULE' shows details. With --base, only contracts changed since that Git reference are read,
    and the policy and waivers of the base apply; if the branch changes them, the stricter of both
    applies.

    Exit codes: 0 no errors, 1 errors found, 2 invalid policy or option, 3 unreadable path.

    Example: dq validate registry --report sarif=dq.sarif
    """
    world = here()
    shown = report_of(format)
    files = [_file(one) for one in report or []]
    places, judged_as = paths or [Path()], mode_of(mode)
    if judged_as and not base:
        raise UsageError(f"--mode {mode} judges no change without --base.", "Name one: --base origin/main.")
    if base:
        # All that reads Git and judges changes comes with it.
        from dq.operations.pull_request import compared

        gated = compared(world, places, base, judged_as, policy, official=official)
    else:
        linted = judge(places, policy, world.now().date(), processors(), official=official)
        gated = GateOutcome(linted, registry_root(places[0]))
    linted, root = gated.linted, gated.root
    for made, file in files:
        named = _named(linted, made, root, world)
        _write(file, _summary(named, gated) if made.id == "markdown" else made.render(named, Screen()))
    output.report(shown, _named(linted, shown, root, world))
    if linted.passed:
        output.note(f"dq: {told(linted.passed)}")
    if gated.comparison is not None and gated.comparison.changes:
        from dq.validators.compat.classified_change import summary as verdict_in_words

        for part, verdict in gated.comparison.verdicts.items():
            said = verdict_in_words(gated.comparison, part)
            output.note(f"{part.capitalize()}: {verdict}{f' ({said})' if said else ''}.")
    raise typer.Exit(_code(linted))


def _code(linted: Linted) -> int:
    if any(finding.rule == UNREADABLE for finding in linted.findings):
        return Unreadable.exit_code
    return 1 if any(finding.severity.blocks for finding in linted.findings) else 0


def _summary(linted: Linted, gated: GateOutcome) -> str:
    """The Markdown report, with the changes and the version that they ask for."""
    from dq.cli.plan_output import sections
    from dq.validators.reports.markdown import summary

    if gated.comparison is None or not gated.comparison.changes:
        return summary(linted)
    return summary(linted, sections(gated.comparison))


def _file(text: str) -> tuple[ReportFormat, Path]:
    name, equals, file = text.partition("=")
    if not (equals and file):
        raise UsageError(f"--report {text} names no file.", f"Write --report {name}=FILE.")
    return report_of(name), Path(file)


def _write(file: Path, text: str) -> None:
    try:
        write(file, text.encode("utf-8", "backslashreplace"))
    except FileRefused as error:
        raise UsageError(f"the report {error.message}", "Choose another file for --report.") from error


def _named(linted: Linted, report: ReportFormat, root: Path, world: World) -> Linted:
    """The findings with their files named from where the report's reader stands."""
    if report.files is From.REGISTRY:
        return linted
    if report.files is From.HERE:
        return moved(linted, PurePosixPath(Path(os.path.relpath(root, world.folder)).as_posix()))
    top = next((one for one in (root, *root.parents) if (one / ".git").exists()), root)
    return moved(linted, PurePosixPath(root.relative_to(top).as_posix()))
