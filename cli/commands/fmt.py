"""dq fmt"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli import output
from dq.cli.context import note
from dq.operations.authoring import FmtFile, FmtOutcome, fmt


def command(
    paths: list[Path] = typer.Argument(None, help="Contract files or folders (default: the working folder)."),
    check: bool = typer.Option(False, "--check", help="List files that would change; write nothing."),
    diff: bool = typer.Option(False, "--diff", help="Show a diff; write nothing."),
) -> None:
    """Format contracts: canonical key order, two-space indent, comments kept.

    Values and meaning do not change. Files that are not valid YAML are left alone.

    Exit codes: 0 done, 1 a file would change (--check, --diff) or could not be formatted, 3 a path does
    not exist or a file could not be written; the other files are still written.

    Example: dq fmt registry --check
    """
    outcome = fmt(paths or ".", check=check or diff)
    for file in outcome.files:
        output.notes(file.reasons)
        if file.error is not None:
            note(str(file.error))
        if file.after is not None and diff:
            _show(file)
        elif file.after is not None:
            output.line(f"{'Would write' if outcome.check else 'Wrote'} {file.path}.")
    output.note(_closing(outcome))
    raise typer.Exit(outcome.exit_code)


def _closing(outcome: FmtOutcome) -> str:
    counts = {
        "would change" if outcome.check else "changed": len(outcome.changed),
        "could not be formatted": len(outcome.refused),
        "could not be written": len(outcome.unwritten),
    }
    parts = [f"{number} {what}" for what, number in counts.items() if number]
    number = len(outcome.files)
    return f"{number} contract{'' if number == 1 else 's'}: {', '.join(parts) or 'all formatted'}."


def _show(file: FmtFile) -> None:
    import difflib

    old, new = (data.decode("utf-8-sig").splitlines() for data in (file.before or b"", file.after or b""))
    for line in difflib.unified_diff(old, new, file.path, f"{file.path} (formatted)", lineterm=""):
        output.line(line)
