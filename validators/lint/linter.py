"""One contract before the rules: its form, what each rule says, and one finding for one mistake."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

from dq.contracts import extension
from dq.contracts.access.files import FileRefused
from dq.contracts.model import MAX_FINDINGS, Contract
from dq.contracts.odcs import Version
from dq.contracts.shared.outcome import Finding, Severity, counted, first_of, nearest
from dq.contracts.yaml.parse import parse
from dq.validators.context import Context, Promises, PropertyPlace, Unenforced, Walk, nothing
from dq.validators.policy.policy import EnabledRule, Policy
from dq.validators.registry import Entry, Registry, TablesAtBase
from dq.validators.rule import Fault, Rule, RuleScope

# Columns of one object with the same fault are one finding, at the line of the first.

_COLUMN = re.compile(r"schema\[\d+\](?:\.properties\[\d+\]|\.items|\.map\.(?:key|value))+")
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
        match = _COLUMN.match(fault.path)
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

    `unenforced` gives the clauses of a contract that the checker will not evaluate.
    """

    rules: Mapping[str, Rule]
    policy: Policy
    today: date
    unenforced: Unenforced = nothing
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
