"""The roles that the page of privileges asks for may do what dq does in Glue, and no more."""

from __future__ import annotations

from fakes.flights import flights
from fakes.glue import GlueShim

from dq.registry.aws.glue import Glue
from dq.registry.catalog import Impact
from dq.registry.landing_zone import PLANNER, PUBLISHER, REGISTRAR, REPAIRER, actions_of
from dq.registry.plan import CompleteRegistry, apply, propose
from dq.store.engine import Store


def test_the_policies_allow_the_calls_that_are_made_and_no_other(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    values = (("flight_date", "2026-11-20"), ("hour", "7"))
    asked = "parquet, partitionIndexes: [[{}]]"
    first = flights("s3://lake/air", format=asked.format("hour"))
    second = flights("s3://lake/air", id_type="string", format=asked.format("flight_date"))

    apply(glue_catalog, propose(glue_catalog, [first], store), store)
    registered = {f"glue:{call.operation}" for call in glue.calls}
    glue.calls.clear()
    glue_catalog.add_partition(*first.key, values, "s3://lake/air/one")
    published = {f"glue:{call.operation}" for call in glue.calls}
    glue_catalog.partitions(*first.key)
    listed = {f"glue:{call.operation}" for call in glue.calls}
    glue.calls.clear()
    changed = propose(glue_catalog, [second], store)
    apply(glue_catalog, changed, store, allow=frozenset(Impact))
    gone = propose(glue_catalog, [], store, complete=CompleteRegistry(""))
    apply(glue_catalog, gone, store, prune=True)

    before = len(glue.calls)
    propose(glue_catalog, [first], store, complete=CompleteRegistry(""))
    assert first.key[0] in glue_catalog.databases()
    planned = {f"glue:{call.operation}" for call in glue.calls[before:]}
    registered |= {f"glue:{call.operation}" for call in glue.calls}

    assert glue_catalog.read(*first.key) is None
    assert planned
    assert planned <= actions_of(PLANNER)
    assert registered == {action for action in actions_of(REGISTRAR) if action.startswith("glue:")}
    assert published <= actions_of(PUBLISHER)
    assert listed <= actions_of(REPAIRER)
