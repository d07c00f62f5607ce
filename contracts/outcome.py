"""What a check reports: places, findings, errors, outcomes, and the wording of their texts."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Literal, get_args

# Texts that nothing can be done with, numbers of things in words, and the word that somebody meant.

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
    return match[0].encode("unicode_escape").decode("ascii")


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


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


# Where something stands, what was found there, what is wrong with a value, and how a check ended.

# The words that all rooms share: where something stands, what was found, how a check ended.


class Severity(StrEnum):
    """How much a finding, a failed check or a breach matters, mildest first."""

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
        """Whether it turns a gate red: errors and worse do."""
        return self.rank >= Severity.ERROR.rank


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file; line and column count from 1, as editors do."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a contract, where, and how to mend it.

    `path` is the place inside the document, such as `schema[0].properties[2].logicalType`.
    """

    rule: str
    severity: Severity
    message: str
    mend: str
    at: Location
    path: str = ""
    contract: str = ""

    def __str__(self) -> str:
        return f"{self.at}: {self.severity} {self.rule}: {self.message} {self.mend}".rstrip()

    def as_dict(self) -> dict[str, object]:
        """As JSON values; `dq schema findings` prints their schema."""
        return {
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "mend": self.mend,
            "file": self.at.file,
            "line": self.at.line,
            "column": self.at.column,
            "path": self.path,
            "contract": self.contract,
        }


def mistake(rule: str, message: str, mend: str, at: Location, path: str = "") -> Finding:
    """A finding of severity error."""
    return Finding(rule, Severity.ERROR, message, mend, at, path)


class Status(StrEnum):
    """How a check ended. ERROR: could not be measured. SKIPPED: there was nothing to measure."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"


KEPT, BROKEN, UNTOLD = "kept", "broken", "could not tell"
"""What all results of a run come to."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The answer for one group of rows; `key` are the values that make it, None is NULL.

    `value` is the measured number, when there is one that may be shown.
    """

    key: tuple[str | None, ...]
    status: Status
    observed: str
    value: float | None = None


class AnsweredBy(StrEnum):
    """Where the answer to a clause was found: in the schema, in statistics that prove it, in what earlier
    runs kept of files that are as they were (only the others were read), or in the rows."""

    SCHEMA = "schema"
    STATISTICS = "statistics"
    KEPT = "kept"
    SCAN = "scan"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer to one clause of a contract on one scope of data.

    `clause` is the clause's path inside the contract, which together with contract, object and scope is
    its identity in one version of it. `name` says the same by ids and names and stays when a column moves;
    it is empty where nobody gave it. `observed` and `allowed` are texts ready to print; `value` is the
    measured number, when there is one. `samples` holds up to 20 keys of failing rows, classified columns
    masked. `groups` are the answers for groups by the columns `by`. `of` tells what was measured, where
    later runs compare with it. `rows` is how many rows were looked at and `failed_rows` how many of them
    break the clause, where that is known. `threshold` is what `value` must be, as ODCS writes it, such as
    `{"mustBeLessThan": 5}`, and `unit` what both count: `rows`, `percent`, or nothing that is the same for
    all checks. `answered_by` is None where there is no answer, or nobody noted it.
    """

    check: str
    clause: str
    object: str
    property: str
    status: Status
    severity: Severity
    observed: str
    allowed: str
    message: str
    at: Location
    value: float | None = None
    samples: tuple[Row, ...] = ()
    by: tuple[str, ...] = ()
    groups: tuple[GroupResult, ...] = ()
    of: str = ""
    rows: int | None = None
    failed_rows: int | None = None
    threshold: Mapping[str, builtins.object] = field(default_factory=dict)
    unit: str = ""
    # It follows from the clause and its contract, and makes no other result.
    name: str = field(default="", compare=False)
    # The answer is the same, wherever it was found.
    answered_by: AnsweredBy | None = field(default=None, compare=False)


class CycleStatus(StrEnum):
    """The status of one promised delivery; see docs/explanation/delivery.md."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    ON_TIME = "on_time"
    ON_TIME_IN_GRACE = "on_time_in_grace"
    MISSING = "missing"
    LATE = "late"
    NEVER = "never"
    EXCUSED = "excused"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"

    @property
    def good(self) -> bool:
        """Counts for the service level."""
        return self in (CycleStatus.ON_TIME, CycleStatus.ON_TIME_IN_GRACE)

    @property
    def bad(self) -> bool:
        """Counts against the service level."""
        return self in (CycleStatus.MISSING, CycleStatus.LATE, CycleStatus.NEVER)


@dataclass(frozen=True, slots=True)
class IncidentKey:
    """What an incident is about: at most one of a key is open at any time.

    `contract` is the contract's key: its id, with the major where that is not 1. `group` is the SLO's id
    for deliveries and `quality` for failed checks.
    """

    contract: str
    object: str
    group: str

    def __str__(self) -> str:
        return f"{self.contract}/{self.object}/{self.group}"


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that is broken as of `at`: opens an incident, or joins the open one.

    `subject` names the cycle or the run (a due instant in UTC, a partition). `facts` are lines of
    (label, value) for a reader: what was promised, what was seen, what to do. `period` is how often the
    promise is due, where it is due by a schedule.
    """

    key: IncidentKey
    severity: Severity
    subject: str
    title: str
    at: datetime
    facts: tuple[tuple[str, str], ...] = ()
    period: timedelta | None = None


class End(StrEnum):
    """How a broken promise ended. Only what is kept again is good news.

    `HANDED_OVER`: it is broken still, and incidents of their own tell of it.
    """

    KEPT = "kept"
    GIVEN_UP = "given_up"
    WITHDRAWN = "withdrawn"
    EXCUSED = "excused"
    HANDED_OVER = "handed_over"


@dataclass(frozen=True, slots=True)
class Recovery:
    """A broken promise that is over for one subject, and how; the incident closes with its last subject.

    `title` says the end in words; where it is empty, what was broken keeps the title that it has.
    `severity` is that of what is still broken; None: as it was.
    """

    key: IncidentKey
    subject: str
    at: datetime
    facts: tuple[tuple[str, str], ...] = field(default=())
    end: End = End.KEPT
    title: str = ""
    severity: Severity | None = None


# A fault: what is wrong with one value that a contract holds, before it is known where it stands.


@dataclass(frozen=True, slots=True)
class TextFault:
    """What is wrong with a text found in a contract, and what to write instead.

    `code` is stable and fit for tables (`CRON_RANGE`); `message` quotes what was found; `mend` is one
    sentence that shows what to write. A rule turns it into a `Finding` by adding the location.
    """

    code: str
    message: str
    mend: str

    def __str__(self) -> str:
        return f"{self.message} {self.mend}".rstrip()


# Broken promises of the world, as one tree.
#
# A user's mistake in a contract is a `Finding`, never an exception. What stands here is raised when the
# world does not answer as it should, always `from` its cause, and the command line turns it into one
# sentence and an exit code::
#
#     DqError
#     ├── UsageError           2  the command or its configuration cannot be understood
#     │   └── MissingTool      2  Java, an extra or a jar is not installed
#     ├── Unreadable           3  a path, base, catalog, lake or store could not be read
#     │   └── StoreError       3  the state store refused or is of another version
#     └── Undeliverable        4  an alert could not be handed over


class DqError(Exception):
    """What went wrong in the world, and how to mend it.

    `message` says what and where, on one line; `details` are further lines, where there are several things
    wrong; `mend` is one sentence or a command to paste. None of them may hold a secret. `at` is the place in
    a contract that it is about, which `message` begins with; `what` is the rest.
    """

    exit_code = 3

    def __init__(
        self, message: str, mend: str = "", details: Sequence[str] = (), *, at: Location | None = None
    ) -> None:
        super().__init__(message)
        self.what = message
        self.at = at
        self.message = message if at is None else f"{at}: {message}"
        self.mend = mend
        self.details = tuple(details)

    def __str__(self) -> str:
        return " ".join(part for part in (self.message, *self.details, self.mend) if part)


class UsageError(DqError):
    """The command, its options or the configuration cannot be understood."""

    exit_code = 2


class MissingTool(UsageError):
    """Java, an extra of this package or a jar is missing; `mend` is the command that installs it."""


class Unreadable(DqError):
    """Something that had to be read could not be: the answer is unknown, never fine."""


class StoreError(Unreadable):
    """The state store cannot be opened, is locked for too long or has another schema version."""


class Undeliverable(DqError):
    """A notification could not be handed to its channel and will not be tried again by itself."""

    exit_code = 4


# Values of contracts: durations, formats of data, and values as JSON has them.

# Durations as contracts write them: `45m`, `2h`, `6mo`, or ISO 8601 such as `PT30M`.

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""Units of elapsed time, in seconds; `m` is always minutes, a month is `mo`."""

MONTHS = {"mo": 1, "y": 12}
"""Units of civil time, in months: how long they last depends on where they start."""

_SHORT_DURATION = re.compile(r"(?:\d+(?:mo|[smhdwy]))+", re.ASCII)
_TERM = re.compile(r"(\d+)(mo|[smhdwy])", re.ASCII)
_ISO = re.compile(
    r"P(?=[\dT])(?:(?P<y>\d+)Y)?(?:(?P<mo>\d+)M)?(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)S)?)?",
    re.ASCII,
)
_CENTURY = timedelta(days=36_525)
_MEND = "Write a whole number and a unit, such as 45m, 2h, 3d, 1w, 6mo or 1y, or ISO 8601 such as PT30M."


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in two parts that do not convert into each other: civil months and elapsed time."""

    months: int
    elapsed: timedelta
    text: str

    def timedelta(self) -> timedelta | TextFault:
        """The elapsed time, or a fault when there are months in it, which have no fixed length."""
        if self.months:
            return TextFault(
                "DURATION_CIVIL",
                f"{self.text!r} counts months or years, whose length differs.",
                "Write elapsed time where a deadline is meant: 30d for a month, 365d for a year.",
            )
        return self.elapsed

    def __str__(self) -> str:
        return self.text


def parse_duration(text: str) -> Duration | TextFault:
    """The duration a text means; it is never negative, and zero (`0m`) is allowed."""
    clean = text.strip()
    if len(clean) > 100:
        return TextFault("DURATION_TEXT", f"a text of {len(clean):,} characters is no duration.", _MEND)
    amounts = _amounts(clean)
    if amounts is None:
        return TextFault("DURATION_TEXT", f"{text!r} is no duration.", _nearest_duration(clean))
    months = sum(amount * MONTHS[unit] for unit, amount in amounts if unit in MONTHS)
    seconds = sum(amount * SECONDS[unit] for unit, amount in amounts if unit in SECONDS)
    if months > 1_200 or seconds > _CENTURY.total_seconds():
        return TextFault("DURATION_LONG", f"{text!r} is longer than a century.", _MEND)
    return Duration(months, timedelta(seconds=seconds), clean)


def parse_elapsed(text: str) -> timedelta | TextFault:
    """The elapsed time that a text means; months and years, whose length differs, are a fault."""
    duration = parse_duration(text)
    return duration if isinstance(duration, TextFault) else duration.timedelta()


def _amounts(text: str) -> list[tuple[str, int]] | None:
    if _SHORT_DURATION.fullmatch(text):
        return [(unit, int(number)) for number, unit in _TERM.findall(text)]
    if iso := _ISO.fullmatch(text):
        return [(unit, int(number)) for unit, number in iso.groupdict().items() if number]
    return None


def _nearest_duration(text: str) -> str:
    """The usual mend, or an exact one for the mistakes people make most."""
    if _SHORT_DURATION.fullmatch(text.lower().replace(" ", "")):
        return f"Write {text.lower().replace(' ', '')!r}: small letters, no space."
    if text.isdecimal():
        return f"Write the unit too: {text}m for minutes, {text}h for hours, {text}d for days."
    return _MEND


# TABLE: the formats that data can lie in, by the word of a contract.

DataFormat = Literal["parquet", "orc", "avro", "json", "csv", "iceberg", "delta", "hudi"]

FORMATS: tuple[str, ...] = get_args(DataFormat)

LAKEHOUSE = frozenset({"iceberg", "delta", "hudi"})
"""Tables with a log of commits, which say themselves what their columns and partitions are."""


# Values as JSON has them.


def iso(at: date | None) -> str | None:
    """An instant or a day as ISO 8601, or None if there is none."""
    return None if at is None else at.isoformat()
