"""The tables that contracts want of a catalog, and what keeps a contract out."""

from __future__ import annotations

from collections.abc import Iterable

from dq.cli.loading.contracts import NOT_IN_FORCE
from dq.cli.loading.refusal import each
from dq.cli.loading.whole import ServerOf, Specify
from dq.cli.world.environment import World, located
from dq.contracts.access.data_location import DataPlace, resolve, server_of
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import Finding, UsageError
from dq.registry.apply import recall
from dq.registry.catalog import Catalog
from dq.registry.table import RETIRED, TableSpec, UnsayableTerms
from dq.registry.table_specs import specs
from dq.store.engine import Store


def applied_last(world: World, wanted: Iterable[TableSpec], store: Store, catalog: str) -> list[TableSpec]:
    """What dq applied last to these tables, as far as the store remembers."""
    applied = recall(store, catalog)
    wanted = list(wanted)
    unknown = sum(spec.key not in applied for spec in wanted)
    if unknown:
        world.note(f"this store remembers nothing of {unknown} of {len(wanted)} tables.")
    return [applied[spec.key] for spec in wanted if spec.key in applied]


def tables(
    world: World, contracts: Iterable[Contract], server_of: ServerOf, specify: Specify
) -> tuple[list[TableSpec], list[Finding]]:
    """The tables that these contracts want, and what is wrong with those that cannot be registered.

    Drafts want none. Retired ones want no more than that theirs say so, where no contract in force wants
    the same table; what cannot be told of them is nobody's fault.
    """
    in_force, retired = [], []
    for contract in contracts:
        if contract.status == RETIRED:
            world.note(f"{contract.id} is retired: its tables stay, and say so.")
            retired.append(contract)
        elif contract.status in NOT_IN_FORCE:
            world.note(f"{contract.id} is {contract.status}, so it is not registered.")
        else:
            in_force.append(contract)
    found, refused = each(in_force, lambda one: one, lambda one: specify(one, server_of(one)))
    over, _ = each(retired, lambda one: one, lambda one: specify(one, server_of(one)))
    wanted = [spec for specs in found for spec in specs]
    taken = {spec.key for spec in wanted}
    return wanted + [spec for specs in over for spec in specs if spec.key not in taken], refused


def specified(
    world: World, registry: str, catalog: str, target: Catalog | None, contract: Contract, server: str | None
) -> list[TableSpec]:
    """The tables that a contract wants on a server. Raises UsageError where the target cannot have them."""

    def place(one: SchemaObject) -> DataPlace:
        return located(world, resolve(contract, one, server, world.reach), catalog)

    made = specs(contract, place, registry)
    for spec, one in zip(made, contract.objects, strict=True):
        try:
            if target is not None:
                target.vet(spec)
        except UnsayableTerms as error:
            at = server_of(contract, place(one).server).at()
            raise UsageError(error.what, error.mend, error.details, at=at) from error
        except UsageError as error:
            raise UsageError(error.what, error.mend, error.details, at=one.at()) from error
    return made
