"""The evidence of cycles: receipts, markers, commits and files, in the contract's order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial

from sqlalchemy import Connection, and_, delete, insert, select, update

from dq.contracts.extension import EvidenceSource
from dq.contracts.outcome import LAKEHOUSE, DqError, first_of
from dq.contracts.slo import Cycle, Partition, Slo
from dq.dataquality.delivery.cycle import (
    APART,
    FILE_SOURCES,
    CycleWindow,
    DeliveryPlace,
    Evidence,
    Kept,
    Receipts,
    Remains,
    Sighting,
    SourceAnswer,
    Watched,
    disagreeing,
    label,
    window_of,
)
from dq.dataquality.delivery.probe_pool import Errand, Lookout, Silence
from dq.dataquality.delivery.tables import table_commit, table_log
from dq.lake import delta, hudi, iceberg
from dq.lake.storage import Files, Seen, SilentFiles, is_data_name, is_unfinished, partition_folder
from dq.lake.table_log import Brought, Commit, Pairs, Reader, TableLog

# The commits of tables with a log: those that are kept, and which of them is a cycle's delivery.

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


# Looks for the evidence of cycles: receipts, markers, commits and files, by the contract's order.

# Looks for the evidence of one cycle, in the contract's order of trust; the first that answers decides.
#
# Looking is O(1) for a cycle: the expected path is computed and probed, nothing is listed but one
# partition.

# A folder whose newest file is younger than this may still be written to.
STABLE_AFTER = timedelta(seconds=60)


def look(
    slo: Slo,
    cycle: Cycle,
    place: DeliveryPlace,
    files: Files,
    receipts: Receipts,
    commit: Callable[[Partition], Evidence | None],
    now: datetime,
) -> Evidence | None:
    """The deciding evidence of a cycle, with what the other sources say; those that disagree in its detail.

    None: every source was read and shows nothing. A source that cannot be read and is not outvoted by a
    stronger one gives evidence with `readable=False`. A cycle of several partitions has arrived when the
    last of them has. `commit` is what the commits of a table with a log say of a partition.
    """
    asked = asked_for(slo, place)
    inside = cache(lambda partition: files.inside(folder(slo, partition, place)))
    sources: dict[EvidenceSource, Callable[[Partition], Evidence | None]] = {
        "receipt": lambda partition: _receipt(slo, cycle, partition, receipts),
        # One listing answers for both.
        "marker": lambda partition: _marker(
            place, inside(partition) if "file" in asked else _alone(slo, partition, place, files)
        ),
        "commit": lambda partition: _commit(slo, place, partition, commit),
        "file": lambda partition: _file(inside(partition), now),
    }
    found = [
        one
        for name in asked
        for one in (_whole([_asked(name, sources[name], part) for part in cycle.partitions or ((),)]),)
        if one is not None
    ]
    if not found:
        return None
    # The first of those that say most: a partial answer is none where another source has a whole one.
    decided = max(found, key=_weight)
    claims = tuple(SourceAnswer(one.source, one.delivered_at, one.rows) for one in found if one.readable)
    unread = next((one.problem for one in found if not one.readable), "") if decided.readable else ""
    said = [f"the {one.source} says {one.delivered_at:%F %T}Z" for one in disagreeing(claims, decided.source)]
    detail = "; ".join(part for part in (decided.detail, unread, *said) if part)
    return replace(decided, detail=detail, claims=claims)


def _weight(one: Evidence) -> int:
    return 2 if one.delivered_at is not None else 0 if one.readable else 1


def _asked(
    name: EvidenceSource, source: Callable[[Partition], Evidence | None], partition: Partition
) -> Evidence | None:
    try:
        return source(partition)
    except Exception as error:  # noqa: BLE001  # one guard per probe: no path and no storage may end a tick
        problem = error.message.rstrip(".") if isinstance(error, DqError) else type(error).__name__
        return Evidence(name, readable=False, problem=problem)


def _whole(parts: Iterable[Evidence | None]) -> Evidence | None:
    """One answer from those of a set of partitions."""
    found = list(parts)
    unreadable = next((one for one in found if one is not None and not one.readable), None)
    if unreadable is not None:
        return unreadable
    there = [one for one in found if one is not None]
    arrived = [(one.delivered_at, one) for one in there if one.delivered_at is not None]
    if not there:
        return None
    if len(arrived) < len(found):
        coming = [one for one in there if one.arriving is not None]
        told = [f"{len(arrived)} of {len(found)} partitions"] if len(found) > 1 else []
        newest = max((one.arriving for one in coming if one.arriving is not None), default=None)
        detail = "; ".join([*told, *(one.detail for one in coming[:1])])
        return replace(there[0], delivered_at=None, rows=None, detail=detail, arriving=newest)
    _, last = max(arrived, key=lambda pair: pair[0])
    rows = [one.rows for _, one in arrived if one.rows is not None]
    return replace(last, rows=sum(rows) if len(rows) == len(arrived) else None)


def _receipt(slo: Slo, cycle: Cycle, partition: Partition, receipts: Receipts) -> Evidence | None:
    named = receipts.get(f"due:{cycle.due_at.isoformat()}")
    found = named or receipts.get(label(partition))
    if found is None:
        return None
    detail = ""
    if found.server and all(found.server != one.server for one in slo.contract.servers):
        # Renamed or removed, nobody can tell: it counts, and whoever reads the verdict sees by what.
        detail = f"that receipt is of the server {found.server!r}, which the contract has no more"
    return Evidence(
        "receipt", found.delivered_at, rows=found.rows, detail=detail, names_cycle=named is not None
    )


def _marker(place: DeliveryPlace, inside: Iterable[Seen]) -> Evidence | None:
    seen = next((one for one in inside if one.name == place.marker), None)
    return Evidence("marker", seen.modified_at) if seen else None


def _alone(slo: Slo, partition: Partition, place: DeliveryPlace, files: Files) -> list[Seen]:
    seen = files.stat(f"{folder(slo, partition, place)}/{place.marker}")
    return [seen] if seen else []


def _commit(
    slo: Slo, place: DeliveryPlace, partition: Partition, commit: Callable[[Partition], Evidence | None]
) -> Evidence | None:
    if place.format in LAKEHOUSE:
        return commit(partition)
    if slo.delivery.evidence == ["commit"]:
        problem = (
            f"files of {place.format} have no commits; name another evidence, or the format of the table"
        )
        return Evidence("commit", readable=False, problem=problem)
    return None


def asked_for(slo: Slo, place: DeliveryPlace) -> list[EvidenceSource]:
    """The sources that are looked at. Files of a table with commits count when a commit says so."""
    named = slo.delivery.evidence
    files_are_commits = place.format in LAKEHOUSE and "commit" in named
    return [one for one in named if not (one == "file" and files_are_commits)]


def _file(inside: Iterable[Seen], now: datetime) -> Evidence | None:
    data = [one for one in inside if is_data_name(one.name) and one.size > 0]
    if not data:
        return None
    newest = max(one.modified_at for one in data)
    # What is far in the future comes from a clock that is wrong, and settles never.
    if abs(now - newest) >= STABLE_AFTER:
        return Evidence("file", newest)
    detail = f"data is still being written, {newest:%F %T}Z last"
    return Evidence("file", arriving=newest, detail=detail)


def folder(slo: Slo, partition: Partition, place: DeliveryPlace) -> str:
    """The folder of a partition: where it was published, else below the table, its columns in their order."""
    own = dict(place.folders).get(label(partition)) if place.folders else None
    if own is not None:
        return own
    order = {key.column: number for number, key in enumerate(slo.object.partition_keys())}
    keys = sorted(partition, key=lambda pair: order.get(pair[0], len(order)))
    return f"{place.path.rstrip('/')}/{partition_folder(keys)}" if keys else place.path.rstrip("/")


# Whether a place can be seen: nothing can be missing from one that is not there.

_LOOKED_AT = ("marker", "commit", "file")


@dataclass(frozen=True, slots=True)
class Sight:
    """One tick's view of places, each looked at once.

    `delivered` are the SLOs that ever had a delivery, by key.
    """

    delivered: Collection[tuple[str, str, str]]
    known: dict[tuple[str, str, str], str] = field(default_factory=dict)
    roots: dict[str, bool] = field(default_factory=dict)

    def lost(self, slo: Slo, place: DeliveryPlace, files: Files) -> Evidence | None:
        """Unreadable evidence when nothing found there means nothing; None when the place can be seen.

        A folder that is gone (a mount, a link that leads nowhere, a bucket) holds no proof that a delivery is
        missing. Before the first delivery a table has no folder, so then its lake root must be there.
        """
        source = next((one for one in slo.delivery.evidence if one in _LOOKED_AT), None)
        if source is None:
            return None
        if slo.key not in self.known:
            self.known[slo.key] = self._problem(slo, place.path.rstrip("/"), files)
        problem = self.known[slo.key]
        return Evidence(source, readable=False, problem=problem) if problem else None

    def _problem(self, slo: Slo, path: str, files: Files) -> str:
        try:
            if files.holds(path):
                return ""
            if slo.key in self.delivered:
                return f"{path} is gone, where deliveries have been"
            root = files.root(path)
            if root not in self.roots:
                self.roots[root] = files.holds(root)
            return "" if self.roots[root] else f"{root} is not there"
        except DqError as error:
            return error.message.rstrip(".")
        except Exception as error:  # noqa: BLE001  # as with every probe: no storage may end a tick
            return type(error).__name__


# Whether what was delivered is still there.


def presence(
    slo: Slo, cycle: Cycle, place: DeliveryPlace, claims: tuple[SourceAnswer, ...], files: Files
) -> Remains:
    """What is left of a delivery that files showed."""
    try:
        if not files.holds(place.path.rstrip("/")):
            return Remains()
        newest: list[datetime] = []
        for partition in cycle.partitions or ((),):
            where = folder(slo, partition, place)
            # Markers count, too: they begin with an underscore.
            inside = [
                file
                for file in files.inside(where)
                if not file.name.startswith(".") and not is_unfinished(file.name)
            ]
            newest += [file.modified_at for file in inside]
            # A writer begins with a folder of its own.
            if not inside and not files.folders(where):
                return Remains(gone=label(partition) or "the table")
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return Remains()
    known = [
        one.delivered_at for one in claims if one.source in FILE_SOURCES and one.delivered_at is not None
    ]
    last = max(newest, default=None)
    return Remains(anew=last if last is not None and known and last > max(known) + APART else None)


def presence_in_log(cycle: Cycle, commit: Callable[[Partition], Evidence | None]) -> Remains:
    """What is left of a delivery that commits showed; `commit` is what they say of a partition now."""
    try:
        for partition in cycle.partitions or ((),):
            found = commit(partition)
            if found is None:
                return Remains(gone=label(partition) or "the table")
            if not found.readable:
                return Remains()
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return Remains()
    return Remains()


# What stands at the place of a delivery that did not come, for whoever has to find out why.

# Of a set of partitions, so many are looked at: each is a question to the storage.
_DESCRIBED = 3
_NAMED = 3


def describe_location(
    slo: Slo, cycle: Cycle, place: DeliveryPlace, files: Files, commits: Callable[[], SeenCommits]
) -> tuple[str, str]:
    """Where it was looked for, and what stands there; the second is empty where that cannot be told.

    Instants are in UTC. Nothing is raised: the verdict is known already, and this is a help only.
    """
    asked = asked_for(slo, place)
    path = place.path.rstrip("/")
    if asked == ["receipt"]:
        return "the receipts of dq publish", "no receipt"
    try:
        if place.format in LAKEHOUSE and "commit" in asked:
            return f"the commits of {path}", _committed(path, files, commits)
        for partition in (cycle.partitions or ((),))[:_DESCRIBED]:
            where = folder(slo, partition, place)
            seen = _seen(where, place.marker if "marker" in asked and "file" not in asked else "", files)
            if seen or not cycle.partitions:
                return where, seen
        return folder(slo, cycle.partitions[0], place), ""
    except Exception:  # noqa: BLE001  # as with every probe: no storage may end a tick
        return path, ""


def _committed(path: str, files: Files, commits: Callable[[], SeenCommits]) -> str:
    if not files.holds(path):
        return "no table"
    seen = commits().commits
    if not seen:
        return "no commit at all"
    last = seen[-1]
    parts = [label(one.partition) for one in last.brought if one.partition]
    brought = f", it brought {first_of(parts, _NAMED)}" if parts else ""
    return f"no commit that brought it; the last one is of {last.at:%Y-%m-%d %H:%M} UTC{brought}"


def _seen(where: str, marker: str, files: Files) -> str:
    """What stands in the folder; empty where all that was asked for does."""
    inside = files.inside(where)
    data = [one for one in inside if is_data_name(one.name) and one.size > 0]
    if data:
        lacks = f", and no {marker}" if marker and marker not in {one.name for one in inside} else ""
        newest = max(one.modified_at for one in data)
        files_ = f"{len(data)} file{'' if len(data) == 1 else 's'}"
        return f"{files_} ({_size(data)}), the newest of {newest:%Y-%m-%d %H:%M} UTC{lacks}"
    if inside:
        return f"no data, only {first_of(sorted(one.name for one in inside), _NAMED)}"
    folders = sorted(files.folders(where))
    if folders:
        return f"no data, only the folder{'s' if len(folders) > 1 else ''} {', '.join(folders[:_NAMED])}"
    return "an empty folder" if files.holds(where) else "no such folder"


def _size(files: list[Seen]) -> str:
    size, unit = float(sum(one.size for one in files)), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"


# What is to be seen of every open cycle, looked for side by side.

ANY_TIME = CycleWindow(None, None, None)


@dataclass(frozen=True, slots=True)
class View:
    """What all looks of a tick share."""

    now: datetime
    roots: Mapping[tuple[str, str, str], str]
    receipts: Mapping[tuple[str, str], Receipts]
    history: CommitHistory
    sight: Sight

    def all(self, lookout: Lookout, wanted: Iterable[tuple[Watched, Kept]]) -> list[Sighting]:
        """Looks at every cycle; one whose storage is silent cannot be read, where no receipt tells of it."""
        places: dict[tuple[str, int], list[tuple[Watched, Kept]]] = {}
        for one, kept in wanted:
            # One place is looked at by one at a time: its log is read once.
            place = (one.place.path.rstrip("/"), id(one.files))
            places.setdefault(place, []).append((one, kept))
        groups = list(places.values())
        errands = [
            Errand(self.roots[group[0][0].slo.key], group[0][0].files, self._of(group)) for group in groups
        ]
        answers = lookout.answers(errands)
        return [
            sighting
            for group, answer in zip(groups, answers, strict=True)
            for sighting in (
                self._of(group)(SilentFiles(answer.problem)) if isinstance(answer, Silence) else answer
            )
        ]

    def _of(self, group: Sequence[tuple[Watched, Kept]]) -> Callable[[Files], list[Sighting]]:
        return lambda files: [self._one(one, kept, files) for one, kept in group]

    def _one(self, one: Watched, kept: Kept, files: Files) -> Sighting:
        slo, cycle = one.slo, kept.cycle
        # Where a partition's path tells what came, no time does.
        placed = bool(cycle.partitions) and one.place.format not in LAKEHOUSE
        window, ahead = (ANY_TIME, None) if placed else window_of(slo, cycle)

        def log() -> SeenCommits:
            return self.history.of(one.place.path.rstrip("/"), one.place.format, files)

        def commit(partition: Partition) -> Evidence | None:
            place, format = one.place.path.rstrip("/"), one.place.format
            live = partial(self.history.live, place, format, files)
            return delivery_in_commits(slo, cycle, partition, log(), window, live, revoked=kept.revoked)

        if kept.status.good:
            in_log = one.place.format in LAKEHOUSE
            left = (
                presence_in_log(cycle, commit)
                if in_log
                else presence(slo, cycle, one.place, kept.claims, files)
            )
            return Sighting(one, kept, None, ANY_TIME, presence=left)
        receipts = self.receipts.get(slo.key[:2], {})
        if kept.revoked and kept.gone_since is not None:
            # Whoever said before that it came knew nothing of what became of it.
            later = {name: said.since(kept.gone_since) for name, said in receipts.items()}
            receipts = {name: said for name, said in later.items() if said is not None}
        evidence = look(slo, cycle, one.place, files, receipts, commit, self.now)
        if evidence is None and self.now > cycle.breach_at:
            evidence = self.sight.lost(slo, one.place, files)
        nothing = evidence is None or (evidence.readable and evidence.delivered_at is None)
        told = kept.told or self.now < kept.tell_at
        there = describe_location(slo, cycle, one.place, files, log) if nothing and not told else ("", "")
        return Sighting(one, kept, evidence, window, ahead, there=there)
