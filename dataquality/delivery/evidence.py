"""Evidence of cycles: receipts, markers, commits, events and files, in the contract's order of trust."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial

from sqlalchemy import Connection, and_, delete, insert, select, update

from dq.contracts.access.access_policy import is_remote
from dq.contracts.extension import EvidenceSource
from dq.contracts.outcome import LAKEHOUSE, DqError, ReadError, format_bytes, join_limited
from dq.contracts.slo import Cycle, Partition, Slo
from dq.dataquality.delivery.cycle import (
    DISAGREEMENT_TOLERANCE,
    FILE_SOURCES,
    CycleRecord,
    CycleWindow,
    DeliveryPlace,
    Evidence,
    ObjectTimes,
    Observation,
    PresenceResult,
    Receipts,
    SourceAnswer,
    StorageEvents,
    WatchTarget,
    cycle_window,
    disagreeing_claims,
    label,
)
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask, ProbeTimeout
from dq.dataquality.delivery.tables import table_commit, table_log
from dq.lake import delta, hudi, iceberg
from dq.lake.storage import Files, FileStat, UnreachableFiles, is_data_name, is_unfinished
from dq.lake.table_log import Commit, Pairs, PartitionAppend, Reader, TableLog

# Commits of tables with a log: the stored ones and new ones.
#
# Logs expire their oldest commits. Therefore commits are stored, and each is read once.

READERS: Mapping[str, Reader] = {"delta": delta.read, "iceberg": iceberg.read, "hudi": hudi.read}
# Readers of the partitions that have data now, or None if unknown. Hudi's timeline contains removals itself.
LIVE_READERS: Mapping[str, Callable[[Files, str], Collection[Pairs] | None]] = {
    "delta": delta.live_partitions,
    "iceberg": iceberg.live_partitions,
}

# Older commits are not relevant to any cycle that is still watched.
KEEP_COMMITS_FOR = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class KnownCommits:
    """Known commits of one table in order of time, complete from `since` on, or entirely complete if None."""

    commits: tuple[Commit, ...] = ()
    since: datetime | None = None


@dataclass(slots=True)
class CommitHistory:
    """Logs of tables in one tick, each read once. `write` stores new commits.

    Commits older than the `horizon` are not read from the log.
    """

    stored: Mapping[str, KnownCommits]
    now: datetime
    horizon: timedelta = KEEP_COMMITS_FOR
    _results: dict[str, KnownCommits | Exception] = field(default_factory=dict)
    _new: dict[str, tuple[Commit, ...]] = field(default_factory=dict)
    _undone: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _live: dict[str, Collection[Pairs] | None] = field(default_factory=dict)

    def commits_of(self, place: str, format: str, files: Files) -> KnownCommits:
        """Return the commits of the table at a path. Raises ReadError, or the error of its storage."""
        if place not in self._results:
            try:
                self._results[place] = self._read(place, format, files)
            except Exception as error:  # noqa: BLE001  # as with every probe; raised again for each caller
                self._results[place] = error
        result = self._results[place]
        if isinstance(result, Exception):
            raise result
        return result

    def _read(self, place: str, format: str, files: Files) -> KnownCommits:
        stored = self.stored.get(place)
        known_ids = {commit.ident for commit in stored.commits} if stored else set()
        log = READERS[format](files, place, known_ids, self.now - self.horizon)
        self._new[place], self._undone[place] = log.new_commits, log.rolled_back
        remaining = [
            commit for commit in (stored.commits if stored else ()) if commit.ident not in log.rolled_back
        ]
        commits = sorted(
            (*remaining, *log.new_commits), key=lambda commit: (commit.committed_at, commit.ident)
        )
        return KnownCommits(tuple(commits), _complete_since(stored, log))

    def live(self, place: str, format: str, files: Files) -> Collection[Pairs] | None:
        """Return the partitions of a table that have data now, or None if unknown, for any reason."""
        if place not in self._live:
            try:
                self._live[place] = LIVE_READERS[format](files, place) if format in LIVE_READERS else ()
            # as with every probe; an unreadable table is no evidence of a removal
            except Exception:  # noqa: BLE001
                self._live[place] = None
        return self._live[place]

    @property
    def has_news(self) -> bool:
        """True if there is anything to write."""
        return bool(list(self._changes()))

    def _changes(self) -> Iterator[tuple[str, KnownCommits, tuple[Commit, ...]]]:
        for place, new in self._new.items():
            current, stored = self._results[place], self.stored.get(place)
            if isinstance(current, KnownCommits) and (
                stored is None or new or self._undone[place] or stored.since != current.since
            ):
                yield place, current, new

    def write(self, tx: Connection) -> None:
        """Store new commits. Those that another watcher stored meanwhile are the same."""
        for place, current, new in self._changes():
            of_table = table_commit.c.place == place
            stored_ids = set(tx.scalars(select(table_commit.c.ident).where(of_table)))
            rows = [_row(place, commit) for commit in new if commit.ident not in stored_ids]
            if rows:
                tx.execute(insert(table_commit), rows)
            is_undone = table_commit.c.ident.in_(self._undone[place])
            tx.execute(delete(table_commit).where(and_(of_table, is_undone)))
            tx.execute(delete(table_commit).where(of_table, table_commit.c.at < self.now - KEEP_COMMITS_FOR))
            log = update(table_log).where(table_log.c.place == place).values(since=current.since)
            if tx.execute(log).rowcount == 0:
                tx.execute(insert(table_log).values(place=place, since=current.since))


def _complete_since(stored: KnownCommits | None, log: TableLog) -> datetime | None:
    """Return since when the commits are complete, or None for a log with all its commits.

    If stored commits and the log overlap, it is the stored instant, otherwise the beginning of the log.
    """
    if log.starts_at is None:
        return None
    listed_ids = set(log.commit_ids)
    overlap = stored is not None and any(commit.ident in listed_ids for commit in stored.commits)
    return stored.since if stored is not None and overlap else log.starts_at


def load_history(tx: Connection, places: set[str], now: datetime) -> CommitHistory:
    """Return the stored commits of the tables at these paths."""
    since = {row.place: row.since for row in tx.execute(select(table_log)) if row.place in places}
    commits = defaultdict(list)
    if since:
        rows = select(table_commit).order_by(table_commit.c.at, table_commit.c.ident)
        for row in tx.execute(rows):
            if row.place in since:
                brought = tuple(
                    PartitionAppend(tuple((name, value) for name, value in pairs), count)
                    for pairs, count in row.brought
                )
                took = tuple(tuple((name, value) for name, value in pairs) for pairs in row.took or ())
                commits[row.place].append(Commit(row.ident, row.at, brought, took))
    return CommitHistory(
        {
            place: KnownCommits(tuple(commits[place]), complete_since)
            for place, complete_since in since.items()
        },
        now,
    )


def _row(place: str, commit: Commit) -> dict[str, object]:
    brought = [[[list(pair) for pair in append.partition], append.rows] for append in commit.appends]
    took = [[list(pair) for pair in pairs] for pairs in commit.removed_from] or None
    return {
        "place": place,
        "ident": commit.ident,
        "at": commit.committed_at,
        "brought": brought,
        "took": took,
    }


# The commit that delivers a cycle: the first that added rows to its partition, or in its window.


def delivery_in_commits(
    slo: Slo,
    cycle: Cycle,
    partition: Partition,
    known_commits: KnownCommits,
    window: CycleWindow,
    live: Callable[[], Collection[Pairs] | None] = lambda: None,
    *,
    revoked: bool = False,
) -> Evidence | None:
    """Return the evidence of a table's commits for one partition of a cycle, or for an unpartitioned
    snapshot.

    None (nothing arrived) only if the commits since the previous cycle are complete. Deliveries removed by a
    later commit do not count: `live` returns the partitions that have data now, or None if unknown. If the
    cycle is `revoked` already, only deliveries after the removal count.
    """
    unclear_problem, delivery, is_removed = "", None, False
    for commit in known_commits.commits:
        if not partition and not window.contains(commit.committed_at):
            continue
        appends = [append for append in commit.appends if append.rows != 0 or slo.delivery.empty == "allowed"]
        # True, False, or None if the commit does not name all columns of the partition.
        matches = [_matches_partition(append, partition) for append in appends]
        if True in matches:
            counts = [append.rows for append, is_match in zip(appends, matches, strict=True) if is_match]
            rows = None if None in counts else sum(count for count in counts if count is not None)
            # Commits in the window of an unpartitioned table belong to this cycle.
            delivery = delivery or Evidence(
                "commit", commit.committed_at, rows=rows, names_cycle=not partition
            )
            is_removed = False
        elif any(
            _matches_partition(PartitionAppend(pairs, None), partition) is not False
            for pairs in commit.removed_from
        ):
            delivery, is_removed = (None if revoked else delivery), True
        elif None in matches and window.contains(commit.committed_at):
            unclear_problem = unclear_problem or _unclear_text(commit, partition)
    if delivery is not None:
        return None if is_removed and _is_gone(partition, live()) else delivery
    if unclear_problem:
        return Evidence("commit", readable=False, problem=unclear_problem)
    begins_at = window.previous_due_at or cycle.due_at
    if known_commits.since is not None and known_commits.since > begins_at and not revoked:
        problem = (
            f"the log of the table begins {known_commits.since:%Y-%m-%d %H:%M:%S}Z, "
            "and the delivery may be older"
        )
        return Evidence("commit", readable=False, problem=problem, settled=True)
    return None


def _is_gone(partition: Partition, live: Collection[Pairs] | None) -> bool:
    """True if nothing of a partition is left; False if unknown."""
    if live is None:
        return False
    return all(_matches_partition(PartitionAppend(pairs, None), partition) is False for pairs in live)


def _matches_partition(append: PartitionAppend, partition: Partition) -> bool | None:
    """True if rows were added to the partition, or None if the commit does not name all of its columns."""
    values = {name.lower(): value for name, value in append.partition}
    matches = [
        _same_value(values[column.lower()], value) if column.lower() in values else None
        for column, value in partition
    ]
    if False in matches:
        return False
    if None not in matches:
        return True
    # An empty commit has no partition.
    return False if append.rows == 0 else None


def _same_value(stored: str, expected: str) -> bool:
    # Paths may contain 05 for the number 5; logs contain numbers.
    return stored == expected or (
        stored.isdecimal() and expected.isdecimal() and int(stored) == int(expected)
    )


def _unclear_text(commit: Commit, partition: Partition) -> str:
    columns = ", ".join(column for column, _ in partition)
    return f"its commits do not name {columns}, so the table is not partitioned by it (commit {commit.ident})"


# Evidence of one cycle, in the contract's order of trust. The first source with an answer decides.
#
# O(1) for each cycle: the expected path is computed and probed, and only one partition is listed.

# A folder whose newest file is younger than this may still be written to.
STABLE_AFTER = timedelta(seconds=60)


def find_evidence(
    slo: Slo,
    cycle: Cycle,
    place: DeliveryPlace,
    files: Files,
    receipts: Receipts,
    events: StorageEvents,
    commit_evidence: Callable[[Partition], Evidence | None],
    now: datetime,
    window: CycleWindow,
) -> Evidence | None:
    """Return the deciding evidence of a cycle, with the claims of all sources and disagreements in its
    detail.

    None if every source was read and shows nothing. A source that cannot be read gives evidence with
    `readable=False`, unless another source has an answer. A cycle of several partitions has arrived when the
    last of them has. `commit_evidence` returns the evidence of a lakehouse table's commits for a partition.
    `window` is when an update without a partition value counts. If `events` show the delivery, its files are
    not probed.
    """
    source_names = probed_sources(slo, place)
    files_inside = cache(lambda partition: files.inside(partition_path(slo, partition, place)))
    files_below = cache(lambda: files.below(place.path.rstrip("/")))
    new_data: dict[EvidenceSource, Callable[[Partition], Evidence | None]] = {
        "receipt": lambda _: _new_receipt(slo, cycle, receipts, window),
        "marker": lambda _: _new_marker(files_below(), place.marker, window),
        "commit": lambda partition: _commit(slo, place, partition, commit_evidence),
        "event": lambda _: None,
        "file": lambda _: _new_file(files_below(), now, window),
    }
    sources: dict[EvidenceSource, Callable[[Partition], Evidence | None]] = (
        new_data
        if slo.expects_new_data
        else {
            "receipt": lambda partition: _receipt(slo, cycle, partition, receipts),
            # One listing answers for both.
            "marker": lambda partition: _marker(
                place,
                files_inside(partition)
                if "file" in source_names
                else _stat_marker(slo, partition, place, files),
            ),
            "commit": lambda partition: _commit(slo, place, partition, commit_evidence),
            "event": lambda partition: _event(slo, place, partition, events, now),
            "file": lambda partition: _file(files_inside(partition), now),
        }
    )
    read = cache(
        lambda name: _combine_partitions(
            [_read_source(name, sources[name], part) for part in cycle.partitions or ((),)]
        )
    )
    shown = read("event") if "event" in source_names else None
    if shown is not None and (shown.delivered_at is not None or shown.arriving is not None):
        source_names = [name for name in source_names if name not in FILE_SOURCES]
    answers = [answer for answer in map(read, source_names) if answer is not None]
    if not answers:
        return None
    # The first of the strongest answers: a complete answer of another source beats a partial one.
    deciding = max(answers, key=_weight)
    claims = tuple(
        SourceAnswer(answer.source, answer.delivered_at, answer.rows) for answer in answers if answer.readable
    )
    unread_problem = (
        next((answer.problem for answer in answers if not answer.readable), "") if deciding.readable else ""
    )
    disagreements = [
        f"the {claim.source} says {claim.delivered_at:%F %T}Z"
        for claim in disagreeing_claims(claims, deciding.source)
    ]
    detail = "; ".join(part for part in (deciding.detail, unread_problem, *disagreements) if part)
    return replace(deciding, detail=detail, claims=claims)


def _weight(evidence: Evidence) -> int:
    return 2 if evidence.delivered_at is not None else 0 if evidence.readable else 1


def _read_source(
    name: EvidenceSource, source: Callable[[Partition], Evidence | None], partition: Partition
) -> Evidence | None:
    try:
        return source(partition)
    except Exception as error:  # noqa: BLE001  # one guard per probe: no path and no storage may end a tick
        problem = error.message.rstrip(".") if isinstance(error, DqError) else type(error).__name__
        return Evidence(name, readable=False, problem=problem)


def _combine_partitions(partition_answers: Iterable[Evidence | None]) -> Evidence | None:
    """Combine the answers of one source for a cycle's partitions."""
    answers = list(partition_answers)
    unreadable = next((answer for answer in answers if answer is not None and not answer.readable), None)
    if unreadable is not None:
        return unreadable
    present = [answer for answer in answers if answer is not None]
    arrived = [(answer.delivered_at, answer) for answer in present if answer.delivered_at is not None]
    if not present:
        return None
    if len(arrived) < len(answers):
        unfinished = [answer for answer in present if answer.arriving is not None]
        counts = [f"{len(arrived)} of {len(answers)} partitions"] if len(answers) > 1 else []
        newest = max((answer.arriving for answer in unfinished if answer.arriving is not None), default=None)
        detail = "; ".join([*counts, *(answer.detail for answer in unfinished[:1])])
        return replace(present[0], delivered_at=None, rows=None, detail=detail, arriving=newest)
    _, latest = max(arrived, key=lambda pair: pair[0])
    rows = [answer.rows for _, answer in arrived if answer.rows is not None]
    return replace(latest, rows=sum(rows) if len(rows) == len(arrived) else None)


def _receipt(slo: Slo, cycle: Cycle, partition: Partition, receipts: Receipts) -> Evidence | None:
    by_cycle = receipts.get(f"due:{cycle.due_at.isoformat()}")
    receipt = by_cycle or receipts.get(label(partition))
    if receipt is None:
        return None
    detail = ""
    if receipt.server and all(receipt.server != server.server for server in slo.contract.servers):
        # The server may have been renamed or removed. The receipt counts, and the verdict mentions the
        # server.
        detail = f"the receipt names the server {receipt.server!r}, which the contract no longer has"
    return Evidence(
        "receipt", receipt.delivered_at, rows=receipt.rows, detail=detail, names_cycle=by_cycle is not None
    )


def _marker(place: DeliveryPlace, files_inside: Iterable[FileStat]) -> Evidence | None:
    marker_file = next((file for file in files_inside if file.name == place.marker), None)
    return Evidence("marker", marker_file.modified_at) if marker_file else None


def _stat_marker(slo: Slo, partition: Partition, place: DeliveryPlace, files: Files) -> list[FileStat]:
    marker_file = files.stat(f"{partition_path(slo, partition, place)}/{place.marker}")
    return [marker_file] if marker_file else []


def _commit(
    slo: Slo,
    place: DeliveryPlace,
    partition: Partition,
    commit_evidence: Callable[[Partition], Evidence | None],
) -> Evidence | None:
    if place.format in LAKEHOUSE:
        return commit_evidence(partition)
    if slo.delivery.evidence == ["commit"]:
        problem = f"{place.format} files have no commits; set other evidence, or the format of the table"
        return Evidence("commit", readable=False, problem=problem)
    return None


def probed_sources(slo: Slo, place: DeliveryPlace) -> list[EvidenceSource]:
    """Return the sources to probe. Files of a table with commits are covered by its commits."""
    declared = slo.delivery.evidence
    files_are_commits = place.format in LAKEHOUSE and "commit" in declared
    if files_are_commits and slo.expects_new_data:
        # Markers of any partition would need a listing of all files.
        return [source for source in declared if source not in FILE_SOURCES]
    return [source for source in declared if not (source == "file" and files_are_commits)]


def _file(files_inside: Iterable[FileStat], now: datetime) -> Evidence | None:
    data = [file for file in files_inside if is_data_name(file.name) and file.size > 0]
    if not data:
        return None
    return _if_stable("file", max(file.modified_at for file in data), now)


def _if_stable(source: EvidenceSource, newest: datetime, now: datetime) -> Evidence:
    """Return evidence of data by its newest time, which is not a delivery while it may still be written."""
    # A time far in the future comes from a wrong clock, and would never become stable.
    if abs(now - newest) >= STABLE_AFTER:
        return Evidence(source, newest)
    detail = f"data is still being written, {newest:%F %T}Z last"
    return Evidence(source, arriving=newest, detail=detail)


def _event(
    slo: Slo, place: DeliveryPlace, partition: Partition, events: StorageEvents, now: datetime
) -> Evidence | None:
    """Return what events say about the marker, or about data files if they are evidence themselves."""
    marker, data = (times.present() if times else None for times in _object_times(place, partition, events))
    has_files = "file" in slo.delivery.evidence
    if marker is not None and ("marker" in slo.delivery.evidence or not has_files):
        # Each update of a table without partitions writes the marker again.
        delivered_at = marker.first_at if partition else marker.newest_at
        return Evidence("event", delivered_at, names_cycle=bool(partition))
    # Files of a table with a log are no delivery without their commit.
    if data is not None and data.newest_at is not None and has_files and place.format not in LAKEHOUSE:
        return _if_stable("event", data.newest_at, now)
    return None


def _object_times(
    place: DeliveryPlace, partition: Partition, events: StorageEvents
) -> tuple[ObjectTimes | None, ObjectTimes | None]:
    """Return the times of a partition's marker and of its data."""
    try:
        name = label(place.layout.normalized(partition))
    except ValueError:
        # It has no folder in the layout.
        return None, None
    return events.get((name, True)), events.get((name, False))


# New data in any partition: the first of each source in the cycle's window.


def _new_receipt(slo: Slo, cycle: Cycle, receipts: Receipts, window: CycleWindow) -> Evidence | None:
    if f"due:{cycle.due_at.isoformat()}" in receipts:
        return _receipt(slo, cycle, (), receipts)
    times = [
        time
        for name, receipt in receipts.items()
        if not name.startswith("due:")
        for time in (receipt.delivered_at, *receipt.redelivered_at)
        if window.contains(time)
    ]
    return Evidence("receipt", min(times)) if times else None


def _new_marker(files_below: Iterable[FileStat], marker: str, window: CycleWindow) -> Evidence | None:
    times = [file.modified_at for file in files_below if file.name == marker]
    times = [time for time in times if window.contains(time)]
    return Evidence("marker", min(times)) if times else None


def _new_file(files_below: Iterable[FileStat], now: datetime, window: CycleWindow) -> Evidence | None:
    data = [file for file in files_below if is_data_name(file.name) and file.size > 0]
    settled = [file for file in data if abs(now - file.modified_at) >= STABLE_AFTER]
    times = [file.modified_at for file in settled if window.contains(file.modified_at)]
    if times:
        return Evidence("file", min(times))
    # A file that is still being written is arriving.
    return _file([file for file in data if file not in settled], now)


def partition_path(slo: Slo, partition: Partition, place: DeliveryPlace) -> str:
    """Return the folder of a partition: where it was published, else that of the layout below the table.

    Raises ReadError if the partition has no folder in the layout.
    """
    published_at = dict(place.folders).get(label(partition)) if place.folders else None
    if published_at is not None:
        return published_at
    order = {key.column: number for number, key in enumerate(slo.object.partition_keys())}
    keys = sorted(partition, key=lambda pair: order.get(pair[0], len(order)))
    try:
        folder = place.layout.folder_of(keys)
    except ValueError as error:
        raise ReadError(f"{error}.", "Correct the layout of the server, or the partition.") from error
    return f"{place.path.rstrip('/')}/{folder}" if keys else place.path.rstrip("/")


# Reachability: an unreachable location is no evidence of a missing delivery.

_PROBED_SOURCES = ("marker", "commit", "file")


@dataclass(frozen=True, slots=True)
class Reachability:
    """Reachability of locations in one tick, each probed once.

    `delivered` are the keys of SLOs that ever had a delivery.
    """

    delivered: Collection[tuple[str, str, str]]
    problems: dict[tuple[str, str, str], tuple[str, bool]] = field(default_factory=dict)
    roots: dict[str, bool] = field(default_factory=dict)

    def unreachable_evidence(self, slo: Slo, place: DeliveryPlace, files: Files) -> Evidence | None:
        """Return unreadable evidence if the location is unreachable, or None if it is reachable.

        A folder that is gone (a mount, a dangling link, a bucket) does not prove that a delivery is missing.
        Before its first delivery a table has no folder; then its lake root must exist.
        """
        source = next(
            (candidate for candidate in slo.delivery.evidence if candidate in _PROBED_SOURCES), None
        )
        if source is None:
            return None
        if slo.key not in self.problems:
            self.problems[slo.key] = self._problem(slo, place.path.rstrip("/"), files)
        problem, is_settled = self.problems[slo.key]
        return Evidence(source, readable=False, problem=problem, settled=is_settled) if problem else None

    def _problem(self, slo: Slo, path: str, files: Files) -> tuple[str, bool]:
        """Return the problem, or "", and whether the location is probably wrong instead of unreachable."""
        try:
            if files.holds(path):
                return "", False
            if slo.key in self.delivered:
                return f"{path} no longer exists, but had deliveries before", False
            if slo.is_implied:
                return f"{path} does not exist", True
            root = files.root(path)
            if root not in self.roots:
                self.roots[root] = files.root_exists(path)
            return "" if self.roots[root] else f"{root} does not exist", False
        except DqError as error:
            return error.message.rstrip("."), False
        except Exception as error:  # noqa: BLE001  # as with every probe: no storage may end a tick
            return type(error).__name__, False


# Re-checks of deliveries.


def is_untouched(place: DeliveryPlace, cycle: Cycle, events: StorageEvents) -> bool:
    """Return whether events show that nothing was removed from the partitions of a cycle."""
    pairs = [_object_times(place, partition, events) for partition in cycle.partitions or ((),)]
    return all(
        any(pair) and all(times is None or times.removed_at is None for times in pair) for pair in pairs
    )


def check_presence(
    slo: Slo, cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], files: Files
) -> PresenceResult:
    """Re-check a delivery shown by files."""
    try:
        if not files.holds(place.path.rstrip("/")):
            return PresenceResult()
        newest: list[datetime] = []
        for partition in cycle.partitions or ((),):
            path = partition_path(slo, partition, place)
            # Includes markers, which begin with an underscore.
            inside = [
                file
                for file in files.inside(path)
                if not file.name.startswith(".") and not is_unfinished(file.name)
            ]
            newest += [file.modified_at for file in inside]
            # Writers start with a temporary folder.
            if not inside and not files.folders(path):
                return PresenceResult(missing_part=label(partition) or "the table")
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return PresenceResult()
    known_times = [
        claim.delivered_at
        for claim in claims
        if claim.source in FILE_SOURCES and claim.delivered_at is not None
    ]
    newest_at = max(newest, default=None)
    return PresenceResult(
        rewritten_at=newest_at
        if newest_at is not None and known_times and newest_at > max(known_times) + DISAGREEMENT_TOLERANCE
        else None
    )


def check_presence_in_log(
    cycle: Cycle, commit_evidence: Callable[[Partition], Evidence | None]
) -> PresenceResult:
    """Re-check a delivery shown by commits.

    `commit_evidence` returns their current evidence for a partition.
    """
    try:
        for partition in cycle.partitions or ((),):
            delivery = commit_evidence(partition)
            if delivery is None:
                return PresenceResult(missing_part=label(partition) or "the table")
            if not delivery.readable:
                return PresenceResult()
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return PresenceResult()
    return PresenceResult()


# Description of the location of a missing delivery, for troubleshooting.

# Limits the storage requests for cycles of many partitions.
_MAX_DESCRIBED = 3
_MAX_NAMED = 3


def describe_location(
    slo: Slo, cycle: Cycle, place: DeliveryPlace, files: Files, commits: Callable[[], KnownCommits]
) -> tuple[str, str]:
    """Return where a delivery was searched, and a description of what is there, "" if unknown.

    Instants are in UTC. Never raises: the description is additional to a known verdict.
    """
    sources = probed_sources(slo, place)
    path = place.path.rstrip("/")
    if sources == ["receipt"]:
        return "the receipts of dq publish", "no receipt"
    try:
        if slo.expects_new_data and not (place.format in LAKEHOUSE and "commit" in sources):
            return path, _describe_newest(path, files)
        if place.format in LAKEHOUSE and "commit" in sources:
            return f"the commits of {path}", _describe_commits(path, files, commits)
        for partition in (cycle.partitions or ((),))[:_MAX_DESCRIBED]:
            location = partition_path(slo, partition, place)
            contents = _describe_folder(
                location, place.marker if "marker" in sources and "file" not in sources else "", files
            )
            if contents or not cycle.partitions:
                return location, contents
        return partition_path(slo, cycle.partitions[0], place), ""
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return path, ""


def _describe_commits(path: str, files: Files, commits: Callable[[], KnownCommits]) -> str:
    if not files.holds(path):
        return "no table"
    recent_commits = commits().commits
    if not recent_commits:
        return "no commits"
    last = recent_commits[-1]
    labels = [label(append.partition) for append in last.appends if append.partition]
    brought = f", with {join_limited(labels, _MAX_NAMED)}" if labels else ""
    return (
        f"no commit with this delivery; the last one is from {last.committed_at:%Y-%m-%d %H:%M} UTC{brought}"
    )


def _describe_newest(path: str, files: Files) -> str:
    data = [file for file in files.below(path) if is_data_name(file.name) and file.size > 0]
    if not data:
        return "no data" if files.holds(path) else "no such folder"
    return f"the newest file is from {max(file.modified_at for file in data):%Y-%m-%d %H:%M} UTC"


def _describe_folder(path: str, marker: str, files: Files) -> str:
    """Return a description of the folder's contents, "" if everything expected is there."""
    files_inside = files.inside(path)
    data = [file for file in files_inside if is_data_name(file.name) and file.size > 0]
    if data:
        missing_marker = (
            f", and no {marker}" if marker and marker not in {file.name for file in files_inside} else ""
        )
        newest = max(file.modified_at for file in data)
        files_ = f"{len(data)} file{'' if len(data) == 1 else 's'}"
        return f"{files_} ({_size(data)}), the newest from {newest:%Y-%m-%d %H:%M} UTC{missing_marker}"
    if files_inside:
        return f"no data, only {join_limited(sorted(file.name for file in files_inside), _MAX_NAMED)}"
    folders = sorted(files.folders(path))
    if folders:
        return f"no data, only the folder{'s' if len(folders) > 1 else ''} {', '.join(folders[:_MAX_NAMED])}"
    return "an empty folder" if files.holds(path) else "no such folder"


def _size(files: list[FileStat]) -> str:
    return format_bytes(sum(file.size for file in files))


# Observations of all open cycles.

ANY_TIME = CycleWindow(None, None, None)


@dataclass(frozen=True, slots=True)
class ObservationContext:
    """Shared inputs of all observations of a tick."""

    now: datetime
    roots: Mapping[tuple[str, str, str], str]
    receipts: Mapping[tuple[str, str, str], Receipts]
    events: Mapping[tuple[str, str, str], StorageEvents]
    history: CommitHistory
    reachability: Reachability

    def observe(
        self, probe_pool: ProbePool, cycles: Iterable[tuple[WatchTarget, CycleRecord]]
    ) -> list[Observation]:
        """Observe cycles concurrently. Those in unresponsive storage are unreadable unless they have a
        receipt.
        """
        places: dict[tuple[str, int, int], list[tuple[WatchTarget, CycleRecord]]] = {}
        for number, (target, record) in enumerate(cycles):
            # One task per location, so that its log is read once. In a bucket, a cycle may have hundreds of
            # partitions to list, and no log: one task per cycle.
            path, partitions = target.place.path.rstrip("/"), record.cycle.partitions
            has_task = partitions and is_remote(path) and target.place.format not in LAKEHOUSE
            place = (path, id(target.files), number if has_task else -1)
            places.setdefault(place, []).append((target, record))
        groups = list(places.values())
        tasks = [
            ProbeTask(self.roots[group[0][0].slo.key], group[0][0].files, self._observer(group))
            for group in groups
        ]
        answers = probe_pool.run(tasks)
        return [
            sighting
            for group, answer in zip(groups, answers, strict=True)
            for sighting in (
                self._observer(group)(UnreachableFiles(answer.problem))
                if isinstance(answer, ProbeTimeout)
                else answer
            )
        ]

    def _observer(
        self, group: Sequence[tuple[WatchTarget, CycleRecord]]
    ) -> Callable[[Files], list[Observation]]:
        return lambda files: [self._observe(target, record, files) for target, record in group]

    def _observe(self, target: WatchTarget, record: CycleRecord, files: Files) -> Observation:
        slo, cycle = target.slo, record.cycle
        # If a partition's path identifies the delivery, its time need not be matched to a window.
        has_partition_path = bool(cycle.partitions) and target.place.format not in LAKEHOUSE
        window, third_next_due_at = (ANY_TIME, None) if has_partition_path else cycle_window(slo, cycle)

        def commits() -> KnownCommits:
            return self.history.commits_of(target.place.path.rstrip("/"), target.place.format, files)

        def commit_evidence(partition: Partition) -> Evidence | None:
            place, format = target.place.path.rstrip("/"), target.place.format
            live = partial(self.history.live, place, format, files)
            return delivery_in_commits(slo, cycle, partition, commits(), window, live, revoked=record.revoked)

        events = self.events.get(slo.key, {})
        if record.status.delivered:
            in_log = target.place.format in LAKEHOUSE
            if record.source == "event" and is_untouched(target.place, cycle, events):
                return Observation(target, record, None, ANY_TIME, presence=PresenceResult())
            presence = (
                check_presence_in_log(cycle, commit_evidence)
                if in_log
                else check_presence(slo, cycle, target.place, record.claims, files)
            )
            return Observation(target, record, None, ANY_TIME, presence=presence)
        receipts = self.receipts.get(slo.key, {})
        if slo.server:
            # A receipt of a server that the contract no longer has could be of either copy.
            receipts = {name: receipt for name, receipt in receipts.items() if receipt.server == slo.server}
        if record.revoked and record.gone_since is not None:
            # Receipts from before the revocation do not count.
            later_receipts = {
                name: receipt.only_after(record.gone_since) for name, receipt in receipts.items()
            }
            receipts = {name: receipt for name, receipt in later_receipts.items() if receipt is not None}
            later_events = {name: times.present(record.gone_since) for name, times in events.items()}
            events = {name: times for name, times in later_events.items() if times is not None}
        evidence = find_evidence(
            slo, cycle, target.place, files, receipts, events, commit_evidence, self.now, window
        )
        # An early warning, too, needs a location that can be read.
        if evidence is None and (self.now > cycle.breach_at or slo.false_warnings is not None):
            evidence = self.reachability.unreachable_evidence(slo, target.place, files)
        is_absent = evidence is None or (evidence.readable and evidence.delivered_at is None)
        is_notified = record.notified or self.now < record.notify_at
        location_summary = (
            describe_location(slo, cycle, target.place, files, commits)
            if is_absent and not is_notified
            else ("", "")
        )
        return Observation(
            target, record, evidence, window, third_next_due_at, location_summary=location_summary
        )
