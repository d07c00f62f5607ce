"""Findings for a reader at a terminal: by file, with the line that each is about."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from itertools import groupby

from dq.contracts.outcome import Finding, Severity
from dq.validators.lint import Linted
from dq.validators.report import From, Report, Screen, counts, lines, said

_COLORS = {Severity.CRITICAL: "35;1", Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.INFO: "36"}
_BOLD, _DIM = "1", "2"
_INDENT = " " * 4
# What GitHub's runner takes for a command when it stands in a log: `::` at a line's start, `##[` anywhere.
_COMMAND = re.compile(r"^(\s*)(?=::)|(?<=##)(?=\[)", re.MULTILINE)


def render(linted: Linted, screen: Screen) -> str:
    """A block per file, a finding with its line and mend, and a closing line with the counts.

    Nothing that a contract says steers the terminal, or the runner that logs it.
    """
    parts: list[str] = []
    for file, findings in groupby(linted.findings, key=lambda finding: finding.at.file):
        source = lines(linted.sources.get(file, b""))
        parts.append(_paint(_printable(file), _BOLD, screen))
        for finding in findings:
            parts += [_block(finding, source, screen), ""]
    parts.append(_closing(linted, screen))
    return _COMMAND.sub("\\g<0>\u200b", "\n".join(parts)) + "\n"


def _block(finding: Finding, source: list[str], screen: Screen) -> str:
    spot = f"{finding.at.line}:{finding.at.column}"
    head = f"  {spot} {finding.severity} {finding.rule}: {_printable(finding.message)}"
    first, *rest = _wrapped(head, screen.width, "")
    painted = _paint(finding.severity.value, _COLORS[finding.severity], screen)
    first = first.replace(f"{spot} {finding.severity}", f"{spot} {painted}", 1)
    mend = _wrapped(_printable(finding.mend), screen.width, _INDENT)
    return "\n".join([first, *rest, *_source(finding, source, screen), *mend])


def _wrapped(text: str, width: int, first_indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first_indent,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _source(finding: Finding, source: list[str], screen: Screen) -> list[str]:
    """The line and a caret under the place, cut to the screen; nothing where a line would say nothing."""
    at = finding.at
    if at.line > len(source) or not source[at.line - 1].strip() or (at.line, at.column) == (1, 1):
        return []
    gutter = f"{_INDENT}{at.line} | "
    room = max(20, screen.width - len(gutter) - 1)
    line, column = _printable(source[at.line - 1]), at.column - 1
    start = max(0, column - room + 10) if column >= room else 0
    cut = ("…" if start else "") + line[start : start + room]
    before = line[start:column]
    caret = " " * (_cells(before) + (1 if start else 0)) + "^"
    blank = " " * (len(gutter) - 2) + "| "
    return [_paint(gutter + cut, _DIM, screen), _paint(blank, _DIM, screen) + caret]


def _cells(text: str) -> int:
    """How many cells a terminal takes for it: wide characters two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) != 0 for one in text)


def _closing(linted: Linted, screen: Screen) -> str:
    files = said(len(linted.files), "contract")
    found = [
        _paint(said(number, severity), _COLORS[severity], screen)
        for severity, number in counts(linted.findings).items()
        if number
    ]
    if not found:
        return f"{files}, no findings."
    return f"{files}: {', '.join(found)}."


def _printable(text: str) -> str:
    """The text without what could steer a terminal: it comes from a pull request that anyone may open.

    Every character stays one character, so that a column stays what it is; a tab becomes an arrow.
    """
    return "".join(one if one.isprintable() else "→" if one == "\t" else "�" for one in text)


def _paint(text: str, code: str, screen: Screen) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if screen.color else text


REPORT = Report("text", render, From.HERE)
