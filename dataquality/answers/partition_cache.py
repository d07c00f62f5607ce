"""Answers and keys of a table's folders, as rows of the store."""

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
from dq.contracts.outcome import MissingTool, Unreadable
from dq.contracts.types import DataType
from dq.dataquality.answers import statistics
from dq.dataquality.answers.python_tasks import (
    MOST_AVERAGED,
    Codes,
    Keys,
    average,
    by_unit,
    run_of,
    unfit,
)
from dq.dataquality.answers.sources import Lever, ReadOptions, Shortcut
from dq.dataquality.answers.statistics import File, Wanted, cached, certain
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.metric import (
    Aggregate,
    Answer,
    DistinctKeys,
    Failure,
    Kind,
    Metric,
    RepeatedKeys,
    merged,
    of_users,
)
from dq.dataquality.model.predicate import INTEGERS, Function, IsNull, Not, Path, Since1970, all_of
from dq.dataquality.spark.dataset import FILES, Dataset, open_folders
from dq.dataquality.spark.measure import plan, schema_of
from dq.dataquality.spark.session import attempt, time_limit
from dq.dataquality.spark.text_files import with_rows
from dq.dataquality.sql_predicate import question
from dq.lake.storage import Files, files_for, is_data_name
from dq.store.schema import Count, Json, UtcDateTime, metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dq.store.engine import Store


part_count = Table(
    "part_count",
    metadata,
    # The path of the table's data, and the address of one folder in it.
    sqlalchemy.Column("dataset", Text, primary_key=True),
    sqlalchemy.Column("folder", Text, primary_key=True),
    # Of the names, sizes and times of its files when they were counted.
    sqlalchemy.Column("print", String(64), nullable=False),
    # Answers by the digest of their question.
    sqlalchemy.Column("counts", Json, nullable=False),
    sqlalchemy.Column("at", UtcDateTime, nullable=False),
)

kept_keys = Table(
    "kept_keys",
    metadata,
    sqlalchemy.Column("dataset", Text, primary_key=True),
    # The digest of the key's columns and of all else that their codes depend on.
    sqlalchemy.Column("question", String(64), primary_key=True),
    # The address of one folder, or empty for those that stand together.
    sqlalchemy.Column("folder", Text, primary_key=True),
    sqlalchemy.Column("print", String(64), nullable=False),
    sqlalchemy.Column("rows", Count, nullable=False),
    # The prints of the folders that stand together, by their address.
    sqlalchemy.Column("members", Json),
    # A Parquet file of one column, ascending.
    sqlalchemy.Column("codes", LargeBinary, nullable=False),
    sqlalchemy.Column("at", UtcDateTime, nullable=False),
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of one folder: the print of its files, and answers, as JSON, by `Circumstances.of`."""

    print: str
    counts: Mapping[str, Any]


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


@dataclass(frozen=True, slots=True)
class PartLedger:
    """Answers of folders, and at most `most_keys` keys of one question (0: none), by the dataset's path.

    Each is replaced as a whole. Raises StoreError when the database fails.
    """

    store: Store
    now: datetime
    most_keys: int = 0

    def recall(self, dataset: str) -> Mapping[str, Part]:
        """Every part of a dataset, by folder."""
        with self.store.read() as tx:
            rows = tx.execute(select(part_count).where(part_count.c.dataset == dataset))
            return {row.folder: Part(row.print, row.counts) for row in rows}

    def remember(self, dataset: str, parts: Mapping[str, Part], gone: Set[str]) -> None:
        """Keeps parts in the place of earlier ones of the same folders, and forgets folders that are gone."""
        columns = part_count.c
        with self.store.write() as tx:
            for folder in sorted(parts.keys() | gone):
                tx.execute(delete(part_count).where(columns.dataset == dataset, columns.folder == folder))
            for folder, part in parts.items():
                values = {"print": part.print, "counts": dict(part.counts), "at": self.now}
                tx.execute(insert(part_count).values(dataset=dataset, folder=folder, **values))

    def forget(self, dataset: str) -> None:
        """Forgets all that is kept of a dataset, keys too."""
        with self.store.write() as tx:
            for table in (part_count, kept_keys):
                tx.execute(delete(table).where(table.c.dataset == dataset))

    def recall_keys(self, dataset: str, question: str) -> Mapping[str, HeldKeys]:
        """What is kept of every folder's keys, without the codes."""
        columns = kept_keys.c
        keys = select(columns.folder, columns.print, columns.rows, columns.members)
        with self.store.read() as tx:
            rows = tx.execute(keys.where(columns.dataset == dataset, columns.question == question))
            return {row.folder: HeldKeys(row.print, row.rows, row.members) for row in rows}

    def recall_codes(self, dataset: str, question: str, prints: Mapping[str, str]) -> Mapping[str, bytes]:
        """The codes of these folders, as they were packed, where their prints are still these."""
        columns = kept_keys.c
        codes = select(columns.folder, columns.print, columns.codes)
        asked = columns.dataset == dataset, columns.question == question
        with self.store.read() as tx:
            found = (tx.execute(codes.where(*asked, columns.folder == folder)) for folder in prints)
            rows = [row for result in found for row in result]
        return {row.folder: row.codes for row in rows if row.print == prints[row.folder]}

    def remember_keys(
        self, dataset: str, question: str, keys: Mapping[str, HeldKeys], gone: Set[str]
    ) -> None:
        """Keeps keys in the place of earlier ones of the same folders, and forgets folders that are gone."""
        columns = kept_keys.c
        asked = columns.dataset == dataset, columns.question == question
        with self.store.write() as tx:
            for folder in sorted(keys.keys() | gone):
                tx.execute(delete(kept_keys).where(*asked, columns.folder == folder))
            for folder, held in keys.items():
                members = None if held.members is None else dict(held.members)
                values = {"print": held.print, "rows": held.rows, "codes": held.codes, "members": members}
                row = {"dataset": dataset, "question": question, "folder": folder, "at": self.now}
                tx.execute(insert(kept_keys).values(**row, **values))


# The folders of a table of plain files, what an answer about one depends on, and tasks that tell it.

# Which answers can be kept: what they are made of, and what else than the files they depend on.

# What a question may be made of so that its answer is the same at any time: functions of their arguments, and
# the words around them. Another word may stand for anything.
_OF_THE_RUN = frozenset({"current_date", "current_timestamp", "now", "unix_timestamp", "to_unix_timestamp"})
_AROUND = (
    "and array as between bigint binary boolean case cast char_length count date day decimal div double"
    " else end escape extract false float from hour in int interval is left like map minute month not"
    " null or rlike second smallint sqrt string struct then timestamp timestamp_ntz tinyint true try_cast"
    " when x year"
)
# Names in quotes, words, and what the product calls the parameter of a lambda.
_QUOTED_NAME, _WORD, _PARAMETER = re.compile(r"`(?:[^`]|``)*`"), re.compile(r"\b[A-Za-z_]\w*"), "_dq_"
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
# Texts that Spark takes for the time of the query where an instant is wanted.
_MOMENT = re.compile(r"\b(now|today|yesterday|tomorrow)\b", re.I)
# Of these the least or greatest is one value whoever compares, and JSON holds it.
_ORDERED = INTEGERS | {"decimal", "date"}
_LARGEST = 2**63


@cache
def _constant_words() -> frozenset[str]:
    """Return the words of which a question may be made. The allowlist brings sqlglot: not at import."""
    from dq.contracts.sql.allow import FUNCTIONS

    return (FUNCTIONS - _OF_THE_RUN) | frozenset(_AROUND.split())


def parts_of(metric: object, schema: DataType) -> tuple[Aggregate, ...]:
    """The questions whose answers for folders merge, and give the metric's for all of them; none: it cannot.

    Sums of floats depend on the order of the rows; the least of texts is a text of the data.
    """
    if not isinstance(metric, Aggregate) or (metric.kind is not Kind.ROWS and metric.name != "count"):
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
            # The sum of 64 bits overflows; that of 38 digits has room for more rows than there are.
            summed = value if kind == "decimal" else Function("try_decimal", (value, 38, 0))
            present = Aggregate("count", None, all_of(metric.where, Not(IsNull(value))), metric.needs)
            parts = (Aggregate("sum", summed, metric.where, metric.needs), present)
        case _:
            return ()
    return parts if all(lasting(question(one, schema)) for one in parts) else ()


def _type_of(value: object, schema: DataType) -> str:
    found = resolve(schema, Column(value.steps)) if isinstance(value, Path) else None
    if not isinstance(found, DataType):
        return ""
    # Beyond, the sum's type or that of the average may lack digits.
    return found.name if found.name != "decimal" or found.numbers[0] <= MOST_AVERAGED else ""


def combined(part: Aggregate, answers: Iterable[Any]) -> Any:
    """The one answer to a part from those of disjoint rows."""
    if part.name == "sum":
        present = [answer for answer in answers if answer is not None]
        return sum(present) if present else None
    nothing: Answer = 0 if part.name == "count" else None
    return functools.reduce(functools.partial(merged, part), answers, nothing)


def whole(metric: Aggregate, parts: Sequence[Any], schema: DataType) -> tuple[Answer, ...]:
    """The metric's answer from the combined ones of its `parts_of`; none where they do not tell."""
    total, *more = parts
    if not more or not (number := more[0]):
        return (total,)
    kind = resolve(schema, Column(metric.value.steps))  # type: ignore[union-attr]  # `parts_of` has seen it
    assert isinstance(kind, DataType)
    # What overflows is NULL, though there are values.
    if total is None or (kind.name != "decimal" and not -_LARGEST <= total < _LARGEST):
        return ()
    if metric.name == "avg":
        return (average(total, number, kind.numbers[1]),)
    return (total if kind.name == "decimal" else int(total),)


def lasting(asked: str) -> bool:
    """Whether a question in Spark SQL has the same answer on the same rows at any time."""
    if any(_MOMENT.search(text) for text in _TEXT.findall(asked)):
        return False
    words = _WORD.findall(_QUOTED_NAME.sub(" ", _TEXT.sub(" ", asked)))
    return all(word.lower() in _constant_words() or word.startswith(_PARAMETER) for word in words)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that an answer depends on besides its question and the files: a digest of it."""

    digest: str
    schema: DataType

    def of(self, one: Aggregate) -> str:
        """The name under which an answer to this is kept."""
        told = f"{self.digest}\n{one.kind.value}\n{question(one, self.schema)}"
        return hashlib.sha256(told.encode()).hexdigest()


def circumstances(table: DataFrame, dataset: Dataset) -> Circumstances | None:
    """The columns, the format and how it is read, Spark and every setting of its SQL, and this dq.

    None where the session does not tell its settings.
    """
    spark = table.sparkSession
    settings = certain(lambda: str(spark._jsparkSession.conf().getAll().mkString("\n")))
    if settings is None:
        return None
    told = (
        table.schema.json(),
        dataset.format or "",
        repr(dataset.text),
        spark.version,
        release(),
        # These have a value where nobody has set one.
        str(spark.conf.get("spark.sql.session.timeZone")),
        *sorted(line for line in settings.split("\n") if line.startswith("spark.sql.")),
    )
    return Circumstances(hashlib.sha256("\n".join(told).encode()).hexdigest(), schema_of(table))


def written(answer: Answer) -> object:
    """An answer as JSON; raises TypeError for one of a type that is not kept."""
    if answer is None or (isinstance(answer, int) and not isinstance(answer, bool)):
        return answer
    if isinstance(answer, Decimal):
        return ["decimal", str(answer)]
    if isinstance(answer, dt.date) and not isinstance(answer, dt.datetime):
        return ["date", answer.isoformat()]
    raise TypeError(type(answer).__name__)


_READ: Mapping[str, Any] = {"decimal": Decimal, "date": dt.date.fromisoformat}


def read(answer: Any) -> Answer:
    """What `written` wrote."""
    return _READ[answer[0]](answer[1]) if isinstance(answer, list) else answer  # type: ignore[no-any-return]


# The folders of a table of plain files, and the print that tells one from what it becomes later.

# A file this young may be written again within one tick of the storage's clock, and look the same.
SETTLED_AFTER = timedelta(seconds=60)
# So many files at most: their answers come to the driver.
MOST_FILES = 50_000
_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Folder:
    """Where Spark says a folder is, and the names of the files that it found there."""

    address: str
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a table, their prints (None: not settled), and all else that its answers depend on."""

    listed: Mapping[str, Folder]
    prints: Mapping[str, str | None]
    around: Circumstances


def folders_of(table: DataFrame, dataset: Dataset, now: datetime) -> Folders | None:
    """All of it, as it is now; None where something cannot be known."""
    around, found = circumstances(table, dataset), _listed(table)
    seen = _prints(found, now) if found else None
    return None if around is None or not found or seen is None else Folders(found, seen, around)


def _listed(table: DataFrame) -> dict[str, Folder] | None:
    """What Spark found, by the folder's place; None where there are too many files."""
    files = attempt(table.inputFiles)
    if isinstance(files, Failure) or len(files) > MOST_FILES:
        return None
    found: dict[str, Folder] = {}
    for file in with_rows(files):
        address, _, name = file.rpartition("/")
        found.setdefault(place(address), Folder(address)).names.add(unquote(name))
    return found


def _prints(folders: Mapping[str, Folder], now: datetime) -> dict[str, str | None] | None:
    """The print of each folder, None for one that has not settled; None when one cannot be known."""
    schemes = {urlsplit(one).scheme for one in folders}
    if len(schemes) != 1:
        return None
    files = files_for(next(iter(folders)))
    try:
        with ThreadPoolExecutor(1 if schemes == {""} else _AT_A_TIME) as pool:
            seen = list(pool.map(lambda one: _print(files, one, folders[one].names, now), folders))
    except (MissingTool, Unreadable):
        return None
    if any(one is None for one in seen):
        return None
    return dict(zip(folders, (one or None for one in seen), strict=True))


def _print(files: Files, folder: str, names: set[str], now: datetime) -> str | None:
    """The print of a folder, "" when it has not settled, None when Spark listed something else."""
    inside = [one for one in files.inside(folder) if is_data_name(one.name)]
    if {one.name for one in inside} != names:
        return None
    if any(now - one.modified_at < SETTLED_AFTER for one in inside):
        return ""
    return hashlib.sha256("\n\n".join(sorted(file.identity for file in inside)).encode()).hexdigest()


def place(folder: str) -> str:
    """A folder as `files_for` reads it, one text for it whoever names it; a plain path on this machine."""
    parts = urlsplit(folder)
    if parts.scheme in ("", "file"):
        return unquote(parts.path)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}{unquote(parts.path)}"


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table of folders, of which answers are kept, and the run that asks."""

    table: DataFrame
    dataset: Dataset
    path: str
    folders: Folders
    memory: PartLedger
    options: ReadOptions

    def rows_of(self, folders: Mapping[str, Folder]) -> DataFrame | None:
        """The rows of these folders alone; None where Spark would take the name of one for a pattern."""
        if len(folders) == len(self.folders.listed):
            return self.table
        addresses = [folder.address for folder in folders.values()]
        if any(sign in unquote(address) for address in addresses for sign in "*?[]{}\\"):
            return None
        schema = schema_of(self.table)
        frame = attempt(lambda: open_folders(self.table.sparkSession, self.dataset, schema, addresses))
        return None if isinstance(frame, Failure) or schema_of(frame) != schema else frame


# What tasks over Parquet files tell of each folder.

Told = TypeVar("Told", Aggregate, Keys)


def by_tasks(
    asked: Sequence[Told],
    columns: Collection[Column],
    frame: DataFrame,
    folders: Collection[str],
    tasks_from: int,
    most_rows: int | None = None,
) -> dict[Told, dict[str, Any]]:
    """The answers, by folder, to what is asked about these columns of a frame of these folders.

    What they cannot tell for every folder is left out, and all of it where there are more rows than the most.
    """
    bounds = frozenset(column for column in columns if len(column.steps) == 1)
    files = statistics.files(frame, None, (), Wanted(bounds=bounds))
    if files is None:
        return {}
    groups: dict[str, list[File]] = {folder: [] for folder in folders}
    for one in files:
        groups.setdefault(place(one.path.rpartition("/")[0]), []).append(one)
    rows = sum(file.rows for file in files)
    if len(groups) != len(folders) or (most_rows is not None and rows > most_rows):
        return {}
    if rows >= tasks_from and unfit(frame.sparkSession.sparkContext) is not None:
        return {}
    told = by_unit(asked, frame, [tuple(one) for one in groups.values()], tasks_from)
    return {one: dict(zip(groups, answers, strict=True)) for one, answers in told.items()}


# How many different keys a table has, from the codes of keys that are kept of its folders.
#
# The codes of all folders that did not change are kept once more together, so that one new folder is
# compared with one list. Where codes are hashes, they prove that no key repeats, and say nothing where one
# does.

# The folder under which the codes of many stand together.
TOGETHER = ""
# The list of all is made anew when what came since is more than this part of it.
_SINCE = 8
# What a code is; raised when that changes.
_CODING = "1"


def _recall_keys(metric: RepeatedKeys | DistinctKeys, kept: _Kept) -> tuple[Answer, ...]:
    """The answer about the keys of all of a table; none where it takes a scan."""
    import pyarrow as pa

    around = kept.folders.around
    types = dict(zip(around.schema.names, around.schema.parts, strict=True))
    keys = Keys(tuple(str(key.steps[0]) for key in metric.keys))
    if metric.where is not None or any(len(key.steps) > 1 for key in metric.keys) or not keys.sound(types):
        return ()
    question = hashlib.sha256("\n".join((around.digest, _CODING, *keys.columns)).encode()).hexdigest()
    try:
        counted = _count_keys(keys, metric.keys, question, kept)
    except (OSError, ValueError, pa.ArrowException):
        # What is kept is damaged.
        return ()
    if counted is None:
        return ()
    rows, distinct = counted
    if rows != distinct and not keys.exact(types):
        return ()
    return (distinct if isinstance(metric, DistinctKeys) else rows - distinct,)


def _count_keys(keys: Keys, columns: Sequence[Column], question: str, kept: _Kept) -> tuple[int, int] | None:
    """How many rows have a key, and how many different codes these keys have."""
    memory, folders, prints = kept.memory, kept.folders.listed, kept.folders.prints
    held = dict(memory.recall_keys(kept.path, question))
    base = held.pop(TOGETHER, None)
    same = {folder: part for folder, part in held.items() if prints.get(folder) == part.print}
    missing = {folder: found for folder, found in folders.items() if folder not in same}
    rows = sum(part.rows for part in same.values())
    new: dict[str, Codes] = {}
    if missing:
        frame = kept.rows_of(missing)
        if frame is None:
            return None
        most = memory.most_keys - rows
        new = by_tasks([keys], columns, frame, missing, kept.options.tasks_from, most).get(keys, {})
        if not new:
            return None
        rows += sum(codes.rows for codes in new.values())
    members = base.members if base is not None and base.members is not None else {}
    if any(prints.get(folder) != print for folder, print in members.items()):
        members = {}
    since = [folder for folder in same if folder not in members]
    wanted = {folder: same[folder].print for folder in since}
    if members and base is not None:
        wanted[TOGETHER] = base.print
    stored = memory.recall_codes(kept.path, question, wanted)
    if stored.keys() != wanted.keys():
        # Another check has changed them since.
        return None
    together = _unpacked(stored[TOGETHER]) if members else run_of([]).codes
    settled = [_unpacked(stored[folder]) for folder in since]
    settled += [codes.codes for folder, codes in new.items() if prints[folder]]
    open_ = [codes.codes for folder, codes in new.items() if not prints[folder]]
    keep = {
        folder: HeldKeys(print, codes.rows, None, _packed(codes.codes))
        for folder, codes in new.items()
        if (print := prints[folder])
    }
    if sum(map(len, settled)) * _SINCE > len(together):
        together = run_of([together, *settled]).codes
        settled = []
        whole = {folder: print for folder, print in prints.items() if print}
        told = "\n".join(sorted(f"{folder}\n{print}" for folder, print in whole.items()))
        keep[TOGETHER] = HeldKeys(hashlib.sha256(told.encode()).hexdigest(), 0, whole, _packed(together))
    if keep:
        memory.remember_keys(kept.path, question, keep, held.keys() - prints.keys())
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
# cannot be had, or do not agree with what Spark listed, nothing is reused and nothing is kept: an answer that
# is taken again costs time, and a wrong one would be a promise that looks kept.

# So many answers are kept of a folder; beyond, those go that nobody asked for this time.
MOST_ANSWERS = 1_000


def recalled(
    metrics: Collection[Metric],
    table: DataFrame,
    dataset: Dataset | None,
    memory: PartLedger,
    now: datetime,
    options: ReadOptions,
    secret: Set[str] = frozenset(),
) -> Shortcut:
    """The answers over the whole table that kept ones of unchanged folders and new ones of the rest give.

    Only for partitioned tables of plain files. What cannot be told for certain is left out. `now` must be
    the real time: it says which files have settled. Keys of a `secret` column, in lower case, are not kept.
    """
    if dataset is None or not dataset.path or dataset.format not in FILES or not dataset.partitions:
        return Shortcut()
    schema = schema_of(table)
    failing = {metric for metric, _ in plan(metrics, schema).failures}
    added = {
        metric: parts
        for metric in metrics
        if isinstance(metric, Aggregate) and metric not in failing and (parts := parts_of(metric, schema))
    }
    keyed = [
        metric
        for metric in metrics
        if isinstance(metric, RepeatedKeys | DistinctKeys) and metric not in failing
        if not secret & {str(key.steps[0]).lower() for key in metric.keys}
        if memory.most_keys and Lever.KERNELS in options.levers
    ]
    if not (added or keyed) or cached(table):
        return Shortcut()
    folders = folders_of(table, dataset, now)
    if folders is None:
        return Shortcut()
    kept = _Kept(table, dataset, dataset.path, folders, memory, options)
    sums = _recall_sums(added, kept) if added else Shortcut()
    keys: dict[Metric, Answer] = {metric: answer for metric in keyed for answer in _recall_keys(metric, kept)}
    return replace(sums, answers={**sums.answers, **keys}, kept=sums.kept | keys.keys())


def _recall_sums(asked: Mapping[Aggregate, tuple[Aggregate, ...]], kept: _Kept) -> Shortcut:
    """What adds up."""
    folders, prints, schema = kept.folders.listed, kept.folders.prints, kept.folders.around.schema
    names = {part: kept.folders.around.of(part) for parts in asked.values() for part in parts}
    before = kept.memory.recall(kept.path)
    there = ((folder, before[folder]) for folder in folders if folder in before)
    same = {folder: part.counts for folder, part in there if part.print == prints[folder]}
    answers: _Answers = {
        folder: {part: read(counts[name]) for part, name in names.items() if name in counts}
        for folder in folders
        for counts in [same.get(folder, {})]
    }
    missing = {folder: folders[folder] for folder in folders if len(answers[folder]) < len(names)}
    passes = 0
    if missing:
        frame = kept.rows_of(missing)
        if frame is None:
            return Shortcut()
        parts = [part for part in names if any(part not in answers[folder] for folder in missing)]
        new, passes = _counted(parts, frame, missing, kept.options)
        for folder in missing:
            answers[folder] |= new[folder]
        settled = {folder: print for folder in missing if new[folder] and (print := prints[folder])}
        kept.memory.remember(
            kept.path,
            {
                folder: Part(print, _with_new(same.get(folder, {}), names, new[folder]))
                for folder, print in settled.items()
            },
            before.keys() - folders.keys(),
        )
    told: dict[Metric, Answer] = {
        metric: answer
        for metric, parts in asked.items()
        if all(part in answers[folder] for folder in folders for part in parts)
        for answer in whole(
            metric, [combined(part, (answers[folder][part] for folder in folders)) for part in parts], schema
        )
    }
    return Shortcut(told, kept=frozenset(told if len(missing) < len(folders) else ()), passes=passes)


def _with_new(
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
    parts: Sequence[Aggregate], frame: DataFrame, folders: Mapping[str, Folder], options: ReadOptions
) -> tuple[_Answers, int]:
    """The answers of each of these folders, by tasks where they can tell, else by Spark; and the passes.

    What neither can tell is in no folder's answers.
    """
    found: _Answers = {folder: {} for folder in folders}
    passes = 0
    if Lever.KERNELS in options.levers:
        columns = frozenset(need.column for part in parts for need in part.needs)
        told = by_tasks(parts, columns, frame, found.keys(), options.tasks_from)
        passes += bool(told)
        for part, answers in told.items():
            for folder, answer in answers.items():
                found[folder][part] = answer
    rest = [part for part in parts if any(part not in answers for answers in found.values())]
    for each in plan(rest, schema_of(frame)).passes:
        asked = [metric for metric in each.metrics if isinstance(metric, Aggregate)]
        theirs = any(map(of_users, asked))
        with time_limit(frame.sparkSession, options.limit_seconds if theirs else None):
            new = attempt(lambda asked=asked: _by_folder(frame, asked, folders))  # type: ignore[misc]
        passes += 1
        if new is None or isinstance(new, Failure):
            continue
        for folder, counts in found.items():
            nothing = [0 if part.name == "count" else None for part in asked]
            counts |= dict(zip(asked, new.get(folder, nothing), strict=True))
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
