"""dq fmt"""

from __future__ import annotations

from pathlib import Path

import typer

from dq.cli.terminal import output
from dq.contracts.access.discovery import find
from dq.contracts.access.files import FileRefused, Found, read, replace
from dq.contracts.shared.outcome import Unreadable
from dq.contracts.yaml.formatting import Formatted, formatted


def command(
    paths: list[Path] = typer.Argument(
        None, help="Contract files or folders; the working folder by default."
    ),
    check: bool = typer.Option(False, "--check", help="Write nothing; list the files that would change."),
    diff: bool = typer.Option(False, "--diff", help="Write nothing; show what would change."),
) -> None:
    """Write contracts in their canonical form: keys in order, two spaces, comments kept.

    Values stay exactly as they are written, and so does the meaning. A file that is no YAML is left alone.

    Exit codes: 0 done, 1 with --check or --diff: a file would change; always: a file cannot be formatted,
    3 a path does not exist or a file cannot be written; the others are written all the same.

    Example: dq fmt registry --check
    """
    files = find(paths or [Path()])
    dry = check or diff
    changed = refused = unwritten = 0
    for file in files:
        try:
            before = read(file)
        except FileRefused as error:
            refused += 1
            output.note(str(error.finding(str(file))))
            continue
        made = formatted(before, str(file))
        if not isinstance(made, Formatted):
            refused += 1
            output.notes(made)
        elif made.why_not:
            refused += 1
            output.note(f"{file}: left as it is: {made.why_not}")
        elif made.data != before:
            try:
                if not dry:
                    replace(file, before, made.data)
            except FileRefused as error:
                unwritten += 1
                output.note(f"dq: {error}")
                continue
            changed += 1
            if diff:
                _show(file, before, made.data)
            else:
                output.line(f"{'Would write' if dry else 'Wrote'} {file}.")
    output.note(_closing(len(files), changed, refused, unwritten, dry))
    raise typer.Exit(Unreadable.exit_code if unwritten else 1 if refused or (dry and changed) else 0)


def _closing(files: int, changed: int, refused: int, unwritten: int, dry: bool) -> str:
    counted = f"{files} contract{'' if files == 1 else 's'}"
    parts = [f"{changed} {'would change' if dry else 'changed'}"] if changed else []
    parts += [f"{refused} could not be formatted"] if refused else []
    parts += [f"{unwritten} could not be written"] if unwritten else []
    return f"{counted}: {', '.join(parts) or 'all in order'}."


def _show(file: Found, before: bytes, after: bytes) -> None:
    import difflib

    old, new = (data.decode("utf-8-sig").splitlines() for data in (before, after))
    for line in difflib.unified_diff(old, new, str(file), f"{file} (formatted)", lineterm=""):
        output.line(line)
