"""Cache of metric answers and key codes per partition folder, stored in the database."""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

import sqlalchemy
from sqlalchemy import LargeBinary, String, Table, Text, delete, insert, select

from dq.contracts.install import release
from dq.contracts.outcome import MissingTool, ReadError
from dq.contracts.types import DataType
from dq.dataquality.answers import statistics
from dq.dataquality.answers.python_tasks import (
    MOST_AVERAGED,
    Codes,
    Keys,
    answers_by_group,
    average,
    distinct_codes,
)
from dq.dataquality.answers.sources import KnownAnswers, Optimization, ReadOptions
from dq.dataquality.answers.statistics import FileStatistics, StatisticsRequest, is_cached, try_spark
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Metric,
    MetricExecution,
    RepeatedKeys,
    is_user_defined,
    merge_answers,
)
from dq.dataquality.model.predicate import INTEGERS, Function, IsNull, Not, Path, Since1970, all_of
from dq.dataquality.spark.dataset import FILE_FORMATS, Dataset, open_folders
from dq.dataquality.spark.file_listing import data_files
from dq.dataquality.spark.measure import plan, schema_of
from dq.dataquality.spark.session import attempt, time_limit
from dq.dataquality.sql_predicate import question
from dq.lake.storage import Files, files_for, is_data_name
from dq.store.schema import Count, Json, UtcDateTime, metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dq.store.engine import Store


part_count = Table(
    "part_count",
    metadata,
    # The path of the table's data, and the address of one of its folders.
    sqlalchemy.Column("dataset", Text, primary_key=True),
    sqlalchemy.Column("folder", Text, primary_key=True),
    # Digest of the names, sizes and times of its files when they were counted.
    sqlalchemy.Column("print", String(64), nullable=False),
    # Answers by the digest of their question.
    sqlalchemy.Column("counts", Json, nullable=False),
    sqlalchemy.Column("at", UtcDateTime, nullable=False),
)

kept_keys = Table(
    "kept_keys",
    metadata,
    sqlalchemy.Column("dataset", Text, primary_key=True),
    # The digest of the key's columns and of everything else that the codes depend on.
    sqlalchemy.Column("question", String(64), primary_key=True),
    # The address of one folder, or empty for the merged codes of several folders.
    sqlalchemy.Column("folder", Text, primary_key=True),
    sqlalchemy.Column("print", String(64), nullable=False),
    sqlalchemy.Column("rows", Count, nullable=False),
    # The fingerprints of the merged folders, by address.
    sqlalchemy.Column("members", Json),
    # A Parquet file of one column, ascending.
    sqlalchemy.Column("codes", LargeBinary, nullable=False),
    sqlalchemy.Column("at", UtcDateTime, nullable=False),
)


@dataclass(frozen=True, slots=True)
class CachedPartition:
    """Cached answers of one folder: the fingerprint of its files, and answers as JSON by `answer_key`."""

    print: str
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CachedKeys:
    """Cached keys of a folder: its fingerprint, the number of rows with a key, and their packed codes.

    For merged codes of several folders, `members` are their fingerprints, from which `print` is computed;
    otherwise it is None.
    """

    print: str
    rows: int
    members: Mapping[str, str] | None = None
    codes: bytes = b""


@dataclass(frozen=True, slots=True)
class PartitionCache:
    """Cached answers per folder, and at most `most_keys` keys per question (0: none), by the dataset's path.

    Every method raises StoreError if the database fails.
    """

    store: Store
    now: datetime
    most_keys: int = 0

    def recall(self, dataset: str) -> Mapping[str, CachedPartition]:
        """Return all cached partitions of a dataset, by folder."""
        with self.store.read() as tx:
            rows = tx.execute(select(part_count).where(part_count.c.dataset == dataset))
            return {row.folder: CachedPartition(row.print, row.counts) for row in rows}

    def remember(self, dataset: str, parts: Mapping[str, CachedPartition], removed: Set[str]) -> None:
        """Replace the entries of these folders, and delete those of the `removed` folders."""
        columns = part_count.c
        with self.store.write() as tx:
            for folder in sorted(parts.keys() | removed):
                tx.execute(delete(part_count).where(columns.dataset == dataset, columns.folder == folder))
            for folder, part in parts.items():
                values = {"print": part.print, "counts": dict(part.counts), "at": self.now}
                tx.execute(insert(part_count).values(dataset=dataset, folder=folder, **values))

    def forget(self, dataset: str) -> None:
        """Delete all entries of a dataset, including keys."""
        with self.store.write() as tx:
            for table in (part_count, kept_keys):
                tx.execute(delete(table).where(table.c.dataset == dataset))

    def recall_keys(self, dataset: str, question: str) -> Mapping[str, CachedKeys]:
        """Return the cached keys of every folder, without the codes."""
        columns = kept_keys.c
        keys = select(columns.folder, columns.print, columns.rows, columns.members)
        with self.store.read() as tx:
            rows = tx.execute(keys.where(columns.dataset == dataset, columns.question == question))
            return {row.folder: CachedKeys(row.print, row.rows, row.members) for row in rows}

    def recall_codes(self, dataset: str, question: str, prints: Mapping[str, str]) -> Mapping[str, bytes]:
        """Return the packed codes of the folders whose fingerprints are still these."""
        columns = kept_keys.c
        codes = select(columns.folder, columns.print, columns.codes)
        conditions = columns.dataset == dataset, columns.question == question
        with self.store.read() as tx:
            results = (tx.execute(codes.where(*conditions, columns.folder == folder)) for folder in prints)
            rows = [row for result in results for row in result]
        return {row.folder: row.codes for row in rows if row.print == prints[row.folder]}

    def remember_keys(
        self, dataset: str, question: str, keys: Mapping[str, CachedKeys], removed: Set[str]
    ) -> None:
        """Replace the keys of these folders, and delete those of the `removed` folders."""
        columns = kept_keys.c
        conditions = columns.dataset == dataset, columns.question == question
        with self.store.write() as tx:
            for folder in sorted(keys.keys() | removed):
                tx.execute(delete(kept_keys).where(*conditions, columns.folder == folder))
            for folder, entry in keys.items():
                members = None if entry.members is None else dict(entry.members)
                values = {"print": entry.print, "rows": entry.rows, "codes": entry.codes, "members": members}
                row = {"dataset": dataset, "question": question, "folder": folder, "at": self.now}
                tx.execute(insert(kept_keys).values(**row, **values))


# Cacheable questions, and everything besides the files that their answers depend on.

# A cacheable question consists only of deterministic functions and SQL keywords; any other word may depend on
# the time of the run.
_TIME_DEPENDENT = frozenset(
    {"current_date", "current_timestamp", "now", "unix_timestamp", "to_unix_timestamp"}
)
_KEYWORDS = (
    "and array as between bigint binary boolean case cast char_length count date day decimal div double"
    " else end escape extract false float from hour in int interval is left like map minute month not"
    " null or rlike second smallint sqrt string struct then timestamp timestamp_ntz tinyint true try_cast"
    " when x year"
)
# Quoted names, words, and the prefix of dq's lambda parameters.
_QUOTED_NAME, _WORD, _PARAMETER = re.compile(r"`(?:[^`]|``)*`"), re.compile(r"\b[A-Za-z_]\w*"), "_dq_"
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
# Texts that Spark replaces by the time of the query when it casts them to an instant.
_MOMENT = re.compile(r"\b(now|today|yesterday|tomorrow)\b", re.I)
# Types whose minimum and maximum do not depend on a collation and can be stored as JSON.
_ORDERED = INTEGERS | {"decimal", "date"}
_LARGEST = 2**63


@cache
def _constant_words() -> frozenset[str]:
    """Return the words that a cacheable question may contain.

    Not at import: the allowlist imports sqlglot.
    """
    from dq.contracts.sql.allow import FUNCTIONS

    return (FUNCTIONS - _TIME_DEPENDENT) | frozenset(_KEYWORDS.split())


def parts_of(metric: object, schema: DataType) -> tuple[Aggregate, ...]:
    """Return the aggregates whose answers per folder combine to the metric's answer; empty if impossible.

    Not for sums of floats, which depend on the row order, nor for minimums of texts, which would store data.
    """
    if not isinstance(metric, Aggregate) or (
        metric.kind is not MetricExecution.ROWS and metric.name != "count"
    ):
        return ()
    kind = _type_of(metric.value, schema)
    match metric.name:
        case "count":
            parts: tuple[Aggregate, ...] = (metric,)
        case "min" | "max" if kind in _ORDERED or isinstance(metric.value, Since1970):
            parts = (metric,)
        case "sum" | "try_sum" | "avg" if kind == "decimal" or (kind in INTEGERS and metric.name != "avg"):
            value = metric.value
            assert value is not None
            # A 64-bit sum may overflow; a sum with 38 digits cannot.
            summed = value if kind == "decimal" else Function("try_decimal", (value, 38, 0))
            present = Aggregate("count", None, all_of(metric.where, Not(IsNull(value))), metric.needs)
            parts = (Aggregate("sum", summed, metric.where, metric.needs), present)
        case _:
            return ()
    return parts if all(is_time_independent(question(part, schema)) for part in parts) else ()


def _type_of(value: object, schema: DataType) -> str:
    kind = resolve(schema, Column(value.steps)) if isinstance(value, Path) else None
    if not isinstance(kind, DataType):
        return ""
    # With more digits, the type of the sum or average may lack digits.
    return kind.name if kind.name != "decimal" or kind.numbers[0] <= MOST_AVERAGED else ""


def combine(part: Aggregate, answers: Iterable[Any]) -> Any:
    """Combine the answers for disjoint sets of rows."""
    if part.name == "sum":
        present = [answer for answer in answers if answer is not None]
        return sum(present) if present else None
    nothing: Answer = 0 if part.name == "count" else None
    return functools.reduce(functools.partial(merge_answers, part), answers, nothing)


def combine_parts(metric: Aggregate, parts: Sequence[Any], schema: DataType) -> tuple[Answer, ...]:
    """Return the metric's answer from the combined answers of its `parts_of`; empty if they do not determine
    it.
    """
    total, *counts = parts
    if not counts or not (number := counts[0]):
        return (total,)
    kind = resolve(schema, Column(metric.value.steps))  # type: ignore[union-attr]  # checked by `parts_of`
    assert isinstance(kind, DataType)
    # A sum that overflows is NULL although there are values.
    if total is None or (kind.name != "decimal" and not -_LARGEST <= total < _LARGEST):
        return ()
    if metric.name == "avg":
        return (average(total, number, kind.numbers[1]),)
    return (total if kind.name == "decimal" else int(total),)


def is_time_independent(sql: str) -> bool:
    """Return whether a Spark SQL expression always has the same result on the same rows."""
    if any(_MOMENT.search(text) for text in _TEXT.findall(sql)):
        return False
    words = _WORD.findall(_QUOTED_NAME.sub(" ", _TEXT.sub(" ", sql)))
    return all(word.lower() in _constant_words() or word.startswith(_PARAMETER) for word in words)


@dataclass(frozen=True, slots=True)
class CacheContext:
    """Digest of everything that an answer depends on besides its question and the files."""

    digest: str
    schema: DataType

    def answer_key(self, metric: Aggregate) -> str:
        """Return the cache key for answers to this metric."""
        text = f"{self.digest}\n{metric.kind.value}\n{question(metric, self.schema)}"
        return hashlib.sha256(text.encode()).hexdigest()


def cache_context(table: DataFrame, dataset: Dataset) -> CacheContext | None:
    """Return the cache context: schema, format and read options, Spark version and SQL settings, dq version.

    None if the session does not expose its settings.
    """
    spark = table.sparkSession
    settings = try_spark(lambda: str(spark._jsparkSession.conf().getAll().mkString("\n")))
    if settings is None:
        return None
    parts = (
        table.schema.json(),
        dataset.format or "",
        repr(dataset.text),
        spark.version,
        release(),
        # Has a value even if it is not set.
        str(spark.conf.get("spark.sql.session.timeZone")),
        *sorted(line for line in settings.split("\n") if line.startswith("spark.sql.")),
    )
    return CacheContext(hashlib.sha256("\n".join(parts).encode()).hexdigest(), schema_of(table))


def to_json(answer: Answer) -> object:
    """Return an answer as JSON. Raises TypeError for a type that is not cached."""
    if answer is None or (isinstance(answer, int) and not isinstance(answer, bool)):
        return answer
    if isinstance(answer, Decimal):
        return ["decimal", str(answer)]
    if isinstance(answer, dt.date) and not isinstance(answer, dt.datetime):
        return ["date", answer.isoformat()]
    raise TypeError(type(answer).__name__)


_READ: Mapping[str, Any] = {"decimal": Decimal, "date": dt.date.fromisoformat}


def from_json(answer: Any) -> Answer:
    """Return the answer from its JSON; the inverse of `to_json`."""
    return _READ[answer[0]](answer[1]) if isinstance(answer, list) else answer  # type: ignore[no-any-return]


# The folders of a table of plain files, and the fingerprints that detect changes.

# A younger file may be rewritten within the resolution of the storage's clock, without a visible change.
SETTLED_AFTER = timedelta(seconds=60)
# Limit on the number of files, since the driver lists them.
MOST_FILES = 50_000
_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Folder:
    """The address of a folder as Spark gives it, and the names of the files that Spark listed in it."""

    address: str
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a table by location, their fingerprints (None: not settled), and the cache context."""

    by_location: Mapping[str, Folder]
    prints: Mapping[str, str | None]
    context: CacheContext


def read_folders(table: DataFrame, dataset: Dataset, now: datetime) -> Folders | None:
    """Return the current folders of a table, or None if something about them is unknown."""
    context, folders = cache_context(table, dataset), _list_folders(table)
    prints = _prints(folders, now) if folders else None
    return None if context is None or not folders or prints is None else Folders(folders, prints, context)


def _list_folders(table: DataFrame) -> dict[str, Folder] | None:
    """Return the folders that Spark listed, by location, or None if there are too many files."""
    files = attempt(table.inputFiles)
    if isinstance(files, Failure) or len(files) > MOST_FILES:
        return None
    folders: dict[str, Folder] = {}
    for file in data_files(files):
        address, _, name = file.rpartition("/")
        folders.setdefault(folder_location(address), Folder(address)).names.add(unquote(name))
    return folders


def _prints(folders: Mapping[str, Folder], now: datetime) -> dict[str, str | None] | None:
    """Return the fingerprint of each folder (None: not settled), or None if one cannot be determined."""
    schemes = {urlsplit(folder).scheme for folder in folders}
    if len(schemes) != 1:
        return None
    files = files_for(next(iter(folders)))
    try:
        with ThreadPoolExecutor(1 if schemes == {""} else _AT_A_TIME) as pool:
            prints = list(pool.map(lambda folder: _print(files, folder, folders[folder].names, now), folders))
    except (MissingTool, ReadError):
        return None
    if any(digest is None for digest in prints):
        return None
    return dict(zip(folders, (digest or None for digest in prints), strict=True))


def _print(files: Files, folder: str, names: set[str], now: datetime) -> str | None:
    """Return the fingerprint of a folder, "" if it has not settled, None if Spark listed other files."""
    data_files = [file for file in files.inside(folder) if is_data_name(file.name)]
    if {file.name for file in data_files} != names:
        return None
    if any(now - file.modified_at < SETTLED_AFTER for file in data_files):
        return ""
    return hashlib.sha256("\n\n".join(sorted(file.identity for file in data_files)).encode()).hexdigest()


def folder_location(folder: str) -> str:
    """Return the normalized location of a folder as `files_for` reads it; a plain path for local folders."""
    parts = urlsplit(folder)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}{unquote(parts.path)}"


@dataclass(frozen=True, slots=True)
class _CachedTable:
    """A partitioned table with its cache, and the options of the run."""

    table: DataFrame
    dataset: Dataset
    path: str
    folders: Folders
    cache: PartitionCache
    options: ReadOptions

    def rows_of(self, folders: Mapping[str, Folder]) -> DataFrame | None:
        """Return the rows of these folders, or None if Spark would take a folder name for a glob pattern."""
        if len(folders) == len(self.folders.by_location):
            return self.table
        addresses = [folder.address for folder in folders.values()]
        if any(sign in unquote(address) for address in addresses for sign in "*?[]{}\\"):
            return None
        schema = schema_of(self.table)
        frame = attempt(lambda: open_folders(self.table.sparkSession, self.dataset, schema, addresses))
        return None if isinstance(frame, Failure) or schema_of(frame) != schema else frame


# Answers per folder from Python tasks over Parquet files.

Requested = TypeVar("Requested", Aggregate, Keys)


def answer_by_tasks(
    requested: Sequence[Requested],
    columns: Collection[Column],
    frame: DataFrame,
    folders: Collection[str],
    tasks_from: int,
    most_rows: int | None = None,
) -> dict[Requested, dict[str, Any]]:
    """Return the answers per folder that Python tasks can compute for a frame of these folders.

    Metrics that cannot be answered for every folder are left out. Empty if there are more than `most_rows`
    rows.
    """
    bounds = frozenset(column for column in columns if len(column.steps) == 1)
    files = statistics.files(frame, None, (), StatisticsRequest(bounds=bounds))
    if files is None:
        return {}
    groups: dict[str, list[FileStatistics]] = {folder: [] for folder in folders}
    for file in files:
        groups.setdefault(folder_location(file.path.rpartition("/")[0]), []).append(file)
    rows = sum(file.rows for file in files)
    if len(groups) != len(folders) or (most_rows is not None and rows > most_rows):
        return {}
    answers_by_metric = answers_by_group(
        requested, frame, [tuple(group) for group in groups.values()], tasks_from
    )
    return {metric: dict(zip(groups, answers, strict=True)) for metric, answers in answers_by_metric.items()}


# The number of distinct keys of a table, from the cached key codes of its folders.
#
# The codes of all unchanged folders are additionally stored merged, so that a new folder is compared with one
# list. If codes are hashes, they can prove that no key repeats, but not that one does.

# The folder name for the merged codes of all folders.
ALL_FOLDERS = ""
# The merged list is rebuilt when the codes added since exceed 1/8 of it.
_REBUILD_RATIO = 8
# Version of the key encoding; increase it with each change.
_CODING = "1"


def _answer_keys(metric: RepeatedKeys | DistinctKeys, cached_table: _CachedTable) -> tuple[Answer, ...]:
    """Return the answer on the keys of the whole table; empty if it needs a scan."""
    import pyarrow as pa

    context = cached_table.folders.context
    types = dict(zip(context.schema.names, context.schema.parts, strict=True))
    keys = Keys(tuple(str(key.steps[0]) for key in metric.keys))
    if (
        metric.where is not None
        or any(len(key.steps) > 1 for key in metric.keys)
        or not keys.has_comparable_types(types)
    ):
        return ()
    question = hashlib.sha256("\n".join((context.digest, _CODING, *keys.columns)).encode()).hexdigest()
    try:
        counts = _count_keys(keys, metric.keys, question, cached_table)
    except (OSError, ValueError, pa.ArrowException):
        # The cached codes are damaged.
        return ()
    if counts is None:
        return ()
    rows, distinct = counts
    if rows != distinct and not keys.has_exact_codes(types):
        return ()
    return (distinct if isinstance(metric, DistinctKeys) else rows - distinct,)


def _count_keys(
    keys: Keys, columns: Sequence[Column], question: str, cached_table: _CachedTable
) -> tuple[int, int] | None:
    """Return the number of rows with a key and the number of distinct key codes, or None if they need a
    scan.
    """
    cache, folders, prints = cached_table.cache, cached_table.folders.by_location, cached_table.folders.prints
    cached_keys = dict(cache.recall_keys(cached_table.path, question))
    base = cached_keys.pop(ALL_FOLDERS, None)
    unchanged = {folder: part for folder, part in cached_keys.items() if prints.get(folder) == part.print}
    missing = {folder: entry for folder, entry in folders.items() if folder not in unchanged}
    rows = sum(part.rows for part in unchanged.values())
    new_codes: dict[str, Codes] = {}
    if missing:
        frame = cached_table.rows_of(missing)
        if frame is None:
            return None
        max_rows = cache.most_keys - rows
        new_codes = answer_by_tasks(
            [keys], columns, frame, missing, cached_table.options.tasks_from, max_rows
        ).get(keys, {})
        if not new_codes:
            return None
        rows += sum(codes.rows for codes in new_codes.values())
    members = base.members if base is not None and base.members is not None else {}
    if any(prints.get(folder) != print for folder, print in members.items()):
        members = {}
    added_since = [folder for folder in unchanged if folder not in members]
    requested = {folder: unchanged[folder].print for folder in added_since}
    if members and base is not None:
        requested[ALL_FOLDERS] = base.print
    stored = cache.recall_codes(cached_table.path, question, requested)
    if stored.keys() != requested.keys():
        # A concurrent check has changed the cache.
        return None
    base_codes = _unpack(stored[ALL_FOLDERS]) if members else distinct_codes([]).codes
    settled = [_unpack(stored[folder]) for folder in added_since]
    settled += [codes.codes for folder, codes in new_codes.items() if prints[folder]]
    unsettled = [codes.codes for folder, codes in new_codes.items() if not prints[folder]]
    new_keys = {
        folder: CachedKeys(print, codes.rows, None, _pack(codes.codes))
        for folder, codes in new_codes.items()
        if (print := prints[folder])
    }
    if sum(map(len, settled)) * _REBUILD_RATIO > len(base_codes):
        base_codes = distinct_codes([base_codes, *settled]).codes
        settled = []
        settled_prints = {folder: print for folder, print in prints.items() if print}
        text = "\n".join(sorted(f"{folder}\n{print}" for folder, print in settled_prints.items()))
        new_keys[ALL_FOLDERS] = CachedKeys(
            hashlib.sha256(text.encode()).hexdigest(), 0, settled_prints, _pack(base_codes)
        )
    if new_keys:
        cache.remember_keys(cached_table.path, question, new_keys, cached_keys.keys() - prints.keys())
    recent = distinct_codes([*settled, *unsettled]).codes
    return rows, len(base_codes) + len(recent) - _count_common(base_codes, recent)


def _count_common(codes: Any, other: Any) -> int:
    """Return the number of codes that both arrays contain; neither has duplicates."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.is_in(codes, value_set=other)).as_py() or 0)


def _pack(codes: Any) -> bytes:
    """Delta-encode sorted codes: about 5 bytes per hash among millions, less than 2 bytes per number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"code": codes}),
        buffer,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        column_encoding={"code": "DELTA_BINARY_PACKED"},
        write_page_checksum=True,
    )
    return bytes(buffer.getvalue())


def _unpack(codes: bytes) -> Any:
    """Return the codes that `_pack` encoded. Raises OSError for damaged data."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(codes), page_checksum_verification=True, use_threads=False)
    return table.column("code").combine_chunks()


# Answers for a whole table, from cached answers of unchanged folders and new ones of the others.
#
# A cached answer is valid for the names, sizes and times of the files of its folder. If these are unknown, or
# differ from Spark's listing, nothing is reused or stored: recomputing costs time, but a stale answer could
# hide a violation.

# Maximum number of cached answers per folder; beyond, answers not requested in this run are dropped.
MOST_ANSWERS = 1_000


def answer_from_cache(
    metrics: Collection[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    cache: PartitionCache,
    now: datetime,
    options: ReadOptions,
    secret: Set[str] = frozenset(),
) -> KnownAnswers:
    """Answer metrics of the whole table from cached answers of unchanged folders and new answers of the
    others.

    Only for partitioned tables of plain files. Metrics without a certain answer are left out.

    Args:
        now: The real current time; it determines which files have settled.
        secret: Lower-case names of columns whose keys are not cached.
    """
    if dataset is None or not dataset.path or dataset.format not in FILE_FORMATS or not dataset.partitions:
        return KnownAnswers()
    schema = schema_of(table)
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    additive = {
        metric: parts
        for metric in metrics
        if isinstance(metric, Aggregate) and metric not in failing and (parts := parts_of(metric, schema))
    }
    key_metrics = [
        metric
        for metric in metrics
        if isinstance(metric, RepeatedKeys | DistinctKeys) and metric not in failing
        if not secret & {str(key.steps[0]).lower() for key in metric.keys}
        if cache.most_keys and Optimization.KERNELS in options.optimizations
    ]
    if not (additive or key_metrics) or is_cached(table):
        return KnownAnswers()
    folders = read_folders(table, dataset, now)
    if folders is None:
        return KnownAnswers()
    cached_table = _CachedTable(table, dataset, dataset.path, folders, cache, options)
    sums = _answer_sums(additive, cached_table) if additive else KnownAnswers()
    keys: dict[Metric, Answer] = {
        metric: answer for metric in key_metrics for answer in _answer_keys(metric, cached_table)
    }
    return replace(sums, answers={**sums.answers, **keys}, from_cache=sums.from_cache | keys.keys())


def _answer_sums(
    parts_by_metric: Mapping[Aggregate, tuple[Aggregate, ...]], cached_table: _CachedTable
) -> KnownAnswers:
    """Answer the metrics whose answers per folder can be combined."""
    folders, prints, schema = (
        cached_table.folders.by_location,
        cached_table.folders.prints,
        cached_table.folders.context.schema,
    )
    names = {
        part: cached_table.folders.context.answer_key(part)
        for parts in parts_by_metric.values()
        for part in parts
    }
    stored = cached_table.cache.recall(cached_table.path)
    stored_parts = ((folder, stored[folder]) for folder in folders if folder in stored)
    unchanged = {folder: part.counts for folder, part in stored_parts if part.print == prints[folder]}
    answers: _Answers = {
        folder: {part: from_json(counts[name]) for part, name in names.items() if name in counts}
        for folder in folders
        for counts in [unchanged.get(folder, {})]
    }
    missing = {folder: folders[folder] for folder in folders if len(answers[folder]) < len(names)}
    passes = 0
    if missing:
        frame = cached_table.rows_of(missing)
        if frame is None:
            return KnownAnswers()
        parts = [part for part in names if any(part not in answers[folder] for folder in missing)]
        new_answers, passes = _count_folders(parts, frame, missing, cached_table.options)
        for folder in missing:
            answers[folder] |= new_answers[folder]
        settled = {folder: print for folder in missing if new_answers[folder] and (print := prints[folder])}
        cached_table.cache.remember(
            cached_table.path,
            {
                folder: CachedPartition(
                    print, _with_new(unchanged.get(folder, {}), names, new_answers[folder])
                )
                for folder, print in settled.items()
            },
            stored.keys() - folders.keys(),
        )
    results: dict[Metric, Answer] = {
        metric: answer
        for metric, parts in parts_by_metric.items()
        if all(part in answers[folder] for folder in folders for part in parts)
        for answer in combine_parts(
            metric, [combine(part, (answers[folder][part] for folder in folders)) for part in parts], schema
        )
    }
    return KnownAnswers(
        results, from_cache=frozenset(results if len(missing) < len(folders) else ()), passes=passes
    )


def _with_new(
    stored: Mapping[str, Any], names: Mapping[Aggregate, str], new: Mapping[Aggregate, Answer]
) -> dict[str, Any]:
    """Return a folder's answers including the new ones; if there are too many, only those of this run."""
    merged_answers = {**stored, **{names[part]: to_json(answer) for part, answer in new.items()}}
    if len(merged_answers) <= MOST_ANSWERS:
        return merged_answers
    today = set(names.values())
    return {name: answer for name, answer in merged_answers.items() if name in today}


_Answers = dict[str, dict[Aggregate, Answer]]


def _count_folders(
    parts: Sequence[Aggregate], frame: DataFrame, folders: Mapping[str, Folder], options: ReadOptions
) -> tuple[_Answers, int]:
    """Return the answers of each folder, by Python tasks if possible, else by Spark, and the number of
    passes.

    Metrics that neither can answer are left out.
    """
    answers_by_folder: _Answers = {folder: {} for folder in folders}
    passes = 0
    if Optimization.KERNELS in options.optimizations:
        columns = frozenset(need.column for part in parts for need in part.needs)
        answers_by_part = answer_by_tasks(parts, columns, frame, answers_by_folder.keys(), options.tasks_from)
        passes += bool(answers_by_part)
        for part, answers in answers_by_part.items():
            for folder, answer in answers.items():
                answers_by_folder[folder][part] = answer
    remaining = [part for part in parts if any(part not in answers for answers in answers_by_folder.values())]
    for metric_pass in plan(remaining, schema_of(frame)).passes:
        metrics = [metric for metric in metric_pass.metrics if isinstance(metric, Aggregate)]
        has_user_code = any(map(is_user_defined, metrics))
        with time_limit(frame.sparkSession, options.limit_seconds if has_user_code else None):
            new = attempt(lambda metrics=metrics: _by_folder(frame, metrics, folders))  # type: ignore[misc]
        passes += 1
        if new is None or isinstance(new, Failure):
            continue
        for folder, counts in answers_by_folder.items():
            nothing = [0 if part.name == "count" else None for part in metrics]
            counts |= dict(zip(metrics, new.get(folder, nothing), strict=True))
    return answers_by_folder, passes


def _by_folder(
    frame: DataFrame, metrics: Sequence[Aggregate], folders: Mapping[str, Folder]
) -> dict[str, Sequence[Answer]] | None:
    """Return the answers of each folder with rows, or None if a row comes from a file that was not listed.

    Groups by file, whose name is constant within a task; this is cheaper than extracting the folder per row.
    """
    from pyspark.sql.functions import expr

    schema = schema_of(frame)
    expressions = [
        expr(question(metric, schema)).alias(f"_dq_{index}") for index, metric in enumerate(metrics)
    ]
    rows = frame.groupBy(expr("_metadata.file_path").alias("_dq_file")).agg(*expressions).collect()
    counts_by_folder: dict[str, list[list[Answer]]] = {}
    for file, *counts in rows:
        address, _, name = file.rpartition("/")
        # Spark writes file:/ in this column and file:/// in its file listing.
        folder = folder_location(address)
        if folder not in folders or unquote(name) not in folders[folder].names:
            return None
        counts_by_folder.setdefault(folder, []).append(counts)
    return {
        folder: [combine(metric, [row[index] for row in rows]) for index, metric in enumerate(metrics)]
        for folder, rows in counts_by_folder.items()
    }
