"""What is held back of proposals: how much must be seen, what is sensitive, numbers and outlines."""

from __future__ import annotations

import datetime as dt
import re
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

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
