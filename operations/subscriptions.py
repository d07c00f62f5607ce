"""Subscriptions of a registry: whose they are, and which are approved."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import discovery
from dq.contracts.access.discovery import SUBSCRIPTIONS, called_contract, candidates
from dq.contracts.access.files import POLICY_FILE, FileRefused, read
from dq.contracts.model import Contract, Identity
from dq.contracts.odcs import ASIDE, is_contract
from dq.contracts.outcome import Finding
from dq.contracts.subscriptions import Subscription
from dq.contracts.subscriptions import read as typed
from dq.contracts.yaml.parse import parse
from dq.operations.runtime.context import called, elapsed, registry_root
from dq.validators.lint import Gather, SubscriptionFiles

if TYPE_CHECKING:
    from dq.validators.git.base import Base


# The subscriptions of a registry, and the contracts that they name, found among all by their ids.

Content = bytes | FileRefused


@dataclass(frozen=True, slots=True)
class NamedContracts:
    """Contracts of a registry by identity, and the ids of files that seem to have one and cannot be read."""

    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AgreedSubscriptions:
    """Subscriptions that may be acted on: the gate has nothing against them, or they are over.

    `findings` are what it has against the others, and `unclear` the files of these.
    """

    subscriptions: tuple[Subscription, ...] = ()
    findings: tuple[Finding, ...] = ()
    unclear: frozenset[str] = frozenset()


def contents(root: Path) -> dict[str, Content]:
    """What the subscription files below a registry's root hold, by their names from there, in order."""
    found: dict[str, Content] = {}
    for one in discovery.subscriptions(root):
        try:
            data = read(one)
        except FileRefused as refused:
            found[one.name] = refused
            continue
        if not is_contract(data):
            found[one.name] = data
    return found


def load_subscriptions(root: Path) -> tuple[list[Subscription], list[Finding]]:
    """The subscriptions of a registry whose form is right, by file, and what is wrong with the others."""
    found: list[Subscription] = []
    findings: list[Finding] = []
    for name, data in contents(root).items():
        if isinstance(data, FileRefused):
            findings.append(data.finding(name))
            continue
        made, wrong = typed(data, name)
        wrong = [one for one in wrong if one.severity.blocks]
        findings += wrong
        found += [made] if made is not None and not wrong else []
    return found, findings


def ids_in(files: Mapping[str, Content], told: Collection[str]) -> set[str]:
    """The ids of contracts that these subscription files name."""
    made = (typed(data, name)[0] for name in told if isinstance(data := files[name], bytes))
    return {one.contract for one in made if one is not None}


def named_contracts(root: Path, ids: Collection[str]) -> NamedContracts:
    """The contracts below a registry's root that have one of these ids; only they are parsed."""
    if not ids:
        return NamedContracts()
    found = _parsed(root, ids, lambda data: {one.decode("utf-8", "replace") for one in _IDS.findall(data)})
    missing = set(ids) - {id_ for id_, _ in found.contracts} - found.unclear
    if not missing:
        return found
    # An id may be written in another way than on a line with its key: below it, or with spaces in quotes.
    more = _parsed(
        root, missing, lambda data: {one for one in missing if one.encode("utf-8", "surrogatepass") in data}
    )
    return NamedContracts({**found.contracts, **more.contracts}, found.unclear | more.unclear)


_IDS = re.compile(rb"""\bid["']?[ \t]*:[ \t]*(?:&\S+[ \t]+)?["']?([^"'\s,{}#]+)""")


def _parsed(root: Path, ids: Collection[str], said: Callable[[bytes], set[str]]) -> NamedContracts:
    """The contracts with one of the ids, of those whose bytes seem to say one."""
    found: dict[Identity, Contract] = {}
    unclear: set[str] = set()
    for data, name in _texts(root):
        if (told := said(data)).isdisjoint(ids):
            continue
        contract = parse(data, name).contract
        if contract is None or (contract.id in ids and not contract.version):
            unclear |= told & set(ids)
        elif contract.id in ids:
            found.setdefault(contract.identity, contract)
    return NamedContracts(found, frozenset(unclear))


def _texts(root: Path) -> Iterator[tuple[bytes, str]]:
    """The bytes of every contract that can be read, with its name from the root."""
    for one, data in candidates(root):
        if data is None:
            try:
                data = read(one)
            except FileRefused:
                continue
        elif not is_contract(data):
            continue
        yield data, one.name


# Which subscriptions a run of the gate judges, with the contracts that they name.


def split(paths: list[Path], root: Path) -> tuple[list[Path], list[Path]]:
    """The named paths that are of contracts, and those that are subscriptions, or folders of them.

    The registry's policy is neither: a shell names it with the contracts beside it, and it is read anyway.
    """
    top = Path(os.path.realpath(root))
    below = top / SUBSCRIPTIONS
    ours = [path for path in paths if _whole(path).is_relative_to(below) and not called_contract(path.name)]
    return [path for path in paths if path not in ours and _whole(path) != top / POLICY_FILE], ours


def gathered(root: Path, paths: list[Path]) -> Gather:
    """The subscriptions of the registry at or below the paths, and those of the contracts that were read."""

    def gather(ids: Collection[str]) -> SubscriptionFiles:
        files = contents(root)
        if not files:
            return SubscriptionFiles()
        top = Path(os.path.realpath(root))
        named = [_whole(path) for path in paths]
        told = {name for name in files if any((top / name).is_relative_to(path) for path in named)}
        told |= {name for name, data in files.items() if name not in told and _names_one(name, data, ids)}
        return _judged(root, files, told)

    return gather


def changed(root: Path, found: Base) -> Gather:
    """The subscriptions that the branch adds or changes."""

    from dq.validators.git.base import changed as by_branch
    from dq.validators.git.base import contracts_at_base

    def gather(_: Collection[str]) -> SubscriptionFiles:
        files = contents(root)
        told = by_branch(found, files)
        return replace(
            _judged(root, files, told), base_contracts=contracts_at_base(found, ids_in(files, told))
        )

    return gather


def _judged(root: Path, files: Mapping[str, Content], told: Collection[str]) -> SubscriptionFiles:
    """These files, of which some are told of, with the contracts that those name."""
    if not told:
        return SubscriptionFiles()
    named = named_contracts(root, ids_in(files, told))
    return SubscriptionFiles(files, frozenset(told), named.contracts, named.unclear)


def _names_one(name: str, data: Content, ids: Collection[str]) -> bool:
    if not isinstance(data, bytes) or not any(
        one.encode("utf-8", "surrogatepass") in data for one in ids if one
    ):
        return False
    return not ids_in({name: data}, [name]).isdisjoint(ids)


def _whole(path: Path) -> Path:
    """A path without links, but for its own name."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else Path(os.path.realpath(path))


# Who consumes what, listed.


class SubscriptionState(StrEnum):
    """Where a subscription stands on a day."""

    ACTIVE = "active"
    ENDING = "ending"
    COMING = "coming"
    OVER = "over"


Listed = tuple[tuple[Subscription, SubscriptionState], ...]
"""Subscriptions, each with where it stands."""


@dataclass(frozen=True, slots=True)
class SubscriptionsOutcome:
    """Subscriptions of the registry at `root`, and why others cannot be read. `notes` tell of files aside."""

    root: Path
    subscriptions: Listed
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """As `dq subscriptions` ends: 3 a subscription cannot be read."""
        return 3 if self.findings else 0

    def as_dict(self) -> dict[str, object]:
        """What `dq subscriptions --format json` prints."""
        return {
            "subscriptions": [_as_dict(subscription, state) for subscription, state in self.subscriptions],
            "findings": [finding.as_dict() for finding in self.findings],
        }


def list_subscriptions(
    path: Path | str = ".",
    *,
    contract: str | None = None,
    team: str | None = None,
    within: str | None = None,
    folder: Path | str | None = None,
    now: datetime | None = None,
) -> SubscriptionsOutcome:
    """Who consumes what of a registry, since when and until when, as `dq subscriptions` lists it.

    `path` is a folder or file of the registry, `contract` an id, `team` a consumer. With `within`, e.g. 30d,
    only those that are active and end within that time. `folder` stands for the working folder; `now` is an
    aware instant.

    Raises UsageError for a length that cannot be understood.
    """
    world, (place,) = called(path, folder, now)
    today, root = world.now().date(), registry_root(place)
    soon = elapsed(within, "--within") if within is not None else timedelta(days=30)
    subscriptions, findings = load_subscriptions(root)
    rows = [
        (one, _state(one, today, soon))
        for one in subscriptions
        if contract in (None, one.contract) and team in (None, one.consumer.team)
    ]
    if within is not None:
        rows = [row for row in rows if row[1] is SubscriptionState.ENDING]
    rows.sort(key=lambda row: (row[0].identity, row[0].consumer.team, row[0].start_date, row[0].file))
    aside = [file for file in discovery.below(root).passed if file.kind == ASIDE]
    notes = (discovery.told(aside),) if aside else ()
    return SubscriptionsOutcome(root, tuple(rows), tuple(findings), notes)


def _state(one: Subscription, today: date, soon: timedelta) -> SubscriptionState:
    if one.over(today):
        return SubscriptionState.OVER
    if not one.active(today):
        return SubscriptionState.COMING
    ending = one.end_date is not None and one.end_date - today <= soon
    return SubscriptionState.ENDING if ending else SubscriptionState.ACTIVE


def _as_dict(one: Subscription, state: SubscriptionState) -> dict[str, object]:
    return {
        "contract": one.contract,
        "major": one.major,
        "consumer": {
            "team": one.consumer.team,
            "account": one.consumer.account,
            "principal": one.consumer.principal,
            "contact": one.consumer.contact,
        },
        "purpose": one.purpose,
        "columns": list(one.columns),
        "tags": list(one.tags),
        "row_filter": one.row_filter,
        "since": one.start_date.isoformat(),
        "until": one.end_date.isoformat() if one.end_date else None,
        "approvers": one.approvers,
        "state": state.value,
        "file": one.file,
    }
