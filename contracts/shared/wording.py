"""Texts that nothing can be done with, numbers of things in words, and the word that somebody meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice

# Texts of strangers as a terminal or the log of a CI server can take them: nothing in them does anything.
#
# A contract, its file's name and its data may hold escape sequences, characters that turn the reading
# direction, and lines that a runner takes for commands. Each becomes something that can be seen.

# Unicode's Cc, Cs, Zl, Zp and Cf but for the two joiners that scripts and emoji need, and the
# noncharacters. Written out, because asking unicodedata about each takes longer than a command may.
_NONCHARACTERS = "".join(
    chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)
_WITHOUT_BREAKS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b"
    "\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff" + _NONCHARACTERS
)
_IN_BLOCK = re.compile(f"[{_WITHOUT_BREAKS}]")
_IN_LINE = re.compile(f"[\t\n{_WITHOUT_BREAKS}]")
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}

# What stays of the characters that a comparison of texts by the rules of a language leaves out, as GitHub's
# runner compares: `:<joiner>:error::` begins a command, too. And the colours that a terminal is sent.
_NOTHING = (
    "(?:[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e0fff\u0300-\u036f\u20d0-\u20ff]|\x1b\\[[0-9;]*m)"
)
# GitHub and its kin: `::name` where a line begins. Both, Azure and TeamCity: `##[`, `##vso[`, anywhere.
_AT_START = re.compile(rf"^((?:[^\S\n]|{_NOTHING})*:{_NOTHING}*):", re.MULTILINE)
_ANYWHERE = re.compile(rf"(#{_NOTHING}*#(?:[A-Za-z0-9_.-]|{_NOTHING})*)\[")


def one_line(text: str) -> str:
    """The text on one line: every control character and every line break is an escape, such as `\\x1b`.

    Marks of direction, invisible format characters, lone surrogates and noncharacters are escapes too.
    """
    return _IN_LINE.sub(_escape, text) if _IN_LINE.search(text) else text


def block(text: str) -> str:
    """The same for a text of several lines by our own making: its line feeds and tabs stay."""
    if text.isascii() and text.isprintable():  # most texts are plain, and a page has thousands of them
        return text
    return _IN_BLOCK.sub(_escape, text) if _IN_BLOCK.search(text) else text


def inert(text: str) -> str:
    """Lines of which a CI runner takes none for a command: the sign that would start one is an escape."""
    if ":" in text and _AT_START.search(text):
        text = _AT_START.sub(r"\1\\x3a", text)
    return _ANYWHERE.sub(r"\1\\x5b", text) if "[" in text and "#" in text else text


def in_json(document: str) -> str:
    """A JSON document with the same meaning, in which all of these characters are JSON's own escapes."""
    # They can only stand inside of its strings, where an escape means the character.
    plain = document.isascii() and document.isprintable()
    if not plain and _IN_BLOCK.search(document):
        document = _IN_BLOCK.sub(_json_escape, document)
    return _ANYWHERE.sub(r"\1\\u005b", document) if "#" in document else document


def in_xml(text: str) -> str:
    """Text inside of XML 1.0, its `<`, `>`, `&` and quotes escaped already: what XML can hold are references.

    What it cannot hold in any way (most of ASCII's control characters, lone surrogates) is shown.
    """
    shown = _IN_BLOCK.sub(_xml_escape, text) if _IN_BLOCK.search(text) else text
    return _ANYWHERE.sub(r"\1&#91;", _AT_START.sub(r"\1&#58;", shown))


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    code = ord(sign)
    if sign in _SHORT:
        return _SHORT[sign]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _xml_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    held = code == 0x0D or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000
    return f"&#{code};" if held else _escape(match)


# Numbers of things in words.


def counted(number: int, one: str, many: str = "") -> str:
    """`1 miss`, `1,204 misses`; `many` where an s makes no plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first of them, and how many more there are: `a, b and 1,204 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


# The word that somebody meant, among those that there are.


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like this one, whatever the case, or None when none is near.

    Among more than a hundred words only some that begin alike are compared. Hand in a frozenset where there
    are many words and many questions: what is made of it is remembered.
    """
    lower = word.lower()
    if not lower or len(lower) > 100:
        return None
    if not isinstance(known, frozenset):
        listed = tuple(islice(known, 1_000))
        if len(listed) <= 100:
            return _nearest(lower, listed)
        known = frozenset(listed)
    return _nearest(lower, _by_beginning(known).get(lower[:3], ()))


def suggestion(word: object, known: Iterable[str], otherwise: str) -> str:
    """Asks for the known word that is near; what else to say where none is, or where a text was meant."""
    near = nearest(word, known) if isinstance(word, str) else None
    return f"Did you mean {near!r}?" if near else otherwise


def one_of(words: Sequence[str]) -> str:
    """The words to choose from, after "Write": `date`, or `one of string, varchar`."""
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"


@lru_cache(4)
def _by_beginning(known: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """At most forty words for each of their beginnings."""
    found: dict[str, list[str]] = {}
    for one in sorted(known):
        beside = found.setdefault(one[:3].lower(), [])
        if len(beside) < 40:
            beside.append(one)
    return {beginning: tuple(words) for beginning, words in found.items()}


@lru_cache(2048)
def _nearest(lower: str, known: tuple[str, ...]) -> str | None:
    # Imported here: a contract without a misspelt word needs none of it.
    from difflib import get_close_matches

    by_lower = {one.lower(): one for one in known}
    near = get_close_matches(lower, by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None
