"""Linting: from contract files to findings, by form and rules, and the interface of report formats."""

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
from typing import Protocol, TypeVar

from dq.contracts import extension, install
from dq.contracts.access import files
from dq.contracts.access.discovery import Discovery, SkippedFile, discover
from dq.contracts.access.files import FileRef, FileRejected, printable_path
from dq.contracts.agreement import is_agreement
from dq.contracts.metrics import implementation, named_metric
from dq.contracts.model import MAX_FINDINGS, Contract, Identity
from dq.contracts.odcs import Version
from dq.contracts.outcome import Finding, Severity, join_limited, nearest, pluralize
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators import rules as rules_shelf
from dq.validators.context import (
    COLUMN,
    ApprovalOf,
    Context,
    ContractEntry,
    Day,
    OfficialSchema,
    ParsedSlos,
    PropertyPlace,
    Registry,
    SubscriptionContext,
    TablesAtBase,
    UnenforcedCheck,
    Walk,
    no_findings,
)
from dq.validators.policy.policy import DEFAULT, EXPIRED, UNUSED, EnabledRule, Policy, apply_waivers
from dq.validators.rule import Rule, RuleScope, Violation

# Columns of one object with the same violation are one finding, at the line of the first.

# Maximum number of names listed in a message.
_NAMED = 5
_LONGEST_NAME = 40


class ViolationMerger:
    """Merges the violations of one contract that differ only by column."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    @cached_property
    def _columns(self) -> dict[str, PropertyPlace]:
        return {column.property.path(): column for column in self._walk.columns}

    def key(self, violation: Violation) -> tuple[str, str]:
        """Return the same key for violations that form one finding."""
        place = self._place(violation)
        return (
            (violation.kind, place.object.path())
            if violation.kind and place
            else (violation.path, violation.message)
        )

    def merge(self, violations: Sequence[Violation]) -> Violation:
        """Merge violations of one key, given in the order of the file."""
        first = violations[0]
        place = self._place(first)
        names = [name for name in dict.fromkeys(self._names(violations)) if place and name != _name(place)]
        if place is None or not names:
            return first
        other_columns = f"{pluralize(len(names), 'other column')} of {place.object.name!r}"
        message = f"{first.message} The same holds for {other_columns}: {join_limited(names, _NAMED)}."
        is_same_hint = all(violation.hint == first.hint for violation in violations)
        hint = first.hint if is_same_hint else f"{first.hint.rstrip('.')}, and do the same for the others."
        return replace(first, message=message, hint=hint)

    def _place(self, violation: Violation) -> PropertyPlace | None:
        match = COLUMN.match(violation.path)
        return self._columns.get(match[0]) if match else None

    def _names(self, violations: Iterable[Violation]) -> Iterator[str]:
        for violation in violations:
            place = self._place(violation)
            if place is not None:
                yield _name(place)


def _name(place: PropertyPlace) -> str:
    name = place.property.name or place.property.path().rpartition(".")[2]
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


# One mistake gives one finding: consequences of a reported mistake are left out.


class ReportedRules:
    """Rules that reported a violation, with severity, by path."""

    def __init__(self) -> None:
        self._by_path: dict[str, dict[str, Severity]] = {}
        self._below: dict[str, dict[str, Severity]] = {}

    def add(self, path: str, rule: str, severity: Severity) -> None:
        """Record that a rule reported a violation at a path."""
        self._by_path.setdefault(path, {})[rule] = severity
        for above in ancestors(path):
            rules = self._below.setdefault(above, {})
            rules[rule] = max(severity, rules.get(rule, severity), key=lambda grade: grade.rank)

    def reported_any(self, rules: Iterable[str], path: str) -> bool:
        """Return True if one of the rules reported exactly this path."""
        return not self._by_path.get(path, {}).keys().isdisjoint(rules)

    def reported_by_other(self, rule: str, severity: Severity, path: str) -> bool:
        """Return True if another rule reported exactly this path, at least as severely."""
        return _has_other_as_severe(self._by_path.get(path, {}), rule, severity)

    def reported_below_by_other(self, rule: str, severity: Severity, path: str) -> bool:
        """Return True if another rule reported something below this path, at least as severely."""
        return _has_other_as_severe(self._below.get(path, {}), rule, severity)


def _has_other_as_severe(rules: Mapping[str, Severity], rule: str, severity: Severity) -> bool:
    return any(name != rule and grade.rank >= severity.rank for name, grade in rules.items())


class CascadeFilter:
    """Detects violations that are only consequences of others.

    That is the case if the loader removed something at, above or below a path that the violation relies on;
    if an unknown key looks like a misspelling of the missing key; if the loader reported the same path; or if
    a rule listed in the rule's `after` reported it.
    """

    def __init__(self, removed_paths: Iterable[str], form: Iterable[Finding]) -> None:
        self._removed_paths = self.removed_paths = frozenset(removed_paths)
        self.form = form = tuple(form)
        self._above = {above for path in self._removed_paths for above in ancestors(path)}
        self._form: set[str] = set()
        self._unknown_keys: dict[str, list[tuple[str, Severity]]] = defaultdict(list)
        for finding in form:
            self._form.add(finding.path)
            if finding.rule == "unknown-key":
                holder, _, key = finding.path.rpartition(".")
                self._unknown_keys[holder].append((key, finding.severity))
        self._form.discard("")
        self._above_form = {above for path in self._form for above in ancestors(path)}
        # Many violations rely on the same long list of paths.
        self._relied_on: dict[tuple[str, ...], bool] = {}

    def is_consequence(
        self, violation: Violation, severity: Severity, after: tuple[str, ...], reported: ReportedRules
    ) -> bool:
        """Return True if the violation is a consequence of another.

        An error is never a consequence of an unknown key that the standard allows, because the warning about
        that key does not block the contract.
        """
        if violation.path in self._form:
            return True
        if self._unknown_keys and any(self._misspelt(path, severity) for path in violation.needs):
            return True
        if after and any(
            reported.reported_any(after, path) for path in (violation.path, *ancestors(violation.path))
        ):
            return True
        if not self._removed_paths:
            return False
        if violation.needs not in self._relied_on:
            self._relied_on[violation.needs] = any(self._unreliable(path) for path in violation.needs)
        return self._relied_on[violation.needs] or self._unreliable(violation.path)

    def is_reported(
        self, violation: Violation, reported: ReportedRules, rule: str, severity: Severity
    ) -> bool:
        """Return True if another rule already reported the element, a part of it, or its type.

        Less severe reports do not count, because a policy may raise this rule to an error.
        """
        element = violation.path if violation.path.endswith("]") else violation.path.rpartition(".")[0]
        column = element.removesuffix(".logicalTypeOptions")
        types = (f"{column}.logicalType", f"{column}.physicalType")
        if any(
            reported.reported_by_other(rule, severity, path) for path in (violation.path, element, *types)
        ):
            return True
        return (
            reported.reported_below_by_other(rule, severity, violation.path)
            or violation.path in self._above
            or violation.path in self._above_form
        )

    def _unreliable(self, path: str) -> bool:
        if path in self._removed_paths or path in self._above:
            return True
        return any(above in self._removed_paths for above in ancestors(path))

    def _misspelt(self, path: str, severity: Severity) -> bool:
        holder, _, key = path.rpartition(".")
        # A `$ref` may provide any of the missing sibling keys.
        return any(
            grade.rank >= severity.rank and (unknown_key == "$ref" or nearest(unknown_key, [key]))
            for unknown_key, grade in self._unknown_keys.get(holder, ())
        )


def ancestors(path: str) -> Iterator[str]:
    """Yield the parents of a path, nearest first: `a[0]` and `a` for `a[0].b`."""
    for index in range(len(path) - 1, 0, -1):
        if path[index] in ".[":
            yield path[:index]


# Linting of one contract: its form, its rules, and its extract for cross-contract rules.

# Limit of findings per rule, which also bounds the cost of malicious contracts.
MAX_OF_ONE_RULE = 100
# Limit of violations of one rule that are merged into fewer findings.
MAX_GATHERED = 10_000


@dataclass(slots=True)
class Linter:
    """Rules, policy and date of one run. `today` is the date in UTC.

    `unenforced` returns the clauses of a contract that the checker will not evaluate. `official` is the
    official schema of the standard, if requested.
    """

    rules: Mapping[str, Rule]
    policy: Policy
    today: date
    unenforced: UnenforcedCheck = no_findings
    official: OfficialSchema | None = None
    _enabled_rules: dict[tuple[tuple[int, ...], RuleScope, Version | None], list[EnabledRule]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.rules = {**self.rules, **self.policy.own_rules}

    def enabled_rules(
        self, scope: RuleScope, file: str, domain: str | None, odcs: Version | None = None
    ) -> list[EnabledRule]:
        """Return the rules that the policy enables for a contract, with their severity and arguments.

        `odcs` limits them to those that apply to this version of ODCS. Rules come after those in their
        `after`.
        """
        sections = self.policy.matching_sections(file, domain)
        enabled = self._enabled_rules.get((sections, scope, odcs))
        if enabled is None:
            rules = [
                rule
                for rule in sorted(
                    self.rules.values(), key=lambda rule: (rule.consequences, bool(rule.after))
                )
                if rule.scope is scope and (odcs is None or rule.applies(odcs))
            ]
            enabled = self.policy.for_sections(sections).enabled(rules)
            self._enabled_rules[sections, scope, odcs] = enabled
        return enabled


@dataclass(frozen=True, slots=True)
class FileResult:
    """Lint result of one file. `data` is None if there are no findings and cross-contract rules add none.

    `entry` is None if the file has no contract. `cascade` is None if there were no form errors. `digest` is
    the SHA-256 of the file in hexadecimal, or "" if the result depends on more than the file and the run's
    rules, policy and code. `day` is the date of the run (ISO 8601) if a rule has read it, else "".
    """

    file: str
    findings: list[Finding]
    data: bytes | None
    entry: ContractEntry | None = None
    domain: str | None = None
    cascade: CascadeFilter | None = None
    digest: str = ""
    day: str = ""


class ResultCache(Protocol):
    """Results of an earlier run with the same rules, policy and code."""

    def find(self, contract_files: Sequence[tuple[str, FileRef]]) -> dict[str, FileResult]:
        """Return the results of the files that have not changed, by name; the files are read for that."""

    def save(self, results: Sequence[FileResult]) -> None:
        """Save the results of all files for the next run; does nothing if that is impossible."""


def lint_contract(linter: Linter, file: str, data: bytes | FileRejected) -> FileResult:
    """Lint the contract in `data` by itself. Never raises because of the file's content."""
    if isinstance(data, FileRejected):
        return FileResult(file, [data.finding(file)], None)
    parsed = parse(data, file)
    contract = parsed.contract
    if contract is None:
        return FileResult(file, parsed.findings, data)
    extension_findings, removed_paths = extension.extension_findings(contract)
    form = parsed.findings + extension_findings
    day = Day(linter.today)
    context = Context(
        file,
        day,
        Walk.from_contract(contract),
        ParsedSlos.from_contract(contract),
        schemas=linter.policy.schemas,
        unenforced=linter.unenforced,
        official=linter.official,
        data=data if linter.official is not None else b"",
    )
    cascade = CascadeFilter(parsed.cut | removed_paths, form)
    findings = [replace(finding, contract=contract.id) for finding in form[:MAX_FINDINGS]]
    for finding in _contract_findings(linter, contract, context, cascade):
        findings.append(finding)
        if len(findings) >= MAX_FINDINGS:
            break
    entry = ContractEntry.from_contract(contract, context)
    source = data if findings or entry.references else None
    return FileResult(
        file,
        findings,
        source,
        entry,
        contract.domain,
        cascade if removed_paths or form or parsed.cut else None,
        "" if _asks_plugin(context.walk) else contract.digest,
        linter.today.isoformat() if day.was_read else "",
    )


def _asks_plugin(walk: Walk) -> bool:
    """Return True if a rule may name a check of another package, whose answer may depend on anything."""
    return any(
        implementation(rule) and not is_agreement(rule) and not named_metric(rule) for rule in walk.qualities
    )


def _contract_findings(
    linter: Linter, contract: Contract, context: Context, cascade: CascadeFilter
) -> Iterator[Finding]:
    reported = ReportedRules()
    merger = ViolationMerger(context.walk)
    for enabled in linter.enabled_rules(RuleScope.CONTRACT, context.file, contract.domain, contract.odcs):
        rule, arguments = enabled.rule, enabled.arguments
        rule_context = replace(context, arguments=arguments) if arguments else context
        count = 0
        groups: dict[tuple[str, str], list[Violation]] = {}
        for violation in rule.check(contract, rule_context):
            severity = enabled.doubt_severity if violation.doubt else enabled.severity
            if cascade.is_consequence(violation, severity, rule.after, reported) or (
                rule.consequences and cascade.is_reported(violation, reported, rule.id, enabled.severity)
            ):
                continue
            count += 1
            reported.add(violation.path, rule.id, severity)
            groups.setdefault(merger.key(violation), []).append(violation)
            if len(groups) == MAX_OF_ONE_RULE or count == MAX_GATHERED:
                break
        for number, violations in enumerate(groups.values(), 1):
            merged = merger.merge(violations)
            if number == MAX_OF_ONE_RULE or (count == MAX_GATHERED and number == len(groups)):
                merged = replace(merged, message=f"{merged.message} More of this kind are not listed.")
            yield _finding(merged, enabled, contract.id)


def lint_registry(linter: Linter, results: Iterable[FileResult], base: TablesAtBase) -> Iterator[Finding]:
    """Yield the findings of the cross-contract rules; `base` has the tables of other contracts."""
    contracts = [candidate for candidate in results if candidate.entry is not None]
    # Empty, so `after` does not suppress violations of registry rules.
    none_reported = ReportedRules()
    registry = Registry.from_entries(
        (candidate.entry for candidate in contracts if candidate.entry is not None), base
    )
    for result in contracts:
        entry, cascade = result.entry, result.cascade
        assert entry is not None
        for enabled in linter.enabled_rules(RuleScope.REGISTRY, result.file, result.domain):
            for violation in enabled.rule.registry_check(entry, registry):
                if cascade is None or not cascade.is_consequence(
                    violation, enabled.severity, enabled.rule.after, none_reported
                ):
                    yield _finding(violation, enabled, entry.identity[0])


def _finding(violation: Violation, enabled: EnabledRule, contract: str) -> Finding:
    severity = enabled.doubt_severity if violation.doubt else enabled.severity
    return Finding(
        enabled.rule.id,
        severity,
        violation.message,
        violation.hint,
        violation.location,
        violation.path,
        contract,
    )


# Linting of the subscriptions of a registry.


@dataclass(frozen=True, slots=True)
class SubscriptionFiles:
    """Subscription files, by their names from the registry's root, in order.

    `reported_files` are those whose findings are reported; the others are only used for comparison.
    `contracts` are the subscribed contracts, and `unreadable_ids` the ids of those that cannot be read.
    `base_contracts` are those at the base of a branch, which determine the approvers. `approval_of` evaluates
    approvals.
    """

    files: Mapping[str, bytes | FileRejected] = field(default_factory=dict)
    reported_files: frozenset[str] = frozenset()
    contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    unreadable_ids: Collection[str] = ()
    base_contracts: Mapping[Identity, Contract] = field(default_factory=dict)
    approval_of: ApprovalOf | None = None


SubscriptionLoader = Callable[[Collection[str]], SubscriptionFiles]
"""Returns the subscriptions to lint, given the ids of the contracts that were read."""


def no_subscriptions(_: Collection[str]) -> SubscriptionFiles:
    """Return no subscription files."""
    return SubscriptionFiles()


def lint_subscriptions(
    linter: Linter, subscription_files: SubscriptionFiles, ids: Collection[str]
) -> list[Finding]:
    """Lint the subscriptions, form errors first. `ids` are those of all contracts read."""
    if not subscription_files.reported_files:
        return []
    findings: list[Finding] = []
    subscriptions: list[Subscription] = []
    for file, data in subscription_files.files.items():
        if isinstance(data, FileRejected):
            parsed, form = None, [data.finding(file)]
        else:
            parsed, form = read(data, file)
        if file in subscription_files.reported_files:
            contract = parsed.contract if parsed is not None else ""
            findings += [replace(finding, contract=contract) for finding in form]
        if parsed is not None and not any(finding.severity.blocks for finding in form):
            subscriptions.append(parsed)
    known_ids = {*ids, *(id_ for id_, _ in subscription_files.contracts)}
    context = SubscriptionContext(
        linter.today,
        subscription_files.contracts,
        subscription_files.unreadable_ids,
        known_ids,
        tuple(subscriptions),
        subscription_files.reported_files,
        base_contracts=subscription_files.base_contracts,
        approval_of=subscription_files.approval_of,
    )
    findings += (
        finding
        for subscription in subscriptions
        if subscription.file in subscription_files.reported_files
        for finding in _subscription_findings(linter, subscription, context)
    )
    return findings


def _subscription_findings(
    linter: Linter, subscription: Subscription, context: SubscriptionContext
) -> Iterator[Finding]:
    contract = context.contract(subscription)
    domain = contract.domain if contract is not None else None
    for enabled in linter.enabled_rules(RuleScope.SUBSCRIPTION, subscription.file, domain):
        rule_context = replace(context, arguments=enabled.arguments) if enabled.arguments else context
        for number, violation in enumerate(enabled.rule.subscription_check(subscription, rule_context), 1):
            # A contract can have many subscriptions, so the path for waivers includes the file.
            path = f"{subscription.file}#{violation.path}"
            yield Finding(
                enabled.rule.id,
                enabled.severity,
                violation.message,
                violation.hint,
                violation.location,
                path,
                subscription.contract,
            )
            if number == MAX_OF_ONE_RULE:
                break


# Parallel map over processes, with a less frequent garbage collector.

T = TypeVar("T")
R = TypeVar("R")

# Below this, starting processes takes longer than they save.
WORTH_IT = 200
# Below this, opening the cache of results takes longer than it saves.
WORTH_CACHING = 50
_CHUNK = 25

# The function to run, inherited by forked processes.
_work: list[Callable[[object], object]] = []


def parallel_map(values: Sequence[T], work: Callable[[T], R], processes: int) -> list[R]:
    """Apply `work` to every value and return the results in order.

    Processes are only used for many values, and only if the system can fork safely: `work` and its closure
    are inherited, and only results are passed between processes. Exceptions of `work` are raised here.
    """
    with quiet_collector():
        if processes < 2 or len(values) < WORTH_IT or not _can_fork():
            return [work(value) for value in values]
        return list(_map_in_processes(values, work, processes))


def _can_fork() -> bool:
    """Return True on Linux if no other thread runs, which could hold a lock that blocks the child."""
    return sys.platform == "linux" and threading.active_count() == 1


def _map_in_processes(values: Sequence[T], work: Callable[[T], R], processes: int) -> Iterator[R]:
    # Imported here: the import takes longer than linting one contract.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    _work[:] = [work]  # type: ignore[list-item]  # what goes in comes back out with the same types
    # The forked processes inherit the modules that the first call imports.
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
    """Run the cyclic garbage collector rarely: contracts are trees, freed by reference counting.

    With the default thresholds it scans every contract several times, a third of the total time.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


# Linting of a single file or a whole registry, without its data.

Rules = Mapping[str, Rule]

# Limit of a finding's texts, which may quote megabytes of a contract.
MAX_TEXT = 1_000


def load_rules(package: ModuleType = rules_shelf) -> dict[str, Rule]:
    """Load the rules of a package by id; the built-in rules by default."""
    return install.load_plugins(package, "RULE", Rule)


@dataclass(frozen=True, slots=True)
class LintResult:
    """Lint result of a run. `files` are all contract files; `sources` the bytes of those with findings.

    `subscription_count` is the number of subscriptions whose findings are reported. `skipped` are the YAML
    files below the folders that are not contracts.

    Files are named relative to the registry's root. Findings are sorted by file, location and rule.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    sources: Mapping[str, bytes] = field(default_factory=dict)
    skipped: tuple[SkippedFile, ...] = ()
    subscription_count: int = 0


def lint(
    data: bytes,
    file: str,
    *,
    rules: Rules,
    policy: Policy = DEFAULT,
    today: date,
    unenforced: UnenforcedCheck = no_findings,
) -> list[Finding]:
    """Return the findings of one contract, sorted by location; `file` is relative to the registry's root.

    Rules of the scope `registry` only see this contract. `unenforced` returns the clauses that the checker
    will not evaluate; without it, they are not reported. Never raises because of the file's content.
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
    unenforced: UnenforcedCheck = no_findings,
    subscriptions: SubscriptionLoader = no_subscriptions,
    official: OfficialSchema | None = None,
    cache: Callable[[], ResultCache | None] = lambda: None,
) -> LintResult:
    """Lint the contracts at these paths, individually and as one registry.

    A file that cannot be read gives a finding, and the others are still linted.

    Args:
        root: The registry's root.
        processes: Number of processes for many contracts, if the system can fork.
        subscriptions: Returns the subscriptions to lint with the contracts.
        cache: Opens the cache of earlier results; called for many contracts only.

    Raises:
        ReadError: A path does not exist, or a folder has no contract, so nothing was validated.
    """
    discovery = discover(paths) if paths else Discovery(())
    unique = sorted(_name_files(discovery.contracts, root).items())
    linter = Linter(rules, policy, today, unenforced, official)

    def read_and_lint(item: tuple[str, FileRef]) -> FileResult:
        file, contract_file = item
        try:
            return lint_contract(linter, file, files.read(contract_file))
        except FileRejected as refused:
            return lint_contract(linter, file, refused)

    opened = cache() if len(unique) >= WORTH_CACHING else None
    results = opened.find(unique) if opened is not None else {}
    missing = [item for item in unique if item[0] not in results]
    results |= {result.file: result for result in parallel_map(missing, read_and_lint, processes)}
    in_order = [results[file] for file, _ in unique]
    if opened is not None:
        opened.save(in_order)
    return replace(_build_result(linter, in_order, subscriptions), skipped=discovery.skipped)


def lint_files(
    contents: Iterable[tuple[str, bytes | FileRejected]],
    *,
    rules: Rules,
    policy: Policy = DEFAULT,
    today: date,
    unenforced: UnenforcedCheck = no_findings,
    subscriptions: SubscriptionLoader = no_subscriptions,
    base: TablesAtBase = TablesAtBase(),
    official: OfficialSchema | None = None,
) -> LintResult:
    """Lint contracts given as (file, bytes) pairs, as one registry.

    For a file that cannot be read, the pair has the reason instead of the bytes. `base` has the tables of
    contracts that are not given.
    """
    linter = Linter(rules, policy, today, unenforced, official)
    results = parallel_map(list(contents), lambda item: lint_contract(linter, *item), processes=1)
    return _build_result(linter, results, subscriptions, base)


def _build_result(
    linter: Linter,
    results: Iterable[FileResult],
    subscriptions: SubscriptionLoader,
    base: TablesAtBase = TablesAtBase(),
) -> LintResult:
    file_results = list(results)
    all_findings = [finding for result in file_results for finding in result.findings]
    all_findings += lint_registry(linter, file_results, base)
    all_findings += linter.policy.unusable_schemas
    ids = {result.entry.identity[0] for result in file_results if result.entry is not None}
    subscription_files = subscriptions(ids)
    all_findings += lint_subscriptions(linter, subscription_files, ids)
    all_findings = _without_consequences(all_findings, linter)
    all_findings = apply_waivers(
        all_findings,
        linter.policy.waivers,
        rules=linter.rules,
        contracts=ids,
        today=linter.today,
    )
    findings = [
        finding
        for candidate in all_findings
        if (finding := _with_policy_severity(candidate, linter)) is not None
    ]
    findings.sort(key=lambda finding: (finding.at, finding.rule, finding.path))
    files = {finding.at.file for finding in findings}
    sources = {
        result.file: result.data
        for result in file_results
        if result.data is not None and result.file in files
    }
    sources |= {
        file: data
        for file, data in subscription_files.files.items()
        if file in files and isinstance(data, bytes)
    }
    return LintResult(
        tuple(_brief(item) for item in findings),
        tuple(result.file for result in file_results),
        sources,
        subscription_count=len(subscription_files.reported_files),
    )


def _without_consequences(findings: list[Finding], linter: Linter) -> list[Finding]:
    """Remove consequences of cross-contract findings, which are only known at the end."""
    registry_places = {
        (finding.at.file, above)
        for finding in findings
        if (rule := linter.rules.get(finding.rule)) is not None and rule.scope is RuleScope.REGISTRY
        for above in (finding.path, *ancestors(finding.path))
    }
    return [
        finding
        for finding in findings
        if not registry_places
        or (finding.at.file, finding.path) not in registry_places
        or not linter.rules[finding.rule].consequences
    ]


def _with_policy_severity(finding: Finding, linter: Linter) -> Finding | None:
    """Apply the policy's severity to a finding about a waiver; None if the policy turns it off."""
    rule = linter.rules.get(finding.rule)
    if finding.rule not in (EXPIRED, UNUSED) or rule is None:
        return finding
    severity = linter.policy.severity(rule)
    return None if severity is None else replace(finding, severity=severity)


def _brief(finding: Finding) -> Finding:
    """Return the finding with its texts truncated to MAX_TEXT characters."""
    if max(len(finding.message), len(finding.hint), len(finding.contract)) <= MAX_TEXT:
        return finding
    message, hint, contract = (
        text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
        for text in (finding.message, finding.hint, finding.contract)
    )
    return replace(finding, message=message, hint=hint, contract=contract)


def _name_files(sources: Iterable[FileRef], root: Path) -> dict[str, FileRef]:
    """Return the files by displayed path: relative to the root if below it, else as given.

    Each given folder is resolved once for all its files, since discovery follows no links below it.
    """
    top = Path(os.path.realpath(root))
    folders: dict[Path, Path] = {}
    by_name: dict[str, FileRef] = {}
    for source in sources:
        folder = folders.get(source.root)
        if folder is None:
            folder = folders[source.root] = Path(os.path.realpath(source.root))
        if folder == top:
            name = source.name
        else:
            path = folder / source.name
            name = (path.relative_to(top) if path.is_relative_to(top) else source.path).as_posix()
        by_name[printable_path(name)] = source
    return by_name


# Interface of a report format, a plug-in in `reports/` that renders findings as text.


@dataclass(frozen=True, slots=True)
class TerminalOptions:
    """Capabilities of the terminal; formats for machines ignore them.

    `paint` colors a text with the code of an SGR sequence (e.g. `31;1`).
    """

    paint: Callable[[str, str], str] = lambda text, _: text
    width: int = 100


class PathBase(StrEnum):
    """Base folder of the file names in a report.

    `registry`: the registry's root, as in findings. `repository`: the root of the Git repository, for
    services that annotate pull requests. `here`: the working folder, so that a terminal can open the files.
    """

    REGISTRY = "registry"
    REPOSITORY = "repository"
    WORKING_FOLDER = "here"


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """Report format. `render` returns the whole text, which ends with a line break.

    Texts from a contract must be escaped so that they cannot control the reader's program, see
    `contracts.escaping`. `emits_commands` means that the lines are commands to the runner of a CI server.
    """

    id: str
    render: Callable[[LintResult, TerminalOptions], str]
    path_base: PathBase = PathBase.REGISTRY
    emits_commands: bool = False


def relocate(result: LintResult, folder: PurePosixPath) -> LintResult:
    """Return the result with file names relative to another folder; `folder` is the registry's path from
    there.

    Absolute paths, which are outside the registry, do not change.
    """
    if folder == PurePosixPath():
        return result

    def name(file: str) -> str:
        # Joining with an absolute path drops the folder; a policy may be above the folder.
        return posixpath.normpath(folder / file)

    return LintResult(
        tuple(
            replace(finding, at=replace(finding.at, file=name(finding.at.file)))
            for finding in result.findings
        ),
        tuple(name(file) for file in result.files),
        {name(file): data for file, data in result.sources.items()},
        subscription_count=result.subscription_count,
    )


def by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings by severity, worst first, otherwise keeping their order."""
    return sorted(findings, key=lambda finding: -finding.severity.rank)


def lines(data: bytes) -> list[str]:
    """Split a contract into lines as YAML 1.1 counts them, including its three Unicode line breaks."""
    return re.split("\r\n|[\n\r\x85\u2028\u2029]", data.decode("utf-8-sig", "replace"))


def count_text(number: int, word: str) -> str:
    """Return `1 error`, `2 errors`, `0 contracts`; "info" has no plural."""
    return f"{number} {word}{'' if number == 1 or word == Severity.INFO else 's'}"


def linted_text(result: LintResult) -> str:
    """Return what was linted: `2 contracts`, `1 contract and 3 subscriptions`, `1 subscription`."""
    contracts = count_text(len(result.files), "contract")
    if not result.subscription_count:
        return contracts
    subscriptions = count_text(result.subscription_count, "subscription")
    return f"{contracts} and {subscriptions}" if result.files else subscriptions


def count_texts(result: LintResult) -> list[str]:
    """Return the number of findings per severity without zeros, worst first: `2 errors`, `1 warning`."""
    return [
        count_text(number, severity)
        for severity, number in count_by_severity(result.findings).items()
        if number
    ]


def count_by_severity(findings: tuple[Finding, ...]) -> Mapping[Severity, int]:
    """Return the number of findings per severity, worst first, including zeros."""
    counts = dict.fromkeys(reversed(Severity), 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts
