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

    Quotes in quotes are written after `escape`, which is the quote itself by default; both are "" where no
    value is in quotes, and a quote is a sign like any other. Nothing between two delimiters is NULL, nothing
    between quotes the empty text; a value that is `null_text` is NULL, in quotes or not. A line break in
    quotes is part of its value. A row has as many values as the file has columns.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    encoding: str = "utf-8"
    null_text: str = ""

    @property
    def charset(self) -> str:
        """The encoding by the name that Java's engines take; as it is written, where they have none."""
        known = codecs.lookup(self.encoding).name
        return _CHARSETS.get(known, self.encoding)


RFC_4180 = TextFormat()
_NO_QUOTE = "none"
# Python's name of an encoding -> Java's. Spark 4 knows no others.
_CHARSETS = {
    "utf-8": "utf-8",
    "ascii": "us-ascii",
    "iso8859-1": "iso-8859-1",
    "utf-16": "utf-16",
    "utf-16-be": "utf-16be",
    "utf-16-le": "utf-16le",
    "utf-32": "utf-32",
}
CHARSETS = frozenset(_CHARSETS.values())


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
    quote = "" if terms.quote == _NO_QUOTE else terms.quote
    if terms.escape and not quote:
        raise UsageError(
            f"server {server.server!r}: without quotes there is nothing to escape.",
            "Leave 'escape' out of its 'csv' terms, or say which sign is the 'quote'.",
            at=server.at(),
        )
    made = TextFormat(
        delimiter,
        quote,
        terms.escape or quote,
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
    signs = [form.delimiter, "\n", "\r", *form.quote]
    if len(set(signs)) < len(signs) or form.escape in (form.delimiter, "\n", "\r"):
        return "its delimiter, quote, escape and line break are not different"
    try:
        codecs.lookup(form.encoding)
    except (LookupError, ValueError):
        return f"the encoding {form.encoding!r} is not known"
    return None
