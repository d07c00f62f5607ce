"""How the texts of a table are read: a contract's terms as pairs, which each catalog keeps in its own way."""

from __future__ import annotations

import codecs
from dataclasses import replace

from dq.contracts.access.text_format import RFC_4180, TextFormat
from dq.contracts.shared.errors import UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.registry.table import ReaderTerms, TableSpec

# Formats of which the files do not say how they are written.
TEXTS = frozenset({"csv", "json"})
_TEXT_TYPES = frozenset({"string", "varchar", "char", "binary"})


class UnsayableTerms(UsageError):
    """The catalog has no words for how the files are written."""


def reader_terms(format: str, form: TextFormat) -> ReaderTerms:
    """What differs from RFC 4180 in UTF-8, by name; of JSON the encoding alone, of other formats nothing."""
    if format not in TEXTS:
        return ()
    terms = {"encoding": encoding_name(form.encoding)}
    if format == "csv":
        terms |= {
            "delimiter": form.delimiter,
            "quote": form.quote,
            "escape": form.escape,
            "header": str(form.header).lower(),
            "null_text": form.null_text,
        }
    usual = {name: str(getattr(RFC_4180, name)) for name in terms} | {"header": "true"}
    return tuple(sorted((name, text) for name, text in terms.items() if text != usual[name]))


def text_format_of(spec: TableSpec) -> TextFormat:
    """The description that the terms of a specification stand for."""
    terms = dict(spec.reader)
    header = terms.pop("header", "true") == "true"
    known = {name: text for name, text in terms.items() if name in TextFormat.__dataclass_fields__}
    return replace(RFC_4180, header=header, **known)


def encoding_name(text: str) -> str:
    """One spelling for one encoding; as it is written, in lower case, where nobody knows it."""
    try:
        return codecs.lookup(text).name
    except (LookupError, ValueError):
        return text.lower()


def is_text(type_: str) -> bool:
    """Whether a column of this type holds the very signs of a file."""
    return kind_of(type_).name in _TEXT_TYPES


def kind_of(type_: str) -> DataType:
    """The type that a specification writes; of a name alone, where nobody knows it."""
    try:
        return parse(type_)
    except NotAType:
        return DataType(type_)
