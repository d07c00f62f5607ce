"""The folders of a table of plain files, what an answer about one depends on, and tasks that tell it."""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from dq.contracts.shared.install import release
from dq.contracts.shared.outcome import MissingTool, Unreadable
from dq.contracts.sql.allowlist import FUNCTIONS
from dq.contracts.types import DataType
from dq.dataquality.answers.python_tasks.keys import Keys
from dq.dataquality.answers.python_tasks.run import MOST_AVERAGED, average, by_unit, unfit
from dq.dataquality.answers.statistics import parquet
from dq.dataquality.answers.statistics.facts import File, Wanted, certain
from dq.dataquality.model.column import Column, resolve
from dq.dataquality.model.metric import Aggregate, Answer, Failure, Kind, merged
from dq.dataquality.model.predicate import INTEGERS, Function, IsNull, Not, Path, Since1970, all_of
from dq.dataquality.spark.measure import schema_of
from dq.dataquality.spark.readers.open import Dataset, open_folders
from dq.dataquality.spark.readers.text import with_rows
from dq.dataquality.spark.session import attempt
from dq.dataquality.sql.spark_predicate import question
from dq.lake.paths import is_data_name
from dq.lake.storage import Files, files_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
_CONSTANT = (FUNCTIONS - _OF_THE_RUN) | frozenset(_AROUND.split())
# Names in quotes, words, and what the product calls the parameter of a lambda.
_QUOTED_NAME, _WORD, _PARAMETER = re.compile(r"`(?:[^`]|``)*`"), re.compile(r"\b[A-Za-z_]\w*"), "_dq_"
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
# Texts that Spark takes for the time of the query where an instant is wanted.
_MOMENT = re.compile(r"\b(now|today|yesterday|tomorrow)\b", re.I)
# Of these the least or greatest is one value whoever compares, and JSON holds it.
_ORDERED = INTEGERS | {"decimal", "date"}
_LARGEST = 2**63


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
    return all(word.lower() in _CONSTANT or word.startswith(_PARAMETER) for word in words)


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


def rows_of(table: DataFrame, dataset: Dataset, folders: Sequence[Folder]) -> DataFrame | None:
    """The rows of these folders alone; None where Spark would take the name of one for a pattern."""
    if any(sign in unquote(folder.address) for folder in folders for sign in "*?[]{}\\"):
        return None
    schema = schema_of(table)
    addresses = [folder.address for folder in folders]
    frame = attempt(lambda: open_folders(table.sparkSession, dataset, schema, addresses))
    if isinstance(frame, Failure) or schema_of(frame) != schema:
        return None
    return frame


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
    files = parquet.files(frame, None, (), Wanted(bounds=bounds))
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
