"""Results of checks, and where they come from."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dq.contracts.outcome import Location, Severity


class Status(StrEnum):
    """Status of a check. ERROR: could not be measured. SKIPPED: there was nothing to measure."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"


VERDICT_PASS, VERDICT_FAIL, VERDICT_UNKNOWN = "passed", "failed", "unknown"
"""Verdicts of a run over all of its results."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Result for one group of rows; `key` are its values of the group columns, None for NULL.

    `value` is the measured number, or None if there is none or it may not be shown.
    """

    key: tuple[str | None, ...]
    status: Status
    observed: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class AgreementStreak:
    """The latest cycles in a row in which two sides agree.

    Attributes:
        cycles: Number of them.
        required: Number that the rule requires.
        disagreement: First partition that disagrees in the last `required` cycles that were compared, or ""
            if they agree; the day of the run, if the table has no partitions.
        gap: The cycle before them if it was not compared, or "".
    """

    cycles: int
    required: int
    disagreement: str = ""
    gap: str = ""

    @property
    def is_complete(self) -> bool:
        """True if the required number is reached."""
        return self.cycles >= self.required

    def __str__(self) -> str:
        if self.cycles <= self.required:
            return f"{self.cycles} of {self.required} cycles in a row"
        return f"{self.required} of {self.required} cycles ({self.cycles} in a row)"


GroupCounts = tuple[tuple[str, tuple[tuple[str | None, int], ...]], ...]
"""Numbers of rows that a producer published: for each column the count of each group, None for NULL."""


class AnsweredBy(StrEnum):
    """Source of a result: the schema, column statistics, cached results of unchanged files (only changed ones
    were read), or a scan of the rows."""

    SCHEMA = "schema"
    STATISTICS = "statistics"
    CACHE = "cache"
    SCAN = "scan"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one clause of a contract on one scope of data.

    Attributes:
        clause: Path inside the contract; with contract, object and scope its identity in one version of it.
        observed: Measured value as text.
        allowed: Allowed values as text.
        value: Measured number, if there is one.
        samples: Up to 20 keys of failing rows, with classified columns masked.
        group_columns: Columns of `groups`.
        groups: Results per group.
        fingerprint: Identifies the measured quantity if later runs compare with it, else "".
        rows: Number of rows that were evaluated, if known.
        failed_rows: Number of them that violate the clause, if known.
        threshold: Condition on `value` as ODCS writes it, e.g. `{"mustBeLessThan": 5}`.
        unit: Unit of `value` and `threshold`: `rows`, `percent`, or "" if it depends on the check.
        name: The clause by ids and names, which is stable when columns move, or "" if not set.
        answered_by: Source of the result, or None if there is no result or it is not recorded.
        agrees: For a comparison of two sides, True if they agree in the compared rows; else None.
        streak: Cycles in a row that agree, if a rule requires them and earlier cycles are known.
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
    group_columns: tuple[str, ...] = ()
    groups: tuple[GroupResult, ...] = ()
    fingerprint: str = ""
    rows: int | None = None
    failed_rows: int | None = None
    threshold: Mapping[str, builtins.object] = field(default_factory=dict)
    unit: str = ""
    # Derived from the clause and its contract, so it does not make results differ.
    name: str = field(default="", compare=False)
    # The result is the same for every source.
    answered_by: AnsweredBy | None = field(default=None, compare=False)
    agrees: bool | None = None
    streak: AgreementStreak | None = None
