"""Carries a plan for Lake Formation out: in order, idempotent, resumable after a kill at any point."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.shared.errors import DqError
from dq.registry.action import StepResult
from dq.registry.lake_formation.ledger import (
    NotedGrant,
    note_grant,
    note_tags,
    noted_grants,
    noted_tags,
)
from dq.registry.lake_formation.port import LakeFormation
from dq.registry.lake_formation.steps import (
    DataFilter,
    DropFilter,
    Give,
    GrantKey,
    LakePlan,
    LakeStep,
    MakeFilter,
    TagColumns,
    TakeBack,
    UntagColumns,
)
from dq.store.engine import Store


def apply_lake(lake: LakeFormation, store: Store, catalog: str, plan: LakePlan) -> list[StepResult[LakeStep]]:
    """One result per step, in order. A grant needs its filter, and a filter goes after its grant: else a step
    that fails stops no other, so that nobody's grant outlives its end because of somebody else's.

    What is given is noted before, what is taken back is forgotten after Lake Formation has it no more.
    """
    noted = noted_grants(store, catalog)
    filters = {step.filter.name: step.filter for step in plan.steps if isinstance(step, MakeFilter)}
    asking = dict(plan.asking)
    for one in plan.spent:
        _forget(store, catalog, noted, one)
    for key, files in plan.asking:
        if key in noted and noted[key].files != files:
            noted[key] = replace(noted[key], files=files)
            note_grant(store, catalog, key, noted[key])
    failed: dict[str, DqError] = {}
    results: list[StepResult[LakeStep]] = []
    for step in plan.steps:
        through = _filter_of(step)
        if through in failed:
            error = DqError(f"'{step}' was not tried, because a step before it failed.", failed[through].mend)
            results.append(StepResult(step, error))
            continue
        try:
            if isinstance(step, Give):
                _note(store, catalog, noted, step, asking[step.key], filters.get(step.key.filter))
            if isinstance(step, TagColumns):
                ours = noted_tags(store, catalog, step.key).get(step.on, frozenset())
                note_tags(store, catalog, step.key, step.on, ours | set(step.columns))
            lake.carry_out(step)
            if isinstance(step, TakeBack):
                _expect_gone(lake, step)
                # With a filter behind it, it is remembered until that is gone too.
                if not step.key.filter:
                    _forget(store, catalog, noted, step)
            if isinstance(step, DropFilter):
                note_grant(store, catalog, step.key, None)
            if isinstance(step, UntagColumns):
                ours = noted_tags(store, catalog, step.key).get(step.on, frozenset())
                note_tags(store, catalog, step.key, step.on, ours - set(step.columns))
        except DqError as error:
            if through:
                failed[through] = error
            results.append(StepResult(step, error))
        else:
            results.append(StepResult(step))
    return results


def _filter_of(step: LakeStep) -> str:
    """The name of the data filter that a step is about, which says the table and the reader too; or ""."""
    match step:
        case Give(key) | TakeBack(key):
            return key.filter
        case MakeFilter(made) | DropFilter(made):
            return made.name
    return ""


def _expect_gone(lake: LakeFormation, step: TakeBack) -> None:
    """Whether it was absent before is told by AWS in the words of an invalid request: so it is looked at."""
    if lake.grants(step.key.on).columns.get(step.key, frozenset()) & set(step.columns):
        raise DqError(f"Lake Formation still has what '{step}' takes back.", "Run again, or revoke by hand.")


def _note(
    store: Store,
    catalog: str,
    noted: dict[GrantKey, NotedGrant],
    step: Give,
    files: frozenset[str],
    made: DataFilter | None,
) -> None:
    before = noted.get(step.key, NotedGrant(frozenset(), frozenset()))
    after = NotedGrant(before.columns | set(step.columns), files, made or before.filter)
    if after != before:
        note_grant(store, catalog, step.key, after)
        noted[step.key] = after


def _forget(store: Store, catalog: str, noted: dict[GrantKey, NotedGrant], step: TakeBack) -> None:
    before = noted.get(step.key)
    if before is not None:
        noted[step.key] = replace(before, columns=before.columns - set(step.columns))
        note_grant(store, catalog, step.key, noted[step.key])
