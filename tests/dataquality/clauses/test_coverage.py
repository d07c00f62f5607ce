from __future__ import annotations

from dq.contracts.model import Property, SchemaObject, TypeOptions
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import REASONS, SILENT, ClauseCoverage, EnforcementState, clause_coverage
from dq.dataquality.clauses.kind import clauses_of

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: shop\nversion: 1.0.0\n"
CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    description: One row per order.
    physicalType: table
    relationships: [{from: [orders.id], to: [lines.order_id]}]
    properties:
      - name: id
        logicalType: integer
        required: true
        unique: false
        classification: internal
      - {name: seen, physicalType: timestamp, logicalTypeOptions: {timezone: false}}
      - name: mail
        physicalType: CITEXT
        logicalType: string
        logicalTypeOptions: {format: email, maxLength: 9, pattern: '(?i)a'}
    quality:
      - {metric: rowCount, mustBeGreaterThan: 0}
      - {metric: sumOfTears, mustBe: 0}
      - {type: text, description: It is good.}
      - {type: sql, query: "SELECT max(id) FROM {object}", mustBe: 1}
      - {type: sql, name: idle, query: SELECT 1, mustBe: 1}
      - {type: custom, engine: soda, implementation: x}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    scheduler: cron
    schedule: 0 6 * * *
    customProperties:
      - {property: delivery, vendor: dq, value: {grace: 45m, partition: {day: "{due:%Y-%m-%d}"}}}
  - {property: latency, value: 4, unit: h, element: orders.seen}
  - {property: freshness, value: 4, unit: h, element: orders.id}
  - {property: availability, value: 99}
  - {property: re, value: 1, unit: y, element: seen}
"""


def account() -> tuple[ClauseCoverage, ...]:
    contract = parse(CONTRACT.encode(), "shop.odcs.yaml").contract
    assert contract is not None
    one = contract.objects[0]
    return clause_coverage(contract, one, clauses_of(contract, one, built_in()))


def test_every_clause_is_enforced_documented_or_not_evaluated() -> None:
    said = {f"{one.property or one.object}: {one.clause}": (one.state.value, one.reason) for one in account()}

    assert {key: state for key, (state, _) in said.items()} == {
        "orders: additionalColumns": "enforced",
        "orders: physicalType": "documented only",
        "orders: relationship: lines.order_id": "not evaluated",
        "id: logicalType": "enforced",
        "id: required": "enforced",
        "id: classification": "documented only",
        "seen: physicalType": "enforced",
        "seen: timezone": "documented only",
        "mail: physicalType": "not evaluated",
        "mail: logicalType": "enforced",
        "mail: format": "enforced",
        "mail: maxLength": "enforced",
        "mail: pattern": "not evaluated",
        "orders: quality: rowCount": "enforced",
        "orders: quality: sumOfTears": "not evaluated",
        "orders: quality: text": "documented only",
        "orders: quality: sql": "enforced",
        "orders: quality: idle": "not evaluated",
        "orders: quality: custom": "not evaluated",
        "orders: service level: frequency": "enforced",
        "seen: service level: latency": "enforced",
        "id: service level: freshness": "not evaluated",
        "seen: service level: re": "enforced",
        "orders: service level: availability": "documented only",
    }
    assert said["id: required"][1] == "required"
    assert said["orders: service level: frequency"][1] == "dq watch"
    assert said["orders: quality: sql"][1] == "sql_rule"
    assert said["orders: quality: idle"][1] == (
        "its query is refused: it reads no table of the contract. Write FROM {object}"
    )
    assert "(?i)" in said["mail: pattern"][1]


def test_an_account_stands_at_the_line_of_its_clause() -> None:
    found = next(one for one in account() if one.clause == "maxLength")

    assert str(found.at) == "shop.odcs.yaml:21:56"
    assert found.path == "schema[0].properties[2].logicalTypeOptions.maxLength"


LEVELS = {
    "av, value: 99": "documented only",
    "timeToRepair, value: 4": "documented only",
    "frequency, value: 1": "not evaluated",
    "timeOfAvailability, value: 9": "not evaluated",
    "punctuality, value: 9": "not evaluated",
    "latency, value: 1": "not evaluated",
}


def test_a_service_level_without_a_column_says_what_is_missing() -> None:
    written = ", ".join(f"{{property: {level}, unit: d, element: a}}" for level in LEVELS)
    schema = "schema: [{name: a, properties: [{name: n, logicalType: integer}]}, {name: b}]\n"
    contract = parse(f"{HEAD}{schema}slaProperties: [{written}]\n".encode(), "a.odcs.yaml").contract
    assert contract is not None

    found = {
        one.name: clause_coverage(contract, one, clauses_of(contract, one, built_in()))
        for one in contract.objects
    }

    assert [account.state for account in found["a"] if "service" in account.clause] == list(LEVELS.values())
    assert "to have 'dq watch' enforce it" in found["a"][-4].reason
    assert found["a"][-1].reason == "a has no date or timestamp column to measure the age"
    assert found["b"] == ()


def test_every_key_of_the_standard_is_enforced_silent_or_has_a_reason() -> None:
    words = """
        logicalType physicalType required unique primaryKey enum quality minLength maxLength pattern minimum
        maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems minProperties
        maxProperties format timezone dimensions elementType normalized
    """
    enforced = set(words.split())
    keys = {
        str(info.alias)
        for model in (SchemaObject, Property, TypeOptions)
        for info in model.model_fields.values()
        if info.alias and info.alias.isidentifier()
    }

    assert keys - enforced - set(SILENT) - set(REASONS) == set()


def test_states_are_three() -> None:
    assert [state.value for state in EnforcementState] == ["enforced", "documented only", "not evaluated"]
