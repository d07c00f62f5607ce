"""How the text files of a server are written: what Spark, the sample and a catalog all read them by."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from dq.contracts.extension import csv
from dq.contracts.model import Server
from dq.contracts.shared.errors import UsageError


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A description of CSV by RFC 4180, with what differs from it; JSON follows its encoding alone.

    Quotes in quotes are written after `escape`, which is the quote itself by default. Nothing between two
    delimiters is NULL, nothing between quotes the empty text; a value that is `null_text` is NULL, in quotes
    or not. A line break in quotes is part of its value. A row has as many values as the file has columns.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    null_text: str = ""


RFC_4180 = TextFormat()


def text_format(server: Server) -> TextFormat:
    """The description that a server gives: its `csv` terms, its own keys, else RFC 4180 in UTF-8.

    Raises UsageError for terms that cannot be understood: other files would be read than were written.
    """
    terms, wrong = csv(server)
    for finding in wrong:
        raise UsageError(f"server {server.server!r}: {finding.message}", finding.mend, at=finding.at)
    delimiter = terms.delimiter or server.get("delimiter") or RFC_4180.delimiter
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter.lower(), delimiter)
    encoding = terms.encoding or server.get("encoding") or RFC_4180.encoding
    made = TextFormat(
        delimiter,
        terms.quote,
        terms.escape or terms.quote,
        terms.header,
        encoding,
        terms.null_text or RFC_4180.null_text,
    )
    reason = _unusable(made)
    if reason is not None:
        raise UsageError(
            f"server {server.server!r}: {reason}.", "Correct its keys or its 'csv' terms.", at=server.at()
        )
    return made


def _unusable(form: TextFormat) -> str | None:
    if len(form.delimiter) != 1:
        return f"the delimiter {form.delimiter!r} is not one character"
    if len({form.delimiter, form.quote, "\n", "\r"}) < 4 or form.escape in (form.delimiter, "\n", "\r"):
        return "its delimiter, quote, escape and line break are not different"
    try:
        codecs.lookup(form.encoding)
    except (LookupError, ValueError):
        return f"the encoding {form.encoding!r} is not known"
    return None
