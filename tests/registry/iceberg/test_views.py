"""Views in a catalog of Iceberg: recognised, described, and never given columns, or made a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.flights import flights
from fakes.iceberg import RestProxy
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from dq.registry.catalog import ActionKind, Catalog
from dq.registry.plan import ActionOutcome, CompleteRegistry, apply, propose
from dq.registry.table import TableSpec, marked
from dq.store.engine import Store

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAME = ("air_flights", "flights")
SQL = "SELECT 7 AS n"


@pytest.fixture
def theirs(iceberg_server: RestProxy) -> RestCatalog:
    iceberg_server.reset()
    return RestCatalog("theirs", uri=iceberg_server.address)


def view(description: str) -> TableSpec:
    plain = replace(flights("/x"), format="view", location="", parameters=(), description=description)
    return marked(plain, {"dq.contract-id": "a", "dq.contract-version": "1.0.0"})


def make(theirs: RestCatalog) -> None:
    theirs.create_namespace("air_flights")
    schema = Schema(NestedField(1, "n", LongType(), required=False))
    version = ViewVersion(
        version_id=1,
        timestamp_ms=1,
        schema_id=0,
        summary={},
        default_namespace=["air_flights"],
        representations=[SQLViewRepresentation(type="sql", sql=SQL, dialect="spark")],
    )
    theirs.create_view(NAME, schema, version, properties={"theirs": "1", "comment": "Theirs."})


def register(
    catalog: Catalog, store: Store, wanted: TableSpec, *, adopt: bool = False
) -> tuple[ActionKind, ActionOutcome]:
    made = propose(catalog, [wanted], store, adopt=adopt)
    (result,) = apply(catalog, made, store)
    return result.action.kind, result.outcome


def test_a_view_is_waited_for_and_described_and_stays_what_it_is(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    waits = register(iceberg_catalog, store, view("Ours."))
    make(theirs)
    before = theirs.load_view(NAME)

    refused = register(iceberg_catalog, store, view("Ours."))
    adopted = register(iceberg_catalog, store, view("Ours."), adopt=True)
    changed = register(iceberg_catalog, store, view("New."))
    again = register(iceberg_catalog, store, view("New."))

    assert waits == (ActionKind.WAIT, ActionOutcome.UNCHANGED)
    assert [ending for _, ending in (refused, adopted, changed, again)] == [
        ActionOutcome.REFUSED, ActionOutcome.DONE, ActionOutcome.DONE, ActionOutcome.UNCHANGED,
    ]  # fmt: skip
    after = theirs.load_view(NAME)
    assert after.schema() == before.schema()
    assert after.current_version() == before.current_version()
    assert (after.properties["comment"], after.properties["theirs"]) == ("New.", "1")
    assert after.properties["dq.contract-id"] == "a"


def test_a_view_is_no_place_for_a_table(iceberg_catalog: Catalog, theirs: RestCatalog, store: Store) -> None:
    make(theirs)
    table = flights("/x", format="iceberg")

    made = propose(iceberg_catalog, [table], store, adopt=True)

    assert [action.kind for action in made.actions] == [ActionKind.CONFLICT]
    assert "The contract says iceberg but the table is view" in made.actions[0].note


def test_an_orphaned_view_leaves_the_catalog(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    make(theirs)
    register(iceberg_catalog, store, view("Ours."), adopt=True)

    gone = propose(iceberg_catalog, [], store, complete=CompleteRegistry(""))
    apply(iceberg_catalog, gone, store, prune=True)

    assert theirs.list_views("air_flights") == []
