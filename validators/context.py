"""Context of the rules besides their contract, and the extract of each contract for cross-contract rules."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from posixpath import dirname, join, normpath
from typing import Any, Generic, NamedTuple, TypeVar

from dq.contracts import slo
from dq.contracts.agreement import Agreement, SumAgreement, is_agreement, read_agreement
from dq.contracts.lineage import PromisedTable, TableFolder, promised_tables
from dq.contracts.model import Contract, Identity, Node, Property, Quality, Relationship, SchemaObject
from dq.contracts.outcome import Finding, Location
from dq.contracts.subscriptions import Approval, ProofTerms, Subscription

# Names by which a contract's objects and properties can be referenced.


def element_names(contract: Contract) -> frozenset[str]:
    """Return every `object` and `object.property`, at any depth; the object by its name or its id."""
    names: set[str] = set()
    for schema_object in contract.objects:
        nested_names = _property_paths(schema_object.properties)
        for name in {schema_object.name, schema_object.id or schema_object.name}:
            names.add(name)
            names.update([f"{name}.{below}" for below in nested_names])
    return frozenset(names)


def element_id_paths(contract: Contract) -> frozenset[str]:
    """Return every `schema/<id>` and `schema/<id>/properties/<id>`, at any depth."""
    paths: set[str] = set()
    stack: list[tuple[str, SchemaObject | Property]] = [
        (f"schema/{schema_object.id}", schema_object)
        for schema_object in contract.objects
        if schema_object.id is not None
    ]
    while stack:
        path, node = stack.pop()
        paths.add(path)
        stack += [(f"{path}/properties/{prop.id}", prop) for prop in node.properties if prop.id is not None]
    return frozenset(paths)


def repeated_names(contract: Contract, walk: Walk) -> frozenset[str]:
    """Return every `object.property` inside an array or map, which cannot be compared with a key."""
    if not any(prop.items or prop.map for prop in walk.properties):
        return frozenset()
    single: set[str] = set()
    for schema_object in contract.objects:
        paths = [".".join(str(prop.name) for prop in props) for props in schema_object.single_valued_paths()]
        single.update(
            f"{name}.{path}"
            for name in {schema_object.name, schema_object.id or schema_object.name}
            for path in paths
        )
    return walk.names - single


def _property_paths(properties: list[Property]) -> set[str]:
    paths: set[str] = set()
    stack = [("", prop) for prop in properties]
    while stack:
        parent, prop = stack.pop()
        # Items of an array and values of a map have no name of their own: `orders.lines.price`.
        path = f"{parent}.{prop.name}" if parent and prop.name else prop.name or parent
        if path:
            paths.add(path)
        stack += [(path, inner) for inner in prop.children()]
    return paths


def name_paths(contract: Contract) -> tuple[str, ...]:
    """Return the paths of the names of all objects and columns, including those that could not be read."""
    count = max(len(contract.objects), len(contract.place.items.get("schema", ())))
    objects = [f"schema[{index}].name" for index in range(count)]
    return (
        *objects,
        *(prop.path("name") for schema_object in contract.objects for prop in schema_object.properties),
    )


def sibling_nodes(contract: Contract, walk: Walk) -> Iterator[Sequence[Node]]:
    """Yield every list of elements with ids; ids are unique per list, not per contract."""
    yield contract.servers
    yield contract.objects
    yield contract.support
    yield contract.roles
    yield contract.sla_properties
    yield contract.custom_properties
    yield contract.members()
    for schema_object in contract.objects:
        yield from (
            schema_object.properties,
            schema_object.quality,
            schema_object.relationships,
            schema_object.synonyms,
        )
    for prop in walk.properties:
        if prop.properties or prop.quality or prop.enum or prop.synonyms:
            yield from (prop.properties, prop.quality, prop.enum or (), prop.synonyms)


class Reference(NamedTuple):
    """One end of a relationship as written."""

    relationship: Relationship
    key: str
    text: str


def iter_references(relationships: Iterable[Relationship]) -> Iterator[Reference]:
    """Yield every end of every relationship."""
    for relationship in relationships:
        for key, names in (("from", relationship.from_), ("to", relationship.to)):
            for text in names if isinstance(names, list) else [names] if names else []:
                yield Reference(relationship, key, text.strip())


def is_external(text: str, objects: set[str]) -> bool:
    """Return True if a reference points outside a contract with these objects.

    E.g. `file.yaml#/schema/…`, or `object.property` with an object that the contract does not have.
    """
    if "/" in text:
        return not text.lstrip("#/").startswith("schema/")
    return "." in text and text.split(".")[0] not in objects


# Context of a rule besides the contract; always passed in, never read from the environment.

T = TypeVar("T")

COLUMN = re.compile(r"schema\[\d+\](?:\.properties\[\d+\]|\.items|\.map\.(?:key|value))+")
"""The path of a column at any depth."""

UnenforcedCheck = Callable[[Contract], Iterable[Finding]]


def no_findings(_contract: Contract) -> Iterable[Finding]:
    """Return no findings: the default if the unenforced clauses are unknown."""
    return ()


@dataclass(frozen=True, slots=True)
class Argument(Generic[T]):
    """A value of a rule that the policy may set; the type of the default is the type of the value."""

    name: str
    default: T
    description: str


@dataclass(frozen=True, slots=True)
class ParsedSlos:
    """Delivery SLOs that could be parsed, and findings about the others."""

    slos: tuple[slo.Slo, ...] = ()
    findings: tuple[Finding, ...] = ()

    @staticmethod
    def from_contract(contract: Contract) -> ParsedSlos:
        """Parse the SLOs of a contract with the same parser as the watcher."""
        slos, findings = slo.read_slos(contract)
        return ParsedSlos(tuple(slos), tuple(findings))


class PropertyPlace(NamedTuple):
    """Property at any depth, with its object."""

    object: SchemaObject
    property: Property
    is_top_level: bool


class QualityPlace(NamedTuple):
    """Quality rule with its object and property; `property` is None for rules of the object."""

    object: SchemaObject
    property: Property | None
    quality: Quality


@dataclass(frozen=True, slots=True)
class Walk:
    """Parts of one contract as flat lists, built once for all rules.

    `properties` and `qualities` are `columns` and `clauses` without their places. `names` are the elements
    that can be referenced, as `object` and `object.property`; `references` are the references to them or to
    other contracts.
    """

    columns: tuple[PropertyPlace, ...]
    clauses: tuple[QualityPlace, ...]
    properties: tuple[Property, ...]
    qualities: tuple[Quality, ...]
    names: frozenset[str]
    references: tuple[Reference, ...]

    @staticmethod
    def from_contract(contract: Contract) -> Walk:
        """Collect every property, nested ones after their parent, and every quality rule."""
        columns: list[PropertyPlace] = []
        clauses: list[QualityPlace] = []
        related: list[Relationship] = []
        for schema_object in contract.objects:
            top_level_ids = {id(prop) for prop in schema_object.properties}
            clauses += [QualityPlace(schema_object, None, quality) for quality in schema_object.quality]
            related += schema_object.relationships
            for prop in schema_object.walk():
                related += prop.relationships
                columns.append(PropertyPlace(schema_object, prop, id(prop) in top_level_ids))
                if prop.quality:
                    clauses += [QualityPlace(schema_object, prop, quality) for quality in prop.quality]
        return Walk(
            tuple(columns),
            tuple(clauses),
            tuple(column.property for column in columns),
            tuple(clause.quality for clause in clauses),
            element_names(contract),
            tuple(iter_references(related)),
        )


@dataclass(frozen=True, slots=True)
class OfficialSchema:
    """The JSON Schema of ODCS `version`, from a `release` of the standard's own package.

    `accepted` are the ODCS versions that it allows in a document, including older ones.
    """

    release: str
    version: str
    accepted: frozenset[str]
    schema: Mapping[str, Any]


@dataclass(slots=True)
class Day:
    """Date of a run in UTC, and whether a rule has read it: then the result may differ on another day."""

    date: date
    was_read: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """Context of the contract that is validated.

    `file` is its path relative to the registry's root, with forward slashes. `day` is the date of the run,
    which rules read as `today`. `arguments` are the policy's arguments of the current rule, `schemas` its
    JSON Schemas for custom properties, by level. `unenforced` returns the clauses that the checker will not
    evaluate; it is passed in because the checker is in a higher layer. `official` is the official schema of
    ODCS if it was requested, and `data` is then the text of the contract.
    """

    file: str
    day: Day
    walk: Walk
    parsed_slos: ParsedSlos
    arguments: Mapping[str, object] = field(default_factory=dict)
    schemas: Mapping[str, object] = field(default_factory=dict)
    unenforced: UnenforcedCheck = no_findings
    official: OfficialSchema | None = None
    data: bytes = b""

    @property
    def today(self) -> date:
        """The date of the run in UTC. A result whose rules read it is only reused on the same day."""
        self.day.was_read = True
        return self.day.date

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        # The policy parser has already checked the value against the type of the default.
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]


# Context of a subscription rule: the contract, the other subscriptions, the date.


ApprovalOf = Callable[[Subscription, Contract, ProofTerms], Approval]
"""Returns the approval that binds a subscription to its current contract."""


@dataclass(frozen=True, slots=True)
class SubscriptionContext:
    """Context of a subscription rule. `today` is the date in UTC; `arguments` are the policy's.

    `contracts` are the subscribed contracts of the registry. `unreadable_ids` are ids of contracts that
    cannot be read. `ids` are further known ids of the registry. `subscriptions` are all well-formed
    subscriptions, in the order of their files, and `reported_files` the files whose findings are reported.
    `base_contracts` are the subscribed contracts at the base of a branch. `approval_of` evaluates approvals;
    without it, the names in a subscription count.
    """

    today: date
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unreadable_ids: Collection[str] = ()
    ids: Collection[str] = ()
    subscriptions: tuple[Subscription, ...] = ()
    reported_files: frozenset[str] = frozenset()
    arguments: Mapping[str, object] = field(default_factory=dict)
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    approval_of: ApprovalOf | None = None

    def value(self, argument: Argument[T]) -> T:
        """The policy's value of one of the rule's arguments, or its default."""
        return self.arguments.get(argument.name, argument.default)  # type: ignore[return-value]

    def contract(self, subscription: Subscription) -> Contract | None:
        """Return the subscribed contract, by id and major version, or None if it does not exist."""
        return self.contracts.get(subscription.identity)

    def approving_contract(self, subscription: Subscription) -> Contract | None:
        """Return the contract whose owners approve: the one at the base, or its newest major for a new major.

        A contract that does not exist at the base is approved by its own owners.
        """
        base = self.base_contracts
        majors = [identity for identity in base if identity[0] == subscription.contract]
        newest = max(majors, key=lambda identity: (len(identity[1]), identity[1]), default=None)
        own = base.get(subscription.identity)
        return own or (base[newest] if newest else self.contract(subscription))

    def majors(self, id_: str) -> list[str]:
        """Return the existing major versions of a contract, in order."""
        majors = (major for contract_id, major in self.contracts if contract_id == id_)
        return sorted(majors, key=lambda major: (len(major), major))


# Contracts with different ids that declare the same table, or nested folders.


class TableHolder(NamedTuple):
    """Contract with the tables that it declares; conflicts of an `unchanged` one are not reported."""

    id: str
    file: str
    tables: tuple[PromisedTable, ...]
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class TablesAtBase:
    """Tables at the base of a branch.

    `unchanged` are contracts that the branch does not change; those that share no table with the changed ones
    may be omitted. `tables` are the tables declared by contracts of the base, by contract id.
    """

    unchanged: tuple[TableHolder, ...] = ()
    tables: Mapping[str, tuple[PromisedTable, ...]] = field(default_factory=dict)

    def has_name(self, id_: str, table: PromisedTable) -> bool:
        """Return True if a contract with this id had the table, regardless of its location."""
        return any(table.is_same_table(before) for before in self.tables.get(id_, ()))

    def has(self, id_: str, table: PromisedTable) -> bool:
        """Return True if a contract with this id had the table by name and by folder, as far as known."""
        return (not table.name or self.has_name(id_, table)) and (
            table.folder is None or self.has_folder(id_, table)
        )

    def has_folder(self, id_: str, table: PromisedTable) -> bool:
        """Return True if a contract with this id had a table in exactly this folder."""
        before = self.tables.get(id_, ())
        return any(table.folder == other.folder and table.overlaps(other) for other in before)


class TableConflict(NamedTuple):
    """Table of a contract that is also declared by another contract, or shares a folder with its table."""

    table: PromisedTable
    other: PromisedTable
    holder: TableHolder
    by_name: bool


_Holders = dict[str, list[tuple[TableHolder, PromisedTable]]]
"""Contracts that declare one table, or a table in one folder, by contract id."""


class TableConflicts:
    """Table conflicts among contracts, by file; tables that an id already had at the base are excluded."""

    def __init__(self, holders: Iterable[TableHolder], base: TablesAtBase) -> None:
        self._base = base
        self._by_file: dict[str, list[TableConflict]] = {}
        all_holders = [*holders, *base.unchanged]
        names: dict[str, _Holders] = {}
        folders: dict[TableFolder, _Holders] = {}
        for holder in all_holders:
            for table in holder.tables:
                if table.name:
                    names.setdefault(table.name, {}).setdefault(holder.id, []).append((holder, table))
                if table.folder is not None:
                    folders.setdefault(table.folder, {}).setdefault(holder.id, []).append((holder, table))
        for holder in all_holders:
            for table in holder.tables:
                match = _first_of_other_id(names.get(table.name, {}), holder.id, table.is_same_table)
                if match is not None:
                    self._add(holder, TableConflict(table, match[1], match[0], by_name=True))
                for folder in table.folder.up() if table.folder is not None else ():
                    other = _first_of_other_id(folders.get(folder, {}), holder.id, table.overlaps)
                    if other is not None:
                        self._add(holder, TableConflict(table, other[1], other[0], by_name=False))
                        self._add(other[0], TableConflict(other[1], table, holder, by_name=False))

    def for_file(self, file: str) -> list[TableConflict]:
        """Return the conflicts of the contract in this file."""
        return self._by_file.get(file, [])

    def _add(self, holder: TableHolder, conflict: TableConflict) -> None:
        existed_at_base = self._base.has_name if conflict.by_name else self._base.has_folder
        if not holder.unchanged and not existed_at_base(holder.id, conflict.table):
            self._by_file.setdefault(holder.file, []).append(conflict)


def _first_of_other_id(
    holders: _Holders, id_: str, matches: Callable[[PromisedTable], bool]
) -> tuple[TableHolder, PromisedTable] | None:
    """Return the first matching table of another contract id, or None if there is none."""
    if len(holders) < 2 and id_ in holders:
        return None
    return next(
        (
            entry
            for other, entries in holders.items()
            if other != id_
            for entry in entries
            if matches(entry[1])
        ),
        None,
    )


# Names that look the same although their code points differ.


def normalize_name(name: str) -> str:
    """Return the NFC form of a name, the same for canonically equal names (`é` as one or two code points).

    NFC, not NFKC: canonically equal names look the same, and file systems and editors convert one into the
    other. NFKC would also merge `m²` and `m2`, which are visibly different.
    """
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def confusable_note(name: str, other: str) -> str:
    """Return a message suffix if two names look the same but are encoded differently, else ""."""
    differs = name != other and normalize_name(name) == normalize_name(other)
    return " (it looks the same, but is encoded differently)" if differs else ""


# Extract of a contract for rules of the scope `registry`.
#
# A registry has thousands of contracts, which are parsed in several processes and not kept in memory. All
# data that such a rule needs must be in the extract.


@dataclass(frozen=True, slots=True)
class CrossReference:
    """Reference to another contract: key, text, location, path, and the paths that it relies on.

    With `contract`, an id, the text is that contract and its object: `ledger/bookings`.
    """

    key: str
    text: str
    location: Location
    path: str
    needs: tuple[str, ...]
    contract: str = ""


@dataclass(frozen=True, slots=True)
class ContractEntry:
    """Extract of a contract for cross-contract rules. `location` is that of its id.

    `names` and `ids` can be referenced. `names` are the lines of one text, which is faster to pass between
    processes than a set. `repeated` are those inside arrays and maps, which cannot be compared with a key.
    `tables` are the catalog tables that it declares.
    """

    file: str
    identity: Identity
    location: Location
    objects: tuple[str, ...]
    names: str
    repeated: frozenset[str]
    ids: frozenset[str]
    references: tuple[CrossReference, ...]
    tables: tuple[PromisedTable, ...]

    @staticmethod
    def from_contract(contract: Contract, context: Context) -> ContractEntry:
        """Return the extract of a contract."""
        return ContractEntry(
            context.file,
            contract.identity,
            contract.locate("id"),
            tuple(schema_object.name for schema_object in contract.objects),
            "\n".join(("", *context.walk.names, "")),
            repeated_names(contract, context.walk),
            element_id_paths(contract),
            tuple(_external_references(contract, context)),
            promised_tables(contract),
        )


def _external_references(contract: Contract, context: Context) -> Iterable[CrossReference]:
    own_names = {
        name
        for schema_object in contract.objects
        for name in (schema_object.name, schema_object.physical_name)
        if name
    }
    external = [candidate for candidate in context.walk.references if is_external(candidate.text, own_names)]
    needs = name_paths(contract) if external else ()
    for reference in external:
        relationship = reference.relationship
        yield CrossReference(
            reference.key,
            reference.text,
            relationship.locate(reference.key),
            relationship.path(reference.key),
            needs,
        )
    for clause in context.walk.clauses:
        quality = clause.quality
        agreement = read_agreement(clause.object, clause.property, quality) if is_agreement(quality) else None
        if isinstance(agreement, Agreement | SumAgreement) and agreement.other.contract is not None:
            yield CrossReference(
                "with",
                f"{agreement.other.contract}/{agreement.other.object}",
                quality.locate("implementation"),
                f"{quality.path('implementation')}.arguments.with",
                (),
                agreement.other.contract,
            )


@dataclass(frozen=True, slots=True)
class Registry:
    """All contracts of one run, in order.

    `first_of_…` have the first of the contracts with confusable identities or file names.
    """

    first_of_identity: Mapping[Identity, ContractEntry]
    first_of_file: Mapping[str, ContractEntry]
    by_file: Mapping[str, ContractEntry]
    by_object: Mapping[str, tuple[ContractEntry, ...]]
    table_conflicts: TableConflicts

    @staticmethod
    def from_entries(entries: Iterable[ContractEntry], base: TablesAtBase = TablesAtBase()) -> Registry:
        """Index the entries by identity, file and object name.

        `base` has the tables of other contracts; it decides which of two conflicting contracts is new.
        """
        identities: dict[Identity, ContractEntry] = {}
        files_by_name: dict[str, ContractEntry] = {}
        objects: dict[str, list[ContractEntry]] = defaultdict(list)
        files: dict[str, ContractEntry] = {}
        tables: list[TableHolder] = []
        for entry in entries:
            identities.setdefault(_normalized_identity(entry), entry)
            files_by_name.setdefault(_normalized_file(entry), entry)
            files[entry.file] = entry
            tables.append(TableHolder(normalize_name(entry.identity[0]), entry.file, entry.tables))
            for name in entry.objects:
                objects[name].append(entry)
        by_object = {name: tuple(holders) for name, holders in objects.items()}
        return Registry(identities, files_by_name, files, by_object, TableConflicts(tables, base))

    def same_contract(self, entry: ContractEntry) -> ContractEntry:
        """Return the first contract with this id and major version, possibly `entry` itself."""
        return self.first_of_identity[_normalized_identity(entry)]

    def same_file(self, entry: ContractEntry) -> ContractEntry:
        """Return the first file that macOS or Windows treats as the same file, possibly that of `entry`."""
        return self.first_of_file[_normalized_file(entry)]

    def is_key(self, reference: CrossReference, file: str) -> bool:
        """Return True if the target of a reference in this file can be compared with a key."""
        if reference.contract:
            # An object is compared, not a key.
            return True
        target = reference.text.rpartition("#")[2].lstrip("/")
        if target.startswith("schema/"):
            # Ids belong to objects and to columns that are not inside an array or map.
            return "/properties/" in target
        candidates = self.holders(reference, file)
        return not any(target in entry.objects or target in entry.repeated for entry in candidates)

    def holders(self, reference: CrossReference, file: str) -> tuple[ContractEntry, ...]:
        """Return the contracts with the target of a reference in this file; one if it is unambiguous."""
        if reference.contract:
            name = reference.text.removeprefix(f"{reference.contract}/")
            candidates = self.by_object.get(name, ())
            return tuple(entry for entry in candidates if entry.identity[0] == reference.contract)
        if "#" in reference.text:
            target_file, _, path = reference.text.rpartition("#")
            relative = normpath(join(dirname(file), target_file.removeprefix("file://")))
            other = self.by_file.get(relative) or self.by_file.get(normpath(target_file))
            target = path.lstrip("/")
            return (other,) if other and (target in other.ids or f"\n{target}\n" in other.names) else ()
        line = f"\n{reference.text}\n"
        return tuple(
            entry for entry in self.by_object.get(reference.text.split(".")[0], ()) if line in entry.names
        )


def _normalized_identity(entry: ContractEntry) -> Identity:
    id_, major = entry.identity
    return normalize_name(id_), major


def _normalized_file(entry: ContractEntry) -> str:
    return normalize_name(entry.file.casefold())
