"""How tables of Iceberg evolve: what the format allows is made, the rest is refused before it is tried."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from fakes.iceberg import RestProxy
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table.update import SetPropertiesUpdate
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestamptzType, UUIDType

from dq.registry.catalog import Action, ActionKind, Catalog, Impact
from dq.registry.plan import ActionOutcome, CompleteRegistry, apply, propose
from dq.registry.table import TableColumn, TableSpec, marked
from dq.store.engine import Store

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FACTS = {"dq.contract-id": "orders", "dq.contract-version": "1.0.0"}
NAME = ("mesh", "orders")
EVERYTHING = frozenset(Impact)


def spec(*columns: TableColumn, keys: tuple[TableColumn, ...] = (), description: str = "") -> TableSpec:
    return marked(TableSpec(*NAME, "", "iceberg", columns, keys, (), description), FACTS)


def of(*types: str) -> TableSpec:
    """One column of each type, `c0` first."""
    return spec(*(TableColumn(f"c{at}", kind) for at, kind in enumerate(types)))


@pytest.fixture
def theirs(iceberg_server: RestProxy) -> RestCatalog:
    """Another client of the same catalog, past the proxy; all tables are gone."""
    iceberg_server.reset()
    return RestCatalog("theirs", uri=iceberg_server.address)


def register(
    catalog: Catalog, store: Store, wanted: TableSpec, *, adopt: bool = False
) -> tuple[Action, ActionOutcome]:
    """Registers with everything allowed, so that only the format itself refuses."""
    made = propose(catalog, [wanted], store, adopt=adopt)
    (result,) = apply(catalog, made, store, allow=EVERYTHING)
    return result.action, result.outcome


POSSIBLE = {
    "int to bigint": ("int", "bigint"),
    "float to double": ("float", "double"),
    "decimal with more digits": ("decimal(9,2)", "decimal(38,2)"),
    "tinyint to int, which are the same": ("tinyint", "int"),
    "tinyint to bigint": ("tinyint", "bigint"),
    "a longer varchar": ("varchar(10)", "varchar(20)"),
    "a field more": ("struct<a:int>", "struct<a:int,b:string>"),
    "a field less": ("struct<a:int,b:string>", "struct<a:int>"),
    "a field in front": ("struct<a:int>", "struct<b:string,a:int>"),
    "fields in another order": ("struct<a:int,b:string,c:date>", "struct<c:date,a:int,b:string>"),
    "a wider field deep inside": (
        "array<struct<m:map<string,struct<x:int>>>>",
        "array<struct<m:map<string,struct<x:bigint,y:date>>>>",
    ),
    "a wider element": ("array<float>", "array<double>"),
}


@pytest.mark.parametrize("types", POSSIBLE.values(), ids=POSSIBLE.keys())
def test_what_the_format_allows_is_made_and_then_there_is_nothing_to_do(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store, types: tuple[str, str]
) -> None:
    old, new = types
    register(iceberg_catalog, store, of(old, "string"))
    ids = {field.name: field.field_id for field in theirs.load_table(NAME).schema().fields}

    action, ending = register(iceberg_catalog, store, of(new, "string"))

    assert (action.kind, ending) == (ActionKind.UPDATE, ActionOutcome.DONE)
    live = iceberg_catalog.read(*NAME)
    assert live is not None
    assert [column.type for column in live.spec.columns] == [new, "string"]
    # The same columns of old files, not others of the same names.
    assert {field.name: field.field_id for field in theirs.load_table(NAME).schema().fields} == ids
    assert register(iceberg_catalog, store, of(new, "string"))[1] is ActionOutcome.UNCHANGED


IMPOSSIBLE = {
    "text of a number": ("int", "string", "can only widen numbers, and this is int"),
    "a narrower number": ("bigint", "int", "can only widen numbers, and this is bigint"),
    "other digits behind the point": ("decimal(9,2)", "decimal(12,3)", "this is decimal(9,2)"),
    "fewer digits": ("decimal(9,2)", "decimal(8,2)", "this is decimal(9,2)"),
    "bytes of a text": ("string", "binary", "this is string"),
    "a time without its zone": ("timestamp", "timestamp_ntz", "this is timestamp"),
    "a struct of a number": ("int", "struct<a:int>", "this is int"),
    "another key of a map": ("map<int,int>", "map<bigint,int>", "cannot change the keys of a map"),
    "a narrower field deep inside": ("array<struct<a:bigint>>", "array<struct<a:int>>", "this is bigint"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_the_format_cannot_do_is_a_conflict_in_the_plan_and_nothing_is_written(
    iceberg_catalog: Catalog,
    iceberg_server: RestProxy,
    theirs: RestCatalog,
    store: Store,
    case: tuple[str, str, str],
) -> None:
    old, new, why = case
    register(iceberg_catalog, store, of(old))

    with iceberg_server.counted() as writes:
        action, ending = register(iceberg_catalog, store, of(new))

    assert (action.kind, ending, writes) == (ActionKind.CONFLICT, ActionOutcome.REFUSED, [])
    (obstacle,) = action.blockers
    assert obstacle.column == "c0"
    assert why in obstacle.reason
    assert obstacle.hint.startswith("Add a new column with this type")


def test_a_column_becomes_optional_and_never_required(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    strict, loose = spec(TableColumn("id", "bigint", required=True)), spec(TableColumn("id", "bigint"))
    register(iceberg_catalog, store, strict)
    assert theirs.load_table(NAME).schema().fields[0].required

    made = propose(iceberg_catalog, [loose], store)
    refused = apply(iceberg_catalog, made, store)
    allowed = register(iceberg_catalog, store, loose)
    back, _ = register(iceberg_catalog, store, strict)

    assert [refused[0].outcome, allowed[1]] == [ActionOutcome.REFUSED, ActionOutcome.DONE]
    assert "nulls of id" in str(refused[0].error)
    assert not theirs.load_table(NAME).schema().fields[0].required
    assert [(change.name, change.ignored) for change in back.changes if change.field == "nulls of"] == [
        ("id", True)
    ]


def test_keys_are_added_and_taken_away_and_new_ones_come_last(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    day, hour, zone = (TableColumn(name, kind) for name, kind in
                       (("day", "date"), ("hour", "int"), ("zone", "string")))  # fmt: skip
    plain = TableColumn("id", "bigint")
    register(iceberg_catalog, store, spec(plain, zone, keys=(day,)))

    more, done = register(iceberg_catalog, store, spec(plain, zone, keys=(day, hour)))
    less, _ = register(iceberg_catalog, store, spec(plain, zone, day, keys=(hour,)))
    first, refused = register(iceberg_catalog, store, spec(plain, day, keys=(zone, hour)))

    assert (more.impact, done) == (Impact.DESTRUCTIVE, ActionOutcome.DONE)
    assert less.kind is ActionKind.UPDATE
    assert [part.name for part in theirs.load_table(NAME).spec().fields] == ["hour"]
    assert refused is ActionOutcome.REFUSED
    assert "new keys must come last" in first.note


def test_what_is_its_writer_s_stays(iceberg_catalog: Catalog, theirs: RestCatalog, store: Store) -> None:
    register(iceberg_catalog, store, spec(TableColumn("id", "int"), TableColumn("at", "timestamp")))
    table = theirs.load_table(NAME)
    with table.update_spec() as update:
        update.add_field("at", DayTransform(), "at_day")
    with table.update_sort_order() as order:
        order.asc("id", transform=_identity())
    with table.transaction() as transaction:
        transaction.set_properties({"write.format.default": "orc", "owner": "them"})
    with table.update_schema() as schema:
        schema.add_column("key", UUIDType(), "Theirs.")

    wanted = spec(TableColumn("id", "bigint"), TableColumn("at", "timestamp", "When."), description="Ours.")
    _, ending = register(iceberg_catalog, store, wanted)

    live = theirs.load_table(NAME)
    assert ending is ActionOutcome.DONE
    assert [str(field.field_type) for field in live.schema().fields] == ["long", "timestamptz", "uuid"]
    assert [part.name for part in live.spec().fields] == ["at_day"]
    assert len(live.sort_order().fields) == 1
    assert (live.properties["write.format.default"], live.properties["owner"]) == ("orc", "them")
    assert (live.properties["comment"], live.schema().find_field("at").doc) == ("Ours.", "When.")
    assert register(iceberg_catalog, store, wanted)[1] is ActionOutcome.UNCHANGED


def _identity() -> Any:
    from pyiceberg.transforms import IdentityTransform

    return IdentityTransform()


def test_a_table_of_others_with_names_in_upper_case_is_adopted_and_evolved(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    from pyiceberg.schema import Schema

    theirs.create_namespace("mesh")
    theirs.create_table(
        NAME,
        Schema(
            NestedField(1, "Id", IntegerType(), required=True),
            NestedField(2, "At", TimestamptzType(), required=False),
        ),
    )
    same = spec(TableColumn("id", "int", required=True), TableColumn("at", "timestamp"))

    _, adopted = register(iceberg_catalog, store, same, adopt=True)
    wider = spec(TableColumn("id", "bigint"), TableColumn("at", "timestamp", "When."))
    _, evolved = register(iceberg_catalog, store, wider)

    fields = theirs.load_table(NAME).schema().fields
    assert (adopted, evolved) == (ActionOutcome.DONE, ActionOutcome.DONE)
    assert [(field.name, field.required, field.doc) for field in fields] == [
        ("Id", False, None),
        ("At", False, "When."),
    ]
    assert fields[0].field_type == LongType()


def test_a_change_of_columns_by_another_between_reading_and_writing_is_not_lost(
    iceberg_catalog: Catalog, iceberg_server: RestProxy, theirs: RestCatalog, store: Store
) -> None:
    register(iceberg_catalog, store, of("int"))

    def between(call: Any, forward: Any) -> Any:
        with theirs.load_table(NAME).update_schema() as update:
            update.add_column("theirs", StringType())
        return forward()

    iceberg_server.faults.append(between)
    _, ending = register(iceberg_catalog, store, of("bigint"))

    assert ending is ActionOutcome.FAILED
    assert [field.name for field in theirs.load_table(NAME).schema().fields] == ["c0", "theirs"]
    assert register(iceberg_catalog, store, of("bigint"))[1] is ActionOutcome.DONE


@pytest.mark.parametrize("new", [False, True])
def test_a_write_whose_answer_is_lost_is_looked_for(
    iceberg_catalog: Catalog, iceberg_server: RestProxy, theirs: RestCatalog, store: Store, new: bool
) -> None:
    register(iceberg_catalog, store, replace(of("int"), name="other") if new else of("int"))

    def lost(call: Any, forward: Any) -> None:
        forward()

    iceberg_server.faults.append(lost)
    _, ending = register(iceberg_catalog, store, of("bigint"))

    assert ending is ActionOutcome.DONE
    assert theirs.load_table(NAME).schema().fields[0].field_type == LongType()


def test_commits_of_data_are_no_change(iceberg_catalog: Catalog, theirs: RestCatalog, store: Store) -> None:
    import pyarrow as pa

    register(iceberg_catalog, store, of("int", "string"))
    before = iceberg_catalog.read(*NAME)

    theirs.load_table(NAME).append(pa.table({"c0": pa.array([1], pa.int32()), "c1": ["x"]}))

    after = iceberg_catalog.read(*NAME)
    assert before is not None
    assert after is not None
    assert (after.version, after.updated_at) == (before.version, None)
    assert register(iceberg_catalog, store, of("bigint", "string"))[1] is ActionOutcome.DONE
    assert theirs.load_table(NAME).scan().to_arrow().to_pylist() == [{"c0": 1, "c1": "x"}]


def test_a_table_that_nobody_here_understands_is_a_conflict_alone(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    register(iceberg_catalog, store, replace(of("int"), name="other"))
    fields = [{"id": 1, "name": "c0", "type": "variant", "required": False}]
    answer = requests.post(
        f"{theirs.uri}/v1/namespaces/mesh/tables",
        json={
            "name": "orders",
            "schema": {"type": "struct", "fields": fields},
            "properties": {"format-version": "3"},
        },
        timeout=300,
    )
    answer.raise_for_status()
    wanted = [of("int"), replace(of("bigint"), name="other")]

    made = propose(iceberg_catalog, wanted, store, adopt=True, complete=CompleteRegistry(""))
    endings = [one.outcome for one in apply(iceberg_catalog, made, store, allow=EVERYTHING)]

    assert [action.kind for action in made.actions] == [ActionKind.CONFLICT, ActionKind.UPDATE]
    assert "the table is unreadable by pyiceberg" in made.actions[0].note
    assert endings == [ActionOutcome.REFUSED, ActionOutcome.DONE]


@pytest.mark.parametrize("told", ["[" * 100_000, "[1]", '{"c0": 7}', '{"c0": "varchar(3)"}', "no JSON"])
def test_exact_types_that_another_wrote_mislead_nobody(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store, told: str
) -> None:
    register(iceberg_catalog, store, of("string"))
    with theirs.load_table(NAME).transaction() as transaction:
        transaction.set_properties({"dq.types": told})

    register(iceberg_catalog, store, of("string"))

    live = iceberg_catalog.read(*NAME)
    assert live is not None
    assert [column.type for column in live.spec.columns] == ["string"]


def test_what_a_table_says_of_its_reader_is_not_imported(
    iceberg_catalog: Catalog, theirs: RestCatalog, store: Store
) -> None:
    register(iceberg_catalog, store, of("string"))
    table = theirs.load_table(NAME)
    named = SetPropertiesUpdate(updates={"py-io-impl": "this.Reader"})
    theirs.commit_table(table, (), (named,))

    action, ending = register(iceberg_catalog, store, of("string", "int"))

    assert (action.kind, ending) == (ActionKind.UPDATE, ActionOutcome.DONE)
    assert "this" not in sys.modules


def test_a_pruned_table_leaves_its_files(iceberg_catalog: Catalog, theirs: RestCatalog, store: Store) -> None:
    register(iceberg_catalog, store, of("string"))
    file = Path(theirs.load_table(NAME).metadata_location.removeprefix("file:"))

    gone = propose(iceberg_catalog, [], store, complete=CompleteRegistry(""))
    apply(iceberg_catalog, gone, store, prune=True)

    assert iceberg_catalog.read(*NAME) is None
    assert file.is_file()
