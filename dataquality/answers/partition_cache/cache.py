"""Answers about all of a table from those that are kept of its folders, and new ones of the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from dq.dataquality.answers.partition_cache.folders import (
    Folder,
    Folders,
    by_tasks,
    combined,
    folders_of,
    parts_of,
    place,
    read,
    rows_of,
    whole,
    written,
)
from dq.dataquality.answers.python_tasks import run as kernels
from dq.dataquality.answers.python_tasks.keys import Codes, Keys, run_of
from dq.dataquality.answers.sources import Lever
from dq.dataquality.answers.statistics.facts import cached
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Metric,
    RepeatedKeys,
    of_users,
)
from dq.dataquality.spark.measure import plan, schema_of
from dq.dataquality.spark.readers.open import FILES, Dataset
from dq.dataquality.spark.session import attempt, time_limit
from dq.dataquality.sql.spark_predicate import question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# How many different keys a table has, from the codes of keys that are kept of its folders.
#
# The codes of all folders that did not change are kept once more together, so that one new folder is
# compared
# with one list. Where codes are hashes, they prove that no key repeats, and say nothing where one does.

# The folder under which the codes of many stand together.
TOGETHER = ""
# The list of all is made anew when what came since is more than this part of it.
_SINCE = 8
# What a code is; raised when that changes.
_CODING = "1"


@dataclass(frozen=True, slots=True)
class HeldKeys:
    """What is kept of a folder's keys: its print, how many rows have a key, and their codes, packed.

    `members` are the prints of the folders whose codes stand together, None for a folder of its own; the
    print is made of theirs then.
    """

    print: str
    rows: int
    members: Mapping[str, str] | None = None
    codes: bytes = b""


class KeyMemory(Protocol):
    """Where keys are kept, by the dataset's path, their question and the folder."""

    @property
    def most(self) -> int:
        """How many keys of one question may be kept."""
        ...

    def held(self, dataset: str, question: str) -> Mapping[str, HeldKeys]:
        """What is kept of every folder, without the codes."""
        ...

    def codes(self, dataset: str, question: str, prints: Mapping[str, str]) -> Mapping[str, bytes]:
        """The codes of these folders, as they were packed, where their prints are still these."""
        ...

    def hold(self, dataset: str, question: str, keys: Mapping[str, HeldKeys], gone: Set[str]) -> None:
        """Keeps keys in the place of earlier ones of the same folders, and forgets folders that are gone."""
        ...


def different(
    metric: Metric, table: DataFrame, dataset: Dataset, folders: Folders, memory: KeyMemory, tasks_from: int
) -> tuple[Answer, ...]:
    """The answer about the keys of all of a table; none where it takes a scan."""
    import pyarrow as pa

    if not isinstance(metric, RepeatedKeys | DistinctKeys) or metric.where is not None:
        return ()
    if not all(len(key.steps) == 1 for key in metric.keys):
        return ()
    keys = Keys(tuple(str(key.steps[0]) for key in metric.keys))
    types = dict(zip(folders.around.schema.names, folders.around.schema.parts, strict=True))
    if not keys.sound(types):
        return ()
    told = "\n".join((folders.around.digest, _CODING, *keys.columns))
    question = hashlib.sha256(told.encode()).hexdigest()
    try:
        found = _count_keys(keys, metric.keys, question, table, dataset, folders, memory, tasks_from)
    except (OSError, ValueError, pa.ArrowException):
        # What is kept is damaged.
        return ()
    if found is None:
        return ()
    rows, distinct = found
    if rows != distinct and not keys.exact(types):
        return ()
    return (distinct if isinstance(metric, DistinctKeys) else rows - distinct,)


def _count_keys(
    keys: Keys,
    columns: Sequence[Column],
    question: str,
    table: DataFrame,
    dataset: Dataset,
    folders: Folders,
    memory: KeyMemory,
    tasks_from: int,
) -> tuple[int, int] | None:
    """How many rows have a key, and how many different codes these keys have."""
    assert dataset.path is not None
    held = dict(memory.held(dataset.path, question))
    base = held.pop(TOGETHER, None)
    prints = folders.prints
    same = {one: kept for one, kept in held.items() if prints.get(one) == kept.print}
    missing = {one: folder for one, folder in folders.listed.items() if one not in same}
    rows = sum(kept.rows for kept in same.values())
    new: dict[str, Codes] = {}
    if missing:
        frame = table if len(missing) == len(prints) else rows_of(table, dataset, list(missing.values()))
        if frame is None:
            return None
        new = by_tasks([keys], columns, frame, missing, tasks_from, memory.most - rows).get(keys, {})
        if not new:
            return None
        rows += sum(one.rows for one in new.values())
    members = base.members if base is not None and base.members is not None else {}
    if any(prints.get(folder) != print for folder, print in members.items()):
        members = {}
    since = [one for one in same if one not in members]
    wanted = {one: same[one].print for one in since}
    if members and base is not None:
        wanted[TOGETHER] = base.print
    stored = memory.codes(dataset.path, question, wanted)
    if stored.keys() != wanted.keys():
        # Another check has changed them since.
        return None
    together = _unpacked(stored[TOGETHER]) if members else run_of([]).codes
    settled = [_unpacked(stored[one]) for one in since] + [new[one].codes for one in new if prints[one]]
    open_ = [new[one].codes for one in new if not prints[one]]
    keep = {
        one: HeldKeys(print, new[one].rows, None, _packed(new[one].codes))
        for one in new
        if (print := prints[one])
    }
    if sum(map(len, settled)) * _SINCE > len(together):
        together = run_of([together, *settled]).codes
        settled = []
        whole = {one: print for one, print in prints.items() if print}
        told = "\n".join(sorted(f"{folder}\n{print}" for folder, print in whole.items()))
        keep[TOGETHER] = HeldKeys(hashlib.sha256(told.encode()).hexdigest(), 0, whole, _packed(together))
    if keep:
        memory.hold(dataset.path, question, keep, held.keys() - prints.keys())
    since_then = run_of([*settled, *open_]).codes
    return rows, len(together) + len(since_then) - _shared(together, since_then)


def _shared(many: Any, few: Any) -> int:
    """How many of the one are among the other, both of which have no code twice."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.is_in(many, value_set=few)).as_py() or 0)


def _packed(codes: Any) -> bytes:
    """As differences, which are small: about 5 bytes for a hash of millions, less than 2 for a number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"code": codes}),
        made,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        column_encoding={"code": "DELTA_BINARY_PACKED"},
        write_page_checksum=True,
    )
    return bytes(made.getvalue())


def _unpacked(codes: bytes) -> Any:
    """Raises OSError for what is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    read = pq.read_table(pa.BufferReader(codes), page_checksum_verification=True, use_threads=False)
    return read.column("code").combine_chunks()


# Answers about all of a table from those that are kept of its folders, and new ones of the rest.
#
# A kept answer belongs to a folder as it was: to the names, sizes and times of its files. Where these
# cannot be
# had, or do not agree with what Spark listed, nothing is reused and nothing is kept: an answer that is
# taken
# again costs time, and a wrong one would be a promise that looks kept.

# So many answers are kept of a folder; beyond, those go that nobody asked for this time.
MOST_ANSWERS = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of one folder: the print of its files, and answers, as JSON, by `Circumstances.of`."""

    print: str
    counts: Mapping[str, Any]


class Memory(Protocol):
    """Where parts are kept, by the dataset's path and their folder; and keys, where they are."""

    @property
    def keys(self) -> KeyMemory | None:
        """Where keys are kept, None where none are."""
        ...

    def recall(self, dataset: str) -> Mapping[str, Part]:
        """Every part of a dataset."""
        ...

    def remember(self, dataset: str, parts: Mapping[str, Part], gone: Set[str]) -> None:
        """Keeps parts in the place of earlier ones of the same folders, and forgets folders that are gone."""
        ...

    def forget(self, dataset: str) -> None:
        """Forgets all that is kept of a dataset."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """Answers for the whole table, and the passes over new folders that they took.

    `kept` are the metrics to whose answers a folder gave what was kept of it.
    """

    answers: Mapping[Metric, Answer] = field(default_factory=dict)
    kept: frozenset[Metric] = frozenset()
    passes: int = 0


def recalled(
    metrics: Collection[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    memory: Memory,
    now: datetime,
    levers: Set[Lever],
    tasks_from: int = kernels.WORTH_ROWS,
    limit_seconds: float | None = None,
    secret: Set[str] = frozenset(),
) -> Recalled:
    """The answers over the whole table that kept ones of unchanged folders and new ones of the rest give.

    Only for partitioned tables of plain files. What cannot be told for certain is left out. `now` must be
    the real time: it says which files have settled. Keys of a `secret` column, in lower case, are not kept.
    """
    if dataset is None or not dataset.path or dataset.format not in FILES or not dataset.partitions:
        return Recalled()
    schema = schema_of(table)
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    asked = {
        one: parts
        for one in metrics
        if isinstance(one, Aggregate) and one not in failing and (parts := parts_of(one, schema))
    }
    keyed = [
        one
        for one in metrics
        if isinstance(one, RepeatedKeys | DistinctKeys) and one not in failing
        if not secret & {str(key.steps[0]).lower() for key in one.keys}
    ]
    keyed = keyed if memory.keys is not None and Lever.KERNELS in levers else []
    if not (asked or keyed) or cached(table):
        return Recalled()
    folders = folders_of(table, dataset, now)
    if folders is None:
        return Recalled()
    found = (
        _added(asked, table, dataset, folders, memory, levers, tasks_from, limit_seconds)
        if asked
        else Recalled()
    )
    told = dict(found.answers)
    for one in keyed:
        assert memory.keys is not None
        for answer in different(one, table, dataset, folders, memory.keys, tasks_from):
            told[one] = answer
    return Recalled(told, found.kept | {one for one in keyed if one in told}, found.passes)


def _added(
    asked: Mapping[Aggregate, tuple[Aggregate, ...]],
    table: DataFrame,
    dataset: Dataset,
    found: Folders,
    memory: Memory,
    levers: Set[Lever],
    tasks_from: int,
    limit_seconds: float | None,
) -> Recalled:
    """What adds up."""
    assert dataset.path is not None
    folders, seen, schema = found.listed, found.prints, found.around.schema
    names = {part: found.around.of(part) for parts in asked.values() for part in parts}
    before = memory.recall(dataset.path)
    there = ((folder, before[folder]) for folder in folders if folder in before)
    same = {folder: part.counts for folder, part in there if part.print == seen[folder]}
    answers = {
        folder: {part: read(kept[name]) for part, name in names.items() if name in kept}
        for folder, kept in same.items()
    } | {folder: {} for folder in folders if folder not in same}
    missing = {folder: folders[folder] for folder in folders if len(answers[folder]) < len(names)}
    passes = 0
    if missing:
        frame = table if len(missing) == len(folders) else rows_of(table, dataset, list(missing.values()))
        if frame is None:
            return Recalled()
        wanted = [part for part in names if any(part not in answers[folder] for folder in missing)]
        new, passes = _counted(wanted, frame, missing, levers, tasks_from, limit_seconds)
        for folder in missing:
            answers[folder] |= new[folder]
        settled = {folder: print for folder in missing if new[folder] and (print := seen[folder])}
        memory.remember(
            dataset.path,
            {
                folder: Part(print, _kept(same.get(folder, {}), names, new[folder]))
                for folder, print in settled.items()
            },
            before.keys() - folders.keys(),
        )
    told: dict[Metric, Answer] = {
        metric: answer
        for metric, parts in asked.items()
        if all(part in answers[folder] for folder in folders for part in parts)
        for answer in whole(
            metric, [combined(part, (answers[one][part] for one in folders)) for part in parts], schema
        )
    }
    return Recalled(told, frozenset(told) if len(missing) < len(folders) else frozenset(), passes)


def _kept(
    before: Mapping[str, Any], names: Mapping[Aggregate, str], new: Mapping[Aggregate, Answer]
) -> dict[str, Any]:
    """A folder's answers, with the new ones; only those asked for today where there are too many."""
    both = {**before, **{names[part]: written(answer) for part, answer in new.items()}}
    if len(both) <= MOST_ANSWERS:
        return both
    today = set(names.values())
    return {name: answer for name, answer in both.items() if name in today}


_Answers = dict[str, dict[Aggregate, Answer]]


def _counted(
    parts: Sequence[Aggregate],
    frame: DataFrame,
    folders: Mapping[str, Folder],
    levers: Set[Lever],
    tasks_from: int,
    limit_seconds: float | None,
) -> tuple[_Answers, int]:
    """The answers of each of these folders, by tasks where they can tell, else by Spark; and the passes.

    What neither can tell is in no folder's answers.
    """
    found: _Answers = {folder: {} for folder in folders}
    passes = 0
    if Lever.KERNELS in levers:
        columns = frozenset(need.column for part in parts for need in part.needs)
        told = by_tasks(parts, columns, frame, found.keys(), tasks_from)
        passes += bool(told)
        for part, answers in told.items():
            for folder, answer in answers.items():
                found[folder][part] = answer
    rest = [part for part in parts if any(part not in one for one in found.values())]
    for each in plan(rest, schema_of(frame)).passes:
        asked = [metric for metric in each.metrics if isinstance(metric, Aggregate)]
        theirs = any(map(of_users, asked))
        with time_limit(frame.sparkSession, limit_seconds if theirs else None):
            new = attempt(lambda asked=asked: _by_folder(frame, asked, folders))  # type: ignore[misc]
        passes += 1
        if new is None or isinstance(new, Failure):
            continue
        for folder, mine in found.items():
            nothing = [0 if part.name == "count" else None for part in asked]
            mine |= dict(zip(asked, new.get(folder, nothing), strict=True))
    return found, passes


def _by_folder(
    frame: DataFrame, metrics: Sequence[Aggregate], folders: Mapping[str, Folder]
) -> dict[str, Sequence[Answer]] | None:
    """The answers of each folder with a row; None when a row is of a file that was not listed.

    Grouped by file, which is the same text for all rows of a task: cheaper than to cut the folder out of it.
    """
    from pyspark.sql.functions import expr

    schema = schema_of(frame)
    asked = [expr(question(metric, schema)).alias(f"_dq_{index}") for index, metric in enumerate(metrics)]
    rows = frame.groupBy(expr("_metadata.file_path").alias("_dq_file")).agg(*asked).collect()
    found: dict[str, list[list[Answer]]] = {}
    for file, *counts in rows:
        address, _, name = file.rpartition("/")
        # Spark writes file:/ here and file:/// in its list.
        folder = place(address)
        if folder not in folders or unquote(name) not in folders[folder].names:
            return None
        found.setdefault(folder, []).append(counts)
    return {
        folder: [combined(metric, [row[at] for row in rows]) for at, metric in enumerate(metrics)]
        for folder, rows in found.items()
    }
