"""Coverage of discovered tables by contracts, as each run of `dq discover` counted it, in the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from fractions import Fraction

import sqlalchemy as sa

from dq.registry.tables import discovery_run
from dq.store.engine import Store

STALE_AFTER = timedelta(days=8)
"""Age from which a run's counts are unknown: a run each week, and a day."""

MAX_UNCOVERED = 100
"""Maximum number of stored tables without a contract."""

# The counts of older runs are deleted.
_MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class Coverage:
    """Tables of a domain or of an owner, and those with a contract in force or in draft. `name` may be ""."""

    name: str
    tables: int = 0
    covered: int = 0
    drafts: int = 0
    bytes: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        """Return the sum, with the name of the left side."""
        return Coverage(
            self.name,
            self.tables + other.tables,
            self.covered + other.covered,
            self.drafts + other.drafts,
            self.bytes + other.bytes,
        )

    @property
    def uncovered(self) -> int:
        """Number of tables without a contract."""
        return self.tables - self.covered - self.drafts

    @property
    def share(self) -> Fraction | None:
        """Share of the tables with a contract in force, or None without tables."""
        return Fraction(self.covered, self.tables) if self.tables else None

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "name": self.name or None,
            "tables": self.tables,
            "covered": self.covered,
            "drafts": self.drafts,
            "share": float(self.share) if self.share is not None else None,
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class CoverageShortfall:
    """Coverage of a domain that is below the minimum of the policy, a share from 0 to 1."""

    coverage: Coverage
    minimum: Fraction

    @property
    def missing(self) -> int:
        """Number of further tables that need a contract in force."""
        return -(-self.minimum * self.coverage.tables // 1) - self.coverage.covered

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {**self.coverage.as_dict(), "minimum": float(self.minimum), "missing": self.missing}


@dataclass(frozen=True, slots=True)
class UncoveredTable:
    """A table without a contract. `reads` is None if the run had no file of reads."""

    title: str
    domain: str
    owner: str
    format: str
    bytes: int
    reads: int | None


@dataclass(frozen=True, slots=True)
class DiscoveryRun:
    """Counts of a run at an instant. `errors` is the number of places that could not be read.

    `uncovered` are tables without a contract, the most read or largest first, at most MAX_UNCOVERED. Only the
    newest run has them; otherwise it is None.
    """

    at: datetime
    sources: tuple[str, ...]
    errors: int
    domains: tuple[Coverage, ...]
    owners: tuple[Coverage, ...]
    shortfalls: tuple[CoverageShortfall, ...]
    uncovered: tuple[UncoveredTable, ...] | None

    @property
    def total(self) -> Coverage:
        """Coverage of all tables."""
        return total_coverage("", self.domains)

    def is_stale(self, now: datetime) -> bool:
        """Return True if the counts say nothing about `now`."""
        return abs(now - self.at) > STALE_AFTER


def total_coverage(name: str, parts: Iterable[Coverage]) -> Coverage:
    """Return the sum of coverages, under a new name."""
    return sum(parts, Coverage(name))


def record_run(store: Store, run: DiscoveryRun) -> None:
    """Add a run, and delete what is only kept of the newest ones."""
    columns = discovery_run.c
    with store.write() as connection:
        connection.execute(sa.update(discovery_run).values(uncovered=None))
        connection.execute(
            sa.insert(discovery_run).values(
                at=run.at,
                sources=json.dumps(run.sources),
                errors=run.errors,
                domains=_to_text(run.domains),
                owners=_to_text(run.owners),
                shortfalls=json.dumps([
                    [asdict(shortfall.coverage), str(shortfall.minimum)] for shortfall in run.shortfalls
                ]),
                uncovered=_to_text((run.uncovered or ())[:MAX_UNCOVERED]),
            )
        )  # fmt: skip
        newest = sa.select(columns.number).order_by(columns.number.desc()).limit(_MAX_RUNS)
        oldest = min(connection.execute(newest).scalars())
        connection.execute(sa.delete(discovery_run).where(columns.number < oldest))


def last_run(tx: sa.Connection, now: datetime) -> DiscoveryRun | None:
    """Return the newest run at or before `now`, or None if there is none."""
    return next(iter(last_runs(tx, now, 1)), None)


def last_runs(tx: sa.Connection, now: datetime, limit: int) -> list[DiscoveryRun]:
    """Return at most `limit` of the newest runs at or before `now`, oldest first."""
    columns = discovery_run.c
    query = (
        sa.select(discovery_run)
        .where(columns.at <= now)
        .order_by(columns.at.desc(), columns.number.desc())
        .limit(limit)
    )
    return [_run(row) for row in reversed(tx.execute(query).all())]


def _run(row: sa.Row[tuple[object, ...]]) -> DiscoveryRun:
    return DiscoveryRun(
        row.at,
        tuple(json.loads(row.sources)),
        row.errors,
        _coverages(row.domains),
        _coverages(row.owners),
        tuple(
            CoverageShortfall(Coverage(**values), Fraction(minimum))
            for values, minimum in json.loads(row.shortfalls)
        ),
        None
        if row.uncovered is None
        else tuple(UncoveredTable(**values) for values in json.loads(row.uncovered)),
    )


def _to_text(values: Sequence[Coverage | UncoveredTable]) -> str:
    return json.dumps([asdict(value) for value in values])


def _coverages(text: str) -> tuple[Coverage, ...]:
    return tuple(Coverage(**values) for values in json.loads(text))
