"""One contract before the rules: its form, what each rule says, and what the others may know of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from dq.contracts import extension
from dq.contracts.access.files import FileRefused
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Finding
from dq.contracts.typed import MAX_FINDINGS
from dq.contracts.versions import Version
from dq.contracts.yaml.parse import parse
from dq.validators.context import Context, Promises, Unenforced, Walk, nothing
from dq.validators.lint.alike import Alike
from dq.validators.lint.consequences import Folds, Said
from dq.validators.policy.policy import EnabledRule, Policy
from dq.validators.registry import Entry, Registry
from dq.validators.rule import Fault, Rule, RuleScope
from dq.validators.table_conflicts import TablesAtBase

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
            rules = (
                rule
                for rule in sorted(
                    self.rules.values(), key=lambda rule: (rule.consequences, bool(rule.after))
                )
                if rule.scope is scope and (odcs is None or rule.applies(odcs))
            )
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
