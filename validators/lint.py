"""Everything that is wrong with contracts, without their data: one file, or a whole registry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import ModuleType

from dq.contracts import extension, shelf
from dq.contracts.errors import Unreadable
from dq.contracts.files import find
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding, Severity
from dq.contracts.parse import parse
from dq.validators import rules as rules_shelf
from dq.validators.context import Context, Promises, Registry, Walk
from dq.validators.fold import Folds
from dq.validators.policy import DEFAULT, Policy
from dq.validators.rule import Fault, Rule, Scope

Rules = Mapping[str, Rule]

# More of one kind than anyone reads at once: a contract that was made to cost time gets no more of it.
MAX_OF_ONE_RULE = 100
MAX_TEXT = 1_000


def rules_of(package: ModuleType = rules_shelf) -> dict[str, Rule]:
    """The rules on a shelf by id; without an argument, the ones that ship."""
    return shelf.load(package, "RULE", Rule)


@dataclass(frozen=True, slots=True)
class Linted:
    """What was read and found. `files` are all contract files; `sources` the bytes of those with findings.

    Files are named relative to the registry's root. Findings come sorted by file, place and rule.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    sources: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Read:
    """One file after its form was read: what the rules need of it."""

    contract: Contract
    context: Context
    folds: Folds
    said: dict[str, set[str]]


def lint(data: bytes, file: str, *, rules: Rules, policy: Policy = DEFAULT, today: date) -> list[Finding]:
    """What is wrong with one contract, sorted by place; `file` is its path relative to the registry's root.

    Rules of the scope `registry` see this contract alone. Never raises for what the file says.
    """
    return list(lint_files([(file, data)], rules=rules, policy=policy, today=today).findings)


def lint_paths(
    paths: Sequence[Path], *, root: Path, rules: Rules, policy: Policy = DEFAULT, today: date
) -> Linted:
    """What is wrong with the contracts at these paths, and with the registry that they form.

    `root` is the registry's root. Raises Unreadable for a path that cannot be read, and for a folder
    without a contract: nothing was validated there, which is not the same as fine.
    """
    unique = sorted({_relative(file, root): file for file in find(paths)}.items())
    return lint_files(
        ((name, _bytes(file)) for name, file in unique), rules=rules, policy=policy, today=today
    )


def lint_files(
    files: Iterable[tuple[str, bytes]], *, rules: Rules, policy: Policy = DEFAULT, today: date
) -> Linted:
    """What is wrong with contracts that are handed in as (file, bytes), taken as one registry."""
    findings: list[Finding] = []
    names: list[str] = []
    sources: dict[str, bytes] = {}
    read: list[_Read] = []
    judged = _in_use(rules, policy)
    for file, data in files:
        names.append(file)
        before = len(findings)
        made = _read(data, file, today, findings)
        if made is not None:
            read.append(made)
            findings += _findings(made, judged[Scope.CONTRACT], policy)
        if len(findings) > before:
            sources[file] = data
    findings += _beyond_one_file(read, judged[Scope.REGISTRY], policy)
    findings.sort(key=lambda finding: (finding.at, finding.rule, finding.path))
    return Linted(tuple(_brief(finding) for finding in findings), tuple(names), sources)


def _in_use(rules: Rules, policy: Policy) -> dict[Scope, list[tuple[Rule, Severity]]]:
    """The rules that the policy leaves on, with their severity; a rule comes after those that explain it."""
    chosen: dict[Scope, list[tuple[Rule, Severity]]] = {scope: [] for scope in Scope}
    for rule in sorted(rules.values(), key=lambda rule: bool(rule.after)):
        severity = policy.severity(rule)
        if severity is not None:
            chosen[rule.scope].append((rule, severity))
    return chosen


def _read(data: bytes, file: str, today: date, findings: list[Finding]) -> _Read | None:
    parsed = parse(data, file)
    contract = parsed.contract
    if contract is None:
        findings += parsed.findings
        return None
    wrong, cut = extension.faults(contract)
    form = parsed.findings + wrong
    findings += [replace(finding, contract=contract.id) for finding in form]
    context = Context(file, today, Walk.of(contract), Promises.of(contract))
    return _Read(contract, context, Folds(parsed.cut | cut, form), defaultdict(set))


def _findings(read: _Read, rules: list[tuple[Rule, Severity]], policy: Policy) -> Iterator[Finding]:
    odcs = read.contract.odcs
    for rule, severity in rules:
        if not rule.applies(odcs):
            continue
        arguments = policy.arguments(rule)
        context = replace(read.context, arguments=arguments) if arguments else read.context
        told = 0
        for fault in rule.check(read.contract, context):
            if read.folds.consequence(fault, rule.after, read.said):
                continue
            told += 1
            read.said[fault.path].add(rule.id)
            if told == MAX_OF_ONE_RULE:
                last = replace(fault, message=f"{fault.message} More of this kind are not listed.")
                yield _finding(last, rule, severity, read.contract)
                break
            yield _finding(fault, rule, severity, read.contract)


def _beyond_one_file(
    read: list[_Read], rules: list[tuple[Rule, Severity]], policy: Policy
) -> Iterator[Finding]:
    if not rules:
        return
    registry = Registry.of(one.contract for one in read)
    for one in read:
        yield from _findings(replace(one, context=replace(one.context, registry=registry)), rules, policy)


def _finding(fault: Fault, rule: Rule, severity: Severity, contract: Contract) -> Finding:
    return Finding(rule.id, severity, fault.message, fault.mend, fault.at, fault.path, contract.id)


def _brief(finding: Finding) -> Finding:
    """The finding with its texts cut to what fits a screen; a contract may quote megabytes into them."""
    if max(len(finding.message), len(finding.mend), len(finding.contract)) <= MAX_TEXT:
        return finding
    message, mend, contract = (
        text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
        for text in (finding.message, finding.mend, finding.contract)
    )
    return replace(finding, message=message, mend=mend, contract=contract)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Unreadable(f"{file} cannot be read: {error.strerror}.", "Check its permissions.") from error


def _relative(file: Path, root: Path) -> str:
    """The path as messages name it: relative to the root where it lies below, else as given."""
    try:
        return file.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return file.as_posix()
