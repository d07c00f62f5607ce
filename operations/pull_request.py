"""The gate of a pull request: what differs from a base, judged by the base's policy and by the branch's."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access import files
from dq.contracts.access.files import POLICY_FILE, Found
from dq.contracts.outcome import Finding, UsageError
from dq.operations import subscriptions
from dq.operations.gate import GateOutcome, official_schema, policy_of, unenforced, written
from dq.operations.runtime.context import World
from dq.validators.compat.classified_change import Comparison, Waiver, findings
from dq.validators.compat.comparison import DiffTerms
from dq.validators.context import OfficialSchema, TablesAtBase
from dq.validators.git.base import (
    Base,
    Changed,
    at_base,
    checked_out_content,
    compare_with,
    is_same_content,
    nearest_folder,
    open_base,
    registry_root,
    tables_at_base,
)
from dq.validators.git.repository import entry_content, tree_entries
from dq.validators.lint import Linted, Rules, lint_files, rules_of
from dq.validators.policy.policy import (
    DEFAULT,
    ID,
    ChangedPolicy,
    Policy,
    change_severity,
    changed_policies,
    policy_findings,
    stricter_changes,
    stricter_findings,
)

if TYPE_CHECKING:
    from dq.validators.compat.classification import Mode


@dataclass(frozen=True, slots=True)
class Law:
    """A policy, and the folder whose contracts it names files from, as seen from the registry's root."""

    policy: Policy
    folder: str = "."


def compared(
    world: World,
    paths: list[Path],
    ref: str,
    mode: Mode | None = None,
    policy_file: Path | None = None,
    *,
    official: bool = False,
) -> GateOutcome:
    """Everything that is wrong with the contracts that differ from the base, and whom the changes break.

    Only those contracts are read. Root, policy, waivers and subscriptions are the base's, so that a branch
    cannot weaken its own gate. Where it changes a policy it is told so, and judged by the stricter of both;
    the branch's must be understandable all the same. Raises Unreadable for a base that cannot be read, with
    the command that mends it.
    """
    rules, today = rules_of(), world.now().date()
    found = open_base(*_root(paths, ref))
    changes = changed_policies(found)
    if policy_file is None:
        laws = list(_laws(found, paths[0], {one.file for one in changes}, rules))
    else:
        laws, more = _named(found, policy_file, rules)
        changes += more
    consumers, unclear = at_base(found)
    for file in unclear:
        world.note(f"{file} at the base cannot be read: its consumer is not named.")
    terms = DiffTerms(today, mode=mode, subscriptions=tuple(consumers), unclear=bool(unclear))
    changed = found.changed()
    tables = tables_at_base(found, changed)
    schema = official_schema(official)
    linted, comparison = _judged(found, changed, tables, laws[0], terms, rules, schema)
    wrong: list[Finding] = list(linted.findings)
    for law in laws[1:]:
        other, judged = _judged(found, changed, tables, law, terms, rules, schema)
        wrong, comparison = (
            stricter_findings(wrong, other.findings),
            stricter_changes(comparison, judged),
        )
    severity = change_severity(rules[ID], [law.policy for law in laws])
    told = policy_findings(changes, severity) if severity is not None else []
    every = sorted(
        [*wrong, *findings(comparison, today), *told], key=lambda one: (one.at, one.rule, one.path)
    )
    contents = {**changed.contents, **{one.file: one.after for one in changes}}
    sources = {file: data for file, data in contents.items() if isinstance(data, bytes)}
    return GateOutcome(Linted(tuple(every), linted.files, sources), found.root, comparison)


def _root(paths: list[Path], ref: str) -> tuple[Path, str, str]:
    """The one registry that the paths belong to, the reference, and its commit."""
    roots = [registry_root(path, ref) for path in paths]
    other = next((one.folder for one in roots if one != roots[0]), None)
    if other is not None:
        raise UsageError(
            f"these paths belong to two registries: {roots[0].folder} and {other}.",
            "Judge one after the other.",
        )
    return roots[0].folder, ref, roots[0].tip


def _laws(found: Base, start: Path, changed: set[str], rules: Rules) -> Iterator[Law]:
    """The base's policy, and what would judge after the merge where the branch changes that."""
    data = found.policy()
    yield Law(DEFAULT if data is None else policy_of((f"{POLICY_FILE} at the base", data), rules))
    nearest = nearest_folder(start, found.repo.top, POLICY_FILE)
    if nearest is None:
        if POLICY_FILE in changed:
            yield Law(DEFAULT)
        return
    folder = posixpath.relpath(nearest.as_posix(), found.root.as_posix())
    name = posixpath.normpath(posixpath.join(folder, POLICY_FILE))
    if not changed.isdisjoint((name, POLICY_FILE)):
        yield Law(_tame(policy_of((name, files.read(POLICY_FILE, root=nearest)), rules)), folder)


def _named(found: Base, file: Path, rules: Rules) -> tuple[list[Law], list[ChangedPolicy]]:
    """The policy that the operator names, and what the branch makes of it where it lies in the repository."""
    top, shown = found.repo.top, os.path.relpath(file.absolute(), found.root)
    ways = ((Path(os.path.normpath(file.absolute())), top), (file.resolve(), top.resolve()))
    for name in (way.relative_to(above).as_posix() for way, above in ways if way.is_relative_to(above)):
        then, last = (
            tree_entries(found.repo, [commit], name).get(commit) for commit in (found.commit, found.tip)
        )
        data = entry_content(found.repo, last)
        if data is None:
            continue
        laws = [Law(policy_of((f"{file} at the base", data), rules))]
        now = checked_out_content(Found(top, name))
        if is_same_content(now, then) or is_same_content(now, last):
            return laws, []
        laws.append(Law(_tame(policy_of((str(file), files.read(name, root=top)), rules))))
        return laws, [ChangedPolicy(Path(shown).as_posix(), entry_content(found.repo, then), now)]
    return [Law(policy_of(written(found.root, file), rules))], []


def _tame(policy: Policy) -> Policy:
    """A policy of the branch without its own rules and schemas: patterns of a stranger may run for ever.

    Those of the base judge all the same; new ones do so once they are merged.
    """
    return replace(policy, own={}, schemas={})


def _judged(
    found: Base,
    changed: Changed,
    tables: TablesAtBase,
    law: Law,
    terms: DiffTerms,
    rules: Rules,
    schema: OfficialSchema | None,
) -> tuple[Linted, Comparison]:
    """What one policy says of the contracts, and of what changed in them."""
    waivers = tuple(
        Waiver(one.rule, one.contract, one.path, one.reason, one.by, one.expires)
        for one in law.policy.waivers
    )
    comparison = compare_with(found, replace(terms, waivers=waivers), changed)
    names = {posixpath.relpath(file, law.folder): file for file in changed.contents}
    contents = [(name, changed.contents[file]) for name, file in names.items()]
    linted = lint_files(
        contents,
        rules=rules,
        policy=law.policy,
        today=terms.today,
        unenforced=unenforced,
        subscriptions=subscriptions.changed(found.root, found),
        base=tables,
        official=schema,
    )
    return _renamed(linted, names), comparison


def _renamed(linted: Linted, names: Mapping[str, str]) -> Linted:
    """The same with files named from the registry's root."""
    return Linted(
        tuple(
            replace(one, at=replace(one.at, file=names.get(one.at.file, one.at.file)))
            for one in linted.findings
        ),
        tuple(names[file] for file in linted.files),
    )
