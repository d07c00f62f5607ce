"""dq register"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from dq.cli import show
from dq.cli.loading import NOT_IN_FORCE, PATHS, load
from dq.cli.spark import session
from dq.cli.world import World, here, located, registry_root
from dq.contracts.errors import DqError
from dq.contracts.location import DataPlace, resolve
from dq.contracts.model import Contract, SchemaObject
from dq.registry.action import Grade, Plan
from dq.registry.apply import Ending, Result, apply, propose
from dq.registry.catalog import Catalog, Settings, open_catalog
from dq.registry.render import render
from dq.registry.specify import specs
from dq.registry.table import TableSpec
from dq.store.engine import Store


def command(
    paths: list[Path] = PATHS,
    apply_it: bool = typer.Option(
        False, "--apply", help="Make the catalog so. Without it nothing is written."
    ),
    check: bool = typer.Option(False, "--check", help="Exit with 1 when something would change."),
    catalog: str = typer.Option(
        "local", "--catalog", help="Which catalog: local (in the state store) or hive."
    ),
    server: str = typer.Option(
        None, "--server", help="The server to register, where a contract has several."
    ),
    adopt: bool = typer.Option(False, "--adopt", help="Take over tables that stand there and are nobody's."),
    prune: bool = typer.Option(
        False, "--prune", help="Remove tables of ours that no contract wants any more."
    ),
    allow_breaking: bool = typer.Option(False, "--allow-breaking", help="Allow changes that break readers."),
    allow_destructive: bool = typer.Option(
        False, "--allow-destructive", help="Allow changes that lose data."
    ),
    format: show.Format = show.FORMAT,
) -> None:
    """Show what the catalog lacks to be as the contracts say; with --apply, make it so.

    Nothing is deleted by default, and nothing is touched that dq does not own. What somebody else changed
    in a table of ours is shown as drift.

    Exit codes: 0 done or nothing to do, 1 changes are pending (--check), 3 something was refused or could
    not be read.

    Example: dq register registry --apply
    """
    world = here(paths=paths or [Path()])
    loaded = load(paths or [Path()])
    for finding in loaded.findings:
        show.note(str(finding))
    store = world.store()
    target = open_catalog(catalog, Settings(store=store, session=lambda: session(world, hive=True)))
    wanted = tables(world, loaded.contracts, server, registry_root((paths or [Path()])[0]).name, catalog)
    plan = propose(target, catalog, wanted, store, adopt=adopt, complete=_is_whole(paths))
    results = (
        apply(target, catalog, plan, store, allow=_allowed(allow_breaking, allow_destructive), prune=prune)
        if apply_it
        else []
    )
    if format is show.Format.JSON:
        show.as_json(as_dict(plan, results))
    else:
        describe(plan, results, applied=apply_it)
    refused = [one for one in results if one.error is not None]
    if refused or loaded.findings:
        raise typer.Exit(3)
    raise typer.Exit(1 if check and not apply_it and any(action.writes for action in plan.actions) else 0)


def tables(
    world: World, contracts: Iterable[Contract], server: str | None, registry: str, catalog: str = "local"
) -> list[TableSpec]:
    """The tables that these contracts want; drafts and retired ones want none."""
    found: list[TableSpec] = []
    for contract in contracts:
        if contract.status in NOT_IN_FORCE:
            show.note(f"dq: {contract.id} is {contract.status}, so it is not registered.")
            continue
        found += specs(contract, _places(world, contract, server, catalog), registry)
    return found


def _places(
    world: World, contract: Contract, server: str | None, catalog: str
) -> Callable[[SchemaObject], DataPlace]:
    return lambda one: located(world, resolve(contract, one, server, world.reach), catalog)


def _is_whole(paths: list[Path] | None) -> bool:
    """Whether the whole registry was named: only then can a missing contract mean a forgotten table."""
    return not paths or (len(paths) == 1 and paths[0].is_dir())


def _allowed(breaking: bool, destructive: bool) -> frozenset[Grade]:
    grades = {Grade.BREAKING: breaking, Grade.DESTRUCTIVE: destructive}
    return frozenset(grade for grade, allowed in grades.items() if allowed)


def run(world: World, contracts: list[Contract], store: Store, catalog: Catalog, name: str) -> None:
    """Plans and applies, and shows both: what the demonstration does."""
    plan = propose(catalog, name, tables(world, contracts, None, world.folder.name), store)
    describe(plan, apply(catalog, name, plan, store), applied=True)


def describe(plan: Plan, results: list[Result], *, applied: bool) -> None:
    """The plan as a diff, and what became of it."""
    for text in render(plan):
        show.line(f"  {text}")
    for one in results:
        if one.error is not None:
            show.line(f"  {show.mark(False)} {one.error}")
    if applied:
        done = sum(one.ending is Ending.DONE for one in results)
        show.line(f"Applied {done} of {sum(action.writes for action in plan.actions)} changes.")
    elif any(action.writes for action in plan.actions):
        show.line("Nothing was written. Add --apply to make it so.")


def as_dict(plan: Plan, results: list[Result]) -> dict[str, object]:
    """The plan and its results for machines."""
    endings = {one.action.key: one for one in results}
    return {
        "actions": [
            {
                "table": ".".join(action.key),
                "kind": action.kind,
                "grade": action.grade,
                "note": action.note,
                "changes": [
                    {
                        "field": change.field,
                        "name": change.name,
                        "before": change.before,
                        "after": change.after,
                        "grade": change.grade,
                        "drift": change.drift,
                    }
                    for change in action.changes
                ],
                "ending": endings[action.key].ending if action.key in endings else None,
                "error": _said(endings[action.key].error) if action.key in endings else None,
            }
            for action in plan.actions
        ]
    }


def _said(error: DqError | None) -> str | None:
    return None if error is None else str(error)
