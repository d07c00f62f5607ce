"""`dq.find_erasure`: find the rows of people in every physical file of the tables of a registry."""

from __future__ import annotations

import base64
import csv
import datetime as dt
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dq.contracts.access import files
from dq.contracts.access.access_policy import has_pattern, is_remote, parse_location
from dq.contracts.access.data_location import RFC_4180, is_lake, resolve, text_format
from dq.contracts.identity import EXACT, TEXT, identity_names, identity_properties, normalized
from dq.contracts.install import require_extras
from dq.contracts.model import Contract, SchemaObject, Server
from dq.contracts.outcome import DqError, Finding, ReadError, UsageError, ValueProblem, iso, suggestion
from dq.dataquality.erasure.files import (
    IdentityColumn,
    SearchedTable,
    changed_files,
    identity_column,
    list_table,
)
from dq.dataquality.erasure.keys import Keys
from dq.dataquality.erasure.model import FileResult, Gap, Hit, Means, PhysicalFile, Role, SearchOutcome
from dq.dataquality.erasure.passes import profile_files, search_listing
from dq.dataquality.erasure.search import ColumnProfile, FoundRow, keys_in_record
from dq.dataquality.model.column import columns as columns_of
from dq.dataquality.quarantine import CHECKED_AT, RULES
from dq.dataquality.results import check_run
from dq.lake.iceberg import local_path
from dq.lake.storage import Storages
from dq.operations.data_places import placements
from dq.operations.registry_files import LoadedContracts, load
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.operations.runtime.spark import session
from dq.store.schema import complete_metadata

MOST_KEY_BYTES = 256 << 20


# Keys from files.


def read_keys(path: Path | str, identity: str) -> Keys:
    """Read the keys of a file: the column named like the identity of a CSV file, or one key per line.

    Empty lines are left out. Raises UsageError for a file without keys, a key that has no character that
    counts, and a file with several columns and none of this name; no message has a key.
    """
    try:
        content = files.read(Path(path), limit=MOST_KEY_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8.", "Save the keys as UTF-8.") from error
    lines = content.splitlines()
    header = next(csv.reader(lines[:1]), [])
    names = [name.strip().lower() for name in header]
    if identity.lower() in names:
        at = names.index(identity.lower())
        values = [row[at] for row in csv.reader(io.StringIO(content)) if len(row) > at][1:]
    elif len(header) > 1:
        raise UsageError(
            f"{path} has several columns, and none is named {identity}.",
            f"Name the column with the keys {identity} in the first line, or write one key per line.",
        )
    else:
        values = lines
    keys = tuple(value for value in values if value.strip())
    blank = [number for number, key in enumerate(keys, 1) if not normalized(key, TEXT)]
    if blank:
        raise UsageError(f"{path}: key {blank[0]} is blank.", "Remove it.")
    if not keys:
        raise UsageError(f"{path} has no keys.", "Write one key per line.")
    return Keys(keys)


# Tables with an identity.


def searched_tables(
    context: RuntimeContext,
    contracts: Sequence[Contract],
    identity: str,
    also: Sequence[str] = (),
) -> tuple[list[SearchedTable], list[Gap]]:
    """Return the tables with columns of this identity on every server, and gaps for those not in a lake.

    `also` are further folders, e.g. of quarantined rows; they are searched for all columns.

    Raises UsageError if no contract has the identity.
    """
    tables: list[SearchedTable] = []
    gaps: list[Gap] = []
    for contract in contracts:
        for schema_object in contract.objects:
            columns = _identity_columns(schema_object, identity)
            if columns:
                for server in contract.servers:
                    _add_table(context, contract, schema_object, server, columns, tables, gaps)
                if not contract.servers:
                    name = f"{contract.key}/{schema_object.name}"
                    gaps.append(Gap(name, name, "its contract has no server"))
    if not tables and not gaps:
        declared = sorted({name for contract in contracts for name in identity_names(contract)})
        hint = "Add customProperties: [{property: identity, value: NAME}] to its columns."
        raise UsageError(f"no contract has the identity {identity!r}.", suggestion(identity, declared, hint))
    every = tuple({str(column): column for table in tables for column in table.columns}.values())
    described = frozenset({RULES, CHECKED_AT}).union(*(table.described for table in tables))
    for folder in also:
        name = f"--also {folder}"
        tables.append(SearchedTable(name, _absolute(context, folder), "", every, described))
    return tables, gaps


def _identity_columns(schema_object: SchemaObject, identity: str) -> tuple[IdentityColumn, ...]:
    column_by_property = {id(prop): column for prop, column in columns_of(schema_object)}
    columns = []
    for prop, normalize in identity_properties(schema_object, identity):
        # Writers pad texts of CHAR.
        padded = normalize == EXACT and re.match(r"char\b", prop.physical_type or "", re.IGNORECASE)
        columns.append(identity_column(column_by_property[id(prop)], TEXT if padded else normalize))
    return tuple(columns)


def _add_table(
    context: RuntimeContext,
    contract: Contract,
    schema_object: SchemaObject,
    server: Server,
    columns: tuple[IdentityColumn, ...],
    tables: list[SearchedTable],
    gaps: list[Gap],
) -> None:
    name = f"{contract.key}/{schema_object.name}@{server.server}"
    try:
        if not is_lake(server):
            raise UsageError(f"dq cannot list the files of a server of type {server.type}.", "")
        place = resolve(contract, schema_object, server.server, context.reach)
        address = parse_location(place.path) if place.path else None
        if address is None or isinstance(address, ValueProblem):
            raise UsageError("only its catalog knows where its files are.", "")
        if any(map(has_pattern, address.segments)):
            raise UsageError("its location is a pattern, which says nothing of other files.", "")
        partitions = tuple(prop.column for prop in schema_object.partition_keys())
        tables.append(
            SearchedTable(
                name,
                _absolute(context, place.path),
                place.format,
                columns,
                frozenset(prop.column.lower() for prop in schema_object.properties),
                tuple(prop.column for prop in schema_object.properties if prop.column not in partitions),
                partitions,
                place.layout,
                text_format(server) if place.format in ("csv", "json") else RFC_4180,
                tuple(_places(context, contract, schema_object, server)),
            )
        )
    except DqError as error:
        gaps.append(Gap(name, server.server, error.message))


def _places(
    context: RuntimeContext, contract: Contract, schema_object: SchemaObject, server: Server
) -> Iterator[tuple[str, Role]]:
    """Yield the folders outside of a table in which its partitions were published, or staged for an audit."""
    if not context.has_store():
        return
    excluded = frozenset(other.server for other in contract.servers if other is not server)
    with closing(context.store()) as store, store.read() as tx:
        placed = placements(tx, {contract.key: excluded}, schema_object.name)
        query = sa.select(check_run.c.staged).distinct()
        query = query.where(check_run.c.contract == contract.key, check_run.c.object == schema_object.name)
        staged = [row.staged for row in tx.execute(query.where(check_run.c.staged.is_not(None)))]
    for partition in placed.get((contract.key, schema_object.name), ()):
        yield _absolute(context, partition.folder), Role.CURRENT
    for folder in sorted(set(staged)):
        # A branch of an Iceberg table is staged in the table itself.
        path = _absolute(context, folder)
        if "/" in folder and Storages(context.reach).of(path).holds(path):
            yield path, Role.STAGED


def _absolute(context: RuntimeContext, path: str) -> str:
    return path if is_remote(path) else str(context.folder.absolute() / local_path(path))


# The search.


def search_registry(
    context: RuntimeContext,
    contracts: Sequence[Contract],
    keys: Keys,
    identity: str,
    *,
    also: Sequence[str] = (),
    with_rows: bool = False,
) -> tuple[SearchOutcome, Mapping[str, Sequence[FoundRow]]]:
    """Search every physical file of the tables with an identity for keys, and dq's own results.

    Returns the outcome, and the rows of keys by table (empty without `with_rows`). Raises UsageError if no
    contract has the identity.
    """
    started = context.now()
    tables, gaps = searched_tables(context, contracts, identity, also)
    storages = Storages(context.reach)
    results: list[FileResult] = []
    rows: dict[str, Sequence[FoundRow]] = {}
    covered: dict[str, tuple[str, ...]] = {}
    progress = context.messages.progress(len(tables), "searching")
    try:
        for table in tables:
            with progress.step(table.name):
                listing = list_table(storages.of(table.location), table)
                search = search_listing(
                    listing, keys, with_rows=with_rows, spark=partial(session, context, formats=())
                )
                search.gaps += changed_files(listing, list_table(storages.of(table.location), table))
            results += search.files
            gaps += dict.fromkeys(search.gaps)
            rows[table.name] = search.rows
            covered[table.name] = tuple(map(str, listing.table.columns))
    finally:
        progress.close()
    results += _search_store(context, keys, tables)
    outcome = SearchOutcome(identity, len(keys), covered, tuple(results), tuple(gaps), started, context.now())
    return outcome, rows


def _search_store(
    context: RuntimeContext, keys: Keys, tables: Sequence[SearchedTable]
) -> Iterator[FileResult]:
    """Yield a result for each table of dq's store with texts or documents, which may quote values of data."""
    if not context.has_store():
        return
    columns = tuple({str(column): column for table in tables for column in table.columns}.values())
    with closing(context.store()) as store, store.read() as tx:
        for table in complete_metadata().sorted_tables:
            texts = [column for column in table.columns if isinstance(column.type, sa.String | sa.JSON)]
            if texts:
                yield _search_store_table(tx, table.name, texts, keys, columns)


def _search_store_table(
    tx: sa.Connection,
    name: str,
    texts: Sequence[sa.Column[Any]],
    keys: Keys,
    columns: Sequence[IdentityColumn],
) -> FileResult:
    hit_rows: Counter[tuple[int, str]] = Counter()
    count = rows = 0
    for row in tx.execute(sa.select(*texts)):
        count += 1
        hits = {
            (position, column.name)
            for column, value in zip(texts, row, strict=True)
            if value is not None
            for position in keys_in_record(keys, columns, value, with_words=True)
        }
        hit_rows.update(hits)
        rows += bool(hits)
    file = PhysicalFile("dq store", name, count, Role.RESULTS)
    row_hits = tuple(Hit(key, column, number) for (key, column), number in sorted(hit_rows.items()))
    return FileResult(file, Means.SCAN, 0, row_hits, rows)


# Outcomes.


@dataclass(frozen=True, slots=True)
class FindErasureOutcome:
    """The rows of people, without the keys; `written` are the files with these rows, by table."""

    search: SearchOutcome
    written: Mapping[str, str]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows with keys, over all files; a copy of a row in another file counts again, a row with
        several keys once.
        """
        return sum(result.rows for result in self.search.files)

    @property
    def exit_code(self) -> int:
        """Exit code of `dq erasure find`: 3 something was not searched, else 0."""
        return ReadError.exit_code if self.search.gaps or self.findings else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq erasure find --format json` as JSON values."""
        return {
            **outcome_as_dict(self.search),
            "rows": self.rows,
            "written": dict(self.written),
            "findings": [str(finding) for finding in self.findings],
        }


def outcome_as_dict(search: SearchOutcome) -> dict[str, object]:
    """Return a search as JSON values. Keys are named by their positions in the file of keys."""
    return {
        "identity": search.identity,
        "keys": search.keys,
        "started": iso(search.started),
        "finished": iso(search.finished),
        "tables": {name: list(columns) for name, columns in search.tables.items()},
        "bytes_by_means": bytes_by_means(search),
        "hits": [
            {
                "table": result.file.table,
                "path": result.file.path,
                "role": result.file.role,
                "key": hit.key,
                "column": hit.column,
                "rows": hit.rows,
            }
            for result in search.files
            for hit in result.hits
        ],
        "gaps": [gap_as_dict(gap) for gap in search.gaps],
    }


def bytes_by_means(search: SearchOutcome) -> dict[str, dict[str, int]]:
    """Return the number of files that each means cleared, their bytes, and the bytes that were read."""
    totals: dict[str, dict[str, int]] = {}
    for result in search.files:
        total = totals.setdefault(result.means, {"files": 0, "bytes": 0, "bytes_read": 0})
        total["files"] += 1
        # A count of rows stands for the size of the store's tables.
        total["bytes"] += 0 if result.file.role is Role.RESULTS else result.file.size
        total["bytes_read"] += result.bytes_read
    return totals


def find_erasure(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    keys: Path | str,
    identity: str,
    out: Path | str,
    also: Sequence[str] = (),
    folder: Path | str | None = None,
) -> FindErasureOutcome:
    """Find the rows of people in every physical file of the tables of a registry, as `dq erasure find` does.

    Args:
        paths: Contract files or folders.
        keys: File of keys; see `read_keys`.
        identity: Name of the identity that the keys are, e.g. `customer.email`.
        out: New or empty folder for the rows, one file of JSON lines per table; only this user can read it.
        also: Further folders to search, e.g. of quarantined rows.
        folder: Replaces the working folder, which has settings and store, and is the base of relative paths.

    Raises UsageError for keys that cannot be used, an identity that no contract has, or a folder that is not
    empty, and ReadError for a path without contracts. Whatever cannot be searched is a gap.
    """
    _require_pyarrow()
    context, places = call_context(paths, folder)
    loaded = load_identified(context, places, identity)
    key_values = read_keys(context.folder / keys, identity)
    target = files.private_folder(context.folder / out)
    search, rows = search_registry(context, loaded.contracts, key_values, identity, also=also, with_rows=True)
    written = {}
    for table, table_rows in rows.items():
        if table_rows:
            name = f"{re.sub('[^A-Za-z0-9_.-]+', '_', table).strip('._')}.jsonl"
            files.create_private(target / name, "".join(f"{_row_text(row)}\n" for row in table_rows).encode())
            written[table] = str(target / name)
    outcome = FindErasureOutcome(search, written, tuple(loaded.findings), tuple(context.messages.notes))
    summary = json.dumps(outcome.as_dict(), indent=2, ensure_ascii=False).encode()
    files.create_private(target / "summary.json", summary)
    return outcome


def load_identified(context: RuntimeContext, places: Sequence[Path], identity: str) -> LoadedContracts:
    """Return the contracts. Raises ReadError if some are invalid, and no other one has the identity."""
    loaded = load(places, context.note)
    if loaded.findings and not any(identity in identity_names(contract) for contract in loaded.contracts):
        raise ReadError(
            f"no valid contract has the identity {identity!r}, and some contracts are invalid.",
            "Fix them, then run 'dq validate'.",
            [str(finding) for finding in loaded.findings],
        )
    return loaded


def _require_pyarrow() -> None:
    with require_extras("Searching files needs pyarrow", "sample"):
        import pyarrow  # noqa: F401


def _row_text(row: FoundRow) -> str:
    document = {"keys": row.keys, "columns": row.columns, "path": row.path, "row": row.row}
    return json.dumps(document, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value)


# Columns that would benefit from a Bloom filter.


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """The Parquet files of a table by how a search can skip a column.

    `bytes` are those of its compressed chunks, `with_bloom` and `with_dictionary` the part of them that has a
    Bloom filter or a dictionary of all values. `settings` are those with which writers add filters; without
    any, `reason` is why they would not help.
    """

    table: str
    column: str
    files: int
    bytes: int
    with_bloom: int
    with_dictionary: int
    settings: tuple[str, ...]
    reason: str

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlanErasureOutcome:
    """Bytes of an identity's columns that a search can skip; `gaps` are tables and files not looked at."""

    columns: tuple[PlannedColumn, ...]
    gaps: tuple[Gap, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of `dq erasure plan`: 3 something was not looked at, else 0."""
        return ReadError.exit_code if self.gaps or self.findings else 0

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq erasure plan --format json` as JSON values."""
        return {
            "columns": [column.as_dict() for column in self.columns],
            "gaps": [gap_as_dict(gap) for gap in self.gaps],
            "findings": [str(finding) for finding in self.findings],
        }


def gap_as_dict(gap: Gap) -> dict[str, object]:
    """Return a gap as JSON values."""
    return {"table": gap.table, "subject": gap.what, "reason": gap.why}


def plan_erasure(
    paths: Path | str | Sequence[Path | str] = ".", *, identity: str, folder: Path | str | None = None
) -> PlanErasureOutcome:
    """Show which columns would benefit from Bloom filters, as `dq erasure plan` does; reads footers only.

    Args:
        paths: Contract files or folders.
        identity: Name of the identity, e.g. `customer.email`.
        folder: Replaces the working folder, which has settings and store, and is the base of relative paths.

    Raises UsageError for an identity that no contract has, and ReadError for a path without contracts.
    """
    _require_pyarrow()
    context, places = call_context(paths, folder)
    loaded = load_identified(context, places, identity)
    tables, gaps = searched_tables(context, loaded.contracts, identity)
    storages = Storages(context.reach)
    planned: list[PlannedColumn] = []
    for table in tables:
        listing = list_table(storages.of(table.location), table)
        profiles, unread = profile_files(listing)
        gaps += [*listing.gaps, *unread]
        planned += [_planned(table, column, profiles[str(column)]) for column in listing.table.columns]
    return PlanErasureOutcome(tuple(planned), tuple(gaps), tuple(loaded.findings))


def _planned(table: SearchedTable, column: IdentityColumn, profile: ColumnProfile) -> PlannedColumn:
    reason = ""
    if not profile.bytes:
        reason = "no Parquet file of the table has it"
    elif profile.uncovered_bytes == 0:
        reason = "its files have filters, or dictionaries of all values"
    elif column.normalize == EXACT or profile.has_one_spelling:
        if not profile.can_have_filter:
            reason = "dq reads no Bloom filters of its type"
    else:
        reason = (
            f"a key has several spellings (normalize: {column.normalize}), and a filter speaks of one; "
            "declare normalize: exact if its writers normalize it"
        )
    path = ".".join(str(step) for step in column.column.steps if isinstance(step, str))
    settings = () if reason else _SETTINGS.get(table.format, _SETTINGS["parquet"])
    return PlannedColumn(
        table.name,
        str(column),
        profile.files,
        profile.bytes,
        profile.bloom_bytes,
        profile.dictionary_bytes,
        tuple(setting.format(column=path) for setting in settings),
        reason,
    )


_SPARK = (
    "parquet.bloom.filter.enabled#{column}=true",
    "parquet.bloom.filter.expected.ndv#{column}=<distinct values per row group>",
)
# Settings by the format of the table: options of Spark's writer, or properties of the table.
_SETTINGS = {
    "parquet": _SPARK,
    "delta": _SPARK,
    "hudi": _SPARK,
    "iceberg": ("write.parquet.bloom-filter-enabled.column.{column}=true",),
}
