"""The context of a check: when it runs, what earlier runs measured, thresholds, and jars for Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from dq.contracts.model import Quality
from dq.dataquality.model.metric import Group

# What a check is told besides the data: when it runs, on which partitions, and what earlier runs found.

Partition = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Earlier:
    """How many rows an earlier run counted for a clause, when, and in which partition (`()`: the table)."""

    check: str
    clause: str
    at: datetime
    rows: int
    partition: Partition = ()


@dataclass(frozen=True, slots=True)
class EarlierMeasure:
    """The number that an earlier run measured for a clause, or one for each group; as `Earlier`.

    `of` tells what was measured: a rule that asks something else by now is not compared with it.
    """

    check: str
    clause: str
    of: str
    at: datetime
    number: float | None = None
    groups: tuple[tuple[Group, float], ...] = ()
    partition: Partition = ()


@dataclass(frozen=True, slots=True)
class Occasion:
    """The circumstances of one run. `now` is an aware instant; without it, nothing that ages is tested.

    `history` None: nobody handed one in, which is not the same as an empty one.
    """

    now: datetime | None = None
    partitions: tuple[Partition, ...] = ()
    history: tuple[Earlier | EarlierMeasure, ...] | None = None


NOWHEN = Occasion()


# TABLE: the eight comparisons of ODCS quality rules, what each means and how it is said.

_Holds = Callable[[Fraction, tuple[Fraction, ...]], bool]

# Name -> (test of a value against the operands, words). Both bounds of a range belong to it: the standard's
# table says "element of", and the words print them.
OPERATORS: dict[str, tuple[_Holds, str]] = {
    "mustBe": (lambda value, to: value == to[0], "exactly {}"),
    "mustNotBe": (lambda value, to: value != to[0], "anything but {}"),
    "mustBeGreaterThan": (lambda value, to: value > to[0], "more than {}"),
    "mustBeGreaterOrEqualTo": (lambda value, to: value >= to[0], "at least {}"),
    "mustBeLessThan": (lambda value, to: value < to[0], "less than {}"),
    "mustBeLessOrEqualTo": (lambda value, to: value <= to[0], "at most {}"),
    "mustBeBetween": (lambda value, to: to[0] <= value <= to[1], "from {} to {}, both included"),
    "mustNotBeBetween": (lambda value, to: not to[0] <= value <= to[1], "outside of {} to {}, both excluded"),
}
_RANGES = ("mustBeBetween", "mustNotBeBetween")


@dataclass(frozen=True, slots=True)
class Threshold:
    """One operator with its operands, exact as they are written."""

    operator: str
    operands: tuple[Fraction, ...]
    written: tuple[str, ...]

    def holds(self, value: Fraction | int) -> bool:
        """Whether a measured value keeps the promise."""
        return OPERATORS[self.operator][0](Fraction(value), self.operands)

    def exceeded_by(self, value: Fraction | int) -> bool:
        """Whether a measured count that breaks the promise is too large: a smaller one would keep it."""
        return any(self.holds(each) for each in (Fraction(0), *self.operands) if each < value)

    def as_odcs(self) -> dict[str, object]:
        """As a rule of ODCS writes it: `{"mustBe": 0}`, `{"mustBeBetween": [1, 5]}`."""
        numbers = [int(one) if one.denominator == 1 else float(one) for one in self.operands]
        return {self.operator: numbers if len(numbers) > 1 else numbers[0]}

    def __str__(self) -> str:
        return OPERATORS[self.operator][1].format(*self.written)


class Unusable(ValueError):
    """A clause cannot be tested as it is written; the message says why."""


def threshold(quality: Quality) -> Threshold:
    """The one comparison of a quality rule. Raises Unusable when there is none, several, or no number."""
    return comparison(quality.operators())


def comparison(written: Sequence[tuple[str, object]]) -> Threshold:
    """The one comparison among operators with their operands; as `threshold`."""
    if not written:
        raise Unusable("it has no operator such as mustBe")
    if len(written) > 1:
        raise Unusable(
            f"it has {len(written)} operators ({', '.join(one for one, _ in written)}); one is allowed"
        )
    operator, operand = written[0]
    operands = operand if isinstance(operand, list) else [operand]
    wanted = 2 if operator in _RANGES else 1
    if len(operands) != wanted:
        raise Unusable(f"{operator} takes {wanted} number(s), not {len(operands)}")
    for one in operands:
        if isinstance(one, bool) or not isinstance(one, int | float):
            raise Unusable(f"{operator} takes a number, not {one!r}")
        if one != one or abs(one) == float("inf"):
            raise Unusable(f"{operator} takes a finite number, not {one!r}")
    shown = tuple(_shown(one) for one in operands if isinstance(one, int | float))
    exact = tuple(Fraction(one) for one in shown)
    if len(exact) > 1 and exact[0] > exact[1]:
        raise Unusable(f"{operator}: {shown[0]} is greater than {shown[1]}")
    return Threshold(operator, exact, shown)


def _shown(value: int | float) -> str:
    """As the contract has it: the shortest decimal of a float, and no `.0` on whole numbers."""
    whole = isinstance(value, int) or value.is_integer()
    return str(int(value)) if whole else repr(value)


# What Spark needs to read the formats that it does not bring itself: jars by Maven coordinates, settings.

# By Spark's line and format. Each is a version that was made for this line.
JARS: Mapping[str, Mapping[str, str]] = {
    "4.0": {
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
        "delta": "io.delta:delta-spark_2.13:4.0.0",
        "hudi": "org.apache.hudi:hudi-spark4.0-bundle_2.13:1.1.1",
        "avro": "org.apache.spark:spark-avro_2.13:4.0.2",
    },
    "3.5": {
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.1",
        "delta": "io.delta:delta-spark_2.12:3.3.2",
        "hudi": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",
        "avro": "org.apache.spark:spark-avro_2.12:3.5.7",
    },
}

# What a session must be started with to read. Iceberg's SQL extensions are for writing, and those for Spark
# 3.5 break Delta's UPDATE and MERGE in the same session (Iceberg 1.10.1, Delta 3.3.2).
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "hudi": {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    },
}

PACKAGES = "spark.jars.packages"


def line(spark: str) -> str:
    """The line of a Spark version: `4.0` of 4.0.2."""
    return ".".join(spark.split(".")[:2])


def coordinates(spark: str, formats: Collection[str]) -> tuple[str, ...]:
    """The Maven coordinates that these formats need with this version of Spark, in the table's order.

    Formats that Spark brings itself need none, and a line of Spark that is not in the table has none.
    """
    return tuple(jar for name, jar in JARS.get(line(spark), {}).items() if name in formats)


def settings(spark: str, formats: Collection[str]) -> dict[str, str]:
    """The settings, the jars among them, with which a session that reads these formats must start."""
    jars = coordinates(spark, formats)
    if not jars:
        return {}
    found: dict[str, str] = {PACKAGES: ",".join(jars)}
    for name, wanted in _SETTINGS.items():
        found |= wanted if name in formats else {}
    return found
