"""The role that the how-to asks for may do what dq does, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fakes.flights import flights
from fakes.glue import GlueShim

from dq.registry.action import Grade
from dq.registry.apply import apply, propose
from dq.registry.glue.tables import Glue
from dq.registry.orphans import WholeRegistry
from dq.store.engine import Store

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "register.md"


def test_the_policy_of_the_how_to_allows_the_calls_that_are_made_and_no_other(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    found = re.search(r"```json not-run\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    (statement,) = json.loads(found[1])["Statement"]
    values = (("flight_date", "2026-11-20"), ("hour", "7"))
    asked = "parquet, partitionIndexes: [[{}]]"
    first = flights("s3://lake/air", format=asked.format("hour"))
    second = flights("s3://lake/air", id_type="string", format=asked.format("flight_date"))

    apply(glue_catalog, glue_catalog.id, propose(glue_catalog, glue_catalog.id, [first], store), store)
    glue_catalog.add_partition(*first.key, values, "s3://lake/air/one")
    glue_catalog.partitions(*first.key)
    changed = propose(glue_catalog, glue_catalog.id, [second], store)
    apply(glue_catalog, glue_catalog.id, changed, store, allow=frozenset(Grade))
    gone = propose(glue_catalog, glue_catalog.id, [], store, whole=WholeRegistry(""))
    apply(glue_catalog, glue_catalog.id, gone, store, prune=True)

    before = len(glue.calls)
    propose(glue_catalog, glue_catalog.id, [first], store, whole=WholeRegistry(""))
    planned = {call.operation for call in glue.calls[before:]}

    assert planned
    assert all(operation.startswith("Get") for operation in planned)
    called = {f"glue:{call.operation}" for call in glue.calls}
    assert glue_catalog.read(*first.key) is None
    assert called == set(statement["Action"])
