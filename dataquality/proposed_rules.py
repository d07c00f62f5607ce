"""Table and column profiles, the strength of the evidence for a rule, and the suggested rules."""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from itertools import pairwise
from typing import Any

from dq.contracts.outcome import pluralize
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import YamlPath
from dq.dataquality.model.predicate import INTEGERS, NUMBERS, TEXTS

# Policy of suggestions: required evidence, sensitive columns, number bounds and string shapes.

# TABLE: evidence required for a suggestion, and the distance of bounds from the observed values.

# With fewer rows, nothing is suggested.
MIN_ROWS = 20

# Lists of values: maximum number, and minimum rows and (with history) partitions of each value.
MAX_ENUM_VALUES = 30
MIN_ROWS_PER_VALUE = 3
MIN_PARTITIONS_PER_VALUE = 2
MAX_VALUE_LENGTH = 60

# Minimum rows with a value and (with history) partitions for a rule of severity error; see "Strength" below.
MIN_ROWS_FOR_ERROR = 100
MIN_PARTITIONS_FOR_ERROR = 30
# Minimum number of values, and percentage of rows per value, for a list of severity error.
MIN_VALUES_FOR_ERROR = 3
MIN_VALUE_PERCENT = 1

# Minimum number of distinct values for a format or pattern; fewer may share one by chance.
MIN_VALUES_FOR_PATTERN = 20
MAX_SHAPE_LENGTH = 40

# Distance of number bounds from the observed range on either side, in multiples of that range.
HEADROOM = 1
# Minimum number of partitions with a monotonic minimum or maximum to assume a trend.
MIN_PARTITIONS_FOR_TREND = 4

# Allowed string length as a multiple of the longest observed.
LENGTH_FACTOR = 2

# Allowed share of NULLs: factor on the greatest share of a partition, plus percentage points; no rule above
# the maximum.
NULL_SHARE_FACTOR, NULL_SHARE_POINTS, MAX_NULL_PERCENT = 2, 5, 60

# Keys: minimum number of duplicates expected by chance, while there are none; minimum rows for a column that
# is named like a key.
MIN_CHANCE_DUPLICATES = 3
MIN_ROWS_FOR_KEY = 50
# Maximum number of rows for the rule that no two rows are equal, which costs a pass.
MAX_ROWS_FOR_ROW_KEY = 5_000_000
# Columns with a higher percentage of NULLs are not part of that rule.
MAX_KEY_NULL_PERCENT = 10

# Row counts: the minimum observed divided by, to the maximum observed multiplied by this factor.
ROW_COUNT_FACTOR = 1.5

_KEY_NAME = re.compile(r"(^|_)(id|key|uuid|guid|code|iata|icao|isbn|sku|ean|vin|tailnum|faa|nr|no|number)$")
# Names of columns whose values may lie in the future.
_FUTURE_NAME = re.compile(
    r"due|expir|valid|until|(^|_)to$|(^|_)end|plan|sched|deadline|target|forecast|renew|next"
)
# Name pattern -> natural lower and upper bound.
_NATURAL_BOUNDS = (
    (re.compile(r"^(lat|latitude)$|_(lat|latitude)$"), -90, 90),
    (re.compile(r"^(lon|lng|long|longitude)$|_(lon|lng|longitude)$"), -180, 180),
    (re.compile(r"^month$|_month$"), 1, 12),
    (re.compile(r"^day_of_month$"), 1, 31),
    (re.compile(r"^hour$|_hour$"), 0, 24),
    (re.compile(r"^minute$|_minute$"), 0, 60),
)


def snake(name: str) -> str:
    """Return a column's name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()


def is_key_like(name: str) -> bool:
    """Return True if the name suggests a key."""
    return _KEY_NAME.search(snake(name)) is not None


def may_be_in_future(name: str) -> bool:
    """Return True if the name suggests values in the future."""
    return _FUTURE_NAME.search(snake(name)) is not None


def natural_bounds(name: str) -> tuple[int, int] | None:
    """Return the natural bounds of a column with this name, or None."""
    return next(
        ((minimum, maximum) for form, minimum, maximum in _NATURAL_BOUNDS if form.search(snake(name))), None
    )


# TABLE: columns whose values are never written into a contract, by name and by format.
#
# This covers sensitive columns that are not classified in the contract.

# Whole words of a name.
_SENSITIVE_WORDS = frozenset(
    {
        "aadhaar", "address", "apikey", "bic", "birth", "birthdate", "birthday", "birthplace", "bsn",
        "card", "cpf", "credential", "curp", "cvv", "diagnosis", "disability", "dob", "email", "ethnicity",
        "fax", "firstname", "geburtsdatum", "health", "iban", "ip", "ipv4", "ipv6", "kennwort", "lastname",
        "login", "maiden", "mail", "medical", "mobile", "msisdn", "nachname", "nationality", "nickname",
        "nino", "passport", "passwd", "password", "patient", "pesel", "phone", "pin", "race", "religion",
        "salary", "secret", "sexuality", "sin", "ssn", "steuernummer", "strasse", "street", "surname",
        "tax", "taxid", "telephone", "token", "user", "username", "vorname", "wage",
    }
)  # fmt: skip
# Word pairs that are sensitive in combination.
_SENSITIVE_PAIRS = (
          "first_name", "last_name", "full_name", "given_name", "family_name", "middle_name", "user_name",
          "customer_name", "person_name", "contact_name", "account_number", "account_holder", "credit_card",
          "api_key", "access_key", "private_key", "zip_code", "post_code", "postal_code")  # fmt: skip
SENSITIVE_FORMS = frozenset({"email", "ipv4", "ipv6"})
_LONG = re.compile(r"[A-Za-z0-9+/_=.-]{20,}")


def is_sensitive_name(name: str) -> bool:
    """Return True if a column of this name may hold personal data or credentials."""
    words = snake(name)
    return not _SENSITIVE_WORDS.isdisjoint(words.split("_")) or any(
        pair in words for pair in _SENSITIVE_PAIRS
    )


def looks_like_secret(value: str) -> bool:
    """Return True if a string looks like a token: long, without blanks, with letters and digits."""
    return (
        _LONG.fullmatch(value) is not None
        and any(char.isdigit() for char in value)
        and any(char.isalpha() for char in value)
    )


# Common shape of strings, e.g. two capitals and a digit, as a pattern.

_RUN = re.compile(r"(.)\1*", re.DOTALL)
_CLASSES = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]"}


def pattern_of(shape: str) -> str:
    """Return the shape as an anchored pattern, or "" if it has no letters or digits, or non-ASCII characters.

    In a shape `A`, `a` and `9` stand for an ASCII letter or digit, and every other character for itself.
    """
    if not 0 < len(shape) <= MAX_SHAPE_LENGTH or not any(sign in _CLASSES for sign in shape):
        return ""
    if not all(32 <= ord(sign) < 127 for sign in shape) or "${" in shape:
        return ""
    parts = []
    for run in _RUN.finditer(shape):
        sign, count = run[1], len(run[0])
        plain = sign.isalnum() or sign in " _-:/,;@#=%&"
        inside = f"\\{sign}" if sign in "\\]^[&~-" else sign
        char_class = _CLASSES.get(sign) or (sign if plain else f"[{inside}]")
        parts.append(char_class if count == 1 else f"{char_class}{{{count}}}")
    return f"^{''.join(parts)}$"


# Round numbers at a distance from the observed ones.

# Enough for Spark's decimals and their sums.
_DIGITS = 80
# Larger numbers are written as floats.
_LONGEST = Decimal(10) ** 38
Number = int | float | Decimal


def round_significant(value: Number, up: bool, digits: int = 2) -> int | float:
    """Return the nearest number above (or below) `value` with `digits` significant digits."""
    exact = Decimal(str(value))
    if not exact:
        return 0
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return as_contract_number(_round_to_step(exact, step, ROUND_CEILING if up else ROUND_FLOOR))


def bounds_with_headroom(least: Number, greatest: Number) -> tuple[int | float, int | float]:
    """Return round bounds for numbers in this range, extended by `HEADROOM` times the range on either side.

    A bound does not cross zero if all numbers have the same sign.
    """
    zero, low, high = Decimal(0), Decimal(str(least)), Decimal(str(greatest))
    with localcontext(prec=_DIGITS):
        spread = ((high - low) or abs(high) or Decimal(1)) * HEADROOM
        step = Decimal(1).scaleb(spread.adjusted())
        from_ = zero if 0 <= low <= spread else _round_to_step(low - spread, step, ROUND_FLOOR)
        to = (
            zero
            if low < 0 and high <= 0 and -high <= spread
            else _round_to_step(high + spread, step, ROUND_CEILING)
        )
        return as_contract_number(max(from_, zero) if low >= 0 else from_), as_contract_number(to)


def _round_to_step(value: Decimal, step: Decimal, rounding: str) -> Decimal:
    return (value / step).to_integral_value(rounding) * step


def as_contract_number(value: Decimal) -> int | float:
    """Return the number as a contract writes it: an int if it is whole, else a float."""
    if value == value.to_integral_value() and abs(value) < _LONGEST:
        return int(value)
    return max(-sys.float_info.max, min(float(value), sys.float_info.max))


def first_day(least: dt.date, greatest: dt.date) -> dt.date:
    """Return the January 1st that lies at least a year, and the observed range, before the earliest date."""
    back = max((greatest - least).days * HEADROOM, 366)
    begin = least.toordinal() - back
    return dt.date(dt.date.fromordinal(begin).year, 1, 1) if begin > 0 else dt.date(1, 1, 1)


def percentage(part: int, total: int) -> float:
    """Return the percentage, rounded to one decimal."""
    return round(100 * part / total, 1) if total else 0.0


# Profiles of tables and columns, with plain Python values.

Bound = int | float | Decimal | dt.date | dt.datetime
"""Minimum or maximum; instants are civil times in the session's zone."""


@dataclass(frozen=True, slots=True)
class PartitionColumnStats:
    """Statistics of one column in one partition: minimum and maximum of numbers and times, lengths of
    strings.

    They are None without values, and for values that cannot be bounds (NaN, infinities, years after 9999).
    """

    rows: int
    nulls: int = 0
    least: Bound | None = None
    greatest: Bound | None = None
    shortest: int | None = None
    longest: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """Profile of one column over all profiled partitions, oldest first.

    `path` is the path of its property. `distinct_count` is an estimate. `forms` are the named formats that
    every value has, `shape` the common shape of all values (`A99` for a capital and two digits) or "", and
    `is_ascii` is True if all are printable ASCII. `values` has all values if they are few, with their numbers
    of partitions and rows. `declared_keys` are the contract's keys of the column, e.g. `required`,
    `logicalTypeOptions.minimum`, or `quality nullValues` for a rule of this metric.
    """

    path: YamlPath
    name: str
    type: DataType
    partition_stats: tuple[PartitionColumnStats, ...]
    distinct_count: int = 0
    forms: frozenset[str] = frozenset()
    shape: str = ""
    is_ascii: bool = False
    values: Mapping[str, tuple[int, int]] | None = None
    declared_keys: frozenset[str] = frozenset()
    is_sensitive: bool = False
    is_partition: bool = False

    @property
    def rows(self) -> int:
        """Number of rows in all partitions."""
        return sum(stats.rows for stats in self.partition_stats)

    @property
    def nulls(self) -> int:
        """Number of rows without a value."""
        return sum(stats.nulls for stats in self.partition_stats)

    @property
    def filled(self) -> int:
        """Number of rows with a value."""
        return self.rows - self.nulls


@dataclass(frozen=True, slots=True)
class TableProfile:
    """Profile of a table. `partition_rows` are the rows of each partition, oldest first; one for no
    partitions.

    `keys` are the partition columns, `present` is the total number of partitions. `key_candidates` are
    combinations of columns that are nearly unique.
    """

    path: YamlPath
    name: str
    partition_rows: tuple[int, ...]
    columns: tuple[ColumnProfile, ...]
    keys: tuple[str, ...] = ()
    present: int = 1
    distinct_rows: int = 0
    key_candidates: tuple[tuple[str, ...], ...] = ()
    declared_keys: frozenset[str] = frozenset()
    now: dt.datetime | None = None

    @property
    def rows(self) -> int:
        """Number of profiled rows."""
        return sum(self.partition_rows)

    @property
    def has_history(self) -> bool:
        """True if the table is partitioned."""
        return len(self.partition_rows) > 1 or bool(self.keys)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One suggested rule: a key and value of the mapping at `path`, or, with an empty key, an item of the
    list.

    `summary` describes it and `evidence` gives the reason; neither has values of sensitive columns.
    """

    path: YamlPath
    key: str
    value: object
    evidence: str
    summary: str
    column: str = ""


# Strength of the evidence for a rule: an error, a warning where it is weak, or no rule.
#
# The statistics are simple enough to check by hand:
#
# - Rule of three: after `n` rows without an exception, up to `3 / n` of all rows may be exceptions (at 95 %).
#   `MIN_ROWS_FOR_ERROR` rows bound that share at 3 %.
# - Rule of succession: after `n` partitions without an exception, the probability of one in the next
# partition is about `1 / (n + 2)`. Rows of one partition resemble each other, so partitions are counted
# instead of rows; `MIN_PARTITIONS_FOR_ERROR` partitions give about 3 %. - Rare values suggest that there are
# more values: a list is an error only if each of its values has at least `MIN_VALUE_PERCENT` percent of the
# rows. The Good-Turing estimate is zero for every list, because values in fewer than `MIN_ROWS_PER_VALUE`
# rows rule a list out. - Leave one out: a bound that the most extreme partition would break, were it computed
# from the other partitions, is a warning. - A column with a single distinct value gets no bounds, lengths or
# list.

OPTIONS = "logicalTypeOptions"
# Steps of a top-level property: schema, position, properties, position. A rule on a struct's field would also
# count the struct's NULLs.
TOP_LEVEL_STEPS = 4


def history_text(table: TableProfile) -> str:
    """Return the extent of the evidence: number of partitions, or of rows without history."""
    if not table.has_history:
        return f"in {table.rows:,} rows"
    count = len(table.partition_rows)
    return f"in {count:,} of {pluralize(count, 'partition')}"


def history_weakness(column: ColumnProfile, table: TableProfile) -> str:
    """Return why the history is too short for an error, or "" if it is long enough."""
    if table.has_history and len(table.partition_rows) < MIN_PARTITIONS_FOR_ERROR:
        return f"fewer than {MIN_PARTITIONS_FOR_ERROR} partitions"
    if column.filled < MIN_ROWS_FOR_ERROR:
        return f"fewer than {MIN_ROWS_FOR_ERROR} rows"
    return ""


def list_weakness(column: ColumnProfile, table: TableProfile) -> str:
    """Return why the values seen may not be all values, or "" if nothing suggests more."""
    values = column.values or {}
    if len(values) < MIN_VALUES_FOR_ERROR:
        return f"fewer than {MIN_VALUES_FOR_ERROR} values"
    if 100 * min(rows for _, rows in values.values()) < MIN_VALUE_PERCENT * column.filled:
        return f"one value is in less than {MIN_VALUE_PERCENT} % of the rows"
    return history_weakness(column, table)


def is_constant(column: ColumnProfile) -> bool:
    """Return True if all rows with a value have the same one."""
    ends = {end for part in column.partition_stats for end in (part.least, part.greatest) if end is not None}
    return column.distinct_count == 1 or len(ends) == 1 or len(column.values or ()) == 1


def unstable_ends(least: Sequence[Any], greatest: Sequence[Any]) -> tuple[str, str]:
    """Return for the lower and the upper bound why one partition alone moves it, or ""."""
    if len(least) < 2:
        return "", ""
    second_lowest, second_highest = sorted(least)[1], sorted(greatest)[-2]
    low, _ = bounds_with_headroom(second_lowest, max(greatest))
    _, high = bounds_with_headroom(min(least), second_highest)
    reason = "one partition is an outlier"
    return reason if min(least) < low else "", reason if max(greatest) > high else ""


def with_reason(evidence: str, reason: str) -> str:
    """Return the evidence, followed by why it supports a warning only."""
    return f"{evidence}; a warning: {reason}" if reason else evidence


def warning_count(metric: str, arguments: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return a library rule that warns of any row that `metric` counts."""
    optional_arguments = {"arguments": dict(arguments)} if arguments else {}
    return {"metric": metric, **optional_arguments, "mustBe": 0, "severity": "warning"}


def warning_bound(check: str, operator: str, bound: int | float) -> dict[str, object]:
    """Return a rule of dq's own, `min` or `max`, that warns of a number beyond `bound`."""
    implementation = {"check": check, operator: bound}
    return {"type": "custom", "engine": "dq", "implementation": implementation, "severity": "warning"}


def warning_query(condition: str) -> dict[str, object]:
    """Return a rule that warns of rows that meet `condition`, in SQL of `{property}`."""
    query = f"SELECT count(*) FROM {{object}} WHERE {condition}"  # noqa: S608
    return {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}


# Bounds of numbers and times, from the minimum and maximum of each partition.

TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def number_bounds(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    """Yield the least and the greatest number, or warnings of them where the evidence is weak."""
    if column.type.name not in NUMBERS or column.is_partition or column.is_sensitive:
        return
    ends = _ends(column.partition_stats)
    if ends is None or not all(isinstance(end, int | float | Decimal) for end in ends):
        return
    least, greatest = ends
    low, high = bounds_with_headroom(least, greatest)
    evidence_texts = (
        f"smallest {_number_text(least)} {history_text(table)}",
        f"largest {_number_text(greatest)} {history_text(table)}",
    )
    natural = natural_bounds(column.name)
    weakness = history_weakness(column, table)
    reasons = tuple(weakness or reason for reason in unstable_ends(*_series(column.partition_stats)))
    if natural is not None and natural[0] <= least and greatest <= natural[1]:
        # Natural bounds need no evidence.
        (low, high), reasons = natural, ("", "")
    elif is_constant(column):
        return
    down, up = _trends(column.partition_stats)
    lower = not {f"{OPTIONS}.minimum", f"{OPTIONS}.exclusiveMinimum", "quality min"} & column.declared_keys
    upper = not {f"{OPTIONS}.maximum", f"{OPTIONS}.exclusiveMaximum", "quality max"} & column.declared_keys
    if lower and (not down or low == 0):
        yield from _bound(column, "minimum", low, evidence_texts[0], reasons[0])
    if upper and not up and not _is_row_number(column):
        yield from _bound(column, "maximum", high, evidence_texts[1], reasons[1])


def _bound(
    column: ColumnProfile, key: str, bound: int | float, evidence: str, weakness: str
) -> Iterator[Proposal]:
    summary, evidence = (
        f"at {'least' if key == 'minimum' else 'most'} {bound}",
        with_reason(evidence, weakness),
    )
    if not weakness:
        yield Proposal((*column.path, OPTIONS), key, bound, evidence, summary)
    elif len(column.path) <= TOP_LEVEL_STEPS:
        operator = "mustBeGreaterOrEqualTo" if key == "minimum" else "mustBeLessOrEqualTo"
        rule = warning_bound("min" if key == "minimum" else "max", operator, bound)
        yield Proposal((*column.path, "quality"), "", rule, evidence, summary)


def _is_row_number(column: ColumnProfile) -> bool:
    """Return True if the column looks like a running number, which has no maximum."""
    return (
        column.type.name in INTEGERS
        and column.distinct_count > 0.9 * column.filled
        and column.filled >= MIN_ROWS_FOR_KEY
    )


def _number_text(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"


def _ends(partition_stats: tuple[PartitionColumnStats, ...]) -> tuple[Any, Any] | None:
    least, greatest = _series(partition_stats)
    return (min(least), max(greatest)) if least and len(least) == len(greatest) else None


def _trends(partition_stats: tuple[PartitionColumnStats, ...]) -> tuple[bool, bool]:
    """Return if the minimum falls, and if the maximum rises, from partition to partition."""
    least, greatest = _series(partition_stats)
    if len(greatest) < MIN_PARTITIONS_FOR_TREND:
        return False, False
    down = least[0] > least[-1] and all(a >= b for a, b in pairwise(least))
    up = greatest[0] < greatest[-1] and all(a <= b for a, b in pairwise(greatest))
    return down, up


def _series(partition_stats: tuple[PartitionColumnStats, ...]) -> tuple[list[Any], list[Any]]:
    """Return the minimum and maximum of each partition."""
    return (
        [stats.least for stats in partition_stats if stats.least is not None],
        [stats.greatest for stats in partition_stats if stats.greatest is not None],
    )


def time_bounds(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    """Yield the first day or instant, and that none lies in the future."""
    if column.type.name not in TIMES or column.is_partition or column.is_sensitive:
        return
    ends = _ends(column.partition_stats)
    if ends is None or is_constant(column):
        return
    earliest, latest = map(_day, ends)
    if not {f"{OPTIONS}.minimum", f"{OPTIONS}.exclusiveMinimum"} & column.declared_keys:
        day = first_day(earliest, latest)
        bound = f"{day.isoformat()}" + ("" if column.type.name == "date" else "T00:00:00Z")
        weakness, summary = history_weakness(column, table), f"not before {day}"
        evidence = with_reason(f"the earliest {earliest} {history_text(table)}", weakness)
        if not weakness:
            yield Proposal((*column.path, OPTIONS), "minimum", bound, evidence, summary)
        elif "quality sql" not in column.declared_keys and len(column.path) <= TOP_LEVEL_STEPS:
            literal = f"{'DATE' if column.type.name == 'date' else 'TIMESTAMP'} '{bound}'"
            rule = warning_query(f"{{property}} < {literal}")
            yield Proposal((*column.path, "quality"), "", rule, evidence, summary)
    if "quality sql" in column.declared_keys or len(column.path) > TOP_LEVEL_STEPS:
        return
    if table.now is not None and latest <= table.now.date() and not may_be_in_future(column.name):
        now_sql = "current_date()" if column.type.name == "date" else "current_timestamp()"
        future_evidence = f"no future value {history_text(table)}, the latest {latest}"
        # The check substitutes the placeholders in braces with quoted names.
        query = f"SELECT count(*) FROM {{object}} WHERE {{property}} > {now_sql}"  # noqa: S608
        rule = {"type": "sql", "query": query, "mustBe": 0}
        yield Proposal((*column.path, "quality"), "", rule, future_evidence, "not in the future")


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


# TABLE: suggestions for a column from its profile.

_FORM_KEYS = ("enum", f"{OPTIONS}.pattern", f"{OPTIONS}.format", "quality invalidValues")

# Printable ASCII, as a pattern with the same meaning in Java and ECMA-262.
PLAIN = "^[ -~]*$"


def column_proposals(column: ColumnProfile, table: TableProfile) -> list[Proposal]:
    """Return the suggestions for a column except keys. Empty with few rows or without values."""
    if table.rows < MIN_ROWS or column.filled == 0:
        return []
    return [replace(proposal, column=column.name) for rule in _RULES for proposal in rule(column, table)]


def _required(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    blocking_keys = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if column.nulls or column.is_partition or blocking_keys & column.declared_keys:
        return
    # A name like a key's is additional evidence.
    weakness = "" if is_key_like(column.name) else history_weakness(column, table)
    evidence = with_reason(f"no NULL {history_text(table)}", weakness)
    if not weakness:
        yield Proposal(column.path, "required", True, evidence, "required")
    elif len(column.path) <= TOP_LEVEL_STEPS:
        yield Proposal((*column.path, "quality"), "", warning_count("nullValues"), evidence, "no NULL")


def _null_share(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    blocking_keys = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if not column.nulls or blocking_keys & column.declared_keys or len(column.path) > TOP_LEVEL_STEPS:
        return
    shares = [percentage(stats.nulls, stats.rows) for stats in column.partition_stats if stats.rows]
    lowest, highest = min(shares), max(shares)
    bound = round_significant(NULL_SHARE_FACTOR * highest + NULL_SHARE_POINTS, True)
    if bound > MAX_NULL_PERCENT:
        return
    percent_text = f"{highest:g} %" if lowest == highest else f"{lowest:g} to {highest:g} %"
    rule = {
        "metric": "nullValues",
        "mustBeLessOrEqualTo": bound,
        "unit": "percent",
        "severity": "warning",
    }
    yield Proposal(
        (*column.path, "quality"), "", rule, f"{percent_text} NULL {history_text(table)}", "share of NULLs"
    )


def _enum(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    if not _has_known_values(column, table) or not column.declared_keys.isdisjoint(_FORM_KEYS):
        return
    values = column.values or {}
    rarest = min(rows for _, rows in values.values())
    number = f"{pluralize(len(values), 'value')} {history_text(table)}"
    listed = [{"value": value} for value in sorted(values)]
    evidence = f"{number}, the rarest in {pluralize(rarest, 'row')}"
    if table.has_history:
        evidence += f" of {min(count for count, _ in values.values()):,} partitions"
    weakness, summary = list_weakness(column, table), f"one of {len(values)} values"
    evidence = with_reason(evidence, weakness)
    if not weakness:
        yield Proposal(column.path, "enum", listed, evidence, summary)
    elif len(column.path) <= TOP_LEVEL_STEPS:
        rule = warning_count("invalidValues", {"validValues": sorted(values)})
        yield Proposal((*column.path, "quality"), "", rule, evidence, summary)


def _has_known_values(column: ColumnProfile, table: TableProfile) -> bool:
    """Return True if the column has a list of values: few, none of them rare, none sensitive."""
    values = column.values
    if not values or column.is_sensitive or column.type.name not in TEXTS or column.is_partition:
        return False
    if column.filled < MIN_ROWS or is_constant(column):
        return False
    min_partitions = MIN_PARTITIONS_PER_VALUE if len(table.partition_rows) > 1 else 1
    return len(values) <= MAX_ENUM_VALUES and all(
        count >= min_partitions and rows >= MIN_ROWS_PER_VALUE and _writable(value)
        for value, (count, rows) in values.items()
    )


def _writable(value: str) -> bool:
    return (
        0 < len(value) <= MAX_VALUE_LENGTH
        and value.isprintable()
        and "${" not in value
        and "{{" not in value
        and not looks_like_secret(value)
    )


def _format(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    if (
        column.type.name not in TEXTS
        or column.is_partition
        or column.distinct_count < MIN_VALUES_FOR_PATTERN
        or _has_known_values(column, table)
        or not column.declared_keys.isdisjoint(_FORM_KEYS)
    ):
        return
    name = next((candidate for candidate in FORMATS if candidate in column.forms), "")
    options_path = (*column.path, OPTIONS)
    if name:
        yield Proposal(options_path, "format", name, f"all values {history_text(table)}", f"format {name}")
        return
    pattern = pattern_of(column.shape)
    if pattern:
        evidence = (
            f"the only pattern of about {round_significant(column.distinct_count, False)} values "
            f"{history_text(table)}"
        )
        yield Proposal(options_path, "pattern", pattern, evidence, f"pattern {pattern}")


# The narrower format comes first.
FORMATS = ("uuid", "date-time", "date", "email", "ipv4", "ipv6", "uri")


def _printable_ascii(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    if (
        not column.is_ascii
        or column.distinct_count < MIN_VALUES_FOR_PATTERN
        or not _is_free_text(column, table)
    ):
        return
    rule = {
        "metric": "invalidValues",
        "arguments": {"pattern": PLAIN},
        "mustBe": 0,
        "severity": "warning",
    }
    evidence = f"only ASCII characters {history_text(table)}"
    yield Proposal((*column.path, "quality"), "", rule, evidence, "printable ASCII")


def _is_free_text(column: ColumnProfile, table: TableProfile) -> bool:
    """Return True if the column has strings that no list, format or pattern describes."""
    if (
        column.type.name not in TEXTS
        or column.is_partition
        or not column.declared_keys.isdisjoint(_FORM_KEYS)
    ):
        return False
    return not _has_known_values(column, table) and not any(_format(column, table))


def _lengths(column: ColumnProfile, table: TableProfile) -> Iterator[Proposal]:
    longest = max(
        (stats.longest for stats in column.partition_stats if stats.longest is not None), default=None
    )
    shortest = min(
        (stats.shortest for stats in column.partition_stats if stats.shortest is not None), default=None
    )
    blocking_keys = (f"{OPTIONS}.minLength", f"{OPTIONS}.maxLength")
    if longest is None or shortest is None or not column.declared_keys.isdisjoint(blocking_keys):
        return
    if not _is_free_text(column, table) or is_constant(column):
        return
    options_path = (*column.path, OPTIONS)
    if shortest == longest and column.distinct_count < MIN_VALUES_FOR_PATTERN:
        # Few values may have the same length by chance.
        evidence = with_reason(
            f"all have the same length {history_text(table)}", f"fewer than {MIN_VALUES_FOR_PATTERN} values"
        )
        if len(column.path) <= TOP_LEVEL_STEPS and "quality sql" not in column.declared_keys:
            rule = warning_query(f"char_length({{property}}) <> {longest}")
            yield Proposal((*column.path, "quality"), "", rule, evidence, f"{longest} long")
        return
    if shortest > 0:
        min_length = shortest if shortest == longest else 1
        lengths_text = (
            "all have the same length" if shortest == longest else f"the shortest {shortest}, none empty,"
        )
        yield Proposal(
            options_path,
            "minLength",
            min_length,
            f"{lengths_text} {history_text(table)}",
            f"at least {min_length} long",
        )
    if longest > 0:
        max_length = longest if shortest == longest else int(round_significant(longest * LENGTH_FACTOR, True))
        yield Proposal(
            options_path, "maxLength", max_length, f"the longest {longest}", f"at most {max_length} long"
        )


_RULES: tuple[Callable[[ColumnProfile, TableProfile], Iterator[Proposal]], ...] = (
    _required,
    _enum,
    _format,
    _lengths,
    _printable_ascii,
    number_bounds,
    time_bounds,
    _null_share,
)


# Suggestions for a table: keys and row counts.

_ALPHABET_SIZES = {"A": 26, "a": 26, "9": 10}
KEY_TYPES = INTEGERS | TEXTS | {"date", "timestamp", "timestamp_ntz", "decimal", "boolean"}
COMPOSITE_KEY = "together unique"
"""Summary of a composite key."""
COMPARABLE_TYPES = KEY_TYPES | {"float", "double"}
# Estimates of distinct counts are off by some percent.
DISTINCT_TOLERANCE = 0.9


def proposals(table: TableProfile) -> list[Proposal]:
    """Return all suggestions: those of each column in contract order, then those of the table."""
    keys = {proposal.column: proposal for proposal in _unique(table)}
    all_proposals: list[Proposal] = []
    for column in table.columns:
        own = column_proposals(column, table)
        first = 1 if own and own[0].key == "required" else 0
        all_proposals += own[:first] + ([keys[column.name]] if column.name in keys else []) + own[first:]
    return [*all_proposals, *_table_uniqueness(table, bool(keys)), *_row_counts(table)]


def _unique(table: TableProfile) -> Iterator[Proposal]:
    for column in table.columns:
        if column.is_partition or column.nulls or {"unique", "primaryKey"} & column.declared_keys:
            continue
        if "quality duplicateValues" in column.declared_keys or not _is_nearly_unique(
            column.distinct_count, table.rows
        ):
            continue
        reason = _uniqueness_reason(column, table.rows)
        if reason:
            evidence = f"no duplicates in {table.rows:,} rows; {reason}"
            yield Proposal(column.path, "unique", True, evidence, "unique", column.name)


def _uniqueness_reason(column: ColumnProfile, rows: int) -> str:
    """Return the evidence that the column is unique not only by chance, or "" if it may be chance."""
    if column.type.name not in INTEGERS | TEXTS:
        return ""
    if "uuid" in column.forms:
        return "UUIDs are unique by design"
    space = _value_space(column)
    expected_duplicates = rows * rows / (2 * space) if space else 0
    if expected_duplicates >= MIN_CHANCE_DUPLICATES:
        return f"about {round_significant(Decimal(expected_duplicates), False):,} expected by chance"
    if is_key_like(column.name) and rows >= MIN_ROWS_FOR_KEY:
        return "its name is that of a key"
    return ""


def _value_space(column: ColumnProfile) -> float:
    """Return the number of possible values, or 0 if unknown."""
    if column.type.name in TEXTS:
        shape = column.shape if len(column.shape) <= MAX_SHAPE_LENGTH else ""
        return math.prod(_ALPHABET_SIZES.get(sign, 1) for sign in shape) if shape else 0
    least = [int(stats.least) for stats in column.partition_stats if isinstance(stats.least, int)]
    greatest = [int(stats.greatest) for stats in column.partition_stats if isinstance(stats.greatest, int)]
    return max(greatest) - min(least) + 1 if least and greatest else 0


def _is_nearly_unique(distinct_count: int, rows: int) -> bool:
    return rows >= MIN_ROWS and distinct_count >= DISTINCT_TOLERANCE * rows


def key_columns(table: TableProfile) -> list[ColumnProfile]:
    """Return the columns that a composite key could use, those with the most distinct values first."""
    candidates = [
        column
        for column in table.columns
        if column.type.name in KEY_TYPES
        and not column.nulls
        and column.distinct_count > 1
        and len(column.path) == TOP_LEVEL_STEPS
    ]
    return sorted(candidates, key=lambda column: -column.distinct_count)


def _table_uniqueness(table: TableProfile, has_single_key: bool) -> Iterator[Proposal]:
    """Yield a composite key, or else the rule that no two rows are equal."""
    key_options = {"primaryKey", "unique"}
    if has_single_key or "quality duplicateValues" in table.declared_keys:
        return
    if any(key_options & column.declared_keys for column in table.columns) or table.rows < MIN_ROWS:
        return
    if table.key_candidates:
        names = table.key_candidates[0]
        sizes = {column.name: column.distinct_count for column in table.columns}
        expected_duplicates = Decimal(table.rows) ** 2 / (2 * math.prod(sizes[name] for name in names))
        evidence = (
            f"no duplicates in {table.rows:,} rows; about "
            f"{round_significant(expected_duplicates, False):,} expected by chance"
        )
        yield _no_duplicates(table, names, evidence, "error")
        return
    # Rows with NULL in the key never count as duplicates, so columns with many NULLs are excluded.
    comparable = tuple(
        column.name
        for column in table.columns
        if len(column.path) == TOP_LEVEL_STEPS
        and column.type.name in COMPARABLE_TYPES
        and percentage(column.nulls, column.rows) < MAX_KEY_NULL_PERCENT
    )
    if (
        comparable
        and _is_nearly_unique(table.distinct_rows, table.rows)
        and table.rows <= MAX_ROWS_FOR_ROW_KEY
    ):
        yield _no_duplicates(table, comparable, f"no duplicate rows among {table.rows:,}", "warning")


def _no_duplicates(table: TableProfile, names: tuple[str, ...], evidence: str, severity: str) -> Proposal:
    rule: dict[str, object] = {
        "metric": "duplicateValues",
        "arguments": {"properties": list(names)},
        "mustBe": 0,
    }
    if severity != "error":
        rule["severity"] = severity
    summary = COMPOSITE_KEY if severity == "error" else "no duplicate rows"
    return Proposal((*table.path, "quality"), "", rule, evidence, summary)


def _row_counts(table: TableProfile) -> Iterator[Proposal]:
    if (
        "quality rowCount" in table.declared_keys
        or not table.partition_rows
        or min(table.partition_rows) == 0
    ):
        return
    quality_path = (*table.path, "quality")
    smallest, largest = min(table.partition_rows), max(table.partition_rows)
    not_empty: Mapping[str, object] = {"metric": "rowCount", "mustBeGreaterThan": 0}
    yield Proposal(quality_path, "", not_empty, f"never empty {history_text(table)}", "some rows")
    if smallest < MIN_ROWS:
        return
    low, high = (
        int(round_significant(smallest / ROW_COUNT_FACTOR, False)),
        int(round_significant(largest * ROW_COUNT_FACTOR, True)),
    )
    band: dict[str, object]
    if not table.has_history:
        band = {"metric": "rowCount", "mustBeBetween": [low, high], "severity": "warning"}
        yield Proposal(
            quality_path, "", band, f"{smallest:,} rows in one snapshot", f"{low:,} to {high:,} rows"
        )
    elif table.keys and len(table.partition_rows) >= MIN_PARTITIONS_FOR_TREND:
        names = ", ".join(sql.name(name) for name in table.keys)
        # The names are quoted.
        grouped = f"SELECT {names} FROM {{object}} GROUP BY {names}"  # noqa: S608
        inner = f"{grouped} HAVING count(*) NOT BETWEEN {low} AND {high}"
        query = f"SELECT count(*) FROM ({inner}) AS odd"  # noqa: S608
        band = {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}
        rows_text = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
        evidence = f"{rows_text} rows per partition {history_text(table)}"
        yield Proposal(quality_path, "", band, evidence, f"{low:,} to {high:,} rows per partition")
