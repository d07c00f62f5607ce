"""What was seen of a table, how strong the evidence for a rule is, and what is held back."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

from dq.contracts.shared.outcome import counted
from dq.contracts.types import DataType
from dq.contracts.yaml.insertion import Way

# What is held back of proposals: how much must be seen, what is sensitive, numbers and outlines.

# TABLE: how much must be seen before something is promised, and how far from what was seen it stays.

# Fewer rows tell nothing.
FEWEST_ROWS = 20

# A list of values: at most so many, each in so many rows, and where there is history in so many partitions.
MOST_VALUES = 30
ROWS_OF_A_VALUE = 3
PARTITIONS_OF_A_VALUE = 2
LONGEST_VALUE = 60

# An error needs so many rows with a value, and so many partitions if there are any: see strength.py.
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
FORMS = frozenset({"email", "ipv4", "ipv6"})
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
#   `policy.ROWS_OF_AN_ERROR` rows bound that share at 3 %.
# - Rule of succession: after `n` partitions without an exception, the chance of one in the next partition
# is
#   about `1 / (n + 2)`. Rows of one partition resemble each other, so that the number of partitions counts
# and
#   not that of rows; `policy.PARTITIONS_OF_AN_ERROR` partitions bring the chance to about 3 %.
# - Rare values announce rarer ones: a list is an error only if each of its values has at least
#   `policy.SHARE_OF_A_VALUE` percent of the rows. Good-Turing's estimate (values seen once by rows) is zero
# for
#   every list, because values in fewer than `policy.ROWS_OF_A_VALUE` rows rule a list out.
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
