"""What `dq register` keeps in Lake Formation, where the operator's settings say so."""

from __future__ import annotations

from collections.abc import Sequence

from dq.cli.loading.subscriptions import AgreedSubscriptions
from dq.cli.registering.governed import Governed
from dq.cli.world.environment import World
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import Unreadable, UsageError
from dq.contracts.shared.wording import suggestion
from dq.registry.apply import Result
from dq.registry.diff import ActionKind, CatalogPlan
from dq.registry.table import Key, TableSpec
from dq.store.engine import Store

_NAME = "Lake Formation"
PARTS = ("locations", "tags", "grants")
# Of these, the table is not there or not ours.
_NOT_OURS = (ActionKind.CONFLICT, ActionKind.WAIT)


def kept_parts(world: World, catalog: str) -> tuple[str, ...]:
    """The parts of Lake Formation that the settings keep in step; none for another catalog than Glue.

    Raises UsageError for a part that there is not, and for one that lacks a setting.
    """
    parts = world.settings.lake_formation
    for one in parts:
        if one not in PARTS:
            mend = suggestion(one, PARTS, f"Choose from {', '.join(PARTS)}.")
            raise UsageError(f"lake_formation names {one!r}, which dq does not keep.", mend)
    if "locations" in parts and not (
        world.settings.lake_formation_locations and world.settings.lake_formation_role
    ):
        raise UsageError(
            "lake_formation keeps locations, and nobody says which.",
            "Set lake_formation_locations and lake_formation_role.",
        )
    return parts if catalog == "glue" else ()


def govern(
    world: World,
    agreed: AgreedSubscriptions,
    contracts: Sequence[Contract],
    plan: CatalogPlan,
    results: Sequence[Result],
    store: Store,
    catalog_id: str,
    *,
    role: str,
    account: str,
    apply_it: bool,
) -> Governed:
    """Plans Lake Formation for the tables of a plan of the catalog, and applies it where asked."""
    from dq.registry.lake_formation.client import connect_lake
    from dq.registry.lake_formation.desired import wanted_grants, wanted_tags
    from dq.registry.lake_formation.plan import LakeTerms, apply_lake, plan_lake

    settings, today = world.settings, world.now().date()
    parts = settings.lake_formation
    behind = frozenset(one.action.key for one in results if one.error is not None)
    tables = _tables(plan)
    wanted = {key: spec for key, spec in tables.items() if key not in {one.key for one in plan.orphans}}
    current = {key: spec for key, spec in wanted.items() if key not in behind}
    over = [one for one in agreed.subscriptions if one.over(today)]
    terms = LakeTerms(
        {key: spec.location for key, spec in tables.items()},
        locations=settings.lake_formation_locations if "locations" in parts else None,
        role=settings.lake_formation_role,
        tag=settings.lake_formation_tag,
        tags=wanted_tags(contracts, current) if "tags" in parts else None,
        grants=wanted_grants(agreed.subscriptions, contracts, wanted, today) if "grants" in parts else None,
        ended=wanted_grants(over, contracts, wanted),
        unclear=agreed.unclear,
        behind=behind,
    )
    try:
        lake = connect_lake(role, account, catalog_id.split(":")[1])
        made = plan_lake(lake, store, catalog_id, terms)
    except Unreadable as error:
        # What became of the tables is told all the same.
        return Governed(_NAME, findings=agreed.findings, error=error)
    done = apply_lake(lake, store, catalog_id, made) if apply_it else []
    return Governed(_NAME, made.steps, made.notes, done, agreed.findings)


def _tables(plan: CatalogPlan) -> dict[Key, TableSpec]:
    """The tables that are ours, or will be, as the plan has them."""
    found: dict[Key, TableSpec] = {}
    for action in plan.actions:
        spec = action.wanted or (action.before.spec if action.before else None)
        if spec is not None and action.kind not in _NOT_OURS:
            found[action.key] = spec
    return found
