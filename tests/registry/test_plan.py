"""What a plan decides, table by table; nothing but values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.flights import flights

from dq.registry.catalog import Action, ActionKind, CatalogPlan, ChangedField, Impact, LiveTable, TableChange
from dq.registry.plan import CompleteRegistry, plan, render
from dq.registry.table import TableColumn, TableSpec, marked

ALL = frozenset({"parquet", "csv", "iceberg"})
LAKE = "s3://lake/air"


def decide(spec: TableSpec, live: TableSpec | None, last: TableSpec | None = None, **options: bool) -> Action:
    """The plan's action for one table."""
    found = {} if live is None else {spec.key: LiveTable(live, "7")}
    applied = {} if last is None else {spec.key: last}
    return plan([spec], found, applied, creates=ALL, **options).actions[0]


def with_parameters(spec: TableSpec, **more: str) -> TableSpec:
    pairs = dict(spec.parameters) | more
    return replace(spec, parameters=tuple(sorted(pairs.items())))


OLD = flights(LAKE)
NEW = flights(LAKE, comment="Another.", version="1.1.0")
EXTRA = replace(OLD, columns=(*OLD.columns, TableColumn("crawled", "string")))


@pytest.mark.parametrize(
    ("spec", "live", "last", "kind"),
    [
        pytest.param(OLD, None, None, ActionKind.CREATE, id="nothing is there"),
        pytest.param(OLD, OLD, None, ActionKind.NOOP, id="all is as it should be"),
        pytest.param(NEW, OLD, OLD, ActionKind.UPDATE, id="the contract changed"),
        pytest.param(NEW, OLD, None, ActionKind.UPDATE, id="the contract changed and nobody remembers"),
        pytest.param(OLD, EXTRA, None, ActionKind.DRIFT, id="someone added a column"),
        pytest.param(
            OLD,
            replace(OLD, parameters=(("theirs", "1"),)),
            OLD,
            ActionKind.DRIFT,
            id="someone wiped our mark",
        ),
        pytest.param(OLD, replace(OLD, parameters=()), None, ActionKind.CONFLICT, id="it is nobody's"),
        pytest.param(
            OLD,
            with_parameters(OLD, **{"dq.contract-id": "other"}),
            None,
            ActionKind.CONFLICT,
            id="it is another contract's",
        ),
        pytest.param(
            OLD,
            with_parameters(OLD, **{"dq.registry": "other"}),
            None,
            ActionKind.CONFLICT,
            id="it is another registry's",
        ),
        pytest.param(
            flights(LAKE, format="iceberg"),
            OLD,
            None,
            ActionKind.CONFLICT,
            id="a format that we cannot convert",
        ),
        pytest.param(flights(LAKE, format="hudi"), None, None, ActionKind.WAIT, id="its writer creates it"),
    ],
)
def test_the_kind_follows_from_three_sides(
    spec: TableSpec, live: TableSpec | None, last: TableSpec | None, kind: ActionKind
) -> None:
    assert decide(spec, live, last).kind is kind


def test_properties_of_others_survive_every_change() -> None:
    live = with_parameters(OLD, theirs="1", **{"projection.enabled": "true"})

    after = decide(NEW, live, OLD).after

    assert after is not None
    assert after.parameter("theirs") == "1"
    assert after.parameter("projection.enabled") == "true"
    assert after.parameter("dq.contract-version") == "1.1.0"


def test_a_property_that_we_stopped_writing_is_removed() -> None:
    before = marked(OLD, {"dq.team": "a"})

    action = decide(OLD, before, before)

    gone = [change for change in action.changes if change.name == "dq.team"]
    assert gone == [TableChange(ChangedField.PARAMETER, "dq.team", "a", None, Impact.METADATA)]
    assert action.after is not None
    assert action.after.parameter("dq.team") == ""


def test_a_column_of_someone_else_is_shown_and_left_alone() -> None:
    action = decide(OLD, EXTRA)

    assert action.changes == (
        TableChange(
            ChangedField.COLUMN, "crawled", "string", None, Impact.BREAKING, drift=True, ignored=True
        ),
    )
    assert action.writes is False
    assert action.after is not None
    assert action.after.columns == EXTRA.columns


def test_a_change_of_ours_and_a_change_of_theirs_are_told_apart() -> None:
    live = replace(OLD, columns=(replace(OLD.columns[0], type="string"), *OLD.columns[1:]))

    action = decide(NEW, live, OLD)

    assert action.kind is ActionKind.DRIFT
    assert {(change.field, change.drift) for change in action.changes} >= {
        (ChangedField.TYPE, True),
        (ChangedField.COMMENT, False),
    }


def test_silence_in_the_contract_leaves_the_texts_of_others() -> None:
    silent = marked(
        replace(OLD, description="", columns=tuple(replace(c, comment="") for c in OLD.columns)), {}
    )

    action = decide(silent, with_parameters(OLD, **dict(silent.parameters)))

    assert action.kind is ActionKind.NOOP


def test_a_text_that_the_contract_dropped_is_removed() -> None:
    silent = marked(replace(OLD, description=""), {})

    action = decide(silent, OLD, OLD)

    assert [change.after for change in action.changes if change.field is ChangedField.DESCRIPTION] == [None]


def test_adopting_what_would_break_is_a_conflict() -> None:
    theirs = replace(OLD, parameters=(), columns=(TableColumn("id", "string"), OLD.columns[1]))

    action = decide(OLD, theirs, adopt=True)

    assert action.kind is ActionKind.CONFLICT
    assert action.note.startswith("It exists, was not created by dq and does not match the contract.")


def test_adopting_keeps_the_columns_that_the_contract_does_not_name() -> None:
    theirs = replace(EXTRA, parameters=())

    action = decide(OLD, theirs, adopt=True)

    assert (action.kind, action.impact) == (ActionKind.ADOPT, Impact.METADATA)
    assert action.after is not None
    assert action.after.columns == EXTRA.columns


def test_only_properties_of_an_open_table_are_ours() -> None:
    spec = flights(LAKE, format="iceberg", comment="Another.")
    live = replace(
        flights(LAKE, format="iceberg"),
        location="s3://elsewhere",
        columns=(TableColumn("x", "int"),),
        partitions=(),
        description="",
    )

    found = plan([spec], {spec.key: LiveTable(live, "7")}, {}, creates=frozenset({"parquet"}))

    (action,) = found.actions
    assert {change.field for change in action.changes} == {ChangedField.DESCRIPTION, ChangedField.PARAMETER}
    assert action.after is not None
    assert action.after.columns == live.columns
    assert action.after.location == "s3://elsewhere"


def test_columns_of_an_iceberg_table_are_ours_where_the_catalog_makes_such() -> None:
    spec = flights(LAKE, format="iceberg", id_type="bigint")
    live = replace(spec, columns=(replace(spec.columns[0], type="int"), *spec.columns[1:]))

    action = decide(spec, live)

    assert [(change.field, change.before, change.after) for change in action.changes] == [
        (ChangedField.TYPE, "int", "bigint")
    ]


def test_a_required_column_is_loosened_with_a_word_and_never_tightened() -> None:
    loose = flights(LAKE, format="iceberg")
    strict = replace(loose, columns=(replace(loose.columns[0], required=True), *loose.columns[1:]))

    loosened, tightened = decide(loose, strict), decide(strict, loose)

    assert [(change.impact, change.rule) for change in loosened.changes] == [
        (Impact.BREAKING, "required-removed")
    ]
    assert (tightened.kind, [change.ignored for change in tightened.changes]) == (ActionKind.NOOP, [True])


def test_a_new_column_in_the_middle_of_csv_files_is_breaking() -> None:
    one = marked(TableSpec("d", "t", LAKE, "csv", (TableColumn("a", "int"), TableColumn("b", "int"))), {})
    two = (TableColumn("a", "int"), TableColumn("x", "int"), TableColumn("b", "int"))
    middle = marked(replace(one, columns=two), {})
    end = marked(replace(one, columns=(*one.columns, TableColumn("x", "int"))), {})

    assert decide(middle, one, one).impact is Impact.BREAKING
    after = decide(middle, one, one).after
    assert after is not None
    assert after.columns == two
    assert decide(end, one, one).impact is Impact.ADDITIVE


def test_a_new_column_in_the_middle_of_parquet_files_is_additive() -> None:
    wider = replace(OLD, columns=(OLD.columns[0], TableColumn("x", "int"), OLD.columns[1]))

    assert decide(marked(wider, {}), OLD, OLD).impact is Impact.ADDITIVE


def test_two_contracts_that_want_one_table_both_lose() -> None:
    made = plan([OLD, OLD], {}, {}, creates=ALL)

    assert [action.kind for action in made.actions] == [ActionKind.CONFLICT, ActionKind.CONFLICT]


def test_orphans_are_only_sought_by_a_plan_of_the_whole_registry_and_only_ours() -> None:
    other = marked(replace(OLD, name="old"), {})
    live = {
        other.key: LiveTable(other, "1"),
        ("d", "theirs"): LiveTable(replace(OLD, name="theirs", parameters=()), "1"),
    }

    partial = plan([OLD], live, {}, creates=ALL)
    complete = plan([OLD], live, {other.key: other}, creates=ALL, complete=CompleteRegistry(""))

    assert [action.kind for action in partial.actions] == [ActionKind.CREATE]
    assert [(action.kind, action.key[1]) for action in complete.actions] == [
        (ActionKind.CREATE, "flights"),
        (ActionKind.ORPHAN, "old"),
    ]


def test_who_was_here_is_said_where_it_can_be_told() -> None:
    crawled = with_parameters(EXTRA, UPDATED_BY_CRAWLER="nightly")

    assert decide(OLD, crawled).note == "someone else changed it; it has properties of a Glue crawler."


def test_a_saved_plan_is_told_from_another() -> None:
    (first,) = plan([NEW], {OLD.key: LiveTable(OLD, "1")}, {}, creates=ALL).actions
    (same,) = plan([NEW], {OLD.key: LiveTable(OLD, "1")}, {}, creates=ALL).actions
    (moved,) = plan([NEW], {OLD.key: LiveTable(OLD, "2")}, {}, creates=ALL).actions

    assert first.fingerprint == same.fingerprint
    assert first.fingerprint != moved.fingerprint
    # What the watcher writes is no change of the plan, the rest of such a table is.
    [watched, later, changed] = [
        plan([NEW], {OLD.key: LiveTable(replace(spec, parameters=pairs), version)}, {}, creates=ALL).actions[
            0
        ]
        for spec, text, version in (
            (OLD, "a", "3"),
            (OLD, "b", "4"),
            (replace(OLD, description="other"), "b", "4"),
        )
        for pairs in (tuple(sorted({**dict(OLD.parameters), "dq.complete-through": text}.items())),)
    ]
    assert watched.fingerprint == later.fingerprint != changed.fingerprint


def test_a_plan_reads_as_a_diff() -> None:
    more = "      - {name: carrier, logicalType: string}\n"
    wider = flights(LAKE, more=more, id_type="string", version="2.0.0")
    new = marked(
        TableSpec("air", "new", "", "parquet", (TableColumn("a", "int"),), (TableColumn("k", "date"),)), {}
    )
    gone = marked(replace(OLD, name="gone"), {"dq.contract-id": "air-gone"})
    live = {OLD.key: LiveTable(OLD, "1"), gone.key: LiveTable(gone, "1")}

    assert render(plan([wider, new], live, {gone.key: gone}, creates=ALL, complete=CompleteRegistry(""))) == [
        "+ create air.new (additive)",
        "    + parquet at a location chosen by the catalog",
        "    + column a: int",
        "    + partition key k: date",
        "~ update air_flights.flights (breaking)",
        "    ~ type of id: 'bigint' -> 'string' [breaking]",
        "    + column carrier: 'string' [additive]",
        "    ~ parameter dq.contract-version: '1.0.0' -> '2.0.0'",
        "- orphan air_flights.gone (destructive): Contract 'air-gone' no longer declares it. "
        "Remove it from the catalog with --prune.",
        "3 tables: 1 create, 1 update, 1 orphan.",
    ]


def test_nothing_to_do_is_said() -> None:
    assert render(CatalogPlan(())) == ["0 tables: nothing to do."]
