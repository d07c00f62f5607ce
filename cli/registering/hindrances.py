"""What a catalog cannot make of a contract's table, as findings at the contract's own lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dq.cli.loading.refusal import RULE
from dq.contracts.model import Contract, SchemaObject
from dq.contracts.shared.outcome import Finding, Location, Severity
from dq.registry.diff import CatalogPlan
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, TableSpec


def hindrances(plan: CatalogPlan, contracts: Iterable[Contract]) -> Iterator[Finding]:
    """One finding for each obstacle of the plan, at the column, else at the object, that asks for it."""
    by_name = {(one.id, one.version): one for one in contracts}
    for action in plan.actions:
        for obstacle in action.obstacles:
            assert action.wanted is not None
            name = action.wanted.parameter(CONTRACT), action.wanted.parameter(CONTRACT_VERSION)
            if name not in by_name:
                # What was applied last may be of a version that is no more; the plan says it.
                continue
            contract = by_name[name]
            at = _at(contract, action.wanted, obstacle.column)
            table = ".".join(action.key)
            said = f"{table}: {obstacle.why}"
            yield Finding(RULE, Severity.ERROR, said, obstacle.mend, at, contract=contract.id)


def _at(contract: Contract, spec: TableSpec, column: str) -> Location:
    objects: Iterator[SchemaObject] = (one for one in contract.objects if one.name == spec.parameter(OBJECT))
    one = next(objects, None)
    if one is None:
        return contract.at()
    return next((prop.at() for prop in one.properties if prop.column.lower() == column), one.at())
