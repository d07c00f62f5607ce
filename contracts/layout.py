"""Folders of a table's partitions: Hive's `column=value`, or a template such as `{hour:%Y/%m/%d/%H}`.

Every command takes the folder of a partition, and the partition of a folder, from a `Layout`.

A template is a relative path. `{tenant}` is a value, one folder name or a part of it. `{day:%Y/%m/%d}` is a
date or a time in the directives %Y %m %d %j %F %H %M %S; its value is written as Spark writes it, e.g.
`2026-11-20` or `2026-11-20 03:00:00`, for months and years as their first day. Times have no zone: they are
those that the producer writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache

from dq.contracts.outcome import ValueProblem

Values = tuple[tuple[str, str], ...]

# Folder names of Hive and Spark.
#
# Source: org.apache.hadoop.hive.common.FileUtils, and Spark's ExternalCatalogUtils.escapePathName.

_UNSAFE = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_EMPTY = "__HIVE_DEFAULT_PARTITION__"


def partition_folder(values: Iterable[tuple[str, str]]) -> str:
    """Return a partition's folder in Hive's layout, e.g. `flight_date=2026-11-20/hour=3`.

    It also names the partition in texts. Special characters of paths are escaped, so no name or value leads
    elsewhere.
    """
    return "/".join(f"{_escaped(key)}={_escaped(value) or _EMPTY}" for key, value in values)


def unescaped(text: str) -> str:
    """Return the key or value that a part of a folder's name stands for.

    Every escape is one character, not one byte of UTF-8: for Hive and Spark, `%C3%BC` is `Ã¼` and not `ü`.
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def named_folders(path: str) -> dict[str, str]:
    """Return the values in the names of a file's folders, by lower-case column name."""
    segments = [segment.partition("=") for segment in path.split("/")[:-1]]
    return {unescaped(name).lower(): unescaped(text) for name, equals, text in segments if equals}


# Templates.

# Directive -> its pattern, and the fields of a time that it holds.
_DIRECTIVES = {
    "Y": (r"\d{4}", "Y"),
    "m": (r"\d\d", "m"),
    "d": (r"\d\d", "d"),
    "j": (r"\d{3}", "md"),
    "F": (r"\d{4}-\d\d-\d\d", "Ymd"),
    "H": (r"\d\d", "H"),
    "M": (r"\d\d", "M"),
    "S": (r"\d\d", "S"),
}
# Fields of a time, from the year on; a template must name the first ones without a gap.
_FIELDS = "YmdHMS"
_STEPS = ("year", "month", "day", "hour", "minute", "second")
_DATES = _STEPS[:3]
_FIRST = [1, 1, 1, 0, 0, 0]
_PIECE = re.compile(r"\{(?P<column>[^{}:]+)(?::(?P<format>[^{}]*))?\}|[{}]|[^{}]+")
_DIRECTIVE = re.compile(r"%(.?)|[^%]+", re.DOTALL)
_TIME = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.0+)?)?)?)?)?)?")
# Characters that are escaped in the name of a folder; readers skip names that begin with a dot or `_`.
_NOT_IN_NAME = re.compile(r"[\x00-\x1f%/\x7f]|^[._]")
_LONGEST = 1_000
_HINT = "Write e.g. {day:%Y/%m/%d} or {tenant}/{hour:%Y%m%d%H}."

# Folder names below a table that make a date or a time -> the template of it; the longest one is used.
TIME_FOLDERS = (
    (r"\d{4}/\d\d/\d\d/\d\d", "{hour:%Y/%m/%d/%H}"),
    (r"\d{4}/\d\d/\d\d", "{day:%Y/%m/%d}"),
    (r"\d{4}-\d\d-\d\d/\d\d", "{hour:%F/%H}"),
    (r"\d{8}/\d\d", "{hour:%Y%m%d/%H}"),
    (r"\d{4}-\d\d-\d\d-\d\d", "{hour:%F-%H}"),
    (r"\d{10}", "{hour:%Y%m%d%H}"),
    (r"\d{4}-\d\d-\d\d", "{day:%F}"),
    (r"\d{8}", "{day:%Y%m%d}"),
    (r"\d{4}/\d\d", "{month:%Y/%m}"),
    (r"(?:19|20)\d\d", "{year:%Y}"),
)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a template: a directive of a column's time, a column's value, or text.

    `hive` is true for a value after `=`, which Hive and Spark escape.
    """

    text: str = ""
    column: str = ""
    directive: str = ""
    hive: bool = False

    @property
    def pattern(self) -> str:
        if self.directive:
            return f"({_DIRECTIVES[self.directive][0]})"
        return "([^/]+)" if self.column else re.escape(self.text)


@dataclass(frozen=True)
class Layout:
    """The folders of partitions below a table's folder. An empty `template` is Hive's layout."""

    template: str = ""
    _segments: tuple[tuple[_Piece, ...], ...] = field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.template)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the template, in order. Hive's layout has none: its folders name them."""
        return tuple(dict.fromkeys(column for column, _ in self.groups))

    @property
    def depth(self) -> int:
        """Number of folder levels of the template."""
        return len(self._segments)

    @cached_property
    def pattern(self) -> str:
        """A regular expression of the folders, with one group for each value and directive, in order."""
        return "/".join("".join(piece.pattern for piece in segment) for segment in self._segments)

    @cached_property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """Column and directive ("" for a value) of each group of `pattern`."""
        return tuple((piece.column, piece.directive) for piece in self._column_pieces)

    @cached_property
    def _column_pieces(self) -> tuple[_Piece, ...]:
        return tuple(piece for segment in self._segments for piece in segment if piece.column)

    @cached_property
    def _time_columns(self) -> tuple[str, ...]:
        return tuple(column for column in self.columns if self.precision(column))

    @cached_property
    def _levels(self) -> dict[str, tuple[int, int]]:
        """Lower-case column -> the first and the last folder level with its value."""
        levels: dict[str, tuple[int, int]] = {}
        for level, segment in enumerate(self._segments, 1):
            for column in (piece.column.lower() for piece in segment if piece.column):
                levels[column] = (levels.get(column, (level, level))[0], level)
        return levels

    @cached_property
    def _precisions(self) -> dict[str, str]:
        units: dict[str, set[str]] = {}
        for column, directive in self.groups:
            if directive:
                units.setdefault(column.lower(), set()).update(_DIRECTIVES[directive][1])
        return {column: _STEPS[len(fields) - 1] for column, fields in units.items()}

    def precision(self, column: str) -> str:
        """Return the smallest unit of a column's times (year, month, day, hour, minute, second), "" if it has
        other values.
        """
        return self._precisions.get(column.lower(), "")

    def folder_of(self, values: Iterable[tuple[str, str]]) -> str:
        """Return the folder of a partition below its table.

        With the first columns only, it is the folder above all partitions that have their values. No value
        leads out of the table's folder. Raises ValueError for a value that has no folder of its own, e.g.
        03:15 where folders are hourly, or if a column of an upper folder is missing.
        """
        if not self.template:
            return partition_folder(values)
        texts = {name.lower(): text for name, text in values}
        missing = [first for column, (first, _) in self._levels.items() if column not in texts]
        levels = min(missing, default=self.depth + 1) - 1
        for name in texts:
            if name not in self._levels or self._levels[name][1] > levels:
                problem = "needs a value for each column above" if name in self._levels else "has no column"
                raise ValueError(f"the layout {self.template!r} {problem} {name!r}")
        times = {
            column: self._time(column, texts[column.lower()])
            for column in self._time_columns
            if column.lower() in texts
        }
        return "/".join(
            "".join(_render(piece, texts, times) for piece in segment) for segment in self._segments[:levels]
        )

    def partition_of(self, folder: str) -> Values | None:
        """Return the partition of a folder below the table, or None if the folder is not one of the layout.

        This is the inverse of `folder_of`, for all columns.
        """
        if not self.template:
            pairs = [segment.partition("=") for segment in folder.split("/")]
            return (
                tuple((unescaped(name), unescaped(text)) for name, _, text in pairs)
                if folder and all(equals for _, equals, _ in pairs)
                else None
            )
        match = _compiled(self.pattern).fullmatch(folder)
        if match is None:
            return None
        texts: dict[str, str] = {}
        fields: dict[str, dict[str, str]] = {}
        for piece, text in zip(self._column_pieces, match.groups(), strict=True):
            if piece.directive:
                fields.setdefault(piece.column, {}).update(_read_fields(piece.directive, text))
                texts.setdefault(piece.column, "")
            else:
                texts[piece.column] = unescaped(text)
        try:
            for column, read in fields.items():
                texts[column] = _time_text(read)
            values = tuple(texts.items())
            return values if self.folder_of(values) == folder else None
        except ValueError:
            return None

    def may_contain(self, folder: str) -> bool:
        """Return whether a folder below the table may be one of a template's folders, or above one."""
        return _compiled(self._upper_patterns[folder.count("/")]).fullmatch(folder) is not None

    @cached_property
    def _upper_patterns(self) -> tuple[str, ...]:
        """The patterns of the folders of each level."""
        names = ["".join(piece.pattern for piece in segment) for segment in self._segments]
        return tuple("/".join(names[:level]) for level in range(1, len(names) + 1))

    def values_of_file(self, path: str) -> dict[str, str] | None:
        """Return the values of a file's partition by lower-case column, or None if it lies in none.

        `path` is below the table's folder. Files in deeper folders belong to the partition too.
        """
        if not self.template:
            return named_folders(path)
        names = path.split("/")
        values = self.partition_of("/".join(names[: self.depth])) if len(names) > self.depth else None
        return None if values is None else {column.lower(): text for column, text in values}

    def normalized(self, values: Iterable[tuple[str, str]]) -> Values:
        """Return the values with times as `partition_of` writes them; raises like `folder_of`."""
        pairs = tuple(values)
        if not self.template:
            return pairs
        return tuple(
            (name, _text_of(self._time(name, text), self.precision(name)) if self.precision(name) else text)
            for name, text in pairs
        )

    def _time(self, column: str, text: str) -> datetime:
        """Return a value as a time. Raises ValueError if it is not a whole unit of the layout."""
        precision = self.precision(column)
        match = _TIME.fullmatch(text)
        if match is None:
            kind = "date" if precision in _DATES else "time"
            raise ValueError(f"{text!r} is not a {kind} of {column!r}")
        parts = [
            first if part is None else int(part) for part, first in zip(match.groups(), _FIRST, strict=True)
        ]
        depth = _STEPS.index(precision) + 1
        if parts[depth:] != _FIRST[depth:]:
            raise ValueError(
                f"{text!r} shares its folder with others: folders of {column!r} are by {precision}"
            )
        try:
            return _moment(parts)
        except ValueError:
            raise ValueError(f"{text!r} is not a time of {column!r}") from None


HIVE = Layout()


@lru_cache(maxsize=256)
def parse_layout(template: str) -> Layout | ValueProblem:
    """Return the layout of a template, or its problem: two partitions could share a folder, or a folder could
    not be read back.
    """
    problem = _form_problem(template)
    pieces: list[_Piece] = []
    for match in _PIECE.finditer("" if problem else template):
        column, date_format = match["column"], match["format"]
        if column is None and match[0] in ("{", "}"):
            problem = f"unmatched {match[0]!r}"
            break
        if column is None:
            pieces.append(_Piece(match[0]))
        elif date_format is None:
            pieces.append(_Piece(column=column.strip(), hive=bool(pieces) and pieces[-1].text.endswith("=")))
        else:
            for part in _DIRECTIVE.finditer(date_format):
                if part[1] is None:
                    pieces.append(_Piece(part[0]))
                elif part[1] in _DIRECTIVES:
                    pieces.append(_Piece(column=column.strip(), directive=part[1]))
                else:
                    allowed = " ".join(f"%{name}" for name in _DIRECTIVES)
                    return ValueProblem(
                        "LAYOUT_DIRECTIVE",
                        f"'%{part[1]}' in {template!r} is not allowed.",
                        f"Write one of {allowed}.",
                    )
    layout = Layout(template, _split(pieces))
    problem = problem or _ambiguity(layout)
    if problem:
        return ValueProblem("LAYOUT", f"the layout {template!r} is not valid: {problem}.", _HINT)
    return layout


def _split(pieces: Iterable[_Piece]) -> tuple[tuple[_Piece, ...], ...]:
    """Return the pieces of each folder name."""
    segments: list[list[_Piece]] = [[]]
    for piece in pieces:
        first, *further = [piece] if piece.column else [_Piece(name) for name in piece.text.split("/")]
        segments[-1].append(first)
        segments += [[name] for name in further]
    return tuple(tuple(piece for piece in segment if piece.column or piece.text) for segment in segments)


def _form_problem(template: str) -> str:
    if len(template) > _LONGEST:
        return f"it is longer than {_LONGEST:,} characters"
    if not template.strip() or template != template.strip():
        return "it is empty" if not template.strip() else "it begins or ends with a space"
    if template.startswith("/") or "://" in template:
        return "it is relative to the server's location, without a scheme or a leading '/'"
    if re.search(r"[\x00-\x1f\x7f\\*?\[\]]", template):
        return "it has a pattern, a backslash or a control character"
    return ""


def _ambiguity(layout: Layout) -> str:
    """Return the reason why folders of two partitions could be the same, or could not be read back, or ""."""
    if not layout.columns:
        return "it names no column"
    lowered = [column.lower() for column in layout.columns]
    if len(set(lowered)) < len(lowered):
        return "it writes a column in two ways"
    for segment in layout._segments:
        if not segment:
            return "it has an empty folder name"
        if segment[0].text.startswith((".", "_")) and "=" not in segment[0].text:
            return f"readers skip folders that begin with {segment[0].text[0]!r}"
        if sum(bool(piece.column and not piece.directive) for piece in segment) > 1:
            return "two values in one folder name cannot be told apart; separate them with '/'"
    for column in layout.columns:
        directives = [directive for name, directive in layout.groups if name == column]
        if "" in directives:
            if len(directives) > 1:
                return f"{{{column}}} occurs more than once"
            continue
        units = [unit for directive in directives for unit in _DIRECTIVES[directive][1]]
        if len(set(units)) < len(units) and "j" in directives:
            return f"{column!r} has the day twice"
        missing = next(
            (unit for unit in _FIELDS[: max(map(_FIELDS.index, units)) + 1] if unit not in units), None
        )
        if missing is not None:
            step = _STEPS[_FIELDS.index(missing)]
            return f"two partitions share a folder, because {column!r} has no {step} (%{missing})"
    return ""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | re.DOTALL)


def _read_fields(directive: str, text: str) -> dict[str, str]:
    """Return the fields of a time in the text of a directive; `j` is the day of the year."""
    if directive == "F":
        return dict(zip("Ymd", text.split("-"), strict=True))
    return {directive: text}


def _time_text(fields: Mapping[str, str]) -> str:
    """Return the time of the fields that a folder has. Raises ValueError if there is no such time."""
    moment = _moment([int(fields.get(unit, first)) for unit, first in zip(_FIELDS, _FIRST, strict=True)])
    if "j" in fields:
        moment += timedelta(days=int(fields["j"]) - 1)
    return _text_of(moment, "second" if "H" in fields else "day")


def _moment(parts: Sequence[int]) -> datetime:
    year, month, day, hour, minute, second = parts
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _text_of(moment: datetime, precision: str) -> str:
    """Return a time as Spark casts it to a string: a date, or a time to the second."""
    date = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    return date if precision in _DATES else f"{date} {moment.hour:02}:{moment.minute:02}:{moment.second:02}"


def _render(piece: _Piece, texts: Mapping[str, str], times: Mapping[str, datetime]) -> str:
    if not piece.column:
        return piece.text
    if piece.directive:
        return _WRITERS[piece.directive](times[piece.column])
    return _write_name(texts[piece.column.lower()], hive=piece.hive)


_WRITERS: Mapping[str, Callable[[datetime], str]] = {
    "Y": lambda moment: f"{moment.year:04}",
    "m": lambda moment: f"{moment.month:02}",
    "d": lambda moment: f"{moment.day:02}",
    "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
    "F": lambda moment: _text_of(moment, "day"),
    "H": lambda moment: f"{moment.hour:02}",
    "M": lambda moment: f"{moment.minute:02}",
    "S": lambda moment: f"{moment.second:02}",
}


def _write_name(text: str, *, hive: bool) -> str:
    if hive:
        return _EMPTY if text in ("", _EMPTY) else _escaped(text)
    if text in ("", _EMPTY):
        raise ValueError("an empty value has no folder in this layout")
    return _NOT_IN_NAME.sub(lambda match: f"%{ord(match[0]):02X}", text)


@dataclass(frozen=True, slots=True)
class PlacedPartition:
    """A partition whose files lie in an explicit folder instead of that of the layout."""

    values: Values
    folder: str

    def root(self, keys: Sequence[str], layout: Layout = HIVE) -> str | None:
        """Return the folder that would have this one as the table's partition of these keys, or None."""
        order = {key.lower(): number for number, key in enumerate(keys)}
        if {key.lower() for key, _ in self.values} != order.keys():
            return None
        below = f"/{layout.folder_of(sorted(self.values, key=lambda pair: order[pair[0].lower()]))}"
        folder = self.folder.rstrip("/")
        return folder.removesuffix(below) if folder.endswith(below) else None

    def is_named_in(self, folders: Mapping[str, str]) -> bool:
        """Return whether a file's folders, as returned by `named_folders`, match this partition."""
        return {key.lower(): value for key, value in self.values}.items() <= folders.items()
