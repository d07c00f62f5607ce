"""Everything that is wrong with contracts and subscriptions, without their data: a file, or a registry."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from dq.contracts.access import files
from dq.contracts.access.discovery import Discovery, PassedOver, discover
from dq.contracts.access.files import FileRefused, Found, shown
from dq.contracts.model import Contract, Identity
from dq.contracts.shared import install
from dq.contracts.shared.outcome import Finding
from dq.contracts.subscriptions import Subscription, read
from dq.validators import rules as rules_shelf
from dq.validators.context import Subscribed, Unenforced, nothing
from dq.validators.lint.linter import MAX_OF_ONE_RULE, Gate, JudgedFile, among_others, ancestors, judge
from dq.validators.policy.policy import DEFAULT, EXPIRED, UNUSED, Policy, apply_waivers
from dq.validators.registry import TablesAtBase
from dq.validators.rule import Rule, RuleScope

# The subscriptions of a registry before the rules, beside its contracts.


@dataclass(frozen=True, slots=True)
class SubscriptionFiles:
    """The files of subscriptions, by their names from the registry's root, in order.

    `told` are those whose findings are wanted: the others are there to be compared with. `contracts` are the
    contracts that they name, and `unclear` the ids of those that cannot be read. `base_contracts` are those
    of the base of a branch, which decide who may approve.
    """

    files: Mapping[str, bytes | FileRefused] = field(default_factory=dict)
    told: frozenset[str] = frozenset()
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unclear: Collection[str] = ()
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)


Gather = Callable[[Collection[str]], SubscriptionFiles]
"""From the ids of the contracts that were read, the subscriptions to be judged with them."""


def no_subscriptions(_: Collection[str]) -> SubscriptionFiles:
    """Of a registry without any."""
    return SubscriptionFiles()


def judge_subscriptions(gate: Gate, given: SubscriptionFiles, ids: Collection[str]) -> list[Finding]:
    """What is wrong with the subscriptions, their form first. `ids` are those of all contracts read."""
    if not given.told:
        return []
    findings: list[Finding] = []
    every: list[Subscription] = []
    for file, data in given.files.items():
        if isinstance(data, FileRefused):
            made, form = None, [data.finding(file)]
        else:
            made, form = read(data, file)
        if file in given.told:
            contract = made.contract if made is not None else ""
            findings += [replace(one, contract=contract) for one in form]
        if made is not None and not any(one.severity.blocks for one in form):
            every.append(made)
    known = {*ids, *(id_ for id_, _ in given.contracts)}
    among = Subscribed(
        gate.today,
        given.contracts,
        given.unclear,
        known,
        tuple(every),
        given.told,
        base_contracts=given.base_contracts,
    )
    findings += (one for each in every if each.file in given.told for one in _faults(gate, each, among))
    return findings


def _faults(gate: Gate, one: Subscription, among: Subscribed) -> Iterator[Finding]:
    contract = among.contract(one)
    domain = contract.domain if contract is not None else None
    for used in gate.in_use(RuleScope.SUBSCRIPTION, one.file, domain):
        seen = replace(among, arguments=used.arguments) if used.arguments else among
        for number, fault in enumerate(used.rule.subscribed(one, seen), 1):
            # Many subscriptions are of one contract: a waiver names the file too.
            path = f"{one.file}#{fault.path}"
            yield Finding(
                used.rule.id, used.severity, fault.message, fault.mend, fault.at, path, one.contract
            )
            if number == MAX_OF_ONE_RULE:
                break


# One function over many values, in several processes where that pays, with a collector that stays out.

T = TypeVar("T")
R = TypeVar("R")

# Below this, starting processes takes longer than they save.
WORTH_IT = 200
_CHUNK = 25

# In a forked process: the function that it was made for.
_work: list[Callable[[object], object]] = []


def parallel_map(values: Sequence[T], work: Callable[[T], R], processes: int) -> list[R]:
    """`work` of every value, in order.

    Processes are only used for many values, and only where the system can fork safely: `work` and all that
    it holds are inherited and not copied, and only results cross between processes. What `work` raises is
    raised here.
    """
    with quiet_collector():
        if processes < 2 or len(values) < WORTH_IT or not _can_fork():
            return [work(value) for value in values]
        return list(_shared_out(values, work, processes))


def _can_fork() -> bool:
    """On Linux, and while no thread could hold a lock that the child would wait for."""
    return sys.platform == "linux" and threading.active_count() == 1


def _shared_out(values: Sequence[T], work: Callable[[T], R], processes: int) -> Iterator[R]:
    # Imported here: starting up costs more than a single contract does.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _work[:] = [work]  # type: ignore[list-item]  # what goes in comes back out with the same types
    # What the first one imports, the others inherit.
    yield work(values[0])
    chunks = [values[start : start + _CHUNK] for start in range(1, len(values), _CHUNK)]
    try:
        with ProcessPoolExecutor(processes, get_context("fork")) as pool:
            for results in pool.map(_chunk, chunks):
                yield from results  # type: ignore[misc]  # see above
    finally:
        _work.clear()


def _chunk(values: Sequence[object]) -> list[object]:
    return [_work[0](value) for value in values]


@contextmanager
def quiet_collector() -> Iterator[None]:
    """The cycle collector runs seldom: contracts are trees, which go when they are let go.

    With its usual thresholds it looks at every contract several times, a third of the whole cost.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


# Everything that is wrong with contracts, without their data: one file, or a whole registry.

Rules = Mapping[str, Rule]

# A contract may quote megabytes into a text.
MAX_TEXT = 1_000


def rules_of(package: ModuleType = rules_shelf) -> dict[str, Rule]:
    """The rules on a shelf by id; without an argument, the ones that ship."""
    return install.load(package, "RULE", Rule)


@dataclass(frozen=True, slots=True)
class Linted:
    """What was read and found. `files` are all contract files; `sources` the bytes of those with findings.

    `passed` are the YAML files below the folders that are no contracts.

    Files are named relative to the registry's root. Findings come sorted by file, place and rule.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    sources: Mapping[str, bytes] = field(default_factory=dict)
    passed: tuple[PassedOver, ...] = ()


def lint(
    data: bytes,
    file: str,
    *,
    rules: Rules,
    policy: Policy = DEFAULT,
    today: date,
    unenforced: Unenforced = nothing,
) -> list[Finding]:
    """What is wrong with one contract, sorted by place; `file` is its path relative to the registry's root.

    Rules of the scope `registry` see this contract alone. `unenforced` gives what the checker will not do of
    a contract; without it, nothing is said of that. Never raises for what the file says.
    """
    files = [(file, data)]
    return list(lint_files(files, rules=rules, policy=policy, today=today, unenforced=unenforced).findings)


def lint_paths(
    paths: Sequence[Path],
    *,
    root: Path,
    rules: Rules,
    policy: Policy = DEFAULT,
    today: date,
    processes: int = 1,
    unenforced: Unenforced = nothing,
    subscriptions: Gather = no_subscriptions,
) -> Linted:
    """What is wrong with the contracts at these paths, and with the registry that they form.

    `root` is the registry's root, and `subscriptions` gives those that are judged with the contracts. Many
    contracts are shared out to `processes` where the system can fork. A file that cannot be read has a
    finding that says why, and the others are judged. Raises Unreadable for
    a path that does not exist, and for a folder without a contract: nothing was validated there, which is
    not the same as fine.
    """
    found = discover(paths) if paths else Discovery(())
    unique = sorted(_named(found.contracts, root).items())
    gate = Gate(rules, policy, today, unenforced)
    judged = parallel_map(unique, _Reader(gate), processes)
    return replace(_linted(gate, judged, subscriptions), passed=found.passed)


def lint_files(
    contents: Iterable[tuple[str, bytes | FileRefused]],
    *,
    rules: Rules,
    policy: Policy = DEFAULT,
    today: date,
    unenforced: Unenforced = nothing,
    subscriptions: Gather = no_subscriptions,
    base: TablesAtBase = TablesAtBase(),
) -> Linted:
    """What is wrong with contracts that are handed in as (file, bytes), taken as one registry.

    A file that cannot be read comes with the reason instead of its bytes. `base` has the tables of contracts
    that are not handed in.
    """
    gate = Gate(rules, policy, today, unenforced)
    judged = parallel_map(list(contents), lambda one: judge(gate, *one), processes=1)
    return _linted(gate, judged, subscriptions, base)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads and judges one file."""

    gate: Gate

    def __call__(self, named: tuple[str, Found]) -> JudgedFile:
        file, found = named
        try:
            return judge(self.gate, file, files.read(found))
        except FileRefused as refused:
            return judge(self.gate, file, refused)


def _linted(
    gate: Gate, judged: Iterable[JudgedFile], subscriptions: Gather, base: TablesAtBase = TablesAtBase()
) -> Linted:
    every = list(judged)
    found = [finding for one in every for finding in one.findings]
    found += among_others(gate, every, base)
    found += gate.policy.unusable_schemas
    ids = {one.entry.identity[0] for one in every if one.entry is not None}
    subscribed = subscriptions(ids)
    found += judge_subscriptions(gate, subscribed, ids)
    found = _without_consequences(found, gate)
    found = apply_waivers(
        found,
        gate.policy.waivers,
        rules=gate.rules,
        contracts=ids,
        today=gate.today,
    )
    findings = [finding for one in found if (finding := _of_the_policy(one, gate)) is not None]
    findings.sort(key=lambda finding: (finding.at, finding.rule, finding.path))
    files = {finding.at.file for finding in findings}
    sources = {one.file: one.data for one in every if one.data is not None and one.file in files}
    sources |= {
        file: data for file, data in subscribed.files.items() if file in files and isinstance(data, bytes)
    }
    return Linted(tuple(_brief(one) for one in findings), tuple(one.file for one in every), sources)


def _without_consequences(found: list[Finding], gate: Gate) -> list[Finding]:
    """Without what only follows from what was found among all contracts, which is known last."""
    late = {
        (one.at.file, above)
        for one in found
        if (rule := gate.rules.get(one.rule)) is not None and rule.scope is RuleScope.REGISTRY
        for above in (one.path, *ancestors(one.path))
    }
    return [
        one
        for one in found
        if not late or (one.at.file, one.path) not in late or not gate.rules[one.rule].consequences
    ]


def _of_the_policy(finding: Finding, gate: Gate) -> Finding | None:
    """A finding about a waiver with the severity that the policy gives it; every other one as it is."""
    rule = gate.rules.get(finding.rule)
    if finding.rule not in (EXPIRED, UNUSED) or rule is None:
        return finding
    severity = gate.policy.severity(rule)
    return None if severity is None else replace(finding, severity=severity)


def _brief(finding: Finding) -> Finding:
    """The finding with its texts cut to what fits a screen; a contract may quote megabytes into them."""
    if max(len(finding.message), len(finding.mend), len(finding.contract)) <= MAX_TEXT:
        return finding
    message, mend, contract = (
        text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
        for text in (finding.message, finding.mend, finding.contract)
    )
    return replace(finding, message=message, mend=mend, contract=contract)


def _named(found: Iterable[Found], root: Path) -> dict[str, Found]:
    """The files by the path that messages name: relative to the root where it lies below, else as given.

    A folder that was named is resolved once for all its files: below it there are no links.
    """
    top = Path(os.path.realpath(root))
    folders: dict[Path, Path] = {}
    named: dict[str, Found] = {}
    for one in found:
        folder = folders.get(one.root)
        if folder is None:
            folder = folders[one.root] = Path(os.path.realpath(one.root))
        path = folder / one.name
        named[shown((path.relative_to(top) if path.is_relative_to(top) else one.path).as_posix())] = one
    return named
