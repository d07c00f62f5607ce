"""Shared vocabulary: locations, findings, errors, durations, and safe text output."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Literal, get_args

# Text output: escaping, plurals, and suggestions for misspelt words.

# Untrusted text made safe for a terminal or a CI log.
#
# A contract, its file's name and its data may contain escape sequences, characters that change the reading
# direction, and lines that a CI runner takes for commands. Each becomes a visible escape.

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

# Characters that a culture-sensitive comparison ignores, as GitHub's runner compares: `:<joiner>:error::`
# begins a command, too. And the terminal's colour sequences.
_NOTHING = (
    "(?:[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e0fff\u0300-\u036f\u20d0-\u20ff]|\x1b\\[[0-9;]*m)"
)
# GitHub and compatible: `::name` at the start of a line. These, Azure and TeamCity: `##[`, `##vso[`,
# anywhere.
_AT_START = re.compile(rf"^((?:[^\S\n]|{_NOTHING})*:{_NOTHING}*):", re.MULTILINE)
_ANYWHERE = re.compile(rf"(#{_NOTHING}*#(?:[A-Za-z0-9_.-]|{_NOTHING})*)\[")


def one_line(text: str) -> str:
    """Return the text on one line: every control character and line break is an escape, e.g. `\\x1b`.

    Marks of direction, invisible format characters, lone surrogates and noncharacters are escapes too.
    """
    return _IN_LINE.sub(_escape, text) if _IN_LINE.search(text) else text


def escape_block(text: str) -> str:
    """Return the same for a text with lines of our own making: line feeds and tabs are kept."""
    if text.isascii() and text.isprintable():  # most texts are plain, and a page has thousands of them
        return text
    return _IN_BLOCK.sub(_escape, text) if _IN_BLOCK.search(text) else text


def escape_ci_commands(text: str) -> str:
    """Return the text with escapes where a CI runner would recognize a command."""
    if ":" in text and _AT_START.search(text):
        text = _AT_START.sub(r"\1\\x3a", text)
    return _ANYWHERE.sub(r"\1\\x5b", text) if "[" in text and "#" in text else text


def escape_json_document(document: str) -> str:
    """Return an equivalent JSON document in which all of these characters are JSON escapes."""
    # They can only occur inside its strings, where an escape is equivalent.
    is_printable_ascii = document.isascii() and document.isprintable()
    if not is_printable_ascii and _IN_BLOCK.search(document):
        document = _IN_BLOCK.sub(_json_escape, document)
    return _ANYWHERE.sub(r"\1\\u005b", document) if "#" in document else document


def escape_xml_text(text: str) -> str:
    """Return text for XML 1.0 with character references; `<`, `>`, `&` and quotes must be escaped already.

    Characters that XML does not allow (most ASCII control characters, lone surrogates) become visible
    escapes.
    """
    escaped = _IN_BLOCK.sub(_xml_escape, text) if _IN_BLOCK.search(text) else text
    return _ANYWHERE.sub(r"\1&#91;", _AT_START.sub(r"\1&#58;", escaped))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _xml_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    is_allowed = code == 0x0D or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000
    return f"&#{code};" if is_allowed else _escape(match)


# Plurals and lists.


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return e.g. `1 miss` or `1,204 misses`; pass `plural` unless it is the singular with an s."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def format_bytes(count: int) -> str:
    """Return a number of bytes with two or three digits, e.g. `999 B`, `1.2 kB` or `12 GB`."""
    value, unit = float(count), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.0f} {_UNITS[unit]}" if unit == 0 or value >= 10 else f"{value:,.1f} {_UNITS[unit]}"


def join_limited(names: Sequence[str], limit: int) -> str:
    """Return the first names and the number of further ones: `a, b and 1,204 more`."""
    remaining = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {remaining:,} more" if remaining > 0 else "")


# Suggestions for misspelt words.


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is most similar to the word, ignoring case, or None if none is similar.

    With more than 150 candidates, only some with the same prefix are compared. Pass a frozenset if there are
    many candidates and many calls: its index is cached.
    """
    lower = word.lower()
    if not lower or len(lower) > 100:
        return None
    if not isinstance(candidates, frozenset):
        candidates = frozenset(islice(candidates, 1_000))
    if len(candidates) <= 150:
        return _nearest(lower, tuple(sorted(candidates)))
    return _nearest(lower, _group_by_prefix(candidates).get(lower[:3], ()))


def suggestion(word: object, candidates: Iterable[str], default: str) -> str:
    """Return "Did you mean …?" with the closest candidate, or `default` if there is none."""
    match = nearest(word, candidates) if isinstance(word, str) else None
    return f"Did you mean {match!r}?" if match else default


def id_suggestion(id_: str, ids: Collection[str], default: str) -> str:
    """Return "Did you mean …?" with the closest of ids like `missing-owner`, or with those that share a word.

    `default` is returned if no id does.
    """
    words = set(re.split("[-_]", id_.lower()))
    similar = nearest(id_, frozenset(ids))
    if similar and (len(words) == 1 or words & set(re.split("[-_]", similar))):
        return f"Did you mean {similar!r}?"
    sharing = sorted(other for other in ids if words & set(re.split("[-_]", other)))
    if 0 < len(sharing) <= 3:
        return f"Did you mean {' or '.join(map(repr, sharing))}?"
    return default


def one_of(words: Sequence[str]) -> str:
    """Return the choices, to follow "Write": `date`, or `one of string, varchar`."""
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"


@lru_cache(4)
def _group_by_prefix(candidates: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return at most forty words for each prefix of three letters."""
    by_prefix: dict[str, list[str]] = {}
    for word in sorted(candidates):
        group = by_prefix.setdefault(word[:3].lower(), [])
        if len(group) < 40:
            group.append(word)
    return {beginning: tuple(words) for beginning, words in by_prefix.items()}


@lru_cache(2048)
def _nearest(lower: str, candidates: tuple[str, ...]) -> str | None:
    # Imported here, because a contract without misspelt words does not need it.
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(lower, by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


# Locations and findings.


class Severity(StrEnum):
    """Severity of a finding, a failed check or a breach, lowest first."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info to 3 for critical, for comparing."""
        return list(Severity).index(self)

    @property
    def blocks(self) -> bool:
        """True if it fails a gate: errors and higher severities."""
        return self.rank >= Severity.ERROR.rank


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A position in a file; line and column count from 1, as in editors."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a contract, its location, and how to fix it.

    `path` is the path inside the document, e.g. `schema[0].properties[2].logicalType`.
    """

    rule: str
    severity: Severity
    message: str
    hint: str
    at: Location
    path: str = ""
    contract: str = ""

    def __str__(self) -> str:
        return f"{self.at}: {self.severity} {self.rule}: {self.message} {self.hint}".rstrip()

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON values; `dq schema findings` prints their schema."""
        return {
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "file": self.at.file,
            "line": self.at.line,
            "column": self.at.column,
            "path": self.path,
            "contract": self.contract,
        }


def error_finding(rule: str, message: str, hint: str, location: Location, path: str = "") -> Finding:
    """Return a finding of severity error."""
    return Finding(rule, Severity.ERROR, message, hint, location, path)


# Problems of values, before their location is known.


@dataclass(frozen=True, slots=True)
class ValueProblem:
    """A problem of a value in a contract, and how to fix it.

    `code` is stable (`CRON_RANGE`); `message` quotes the value; `hint` is one sentence that shows what to
    write. A rule turns it into a `Finding` by adding the location.
    """

    code: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


# Error tree.
#
# A user's mistake in a contract is a `Finding`, never an exception. These errors are raised when the
# environment fails, always `from` their cause, and the command line turns them into one sentence and an exit
# code::
#
#     DqError
#     ├── UsageError           2  the command or its configuration cannot be understood
#     │   └── MissingTool      2  Java, an extra or a jar is not installed
#     ├── ReadError            3  a path, base, catalog, lake or store could not be read
#     │   └── StoreError       3  the state store refused or is of another version
#     └── DeliveryError        4  an alert could not be delivered


class DqError(Exception):
    """A failure of the environment, and how to fix it. No text of it may contain a secret.

    Attributes:
        message: What failed and where, on one line; begins with `at` if set.
        details: Further lines if there are several problems.
        hint: One sentence or a command to paste.
        at: Location in a contract, or None.
        what: `message` without the location.
    """

    exit_code = 3

    def __init__(
        self, message: str, hint: str = "", details: Sequence[str] = (), *, at: Location | None = None
    ) -> None:
        super().__init__(message)
        self.what = message
        self.at = at
        self.message = message if at is None else f"{at}: {message}"
        self.hint = hint
        self.details = tuple(details)

    def __str__(self) -> str:
        return " ".join(part for part in (self.message, *self.details, self.hint) if part)


class UsageError(DqError):
    """The command, its options or the configuration cannot be understood."""

    exit_code = 2


class MissingTool(UsageError):
    """Java, an extra of this package or a jar is missing; `hint` is the command that installs it."""


class ReadError(DqError):
    """Something could not be read: the result is unknown, never fine."""


class StoreError(ReadError):
    """The state store cannot be opened, is locked for too long or has another schema version."""


class DeliveryError(DqError):
    """A notification could not be delivered and will not be retried automatically."""

    exit_code = 4


# Values of contracts: durations, data formats, and JSON values.

# Durations as contracts write them: `45m`, `2h`, `6mo`, or ISO 8601 such as `PT30M`.

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""Units of elapsed time, in seconds; `m` is always minutes, a month is `mo`."""

MONTHS = {"mo": 1, "y": 12}
"""Units of civil time, in months: their length depends on the start."""

_SHORT_DURATION = re.compile(r"(?:\d+(?:mo|[smhdwy]))+", re.ASCII)
_TERM = re.compile(r"(\d+)(mo|[smhdwy])", re.ASCII)
_ISO = re.compile(
    r"P(?=[\dT])(?:(?P<y>\d+)Y)?(?:(?P<mo>\d+)M)?(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)S)?)?",
    re.ASCII,
)
_CENTURY = timedelta(days=36_525)
_HINT = "Write a whole number and a unit, e.g. 45m, 2h, 3d, 1w, 6mo or 1y, or ISO 8601, e.g. PT30M."


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration of civil months and elapsed time, which do not convert into each other."""

    months: int
    elapsed: timedelta
    text: str

    def timedelta(self) -> timedelta | ValueProblem:
        """Return the elapsed time, or a problem if it has months, which have no fixed length."""
        if self.months:
            return ValueProblem(
                "DURATION_CIVIL",
                f"{self.text!r} uses months or years, which vary in length.",
                "Use a fixed length for deadlines: 30d for a month, 365d for a year.",
            )
        return self.elapsed

    def __str__(self) -> str:
        return self.text


def parse_duration(text: str) -> Duration | ValueProblem:
    """Return the duration of a text; it is never negative, and zero (`0m`) is allowed."""
    stripped = text.strip()
    if len(stripped) > 100:
        return ValueProblem(
            "DURATION_TEXT", f"{len(stripped):,} characters are too long for a duration.", _HINT
        )
    amounts = _amounts(stripped)
    if amounts is None:
        return ValueProblem("DURATION_TEXT", f"{text!r} is not a duration.", _nearest_duration(stripped))
    months = sum(amount * MONTHS[unit] for unit, amount in amounts if unit in MONTHS)
    seconds = sum(amount * SECONDS[unit] for unit, amount in amounts if unit in SECONDS)
    if months > 1_200 or seconds > _CENTURY.total_seconds():
        return ValueProblem("DURATION_LONG", f"{text!r} is longer than a century.", _HINT)
    return Duration(months, timedelta(seconds=seconds), stripped)


def parse_elapsed(text: str) -> timedelta | ValueProblem:
    """Return the elapsed time of a text; months and years, whose length varies, are a problem."""
    duration = parse_duration(text)
    return duration if isinstance(duration, ValueProblem) else duration.timedelta()


def _amounts(text: str) -> list[tuple[str, int]] | None:
    if _SHORT_DURATION.fullmatch(text):
        return [(unit, int(number)) for number, unit in _TERM.findall(text)]
    if iso := _ISO.fullmatch(text):
        return [(unit, int(number)) for unit, number in iso.groupdict().items() if number]
    return None


_UNIT_WORDS = {
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("week", "weeks"), "w"),
    **dict.fromkeys(("month", "months"), "mo"),
    **dict.fromkeys(("year", "years"), "y"),
}


def _nearest_duration(text: str) -> str:
    """Return a fix for the most common mistakes, else the general hint."""
    if _SHORT_DURATION.fullmatch(text.lower().replace(" ", "")):
        return f"Write {text.lower().replace(' ', '')!r}: lowercase, without spaces."
    if text.isdecimal():
        return f"Add a unit: {text}m for minutes, {text}h for hours, {text}d for days."
    if (match := re.fullmatch(r"(\d+)\s*([a-z]+)", text.lower())) and match[2] in _UNIT_WORDS:
        return f"Write {match[1]}{_UNIT_WORDS[match[2]]}."
    return _HINT


# TABLE: data formats, by their names in contracts.

DataFormat = Literal["parquet", "orc", "avro", "json", "csv", "iceberg", "delta", "hudi"]

FORMATS: tuple[str, ...] = get_args(DataFormat)

LAKEHOUSE = frozenset({"iceberg", "delta", "hudi"})
"""Table formats with a commit log, which record their own columns and partitions."""


# Values as JSON has them.


def iso(value: date | None) -> str | None:
    """Return an instant or a day as ISO 8601, or None for None."""
    return None if value is None else value.isoformat()
