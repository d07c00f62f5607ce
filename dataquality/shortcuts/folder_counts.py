"""Counts kept for each folder of a table, so that a promise about all of it is told from what is new.

A kept count belongs to a folder as it was: to the names, sizes and times of its files. Where these cannot be
had, or do not agree with what Spark listed, nothing is reused and nothing is kept: a count that is taken
again costs time, and a wrong one would be a promise that looks kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from dq.contracts.shared.errors import MissingTool, Unreadable
from dq.contracts.sql.allowlist import FUNCTIONS
from dq.dataquality.delivery.lake.files import Files, files_for
from dq.dataquality.model.metric import Aggregate, Answer, Failure, Metric
from dq.dataquality.spark.error_redaction import attempt
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.plan import plan
from dq.dataquality.spark.readers.dataset import FILES, Dataset, open_folders
from dq.dataquality.sql.spark_predicate import question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A file this young may be written again within one tick of the storage's clock, and look the same.
SETTLED_AFTER = timedelta(seconds=60)
# So many files at most: their counts come to the driver.
MOST_FILES = 50_000
_AT_A_TIME = 16
# What a question may be made of so that its answer is the same at any time: functions of their arguments, and
# the words around them. Another word may stand for anything.
_OF_THE_RUN = frozenset({"current_date", "current_timestamp", "now", "unix_timestamp", "to_unix_timestamp"})
_AROUND = (
    "and array as between bigint binary boolean case cast char_length count date day decimal div double"
    " else end escape extract false float from hour in int interval is left like map minute month not"
    " null or rlike second smallint sqrt string struct then timestamp timestamp_ntz tinyint true try_cast"
    " when x year"
)
_CONSTANT = (FUNCTIONS - _OF_THE_RUN) | frozenset(_AROUND.split())
# Names in quotes, words, and what the product calls the parameter of a lambda.
_QUOTED_NAME, _WORD, _PARAMETER = re.compile(r"`(?:[^`]|``)*`"), re.compile(r"\b[A-Za-z_]\w*"), "_dq_"
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
# Texts that Spark takes for the time of the query where an instant is wanted.
_MOMENT = re.compile(r"\b(now|today|yesterday|tomorrow)\b", re.I)
_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.files.ignoreCorruptFiles",
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of one folder: the print of its files, and counts by the digest of their question."""

    print: str
    counts: Mapping[str, int]


class Memory(Protocol):
    """Where parts are kept, by the dataset's path and their folder."""

    def recall(self, dataset: str) -> Mapping[str, Part]:
        """Every part of a dataset."""
        ...

    def remember(self, dataset: str, parts: Mapping[str, Part]) -> None:
        """Keeps parts in the place of earlier ones of the same folders."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """Answers for the whole table, and the passes over new folders that they took."""

    answers: Mapping[Metric, Answer] = field(default_factory=dict)
    passes: int = 0


def recalled(
    metrics: Iterable[Metric], table: DataFrame, dataset: Dataset | None, memory: Memory, now: datetime
) -> Recalled:
    """The counts over the whole table that kept ones of unchanged folders and new ones of the rest give.

    Only for partitioned tables of plain files. What cannot be told for certain is left out. `now` must be
    the real time: it says which files have settled.
    """
    if dataset is None or not dataset.path or dataset.format not in FILES or not dataset.partitions:
        return Recalled()
    passes = [
        tuple(metric for metric in one.metrics if isinstance(metric, Aggregate))
        for one in plan(_counts(metrics, table), schema_of(table)).passes
    ]
    asked = {metric: _digest(metric, table, dataset) for counts in passes for metric in counts}
    listed = _listed(table) if asked else None
    prints = _prints(listed, now) if listed else None
    if not listed or prints is None:
        return Recalled()
    kept = memory.recall(dataset.path)
    counts = {
        folder: dict(kept[folder].counts) if folder in kept and kept[folder].print == prints[folder] else {}
        for folder in listed
    }
    missing = [folder for folder in listed if not counts[folder].keys() >= set(asked.values())]
    if missing:
        addresses = [listed[folder].address for folder in missing]
        frame = table if len(missing) == len(listed) else _opened(table, dataset, addresses)
        if frame is None:
            return Recalled()
        for asking in passes:
            new = attempt(lambda asking=asking: _by_folder(frame, asking, listed))  # type: ignore[misc]
            if new is None or isinstance(new, Failure):
                return Recalled()
            for folder in missing:
                found = new.get(folder, (0,) * len(asking))
                counts[folder] |= {asked[metric]: count for metric, count in zip(asking, found, strict=True)}
        settled = {folder: Part(prints[folder] or "", counts[folder]) for folder in missing if prints[folder]}
        memory.remember(dataset.path, settled)
    answers: dict[Metric, Answer] = {
        metric: sum(part[digest] for part in counts.values()) for metric, digest in asked.items()
    }
    return Recalled(answers, len(passes) if missing else 0)


def _counts(metrics: Iterable[Metric], table: DataFrame) -> list[Aggregate]:
    """Those that count rows, so that the counts of parts add up, and are the same at any time."""
    schema = schema_of(table)
    return [
        metric
        for metric in metrics
        if isinstance(metric, Aggregate) and metric.name == "count"
        if lasting(question(metric, schema))
    ]


def lasting(asked: str) -> bool:
    """Whether a question in Spark SQL has the same answer on the same rows at any time."""
    if any(_MOMENT.search(text) for text in _TEXT.findall(asked)):
        return False
    words = _WORD.findall(_QUOTED_NAME.sub(" ", _TEXT.sub(" ", asked)))
    return all(word.lower() in _CONSTANT or word.startswith(_PARAMETER) for word in words)


def _digest(metric: Aggregate, table: DataFrame, dataset: Dataset) -> str:
    """The question, and all else that its answer depends on besides the files."""
    spark = table.sparkSession
    settings = [str(spark.conf.get(name)) for name in _SETTINGS]
    told = (
        metric.kind.value,
        question(metric, schema_of(table)),
        table.schema.json(),
        dataset.format or "",
        repr(dataset.text),
        spark.version,
        *settings,
    )
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Folder:
    """Where Spark says a folder is, and the names of the files that it found there."""

    address: str
    names: set[str] = field(default_factory=set)


def _listed(table: DataFrame) -> dict[str, _Folder] | None:
    """What Spark found, by the folder's place; None where there are too many files."""
    files = attempt(table.inputFiles)
    if isinstance(files, Failure) or len(files) > MOST_FILES:
        return None
    found: dict[str, _Folder] = {}
    for file in files:
        address, _, name = file.rpartition("/")
        found.setdefault(_place(address), _Folder(address)).names.add(unquote(name))
    return found


def _prints(listed: Mapping[str, _Folder], now: datetime) -> dict[str, str | None] | None:
    """The print of each folder, None for one that has not settled; None when one cannot be known."""
    schemes = {urlsplit(place).scheme for place in listed}
    if len(schemes) != 1:
        return None
    files = files_for(next(iter(listed)))
    try:
        with ThreadPoolExecutor(1 if schemes == {""} else _AT_A_TIME) as pool:
            seen = list(pool.map(lambda place: _print(files, place, listed[place].names, now), listed))
    except (MissingTool, Unreadable):
        return None
    if any(one is None for one in seen):
        return None
    return dict(zip(listed, (one or None for one in seen), strict=True))


def _print(files: Files, place: str, names: set[str], now: datetime) -> str | None:
    """The print of a folder, "" when it has not settled, None when Spark listed something else."""
    inside = [one for one in files.inside(place) if not one.name.startswith(("_", "."))]
    if {one.name for one in inside} != names:
        return None
    if any(now - one.modified_at < SETTLED_AFTER for one in inside):
        return ""
    told = sorted(f"{one.name}\n{one.size}\n{one.modified_at.isoformat()}" for one in inside)
    return hashlib.sha256("\n\n".join(told).encode()).hexdigest()


def _place(folder: str) -> str:
    """A folder as `files_for` reads it, one text for it whoever names it; a plain path on this machine."""
    parts = urlsplit(folder)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}{unquote(parts.path)}"


def _opened(table: DataFrame, dataset: Dataset, folders: Sequence[str]) -> DataFrame | None:
    """These folders alone; None where Spark would take the name of one for a pattern."""
    if any(sign in unquote(folder) for folder in folders for sign in "*?[]{}\\"):
        return None
    frame = attempt(lambda: open_folders(table.sparkSession, dataset, schema_of(table), folders))
    if isinstance(frame, Failure) or schema_of(frame) != schema_of(table):
        return None
    return frame


def _by_folder(
    frame: DataFrame, metrics: Sequence[Aggregate], listed: Mapping[str, _Folder]
) -> dict[str, tuple[int, ...]] | None:
    """The counts of each folder with a row; None when a row is of a file that was not listed.

    Grouped by file, which is the same text for all rows of a task: cheaper than to cut the folder out of it.
    """
    from pyspark.sql.functions import expr

    schema = schema_of(frame)
    asked = [expr(question(metric, schema)).alias(f"_dq_{index}") for index, metric in enumerate(metrics)]
    rows = frame.groupBy(expr("_metadata.file_path").alias("_dq_file")).agg(*asked).collect()
    found: dict[str, tuple[int, ...]] = {}
    for file, *counts in rows:
        address, _, name = file.rpartition("/")
        # Spark writes file:/ here and file:/// in its list.
        folder = _place(address)
        if folder not in listed or unquote(name) not in listed[folder].names:
            return None
        before = found.get(folder, (0,) * len(counts))
        found[folder] = tuple(one + other for one, other in zip(before, counts, strict=True))
    return found
