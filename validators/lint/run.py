"""Everything that is wrong with contracts, without their data: one file, or a whole registry."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import ModuleType

from dq.contracts.access import files
from dq.contracts.access.discovery import Discovery, PassedOver, discover
from dq.contracts.access.files import FileRefused, Found, shown
from dq.contracts.shared import shelf
from dq.contracts.shared.outcome import Finding
from dq.validators import rules as rules_shelf
from dq.validators.context import Unenforced, nothing
from dq.validators.lint.bulk import parallel_map
from dq.validators.lint.consequences import ancestors
from dq.validators.lint.judge import Gate, JudgedFile, among_others, judge
from dq.validators.lint.subscriptions import Gather, judge_subscriptions, no_subscriptions
from dq.validators.policy.policy import DEFAULT, Policy
from dq.validators.policy.waivers import EXPIRED, UNUSED, apply_waivers
from dq.validators.rule import Rule, RuleScope
from dq.validators.table_conflicts import TablesAtBase

Rules = Mapping[str, Rule]

# A contract may quote megabytes into a text.
MAX_TEXT = 1_000


def rules_of(package: ModuleType = rules_shelf) -> dict[str, Rule]:
    """The rules on a shelf by id; without an argument, the ones that ship."""
    return shelf.load(package, "RULE", Rule)


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
