"""`dq.tables`: inspect the metadata of every table of a registry; unchanged tables only cost a listing.

Contracts are processed in batches to bound memory. A contract with a known text is not parsed, and a table
whose files, or whose log files, are unchanged is not opened.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from dq.contracts.access.access_policy import is_remote
from dq.contracts.access.data_location import other_servers
from dq.contracts.access.discovery import discover
from dq.contracts.access.files import FileRef, FileRejected, read
from dq.contracts.install import require_extras
from dq.contracts.layout import PlacedPartition
from dq.contracts.model import Contract
from dq.contracts.outcome import DqError, Finding, ReadError
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.yaml.parse import parse
from dq.dataquality.spark.dataset import locate
from dq.dataquality.table_metadata import (
    CachedMetadata,
    MetadataFacts,
    TableLocation,
    list_files,
    read_facts,
    recall,
    remember,
    schema_validator,
)
from dq.lake.storage import Storages
from dq.operations.data_places import Placements, placed_objects, placements
from dq.operations.runtime.context import RuntimeContext, call_context
from dq.store.engine import Store

# Contracts per batch, and concurrent requests to a storage.
_BATCH_SIZE, _CONCURRENCY = 200, 32


@dataclass(frozen=True, slots=True)
class TableStatus:
    """Status of a table; `changed` if its files, its contract or its facts are new."""

    table: CachedMetadata
    changed: bool

    @property
    def state(self) -> str:
        """`matching` or `mismatching`: columns and types match the contract or not; `listed`: they cannot be
        read; `unknown`: error.
        """
        facts = self.table.facts
        if facts.problem:
            return "unknown"
        return "listed" if not facts.judged else "mismatching" if facts.broken else "matching"

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        table, facts = self.table, self.table.facts
        return {
            "contract": table.contract,
            "object": table.object,
            "state": self.state,
            "path": table.place.path,
            "format": table.place.format,
            "files": facts.files,
            "bytes": facts.bytes,
            "newest": facts.newest,
            "rows": facts.rows,
            "nulls": dict(facts.nulls),
            "mismatches": list(facts.broken),
            "outside": list(facts.outside),
            "problem": facts.problem or None,
            "changed": self.changed,
        }


@dataclass(slots=True)
class TableCounts:
    """Totals: tables by state, including `refused` ones, and rows and files by metadata."""

    states: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    files: int = 0
    changed: int = 0

    def add(self, status: TableStatus | Finding) -> None:
        """Add one table or finding."""
        if isinstance(status, Finding):
            self.states["refused"] += 1
            return
        self.states[status.state] += 1
        self.changed += status.changed
        if status.table.facts.rows is not None:
            self.files += status.table.facts.files
            self.rows += status.table.facts.rows

    @property
    def exit_code(self) -> int:
        """Exit code: 0 all tables match their contracts, 1 some do not, 3 some are unknown."""
        unknown = self.states["unknown"] or self.states["refused"]
        return ReadError.exit_code if unknown else 1 if self.states["mismatching"] else 0


@dataclass(frozen=True, slots=True)
class TablesOutcome:
    """Status of every table of a registry by its metadata, findings for others, and totals."""

    tables: tuple[TableStatus, ...]
    findings: tuple[Finding, ...]
    counts: TableCounts
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq tables` ends; see `TableCounts.exit_code`."""
        return self.counts.exit_code

    def as_dict(self) -> list[dict[str, object]]:
        """Return the output of `dq tables --format json` as JSON values."""
        return [status.as_dict() for status in self.tables]


def tables(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    server: str | None = None,
    folder: Path | str | None = None,
) -> TablesOutcome:
    """Inspect the metadata of every table: files, rows, NULLs, newest file, columns and types.

    As `dq tables` does, without Spark and without reading rows. `server` is required if a contract has
    several. `folder` replaces the working folder, which has settings and store, and is the base of relative
    paths.

    Raises ReadError for a path without contracts, and MissingTool without pyarrow. A read error of a table
    is its `problem`.
    """
    require_pyarrow()
    context, places = call_context(paths, folder)
    counts, statuses, findings = TableCounts(), list[TableStatus](), list[Finding]()
    with closing(context.store()) as store:
        for status in inspect_tables(context, store, places, server):
            counts.add(status)
            if isinstance(status, Finding):
                findings.append(status)
            else:
                statuses.append(status)
    return TablesOutcome(tuple(statuses), tuple(findings), counts, tuple(context.messages.notes))


def require_pyarrow() -> None:
    """Raise MissingTool if pyarrow is not installed, before any table is inspected."""
    with require_extras("Reading Parquet footers needs pyarrow", "sample"):
        import pyarrow  # noqa: F401


def inspect_tables(
    context: RuntimeContext, store: Store, paths: Sequence[Path], server: str | None
) -> Iterator[TableStatus | Finding]:
    """Inspect every table of the contracts in force, in file order; yield findings for those that cannot be.

    Raises ReadError for a path that does not exist, or has no contract.
    """
    files = discover(paths).contracts
    storages = Storages(context.reach)
    for start in range(0, len(files), _BATCH_SIZE):
        yield from _inspect_batch(context, store, storages, files[start : start + _BATCH_SIZE], server)


def _inspect_batch(
    context: RuntimeContext, store: Store, storages: Storages, files: Sequence[FileRef], server: str | None
) -> Iterator[TableStatus | Finding]:
    texts: dict[str, tuple[str, bytes]] = {}
    salt = _location_salt(context, server)
    for file in files:
        try:
            content = read(file)
        except FileRejected as refused:
            yield refused.finding(str(file))
            continue
        texts.setdefault(hashlib.sha256(salt + content).hexdigest(), (str(file), content))
    with store.read() as tx:
        cached = recall(tx, texts)
    # Tables without a location are located again: a link may be gone, or a folder created.
    usable = {
        digest: tables for digest, tables in cached.items() if all(table.place.format for table in tables)
    }
    tables: list[CachedMetadata] = []
    contracts: dict[str, Contract] = {}
    for digest, (name, content) in texts.items():
        if digest in usable:
            tables += usable[digest]
            continue
        parsed = parse(content, name)
        blocking = [finding for finding in parsed.findings if finding.severity.blocks]
        yield from blocking
        if parsed.contract is not None and not blocking and parsed.contract.status not in NOT_IN_FORCE:
            contracts[digest] = parsed.contract
            tables += _locate_tables(context, digest, parsed.contract, server)

    def contract_of(digest: str) -> Contract:
        if digest not in contracts:
            name, content = texts[digest]
            parsed = parse(content, name).contract
            assert parsed is not None  # it was parsed when its tables were cached
            contracts[digest] = parsed
        return contracts[digest]

    placed: dict[tuple[str, str], tuple[PlacedPartition, ...]] = {}
    with store.read() as tx:
        candidates = placed_objects(tx)
        for table in tables:
            if (table.contract, table.object) in candidates:
                excluded_servers = {table.contract: other_servers(contract_of(table.digest), server)}
                placed |= placements(tx, excluded_servers, table.object)
    refreshed = _inspect_all(partial(_inspect_table, context.now(), storages, contract_of, placed), tables)
    statuses = [
        TableStatus(new, changed=new is not table or table.digest not in usable)
        for new, table in zip(refreshed, tables, strict=True)
    ]
    changed = [status.table for status in statuses if status.changed]
    if changed:
        with store.write() as tx:
            remember(tx, changed)
    yield from statuses


def _location_salt(context: RuntimeContext, server: str | None) -> bytes:
    """Return the inputs besides a contract's text that determine its data locations, for the digest."""
    reach = context.reach
    parts = (reach.folder, reach.folders, reach.roots, reach.hosts, sorted(reach.variables.items()), server)
    return f"{parts!r}\n".encode("utf-8", "surrogateescape")


def _locate_tables(
    context: RuntimeContext, digest: str, contract: Contract, server: str | None
) -> Iterator[CachedMetadata]:
    for schema_object in contract.objects:
        known_table = CachedMetadata(digest, schema_object.name, contract.key, TableLocation("", ""))
        try:
            data = locate(contract, schema_object, server, context.reach)
        except DqError as error:
            yield replace(known_table, facts=MetadataFacts(problem=error.message))
            continue
        if data.path is None:
            problem_facts = MetadataFacts(problem=f"{data} can only be read through a catalog.")
            yield replace(known_table, place=TableLocation("", data.format or "table"), facts=problem_facts)
            continue
        place = TableLocation(data.path, data.format or "", data.partitions, data.layout.template)
        yield replace(known_table, place=place)


def _inspect_all(
    inspect: Callable[[CachedMetadata], CachedMetadata], tables: Sequence[CachedMetadata]
) -> list[CachedMetadata]:
    # Threads bring no gain on local disks.
    if not any(is_remote(table.place.path) for table in tables):
        return list(map(inspect, tables))
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        return list(pool.map(inspect, tables))


def _inspect_table(
    now: datetime,
    storages: Storages,
    contract_of: Callable[[str], Contract],
    placed: Placements,
    table: CachedMetadata,
) -> CachedMetadata:
    """Return the same table if it is unchanged, else its current facts."""
    place = table.place
    if not place.path:
        return table
    try:
        files = storages.of(place.path)
        listing = list_files(files, place, now, placed.get((table.contract, table.object), ()))
        if listing.print and listing.print == table.print:
            return table
        contract = contract_of(table.digest)
        schema_object = contract.object(table.object)
        assert schema_object is not None  # the text is the same
        return replace(
            table,
            print=listing.print,
            facts=read_facts(files, listing, place, schema_validator(contract, schema_object)),
        )
    except Exception as error:  # noqa: BLE001  # one guard per table: no file and no storage may end the look
        problem = error.message if isinstance(error, DqError) else f"{place.path}: {type(error).__name__}"
    unknown = replace(table, print="", facts=MetadataFacts(problem=problem))
    return table if unknown == table else unknown
