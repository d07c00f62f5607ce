"""A discovered table: what is known of it from catalogs, listings, metadata and contracts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from dq.contracts.access.files import printable_path
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.slo import NOT_IN_FORCE
from dq.operations.reads import TableReads
from dq.registry.importing import ImportedTable
from dq.registry.table import TableSpec

_NO_BOUNDS: Mapping[str, tuple[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ContractedObject:
    """An object of a contract, and the names by which catalogs know its table."""

    contract: Contract
    object: SchemaObject

    @property
    def is_in_force(self) -> bool:
        """True unless the contract is a draft, proposed or retired."""
        return self.contract.status not in NOT_IN_FORCE

    @property
    def order(self) -> tuple[bool, str, str, str]:
        """Sort key: contracts in force first, then by id and version."""
        return not self.is_in_force, self.contract.id, self.contract.version, self.object.name


@dataclass(frozen=True, slots=True)
class LikelyCopy:
    """The location of the table that another one seems to be a copy of, and the evidence."""

    of: str
    evidence: str


@dataclass(frozen=True, slots=True)
class DiscoveredTable:
    """A table: a folder or file of a lake, or a table of a catalog with its folder.

    `names` are those of catalogs, e.g. `glue:sales.orders`. `table` has the columns; it and `rows` are None
    if unknown. `newest` is the newest write in UTC. `layout` is `hive`, a template, or "" without partition
    folders. `drift` are the differences from the contract. `reads` is None without a file of reads. `outside`
    are data files that readers of the table ignore. `problem` is why the table cannot be read, or "". `root`
    is the source below which it lies. `sketch` are the sizes of its files, and digests of the bounds of its
    columns.
    """

    location: str
    format: str
    names: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    newest: datetime | None = None
    rows: int | None = None
    partitions: int = 0
    layout: str = ""
    table: ImportedTable | None = None
    spec: TableSpec | None = None
    contracted: ContractedObject | None = None
    domain: str = ""
    owner: str = ""
    catalog_owner: str = ""
    drift: tuple[str, ...] = ()
    reads: TableReads | None = None
    copy: LikelyCopy | None = None
    outside: tuple[str, ...] = ()
    problem: str = ""
    root: str = ""
    sketch: tuple[tuple[int, ...], Mapping[str, tuple[str, str]]] = ((), _NO_BOUNDS)

    @property
    def title(self) -> str:
        """Name of the table: that of a catalog, else its location."""
        return self.names[0] if self.names else printable_path(self.location)

    @property
    def is_covered(self) -> bool:
        """True if a contract in force describes the table."""
        return self.contracted is not None and self.contracted.is_in_force

    def as_dict(self) -> dict[str, object]:
        """As JSON values."""
        contract = self.contracted.contract if self.contracted else None
        keys = [column.name for column in self.table.partitions] if self.table else []
        return {
            "location": printable_path(self.location) or None,
            "names": list(self.names),
            "format": self.format or None,
            "files": self.files,
            "bytes": self.bytes,
            "newest": self.newest.isoformat() if self.newest else None,
            "rows": self.rows,
            "columns": len(self.table.columns) + len(keys) if self.table else None,
            "partitions": self.partitions,
            "partition_columns": keys,
            "layout": self.layout or None,
            "contract": contract.id if contract else None,
            "object": self.contracted.object.name if self.contracted else None,
            "status": contract.status if contract else None,
            "domain": self.domain or None,
            "owner": self.owner or None,
            "drift": list(self.drift),
            "reads": self.reads.count if self.reads else None,
            "readers": len(self.reads.readers) if self.reads else None,
            "copy_of": printable_path(self.copy.of) if self.copy else None,
            "evidence": self.copy.evidence if self.copy else None,
            "outside": [printable_path(name) for name in self.outside],
            "problem": printable_path(self.problem) or None,
        }
