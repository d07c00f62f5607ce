"""One look at the metadata of every table of a registry: what did not change costs a listing.

Contracts go by in groups, so that what is held does not grow with the registry. A contract whose text is
known is not parsed, and a table whose files, or whose log's files, are the same is not opened.
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
from dq.contracts.access.files import FileRefused, Found, read
from dq.contracts.install import needing
from dq.contracts.model import Contract
from dq.contracts.outcome import DqError, Finding, Unreadable
from dq.contracts.slo import NOT_IN_FORCE
from dq.contracts.yaml.parse import parse
from dq.dataquality.spark.dataset import locate
from dq.dataquality.table_metadata import (
    KnownTable,
    MetadataFacts,
    TablePlace,
    facts,
    judge_of,
    listed,
    recall,
    remember,
)
from dq.lake.storage import PlacedPartition, Storages
from dq.operations.data_places import Placements, placed_objects, placements
from dq.operations.runtime.context import World, called
from dq.store.engine import Store

# Contracts that are held at once, and questions to a storage that wait for their answers.
_GROUP, _AT_A_TIME = 200, 32


@dataclass(frozen=True, slots=True)
class TableLook:
    """A table as it was seen; `changed` where its files, its contract or what is known of it are new."""

    table: KnownTable
    changed: bool

    @property
    def state(self) -> str:
        """`kept` or `broken`, what is promised of columns and types; `listed` where nothing tells them."""
        facts = self.table.facts
        if facts.problem:
            return "unknown"
        return "listed" if not facts.judged else "broken" if facts.broken else "kept"

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        table, said = self.table, self.table.facts
        return {
            "contract": table.contract,
            "object": table.object,
            "state": self.state,
            "path": table.place.path,
            "format": table.place.format,
            "files": said.files,
            "bytes": said.bytes,
            "newest": said.newest,
            "rows": said.rows,
            "nulls": dict(said.nulls),
            "broken": list(said.broken),
            "problem": said.problem or None,
            "changed": self.changed,
        }


@dataclass(slots=True)
class TableCounts:
    """What all looks come to: tables by their state, `refused` ones too, and rows and files by metadata."""

    states: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    files: int = 0
    changed: int = 0

    def add(self, look: TableLook | Finding) -> None:
        """One look more."""
        if isinstance(look, Finding):
            self.states["refused"] += 1
            return
        self.states[look.state] += 1
        self.changed += look.changed
        if look.table.facts.rows is not None:
            self.files += look.table.facts.files
            self.rows += look.table.facts.rows

    @property
    def exit_code(self) -> int:
        """0 nothing is other than promised, 1 something is, 3 something is unknown."""
        unknown = self.states["unknown"] or self.states["refused"]
        return Unreadable.exit_code if unknown else 1 if self.states["broken"] else 0


@dataclass(frozen=True, slots=True)
class TablesOutcome:
    """Every table of a registry by its metadata, what kept others out, and what they come to."""

    tables: tuple[TableLook, ...]
    findings: tuple[Finding, ...]
    counts: TableCounts
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq tables` ends; see `TableCounts.exit_code`."""
        return self.counts.exit_code

    def as_dict(self) -> list[dict[str, object]]:
        """What `dq tables --format json` prints."""
        return [look.as_dict() for look in self.tables]


def tables(
    paths: Path | str | Sequence[Path | str] = ".",
    *,
    server: str | None = None,
    folder: Path | str | None = None,
) -> TablesOutcome:
    """Look at the metadata of every table: files, rows, NULLs, newest file, columns and types.

    As `dq tables` does, without Spark and without a read of any row. `server` is the one to look at where a
    contract has several. `folder` stands for the working folder, where settings and store are, and from
    which relative paths lead.

    Raises Unreadable for a path without contracts, and MissingTool without pyarrow. What could not be read
    of a table is its `problem`.
    """
    require_pyarrow()
    world, places = called(paths, folder)
    counts, seen, findings = TableCounts(), list[TableLook](), list[Finding]()
    with closing(world.store()) as store:
        for look in looks(world, store, places, server):
            counts.add(look)
            if isinstance(look, Finding):
                findings.append(look)
            else:
                seen.append(look)
    return TablesOutcome(tuple(seen), tuple(findings), counts, tuple(world.messages.notes))


def require_pyarrow() -> None:
    """Raises MissingTool where it is not installed, before any table is looked at."""
    with needing("Footers are read with pyarrow", "s3"):
        import pyarrow  # noqa: F401


def looks(
    world: World, store: Store, paths: Sequence[Path], server: str | None
) -> Iterator[TableLook | Finding]:
    """Every table of the contracts in force, in the order of their files; findings for what keeps one out.

    Raises Unreadable for a path that is not there, or holds no contract.
    """
    found = discover(paths).contracts
    storages = Storages(world.reach)
    for at in range(0, len(found), _GROUP):
        yield from _group(world, store, storages, found[at : at + _GROUP], server)


def _group(
    world: World, store: Store, storages: Storages, found: Sequence[Found], server: str | None
) -> Iterator[TableLook | Finding]:
    texts: dict[str, tuple[str, bytes]] = {}
    before = _decides(world, server)
    for file in found:
        try:
            content = read(file)
        except FileRefused as refused:
            yield refused.finding(str(file))
            continue
        texts.setdefault(hashlib.sha256(before + content).hexdigest(), (str(file), content))
    with store.read() as tx:
        kept = recall(tx, texts)
    # What had no place may have one by now: a link is gone, or a folder is there.
    known = {digest: tables for digest, tables in kept.items() if all(one.place.format for one in tables)}
    tables: list[KnownTable] = []
    contracts: dict[str, Contract] = {}
    for digest, (name, content) in texts.items():
        if digest in known:
            tables += known[digest]
            continue
        parsed = parse(content, name)
        wrong = [finding for finding in parsed.findings if finding.severity.blocks]
        yield from wrong
        if parsed.contract is not None and not wrong and parsed.contract.status not in NOT_IN_FORCE:
            contracts[digest] = parsed.contract
            tables += _placed(world, digest, parsed.contract, server)

    def contract_of(digest: str) -> Contract:
        if digest not in contracts:
            name, content = texts[digest]
            parsed = parse(content, name).contract
            assert parsed is not None  # it was, when its tables were kept
            contracts[digest] = parsed
        return contracts[digest]

    placed: dict[tuple[str, str], tuple[PlacedPartition, ...]] = {}
    with store.read() as tx:
        candidates = placed_objects(tx)
        for table in tables:
            if (table.contract, table.object) in candidates:
                elsewhere = {table.contract: other_servers(contract_of(table.digest), server)}
                placed |= placements(tx, elsewhere, table.object)
    seen = _looked(partial(_look, world.now(), storages, contract_of, placed), tables)
    found_anew = [
        TableLook(new, changed=new is not table or table.digest not in known)
        for new, table in zip(seen, tables, strict=True)
    ]
    changed = [look.table for look in found_anew if look.changed]
    if changed:
        with store.write() as tx:
            remember(tx, changed)
    yield from found_anew


def _decides(world: World, server: str | None) -> bytes:
    """What beside a contract's text decides where its data lies."""
    reach = world.reach
    said = (reach.folder, reach.folders, reach.roots, reach.hosts, sorted(reach.variables.items()), server)
    return f"{said!r}\n".encode("utf-8", "surrogateescape")


def _placed(world: World, digest: str, contract: Contract, server: str | None) -> Iterator[KnownTable]:
    for one in contract.objects:
        known = KnownTable(digest, one.name, contract.key, TablePlace("", ""))
        try:
            data = locate(contract, one, server, world.reach)
        except DqError as error:
            yield replace(known, facts=MetadataFacts(problem=error.message))
            continue
        if data.path is None:
            said = MetadataFacts(problem=f"{data} is known to a catalog alone.")
            yield replace(known, place=TablePlace("", data.format or "table"), facts=said)
            continue
        yield replace(known, place=TablePlace(data.path, data.format or "", data.partitions))


def _looked(look: Callable[[KnownTable], KnownTable], tables: Sequence[KnownTable]) -> list[KnownTable]:
    # A local disk answers at once; threads would only take turns.
    if not any(is_remote(table.place.path) for table in tables):
        return list(map(look, tables))
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(look, tables))


def _look(
    now: datetime,
    storages: Storages,
    contract_of: Callable[[str], Contract],
    placed: Placements,
    table: KnownTable,
) -> KnownTable:
    """The same table where nothing is new, else what it is now."""
    place = table.place
    if not place.path:
        return table
    try:
        files = storages.of(place.path)
        found = listed(files, place, now, placed.get((table.contract, table.object), ()))
        if found.print and found.print == table.print:
            return table
        contract = contract_of(table.digest)
        one = contract.object(table.object)
        assert one is not None  # the text is the same
        return replace(table, print=found.print, facts=facts(files, found, place, judge_of(contract, one)))
    except Exception as error:  # noqa: BLE001  # one guard per table: no file and no storage may end the look
        problem = error.message if isinstance(error, DqError) else f"{place.path}: {type(error).__name__}"
    unknown = replace(table, print="", facts=MetadataFacts(problem=problem))
    return table if unknown == table else unknown
