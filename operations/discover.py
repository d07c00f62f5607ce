"""`dq.discover`: every table of catalogs and lakes, with its contract or none, its drift and likely copies.

A table whose files are unchanged is not opened again: what was read of it is cached in the store.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from dq.contracts.access.access_policy import AccessPolicy, is_remote, parse_location
from dq.contracts.access.data_location import is_lake, resolve
from dq.contracts.access.discovery import discover_below
from dq.contracts.access.files import printable_path
from dq.contracts.lineage import database_name, table_folder, table_name
from dq.contracts.model import Contract
from dq.contracts.outcome import DqError, Finding, ReadError, UsageError, ValueProblem, pluralize
from dq.operations.discover_branches import BranchBy, DraftBranch
from dq.operations.discover_branches import open_branches as write_drafts
from dq.operations.discovered_folders import FolderPart, list_roots, read_parts
from dq.operations.discovered_table import ContractedObject, DiscoveredTable, LikelyCopy
from dq.operations.reads import TableReads, count_reads
from dq.operations.registry_files import LoadedContracts, load, parse_policy, read_policy_text
from dq.operations.runtime.context import RuntimeContext, call_context, registry_root
from dq.operations.runtime.spark import open_named_catalog
from dq.registry.catalog import Catalog, LiveTable
from dq.registry.catalogs import catalogs
from dq.registry.importing.drift import object_differences
from dq.registry.importing.sources import table_from_spec
from dq.registry.table import CONTRACT, OBJECT, VIEW, TableSpec, contract_owner, fold_location
from dq.registry.table_copies import TableSketch, columns_of, find_copies
from dq.registry.table_coverage import (
    MAX_UNCOVERED,
    Coverage,
    CoverageShortfall,
    DiscoveryRun,
    UncoveredTable,
    record_run,
    total_coverage,
)
from dq.store.engine import Store
from dq.validators.policy.policy import CoverageGoal

# Properties of a catalog's table that name its owner and its domain, in order.
_OWNER_KEYS = ("dq.owner", "owner", "team", "owned_by", "data_owner")
# Owners that engines write into a catalog by themselves.
_PROGRAMS = frozenset({"owner", "hadoop", "hive", "root", "spark", "livy", "ec2-user"})
_DOMAIN_KEYS = ("dq.domain", "domain", "data_domain")


@dataclass(frozen=True, slots=True)
class DiscoverOutcome:
    """Tables, those without a contract and most read first, errors of sources and contracts, and branches.

    `shortfalls` are the domains whose coverage is below the minimum of the policy.
    """

    tables: tuple[DiscoveredTable, ...]
    shortfalls: tuple[CoverageShortfall, ...] = ()
    errors: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    branches: tuple[DraftBranch, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> Coverage:
        """Coverage of all tables."""
        return total_coverage("", map(_coverage, self.tables))

    @property
    def domains(self) -> tuple[Coverage, ...]:
        """Coverage by domain, in order of the names."""
        return _by(self.tables, [table.domain for table in self.tables])

    @property
    def owners(self) -> tuple[Coverage, ...]:
        """Coverage by owner, in order of the names."""
        return _by(self.tables, [table.owner for table in self.tables])

    @property
    def exit_code(self) -> int:
        """Exit code of `dq discover`: 0 all tables match their contracts, 1 some differ or a domain has less
        coverage than the policy requires, 3 some cannot be read.
        """
        if self.errors or self.findings or any(table.problem for table in self.tables):
            return ReadError.exit_code
        return int(bool(self.shortfalls) or any(table.drift for table in self.tables))

    def as_dict(self) -> dict[str, object]:
        """Return the output of `dq discover --format json` as JSON values."""
        return {
            "tables": [table.as_dict() for table in self.tables],
            "total": self.total.as_dict(),
            "domains": [coverage.as_dict() for coverage in self.domains],
            "owners": [coverage.as_dict() for coverage in self.owners],
            "shortfalls": [shortfall.as_dict() for shortfall in self.shortfalls],
            "errors": [printable_path(error) for error in self.errors],
            "findings": [finding.as_dict() for finding in self.findings],
            "branches": [branch.as_dict() for branch in self.branches],
        }


def _coverage(table: DiscoveredTable) -> Coverage:
    is_draft = table.contracted is not None and not table.is_covered
    return Coverage("", 1, int(table.is_covered), int(is_draft), table.bytes)


def _by(tables: Sequence[DiscoveredTable], names: Sequence[str]) -> tuple[Coverage, ...]:
    groups: dict[str, Coverage] = {}
    for name, table in zip(names, tables, strict=True):
        groups[name] = groups.get(name, Coverage(name)) + _coverage(table)
    return tuple(groups[name] for name in sorted(groups))


@dataclass(frozen=True, slots=True)
class DiscoverRequest:
    """Sources, and the registry with the contracts; see `discover` for the fields."""

    sources: tuple[str, ...]
    registry: Path = Path()
    reads: str = ""
    role_arn: str = ""
    catalog_id: str = ""
    open_branches: bool = False
    by: BranchBy = BranchBy.TABLE
    limit: int = 50


def discover(
    sources: str | Path | Sequence[str | Path],
    *,
    registry: Path | str = ".",
    reads: Path | str = "",
    role_arn: str = "",
    catalog_id: str = "",
    open_branches: bool = False,
    by: str = "table",
    limit: int = 50,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> DiscoverOutcome:
    """List every table of lakes and catalogs, with its contract or none, as `dq discover` does.

    A source is a folder or URI of a lake, or a catalog with a database: `glue://sales`, `hive://…`,
    `iceberg://…` or `local://…`; without a database, all of them. `registry` is a folder or file with
    contracts. `reads` is a Parquet or CSV file with the columns `table` or `path`, `reader` and optionally
    `count`. With `open_branches`, contracts in draft of the first `limit` tables without one are committed on
    branches of the registry, one `by` table or domain. `folder` replaces the working folder, which has
    settings and store; `now` is an aware instant.

    Raises UsageError for an invalid source, and ReadError for a registry or a file of reads that cannot be
    read. What cannot be read of a source is in `errors`, and of a table in its `problem`.
    """
    context, (place,) = call_context(registry, folder, now)
    listed = [sources] if isinstance(sources, str | Path) else sources
    if by not in list(BranchBy):
        raise UsageError(f"by={by!r} is unknown.", f"Choose one of {', '.join(BranchBy)}.")
    texts = tuple(map(str, listed))
    request = DiscoverRequest(
        texts, place, str(reads), role_arn, catalog_id, open_branches, BranchBy(by), limit
    )
    outcome = run(context, request)
    return replace(outcome, notes=tuple(context.messages.notes))


def run(context: RuntimeContext, request: DiscoverRequest) -> DiscoverOutcome:
    """Run the operation. Raises as `discover`."""
    databases, roots = _split_sources(request.sources)
    goal = _coverage_goal(request)
    loaded = _load(context, request.registry)
    objects = _Objects(context, loaded.contracts)
    errors: list[str] = []
    with closing(context.store()) as store:
        broken: list[DiscoveredTable] = []
        live_tables = list(_catalog_tables(context, store, request, databases, errors, broken))
        live_tables = _with_tags(context, request, live_tables)
        locations = [_key(context, live.spec.location) for _, live in live_tables if live.spec.location]
        claimed = {*objects.by_location, *locations}
        places = {_key(context, root): root for root in roots}
        folders, root_errors = list_roots(context, places, locations, claimed)
        errors += root_errors
        layouts = {key: layout for key, (_, layout) in objects.by_location.items()}
        current = {
            _key(context, live.spec.location): metadata
            for _, live in live_tables
            if (metadata := _metadata_location(live))
        }
        folders = [replace(folder, metadata_location=current.get(folder.key, "")) for folder in folders]
        parts = read_parts(context, store, folders, layouts)
    tables = [
        _with_contract(table, objects, _key(context, table.location))
        for table in (*_merge(context, live_tables, parts), *broken)
    ]
    if request.reads:
        tables = _count_table_reads(context, request.reads, tables)
    tables.sort(key=_order)
    listed = tuple(_with_copies(tables))
    branches: Sequence[DraftBranch] = ()
    if request.open_branches:
        branches = write_drafts(context, listed, request.registry, request.by, request.limit)
    shortfalls = tuple(_shortfalls(context, goal, listed)) if goal is not None else ()
    outcome = DiscoverOutcome(listed, shortfalls, tuple(errors), tuple(loaded.findings), tuple(branches))
    with closing(context.store()) as store:
        record_run(store, _discovery_run(context, request, outcome))
    return outcome


def _coverage_goal(request: DiscoverRequest) -> CoverageGoal | None:
    """Return the coverage that the registry's policy requires, or None.

    Raises UsageError for an invalid policy, and for one about read tables without a file of reads.
    """
    goal = parse_policy(read_policy_text(registry_root(request.registry), None)).coverage
    if goal is not None and goal.of_read and not request.reads:
        raise UsageError(
            "the policy requires a coverage of the tables that are read, and no reads are known.",
            "Pass --reads, or remove 'of: read' from the policy.",
        )
    return goal


def _shortfalls(
    context: RuntimeContext, goal: CoverageGoal, tables: Sequence[DiscoveredTable]
) -> Iterator[CoverageShortfall]:
    """Yield the domains below their minimum; note domains of the policy that have no table."""
    counted = [table for table in tables if not goal.of_read or (table.reads and table.reads.count)]
    domains = _by(counted, [table.domain for table in counted])
    for coverage in domains:
        minimum = goal.minimum_of(coverage.name)
        if minimum is not None and coverage.share is not None and coverage.share < minimum:
            yield CoverageShortfall(coverage, minimum)
    for name in sorted(goal.domains.keys() - {coverage.name for coverage in domains}):
        context.note(f"The policy requires a coverage of the domain {name!r}, which has no table here.")


def _discovery_run(
    context: RuntimeContext, request: DiscoverRequest, outcome: DiscoverOutcome
) -> DiscoveryRun:
    uncovered = (
        UncoveredTable(
            printable_path(table.title),
            table.domain,
            table.owner,
            table.format,
            table.bytes,
            table.reads.count if table.reads else None,
        )
        for table in outcome.tables
        if table.contracted is None
    )
    return DiscoveryRun(
        context.now(),
        tuple(map(printable_path, request.sources)),
        len(outcome.errors) + len(outcome.findings),
        outcome.domains,
        outcome.owners,
        outcome.shortfalls,
        tuple(islice(uncovered, MAX_UNCOVERED)),
    )


def _order(table: DiscoveredTable) -> tuple[bool, int, int, str]:
    reads = table.reads.count if table.reads else 0
    return table.contracted is not None, -reads, -table.bytes, table.title


# A catalog without both slashes.
_CATALOG_SOURCE = re.compile(r"([a-z]+):/?([^/]*)")


def _split_sources(sources: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return catalogs, each with a database or "", and roots of lakes. Raises UsageError."""
    if not sources:
        raise UsageError("no source given.", "Pass folders, URIs, or catalogs, e.g. glue://sales s3://lake.")
    databases: list[tuple[str, str]] = []
    roots: list[str] = []
    for source in sources:
        kind, separator, database = source.partition("://")
        if separator and kind in catalogs():
            if "/" in database.rstrip("/"):
                raise UsageError(f"{source!r} is not a database.", f"Write {kind}://DATABASE, or {kind}://.")
            databases.append((kind, database.rstrip("/")))
        elif (match := _CATALOG_SOURCE.fullmatch(source)) and match[1] in catalogs():
            raise UsageError(f"{source!r} is not a database.", f"Write {match[1]}://{match[2]}.")
        else:
            roots.append(source.rstrip("/") or source)
    return list(dict.fromkeys(databases)), list(dict.fromkeys(roots))


def _load(context: RuntimeContext, registry: Path) -> LoadedContracts:
    if registry.is_dir() and not discover_below(registry).contracts:
        place = "The working folder" if registry == Path() else str(registry)
        context.note(
            f"{place} contains no contract, so all tables are listed without one. --registry names another"
            " folder."
        )
        return LoadedContracts([], [])
    return load([registry], context.note)


def _key(context: RuntimeContext, location: str) -> str:
    """Return the one spelling of a location: a URI without a final slash, or a real path."""
    folded = fold_location(location)
    return folded if is_remote(folded) else os.path.realpath(context.folder / folded)


@dataclass(frozen=True, slots=True)
class _AnyLocation:
    """Location policy for locations that are compared, never opened: accepts every well-formed one."""

    reach: AccessPolicy

    def value(self, name: str, default: str | None) -> str | ValueProblem:
        return self.reach.value(name, default)

    def validate(self, text: str) -> str | ValueProblem:
        address = parse_location(text)
        return address if isinstance(address, ValueProblem) else text


class _Objects:
    """Objects of contracts by the locations and by the catalog names of their tables."""

    def __init__(self, context: RuntimeContext, contracts: Sequence[Contract]) -> None:
        # Locations are only compared: what is read below them is what the caller names.
        policy = _AnyLocation(context.reach)
        self.by_location: dict[str, tuple[ContractedObject, str]] = {}
        self.by_name: dict[tuple[str, str], ContractedObject] = {}
        self.by_id: dict[tuple[str, str], ContractedObject] = {}
        entries = [
            ContractedObject(contract, schema_object)
            for contract in contracts
            for schema_object in contract.objects
        ]
        for entry in sorted(entries, key=lambda entry: entry.order):
            self.by_id.setdefault((entry.contract.id, entry.object.name), entry)
            for server in filter(is_lake, entry.contract.servers):
                try:
                    place = resolve(entry.contract, entry.object, server.server, policy)
                except DqError as error:
                    context.note(f"{entry.contract.id}: {error.message}")
                    continue
                if place.path:
                    key = _key(context, table_folder(place.path))
                    self.by_location.setdefault(key, (entry, place.layout.template))
                database = database_name(entry.contract, place.database)
                self.by_name.setdefault((database.lower(), table_name(entry.object).lower()), entry)

    def find(self, key: str, spec: TableSpec | None) -> ContractedObject | None:
        """Return the object of a table at this location or with this entry in a catalog."""
        if key in self.by_location:
            return self.by_location[key][0]
        if spec is None:
            return None
        marked = self.by_id.get((spec.parameter(CONTRACT), spec.parameter(OBJECT)))
        return marked or self.by_name.get(spec.key)


def _catalog_tables(
    context: RuntimeContext,
    store: Store,
    request: DiscoverRequest,
    databases: Sequence[tuple[str, str]],
    errors: list[str],
    broken: list[DiscoveredTable],
) -> Iterator[tuple[str, LiveTable]]:
    """Yield the catalog and each of its tables; errors are added to `errors`, and tables that cannot be read
    to `broken`.
    """
    done: set[tuple[str, str]] = set()
    for kind, name in databases:
        try:
            catalog = open_named_catalog(context, store, kind, request.role_arn, request.catalog_id)
            written = name if catalogs()[kind].is_case_sensitive else name.lower()
            names = [written] if name else catalog.databases()
        except UsageError:
            raise
        except DqError as error:
            errors.append(f"{kind}://{name}: {error}")
            continue
        for database in names:
            if (kind, database) in done:
                continue
            done.add((kind, database))
            try:
                with context.messages.step(f"{kind}://{database}"):
                    tables, unreadable = _read_tables(catalog, database)
            except DqError as error:
                errors.append(f"{kind}://{database}: {error}")
                continue
            broken += [
                DiscoveredTable("", "", (f"{kind}:{database}.{broken_name}".lower(),), problem=problem)
                for broken_name, problem in unreadable.items()
            ]
            if name and not tables and not unreadable:
                errors.append(f"{kind}://{database}: the catalog has no table in this database.")
            yield from ((kind, table) for table in tables)


def _with_tags(
    context: RuntimeContext, request: DiscoverRequest, live_tables: list[tuple[str, LiveTable]]
) -> list[tuple[str, LiveTable]]:
    """Return the tables; those of Glue with the owner and domain in Lake Formation's tags of their database.

    A property of the table precedes a tag.
    """
    databases = {live.spec.database for kind, live in live_tables if kind == "glue"}
    if not databases:
        return live_tables
    from dq.registry.aws.lake_formation import connect_lake

    try:
        lake = connect_lake(request.role_arn, request.catalog_id)
        defined = [name for name in (*_OWNER_KEYS, *_DOMAIN_KEYS) if lake.tag_values(name)]
        tags = {database: lake.database_tags(database) for database in databases} if defined else {}
    except DqError as error:
        context.note(f"Owners and domains in Lake Formation's tags are left out: {error.message}")
        return live_tables
    tagged = []
    for kind, live in live_tables:
        own = tags.get(live.spec.database, {}) if kind == "glue" else {}
        parameters = (*((name, own[name]) for name in defined if name in own), *live.spec.parameters)
        tagged.append((kind, replace(live, spec=replace(live.spec, parameters=parameters))))
    return tagged


def _metadata_location(live: LiveTable) -> str:
    """Return the current metadata file of an Iceberg table; Glue and Hive keep it in a property."""
    return live.metadata_location or live.spec.parameter("metadata_location")


def _read_tables(catalog: Catalog, database: str) -> tuple[list[LiveTable], dict[str, str]]:
    """Return the tables of a database, and the problems of those that cannot be read by their names."""
    try:
        return catalog.tables(database), {}
    except DqError:
        names = catalog.table_names(database)
    tables: list[LiveTable] = []
    problems: dict[str, str] = {}
    for name in names:
        try:
            table = catalog.read(database, name)
        except DqError as error:
            problems[name] = error.message
        else:
            tables += [] if table is None else [table]
    return tables, problems


def _merge(
    context: RuntimeContext,
    live_tables: Sequence[tuple[str, LiveTable]],
    parts: Sequence[FolderPart],
) -> Iterator[DiscoveredTable]:
    """Yield each table of a catalog with the folder at its location, and the other folders."""
    by_key: dict[str, list[FolderPart]] = defaultdict(list)
    for part in parts:
        by_key[part.key].append(part)
    used: set[int] = set()
    for kind, live in live_tables:
        spec = live.spec
        candidates = by_key.get(_key(context, spec.location), []) if spec.location else []
        own_format = [part for part in candidates if part.format == spec.format]
        match = next(iter(own_format or candidates), None)
        used |= {id(match)}
        table = _table(spec.location, match, (f"{kind}:{spec.database}.{spec.name}",), spec)
        yield replace(table, catalog_owner="" if live.owner.lower() in _PROGRAMS else live.owner)
    for part in parts:
        if id(part) not in used:
            yield _table(part.location, part, (), None)


def _table(
    location: str, part: FolderPart | None, names: tuple[str, ...], spec: TableSpec | None
) -> DiscoveredTable:
    if part is None:
        problem = "" if spec is None or spec.format == VIEW else _no_folder(spec)
        form = spec.format if spec is not None else ""
        table = table_from_spec(spec) if spec is not None and spec.columns else None
        return DiscoveredTable(location, form, names, table=table, spec=spec, problem=problem)
    table = table_from_spec(spec) if spec is not None and spec.columns else part.table
    layout = part.table.layout if part.table else ""
    if not layout and part.partitions and part.table is not None and part.table.partitions:
        layout = "hive"
    return DiscoveredTable(
        part.location,
        part.format or (spec.format if spec else ""),
        names,
        part.files,
        part.bytes,
        part.newest,
        part.rows,
        part.partitions,
        layout,
        table,
        spec,
        outside=part.outside,
        problem=part.problem,
        root=part.root,
        sketch=(part.sizes, part.bounds),
    )


def _no_folder(spec: TableSpec) -> str:
    return (
        f"{spec.location} does not exist." if spec.location else "the catalog has no location of its files."
    )


def _with_contract(table: DiscoveredTable, objects: _Objects, key: str) -> DiscoveredTable:
    """Return the table with its contract, the drift from it, its domain and its owner."""
    entry = objects.find(key, table.spec)
    properties = {name.lower(): text for name, text in table.spec.parameters} if table.spec else {}
    domain = next((properties[name] for name in _DOMAIN_KEYS if properties.get(name)), "")
    owner = next((properties[name] for name in _OWNER_KEYS if properties.get(name)), table.catalog_owner)
    domain = domain or (table.spec.database if table.spec else _first_folder(table))
    if entry is None:
        return replace(table, domain=domain, owner=owner)
    drift = tuple(object_differences(entry.contract, entry.object, table.table)) if table.table else ()
    return replace(
        table,
        contracted=entry,
        drift=drift,
        domain=entry.contract.domain or domain,
        owner=contract_owner(entry.contract) or owner,
    )


def _first_folder(table: DiscoveredTable) -> str:
    """Return the first folder between a root and the table, or ""."""
    inside = table.location.removeprefix(table.root).strip("/") if table.root else ""
    first, slash, _ = inside.partition("/")
    return printable_path(first) if slash else ""


def _count_table_reads(
    context: RuntimeContext, file: str, tables: Sequence[DiscoveredTable]
) -> list[DiscoveredTable]:
    """Return the tables with the reads that a file lists of their names or of locations inside them."""
    by_location = {_key(context, table.location): table.title for table in tables if table.location}
    by_name: dict[str, str] = {}
    for table in tables:
        for name in table.names:
            by_name[name] = by_name[name.partition(":")[2]] = table.title

    def title_at(place: str) -> str | None:
        if place.lower() in by_name:
            return by_name[place.lower()]
        key = _key(context, place)
        while key and key not in by_location:
            key = key.rpartition("/")[0]
        return by_location.get(key)

    reads, unmatched = count_reads(str(context.folder / file) if not is_remote(file) else file, title_at)
    if unmatched:
        context.note(f"{pluralize(unmatched, 'read')} in {file}: not of these tables.")
    return [replace(table, reads=reads.get(table.title, TableReads())) for table in tables]


def _with_copies(tables: Sequence[DiscoveredTable]) -> Iterator[DiscoveredTable]:
    """Yield the tables, likely copies marked; originals have a contract, are most read, or oldest."""
    numbers = sorted(
        (number for number, table in enumerate(tables) if table.table is not None),
        key=lambda number: _original_order(tables[number]),
    )
    copies = {
        numbers[copy.copy]: LikelyCopy(tables[numbers[copy.original]].title, copy.evidence)
        for copy in find_copies([_sketch(tables[number]) for number in numbers])
    }
    for number, table in enumerate(tables):
        yield replace(table, copy=copies.get(number))


def _original_order(table: DiscoveredTable) -> tuple[bool, int, float, str]:
    reads = table.reads.count if table.reads else 0
    return not table.is_covered, -reads, table.newest.timestamp() if table.newest else 0.0, table.title


def _sketch(table: DiscoveredTable) -> TableSketch:
    assert table.table is not None
    name = "/".join(table.spec.key) if table.spec else "/".join(table.location.split("/")[-2:])
    sizes, bounds = table.sketch
    # A copy may be partitioned in another way, so the columns of folders are not compared.
    columns = columns_of((column.name, str(column.type)) for column in table.table.columns)
    return TableSketch(name, table.format, columns, table.rows, bounds, sizes)
