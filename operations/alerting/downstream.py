"""Which product is made from which, kept from tick to tick: most contracts are not read at most ticks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select

from dq.alerts import inhibition
from dq.alerts.inhibition import Product
from dq.alerts.tables import lineage
from dq.contracts.lineage import declares, inputs
from dq.contracts.model import Contract
from dq.contracts.shared.outcome import IncidentKey, Unreadable
from dq.dataquality.delivery import cycle_store
from dq.dataquality.delivery.cycle import PastMiss
from dq.operations.registry_files import Loaded, load
from dq.operations.runtime.context import World
from dq.store.engine import Store

_LOOKED_AT, _MOST = 30, 0.9


def keep(store: Store, loaded: Loaded, paths: Sequence[Path]) -> None:
    """Keeps what the contracts declare, where one of them is new or says something else.

    A name is what all contracts together make of it, so all of them are read then.
    """
    with store.read() as tx:
        known = {row.contract: row for row in tx.execute(select(lineage))}
    gone = [key for key in loaded.gone if key in known]
    changed = [one for one in loaded.contracts if one.key not in known or known[one.key].digest != one.digest]
    if not changed and not gone:
        return
    concerned = any(row.inputs is not None for row in known.values()) or any(map(declares, loaded.contracts))
    everyone = _all(loaded, paths) if concerned and loaded.resting else loaded.contracts
    rows = _rows(everyone)
    with store.write() as tx:
        for key in {*gone, *(str(row["contract"]) for row in rows)}:
            tx.execute(delete(lineage).where(lineage.c.contract == key))
        if rows:
            tx.execute(insert(lineage), rows)


def _all(loaded: Loaded, paths: Sequence[Path]) -> Sequence[Contract]:
    try:
        return load(paths, lambda _: None).contracts
    except Unreadable:
        # One of the paths holds none any more; what rests below the others is read at its next tick.
        return loaded.contracts


def settler(world: World) -> Callable[[Connection], None]:
    """What the watcher calls when all of a tick is told."""

    def settle(tx: Connection) -> None:
        inhibition.settle(tx, _made_from(tx), lambda key: _usual(tx, key), world.now())

    return settle


def with_own_cause(tx: Connection, misses: Sequence[PastMiss], now: datetime) -> list[PastMiss]:
    """Of what broke and ended untold, what did not wait for another of them meanwhile.

    Who waited for a cause that was told of would not have been told either.
    """
    spans: dict[Product, list[tuple[datetime, datetime]]] = defaultdict(list)
    for one in misses:
        spans[one.kept.cycle.contract, one.kept.cycle.object].append(_span(one, now))
    broken = {product: (min(those)[0], "/".join(product)) for product, those in spans.items()}
    cause_of = inhibition.causes(broken, _made_from(tx))

    def waited(one: PastMiss) -> bool:
        begin, end = _span(one, now)
        cause = cause_of.get((one.kept.cycle.contract, one.kept.cycle.object))
        return (
            any(since <= end and begin <= until for since, until in spans.get(cause, ())) if cause else False
        )

    return [one for one in misses if not waited(one)]


def _span(one: PastMiss, now: datetime) -> tuple[datetime, datetime]:
    """From when on it was missing, and until when."""
    cycle, lateness = one.kept.cycle, one.verdict.lateness
    return cycle.breach_at, now if lateness is None else cycle.due_at + lateness


def _made_from(tx: Connection) -> dict[Product, set[Product]]:
    found: dict[Product, set[Product]] = {}
    for row in tx.execute(select(lineage).where(lineage.c.inputs.is_not(None))):
        for name, those in row.inputs:
            found[row.contract, name] = {(contract, other) for contract, other in those}
    return found


def _rows(contracts: Iterable[Contract]) -> list[dict[str, object]]:
    known = {one.key: one for one in contracts}
    found: dict[str, list[object]] = defaultdict(list)
    for (key, name), those in inputs(known.values()).items():
        found[key].append([name, [list(one) for one in sorted(those)]])
    return [
        {"contract": key, "digest": one.digest, "inputs": found[key] if declares(one) else None}
        for key, one in known.items()
    ]


def _usual(tx: Connection, key: IncidentKey) -> timedelta | None:
    """How long after it was due nine of ten of the last deliveries had come."""
    past = cycle_store.all_cycles(tx, (key.contract, key.object, key.group))
    came = sorted(one.delivered_at - one.cycle.due_at for one in past[-_LOOKED_AT:] if one.delivered_at)
    return came[min(int(len(came) * _MOST), len(came) - 1)] if came else None
