"""`dq.reconcile`: compare two sides that should agree, row by row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.data_location import RFC_4180
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import ReadError, UsageError, nearest
from dq.contracts.types import DataType, row_type
from dq.contracts.yaml.parse import read
from dq.dataquality.clauses.coverage import JsonObject
from dq.dataquality.reconcile.columns import Terms
from dq.dataquality.reconcile.compare import Options, Side, partition_columns
from dq.dataquality.reconcile.compare import reconcile as compare
from dq.dataquality.reconcile.outcome import Reconciliation
from dq.dataquality.request import as_spark, check_partition, find_object, open_data
from dq.dataquality.spark.columnar_files import for_hadoop
from dq.dataquality.spark.dataset import FILE_FORMATS, Dataset, files_of
from dq.dataquality.spark.measure import schema_of
from dq.lake.storage import files_for
from dq.operations.data_places import located_data
from dq.operations.runtime.context import RuntimeContext, runtime_context
from dq.operations.runtime.spark import lazy_session
from dq.registry.importing import kinds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Source = object
"""A contract (its path, `FILE#OBJECT`, or loaded), the path of data (`PATH` or `FORMAT:PATH`), or a frame."""

# Folders that only a table of this format has.
_LOG_FOLDERS = {"_delta_log": "delta", "metadata": "iceberg", ".hoodie": "hudi"}
_ENDINGS = {"parq": "parquet", "jsonl": "json", "ndjson": "json"}
# The contract of frames that are not of Spark and have none.
_UNDESCRIBED = """\
{apiVersion: v3.2.0, kind: DataContract, id: frame, version: 1.0.0, status: active, schema: [{name: frame}]}
"""
_PATH_FORMATS = (*FILE_FORMATS, *_LOG_FOLDERS.values())


@dataclass(frozen=True, slots=True)
class ReconcileOutcome:
    """Comparisons, and the reason for each pair of servers that could not be compared."""

    results: tuple[Reconciliation, ...]
    errors: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq reconcile`: 3 a side could not be read, 1 two sides differ, 0 all agree."""
        if self.errors:
            return ReadError.exit_code
        return max((result.exit_code for result in self.results), default=0)

    def as_list(self) -> list[JsonObject]:
        """As JSON values: the comparisons, then entries with only an `error`."""
        entries: list[JsonObject] = [{**result.as_dict(), "error": None} for result in self.results]
        entries += [{"error": text} for text in self.errors]
        return entries


def reconcile(
    left: Source,
    right: Source | None = None,
    *,
    object: str | None = None,
    left_server: str | None = None,
    right_server: str | None = None,
    key: Sequence[str] = (),
    columns: Sequence[str] = (),
    ignore: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    tolerance: Mapping[str, Decimal | float | str] | None = None,
    partitions: Sequence[Mapping[str, str]] = (),
    since: str | None = None,
    details: bool = True,
    write_to: Path | str | None = None,
    unmasked: bool = False,
    spark: SparkSession | None = None,
    folder: Path | str | None = None,
) -> Reconciliation:
    """Compare the rows of two sides, as `dq reconcile` does.

    A side is a contract (a path, `FILE#OBJECT`, or a loaded contract) whose data is read from its server, the
    path of data (its format is recognized, or written before it: `csv:exports/orders.csv`), or a DataFrame.
    Without `right`, both sides are servers of the same contract. Text files without a contract get the types
    of the other side.

    `key` identifies a row (default: the contract's primary key); without one, whole rows are compared, with
    their number. `columns` limits the compared columns, `ignore` leaves some out; `rename` maps names on the
    left to names on the right. `tolerance` is the largest difference of numbers that are equal, by column.
    `partitions` and `since` (a value of the first partition column, inclusive) limit the rows, with values as
    in paths. Without `details`, the result only says which partitions differ, and reads less. The rows that
    differ are written to the folder `write_to` as Parquet, masked unless `unmasked`.

    NULL equals only NULL; see `dataquality.reconcile.equality` for all types. Instants are in UTC. `folder`
    replaces the working folder; its settings decide which locations may be read.

    Raises UsageError for unknown objects, servers, columns or partitions, BrokenContract, ReadError for data
    that cannot be read, and MissingTool without Spark or Java.
    """
    request = _Request(
        _terms(key, columns, ignore, rename, tolerance),
        Options((), tuple(partitions), since, details, None if write_to is None else str(write_to), unmasked),
        object,
        spark,
        Path(folder) if folder is not None else None,
    )
    if write_to is not None:
        # Spark resolves paths in the process's working folder.
        target = (
            str(write_to) if is_remote(str(write_to)) else str(_context(request).folder.absolute() / write_to)
        )
        request = replace(request, options=replace(request.options, write_to=target))
    left_source = _source(left, left_server, request, "left")
    right_source = _source(left if right is None else right, right_server, request, "right")
    if right is None and left_source == right_source:
        raise UsageError(
            "both sides are the same.", "Pass a second side, or --left-server and --right-server."
        )
    return _compare(left_source, right_source, request)


def reconcile_servers(
    contract: Source, *, server: str | None = None, object: str | None = None, **options: Any
) -> ReconcileOutcome:
    """Compare the data of a contract on `server` (default: its first) with that on every other server.

    A server that cannot be read does not stop the others. `options` are those of `reconcile`. Raises
    UsageError for a contract with only one server, and for invalid options.
    """
    path, object_name = _contract_and_object(contract)
    parsed = read(path)
    names = [candidate.server or "" for candidate in parsed.servers]
    if len(names) < 2:
        raise UsageError(f"contract {parsed.id} has only one server.", "Pass a second side.")
    reference = server or names[0]
    results, errors = [], []
    for name in names:
        if name != reference:
            try:
                results.append(
                    reconcile(
                        parsed,
                        left_server=reference,
                        right_server=name,
                        object=object or object_name,
                        **options,
                    )
                )
            except ReadError as error:
                errors.append(f"{reference} and {name}: {error.message}")
    return ReconcileOutcome(tuple(results), tuple(errors))


@dataclass(frozen=True, slots=True)
class _Request:
    terms: Terms
    options: Options
    object: str | None
    spark: SparkSession | None
    folder: Path | None


@dataclass(frozen=True, slots=True)
class _Source:
    """One side before it is opened: exactly one of a located object, a path, or a frame."""

    label: str
    contract: Contract | None = field(default=None, compare=False)
    schema_object: SchemaObject | None = field(default=None, compare=False)
    dataset: Dataset | None = None
    path: str = ""
    format: str = ""
    frame: Any = None


def _source(source: Source, server: str | None, request: _Request, side: str) -> _Source:
    if isinstance(source, Contract):
        return _contract_source(source, request.object, server, request, side)
    if not isinstance(source, str | Path):
        return _Source("the frame", frame=source)
    path, object_name = _contract_and_object(source)
    if _is_contract(path):
        return _contract_source(read(Path(path)), object_name or request.object, server, request, side)
    if server is not None:
        raise UsageError(f"{source} is a path, which has no server.", "Remove the option for its server.")
    return _path_source(str(source), request)


def _contract_and_object(source: Source) -> tuple[Any, str | None]:
    if isinstance(source, str) and "#" in source and _is_contract(source.partition("#")[0]):
        file, _, name = source.partition("#")
        return file, name.removeprefix("/schema/")
    return source, None


def _is_contract(source: Any) -> bool:
    return isinstance(source, Contract) or str(source).lower().endswith((".yaml", ".yml"))


def _contract_source(
    contract: Contract, object_name: str | None, server: str | None, request: _Request, side: str
) -> _Source:
    if server is None and len(contract.servers) > 1:
        names = ", ".join(candidate.server or "" for candidate in contract.servers)
        raise UsageError(
            f"contract {contract.id} has several servers: {names}.", f"Choose one with --{side}-server."
        )
    schema_object = find_object(contract, object_name)
    context = _context(request, [] if not Path(contract.file).exists() else [Path(contract.file)])
    dataset = located_data(context, contract, schema_object, server)
    if dataset.path is not None and not is_remote(dataset.path):
        dataset = replace(dataset, path=str(context.folder.absolute() / dataset.path))
    name = server or (contract.servers[0].server if len(contract.servers) == 1 else None)
    label = f"{contract.id}/{schema_object.name}" + (f" on {name}" if name else "")
    return _Source(label, contract, schema_object, dataset)


def _context(request: _Request, paths: Sequence[Path] = ()) -> RuntimeContext:
    return runtime_context(None, paths, request.folder)


def _path_source(text: str, request: _Request) -> _Source:
    prefix, colon, remainder = text.partition(":")
    named = prefix.lower() if colon and prefix.lower() in _PATH_FORMATS else ""
    path = remainder if named else text
    if not is_remote(path):
        path = str(_context(request).folder.absolute() / path)
    return _Source(remainder if named else text, path=path, format=named or _format_of(path))


def _format_of(path: str) -> str:
    """Return the format of a file or folder. Raises ReadError if it does not exist or is not recognized."""
    files = files_for(path)
    folders = set(files.folders(path))
    for folder, name in _LOG_FOLDERS.items():
        if folder in folders:
            return name
    # A file has nothing below.
    names = [file.name for file in files.below(path)] or [path]
    endings = {_ending(name) for name in names}
    formats = sorted(endings & set(FILE_FORMATS))
    if len(formats) == 1:
        return formats[0]
    if not formats and not files.holds(path) and files.stat(path) is None:
        raise ReadError(f"{path} does not exist.", "Check the path.")
    problem = (
        f"has files of several formats: {', '.join(formats)}" if formats else "has no file of a known format"
    )
    raise ReadError(
        f"{path} {problem}.", f"Write the format before the path, e.g. {_PATH_FORMATS[0]}:{path}."
    )


def _ending(name: str) -> str:
    parts = [
        part for part in name.lower().rpartition("/")[2].split(".")[1:] if part not in ("gz", "zst", "snappy")
    ]
    return _ENDINGS.get(parts[-1], parts[-1]) if parts else ""


def _compare(left: _Source, right: _Source, request: _Request) -> Reconciliation:
    for source in (left, right):
        if source.schema_object is not None:
            _check_names(source.schema_object, request)
    formats = {source.dataset.format if source.dataset else source.format for source in (left, right)}
    spark = (
        request.spark
        or _session_of((left, right))
        or lazy_session(_context(request), formats={name for name in formats if name})()
    )
    opened: dict[int, Side] = {}
    # Types of text files without a contract come from the other side, which is opened first.
    for source in sorted((left, right), key=_needs_types):
        other = next(iter(opened.values()), None)
        opened[id(source)] = _opened(source, right if source is left else left, other, spark)
    sides = opened[id(left)], opened[id(right)]
    key = request.terms.key or tuple(
        prop.column
        for prop in next(
            (source.schema_object.primary_key() for source in (left, right) if source.schema_object), []
        )
    )
    columns = {name.lower() for name in schema_of(sides[0].frame).names}
    ignored = {name.lower() for name in request.terms.ignored}
    key = tuple(name for name in key if request.terms.key or name.lower() in columns - ignored)
    options = replace(request.options, partitioned_by=partition_columns(*sides))
    return compare(*sides, replace(request.terms, key=key), options)


def _check_names(schema_object: SchemaObject, request: _Request) -> None:
    """Raise UsageError for a misspelt column or partition of an object, before Spark starts.

    A column that resembles none of the contract's is left to the data: the contract may not list it.
    """
    partitions: list[Mapping[str, str]] = [*request.options.partitions]
    keys = schema_object.partition_keys()
    if request.options.since is not None and keys:
        partitions.append({keys[0].column: request.options.since})
    for partition in partitions:
        check_partition(schema_object, partition)
    terms = request.terms
    names = {prop.column.lower() for prop in schema_object.properties}
    renamed = {name.lower() for pair in terms.renamed.items() for name in pair}
    for name in (*terms.key, *terms.columns, *terms.ignored, *terms.tolerance):
        similar = None if name.lower() in names | renamed else nearest(name, names)
        if similar is not None:
            raise UsageError(f"{schema_object.name} has no column {name!r}.", f"Did you mean {similar!r}?")


def _session_of(sources: Collection[_Source]) -> Any:
    return next(
        (source.frame.sparkSession for source in sources if hasattr(source.frame, "sparkSession")), None
    )


def _needs_types(source: _Source) -> bool:
    return source.format in ("csv", "json")


def _opened(source: _Source, other: _Source, other_side: Side | None, spark: SparkSession) -> Side:
    if source.frame is not None:
        described = other.schema_object or read(_UNDESCRIBED).objects[0]
        frame = open_data(as_spark(source.frame, described, spark), spark)
        return Side(source.label, frame, None, None)
    if source.dataset is not None:
        frame = open_data(source.dataset, spark)
        return Side(source.label, frame, source.dataset, source.schema_object)
    types = DataType("struct")
    if other.schema_object is not None:
        types = row_type(other.schema_object)
    elif other_side is not None and _needs_types(source):
        types = schema_of(other_side.frame)
    dataset = Dataset(Path(source.path).name, for_hadoop(source.path), source.format, None, types, ())
    if source.format in FILE_FORMATS:
        partitions = tuple(field.name for field in files_of(spark, dataset)[1])
        dataset = replace(dataset, partitions=partitions, text=RFC_4180)
    elif (kind := kinds.load().get(source.format)) is not None:
        [table] = kind.read(source.path)
        dataset = replace(dataset, partitions=tuple(column.name for column in table.partitions))
    return Side(source.label, open_data(dataset, spark), dataset, None)


def _terms(
    key: Sequence[str],
    columns: Sequence[str],
    ignore: Sequence[str],
    rename: Mapping[str, str] | None,
    tolerance: Mapping[str, Decimal | float | str] | None,
) -> Terms:
    amounts = {name: _amount(name, value) for name, value in (tolerance or {}).items()}
    return Terms(tuple(key), tuple(columns), tuple(ignore), dict(rename or {}), amounts)


def _amount(name: str, value: Decimal | float | str) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise UsageError(f"the tolerance {value!r} of {name!r} is not a number.", "Write e.g. amount=0.01.")
    return amount


_EXAMPLES = {"--tolerance": "amount=0.01", "--rename": "order_no=order_id"}


def parse_pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Parse values `NAME=VALUE` of an option. Raises UsageError for another form or a repeated name."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(
                f"invalid {option} {text!r}: expected NAME=VALUE.", f"Use e.g. {_EXAMPLES[option]}."
            )
        if name in pairs:
            raise UsageError(f"{option} has {name!r} twice.", "Remove one of them.")
        pairs[name] = value
    return pairs
