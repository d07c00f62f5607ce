"""Text in HTML and XML: element content and double-quoted attributes."""

from __future__ import annotations

from html import escape

from dq.contracts.shared import printable


def html(text: str) -> str:
    """The text in HTML; both kinds of quotes are escaped."""
    return escape(text)


def xml(text: str) -> str:
    """The text between tags of XML 1.0."""
    return printable.in_xml(escape(text, quote=False))


def xml_attribute(text: str) -> str:
    """The text in an attribute of XML 1.0, where a parser would make a blank of what breaks a line."""
    return printable.in_xml(escape(text)).replace("\n", "&#10;").replace("\t", "&#9;")
