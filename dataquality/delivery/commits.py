"""The commits of tables with a log: those that are kept, and which of them is a cycle's delivery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, delete, insert, select, update

from dq.contracts.schedule import Cycle
from dq.contracts.schedule.cycle import Partition
from dq.contracts.slo import Slo
from dq.dataquality.delivery.cycle import CycleWindow, Evidence
from dq.dataquality.delivery.tables import table_commit, table_log
from dq.lake import delta, hudi, iceberg
from dq.lake.storage import Files
from dq.lake.table_log import Brought, Commit, Pairs, Reader, TableLog

# The commits of every table as far as they were seen: those that the store keeps, and what came since.
#
# A log forgets its oldest commits; what was seen of them once is kept, and each is read once.

READERS: Mapping[str, Reader] = {"delta": delta.read, "iceberg": iceberg.read, "hudi": hudi.read}
# Which partitions have data now, or None where that cannot be told. Hudi's timeline tells it itself.
LIVE: Mapping[str, Callable[[Files, str], Collection[Pairs] | None]] = {
    "delta": delta.live,
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


def load_history(tx: Connection, places: set[str], now: datetime) -> CommitHistory:
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


# Which commit is a cycle's delivery: the first that brought rows into its partition, or in its time.


def delivery_in_commits(
    slo: Slo,
    cycle: Cycle,
    partition: Partition,
    seen: SeenCommits,
    window: CycleWindow,
    live: Callable[[], Collection[Pairs] | None] = lambda: None,
    *,
    revoked: bool = False,
) -> Evidence | None:
    """What the commits of a table say of one partition of a cycle, or of the snapshot where it has none.

    Nothing found shows that nothing came only where no commit since the cycle before is lacking. What a later
    commit has taken away did not stay: `live` says which partitions have data now, None where that is not
    known. Of what is `revoked` already, only what came after it was taken away counts.
    """
    unclear, found, taken = "", None, False
    for commit in seen.commits:
        if not partition and not window.holds(commit.at):
            continue
        parts = [one for one in commit.brought if one.rows != 0 or slo.delivery.empty == "allowed"]
        met = [_meets(one, partition) for one in parts]
        if True in met:
            counts = [one.rows for one, meets in zip(parts, met, strict=True) if meets]
            rows = None if None in counts else sum(count for count in counts if count is not None)
            # In the window there is nothing to guess any more.
            found = found or Evidence("commit", commit.at, rows=rows, names_cycle=not partition)
            taken = False
        elif any(_meets(Brought(pairs, None), partition) is not False for pairs in commit.took):
            found, taken = (None if revoked else found), True
        elif None in met and window.holds(commit.at):
            unclear = unclear or _unclear(commit, partition)
    if found is not None:
        return None if taken and _is_gone(partition, live()) else found
    if unclear:
        return Evidence("commit", readable=False, problem=unclear)
    begins = window.before or cycle.due_at
    if seen.since is not None and seen.since > begins and not revoked:
        problem = f"the log of the table begins {seen.since:%Y-%m-%d %H:%M:%S}Z, and it may have come before"
        return Evidence("commit", readable=False, problem=problem, settled=True)
    return None


def _is_gone(partition: Partition, live: Collection[Pairs] | None) -> bool:
    """Whether nothing of a partition is left; what nobody can tell is there."""
    if live is None:
        return False
    return all(_meets(Brought(pairs, None), partition) is False for pairs in live)


def _meets(brought: Brought, partition: Partition) -> bool | None:
    """Whether rows came into the partition; None where a column of it is not named there."""
    there = {name.lower(): value for name, value in brought.partition}
    told = [
        _same(there[column.lower()], value) if column.lower() in there else None
        for column, value in partition
    ]
    if False in told:
        return False
    if None not in told:
        return True
    # An empty commit has no partition at all.
    return False if brought.rows == 0 else None


def _same(stored: str, wanted: str) -> bool:
    # A path may write the number 5 as 05; logs keep numbers.
    return stored == wanted or (stored.isdecimal() and wanted.isdecimal() and int(stored) == int(wanted))


def _unclear(commit: Commit, partition: Partition) -> str:
    columns = ", ".join(column for column, _ in partition)
    return (
        f"its commits do not name {columns}, by which it would have to be partitioned (commit {commit.ident})"
    )
