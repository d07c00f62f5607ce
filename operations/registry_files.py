"""Loading of contracts from the files of a registry, with findings for those that cannot be used."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dq.contracts import extension
from dq.contracts import slo as promise
from dq.contracts.access.access_policy import AccessPolicy
from dq.contracts.access.alert_target import route_terms
from dq.contracts.access.data_location import DataLocation, other_servers, pattern_in, resolve
from dq.contracts.access.discovery import contract_names, discover, skipped_summary
from dq.contracts.access.files import POLICY_FILE, FileMissing, FileRejected, exists, read, read_own
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding, ReadError, Severity, StoreError, UsageError
from dq.contracts.slo import NOT_IN_FORCE as NOT_IN_FORCE
from dq.contracts.slo import Slo
from dq.contracts.yaml.parse import parse
from dq.dataquality.clauses.foreign_key import ContractSet, refers_to_others
from dq.operations.runtime.context import is_root, registry_root
from dq.validators.policy.policy import DEFAULT, Policy
from dq.validators.rule import Rule

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import DeliveryPlace, WatchTarget
    from dq.dataquality.delivery.key_owners import KeyOwner
    from dq.dataquality.delivery.replay import ContractSlos
    from dq.lake.storage import Files
    from dq.store.engine import Store


# Contracts from paths, for commands that use contracts instead of linting them.


@dataclass(frozen=True, slots=True)
class LoadedContracts:
    """Loaded contracts, in file order, and findings for the others."""

    contracts: list[Contract]
    findings: list[Finding]
    removed: Mapping[str, str] = field(default_factory=dict)
    """Reasons of removed contracts, by key; set by `resolve_key_owners`."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Keys of contracts that were not read because nothing is due, by file."""


def load(
    paths: Iterable[Path],
    note: Callable[[str], None],
    skipped_key: Callable[[Path, bytes], str | None] = lambda *_: None,
) -> LoadedContracts:
    """Load every contract at or below the paths. Unreadable contracts become findings.

    Skipped YAML files are reported to `note`. `skipped_key` returns the key of a contract that need not be
    read, or None.

    Raises ReadError for a path that does not exist or has no contract.
    """
    contracts: list[Contract] = []
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    discovered = discover(paths)
    if discovered.skipped:
        note(skipped_summary(discovered.skipped))
    for file in discovered.contracts:
        try:
            content = read(file)
        except FileRejected as refused:
            findings.append(refused.finding(str(file)))
            continue
        if (key := skipped_key(file.path, content)) is not None:
            skipped[str(file)] = key
            continue
        parsed = parse(content, str(file))
        blocking = [finding for finding in parsed.findings if finding.severity.blocks]
        findings += blocking
        if parsed.contract is not None and not blocking:
            contracts.append(parsed.contract)
    return LoadedContracts(contracts, findings, skipped=skipped)


def with_registry(contracts: Sequence[Contract], folder: Path) -> ContractSet:
    """Return the contracts, with all others of their registries if they refer to one that is not given.

    Contracts that cannot be read are left out. Relative files are in `folder`.
    """
    contract_set = ContractSet.from_contracts(contracts)
    files = {os.path.realpath(folder / contract.file) for contract in contracts}

    def skipped_key(file: Path, _: bytes) -> str | None:
        return str(file) if os.path.realpath(folder / file) in files else None

    # The other names are relative if these are, because references in files are compared as text.
    referring = [contract for contract in contracts if refers_to_others(contract, contract_set)]
    places = {place for contract in referring for place in _registry_around(Path(contract.file), folder)}
    neighbours: list[Contract] = []
    for place in sorted(places):
        with suppress(ReadError):
            neighbours += load([place], lambda _: None, skipped_key).contracts
    return ContractSet.from_contracts([*contracts, *neighbours])


def _registry_around(file: Path, folder: Path) -> list[Path]:
    """Return the registry around a file, named like the file: relative or absolute.

    Without a policy and a repository, it is the contracts in the file's own folder, which may be a home
    folder and is not walked.
    """
    home = Path(os.path.realpath(folder / file.parent))
    root = registry_root(home)
    if is_root(root):
        return [Path(os.path.normpath(file.parent / os.path.relpath(root, home)))]
    return [file.parent / name for name in contract_names(home)]


def single_contract(loaded: LoadedContracts) -> Contract:
    """Return the single loaded contract.

    Raises ReadError, with all findings, if a contract has errors, and UsageError if there are several.
    """
    if loaded.findings:
        # Also if another one can be read: it is unknown which was meant.
        files = ", ".join(dict.fromkeys(finding.at.file for finding in loaded.findings))
        raise ReadError(
            f"{files}: invalid contract:",
            "Fix it, then run 'dq validate'.",
            [str(finding) for finding in loaded.findings],
        )
    if len(loaded.contracts) != 1:
        ids = ", ".join(contract.id for contract in loaded.contracts)
        raise UsageError(f"expected one contract, found several: {ids}.", "Pass the file of one.")
    return loaded.contracts[0]


def select_object(loaded: LoadedContracts, name: str | None) -> tuple[Contract, SchemaObject]:
    """Return the single contract and the object of this name. Raises as `single_contract`, or for the
    object.
    """
    contract = single_contract(loaded)
    names = [schema_object.name for schema_object in contract.objects]
    if name is None and len(names) == 1:
        return contract, contract.objects[0]
    schema_object = contract.object(name) if name else None
    if schema_object is None:
        raise UsageError(
            f"contract {contract.id!r} has several objects or no such object: "
            f"{', '.join(names) or '(none)'}.",
            f"Choose one with --object {names[0] if names else 'NAME'}.",
        )
    return contract, schema_object


def slos(loaded: LoadedContracts, note: Callable[[str], None]) -> tuple[list[Slo], list[Finding]]:
    """Return the delivery SLOs of all contracts in force, and findings for invalid ones."""
    promises: list[Slo] = []
    findings: list[Finding] = []
    for contract in loaded.contracts:
        if contract.status in NOT_IN_FORCE:
            note(f"{contract.id} is {contract.status}, so its deliveries are not evaluated.")
            continue
        ready, problems = promise.read_slos(contract)
        promises += ready
        findings += problems
        findings += [finding for support in contract.support for finding in route_terms(support)[1]]
    return promises, list(dict.fromkeys(findings))


def watch_target(
    slo: Slo, server: str | None, reach: AccessPolicy, files: Callable[[str], Files]
) -> WatchTarget:
    """Return an SLO with the location of its data and a reader for it.

    `server` is that of SLOs whose delivery names no servers.

    Raises UsageError if the location cannot be determined.
    """
    # Imported here because it pulls in the state store.
    from dq.dataquality.delivery.cycle import WatchTarget

    place = resolve(slo.contract, slo.object, slo.server or server, reach)
    if not place.path:
        raise UsageError(
            f"server {place.server!r} of {slo.contract.id!r} has no location.",
            "Add 'location' to the server.",
            at=slo.contract.locate("servers"),
        )
    if slo.expects_new_data and pattern_in(place.path):
        raise UsageError(
            f"the location {place.path!r} of {slo.contract.id!r} is not one folder.",
            "Write the folder of the table.",
            at=slo.contract.locate("servers"),
        )
    return WatchTarget(slo, delivery_place(place, slo.contract, slo.object), files(place.path))


def delivery_place(place: DataLocation, contract: Contract, schema_object: SchemaObject) -> DeliveryPlace:
    """Return the location that the watcher probes, with the marker's name."""
    # Imported here because the gate has no deliveries.
    from dq.dataquality.delivery.cycle import DeliveryPlace

    terms, _ = extension.dataset(schema_object)
    return DeliveryPlace(
        place.path,
        place.format,
        terms.marker,
        other_servers(contract, place.server),
        layout=place.layout,
    )


# Contracts of a watcher, some of which may have been removed since the last tick.


def load_watched(
    store: Store,
    paths: Sequence[Path],
    skipped_key: Callable[[Path, bytes], str | None],
    note: Callable[[str], None],
) -> LoadedContracts:
    """Load the contracts at or below the paths; a path whose watched contracts were removed may be empty.

    Raises ReadError as `load`, also if the registry itself is missing: a lost mount does not count as
    removal.
    """
    try:
        return load(paths, note, skipped_key)
    except ReadError:
        from dq.dataquality.delivery.key_owners import key_owners  # SQL, which most readers do not need

        with store.read() as tx:
            key_holders = key_owners(tx)
        emptied = [path for path in paths if _was_emptied(path, key_holders)]
        if not emptied:
            raise
    for path in emptied:
        note(f"{path} no longer contains a contract.")
    remaining = [path for path in paths if path not in emptied]
    return load(remaining, note, skipped_key) if remaining else LoadedContracts([], [])


def _was_emptied(path: Path, key_holders: Mapping[str, KeyOwner]) -> bool:
    real = Path(os.path.realpath(path))
    registries = [
        Path(holder.registry)
        for holder in key_holders.values()
        if holder.registry is not None and (Path(holder.registry) / holder.file).is_relative_to(real)
    ]
    if not registries or not all(is_root(registry) for registry in registries):
        return False
    try:
        load([path], lambda _: None)
    except ReadError:
        # An existing but unreadable path may contain contracts.
        return not os.path.lexists(path) or os.access(path, os.R_OK | os.X_OK)
    return False


# Errors of one contract become its finding; the others continue.

RULE = "contract-refused"

T = TypeVar("T")
R = TypeVar("R")


def refusal(contract: Contract, error: DqError) -> Finding:
    """Return the finding for a contract's error, at the error's location or at the start of the contract."""
    location = error.at or contract.locate()
    return Finding(RULE, Severity.ERROR, error.what, error.hint, location, contract=contract.id)


def run_per_contract(
    items: Iterable[T], contract_of: Callable[[T], Contract], work: Callable[[T], R]
) -> tuple[list[R], list[Finding]]:
    """Apply `work` to every item; return the results, and a finding for each error once.

    StoreError is raised, since it is not an error of a contract.
    """
    results: list[R] = []
    refused: dict[Finding, None] = {}
    for item in items:
        try:
            results.append(work(item))
        except StoreError:
            raise
        except DqError as error:
            refused[refusal(contract_of(item), error)] = None
    return results, list(refused)


# All versions of contract files, from the work tree and from Git, with their SLOs.


def promises_of_all_times(contracts: Iterable[Contract]) -> ContractSlos:
    """Return the delivery SLOs of all versions of these contracts' files, by SHA-256 of the text and SLO key.

    Raises BaseUnavailable if Git fails.
    """
    promises: dict[tuple[str, tuple[str, str, str]], Slo] = {}
    for contract in contracts:
        for data in _texts(Path(contract.file)):
            past = parse(data, contract.file).contract
            if past is None:
                continue
            for slo in promise.read_slos(past)[0]:
                promises[past.digest, slo.key] = slo
    return promises


def _texts(file: Path) -> Iterator[bytes]:
    with suppress(FileRejected):
        yield read_own(file)
    # Imported here because it pulls in the comparison of contracts.
    from dq.validators.git.history import file_versions

    yield from file_versions(file.parent, file.name)


# The policy of a registry.


def read_policy_text(root: Path, file: Path | None) -> tuple[str, bytes] | None:
    """Return the display name and content of the policy file, or None if there is none."""
    if file is None:
        return (POLICY_FILE, read(POLICY_FILE, root=root)) if exists(POLICY_FILE, root) else None
    name = str(file.relative_to(root) if file.is_relative_to(root) else file)
    try:
        return name, read(file)
    except FileMissing as error:
        raise ReadError(f"{file} does not exist.", "Check the path given as --policy.") from error


class _BuiltInRules(Mapping[str, Rule]):
    """The built-in rules by id, loaded when they are first used: there are more than a hundred modules."""

    @cached_property
    def _rules(self) -> Mapping[str, Rule]:
        from dq.validators.lint import load_rules

        return load_rules()

    def __getitem__(self, id_: str) -> Rule:
        return self._rules[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)


_BUILT_IN_RULES = _BuiltInRules()


def parse_policy(named_text: tuple[str, bytes] | None, rules: Mapping[str, Rule] = _BUILT_IN_RULES) -> Policy:
    """Parse a policy; return the default policy for None. Raises UsageError for an invalid policy.

    `rules` are the built-in rules; by default they are loaded if the policy names rules. An invalid schema of
    custom properties is left out, and reported as a finding in every run.
    """
    if named_text is None:
        return DEFAULT
    # Imported here: many registries have no policy, and its models are slow to build.
    from dq.validators.policy.file import read as read_policy

    name, data = named_text
    policy, findings = read_policy(data, name, rules, _rules_of_changes() if b"waivers" in data else ())
    schemas = tuple(finding for finding in findings if finding.path.startswith("customProperties."))
    errors = [finding for finding in findings if finding not in schemas]
    if errors:
        raise UsageError("the policy is invalid:", details=[str(error) for error in errors])
    return replace(policy, unusable_schemas=schemas) if schemas else policy


def _rules_of_changes() -> Collection[str]:
    """Return the compatibility rules, which only waivers can name. Imported lazily: slow to import."""
    from dq.validators.compat.classified_change import RULES

    return RULES
