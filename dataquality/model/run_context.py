"""The context of a check run (time, partitions, history), thresholds of rules, and jars for Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from dq.contracts.model import Quality
from dq.contracts.schedule.calendar import HolidayCalendar
from dq.dataquality.model.metric import Group

# Input of a check besides the data: time of the run, partitions, and results of earlier runs.

Partition = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PastRowCount:
    """Row count of a clause in an earlier run, with its time and partition (`()`: the whole table)."""

    check: str
    clause: str
    measured_at: datetime
    rows: int
    partition: Partition = ()


@dataclass(frozen=True, slots=True)
class PastMeasurement:
    """The number that an earlier run measured for a clause, or one per group; otherwise as `PastRowCount`.

    `definition` is a hash of what was measured; a rule with another definition is not compared with it.
    `real` is a person's answer to an alarm of this run, None without one.
    """

    check: str
    clause: str
    definition: str
    measured_at: datetime
    number: float | None = None
    groups: tuple[tuple[Group, float], ...] = ()
    partition: Partition = ()
    real: bool | None = None


@dataclass(frozen=True, slots=True)
class PastComparison:
    """Result of an earlier comparison with another side; otherwise as `PastMeasurement`.

    `agrees` is None if the sides could not be compared, and for a delivery without any comparison, which is
    not `compared`.
    """

    clause: str
    definition: str
    measured_at: datetime
    agrees: bool | None
    partition: Partition = ()
    compared: bool = True


PastResult = PastRowCount | PastMeasurement | PastComparison


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of one run. `now` is an aware instant; without it, checks that depend on age are not
    evaluated.

    `history` is None if no history is available, which differs from an empty one. `calendar` is that of the
    object's deliveries. `arrivals` are the minutes from due to delivered by partition (`()`: of the newest
    delivery of a table without partitions); negative ones came early. `unusual_level` is the level of each
    test of the check `unusual`, by the accepted false alarms of all tables; None without a limit.
    """

    now: datetime | None = None
    partitions: tuple[Partition, ...] = ()
    history: tuple[PastResult, ...] | None = None
    calendar: HolidayCalendar | None = None
    arrivals: Mapping[Partition, float] = field(default_factory=dict)
    unusual_level: float | None = None


EMPTY_CONTEXT = RunContext()


# TABLE: the eight comparison operators of ODCS quality rules, with their meaning and wording.

_Holds = Callable[[Fraction, tuple[Fraction, ...]], bool]

# Name -> (test of a value against the operands, text). Both bounds of a range are inclusive: the standard's
# table says "element of".
OPERATORS: dict[str, tuple[_Holds, str]] = {
    "mustBe": (lambda value, to: value == to[0], "exactly {}"),
    "mustNotBe": (lambda value, to: value != to[0], "anything but {}"),
    "mustBeGreaterThan": (lambda value, to: value > to[0], "more than {}"),
    "mustBeGreaterOrEqualTo": (lambda value, to: value >= to[0], "at least {}"),
    "mustBeLessThan": (lambda value, to: value < to[0], "less than {}"),
    "mustBeLessOrEqualTo": (lambda value, to: value <= to[0], "at most {}"),
    "mustBeBetween": (lambda value, to: to[0] <= value <= to[1], "{} to {}"),
    "mustNotBeBetween": (lambda value, to: not to[0] <= value <= to[1], "outside {} to {}"),
}
_RANGES = ("mustBeBetween", "mustNotBeBetween")


@dataclass(frozen=True, slots=True)
class Threshold:
    """One operator with its exact operands, and their texts as in the contract."""

    operator: str
    operands: tuple[Fraction, ...]
    operand_texts: tuple[str, ...]

    def holds(self, value: Fraction | int) -> bool:
        """Return whether a measured value satisfies the threshold."""
        return OPERATORS[self.operator][0](Fraction(value), self.operands)

    def exceeded_by(self, value: Fraction | int) -> bool:
        """Return whether a violating count is too large, i.e. a smaller one would satisfy the threshold."""
        return any(self.holds(operand) for operand in (Fraction(0), *self.operands) if operand < value)

    def as_odcs(self) -> dict[str, object]:
        """Return the threshold as in an ODCS rule: `{"mustBe": 0}`, `{"mustBeBetween": [1, 5]}`."""
        numbers = [int(operand) if operand.denominator == 1 else float(operand) for operand in self.operands]
        return {self.operator: numbers if len(numbers) > 1 else numbers[0]}

    def __str__(self) -> str:
        return OPERATORS[self.operator][1].format(*self.operand_texts)


class Unusable(ValueError):
    """A clause cannot be evaluated as it is written; the message says why."""


def threshold(quality: Quality) -> Threshold:
    """Return the threshold of a quality rule. Raises Unusable if it has no or several operators, or no
    number.
    """
    return comparison(quality.operators())


def comparison(operators: Sequence[tuple[str, object]]) -> Threshold:
    """Return the threshold for the operators of a rule with their operands; raises as `threshold` does."""
    if not operators:
        raise Unusable("it has no operator, e.g. mustBe")
    if len(operators) > 1:
        raise Unusable(
            f"it has {len(operators)} operators ({', '.join(name for name, _ in operators)}); one is allowed"
        )
    operator, operand = operators[0]
    operands = operand if isinstance(operand, list) else [operand]
    expected_count = 2 if operator in _RANGES else 1
    if len(operands) != expected_count:
        raise Unusable(f"{operator} takes {expected_count} number(s), not {len(operands)}")
    for number in operands:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise Unusable(f"{operator} takes a number, not {number!r}")
        if number != number or abs(number) == float("inf"):
            raise Unusable(f"{operator} takes a finite number, not {number!r}")
    texts = tuple(_decimal_text(number) for number in operands if isinstance(number, int | float))
    exact = tuple(Fraction(text) for text in texts)
    if len(exact) > 1 and exact[0] > exact[1]:
        raise Unusable(f"{operator}: {texts[0]} is greater than {texts[1]}")
    return Threshold(operator, exact, texts)


def _decimal_text(value: int | float) -> str:
    """Return a number as in a contract: the shortest decimal of a float, without `.0` for integers."""
    is_integer = isinstance(value, int) or value.is_integer()
    return str(int(value)) if is_integer else repr(value)


# Jars (Maven coordinates) and settings for the formats that Spark does not include.

# By Spark release line and format; each version was built for that line.
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

# Settings that a session needs at its start. Iceberg's SQL extensions are only needed for writing, and those
# for Spark 3.5 break Delta's UPDATE and MERGE in the same session (Iceberg 1.10.1, Delta 3.3.2).
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
    """Return the release line of a Spark version, e.g. `4.0` for 4.0.2."""
    return ".".join(spark.split(".")[:2])


def coordinates(spark: str, formats: Collection[str]) -> tuple[str, ...]:
    """Return the Maven coordinates that these formats need with this Spark version, in the table's order.

    Empty for formats that Spark includes and for release lines that are not in the table.
    """
    return tuple(jar for name, jar in JARS.get(line(spark), {}).items() if name in formats)


def settings(spark: str, formats: Collection[str]) -> dict[str, str]:
    """Return the settings, including jars, that a session needs at its start to read these formats."""
    jars = coordinates(spark, formats)
    if not jars:
        return {}
    options: dict[str, str] = {PACKAGES: ",".join(jars)}
    for name, format_settings in _SETTINGS.items():
        options |= format_settings if name in formats else {}
    return options
