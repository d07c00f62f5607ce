"""Which promises are no more: their contract was removed or retired, or says something else now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dq.alerts import incident_store as incidents
from dq.alerts.record import record
from dq.cli.loading.contracts import NOT_IN_FORCE, Loaded
from dq.cli.world.environment import World
from dq.contracts.shared.outcome import End, Finding, Recovery
from dq.contracts.slo import Slo
from dq.dataquality.delivery import key_ownership
from dq.store.engine import Store

Key = tuple[str, str, str]


def withdrawals(
    loaded: Loaded, promises: Sequence[Slo], wrong: Sequence[Finding]
) -> Callable[[Key], str | None]:
    """From an SLO's key to why it is promised no more; None where it is, or where nobody can tell."""
    promised = {slo.key: slo for slo in promises}
    contracts = {contract.key: contract for contract in loaded.contracts}
    broken = {finding.at.file for finding in wrong}

    def reason(key: Key) -> str | None:
        contract = contracts.get(key[0])
        if contract is None or key in promised:
            return loaded.gone.get(key[0])
        if contract.status in NOT_IN_FORCE:
            return f"The contract is {contract.status} now."
        if contract.file in broken:
            return None
        others = [slo.id for slo in promises if slo.key[:2] == key[:2]]
        instead = f" It promises {', '.join(map(repr, others))}." if others else ""
        return f"The contract promises no delivery {key[2]!r} of {key[1]!r} any more.{instead}"

    return reason


def close_withdrawn(world: World, store: Store, loaded: Loaded) -> None:
    """Ends what is still open of contracts that are no more, and leaves their names to others."""
    reasons = dict(loaded.gone)
    for contract in loaded.contracts:
        if contract.status in NOT_IN_FORCE:
            reasons[contract.key] = f"The contract is {contract.status} now."
    with store.read() as tx:
        left = incidents.unresolved(tx, list(reasons))
    if not left and not loaded.gone:
        return
    with store.write() as tx:
        for incident in left:
            facts = (("withdrawn", reasons[incident.key.contract]),)
            for subject in incident.open_subjects:
                record(
                    tx, Recovery(incident.key, subject, world.now(), facts, End.WITHDRAWN), (), world.now()
                )
        key_ownership.forget(tx, list(loaded.gone))
