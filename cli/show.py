"""Showing things on a terminal: formats, tables, progress. Machines get JSON on stdout and nothing else."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import typer


class Format(StrEnum):
    """How a command prints its result."""

    TEXT = "text"
    JSON = "json"


FORMAT = typer.Option(Format.TEXT, "--format", help="text for people, json for machines.")
AS_OF = typer.Option(None, "--as-of", help="Judge as if it were this instant, such as 2026-05-01T06:00:00Z.")


def line(text: str = "") -> None:
    """One line of a result, on stdout."""
    typer.echo(text)


def note(text: str) -> None:
    """One line that is not part of the result, on stderr."""
    typer.echo(text, err=True)


def as_json(value: Any) -> None:
    """The result as one JSON document."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
    """Columns as wide as their widest cell; the last one is not padded."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    for number, row in enumerate(cells):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        text = (indent + "  ".join(padded)).rstrip()
        line(typer.style(text, bold=True) if number == 0 else text)


def color() -> bool:
    """Whether the terminal shows colours."""
    return sys.stdout.isatty()


def mark(good: bool | None) -> str:
    """A coloured mark: yes, no, or could not tell."""
    if good is None:
        return typer.style("?", fg="yellow")
    return typer.style("✓", fg="green") if good else typer.style("✗", fg="red")


@contextmanager
def step(what: str) -> Iterator[None]:
    """Says what is going on while it takes long, and how long it took, on stderr.

    On a terminal the line is rewritten; elsewhere one line is written at the end.
    """
    live = sys.stderr.isatty()
    if live:
        sys.stderr.write(f"  … {what}")
        sys.stderr.flush()
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        if live:
            sys.stderr.write("\n")
        raise
    took = f"{time.monotonic() - begun:.1f} s"
    sys.stderr.write(f"\r\033[K  {mark(True)} {what} ({took})\n" if live else f"  done: {what} ({took})\n")
