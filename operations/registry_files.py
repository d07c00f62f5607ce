"""Contracts from the files of a registry, and what keeps one of them out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dq.contracts import extension
from dq.contracts import slo as promise
from dq.contracts.access.access_policy import Reach
from dq.contracts.access.alert_target import route_terms
from dq.contracts.access.data_location import DataPlace, other_servers, resolve
from dq.contracts.access.discovery import discover, told
from dq.contracts.access.files import FileRefused, read, read_own
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.outcome import DqError, Finding, Severity, StoreError, Unreadable, UsageError
from dq.contracts.slo import NOT_IN_FORCE as NOT_IN_FORCE
from dq.contracts.slo import Slo
from dq.contracts.yaml.parse import parse
from dq.dataquality.delivery.cycle import DeliveryPlace
from dq.lake.storage import Files
from dq.operations.runtime.context import is_root

if TYPE_CHECKING:
    from dq.dataquality.delivery.cycle import Watched
    from dq.dataquality.delivery.replay import Promises
    from dq.dataquality.delivery.skip_cache import KeyHolder
    from dq.store.engine import Store


# Contracts from paths, for commands that use contracts rather than judge them.


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contracts that could be read, by file order, and what kept the others out."""

    contracts: list[Contract]
    findings: list[Finding]
    gone: Mapping[str, str] = field(default_factory=dict)
    """Why contracts that were watched are no more, by their keys; found out where identities are kept."""
    resting: Mapping[str, str] = field(default_factory=dict)
    """The keys of contracts that were not read, because nothing is due, by their files."""


def load(
    paths: Iterable[Path],
    note: Callable[[str], None],
    rests: Callable[[Path, bytes], str | None] = lambda *_: None,
) -> Loaded:
    """Every contract at or below the paths. One that cannot be read is left out, with its findings.

    The YAML files that are none are told to `note`. `rests` gives the key of a contract
    that need not be read.

    Raises Unreadable for a path that does not exist, and for one that holds no contract.
    """
    contracts: list[Contract] = []
    findings: list[Finding] = []
    resting: dict[str, str] = {}
    found = discover(paths)
    if found.passed:
        note(told(found.passed))
    for file in found.contracts:
        try:
            content = read(file)
        except FileRefused as refused:
            findings.append(refused.finding(str(file)))
            continue
        if (key := rests(file.path, content)) is not None:
            resting[str(file)] = key
            continue
        parsed = parse(content, str(file))
        wrong = [finding for finding in parsed.findings if finding.severity.blocks]
        findings += wrong
        if parsed.contract is not None and not wrong:
            contracts.append(parsed.contract)
    return Loaded(contracts, findings, resting=resting)


def only(loaded: Loaded) -> Contract:
    """The one contract that a command is about.

    Raises Unreadable, with every finding, where a contract has errors, and UsageError where it is not clear.
    """
    if loaded.findings:
        # Also beside one that can be read: nobody knows which of them was meant.
        files = ", ".join(dict.fromkeys(finding.at.file for finding in loaded.findings))
        raise Unreadable(
            f"{files} cannot be used as it is:",
            "Run 'dq validate' after mending that.",
            [str(finding) for finding in loaded.findings],
        )
    if len(loaded.contracts) != 1:
        ids = ", ".join(contract.id for contract in loaded.contracts)
        raise UsageError(f"one contract is wanted here, and these were found: {ids}.", "Name its file.")
    return loaded.contracts[0]


def chosen(loaded: Loaded, name: str | None) -> tuple[Contract, SchemaObject]:
    """The one contract and object that a command is about. Raises as `only` does, and for an object."""
    contract = only(loaded)
    names = [one.name for one in contract.objects]
    if name is None and len(names) == 1:
        return contract, contract.objects[0]
    found = contract.object(name) if name else None
    if found is None:
        raise UsageError(
            f"contract {contract.id!r} has the objects {', '.join(names) or '(none)'}.",
            f"Choose one with --object {names[0] if names else 'NAME'}.",
        )
    return contract, found


def slos(loaded: Loaded, note: Callable[[str], None]) -> tuple[list[Slo], list[Finding]]:
    """The delivery promises of all contracts that are in force, and what is wrong with the rest."""
    found: list[Slo] = []
    findings: list[Finding] = []
    for contract in loaded.contracts:
        if contract.status in NOT_IN_FORCE:
            note(f"{contract.id} is {contract.status}, so its deliveries are not judged.")
            continue
        ready, wrong = promise.read(contract)
        found += ready
        findings += wrong
        findings += [finding for one in contract.support for finding in route_terms(one)[1]]
    return found, list(dict.fromkeys(findings))


def watched(slo: Slo, server: str | None, reach: Reach, files: Callable[[str], Files]) -> Watched:
    """An SLO with the place of its data, and what reads it.

    Raises UsageError where the place cannot be known.
    """
    # It brings the state with it, which who only reads contracts does not need.
    from dq.dataquality.delivery.cycle import Watched

    place = resolve(slo.contract, slo.object, server, reach)
    if not place.path:
        raise UsageError(
            f"server {place.server!r} of {slo.contract.id!r} has no location to look at.",
            "Add 'location' to the server.",
            at=slo.contract.at("servers"),
        )
    return Watched(slo, marked(place, slo.contract, slo.object), files(place.path))


def marked(place: DataPlace, contract: Contract, one: SchemaObject) -> DeliveryPlace:
    """Where the watcher looks: the data's place and the marker's name."""
    terms, _ = extension.dataset(one)
    return DeliveryPlace(place.path, place.format, terms.marker, other_servers(contract, place.server))


# Loads the contracts of a watcher, of which some, or all, may have been removed since the last tick.


def load_watched(
    store: Store,
    paths: Sequence[Path],
    rests: Callable[[Path, bytes], str | None],
    note: Callable[[str], None],
) -> Loaded:
    """The contracts at or below the paths; a path whose contracts were watched may hold none any more.

    Raises Unreadable as `load` does, also where the registry itself is gone: a mount that is lost removes
    nothing.
    """
    try:
        return load(paths, note, rests)
    except Unreadable:
        from dq.dataquality.delivery.skip_cache import holders  # SQL, which most readers do not need

        with store.read() as tx:
            known = holders(tx)
        emptied = [path for path in paths if _was_emptied(path, known)]
        if not emptied:
            raise
    for path in emptied:
        note(f"{path} holds no contract any more.")
    left = [path for path in paths if path not in emptied]
    return load(left, note, rests) if left else Loaded([], [])


def _was_emptied(path: Path, known: Mapping[str, KeyHolder]) -> bool:
    real = Path(os.path.realpath(path))
    registries = [
        Path(one.registry)
        for one in known.values()
        if one.registry is not None and (Path(one.registry) / one.file).is_relative_to(real)
    ]
    if not registries or not all(is_root(one) for one in registries):
        return False
    try:
        load([path], lambda _: None)
    except Unreadable:
        # One that is there and cannot be read may hold anything.
        return not os.path.lexists(path) or os.access(path, os.R_OK | os.X_OK)
    return False


# A contract that a command cannot take along is that contract's own finding; every other one goes on.

RULE = "contract-refused"

T = TypeVar("T")
R = TypeVar("R")


def refusal(contract: Contract, error: DqError) -> Finding:
    """What keeps a contract out of a run, at the place that the error names, else at its beginning."""
    at = error.at or contract.at()
    return Finding(RULE, Severity.ERROR, error.what, error.mend, at, contract=contract.id)


def each(
    items: Iterable[T], contract_of: Callable[[T], Contract], work: Callable[[T], R]
) -> tuple[list[R], list[Finding]]:
    """What the work gave for every item that it could be done for, and each refusal once.

    A store that does not answer is no contract's fault: StoreError is raised.
    """
    done: list[R] = []
    refused: dict[Finding, None] = {}
    for item in items:
        try:
            done.append(work(item))
        except StoreError:
            raise
        except DqError as error:
            refused[refusal(contract_of(item), error)] = None
    return done, list(refused)


# Every text that contracts ever had, from the work tree and from Git, with what each promised.


def promises_of_all_times(contracts: Iterable[Contract]) -> Promises:
    """The delivery promises of these contracts' files, by the SHA-256 of each text and the promise's key.

    Raises BaseUnavailable where Git cannot answer.
    """
    found: dict[tuple[str, tuple[str, str, str]], Slo] = {}
    for contract in contracts:
        for data in _texts(Path(contract.file)):
            past = parse(data, contract.file).contract
            if past is None:
                continue
            for slo in promise.read(past)[0]:
                found[past.digest, slo.key] = slo
    return found


def _texts(file: Path) -> Iterator[bytes]:
    with suppress(FileRefused):
        yield read_own(file)
    # It brings in how contracts are compared, which few runs need.
    from dq.validators.git.history import every_text

    yield from every_text(file.parent, file.name)
