"""Laws of the diff: saying the same in other words is no change, whatever the words."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from fragments.compat import contract, text
from fragments.documents import documents
from hypothesis import given
from hypothesis import strategies as st

from dq.contracts.diff import Change, ChangeKind, ElementKind, ScheduleRelation, changes
from dq.contracts.model import Contract
from dq.contracts.normalize import normalize
from dq.contracts.yaml.parse import parse

START = date(2026, 1, 1)
REGISTRY = Path(__file__).parents[3] / "examples" / "registry"


def told(before: Contract, after: Contract) -> list[str]:
    return [f"{one.path} {one.attribute} {one.action}" for one in differences(before, after)]


def differences(before: Contract, after: Contract) -> list[Change]:
    return list(changes(normalize(before), normalize(after), START))


@given(documents())
def test_a_contract_does_not_differ_from_itself(document: dict[str, Any]) -> None:
    assert told(contract(document), contract(document)) == []


@given(documents(), st.randoms(use_true_random=False))
def test_the_order_of_keys_is_no_change(document: dict[str, Any], chance: random.Random) -> None:
    assert told(contract(document), contract(shuffled(document, chance))) == []


def shuffled(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(key, shuffled(inner, chance)) for key, inner in value.items()]
        chance.shuffle(items)
        return dict(items)
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


@given(documents())
def test_comments_and_blank_lines_are_no_change(document: dict[str, Any]) -> None:
    plain = text(document)
    commented = b"# why\n\n" + plain.replace(b"\n", b"  # so\n\n")

    assert told(parsed(plain), parsed(commented)) == []


def parsed(data: bytes) -> Contract:
    made = parse(data, "orders.odcs.yaml").contract
    assert made is not None
    return made


@given(documents())
def test_a_default_that_is_written_out_is_no_change(document: dict[str, Any]) -> None:
    defaults = {
        "required": False,
        "unique": False,
        "partitioned": False,
        "primaryKeyPosition": -1,
        "partitionKeyPosition": -1,
        "criticalDataElement": False,
        "deprecated": False,
        "semanticType": "column",
        "tags": [],
    }
    one = document["schema"][0]
    full = {**one, "physicalType": "table", "logicalType": "object"}
    full["properties"] = [{**defaults, **prop, "physicalName": prop["name"]} for prop in one["properties"]]

    assert told(contract(document), contract({**document, "schema": [full]})) == []


SAME_LENGTHS = [
    ((24, "h"), (1, "d")),
    ((7, "days"), (1, "w")),
    ((12, "mo"), (1, "year")),
    ((365, "d"), (1, "y")),
    ((90, "minutes"), (1.5, "HR")),
]


@pytest.mark.parametrize(("first", "second"), SAME_LENGTHS)
def test_a_length_of_time_in_another_unit_is_no_change(
    first: tuple[float, str], second: tuple[float, str]
) -> None:
    assert told(with_latency(*first), with_latency(*second)) == []


def with_latency(value: float, unit: str) -> Contract:
    return contract(head({"slaProperties": [{"property": "latency", "value": value, "unit": unit}]}))


def head(more: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v3.2.0", "kind": "DataContract", "id": "orders", "version": "1.0.0", **more}


SAME_TYPES = [("DECIMAL(10, 2)", "decimal(10,2)"), ("Array< INT >", "array<int>"), ("STRING", "string")]


@pytest.mark.parametrize(("first", "second"), SAME_TYPES)
def test_blanks_and_case_of_a_type_are_no_change(first: str, second: str) -> None:
    assert told(with_type(first), with_type(second)) == []


def with_type(physical: str) -> Contract:
    prop = {"name": "a", "physicalType": physical}
    return contract(head({"schema": [{"name": "t", "properties": [prop]}]}))


def test_names_of_utc_are_no_change() -> None:
    assert told(delivered("UTC"), delivered("Etc/UTC")) == []


def delivered(zone: str, **more: object) -> Contract:
    value = {"timezone": zone, "grace": "45m", **more}
    terms = {"property": "delivery", "vendor": "dq", "value": value}
    sla = {
        "property": "frequency",
        "value": 1,
        "unit": "d",
        "schedule": "0 6 * * *",
        "customProperties": [terms],
    }
    return contract(head({"slaProperties": [sla]}))


def test_a_zone_that_moves_the_deliveries_is_a_change() -> None:
    (change,) = differences(delivered("UTC"), delivered("America/New_York"))

    assert (change.kind, change.attribute) == (ElementKind.SLA, "schedule")


def test_a_removed_column_stands_at_its_object_in_the_new_file_and_at_itself_in_the_old_one() -> None:
    before = parsed(table(b"  - {name: a}\n  - {name: b}\n"))
    after = parsed(table(b"  - {name: a}\n"))

    (change,) = differences(before, after)

    assert (change.kind, change.action, change.path) == (ElementKind.PROPERTY, ChangeKind.REMOVED, "orders.b")
    assert (change.location_before.line, change.location_after.line) == (9, 6)
    assert change.pointer == "schema[0]"


def table(properties: bytes) -> bytes:
    return (
        b"apiVersion: v3.2.0\nkind: DataContract\nid: orders\nversion: 1.0.0\nschema:\n"
        b"- name: orders\n  properties:\n" + properties
    )


@pytest.mark.parametrize("file", sorted(REGISTRY.glob("*.odcs.yaml")), ids=lambda file: file.stem)
def test_the_examples_do_not_differ_from_their_rewritten_selves(file: Path) -> None:
    data = file.read_bytes()

    assert told(parsed(data), parsed(yaml.safe_dump(yaml.safe_load(data)).encode())) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"holidays": ["DE"]}, ScheduleRelation.LATER, id="skipped"),
        pytest.param({}, {"holidays": ["DE"], "free_days": "excuse"}, ScheduleRelation.LATER, id="excused"),
        pytest.param({"holidays": ["DE"]}, {}, ScheduleRelation.EARLIER, id="due again"),
        pytest.param(
            {"weekdays_only": True, "free_days": "move"}, {"weekdays_only": True}, ScheduleRelation.LATER,
            id="skipped instead of brought on Monday",
        ),
    ],
)  # fmt: skip
def test_a_calendar_that_takes_deliveries_away_is_a_change(
    before: dict[str, object], after: dict[str, object], expected: ScheduleRelation
) -> None:
    (change,) = differences(delivered("UTC", calendar=before), delivered("UTC", calendar=after))

    assert change.facts["fires"] is expected


def test_a_calendar_in_other_words_is_no_change() -> None:
    named = delivered("UTC", calendar={"holidays": ["DE", "DE-BY"]})

    assert told(named, delivered("UTC", calendar={"holidays": ["DE-BY"]})) == []
