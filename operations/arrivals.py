"""Arrivals of an object's data in the past, by the evidence that the watcher reads."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, TypeVar, cast

from dq.contracts.extension import Delivery
from dq.contracts.incident import CycleStatus
from dq.contracts.model import Contract, SchemaObject, SlaProperty
from dq.contracts.outcome import LAKEHOUSE, DqError, ReadError, Severity
from dq.contracts.schedule.clock import DstNote, Schedule, parse
from dq.contracts.slo import Cycle, Partition, Slo
from dq.dataquality.delivery import cycle_store, evidence, notify
from dq.dataquality.delivery.cycle import (
    CycleRecord,
    Observation,
    Receipts,
    StorageEvents,
    WatchTarget,
    label,
    partition_from_label,
)
from dq.dataquality.delivery.evidence import CommitHistory, ObservationContext, Reachability
from dq.dataquality.delivery.pattern import Arrival
from dq.dataquality.delivery.probe_pool import ProbePool, ProbeTask, ProbeTimeout
from dq.lake.storage import Files, FileStat, Storages, is_data_name
from dq.operations.data_places import resolve_links, resolve_locations, with_folders
from dq.operations.runtime.context import RuntimeContext
from dq.store.engine import Store, temporary_store

T = TypeVar("T")

LAST = 400
"""Number of newest partitions or updates whose arrivals are read: a year of days, with clock changes."""


@dataclass(frozen=True, slots=True)
class PastReader:
    """Reader of the evidence of an SLO's cycles at `now`, as of a tick of the watcher."""

    target: WatchTarget
    now: datetime
    probe_pool: ProbePool
    receipts: Receipts
    events: StorageEvents
    history: CommitHistory
    reachability: Reachability

    def observe(self, records: Sequence[CycleRecord]) -> list[Observation]:
        """Observe cycles of the SLO. Unreadable evidence is in the observation."""
        key = self.target.slo.key
        view = ObservationContext(
            self.now,
            {key: notify.storage_root(self.target)},
            {key: self.receipts},
            {key: self.events},
            self.history,
            self.reachability,
        )
        return view.observe(self.probe_pool, [(self.target, record) for record in records])


class _ListedOnce:
    """Files whose listings of a whole table are kept, since many cycles of the past need the same one."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._below: dict[str, list[FileStat]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def below(self, path: str) -> list[FileStat]:
        """Return the files in a folder and its subfolders."""
        if path not in self._below:
            self._below[path] = self._files.below(path)
        return self._below[path]


def open_reader(
    context: RuntimeContext,
    store: Store,
    slo: Slo,
    server: str | None,
    now: datetime,
    commits_since: timedelta = evidence.KEEP_COMMITS_FOR,
) -> PastReader:
    """Return the reader of an SLO's evidence. Raises ReadError if its location cannot be determined."""
    probe_pool = ProbePool(context.settings.storage_seconds)
    reach = context.reach_by(partial(resolve_links, probe_pool))
    ready, refused = resolve_locations(
        [slo], server, reach, Storages(reach, probe_pool.seconds).of, probe_pool
    )
    if not ready:
        raise ReadError(
            f"{slo.contract.id}: cannot access its data:",
            "Fix this first.",
            [str(finding) for finding in refused],
        )
    [target] = with_folders(store, ready)
    target = replace(target, files=cast("Files", _ListedOnce(target.files)))
    with store.read() as tx:
        excluded_servers = {slo.key: target.place.other_servers}
        receipts = cycle_store.receipts_by_slo(tx, excluded_servers)[slo.key]
        events = cycle_store.storage_events_by_slo(tx, excluded_servers, now)[slo.key]
        reachability = Reachability(cycle_store.ever_delivered(tx))
        history = evidence.load_history(tx, {target.place.path.rstrip("/")}, now)
    history = replace(history, horizon=commits_since)
    return PastReader(target, now, probe_pool, receipts, events, history, reachability)


def existing_store(context: RuntimeContext) -> AbstractContextManager[Store]:
    """Open the state store, or an empty temporary one if there is none: reading the past writes no files."""
    return closing(context.store()) if context.has_store() else temporary_store()


def record_of(cycle: Cycle) -> CycleRecord:
    """Return a cycle without a row in the store."""
    return CycleRecord(0, cycle, CycleStatus.SCHEDULED, "", None, None, notified=True)


# Arrivals of an object, with or without delivery terms in its contract.


@dataclass(frozen=True, slots=True)
class PartitionForm:
    """Names of partitions after times: a format for each column of a time, and the values of others.

    `unit` is the smallest unit of the times: `hour`, `day` or `month`.
    """

    formats: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]
    unit: str

    def templates(self, lags: Sequence[int]) -> dict[str, str | list[str]] | None:
        """Return the partition templates of a delivery, or None if no template can express them."""
        if len(lags) > 1 and len(self.formats) > 1:
            return None
        suffix = {"hour": "h", "day": "d", "month": "mo"}[self.unit]
        due = [
            "due" if lag == 0 else f"due - {lag}{suffix}" if lag > 0 else f"due + {-lag}{suffix}"
            for lag in lags
        ]
        templates: dict[str, str | list[str]] = {}
        for column, form in self.formats.items():
            texts = [f"{{{text}:{form}}}" for text in due]
            templates[column] = texts[0] if len(texts) == 1 else texts
        for column, values in self.values.items():
            escaped = [value.replace("{", "{{").replace("}", "}}") for value in values]
            templates[column] = escaped[0] if len(escaped) == 1 else escaped
        return templates


@dataclass(frozen=True, slots=True)
class PastArrivals:
    """Arrivals of an object, oldest first, and the naming of its partitions, None if not after times.

    `source` is the evidence that most of them are known by. `unreadable` is the number of partitions whose
    arrival cannot be read, with the first `problem`.
    """

    arrivals: tuple[Arrival, ...]
    form: PartitionForm | None
    source: str
    is_partitioned: bool = True
    unreadable: int = 0
    problem: str = ""


def past_arrivals(
    context: RuntimeContext,
    store: Store,
    contract: Contract,
    schema_object: SchemaObject,
    server: str | None,
    now: datetime,
    last: int = LAST,
    registered: Mapping[str, datetime] | None = None,
) -> PastArrivals:
    """Return the newest arrivals of an object.

    A partition has arrived when the watcher would say so, or earlier if a stored delivery says so: files may
    have been rewritten since. `registered` are times by partition that replace both. Without partitions, each
    update is an arrival.

    Raises ReadError for a location that cannot be read.
    """
    slo = _object_slo(contract, schema_object)
    reader = open_reader(context, store, slo, server, now, timedelta(days=2 * last))
    with store.read() as tx:
        stored = [
            record
            for record in cycle_store.all_cycles(tx, (contract.key, schema_object.name))
            if record.delivered_at is not None
        ]
    if not schema_object.partition_keys():
        return _updates(reader, stored, last)
    partitions = _partitions(reader, stored)
    form = partition_form(partitions)
    if form is not None:
        stamps = {partition: stamp for partition in partitions if (stamp := stamp_of(form, partition))}
        partitions = sorted(stamps, key=lambda partition: stamps[partition])[-last * _per_stamp(form) :]
    return _partition_arrivals(reader, partitions, form, stored, registered or {}, last)


def _per_stamp(form: PartitionForm) -> int:
    return len(list(product(*form.values.values())))


_SCHEDULE = parse("0 0 * * *")


def _object_slo(contract: Contract, schema_object: SchemaObject) -> Slo:
    """Return terms by which arrivals of any object can be observed: all evidence, empty deliveries too."""
    assert isinstance(_SCHEDULE, Schedule)
    sla = SlaProperty.model_construct(place=contract.place, property="frequency", value=None)
    terms = Delivery.model_construct(place=schema_object.place, empty="allowed")
    return Slo(
        contract=contract,
        object=schema_object,
        sla=sla,
        delivery=terms,
        id="",
        schedule=_SCHEDULE,
        grace=timedelta(0),
        objective=Fraction(1),
        window=timedelta(days=90),
        give_up_after=None,
        severity=Severity.ERROR,
        partition={},
    )


def _read(reader: PastReader, probe: Callable[[Files], T]) -> T:
    """Return what a probe reads from the storage. Raises ReadError if it fails or does not answer in time."""
    path = reader.target.place.path

    def guarded(files: Files) -> T | ReadError:
        try:
            return probe(files)
        except DqError as error:
            return ReadError(error.message, error.hint)
        except Exception as error:  # noqa: BLE001  # as with every probe: a storage may raise anything
            return ReadError(f"{path} cannot be read ({type(error).__name__}).", "Check the location.")

    root = notify.storage_root(reader.target)
    [answer] = reader.probe_pool.run([ProbeTask(root, reader.target.files, guarded)])
    if isinstance(answer, ProbeTimeout):
        raise ReadError(f"{path}: {answer.problem}.", "Check the storage, or raise storage_seconds.")
    if isinstance(answer, ReadError):
        raise answer
    return answer


# Updates of a table without partitions.


def _updates(reader: PastReader, stored: Sequence[CycleRecord], last: int) -> PastArrivals:
    """Return the updates by the first source that shows at least half as many as any other."""
    place, receipts = reader.target.place, set(reader.receipts.values())
    path = place.path.rstrip("/")
    times: dict[str, set[datetime]] = {
        "receipt": {time for receipt in receipts for time in (receipt.delivered_at, *receipt.redelivered_at)},
        "stored delivery": {record.delivered_at for record in stored if record.delivered_at is not None},
    }
    if place.format in LAKEHOUSE:
        history = _read(reader, lambda files: reader.history.commits_of(path, place.format, files))
        times["commit"] = {
            commit.committed_at
            for commit in history.commits
            if any(append.rows != 0 for append in commit.appends)
        }
    else:
        below = _read(reader, lambda files: files.below(path))
        times["file"] = {file.modified_at for file in below if is_data_name(file.name) and file.size > 0}
    largest = max(map(len, times.values()))
    source = next(name for name, instants in times.items() if 2 * len(instants) >= largest)
    newest = sorted(instant for instant in times[source] if instant <= reader.now)[-last:]
    return PastArrivals(tuple(map(Arrival, newest)), None, source if newest else "", is_partitioned=False)


# Partitions, and the times that they are named after.

_FORMATS = {
    r"\d{4}-\d\d-\d\d": ("%Y-%m-%d", "day"),
    r"\d{8}": ("%Y%m%d", "day"),
    r"\d{4}-\d\d": ("%Y-%m", "month"),
    r"\d{6}": ("%Y%m", "month"),
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d": ("%Y-%m-%d %H:%M:%S", "hour"),
    r"\d{4}-\d\d-\d\d-\d\d": ("%Y-%m-%d-%H", "hour"),
    r"\d{10}": ("%Y%m%d%H", "hour"),
}
# Columns of a part of a time, by the unit that it adds.
_PARTS = {
    "year": ("%Y", ("year", "yyyy", "yr", "y")),
    "month": ("%m", ("month", "mm", "mon", "m")),
    "day": ("%d", ("day", "dd", "d")),
    "hour": ("%H", ("hour", "hh", "hr", "h")),
}
_UNITS = tuple(_PARTS)
_MATCHING_SHARE = 0.9
# Combinations of other columns per time, e.g. regions.
_MAX_VALUES = 50


def partition_form(partitions: Collection[Partition]) -> PartitionForm | None:
    """Return the naming of partitions after times, or None if it is not after times, or not regular."""
    texts: dict[str, set[str]] = defaultdict(set)
    for partition in partitions:
        for column, value in partition:
            texts[column].add(value)
    formats: dict[str, str] = {}
    unit = ""
    for column, values in texts.items():
        full_format = _whole_format(values)
        if full_format is not None and not unit:
            formats[column], unit = full_format
    parts = {
        name: column
        for name, (_, names) in _PARTS.items()
        for column in texts
        if column.lower() in names and column not in formats
    }
    for position, name in enumerate(_UNITS):
        follows = not unit or _UNITS.index(unit) == position - 1
        form = _part_format(name, texts[parts[name]]) if name in parts and follows else None
        if form is None or (not unit and name != "year"):
            continue
        formats[parts[name]], unit = form, name
    if unit not in ("hour", "day", "month"):
        return None
    other_columns = sorted(column for column in texts if column not in formats)
    form_of_times = PartitionForm(formats, {}, unit)
    combinations: dict[datetime, set[tuple[str, ...]]] = defaultdict(set)
    for partition in partitions:
        values_by_column = dict(partition)
        if not set(texts) <= set(values_by_column):
            return None
        stamp = stamp_of(form_of_times, partition)
        if stamp is not None:
            combinations[stamp].add(tuple(values_by_column[column] for column in other_columns))
    usual, count = Counter(map(frozenset, combinations.values())).most_common(1)[0]
    columns = {column: tuple(sorted({key[at] for key in usual})) for at, column in enumerate(other_columns)}
    is_regular = count >= 0.8 * len(combinations) and len(usual) <= _MAX_VALUES
    if not is_regular or set(product(*columns.values())) != set(usual):
        return None
    return replace(form_of_times, values=columns)


def _whole_format(values: Collection[str]) -> tuple[str, str] | None:
    for pattern, (form, unit) in _FORMATS.items():
        matching = [value for value in values if re.fullmatch(pattern, value, re.ASCII)]
        if matching:
            form = form.replace(" ", "T") if "T" in matching[0] else form
        # A partition of NULL, or a test, is not named after a time.
        if sum(_parsed(value, form) is not None for value in matching) >= _MATCHING_SHARE * len(values):
            return form, unit
    return None


def _part_format(name: str, values: Collection[str]) -> str | None:
    form = _PARTS[name][0]
    pattern = r"\d{4}" if name == "year" else r"\d{1,2}"
    numbers = [value for value in values if re.fullmatch(pattern, value, re.ASCII)]
    if not numbers or len(numbers) < _MATCHING_SHARE * len(values):
        return None
    if name == "year" or all(len(value) == 2 for value in numbers):
        return form
    # As Spark names the folders of integer columns.
    return f"%-{form[1]}" if all(value == str(int(value)) for value in numbers) else None


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)  # noqa: DTZ007 - civil
    except ValueError:
        return None


def stamp_of(form: PartitionForm, partition: Partition) -> datetime | None:
    """Return the civil time that a partition is named after, naive, or None if it is named otherwise."""
    values = dict(partition)
    text = " ".join(values[column] for column in form.formats)
    return _parsed(text, " ".join(form.formats.values()).replace("%-", "%"))


def _partitions(reader: PastReader, stored: Sequence[CycleRecord]) -> list[Partition]:
    """Return the partitions of receipts, events, stored deliveries, and of the table itself."""
    place, slo = reader.target.place, reader.target.slo
    path = place.path.rstrip("/")
    keys = slo.object.partition_keys()
    columns = {key.column.lower() for key in keys}
    partitions = {partition_from_label(name) for name in reader.receipts if not name.startswith("due:")}
    partitions |= {partition_from_label(name) for name, _ in reader.events}
    partitions |= {partition for record in stored for partition in record.cycle.partitions}
    if place.format in LAKEHOUSE:
        history = _read(reader, lambda files: reader.history.commits_of(path, place.format, files))
        partitions |= {append.partition for commit in history.commits for append in commit.appends}
    else:
        depth = place.layout.depth or len(keys)
        folders = _read(reader, lambda files: _folders(files, path, depth))
        partitions |= {values for name in folders if (values := place.layout.partition_of(name))}
    names = {key.column.lower(): key.column for key in keys}
    by_label = {
        label(named): named
        for partition in partitions
        if {column.lower() for column, _ in partition} == columns
        for named in [tuple((names[column.lower()], value) for column, value in partition)]
    }
    return list(by_label.values())


def _folders(files: Files, path: str, depth: int) -> list[str]:
    level = [""]
    for _ in range(depth):
        level = [
            f"{parent}/{name}".lstrip("/")
            for parent in level
            for name in files.folders(f"{path}/{parent}".rstrip("/"))
            if is_data_name(name)
        ]
    return level


def _partition_arrivals(
    reader: PastReader,
    partitions: Sequence[Partition],
    form: PartitionForm | None,
    stored: Sequence[CycleRecord],
    registered: Mapping[str, datetime],
    last: int,
) -> PastArrivals:
    observations = reader.observe([_record(reader, partition) for partition in partitions])
    recorded: dict[str, datetime] = {}
    for record in stored:
        for partition in record.cycle.partitions:
            assert record.delivered_at is not None
            name = label(partition)
            recorded[name] = min(record.delivered_at, recorded.get(name, record.delivered_at))
    times: dict[datetime, list[datetime]] = defaultdict(list)
    undated: list[datetime] = []
    sources: Counter[str] = Counter()
    problems: list[str] = []
    for partition, observation in zip(partitions, observations, strict=True):
        own_evidence = observation.evidence
        registered_at = registered.get(label(partition))
        instants = (
            [registered_at]
            if registered_at is not None
            else [
                instant
                for instant in (
                    own_evidence.delivered_at if own_evidence else None,
                    recorded.get(label(partition)),
                )
                if instant is not None and instant <= reader.now
            ]
        )
        if not instants:
            problems += (
                [own_evidence.problem] if own_evidence is not None and not own_evidence.readable else []
            )
            continue
        arrived_at = min(instants)
        sources[
            "catalog"
            if registered_at is not None
            else "stored delivery"
            if own_evidence is None or arrived_at != own_evidence.delivered_at
            else own_evidence.source
        ] += 1
        stamp = stamp_of(form, partition) if form is not None else None
        if stamp is None:
            undated.append(arrived_at)
        else:
            times[stamp].append(arrived_at)
    expected = _per_stamp(form) if form is not None else 1
    arrivals = [
        Arrival(max(instants), stamp) for stamp, instants in times.items() if len(instants) >= expected
    ]
    arrivals += map(Arrival, sorted(undated)[-last:])
    [(source, _)] = sources.most_common(1) or [("", 0)]
    arrivals.sort(key=lambda arrival: arrival.at)
    problem = problems[0] if problems else ""
    return PastArrivals(tuple(arrivals), form, source, unreadable=len(problems), problem=problem)


def _record(reader: PastReader, partition: Partition) -> CycleRecord:
    contract, object_name, slo = reader.target.slo.key
    now = reader.now
    cycle = Cycle(
        contract, object_name, slo, now, now, now.replace(tzinfo=None), DstNote.NORMAL, (partition,)
    )
    return record_of(cycle)
