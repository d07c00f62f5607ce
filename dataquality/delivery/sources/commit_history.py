"""The commits of every table as far as they were seen: those that the store keeps, and what came since.

A log forgets its oldest commits; what was seen of them once is kept, and each is read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, delete, insert, select, update

from dq.dataquality.delivery.sources.tables import table_commit, table_log
from dq.lake import delta, hudi, iceberg
from dq.lake import delta as delta_live
from dq.lake.commits import Brought, Commit, Pairs, Reader, TableLog
from dq.lake.storage import Files

READERS: Mapping[str, Reader] = {"delta": delta.read, "iceberg": iceberg.read, "hudi": hudi.read}
# Which partitions have data now, or None where that cannot be told. Hudi's timeline tells it itself.
LIVE: Mapping[str, Callable[[Files, str], Collection[Pairs] | None]] = {
    "delta": delta_live.live,
    "iceberg": iceberg.live,
}

# What came long before any cycle that is still looked at decides nothing.
KEPT_FOR = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class SeenCommits:
    """The commits of one table by their time; none since `since` is lacking, and None: none at all."""

    commits: tuple[Commit, ...] = ()
    since: datetime | None = None


@dataclass(slots=True)
class CommitHistory:
    """One tick's view of the tables' logs, each read once; `write` keeps what was new."""

    kept: Mapping[str, SeenCommits]
    now: datetime
    _seen: dict[str, SeenCommits | Exception] = field(default_factory=dict)
    _new: dict[str, tuple[Commit, ...]] = field(default_factory=dict)
    _undone: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _live: dict[str, Collection[Pairs] | None] = field(default_factory=dict)

    def of(self, place: str, format: str, files: Files) -> SeenCommits:
        """The commits of the table at a place. Raises Unreadable, or what its storage raises."""
        if place not in self._seen:
            try:
                self._seen[place] = self._read(place, format, files)
            except Exception as error:  # noqa: BLE001  # as with every probe; each that asks gets it
                self._seen[place] = error
        found = self._seen[place]
        if isinstance(found, Exception):
            raise found
        return found

    def _read(self, place: str, format: str, files: Files) -> SeenCommits:
        before = self.kept.get(place)
        known = {one.ident for one in before.commits} if before else set()
        log = READERS[format](files, place, known, self.now - KEPT_FOR)
        self._new[place], self._undone[place] = log.new, log.undone
        left = [one for one in (before.commits if before else ()) if one.ident not in log.undone]
        commits = sorted((*left, *log.new), key=lambda one: (one.at, one.ident))
        return SeenCommits(tuple(commits), _since(before, log))

    def live(self, place: str, format: str, files: Files) -> Collection[Pairs] | None:
        """The partitions of a table that have data now; None where nobody can tell, whatever the reason."""
        if place not in self._live:
            try:
                self._live[place] = LIVE[format](files, place) if format in LIVE else ()
            except Exception:  # noqa: BLE001  # as with every probe; what cannot be read takes nothing away
                self._live[place] = None
        return self._live[place]

    @property
    def has_news(self) -> bool:
        """Whether there is anything to write."""
        return bool(list(self._news()))

    def _news(self) -> Iterator[tuple[str, SeenCommits, tuple[Commit, ...]]]:
        for place, new in self._new.items():
            found, before = self._seen[place], self.kept.get(place)
            if isinstance(found, SeenCommits) and (
                before is None or new or self._undone[place] or before.since != found.since
            ):
                yield place, found, new

    def write(self, tx: Connection) -> None:
        """Keeps the new commits; what another watcher has kept meanwhile is the same."""
        for place, found, new in self._news():
            here = table_commit.c.place == place
            there = set(tx.scalars(select(table_commit.c.ident).where(here)))
            rows = [_row(place, one) for one in new if one.ident not in there]
            if rows:
                tx.execute(insert(table_commit), rows)
            gone = table_commit.c.ident.in_(self._undone[place])
            tx.execute(delete(table_commit).where(and_(here, gone)))
            tx.execute(delete(table_commit).where(here, table_commit.c.at < self.now - KEPT_FOR))
            log = update(table_log).where(table_log.c.place == place).values(since=found.since)
            if tx.execute(log).rowcount == 0:
                tx.execute(insert(table_log).values(place=place, since=found.since))


def _since(before: SeenCommits | None, log: TableLog) -> datetime | None:
    """From when on no commit is lacking: since ever for a whole log, or since the kept ones where these and
    the log's overlap, else since the log begins."""
    if log.begins is None:
        return None
    held = set(log.held)
    overlap = before is not None and any(one.ident in held for one in before.commits)
    return before.since if before is not None and overlap else log.begins


def load(tx: Connection, places: set[str], now: datetime) -> CommitHistory:
    """What the store keeps of the tables at these places."""
    since = {row.place: row.since for row in tx.execute(select(table_log)) if row.place in places}
    commits = defaultdict(list)
    if since:
        rows = select(table_commit).order_by(table_commit.c.at, table_commit.c.ident)
        for row in tx.execute(rows):
            if row.place in since:
                brought = tuple(
                    Brought(tuple((name, value) for name, value in pairs), count)
                    for pairs, count in row.brought
                )
                took = tuple(tuple((name, value) for name, value in pairs) for pairs in row.took or ())
                commits[row.place].append(Commit(row.ident, row.at, brought, took))
    return CommitHistory({place: SeenCommits(tuple(commits[place]), at) for place, at in since.items()}, now)


def _row(place: str, commit: Commit) -> dict[str, object]:
    brought = [[[list(pair) for pair in one.partition], one.rows] for one in commit.brought]
    took = [[list(pair) for pair in pairs] for pairs in commit.took] or None
    return {"place": place, "ident": commit.ident, "at": commit.at, "brought": brought, "took": took}
