"""Partition indexes in Glue: what a contract asks for is there, and those of others stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.flights import FLIGHTS, flights
from fakes.glue import GlueShim

from dq.contracts.outcome import UsageError
from dq.registry.aws.glue import Glue
from dq.registry.catalog import Action, ActionKind
from dq.registry.plan import ActionOutcome, apply, propose
from dq.registry.table import TableSpec, marked
from dq.store.engine import Store

LAKE = "s3://lake/air"
KEY = ("air_flights", "flights")


def spec(*indexes: str, **parts: str) -> TableSpec:
    """The usual table with these indexes, each as `day, hour`."""
    asked = f"parquet, partitionIndexes: [{', '.join(f'[{keys}]' for keys in indexes)}]"
    return flights(LAKE, format=asked, **parts)


def register(catalog: Glue, store: Store, wanted: TableSpec) -> tuple[Action, ActionOutcome, str]:
    made = propose(catalog, [wanted], store)
    (result,) = apply(catalog, made, store)
    return result.action, result.outcome, str(result.error or "")


def names(glue: GlueShim) -> list[str]:
    return sorted(one["IndexName"] for one in glue.indexes.get(KEY, []))


def theirs(glue: GlueShim, name: str, *keys: str) -> None:
    """Another makes an index by hand."""
    made = {"IndexName": name, "Keys": [{"Name": key, "Type": "string"} for key in keys]}
    glue.indexes.setdefault(KEY, []).append(made | {"IndexStatus": "ACTIVE"})


def test_a_new_table_has_its_indexes_in_the_call_that_makes_it(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    wanted = spec("flight_date", "flight_date, hour")

    register(glue_catalog, store, wanted)
    with glue.counted() as writes:
        again = register(glue_catalog, store, wanted)

    assert names(glue) == ["dq_flight_date", "dq_flight_date_hour"]
    assert [call.operation for call in glue.calls if call.operation == "CreatePartitionIndex"] == []
    assert (again[0].kind, writes) == (ActionKind.NOOP, [])
    table = glue_catalog.connection.client.get_table(DatabaseName=KEY[0], Name=KEY[1])["Table"]
    assert table["Parameters"]["partition_filtering.enabled"] == "true"


def test_indexes_are_added_and_deleted_as_the_contract_changes(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    register(glue_catalog, store, flights(LAKE))

    more = register(glue_catalog, store, spec("flight_date", "hour"))
    other = register(glue_catalog, store, spec("hour", "hour, flight_date"))
    assert names(glue) == ["dq_hour", "dq_hour_flight_date"]
    none = register(glue_catalog, store, flights(LAKE))

    assert [one[1] for one in (more, other, none)] == [ActionOutcome.DONE] * 3
    assert names(glue) == []
    assert register(glue_catalog, store, flights(LAKE))[0].kind is ActionKind.NOOP


def test_three_of_ours_are_exchanged_within_the_limit_of_three(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    register(glue_catalog, store, spec("flight_date", "hour", "flight_date, hour"))

    _, ending, _ = register(glue_catalog, store, spec("flight_date", "hour", "hour, flight_date"))

    assert ending is ActionOutcome.DONE
    assert names(glue) == ["dq_flight_date", "dq_hour", "dq_hour_flight_date"]


def test_one_that_somebody_deleted_is_drift_and_made_again(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    wanted = spec("flight_date", "hour")
    register(glue_catalog, store, wanted)
    glue.indexes[KEY] = [one for one in glue.indexes[KEY] if one["IndexName"] != "dq_hour"]

    action, ending, _ = register(glue_catalog, store, wanted)

    assert (action.kind, ending) == (ActionKind.DRIFT, ActionOutcome.DONE)
    assert [(one.name, one.before, one.after) for one in action.changes] == [
        ("dq.partition-indexes", "flight_date", "flight_date; hour")
    ]
    assert names(glue) == ["dq_flight_date", "dq_hour"]


def test_those_of_others_stay_and_one_with_the_wanted_keys_is_taken_for_it(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    register(glue_catalog, store, flights(LAKE))
    theirs(glue, "by_hand", "hour")
    theirs(glue, "mine", "hour", "flight_date")

    _, ending, _ = register(glue_catalog, store, spec("hour", "flight_date"))
    assert names(glue) == ["by_hand", "dq_flight_date", "mine"]
    register(glue_catalog, store, flights(LAKE))

    assert ending is ActionOutcome.DONE
    assert names(glue) == ["by_hand", "mine"]


def test_a_fourth_is_refused_by_glue_and_told(glue: GlueShim, glue_catalog: Glue, store: Store) -> None:
    register(glue_catalog, store, flights(LAKE))
    for name, keys in (("a", ("hour",)), ("b", ("hour", "flight_date")), ("c", ("flight_date", "hour"))):
        theirs(glue, name, *keys)

    _, ending, said = register(glue_catalog, store, spec("flight_date"))

    assert ending is ActionOutcome.FAILED
    assert "three indexes" in said
    live = glue_catalog.read(*KEY)
    assert live is not None
    assert live.spec.parameter("dq.partition-indexes") == ""


def test_one_that_glue_could_not_fill_is_told_with_its_reason(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    wanted = spec("hour")
    register(glue_catalog, store, wanted)
    glue.indexes[KEY][0] |= {
        "IndexStatus": "FAILED",
        "BackfillErrors": [{"Code": "ENCRYPTED_PARTITION_ERROR"}],
    }

    _, ending, said = register(glue_catalog, store, wanted)

    assert ending is ActionOutcome.FAILED
    assert "could not fill the index over hour: ENCRYPTED_PARTITION_ERROR" in said


def test_a_table_without_indexes_costs_no_call_for_them(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    register(glue_catalog, store, flights(LAKE))
    register(glue_catalog, store, flights(LAKE))

    assert [call.operation for call in glue.calls if "Index" in call.operation] == []


def test_a_loss_of_every_answer_on_the_way_ends_in_the_same_indexes(
    glue: GlueShim, glue_catalog: Glue, store: Store
) -> None:
    register(glue_catalog, store, flights(LAKE))

    def lost(call: Any, forward: Any) -> None:
        forward()

    glue.faults["CreatePartitionIndex"] = [lost]
    register(glue_catalog, store, spec("hour", "flight_date"))
    register(glue_catalog, store, spec("hour", "flight_date"))

    assert names(glue) == ["dq_flight_date", "dq_hour"]
    assert register(glue_catalog, store, spec("hour", "flight_date"))[0].kind is ActionKind.NOOP


@pytest.mark.parametrize(
    ("indexes", "said"),
    [
        (("id",), "'id' is not a partition key"),
        (("hour, hour",), "a duplicate key"),
        (("hour", "hour"), "two have the same keys"),
        (("",), "has no keys"),
        (("hour", "flight_date", "hour, flight_date", "flight_date, hour"), "there are 4"),
    ],
)
def test_indexes_that_no_table_could_have_are_refused_at_their_line(
    indexes: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        spec(*indexes)

    assert caught.value.at is not None
    # Of the server's one line in the text above two are made.
    assert caught.value.at.line == FLIGHTS.splitlines().index("      - property: dataset") + 2


def test_a_type_that_no_index_takes_is_refused_before_a_call(glue: GlueShim, glue_catalog: Glue) -> None:
    wanted = spec("hour")
    keys = tuple(replace(key, type="timestamp") if key.name == "hour" else key for key in wanted.partitions)

    with pytest.raises(UsageError, match="'hour' is a timestamp, which cannot be indexed"):
        glue_catalog.vet(marked(replace(wanted, partitions=keys), {}))

    assert glue.calls == []
