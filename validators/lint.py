"""From files to findings: form and rules of one contract and of all, and what a report of them is."""

from __future__ import annotations

import gc
import os
import posixpath
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TypeVar

from dq.contracts import extension, install
from dq.contracts.access import files
from dq.contracts.access.discovery import Discovery, PassedOver, discover
from dq.contracts.access.files import FileRefused, Found, shown
from dq.contracts.model import MAX_FINDINGS, Contract, Identity
from dq.contracts.odcs import Version
from dq.contracts.outcome import Finding, Severity, counted, first_of, nearest
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators import rules as rules_shelf
from dq.validators.context import (
    COLUMN,
    Context,
    Entry,
    OfficialSchema,
    Promises,
    PropertyPlace,
    Registry,
    Subscribed,
    TablesAtBase,
    Unenforced,
    Walk,
    nothing,
)
from dq.validators.policy.policy import DEFAULT, EXPIRED, UNUSED, EnabledRule, Policy, apply_waivers
from dq.validators.rule import Fault, Rule, RuleScope

# One contract before the rules: its form, what each rule says, and one finding for one mistake.

# Columns of one object with the same fault are one finding, at the line of the first.

# As many names as a reader takes in at a glance.
_NAMED = 5
_LONGEST_NAME = 40


class Alike:
    """Gathers the faults of one contract that differ by their column alone."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    @cached_property
    def _columns(self) -> dict[str, PropertyPlace]:
        return {one.property.path(): one for one in self._walk.columns}

    def key(self, fault: Fault) -> tuple[str, str]:
        """The same text for faults that are one finding."""
        place = self._place(fault)
        return (fault.kind, place.object.path()) if fault.kind and place else (fault.path, fault.message)

    def merged(self, faults: Sequence[Fault]) -> Fault:
        """One fault for those of one key, in the order of the file."""
        first = faults[0]
        place = self._place(first)
        names = [name for name in dict.fromkeys(self._names(faults)) if place and name != _name(place)]
        if place is None or not names:
            return first
        others = f"{counted(len(names), 'other column')} of {place.object.name!r}"
        message = f"{first.message} The same holds for {others}: {first_of(names, _NAMED)}."
        alike = all(fault.mend == first.mend for fault in faults)
        mend = first.mend if alike else f"{first.mend.rstrip('.')}, and the others likewise."
        return replace(first, message=message, mend=mend)

    def _place(self, fault: Fault) -> PropertyPlace | None:
        match = COLUMN.match(fault.path)
        return self._columns.get(match[0]) if match else None

    def _names(self, faults: Iterable[Fault]) -> Iterator[str]:
        for fault in faults:
            place = self._place(fault)
            if place is not None:
                yield _name(place)


def _name(place: PropertyPlace) -> str:
    name = place.property.name or place.property.path().rpartition(".")[2]
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


# One mistake gives one finding: what follows from a mistake already reported is left out.


class Said:
    """The rules that spoke, by path, and how severe it is there."""

    def __init__(self) -> None:
        self._at: dict[str, dict[str, Severity]] = {}
        self._below: dict[str, dict[str, Severity]] = {}

    def add(self, path: str, rule: str, severity: Severity) -> None:
        """A rule speaks of what stands at a path."""
        self._at.setdefault(path, {})[rule] = severity
        for above in ancestors(path):
            rules = self._below.setdefault(above, {})
            rules[rule] = max(severity, rules.get(rule, severity), key=lambda grade: grade.rank)

    def by_any_of(self, rules: Iterable[str], path: str) -> bool:
        """Whether one of the rules spoke of the path itself."""
        return not self._at.get(path, {}).keys().isdisjoint(rules)

    def by_another(self, rule: str, severity: Severity, path: str) -> bool:
        """Whether another rule spoke of the path itself, at least as severely."""
        return _graver(self._at.get(path, {}), rule, severity)

    def below_by_another(self, rule: str, severity: Severity, path: str) -> bool:
        """Whether another rule spoke of a part of what stands at the path, at least as severely."""
        return _graver(self._below.get(path, {}), rule, severity)


def _graver(rules: Mapping[str, Severity], rule: str, severity: Severity) -> bool:
    return any(name != rule and grade.rank >= severity.rank for name, grade in rules.items())


class Folds:
    """Answers whether a fault is only a consequence.

    It is when the loader had to cut out something at, above or below a path that the fault relies on; when
    an unknown key reads like the misspelt name of what is said to be absent; when the loader reported the
    very same place; or when a rule that explains this one reported it.
    """

    def __init__(self, cut: Iterable[str], form: Iterable[Finding]) -> None:
        self._cut = frozenset(cut)
        self._above = {above for path in self._cut for above in ancestors(path)}
        self._form: set[str] = set()
        self._unknown: dict[str, list[tuple[str, Severity]]] = defaultdict(list)
        for finding in form:
            self._form.add(finding.path)
            if finding.rule == "unknown-key":
                holder, _, key = finding.path.rpartition(".")
                self._unknown[holder].append((key, finding.severity))
        self._form.discard("")
        self._above_form = {above for path in self._form for above in ancestors(path)}
        # Many faults rely on the same long list of paths.
        self._relied: dict[tuple[str, ...], bool] = {}

    def consequence(self, fault: Fault, severity: Severity, after: tuple[str, ...], said: Said) -> bool:
        """Whether the fault follows from another.

        No error follows from an unknown key that the standard allows: the warning of it lets the contract
        pass.
        """
        if fault.path in self._form:
            return True
        if self._unknown and any(self._misspelt(path, severity) for path in fault.needs):
            return True
        if after and any(said.by_any_of(after, path) for path in (fault.path, *ancestors(fault.path))):
            return True
        if not self._cut:
            return False
        if fault.needs not in self._relied:
            self._relied[fault.needs] = any(self._unreliable(path) for path in fault.needs)
        return self._relied[fault.needs] or self._unreliable(fault.path)

    def told(self, fault: Fault, said: Said, rule: str, severity: Severity) -> bool:
        """Whether another rule spoke already of what the fault is about, of a part of it, or of its type.

        Spoken of as less severe, it is not told: a policy may make an error of what is a warning elsewhere.
        """
        element = fault.path if fault.path.endswith("]") else fault.path.rpartition(".")[0]
        column = element.removesuffix(".logicalTypeOptions")
        types = (f"{column}.logicalType", f"{column}.physicalType")
        if any(said.by_another(rule, severity, path) for path in (fault.path, element, *types)):
            return True
        return (
            said.below_by_another(rule, severity, fault.path)
            or fault.path in self._above
            or fault.path in self._above_form
        )

    def _unreliable(self, path: str) -> bool:
        if path in self._cut or path in self._above:
            return True
        return any(above in self._cut for above in ancestors(path))

    def _misspelt(self, path: str, severity: Severity) -> bool:
        holder, _, key = path.rpartition(".")
        # A reference stands for all that is said to be absent beside it.
        return any(
            grade.rank >= severity.rank and (written == "$ref" or nearest(written, [key]))
            for written, grade in self._unknown.get(holder, ())
        )


def ancestors(path: str) -> Iterator[str]:
    """The paths above this one, nearest first: `a[0]` and `a` for `a[0].b`."""
    for index in range(len(path) - 1, 0, -1):
        if path[index] in ".[":
            yield path[:index]


# One contract before the rules: its form, what each rule says, and what the others may know of it.

# More of one kind than anyone reads at once: a contract that was made to cost time gets no more of it.
MAX_OF_ONE_RULE = 100
# Faults of one rule that are gathered into fewer findings.
MAX_GATHERED = 10_000


@dataclass(slots=True)
class Gate:
    """The rules, the policy and the day of one run. `today` is the date in UTC.

    `unenforced` gives the clauses of a contract that the checker will not evaluate, `official` the schema
    of the standard where its opinion was asked for.
    """

    rules: Mapping[str, Rule]
    policy: Policy
    today: date
    unenforced: Unenforced = nothing
    official: OfficialSchema | None = None
    _in_use: dict[tuple[tuple[int, ...], RuleScope, Version | None], list[EnabledRule]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.rules = {**self.rules, **self.policy.own}

    def in_use(
        self, scope: RuleScope, file: str, domain: str | None, odcs: Version | None = None
    ) -> list[EnabledRule]:
        """The rules that the policy leaves on for a contract, with their severity and arguments.

        With the version of ODCS that the contract follows, only those that apply to it. A rule comes after
        those that explain it.
        """
        covering = self.policy.covering(file, domain)
        made = self._in_use.get((covering, scope, odcs))
        if made is None:
            rules = [
                rule
                for rule in sorted(
                    self.rules.values(), key=lambda rule: (rule.consequences, bool(rule.after))
                )
                if rule.scope is scope and (odcs is None or rule.applies(odcs))
            ]
            made = self.policy.narrowed(covering).enabled(rules)
            self._in_use[covering, scope, odcs] = made
        return made


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """What was found in one file. `data` is None when nothing was, or may yet be.

    `entry` is None for a file that holds no contract, and `folds` where no form was wrong.
    """

    file: str
    findings: list[Finding]
    data: bytes | None
    entry: Entry | None = None
    domain: str | None = None
    folds: Folds | None = None


def judge(gate: Gate, file: str, data: bytes | FileRefused) -> JudgedFile:
    """What is wrong with the contract in `data`, taken by itself. Never raises for what the file says."""
    if isinstance(data, FileRefused):
        return JudgedFile(file, [data.finding(file)], None)
    parsed = parse(data, file)
    contract = parsed.contract
    if contract is None:
        return JudgedFile(file, parsed.findings, data)
    wrong, cut = extension.faults(contract)
    form = parsed.findings + wrong
    context = Context(
        file,
        gate.today,
        Walk.of(contract),
        Promises.of(contract),
        schemas=gate.policy.schemas,
        unenforced=gate.unenforced,
        official=gate.official,
        data=data if gate.official is not None else b"",
    )
    folds = Folds(parsed.cut | cut, form)
    findings = [replace(finding, contract=contract.id) for finding in form[:MAX_FINDINGS]]
    for finding in _findings(gate, contract, context, folds):
        findings.append(finding)
        if len(findings) >= MAX_FINDINGS:
            break
    entry = Entry.of(contract, context)
    kept = data if findings or entry.links else None
    return JudgedFile(
        file, findings, kept, entry, contract.domain, folds if cut or form or parsed.cut else None
    )


def _findings(gate: Gate, contract: Contract, context: Context, folds: Folds) -> Iterator[Finding]:
    said = Said()
    alike = Alike(context.walk)
    for used in gate.in_use(RuleScope.CONTRACT, context.file, contract.domain, contract.odcs):
        rule, arguments = used.rule, used.arguments
        seen = replace(context, arguments=arguments) if arguments else context
        told = 0
        groups: dict[tuple[str, str], list[Fault]] = {}
        for fault in rule.check(contract, seen):
            severity = used.doubt if fault.doubt else used.severity
            if folds.consequence(fault, severity, rule.after, said) or (
                rule.consequences and folds.told(fault, said, rule.id, used.severity)
            ):
                continue
            told += 1
            said.add(fault.path, rule.id, severity)
            groups.setdefault(alike.key(fault), []).append(fault)
            if len(groups) == MAX_OF_ONE_RULE or told == MAX_GATHERED:
                break
        for number, faults in enumerate(groups.values(), 1):
            merged = alike.merged(faults)
            if number == MAX_OF_ONE_RULE or (told == MAX_GATHERED and number == len(groups)):
                merged = replace(merged, message=f"{merged.message} More of this kind are not listed.")
            yield _finding(merged, used, contract.id)


def among_others(gate: Gate, judged: Iterable[JudgedFile], base: TablesAtBase) -> Iterator[Finding]:
    """What is wrong with each contract among all of them; `base` has the tables of others."""
    every = [one for one in judged if one.entry is not None]
    nothing_said = Said()
    registry = Registry.of((one.entry for one in every if one.entry is not None), base)
    for one in every:
        entry, folds = one.entry, one.folds
        assert entry is not None
        for used in gate.in_use(RuleScope.REGISTRY, one.file, one.domain):
            for fault in used.rule.among(entry, registry):
                if folds is None or not folds.consequence(
                    fault, used.severity, used.rule.after, nothing_said
                ):
                    yield _finding(fault, used, entry.identity[0])


def _finding(fault: Fault, used: EnabledRule, contract: str) -> Finding:
    severity = used.doubt if fault.doubt else used.severity
    return Finding(used.rule.id, severity, fault.message, fault.mend, fault.at, fault.path, contract)


# Everything that is wrong with contracts and subscriptions, without their data: a file, or a registry.

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
    official: OfficialSchema | None = None,
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
    gate = Gate(rules, policy, today, unenforced, official)

    def read_and_judge(named: tuple[str, Found]) -> JudgedFile:
        file, contract_file = named
        try:
            return judge(gate, file, files.read(contract_file))
        except FileRefused as refused:
            return judge(gate, file, refused)

    judged = parallel_map(unique, read_and_judge, processes)
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
    official: OfficialSchema | None = None,
) -> Linted:
    """What is wrong with contracts that are handed in as (file, bytes), taken as one registry.

    A file that cannot be read comes with the reason instead of its bytes. `base` has the tables of contracts
    that are not handed in.
    """
    gate = Gate(rules, policy, today, unenforced, official)
    judged = parallel_map(list(contents), lambda one: judge(gate, *one), processes=1)
    return _linted(gate, judged, subscriptions, base)


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


# What a report format is: one file on the shelf `reports/`, from findings to a text.


@dataclass(frozen=True, slots=True)
class Screen:
    """What the reader's screen can do; formats for machines take no notice of it.

    `paint` gives a text a colour, by the code of the SGR sequence (`31;1`) that terminals know.
    """

    paint: Callable[[str, str], str] = lambda text, _: text
    width: int = 100


class From(StrEnum):
    """From where a report names files: what its reader can open.

    `registry`: the registry's root, as findings do. `repository`: the root of the Git repository, as
    services that show a pull request want it. `here`: the working folder, so that a terminal can open them.
    """

    REGISTRY = "registry"
    REPOSITORY = "repository"
    HERE = "here"


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One format. `render` gives the whole text, which ends with a line break.

    Nothing that a contract says may do anything to who reads the text: `contracts.printable` has the words.
    `steers` says that its own lines are commands to the runner of a CI server.
    """

    id: str
    render: Callable[[Linted, Screen], str]
    files: From = From.REGISTRY
    steers: bool = False


def moved(linted: Linted, folder: PurePosixPath) -> Linted:
    """The same, with files named from elsewhere; `folder` is the registry's root as seen from there.

    Absolute paths, which lie outside of the registry, stay.
    """
    if folder == PurePosixPath():
        return linted

    def name(file: str) -> str:
        # An absolute path swallows the folder; a policy may lie above it.
        return posixpath.normpath(folder / file)

    return Linted(
        tuple(replace(one, at=replace(one.at, file=name(one.at.file))) for one in linted.findings),
        tuple(name(file) for file in linted.files),
        {name(file): data for file, data in linted.sources.items()},
    )


def gravest_first(findings: Sequence[Finding]) -> list[Finding]:
    """By severity, worst first, and then as they came."""
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def lines(data: bytes) -> list[str]:
    """The lines of a contract as YAML 1.1 counts them, which knows three line breaks of Unicode besides."""
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", data.decode("utf-8-sig", "replace"))


def said(number: int, word: str) -> str:
    """`1 error`, `2 errors`, `0 contracts`; info stays."""
    return f"{number} {word}{'' if number == 1 or word == Severity.INFO else 's'}"


def told(linted: Linted) -> list[str]:
    """How many findings there are of each severity that has any, worst first: `2 errors`, `1 warning`."""
    return [said(number, severity) for severity, number in counts(linted.findings).items() if number]


def counts(findings: tuple[Finding, ...]) -> Mapping[Severity, int]:
    """How many findings there are of each severity, worst first; zeros included."""
    made = dict.fromkeys(reversed(Severity), 0)
    for finding in findings:
        made[finding.severity] += 1
    return made
