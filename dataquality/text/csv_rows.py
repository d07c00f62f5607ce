"""The cells of a CSV file with the line on which each row begins, and what its header names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dq.contracts.access.text_format import RFC_4180, TextFormat
from dq.contracts.shared.errors import Unreadable

Cell = str | None
"""None is NULL: nothing between two delimiters. Nothing between quotes is the empty text."""
MARK = "\ufeff"
TWO_ENDS = "the lines end in two ways, and the odd sign may be data"
ONE_END = "Write all of them with \\n, or all with \\r\\n."
_BREAK = re.compile(r"\r\n|\n|\r")


def rows(text: str, file: str, form: TextFormat = RFC_4180) -> Iterator[tuple[int, list[Cell]]]:
    """Every row that is not blank, with its line from 1. The file's own line break in quotes is \\n.

    Raises Unreadable for quotes that do not close, and for lines that do not end as the first one does.
    """
    cell, escaped = _grammar(form)
    found = _BREAK.search(text)
    own = found.group() if found else ""
    at, line, begun = 0, 1, 1
    row: list[Cell] = []
    while at < len(text) or row:
        match = cell.match(text, at)
        bare_quote = match is not None and form.quote and (match[2] or "").startswith(form.quote)
        if match is None or bare_quote:
            raise Unreadable(
                f"{file}:{line}: the quotes of a value are not closed, or something follows them.",
                'Close them; a quote inside of a value is written twice: "".',
            )
        quoted, bare, end = match.groups()
        value = escaped.sub(r"\1", quoted) if quoted is not None else bare or None
        if value and own:
            value = value.replace(own, "\n")
        row.append(None if form.null_text and value == form.null_text else value)
        line += len(_BREAK.findall(match.group()))
        at = match.end()
        if end != form.delimiter:
            if end and end != own:
                raise Unreadable(f"{file}:{line - 1}: {TWO_ENDS}.", ONE_END)
            if row != [None] or quoted is not None:
                yield begun, row
            row, begun = [], line
            if at >= len(text):
                return


def _grammar(form: TextFormat) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A cell as (in quotes, bare, what ends it), and what is escaped in quotes."""
    sign, quote, escape = (re.escape(one) for one in (form.delimiter, form.quote, form.escape))
    rest = rf"([^{sign}\r\n]*))({sign}|\r\n|\n|\r|\Z)"
    if not quote:
        return re.compile(rf"(?:(?!)()|{rest}"), re.compile("(?!)")
    inside = rf"(?:[^{quote}]|{quote}{quote})*" if quote == escape else rf"(?:[^{quote}{escape}]|{escape}.)*"
    cell = re.compile(rf"(?:{quote}({inside}){quote}|{rest}", re.DOTALL)
    return cell, re.compile(f"{escape}([{quote}{escape}])")


def names_of(header: Sequence[Cell], file: str) -> tuple[str, ...]:
    """The names of the columns; one without a name has Spark's, `_c0`. Raises Unreadable for a name twice.

    Case does not matter for columns, and so not here.
    """
    names = tuple(name or f"_c{at}" for at, name in enumerate(header))
    lowered = [name.lower() for name in names]
    twice = next((name for at, name in enumerate(names) if name.lower() in lowered[:at]), None)
    if twice is not None:
        raise Unreadable(f"{file}:1: two columns have the name {twice!r}.", "Give each its own name.")
    return names


def header_of(text: str, file: str, form: TextFormat) -> tuple[str, ...] | None:
    """The names that the first row of a file gives, None of a file without a row. Raises Unreadable."""
    first = next(rows(text.removeprefix(MARK), file, form), None)
    return None if first is None else names_of(first[1], file)
