"""Text in Markdown, as GitHub, GitLab and notebooks render it."""

from __future__ import annotations

import re

from dq.contracts.shared.printable import inert, one_line

_SPECIAL = re.compile(r"([\\*_{}\[\]~$])")
# What no escape of Markdown's reaches, because it is looked for in the text that was rendered: names that
# would be notified, addresses, numbers of issues, hashes of commits, and the names of emoji.
_LIVE = re.compile(
    r"@|://|www\.|(?:mailto|xmpp):|[#!~%&$^](?=\w)|\bgh-\d|:[\w+-]+:|(?<!\w)[0-9a-f]{7,40}(?!\w)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s`|]+|[`|]")
# Renderers read a backslash before "|" in two ways, by what stands before it; an entity is read in one.
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("`", "&#96;"))


def escaped(text: str) -> str:
    """Escape a text for one line of Markdown, so that it makes no markup, link or mention.

    A word that would come to life all the same stands as code.
    """
    return _WORD.sub(_word, " ".join(one_line(text).split()))


def _word(match: re.Match[str]) -> str:
    word = match[0]
    if _LIVE.search(word):
        return _span(word)
    for sign, entity in _ENTITIES:
        word = word.replace(sign, entity)
    return _SPECIAL.sub(r"\\\1", word)


def code(text: str) -> str:
    """Text as code inside a table's cell; where code cannot hold it there, as text."""
    flat = " ".join(one_line(text).split())
    return escaped(text) if not flat or "`" in flat or "|" in flat else _span(flat)


def _span(text: str) -> str:
    return f"`{inert(text)}`"
