"""Where something stands, what was found there, what is wrong with a value, and how a check ended."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

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
