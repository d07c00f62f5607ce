"""The conformance kit: what every catalog on the shelf must do, against the real thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fakes.flights import flights
from fakes.glue import GlueShim
from fakes.iceberg import RestProxy
from fakes.schemas import document, facts
from sqlalchemy import event

from dq.contracts.access.data_location import DataLocation
from dq.contracts.outcome import DqError
from dq.contracts.types import CANONICAL
from dq.contracts.yaml.parse import parse
from dq.registry import catalogs as shelf_package
from dq.registry.catalog import (
    Action,
    ActionKind,
    Catalog,
    CatalogSettings,
    Impact,
    LiveTable,
    Partition,
    StalePlan,
)
from dq.registry.catalogs import catalogs, open_catalog
from dq.registry.importing import kinds
from dq.registry.importing.contract_text import ContractHead, contract_text
from dq.registry.importing.sources import table_from_spec
from dq.registry.plan import ActionOutcome, CompleteRegistry, apply, plan, propose, render
from dq.registry.table import TableColumn, TableSpec, clip, marked, specs
from dq.store.engine import Store

_OF_THE_SERVER = frozenset({"write.parquet.compression-codec"})


@dataclass
class Place:
    """One catalog under test, and the state that belongs to it. `added` are properties that the server gives
    to every table."""

    id: str
    catalog: Catalog
    store: Store
    folder: str
    write_counter: Callable[[], contextmanager[list[str]]]
    format: str = "parquet"
    added: frozenset[str] = frozenset()

    def flights(self, folder: str = "", **parts: str) -> TableSpec:
        """The specification of the usual table, in the format that the catalog has."""
        return flights(folder or self.folder, **{"format": self.format} | parts)

    def register(
        self, *wanted: TableSpec, adopt: bool = False, allow: frozenset[Impact] = frozenset()
    ) -> list[ActionOutcome]:
        made = propose(self.catalog, wanted, self.store, adopt=adopt)
        return [result.outcome for result in apply(self.catalog, made, self.store, allow=allow)]

    def live(self, spec: TableSpec) -> LiveTable:
        found = self.catalog.read(*spec.key)
        assert found is not None
        return found


@contextmanager
def _store_writes(store: Store) -> Iterator[list[str]]:
    """The texts of the statements that write to the store."""
    seen: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            seen.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    yield seen
    event.remove(store.engine, "before_cursor_execute", note)


@dataclass
class SpySession:
    """A Spark session that notes the statements it is given; all else is the real one's."""

    real: object
    statements: list[str]

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def sql(self, statement: str) -> object:
        self.statements.append(statement)
        return self.real.sql(statement)  # type: ignore[attr-defined]  # a SparkSession


HIVE = pytest.param("hive", marks=pytest.mark.spark)
ICEBERG = pytest.param("iceberg", marks=[pytest.mark.spark, pytest.mark.slow])
# Catalogs of folders of files: they keep partitions by what they are told, and tables of several formats.
of_folders = pytest.mark.parametrize("place", ["local", "glue", HIVE], indirect=True)


@pytest.fixture(params=["local", "glue", HIVE, ICEBERG])
def place(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Iterator[Place]:
    folder = f"{tmp_path}/lake"
    if request.param == "local":
        catalog = open_catalog("local", CatalogSettings(store=store))
        yield Place("local", catalog, store, folder, lambda: _store_writes(store))
        return
    if request.param == "glue":
        shim: GlueShim = request.getfixturevalue("glue")

        @contextmanager
        def on_the_wire() -> Iterator[list[str]]:
            with _store_writes(store) as seen, shim.counted() as sent:
                yield seen
            seen += sent

        yield Place("glue", request.getfixturevalue("glue_catalog"), store, "s3://lake/air", on_the_wire)
        return
    if request.param == "iceberg":
        proxy: RestProxy = request.getfixturevalue("iceberg_server")
        proxy.reset()

        @contextmanager
        def to_iceberg() -> Iterator[list[str]]:
            with _store_writes(store) as seen, proxy.counted() as sent:
                yield seen
            seen += sent

        catalog = request.getfixturevalue("iceberg_catalog")
        yield Place("iceberg", catalog, store, folder, to_iceberg, "iceberg", _OF_THE_SERVER)
        return
    spy = SpySession(request.getfixturevalue("spark"), [])
    catalog = open_catalog("hive", CatalogSettings(session=lambda: spy))

    @contextmanager
    def counted() -> Iterator[list[str]]:
        spy.statements.clear()
        with _store_writes(store) as seen:
            yield seen
        seen += spy.statements

    yield Place("hive", catalog, store, folder, counted)
    spy.real.sql("DROP DATABASE IF EXISTS air_flights CASCADE")  # type: ignore[attr-defined]


def table(place: Place, *columns: TableColumn) -> TableSpec:
    """A marked specification of these columns."""
    spec = TableSpec("air_flights", "probe", f"{place.folder}/probe", place.format, columns)
    return marked(spec, {"dq.contract-id": "air-flights", "dq.contract-version": "1.0.0"})


def test_the_kit_runs_against_every_catalog_on_the_shelf() -> None:
    files = {path.stem for path in Path(str(shelf_package.__file__)).parent.glob("[!_]*.py")}

    assert set(catalogs()) == files == {"glue", "hive", "iceberg", "local"}


def test_what_was_registered_reads_back_as_specified(place: Place) -> None:
    spec = place.flights()

    assert place.register(spec) == [ActionOutcome.DONE]
    assert place.live(spec).spec.columns == spec.columns
    assert place.live(spec).spec.partitions == spec.partitions
    assert place.live(spec).spec.description == "Every flight that left."
    assert place.live(spec).spec.location == place.folder
    assert place.live(spec).spec.format == place.format
    parameters = dict(place.live(spec).spec.parameters)
    assert parameters == dict(spec.parameters) | {key: parameters[key] for key in place.added}


# What catalogs have no word for, besides what only Iceberg has one for; see docs/how-to/import.md.
UNSAID = {"name", "logicalType", "unique", "enum", "primaryKey", "classification"}
UNSAID |= {"logicalTypeOptions", "description inside", "required inside"}


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_registered_is_imported_as_it_was_but_for_what_catalogs_cannot_say(
    place: Place, seed: int
) -> None:
    contract = parse(document(seed, business=False).encode(), "all.odcs.yaml").contract
    assert contract is not None
    folder = DataLocation("lake", "custom", place.folder, place.format, "air_flights")
    [spec] = specs(contract, lambda _: folder)
    assert place.register(spec) == [ActionOutcome.DONE]

    made = contract_text(ContractHead("all"), [table_from_spec(place.live(spec).spec)])

    again = parse(made.encode(), "again.odcs.yaml")
    assert again.contract is not None
    assert [str(one) for one in again.findings if one.severity.blocks] == []
    before, after = facts(contract), facts(again.contract)
    differs = {
        (path, key)
        for path, key in before.keys() | after.keys()
        if before.get((path, key)) != after.get((path, key))
    }
    inside = {f"{key} inside" if set(path) & set(".[") else key for path, key in differs}
    assert inside - {"required"} <= UNSAID
    assert UNSAID - {"enum", "primaryKey", "unique", "logicalTypeOptions"} <= inside
    assert ("required" in inside) == (place.id != "iceberg")


@pytest.mark.parametrize("place", [ICEBERG], indirect=True)
def test_the_folder_of_an_iceberg_table_says_what_its_catalog_says(place: Place) -> None:
    contract = parse(document(3).encode(), "all.odcs.yaml").contract
    assert contract is not None
    [spec] = specs(contract, lambda _: DataLocation("lake", "custom", place.folder, "iceberg", "air_flights"))
    place.register(spec)

    [found] = kinds.load()["iceberg"].read(place.live(spec).spec.location)

    known = table_from_spec(place.live(spec).spec)
    assert (found.columns, found.partitions) == (known.columns, known.partitions)
    assert found.description == known.description


def test_registering_twice_changes_nothing_and_writes_nothing(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    before = place.live(spec)

    with place.write_counter() as writes:
        endings = place.register(spec)

    assert endings == [ActionOutcome.UNCHANGED]
    assert writes == []
    assert place.live(spec) == before


def test_the_count_of_writes_sees_a_write(place: Place) -> None:
    with place.write_counter() as writes:
        place.register(place.flights())

    assert len(writes) >= 2


def test_names_are_folded_and_long_comments_clipped_without_drift(place: Place) -> None:
    long = "é" * 300 + " over\n two lines"
    spec = place.flights(comment=f'"{"ä" * 300}"', description=f"'{long * 5}'".replace("\n", " "))
    place.register(spec)

    made = propose(place.catalog, [spec], place.store)

    assert spec.key == ("air_flights", "flights")
    assert spec.columns[1].name == "price"
    assert len(spec.columns[0].comment.encode()) <= 255
    assert [action.kind for action in made.actions] == [ActionKind.NOOP]


def test_hostile_texts_come_back_as_they_were(place: Place) -> None:
    nasty = 'it\'s "quoted" \\n `ticks` ; -- ${env:HOME} $x % 100'
    spec = table(place, TableColumn("a", "int", nasty))
    spec = marked(replace(spec, description=nasty), {"dq.owner": nasty})

    place.register(spec)

    assert place.live(spec).spec.columns[0].comment == nasty
    assert place.live(spec).spec.description == nasty
    assert place.live(spec).spec.parameter("dq.owner") == nasty


def test_a_new_column_is_additive_and_needs_no_flag(place: Place) -> None:
    place.register(place.flights())
    more = "      - {name: carrier, logicalType: string, description: Who flew.}\n"
    wider = place.flights(more=more, version="1.1.0")

    made = propose(place.catalog, [wider], place.store)

    assert (made.actions[0].kind, made.actions[0].impact) == (ActionKind.UPDATE, Impact.ADDITIVE)
    assert place.register(wider) == [ActionOutcome.DONE]
    assert place.live(wider).spec.columns == wider.columns
    assert place.register(wider) == [ActionOutcome.UNCHANGED]


def test_a_changed_comment_is_metadata(place: Place) -> None:
    place.register(place.flights())
    spec = place.flights(comment="Another.", description="Another too.")

    made = propose(place.catalog, [spec], place.store)

    assert (made.actions[0].kind, made.actions[0].impact) == (ActionKind.UPDATE, Impact.METADATA)
    assert place.register(spec) == [ActionOutcome.DONE]
    assert place.live(spec).spec.columns[0].comment == "Another."
    assert place.live(spec).spec.description == "Another too."


def test_a_changed_type_is_refused_without_the_flag(place: Place) -> None:
    place.register(place.flights(id_type="int"))
    before = place.live(place.flights())
    changed = place.flights()

    made = propose(place.catalog, [changed], place.store)
    results = apply(place.catalog, made, place.store)

    assert [result.outcome for result in results] == [ActionOutcome.REFUSED]
    assert "--allow-breaking" in str(results[0].error)
    assert "type of id" in str(results[0].error)
    assert place.live(changed) == before


def test_a_wider_type_is_made_with_the_flag(place: Place) -> None:
    place.register(place.flights(id_type="int"))
    changed = place.flights()

    assert place.register(changed, allow=frozenset({Impact.BREAKING})) == [ActionOutcome.DONE]

    assert place.live(changed).spec.columns == changed.columns
    assert place.register(changed) == [ActionOutcome.UNCHANGED]


@of_folders
def test_a_changed_type_is_made_with_the_flag_and_partitions_stay(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    values = (("flight_date", "2026-11-20"), ("hour", "7"))
    place.catalog.add_partition(*spec.key, values, f"{place.folder}/flight_date=2026-11-20/hour=7")
    changed = place.flights(id_type="string")

    assert place.register(changed, allow=frozenset({Impact.BREAKING})) == [ActionOutcome.DONE]

    assert place.live(changed).spec.columns == changed.columns
    assert len(place.catalog.partitions(*spec.key)) == 1
    assert place.register(changed) == [ActionOutcome.UNCHANGED]


def test_a_removed_column_is_breaking(place: Place) -> None:
    more = "      - {name: carrier, logicalType: string}\n"
    place.register(place.flights(more=more))
    narrow = place.flights()

    assert place.register(narrow) == [ActionOutcome.REFUSED]
    assert place.register(narrow, allow=frozenset({Impact.BREAKING})) == [ActionOutcome.DONE]
    assert [column.name for column in place.live(narrow).spec.columns] == ["id", "price"]


def test_another_location_is_destructive(place: Place) -> None:
    place.register(place.flights())
    moved = place.flights(folder=f"{place.folder}-two")

    assert place.register(moved, allow=frozenset({Impact.BREAKING})) == [ActionOutcome.REFUSED]
    assert place.register(moved, allow=frozenset({Impact.DESTRUCTIVE})) == [ActionOutcome.DONE]
    assert place.live(moved).spec.location == f"{place.folder}-two"
    assert place.register(moved) == [ActionOutcome.UNCHANGED]


@of_folders
def test_another_format_makes_the_table_anew(place: Place) -> None:
    place.register(place.flights())
    orc = place.flights(format="orc")

    assert place.register(orc) == [ActionOutcome.REFUSED]
    assert place.register(orc, allow=frozenset({Impact.DESTRUCTIVE})) == [ActionOutcome.DONE]
    assert place.live(orc).spec.format == "orc"


def meddle(place: Place, live: LiveTable, spec: TableSpec) -> None:
    """Someone else writes the table: the same door, without our plan."""
    found = plan([spec], {spec.key: live}, {}, creates=place.catalog.formats)
    place.catalog.apply(replace(found.actions[0], kind=ActionKind.UPDATE))


def test_drift_is_reported_with_what_changed_and_put_back(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    live = place.live(spec)
    theirs = replace(spec.columns[0], comment="Scribbled.")
    meddle(place, live, replace(spec, columns=(theirs, *spec.columns[1:])))

    made = propose(place.catalog, [spec], place.store)

    assert [action.kind for action in made.actions] == [ActionKind.DRIFT]
    told = [re.sub(r" at \d{4}-\d\d-\d\d \d\d:\d\d UTC", "", line) for line in render(made)]
    assert (told != render(made)) == (place.id in ("glue", "iceberg"))
    assert told == [
        "! drift air_flights.flights (metadata): someone else changed it.",
        "    ~ comment of id: 'Scribbled.' -> 'The key.' (changed by someone else)",
        "1 table: 1 drift.",
    ]
    assert place.register(spec) == [ActionOutcome.DONE]
    assert place.live(spec).spec.columns == spec.columns


def test_a_stranger_is_never_touched_unless_adopted(place: Place) -> None:
    spec = place.flights()
    foreign = replace(spec, parameters=(("theirs", "1"),), description="Made by hand.")
    place.catalog.apply(Action(ActionKind.CREATE, spec.key, after=foreign))
    before = place.live(spec)

    assert place.register(spec) == [ActionOutcome.REFUSED]
    assert place.live(spec) == before
    assert place.register(spec, adopt=True) == [ActionOutcome.DONE]
    assert place.live(spec).spec.parameter("theirs") == "1"
    assert place.live(spec).spec.parameter("dq.managed-by") == "dq"
    assert place.register(spec) == [ActionOutcome.UNCHANGED]


def test_a_plan_is_stale_when_the_table_moved(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    changed = place.flights(comment="Mine.")
    made = propose(place.catalog, [changed], place.store)
    place.register(place.flights(comment="Theirs."))

    results = apply(place.catalog, made, place.store)

    assert [result.outcome for result in results] == [ActionOutcome.FAILED]
    assert isinstance(results[0].error, StalePlan)
    assert results[0].error.exit_code == 3
    assert str(results[0].error) == (
        "The plan is stale: air_flights.flights has changed since it was made. Run 'dq register' again."
    )
    assert place.live(spec).spec.columns[0].comment == "Theirs."


def test_a_plan_that_another_process_has_carried_out_is_not_claimed(place: Place) -> None:
    made = propose(place.catalog, [place.flights()], place.store)
    place.register(place.flights())

    results = apply(place.catalog, made, place.store)

    assert [result.outcome for result in results] == [ActionOutcome.UNCHANGED]


def test_an_orphan_is_shown_and_only_removed_when_asked(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    made = propose(place.catalog, [], place.store, complete=CompleteRegistry(""))
    assert [(action.kind, action.key) for action in made.actions] == [(ActionKind.ORPHAN, spec.key)]
    probe = table(place, TableColumn("a", "int"))
    made = propose(place.catalog, [probe], place.store, complete=CompleteRegistry(""))
    assert [(action.kind, action.key[1]) for action in made.actions] == [
        (ActionKind.ORPHAN, "flights"),
        (ActionKind.CREATE, "probe"),
    ]
    apply(place.catalog, made, place.store)
    assert place.catalog.read(*spec.key) is not None
    made = propose(place.catalog, [probe], place.store, complete=CompleteRegistry(""))
    apply(place.catalog, made, place.store, prune=True)
    assert place.catalog.read(*spec.key) is None
    assert [one.spec.name for one in place.catalog.tables("air_flights")] == ["probe"]
    assert "air_flights" in place.catalog.databases()


@of_folders
def test_a_partition_is_added_once(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    values = (("flight_date", "2026-11-20"), ("hour", "7"))
    folder = f"{place.folder}/flight_date=2026-11-20/hour=7"

    added = place.catalog.add_partition(*spec.key, values, folder)
    with place.write_counter() as writes:
        again = place.catalog.add_partition(*spec.key, values, folder)

    assert (added, again, writes) == (True, False, [])
    assert place.catalog.partitions(*spec.key) == [Partition(values, folder)]
    with pytest.raises(DqError, match=r"is at .*, not at /elsewhere"):
        place.catalog.add_partition(*spec.key, values, "/elsewhere")


@of_folders
def test_partitions_are_added_in_batches(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    partitions = [
        Partition((("flight_date", f"2026-11-{day:02}"), ("hour", str(hour))), f"{place.folder}/{day}/{hour}")
        for day in range(1, 11)
        for hour in range(12)
    ]
    moved, existing, *missing = partitions
    place.catalog.add_partition(*spec.key, moved.values, f"{place.folder}/elsewhere")
    place.catalog.add_partition(*spec.key, existing.values, existing.location)

    with place.write_counter() as writes:
        first, *results = place.catalog.add_partitions(*spec.key, partitions)

    assert isinstance(first, DqError)
    assert "is at" in str(first)
    assert results == [False, *[True] * len(missing)]
    assert len(writes) <= 2
    assert set(place.catalog.partitions(*spec.key)) == {
        Partition(moved.values, f"{place.folder}/elsewhere"),
        existing,
        *missing,
    }
    with pytest.raises(DqError, match=r"no table air_flights\.nope"):
        place.catalog.add_partitions("air_flights", "nope", partitions)


@pytest.mark.parametrize("place", [HIVE], indirect=True)
def test_a_partition_that_hive_refuses_does_not_keep_its_batch_out(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    before, refused, after = (
        Partition((("flight_date", "2026-11-20"), ("hour", hour)), f"{place.folder}/{hour}")
        for hour in ("1", "noon", "2")
    )

    results = place.catalog.add_partitions(*spec.key, [before, refused, after])

    assert (results[0], results[2]) == (True, True)
    assert "Spark's catalog refused: " in str(results[1])
    assert "noon" in str(results[1])
    assert sorted(place.catalog.partitions(*spec.key), key=str) == [before, after]


@of_folders
def test_a_partition_is_found_and_moved(place: Place) -> None:
    spec = place.flights()
    place.register(spec)
    values = (("flight_date", "2026-11-20"), ("hour", "7"))
    folder, moved = (f"{place.folder}/{name}/flight_date=2026-11-20/hour=7" for name in ("a", "b"))

    nowhere = place.catalog.partition_location(*spec.key, values)
    with pytest.raises(DqError, match="no longer has the partition flight_date=2026-11-20/hour=7"):
        place.catalog.move_partition(*spec.key, values, moved)
    place.catalog.add_partition(*spec.key, values, folder)
    there = place.catalog.partition_location(*spec.key, values)
    place.catalog.move_partition(*spec.key, values, moved)

    assert (nowhere, there) == (None, folder)
    assert place.catalog.partition_location(*spec.key, values) == moved
    assert place.catalog.partitions(*spec.key) == [Partition(values, moved)]
    assert place.catalog.partition_location("air_flights", "nope", values) is None


def test_a_partition_of_a_table_that_nobody_registered_is_refused(place: Place) -> None:
    with pytest.raises(DqError, match=r"no table air_flights\.nope\. Register it"):
        place.catalog.add_partition("air_flights", "nope", (("a", "1"),), "/x")


def test_a_database_that_does_not_exist_has_no_tables(place: Place) -> None:
    assert place.catalog.tables("nowhere") == []
    assert place.catalog.read("nowhere", "nothing") is None


NESTED = [
    "array<array<int>>",
    "array<char(3)>",
    "map<string,array<decimal(38,10)>>",
    "struct<a:int,b:struct<c:date,d:map<string,timestamp>>>",
    f"struct<{','.join(f'field_{index}:string' for index in range(60))}>",
]
# What a column can be: `interval` alone is a type of expressions, which no format stores.
PLAIN = sorted(set(CANONICAL.values()) - {"array", "map", "struct", "char", "varchar", "decimal", "interval"})
SIZED = ["char(3)", "varchar(20)", "decimal(18,2)", "decimal(38,38)"]


def test_every_physical_type_comes_back_as_it_was(place: Place) -> None:
    types = [*PLAIN, *SIZED, *NESTED]
    if place.id == "hive" and place.catalog.spark.version < "4.0":  # type: ignore[attr-defined]
        types.remove("variant")  # Spark 3.5 does not know it
    if place.id == "glue":
        types.remove("variant")  # nor does Athena
    if place.id == "iceberg":
        types.remove("variant")  # nor does a table of Iceberg's version 2
    spec = table(place, *(TableColumn(f"c{index}", one) for index, one in enumerate(types)))

    place.register(spec)

    assert [column.type for column in place.live(spec).spec.columns] == types
    assert place.register(spec) == [ActionOutcome.UNCHANGED]


# Types need a SerDe of Athena that knows no quotes.
PLAIN_CSV = """s3
    location: {}
    customProperties: [{{property: csv, vendor: dq, value: {{quote: none}}}}]"""


@of_folders
@pytest.mark.parametrize("format", ["orc", "json", "csv", "avro"])
def test_every_format_comes_back_as_it_was(place: Place, format: str) -> None:
    spec = place.flights(format=format, server=PLAIN_CSV.format(place.folder))

    assert place.register(spec) == [ActionOutcome.DONE]
    assert place.live(spec).spec.format == format
    assert place.live(spec).spec.reader == spec.reader
    assert place.live(spec).spec.columns == spec.columns
    assert place.live(spec).spec.partitions == spec.partitions
    assert place.register(spec) == [ActionOutcome.UNCHANGED]


def test_a_clipped_text_ends_in_a_whole_character() -> None:
    assert clip("ä" * 200, 255) == "ä" * 126 + "…"
    assert clip("two\n  lines", 255) == "two lines"
