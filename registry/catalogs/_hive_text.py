"""How Spark's table of CSV or JSON is told to read its files, and what one was told.

Source: Spark SQL, "CSV Files" and "JSON Files", data source options.
"""

from __future__ import annotations

from collections.abc import Mapping

from dq.contracts.access.text_format import CHARSETS, RFC_4180, TextFormat
from dq.registry.reader import UnsayableTerms, encoding_name, reader_terms, text_format_of
from dq.registry.table import ReaderTerms, TableSpec

# Spark takes the empty text for NULL too, unless some other text is NULL: no file holds this one.
_NO_TEXT = "\x01"


def options(spec: TableSpec) -> dict[str, str]:
    """The options of a table of texts; none for other formats."""
    form = text_format_of(spec)
    if spec.format == "json":
        # Of other encodings Spark asks how lines end.
        return {} if form.encoding == RFC_4180.encoding else {"encoding": form.charset, "lineSep": "\n"}
    if spec.format != "csv":
        return {}
    return {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.escape,
        "header": str(form.header).lower(),
        "encoding": form.charset,
        "nullValue": form.null_text or _NO_TEXT,
        "multiLine": "true",
        # A file whose header names other columns is an error, and not read by position.
        "enforceSchema": "false",
    }


def refuse_encoding(spec: TableSpec) -> None:
    """Raises UnsayableTerms for an encoding that Spark does not read."""
    form = text_format_of(spec)
    if form.charset not in CHARSETS:
        raise UnsayableTerms(
            f"{spec.database}.{spec.name}: Spark does not read texts in {form.encoding}.",
            f"Deliver them in one of {', '.join(sorted(CHARSETS))}.",
        )


def terms(format: str, told: Mapping[str, str]) -> ReaderTerms:
    """The terms that the options of a table stand for, and each option that does not follow from them."""
    given = {name.lower(): text for name, text in told.items()}

    def option(name: str, other: str, usual: str) -> str:
        return given.get(name, given.get(other, usual))

    null = option("nullvalue", "nullvalue", "")
    encoding = encoding_name(option("encoding", "charset", RFC_4180.encoding))
    form = TextFormat(
        option("sep", "delimiter", ","),
        option("quote", "quote", '"'),
        option("escape", "escape", "\\"),
        option("header", "header", "false").lower() == "true",
        encoding,
        "" if null == _NO_TEXT else null,
    )
    found = reader_terms(format, form)
    expected = options(TableSpec("", "", "", format, (), reader=found))
    strange = {
        f"option {name}": given.get(name.lower(), "not set")
        for name, text in expected.items()
        if name not in ("sep", "encoding") and given.get(name.lower()) != text
    }
    return tuple(sorted({**dict(found), **strange}.items()))
