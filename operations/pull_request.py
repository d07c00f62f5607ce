"""The gate of a pull request: lints changed contracts by the base's policy and by the branch's."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.files import POLICY_FILE, FileRef
from dq.contracts.outcome import Finding, UsageError
from dq.operations import subscriptions
from dq.operations.gate import GateOutcome, official_schema, unenforced
from dq.operations.registry_files import parse_policy, read_policy_text
from dq.operations.runtime.context import RuntimeContext
from dq.validators.compat.classified_change import Comparison, Waiver, findings
from dq.validators.compat.comparison import DiffTerms
from dq.validators.context import OfficialSchema, TablesAtBase
from dq.validators.git.base import (
    BaseCommit,
    ChangedContracts,
    checked_out_content,
    compare_with_base,
    is_same_content,
    nearest_folder,
    open_base,
    registry_root,
    subscriptions_at_base,
    tables_at_base,
)
from dq.validators.git.repository import entry_content, tree_entries
from dq.validators.lint import LintResult, Rules, lint_files, load_rules
from dq.validators.policy.branch import (
    ID,
    ChangedPolicy,
    change_severity,
    changed_policies,
    policy_findings,
    stricter_changes,
    stricter_findings,
)
from dq.validators.policy.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from dq.validators.compat.classification import Mode


@dataclass(frozen=True, slots=True)
class ScopedPolicy:
    """A policy, and the folder that its file names are relative to, relative to the registry's root."""

    policy: Policy
    folder: str = "."


def lint_pull_request(
    context: RuntimeContext,
    paths: list[Path],
    ref: str,
    mode: Mode | None = None,
    policy_file: Path | None = None,
    *,
    official: bool = False,
) -> GateOutcome:
    """Lint the contracts that differ from the base, and classify the changes by the consumers they break.

    Only those contracts are read. Root, policy, waivers and subscriptions are the base's, so that a branch
    cannot weaken its own gate. A changed policy is reported, and the stricter of both applies; the branch's
    must be valid. Raises ReadError if the base cannot be read, with the command that fixes it.
    """
    rules, today = load_rules(), context.now().date()
    base = open_base(*_root(paths, ref))
    changes = changed_policies(base)
    if policy_file is None:
        policies = list(_policies(base, paths[0], {change.file for change in changes}, rules))
    else:
        policies, operator_changes = _operator_policies(base, policy_file, rules)
        changes += operator_changes
    consumers, unclear = subscriptions_at_base(base)
    for file in unclear:
        context.note(f"{file} at the base cannot be read: its consumer is not listed.")
    terms = DiffTerms(
        today, mode=mode, subscriptions=tuple(consumers), subscriptions_incomplete=bool(unclear)
    )
    changed = base.changed_contracts()
    tables = tables_at_base(base, changed)
    schema = official_schema(official)
    linted, comparison = _lint_with_policy(base, changed, tables, policies[0], terms, rules, schema)
    lint_findings: list[Finding] = list(linted.findings)
    for scoped_policy in policies[1:]:
        other_linted, other_comparison = _lint_with_policy(
            base, changed, tables, scoped_policy, terms, rules, schema
        )
        lint_findings, comparison = (
            stricter_findings(lint_findings, other_linted.findings),
            stricter_changes(comparison, other_comparison),
        )
    severity = change_severity(rules[ID], [scoped_policy.policy for scoped_policy in policies])
    notices = policy_findings(changes, severity) if severity is not None else []
    all_findings = sorted(
        [*lint_findings, *findings(comparison, today), *notices],
        key=lambda finding: (finding.at, finding.rule, finding.path),
    )
    contents = {**changed.contents, **{change.file: change.after for change in changes}}
    sources = {file: data for file, data in contents.items() if isinstance(data, bytes)}
    result = LintResult(
        tuple(all_findings), linted.files, sources, subscription_count=linted.subscription_count
    )
    return GateOutcome(result, base.root, comparison)


def _root(paths: list[Path], ref: str) -> tuple[Path, str, str]:
    """Return the root of the single registry of the paths, the reference, and its commit."""
    roots = [registry_root(path, ref) for path in paths]
    other_folder = next((root.folder for root in roots if root != roots[0]), None)
    if other_folder is not None:
        raise UsageError(
            f"these paths belong to two registries: {roots[0].folder} and {other_folder}.",
            "Validate one registry at a time.",
        )
    return roots[0].folder, ref, roots[0].tip


def _policies(base: BaseCommit, start: Path, changed: set[str], rules: Rules) -> Iterator[ScopedPolicy]:
    """Yield the base's policy, and the branch's policy if changed."""
    data = base.policy()
    yield ScopedPolicy(DEFAULT if data is None else parse_policy((f"{POLICY_FILE} at the base", data), rules))
    nearest = nearest_folder(start, base.repo.top, POLICY_FILE)
    if nearest is None:
        if POLICY_FILE in changed:
            yield ScopedPolicy(DEFAULT)
        return
    folder = posixpath.relpath(nearest.as_posix(), base.root.as_posix())
    name = posixpath.normpath(posixpath.join(folder, POLICY_FILE))
    if not changed.isdisjoint((name, POLICY_FILE)):
        yield ScopedPolicy(
            _without_custom_rules(parse_policy((name, files.read(POLICY_FILE, root=nearest)), rules)), folder
        )


def _operator_policies(
    base: BaseCommit, file: Path, rules: Rules
) -> tuple[list[ScopedPolicy], list[ChangedPolicy]]:
    """Return the operator's policy, and its changes by the branch if it is in the repository."""
    top, shown_path = base.repo.top, os.path.relpath(file.absolute(), base.root)
    locations = ((Path(os.path.normpath(file.absolute())), top), (file.resolve(), top.resolve()))
    for name in (
        path.relative_to(ancestor).as_posix() for path, ancestor in locations if path.is_relative_to(ancestor)
    ):
        base_entry, tip_entry = (
            tree_entries(base.repo, [commit], name).get(commit) for commit in (base.commit, base.tip)
        )
        data = entry_content(base.repo, tip_entry)
        if data is None:
            continue
        policies = [ScopedPolicy(parse_policy((f"{file} at the base", data), rules))]
        current = checked_out_content(FileRef(top, name))
        if is_same_content(current, base_entry) or is_same_content(current, tip_entry):
            return policies, []
        policies.append(
            ScopedPolicy(_without_custom_rules(parse_policy((str(file), files.read(name, root=top)), rules)))
        )
        return policies, [
            ChangedPolicy(Path(shown_path).as_posix(), entry_content(base.repo, base_entry), current)
        ]
    return [ScopedPolicy(parse_policy(read_policy_text(base.root, file), rules))], []


def _without_custom_rules(policy: Policy) -> Policy:
    """Return a branch's policy without its own rules and schemas: untrusted patterns may run forever.

    Those of the base still apply; new ones apply once they are merged.
    """
    return replace(policy, own_rules={}, schemas={})


def _lint_with_policy(
    base: BaseCommit,
    changed: ChangedContracts,
    tables: TablesAtBase,
    scoped_policy: ScopedPolicy,
    terms: DiffTerms,
    rules: Rules,
    schema: OfficialSchema | None,
) -> tuple[LintResult, Comparison]:
    """Lint the contracts and classify their changes by one policy."""
    waivers = tuple(
        Waiver(waiver.rule, waiver.contract, waiver.path, waiver.reason, waiver.approved_by, waiver.expires)
        for waiver in scoped_policy.policy.waivers
    )
    terms_of_policy = replace(terms, waivers=waivers).with_unneeded(scoped_policy.policy.unneeded_changes)
    comparison = compare_with_base(base, terms_of_policy, changed)
    names = {posixpath.relpath(file, scoped_policy.folder): file for file in changed.contents}
    contents = [(name, changed.contents[file]) for name, file in names.items()]
    linted = lint_files(
        contents,
        rules=rules,
        policy=scoped_policy.policy,
        today=terms.today,
        unenforced=unenforced,
        subscriptions=subscriptions.changed_subscriptions(base.root, base, terms.today),
        base=tables,
        official=schema,
    )
    return _with_root_paths(linted, names), comparison


def _with_root_paths(linted: LintResult, names: Mapping[str, str]) -> LintResult:
    """Return the findings with file names relative to the registry's root."""
    return LintResult(
        tuple(
            replace(finding, at=replace(finding.at, file=names.get(finding.at.file, finding.at.file)))
            for finding in linted.findings
        ),
        tuple(names[file] for file in linted.files),
        subscription_count=linted.subscription_count,
    )
