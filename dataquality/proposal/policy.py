"""TABLE: how much must be seen before something is promised, and how far from what was seen it stays."""

from __future__ import annotations

import re

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
