"""What was seen of a table, how strong the evidence for a rule is, and what is proposed from it."""

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

from dq.contracts.outcome import counted
from dq.contracts.sql import text as sql
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import Way
from dq.dataquality.model.predicate import INTEGERS, NUMBERS, TEXTS

# What is held back of proposals: how much must be seen, what is sensitive, numbers and outlines.

# TABLE: how much must be seen before something is promised, and how far from what was seen it stays.

# Fewer rows tell nothing.
FEWEST_ROWS = 20

# A list of values: at most so many, each in so many rows, and where there is history in so many partitions.
MOST_VALUES = 30
ROWS_OF_A_VALUE = 3
PARTITIONS_OF_A_VALUE = 2
LONGEST_VALUE = 60

# An error needs so many rows with a value, and so many partitions if there are any, see "Strength".
ROWS_OF_AN_ERROR = 100
PARTITIONS_OF_AN_ERROR = 30
# A list of values is an error if it has so many, each in so many percent of the rows.
VALUES_OF_AN_ERROR = 3
SHARE_OF_A_VALUE = 1

# A form of texts needs so many different values; fewer may share one by chance.
VALUES_OF_A_FORM = 20
LONGEST_SHAPE = 40

# The bounds of numbers keep the whole range that was seen as a distance from it, on either side.
HEADROOM = 1
# So many partitions in which each end goes on growing show that it will.
GROWTH = 4

# The longest text may be so much longer than the longest seen.
LENGTHS = 2

# Of a share of NULLs: twice the greatest of a partition and so many points more; above that, no promise.
NULLS_FACTOR, NULLS_POINTS, NULLS_MOST = 2, 5, 60

# A key: chance would have made so many duplicates, and there is none. A column that is named like a key
# needs only so many rows.
BY_CHANCE = 3
ROWS_OF_A_KEY = 50
# Up to so many rows, that no two are alike is worth its pass.
MOST_ROWS_ALIKE = 5_000_000
# Columns with a greater percentage of NULL are no part of that.
FEW_NULLS = 10

# The rows of a partition, or of the table: the least seen divided by it, to the most seen times it.
SIZES = 1.5

_KEY = re.compile(r"(^|_)(id|key|uuid|guid|code|iata|icao|isbn|sku|ean|vin|tailnum|faa|nr|no|number)$")
# What may lie in the future.
_AHEAD = re.compile(r"due|expir|valid|until|(^|_)to$|(^|_)end|plan|sched|deadline|target|forecast|renew|next")
# What the world itself bounds -> from, to.
_WORLD = (
    (re.compile(r"^(lat|latitude)$|_(lat|latitude)$"), -90, 90),
    (re.compile(r"^(lon|lng|long|longitude)$|_(lon|lng|longitude)$"), -180, 180),
    (re.compile(r"^month$|_month$"), 1, 12),
    (re.compile(r"^day_of_month$"), 1, 31),
    (re.compile(r"^hour$|_hour$"), 0, 24),
    (re.compile(r"^minute$|_minute$"), 0, 60),
)


def snake(name: str) -> str:
    """A column's name in small letters, with underscores where a word begins."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()


def like_a_key(name: str) -> bool:
    """Whether the name says that no value comes twice."""
    return _KEY.search(snake(name)) is not None


def may_lie_ahead(name: str) -> bool:
    """Whether the name speaks of what is to come."""
    return _AHEAD.search(snake(name)) is not None


def of_the_world(name: str) -> tuple[int, int] | None:
    """The bounds that a thing of this name has by nature."""
    return next(((least, most) for form, least, most in _WORLD if form.search(snake(name))), None)


# TABLE: columns whose values are never written into a contract, by their names and by their forms.
#
# What is classified is sensitive because somebody said so; here is what nobody has said yet.

# Whole words of a name.
_WORDS = frozenset(
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
# Words that are a person's together.
_PAIRS = ("first_name", "last_name", "full_name", "given_name", "family_name", "middle_name", "user_name",
          "customer_name", "person_name", "contact_name", "account_number", "account_holder", "credit_card",
          "api_key", "access_key", "private_key", "zip_code", "post_code", "postal_code")  # fmt: skip
SENSITIVE_FORMS = frozenset({"email", "ipv4", "ipv6"})
_LONG = re.compile(r"[A-Za-z0-9+/_=.-]{20,}")


def by_name(name: str) -> bool:
    """Whether a column of this name holds what is about a person, or opens a door."""
    words = snake(name)
    return not _WORDS.isdisjoint(words.split("_")) or any(pair in words for pair in _PAIRS)


def like_a_secret(value: str) -> bool:
    """Whether a text looks like a token: long, without a blank, of letters and digits."""
    return (
        _LONG.fullmatch(value) is not None
        and any(sign.isdigit() for sign in value)
        and any(sign.isalpha() for sign in value)
    )


# The outline that texts share, such as two capitals and a digit, as a pattern.

_RUN = re.compile(r"(.)\1*", re.DOTALL)
_CLASSES = {"A": "[A-Z]", "a": "[a-z]", "9": "[0-9]"}


def pattern_of(shape: str) -> str:
    """A shape as the pattern of a whole text; "" for one that says nothing, or holds other letters.

    In a shape `A`, `a` and `9` stand for a letter of ASCII or a digit, and every other sign for itself.
    """
    if not 0 < len(shape) <= LONGEST_SHAPE or not any(sign in _CLASSES for sign in shape):
        return ""
    if not all(32 <= ord(sign) < 127 for sign in shape) or "${" in shape:
        return ""
    parts = []
    for found in _RUN.finditer(shape):
        sign, count = found[1], len(found[0])
        plain = sign.isalnum() or sign in " _-:/,;@#=%&"
        inside = f"\\{sign}" if sign in "\\]^[&~-" else sign
        one = _CLASSES.get(sign) or (sign if plain else f"[{inside}]")
        parts.append(one if count == 1 else f"{one}{{{count}}}")
    return f"^{''.join(parts)}$"


# Round numbers a good way off those that were seen.

# Of decimals of Spark, and their sums.
_DIGITS = 80
# Nobody reads longer numbers digit by digit.
_LONGEST = Decimal(10) ** 38
Number = int | float | Decimal


def rounded(value: Number, up: bool, digits: int = 2) -> int | float:
    """The nearest number above (or below) with so many significant digits."""
    exact = Decimal(str(value))
    if not exact:
        return 0
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return plain(_to(exact, step, ROUND_CEILING if up else ROUND_FLOOR))


def room(least: Number, greatest: Number) -> tuple[int | float, int | float]:
    """The bounds of numbers between these: the range that was seen, once more on either side, and round.

    What is not negative, and is nearer to zero than that, is bounded by zero.
    """
    zero, low, high = Decimal(0), Decimal(str(least)), Decimal(str(greatest))
    with localcontext(prec=_DIGITS):
        spread = ((high - low) or abs(high) or Decimal(1)) * HEADROOM
        step = Decimal(1).scaleb(spread.adjusted())
        from_ = zero if 0 <= low <= spread else _to(low - spread, step, ROUND_FLOOR)
        to = zero if low < 0 and high <= 0 and -high <= spread else _to(high + spread, step, ROUND_CEILING)
        return plain(max(from_, zero) if low >= 0 else from_), plain(to)


def _to(value: Decimal, step: Decimal, way: str) -> Decimal:
    return (value / step).to_integral_value(way) * step


def plain(value: Decimal) -> int | float:
    """A number as a contract writes it: whole where it is whole."""
    if value == value.to_integral_value() and abs(value) < _LONGEST:
        return int(value)
    return max(-sys.float_info.max, min(float(value), sys.float_info.max))


def first_day(least: dt.date, greatest: dt.date) -> dt.date:
    """The first of January that lies at least a year, and all that was seen, before the least date."""
    back = max((greatest - least).days * HEADROOM, 366)
    begin = least.toordinal() - back
    return dt.date(dt.date.fromordinal(begin).year, 1, 1) if begin > 0 else dt.date(1, 1, 1)


def share(part: int, whole: int) -> float:
    """The percent that a part is, with a point as its last digit."""
    return round(100 * part / whole, 1) if whole else 0.0


# What was seen of a table, and how strong the evidence for a rule is.

# What was seen of a table: of each column in each partition, as values that no engine has made.

Bound = int | float | Decimal | dt.date | dt.datetime
"""The least or greatest value; instants are as the session's clock shows them, without a zone."""


@dataclass(frozen=True, slots=True)
class SeenValues:
    """One column in one partition. `least` and `greatest` are of numbers and times, the lengths of texts.

    None stands where there is no value, or none that a bound could be: NaN, an infinity, a year beyond 9999.
    """

    rows: int
    nulls: int = 0
    least: Bound | None = None
    greatest: Bound | None = None
    shortest: int | None = None
    longest: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column over all partitions that were looked at, the oldest first.

    `way` leads to its property. `different` is an estimate of how many values it has. `forms` are named
    formats that every value has, `shape` the one outline of all values (`A99` for a capital and two digits)
    or "", and `plain` says that all are printable ASCII. `values` are all of them, where they are few, with
    the number of partitions and rows that have each. `written` are the keys that the contract has for it,
    such as `required` and `logicalTypeOptions.minimum`, and `quality nullValues` for a rule of this metric.
    """

    way: Way
    name: str
    type: DataType
    seen: tuple[SeenValues, ...]
    different: int = 0
    forms: frozenset[str] = frozenset()
    shape: str = ""
    plain: bool = False
    values: Mapping[str, tuple[int, int]] | None = None
    written: frozenset[str] = frozenset()
    sensitive: bool = False
    partition: bool = False

    @property
    def rows(self) -> int:
        """The rows of all partitions."""
        return sum(one.rows for one in self.seen)

    @property
    def nulls(self) -> int:
        """The rows without a value."""
        return sum(one.nulls for one in self.seen)

    @property
    def filled(self) -> int:
        """The rows with a value."""
        return self.rows - self.nulls


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table: `sizes` are the rows of each partition, the oldest first; one of an unpartitioned table.

    `keys` are the names of its partition columns, `present` how many partitions there are in all. `pairs` are
    columns that together have about as many different values as there are rows, with that number.
    """

    way: Way
    name: str
    sizes: tuple[int, ...]
    columns: tuple[ColumnFacts, ...]
    keys: tuple[str, ...] = ()
    present: int = 1
    alike: int = 0
    pairs: tuple[tuple[str, ...], ...] = ()
    written: frozenset[str] = frozenset()
    now: dt.datetime | None = None

    @property
    def rows(self) -> int:
        """All rows that were looked at."""
        return sum(self.sizes)

    @property
    def partitioned(self) -> bool:
        """Whether there is more than one partition to compare."""
        return len(self.sizes) > 1 or bool(self.keys)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One rule: a key with its value of the mapping at `way`, or with an empty key an item of the list there.

    `says` is it in a few words, and `evidence` on what it stands; no value of a sensitive column is in them.
    """

    way: Way
    key: str
    value: object
    evidence: str
    says: str
    column: str = ""


# Strength of the evidence for a rule: an error, a warning where it is weak, or no rule.
#
# The statistics are simple enough to check by hand:
#
# - Rule of three: after `n` rows without an exception, up to `3 / n` of all rows may be exceptions (at 95
# %).
#   `ROWS_OF_AN_ERROR` rows bound that share at 3 %.
# - Rule of succession: after `n` partitions without an exception, the chance of one in the next partition
# is
#   about `1 / (n + 2)`. Rows of one partition resemble each other, so that the number of partitions counts
# and
#   not that of rows; `PARTITIONS_OF_AN_ERROR` partitions bring the chance to about 3 %.
# - Rare values announce rarer ones: a list is an error only if each of its values has at least
#   `SHARE_OF_A_VALUE` percent of the rows. Good-Turing's estimate (values seen once by rows) is zero
# for
#   every list, because values in fewer than `ROWS_OF_A_VALUE` rows rule a list out.
# - Leave one out: a bound that the most extreme partition would have broken, had the bound been learnt from
# the
#   other partitions, is a warning.
# - A column with a single distinct value shows no range, length or list, and is promised none.

OPTIONS = "logicalTypeOptions"
# schema, its position, properties, its position: a rule of a struct's field would count the struct's NULLs.
TOP = 4


def where(table: TableFacts) -> str:
    """How much history the evidence is: partitions, or the rows of the one snapshot."""
    if not table.partitioned:
        return f"in {table.rows:,} rows"
    count = len(table.sizes)
    return f"in {count:,} of {counted(count, 'partition')}"


def few_seen(column: ColumnFacts, table: TableFacts) -> str:
    """Return why the history is too short for an error, or "" if it is long enough."""
    if table.partitioned and len(table.sizes) < PARTITIONS_OF_AN_ERROR:
        return f"fewer than {PARTITIONS_OF_AN_ERROR} partitions"
    if column.filled < ROWS_OF_AN_ERROR:
        return f"fewer than {ROWS_OF_AN_ERROR} rows"
    return ""


def incomplete_list(column: ColumnFacts, table: TableFacts) -> str:
    """Return why the values seen may not be all values, or "" if nothing suggests more."""
    values = column.values or {}
    if len(values) < VALUES_OF_AN_ERROR:
        return f"fewer than {VALUES_OF_AN_ERROR} values"
    if 100 * min(rows for _, rows in values.values()) < SHARE_OF_A_VALUE * column.filled:
        return f"a value in less than {SHARE_OF_A_VALUE} % of the rows"
    return few_seen(column, table)


def is_constant(column: ColumnFacts) -> bool:
    """Return True if all rows with a value have the same one."""
    ends = {end for part in column.seen for end in (part.least, part.greatest) if end is not None}
    return column.different == 1 or len(ends) == 1 or len(column.values or ()) == 1


def unstable_ends(least: Sequence[Any], greatest: Sequence[Any]) -> tuple[str, str]:
    """Return for the lower and the upper bound why one partition alone moves it, or ""."""
    if len(least) < 2:
        return "", ""
    rest_low, rest_high = sorted(least)[1], sorted(greatest)[-2]
    low, _ = room(rest_low, max(greatest))
    _, high = room(min(least), rest_high)
    reason = "one partition lies far from the others"
    return reason if min(least) < low else "", reason if max(greatest) > high else ""


def with_reason(evidence: str, reason: str) -> str:
    """Return the evidence, followed by why it supports a warning only."""
    return f"{evidence}; a warning: {reason}" if reason else evidence


def warning_count(metric: str, arguments: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return a library rule that warns of any row that `metric` counts."""
    given = {"arguments": dict(arguments)} if arguments else {}
    return {"metric": metric, **given, "mustBe": 0, "severity": "warning"}


def warning_bound(check: str, operator: str, bound: int | float) -> dict[str, object]:
    """Return a rule of dq's own, `min` or `max`, that warns of a number beyond `bound`."""
    implementation = {"check": check, operator: bound}
    return {"type": "custom", "engine": "dq", "implementation": implementation, "severity": "warning"}


def warning_query(condition: str) -> dict[str, object]:
    """Return a rule that warns of rows that meet `condition`, in SQL of `{property}`."""
    query = f"SELECT count(*) FROM {{object}} WHERE {condition}"  # noqa: S608
    return {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}


# Bounds of numbers and times, proposed from the ends of each partition.

TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def of_numbers(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    """Yield the least and the greatest number, or warnings of them where the evidence is weak."""
    if column.type.name not in NUMBERS or column.partition or column.sensitive:
        return
    ends = _ends(column.seen)
    if ends is None or not all(isinstance(one, int | float | Decimal) for one in ends):
        return
    least, greatest = ends
    low, high = room(least, greatest)
    shown = f"smallest {_shown(least)} {where(table)}", f"largest {_shown(greatest)} {where(table)}"
    world = of_the_world(column.name)
    weak = few_seen(column, table)
    reasons = tuple(weak or reason for reason in unstable_ends(*_series(column.seen)))
    if world is not None and world[0] <= least and greatest <= world[1]:
        # Known without the data.
        (low, high), reasons = world, ("", "")
    elif is_constant(column):
        return
    down, up = _grows(column.seen)
    lower = not {f"{OPTIONS}.minimum", f"{OPTIONS}.exclusiveMinimum", "quality min"} & column.written
    upper = not {f"{OPTIONS}.maximum", f"{OPTIONS}.exclusiveMaximum", "quality max"} & column.written
    if lower and (not down or low == 0):
        yield from _bound(column, "minimum", low, shown[0], reasons[0])
    if upper and not up and not _counts_up(column):
        yield from _bound(column, "maximum", high, shown[1], reasons[1])


def _bound(column: ColumnFacts, key: str, bound: int | float, evidence: str, weak: str) -> Iterator[Proposal]:
    says, evidence = f"at {'least' if key == 'minimum' else 'most'} {bound}", with_reason(evidence, weak)
    if not weak:
        yield Proposal((*column.way, OPTIONS), key, bound, evidence, says)
    elif len(column.way) <= TOP:
        operator = "mustBeGreaterOrEqualTo" if key == "minimum" else "mustBeLessOrEqualTo"
        rule = warning_bound("min" if key == "minimum" else "max", operator, bound)
        yield Proposal((*column.way, "quality"), "", rule, evidence, says)


def _counts_up(column: ColumnFacts) -> bool:
    """Whether it is a number that is given to each row, and so has no greatest."""
    return (
        column.type.name in INTEGERS
        and column.different > 0.9 * column.filled
        and column.filled >= ROWS_OF_A_KEY
    )


def _shown(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{float(value):,.6g}"


def _ends(seen: tuple[SeenValues, ...]) -> tuple[Any, Any] | None:
    least, greatest = _series(seen)
    return (min(least), max(greatest)) if least and len(least) == len(greatest) else None


def _grows(seen: tuple[SeenValues, ...]) -> tuple[bool, bool]:
    """Whether the least and the greatest go on from partition to partition, down and up."""
    least, greatest = _series(seen)
    if len(greatest) < GROWTH:
        return False, False
    down = least[0] > least[-1] and all(a >= b for a, b in pairwise(least))
    up = greatest[0] < greatest[-1] and all(a <= b for a, b in pairwise(greatest))
    return down, up


def _series(seen: tuple[SeenValues, ...]) -> tuple[list[Any], list[Any]]:
    """The least and the greatest of each partition, all of the column's one type, which has an order."""
    return (
        [one.least for one in seen if one.least is not None],
        [one.greatest for one in seen if one.greatest is not None],
    )


def of_times(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    """Yield the first day or instant, and that none lies in the future."""
    if column.type.name not in TIMES or column.partition or column.sensitive:
        return
    ends = _ends(column.seen)
    if ends is None or is_constant(column):
        return
    earliest, latest = map(_day, ends)
    if not {f"{OPTIONS}.minimum", f"{OPTIONS}.exclusiveMinimum"} & column.written:
        day = first_day(earliest, latest)
        bound = f"{day.isoformat()}" + ("" if column.type.name == "date" else "T00:00:00Z")
        weak, says = few_seen(column, table), f"not before {day}"
        evidence = with_reason(f"the earliest {earliest} {where(table)}", weak)
        if not weak:
            yield Proposal((*column.way, OPTIONS), "minimum", bound, evidence, says)
        elif "quality sql" not in column.written and len(column.way) <= TOP:
            literal = f"{'DATE' if column.type.name == 'date' else 'TIMESTAMP'} '{bound}'"
            rule = warning_query(f"{{property}} < {literal}")
            yield Proposal((*column.way, "quality"), "", rule, evidence, says)
    if "quality sql" in column.written or len(column.way) > TOP:
        return
    if table.now is not None and latest <= table.now.date() and not may_lie_ahead(column.name):
        ahead = "current_date()" if column.type.name == "date" else "current_timestamp()"
        told = f"none lay ahead {where(table)}, the latest {latest}"
        # What stands in braces is put in by the check, quoted.
        query = f"SELECT count(*) FROM {{object}} WHERE {{property}} > {ahead}"  # noqa: S608
        rule = {"type": "sql", "query": query, "mustBe": 0}
        yield Proposal((*column.way, "quality"), "", rule, told, "not in the future")


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


# TABLE: what is proposed for a column, from what was seen of it.

_FORM_KEYS = ("enum", f"{OPTIONS}.pattern", f"{OPTIONS}.format", "quality invalidValues")

# Printable ASCII, as a pattern that Java and ECMA-262 read alike.
PLAIN = "^[ -~]*$"


def of_column(column: ColumnFacts, table: TableFacts) -> list[Proposal]:
    """What is proposed for a column, but for keys; nothing for few rows and for one without a value."""
    if table.rows < FEWEST_ROWS or column.filled == 0:
        return []
    return [replace(one, column=column.name) for rule in _RULES for one in rule(column, table)]


def _required(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if column.nulls or column.partition or closed & column.written:
        return
    # A column named like a key has the name as evidence too.
    weak = "" if like_a_key(column.name) else few_seen(column, table)
    evidence = with_reason(f"no NULL {where(table)}", weak)
    if not weak:
        yield Proposal(column.way, "required", True, evidence, "required")
    elif len(column.way) <= TOP:
        yield Proposal((*column.way, "quality"), "", warning_count("nullValues"), evidence, "no NULL")


def _null_share(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    closed = {"required", "primaryKey", "quality nullValues", "quality missingValues"}
    if not column.nulls or closed & column.written or len(column.way) > TOP:
        return
    shares = [share(one.nulls, one.rows) for one in column.seen if one.rows]
    least, most = min(shares), max(shares)
    bound = rounded(NULLS_FACTOR * most + NULLS_POINTS, True)
    if bound > NULLS_MOST:
        return
    told = f"{most:g} %" if least == most else f"{least:g} to {most:g} %"
    rule = {
        "metric": "nullValues",
        "mustBeLessOrEqualTo": bound,
        "unit": "percent",
        "severity": "warning",
    }
    yield Proposal((*column.way, "quality"), "", rule, f"{told} NULL {where(table)}", "share of NULLs")


def _enum(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if not _listed(column, table) or not column.written.isdisjoint(_FORM_KEYS):
        return
    values = column.values or {}
    rarest = min(rows for _, rows in values.values())
    number = f"{counted(len(values), 'value')} {where(table)}"
    listed = [{"value": value} for value in sorted(values)]
    evidence = f"{number}, the rarest in {counted(rarest, 'row')}"
    if table.partitioned:
        evidence += f" of {min(count for count, _ in values.values()):,} partitions"
    weak, says = incomplete_list(column, table), f"one of {len(values)} values"
    evidence = with_reason(evidence, weak)
    if not weak:
        yield Proposal(column.way, "enum", listed, evidence, says)
    elif len(column.way) <= TOP:
        rule = warning_count("invalidValues", {"validValues": sorted(values)})
        yield Proposal((*column.way, "quality"), "", rule, evidence, says)


def _listed(column: ColumnFacts, table: TableFacts) -> bool:
    """Whether all values are known: few, none of them rare, and none that should not be written down."""
    values = column.values
    if not values or column.sensitive or column.type.name not in TEXTS or column.partition:
        return False
    if column.filled < FEWEST_ROWS or is_constant(column):
        return False
    parts = PARTITIONS_OF_A_VALUE if len(table.sizes) > 1 else 1
    return len(values) <= MOST_VALUES and all(
        count >= parts and rows >= ROWS_OF_A_VALUE and _writable(value)
        for value, (count, rows) in values.items()
    )


def _writable(value: str) -> bool:
    return (
        0 < len(value) <= LONGEST_VALUE
        and value.isprintable()
        and "${" not in value
        and "{{" not in value
        and not like_a_secret(value)
    )


def _form(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if (
        column.type.name not in TEXTS
        or column.partition
        or column.different < VALUES_OF_A_FORM
        or _listed(column, table)
        or not column.written.isdisjoint(_FORM_KEYS)
    ):
        return
    name = next((one for one in FORMATS if one in column.forms), "")
    way = (*column.way, OPTIONS)
    if name:
        yield Proposal(way, "format", name, f"all values {where(table)}", f"format {name}")
        return
    pattern = pattern_of(column.shape)
    if pattern:
        told = f"the one form of about {rounded(column.different, False)} values {where(table)}"
        yield Proposal(way, "pattern", pattern, told, f"pattern {pattern}")


# The narrower goes first.
FORMATS = ("uuid", "date-time", "date", "email", "ipv4", "ipv6", "uri")


def _plain(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    if not column.plain or column.different < VALUES_OF_A_FORM or not _free(column, table):
        return
    rule = {
        "metric": "invalidValues",
        "arguments": {"pattern": PLAIN},
        "mustBe": 0,
        "severity": "warning",
    }
    told = f"no sign beyond ASCII {where(table)}"
    yield Proposal((*column.way, "quality"), "", rule, told, "printable ASCII")


def _free(column: ColumnFacts, table: TableFacts) -> bool:
    """Whether it holds texts that no list, format or pattern describes."""
    if column.type.name not in TEXTS or column.partition or not column.written.isdisjoint(_FORM_KEYS):
        return False
    return not _listed(column, table) and not any(_form(column, table))


def _lengths(column: ColumnFacts, table: TableFacts) -> Iterator[Proposal]:
    longest = max((one.longest for one in column.seen if one.longest is not None), default=None)
    shortest = min((one.shortest for one in column.seen if one.shortest is not None), default=None)
    closed = (f"{OPTIONS}.minLength", f"{OPTIONS}.maxLength")
    if longest is None or shortest is None or not column.written.isdisjoint(closed):
        return
    if not _free(column, table) or is_constant(column):
        return
    way = (*column.way, OPTIONS)
    if shortest == longest and column.different < VALUES_OF_A_FORM:
        # Few values may be as long by chance.
        weak = with_reason(f"all are as long {where(table)}", f"fewer than {VALUES_OF_A_FORM} values")
        if len(column.way) <= TOP and "quality sql" not in column.written:
            rule = warning_query(f"char_length({{property}}) <> {longest}")
            yield Proposal((*column.way, "quality"), "", rule, weak, f"{longest} long")
        return
    if shortest > 0:
        least = shortest if shortest == longest else 1
        said = "all are as long" if shortest == longest else f"the shortest {shortest}, none empty,"
        yield Proposal(way, "minLength", least, f"{said} {where(table)}", f"at least {least} long")
    if longest > 0:
        most = longest if shortest == longest else int(rounded(longest * LENGTHS, True))
        yield Proposal(way, "maxLength", most, f"the longest {longest}", f"at most {most} long")


_RULES: tuple[Callable[[ColumnFacts, TableFacts], Iterator[Proposal]], ...] = (
    _required,
    _enum,
    _form,
    _lengths,
    _plain,
    of_numbers,
    of_times,
    _null_share,
)


# What is proposed for a table: its keys, and how many rows it has.

_SIZES = {"A": 26, "a": 26, "9": 10}
KEYED = INTEGERS | TEXTS | {"date", "timestamp", "timestamp_ntz", "decimal", "boolean"}
TOGETHER = "together unique"
"""What is said of a key of several columns."""
COMPARED = KEYED | {"float", "double"}
# Estimates of how many values there are err by some percent.
NEARLY = 0.9


def proposals(table: TableFacts) -> list[Proposal]:
    """All that is proposed: of each column in the order of the contract, then of the table."""
    keys = {one.column: one for one in _unique(table)}
    made: list[Proposal] = []
    for column in table.columns:
        own = of_column(column, table)
        first = 1 if own and own[0].key == "required" else 0
        made += own[:first] + ([keys[column.name]] if column.name in keys else []) + own[first:]
    return [*made, *_together(table, bool(keys)), *_counts(table)]


def _unique(table: TableFacts) -> Iterator[Proposal]:
    for column in table.columns:
        if column.partition or column.nulls or {"unique", "primaryKey"} & column.written:
            continue
        if "quality duplicateValues" in column.written or not _nearly(column.different, table.rows):
            continue
        why = _why(column, table.rows)
        if why:
            evidence = f"no value twice in {table.rows:,} rows; {why}"
            yield Proposal(column.way, "unique", True, evidence, "unique", column.name)


def _why(column: ColumnFacts, rows: int) -> str:
    """Why it is no chance that no value comes twice; "" where it may be one."""
    if column.type.name not in INTEGERS | TEXTS:
        return ""
    if "uuid" in column.forms:
        return "they are made to be so"
    space = _space(column)
    twice = rows * rows / (2 * space) if space else 0
    if twice >= BY_CHANCE:
        return f"chance would make about {rounded(Decimal(twice), False):,}"
    if like_a_key(column.name) and rows >= ROWS_OF_A_KEY:
        return "it is named like a key"
    return ""


def _space(column: ColumnFacts) -> float:
    """How many values there could be, as far as it can be told: 0 where it cannot."""
    if column.type.name in TEXTS:
        shape = column.shape if len(column.shape) <= LONGEST_SHAPE else ""
        return math.prod(_SIZES.get(sign, 1) for sign in shape) if shape else 0
    least = [int(one.least) for one in column.seen if isinstance(one.least, int)]
    greatest = [int(one.greatest) for one in column.seen if isinstance(one.greatest, int)]
    return max(greatest) - min(least) + 1 if least and greatest else 0


def _nearly(different: int, rows: int) -> bool:
    return rows >= FEWEST_ROWS and different >= NEARLY * rows


def keyed(table: TableFacts) -> list[ColumnFacts]:
    """The columns that a key of several could have, those with the most values first."""
    found = [
        one
        for one in table.columns
        if one.type.name in KEYED and not one.nulls and one.different > 1 and len(one.way) == TOP
    ]
    return sorted(found, key=lambda one: -one.different)


def _together(table: TableFacts, single: bool) -> Iterator[Proposal]:
    """A key of several columns, else that no two rows are alike."""
    known = {"primaryKey", "unique"}
    if single or "quality duplicateValues" in table.written:
        return
    if any(known & column.written for column in table.columns) or table.rows < FEWEST_ROWS:
        return
    if table.pairs:
        names = table.pairs[0]
        sizes = {one.name: one.different for one in table.columns}
        twice = Decimal(table.rows) ** 2 / (2 * math.prod(sizes[name] for name in names))
        why = f"none twice in {table.rows:,} rows; chance would make about {rounded(twice, False):,}"
        yield _no_duplicates(table, names, why, "error")
        return
    # A row with NULL in the key repeats nothing, so that a column of many would excuse many rows.
    whole = tuple(
        one.name
        for one in table.columns
        if len(one.way) == TOP and one.type.name in COMPARED and share(one.nulls, one.rows) < FEW_NULLS
    )
    if whole and _nearly(table.alike, table.rows) and table.rows <= MOST_ROWS_ALIKE:
        yield _no_duplicates(table, whole, f"no two of {table.rows:,} rows are alike", "warning")


def _no_duplicates(table: TableFacts, names: tuple[str, ...], why: str, severity: str) -> Proposal:
    rule: dict[str, object] = {
        "metric": "duplicateValues",
        "arguments": {"properties": list(names)},
        "mustBe": 0,
    }
    if severity != "error":
        rule["severity"] = severity
    says = TOGETHER if severity == "error" else "no row twice"
    return Proposal((*table.way, "quality"), "", rule, why, says)


def _counts(table: TableFacts) -> Iterator[Proposal]:
    if "quality rowCount" in table.written or not table.sizes or min(table.sizes) == 0:
        return
    way = (*table.way, "quality")
    least, most = min(table.sizes), max(table.sizes)
    some: Mapping[str, object] = {"metric": "rowCount", "mustBeGreaterThan": 0}
    yield Proposal(way, "", some, f"never empty {where(table)}", "some rows")
    if least < FEWEST_ROWS:
        return
    low, high = int(rounded(least / SIZES, False)), int(rounded(most * SIZES, True))
    band: dict[str, object]
    if not table.partitioned:
        band = {"metric": "rowCount", "mustBeBetween": [low, high], "severity": "warning"}
        yield Proposal(way, "", band, f"{least:,} rows, once seen", f"{low:,} to {high:,} rows")
    elif table.keys and len(table.sizes) >= GROWTH:
        names = ", ".join(sql.name(name) for name in table.keys)
        # The names are quoted.
        grouped = f"SELECT {names} FROM {{object}} GROUP BY {names}"  # noqa: S608
        inner = f"{grouped} HAVING count(*) NOT BETWEEN {low} AND {high}"
        query = f"SELECT count(*) FROM ({inner}) AS odd"  # noqa: S608
        band = {"type": "sql", "query": query, "mustBe": 0, "severity": "warning"}
        seen = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        told = f"{seen} rows a partition {where(table)}"
        yield Proposal(way, "", band, told, f"{low:,} to {high:,} rows a partition")
