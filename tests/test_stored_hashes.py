"""Digests and keys that stores, catalogs, AWS and policies keep: they stay through every rename and move.

Where a value changes here, runs, schedules, filters and messages that were kept under the old one are not
found again. If that is meant, a migration or a line in the changelog goes with it. The fingerprints of
changes and of findings in SARIF stand in golden files.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from fakes import lake_grants
from fakes.command import BEGIN, MISSED, Place, contract

from dq.contracts.agreement import Agreement, OtherSide
from dq.contracts.types import parse as parse_type
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.partition_cache import CacheContext
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import parameters_of
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.clauses.metric_rule import MetricRequest
from dq.dataquality.model.metric import aggregate
from dq.registry.aws.lake_formation import desired_grants
from dq.registry.catalog import Action, ActionKind
from dq.registry.publications import Publication, event_id, first_event_id
from dq.registry.schedules import ScheduleEntry, ScheduleTerms, entry_name
from dq.registry.table import TableColumn, TableSpec, digest, folded

MEASURES = """\
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    properties:
      - name: amount
        logicalType: number
        quality:
          - {type: custom, engine: dq, implementation: {check: mean, arguments: {against: usual}}}
          - type: custom
            engine: dq
            implementation:
              check: quantile
              arguments: {q: 0.9, by: country, against: previous}
              mustBeBetween: [-20, 20]
              unit: percent
          - type: custom
            engine: dq
            implementation: {check: max, arguments: {against: weekday}, mustBeLessThan: 100}
            customProperties:
              - {property: scope, vendor: dq, value: {where: "country = 'DE' AND amount > 1.5"}}
      - {name: country, logicalType: string}
"""
SPEC = folded(
    TableSpec(
        "sales",
        "orders",
        "s3://lake/orders",
        "parquet",
        (TableColumn("id", "bigint", "Of the shop."), TableColumn("amount", "decimal(12,2)", required=True)),
        (TableColumn("day", "date"),),
        (("dq.contract", "orders"), ("dq.object", "orders")),
        "Every order.",
    )
)
DELIVERY = Publication(
    contract="orders",
    contract_version="2.1.0",
    domain="sales",
    object="orders",
    database="sales",
    table="orders",
    folder="s3://lake/orders/day=2026-05-10",
    values=(("day", "2026-05-10"),),
    cycle=datetime(2026, 5, 11, 6, tzinfo=UTC),
    server="lake",
)


def test_measures_find_their_earlier_runs() -> None:
    made = parse(MEASURES.encode(), "shop.odcs.yaml").contract
    assert made is not None
    asked = [one for one in clauses_of(made, made.objects[0], built_in()) if "quality" in one.path]

    assert {one.path: parameters_of(one, MetricRequest).fingerprint for one in asked} == {
        "schema[0].properties[0].quality[0]": "d8f5d3c928ecff94",
        "schema[0].properties[0].quality[1]": "cc458a3cb9c080bd",
        "schema[0].properties[0].quality[2]": "f5b4f068c611e54f",
    }


def test_comparisons_find_their_earlier_runs() -> None:
    rule = Agreement(
        OtherSide("orders", "ledger", "lake"), ("id",), ("amount",), ("at",), (("amount", "cents"),),
        (("amount", Decimal("0.01")),), (("mustBeLessThan", 5),), "percent", 7,
    )  # fmt: skip

    assert rule.definition == "d109a1993f318a0f"
    assert Agreement(OtherSide("orders")).definition == "88a418e9b15fb20a"


def test_clauses_keep_their_ids() -> None:
    made = parse(contract("orders").encode(), "orders.odcs.yaml").contract
    assert made is not None

    assert [one.path for one in clauses_of(made, made.objects[0], built_in())] == [
        "schema[0].additionalColumns",
        "schema[0].properties[0]",
        "schema[0].properties[1]",
    ]
    assert made.digest == "9894899a95b81a6603cb5a5836c1ff2f316d54ea11447cd51fc2054678bce77b"


def test_answers_of_partitions_are_found_again() -> None:
    schema = parse_type("struct<id: bigint, day: date>")
    around = CacheContext("circumstances", schema)

    assert (
        around.answer_key(aggregate("count", None))
        == "e35e47a3c3931fd4cad32cf635b0f8c7d3813cef41f3c48b1d9fe55cc640dc92"
    )
    assert (
        around.answer_key(aggregate("max", "id"))
        == "29893a41e7f186b5dec17a5b1894f29d23b3289f5aad1b3152a46cb790cb634a"
    )


def test_an_incident_and_its_messages_are_found_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/orders.odcs.yaml", contract("orders"))
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    for at in (BEGIN, MISSED):
        place.dq("watch", "registry", "--as-of", at, "--channel", "file:told.jsonl")
    (line,) = map(json.loads, (tmp_path / "told.jsonl").read_text().splitlines())

    assert (line["incident"], line["key"]) == (
        "747f05c0-703d-5513-ae13-ae1fdbabdefd",
        "d5ef6ad4-c787-5e57-9676-865b31b364e2",
    )


def test_a_delivery_has_one_id_everywhere() -> None:
    later = datetime(2026, 5, 11, 9, tzinfo=UTC)

    assert DELIVERY.delivery == "49bb110b-035c-5995-8887-a0390174f5d3"
    assert DELIVERY.legacy_delivery == "822244c9-2e9b-5c0c-b6b2-af5dc22e3d91"
    assert first_event_id(DELIVERY) == "1af25c0d-8123-55f1-b03c-bc01d20a9285"
    assert event_id(DELIVERY, 2, later) == "e52c46bf-d09c-5c76-80f4-07e69b472093"


def test_a_table_is_known_to_be_as_it_was_registered() -> None:
    assert digest(SPEC) == "db3da50951b79915d0b7aa77623464b9"
    assert Action(ActionKind.CREATE, SPEC.key, after=SPEC).fingerprint == "a8295308fbb427c5a884478f3fe66948"


def test_a_schedule_is_known_to_be_as_it_was_made() -> None:
    terms = ScheduleTerms("mesh", "arn:aws:sqs:eu-west-1:1234:dq", "arn:aws:iam::1234:role/dq", "dq")
    name = entry_name("orders/orders/daily", "orders", "1", "orders", "daily")
    entry = ScheduleEntry(name, "orders", "orders/orders/daily", "cron(0 6 * * ? *)", "UTC", "{}")

    assert name == "orders-orders-daily-6aab83a1036f"
    assert entry.digest(terms) == "4862d6f6a494626f07fa64af9bea9e95"


def test_a_data_filter_is_known_to_be_the_one_that_was_made() -> None:
    rows = lake_grants.subscription(1, "orders.amount", rows="customer = 'acme'")
    wanted = desired_grants([rows], [lake_grants.contract()], {one.key: one for one in lake_grants.TABLES})

    assert [*wanted.filters] == ["dq_f6f49c2026383057"]
