"""Changes of producers against needs of consumers: what the gate and the comparison find, pair by pair."""

from __future__ import annotations

from datetime import date

import pytest
from fakes.command import replaced

from dq.contracts.model import Contract
from dq.contracts.subscriptions import Subscription, read
from dq.contracts.yaml.parse import parse
from dq.validators.compat.classification import Level, Verdict
from dq.validators.compat.classified_change import ClassifiedChange
from dq.validators.compat.comparison import DiffTerms, diff
from dq.validators.lint import SubscriptionFiles, lint_files, load_rules

TODAY = date(2026, 1, 15)
RULES = load_rules()
FILE = "subscriptions/billing.yaml"
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, unique: true}
      - name: amount
        logicalType: number
        physicalType: double
        required: true
        logicalTypeOptions: {minimum: 0, maximum: 100}
        quality: [{metric: nullValues, mustBe: 0}]
      - {name: country, logicalType: string, physicalType: string, enum: [{value: DE}, {value: AT}]}
    quality: [{id: volume, metric: rowCount, mustBeGreaterThan: 100}]
  - name: lines
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {timezone: Europe/Berlin, grace: 30m, objective: 95%}
"""
CRON, GRACE, ZONE = '"0 6 * * *"', "grace: 30m", "timezone: Europe/Berlin"
CHANGES = {
    "none": {},
    "06:30": {CRON: '"30 6 * * *"'},
    "07:30": {CRON: '"30 7 * * *"'},
    "05:00": {CRON: '"0 5 * * *"'},
    "hourly": {CRON: '"0 * * * *"'},
    "weekdays": {CRON: '"0 6 * * 1-5"'},
    "sundays at nine": {CRON: '"0 9 * * 0"'},
    "evening": {CRON: '"0 22 * * *"'},
    "grace 2h": {GRACE: "grace: 2h"},
    "grace 10m": {GRACE: "grace: 10m"},
    "in UTC": {ZONE: "timezone: UTC"},
    "in New York": {ZONE: "timezone: America/New_York"},
    "midnight in New York": {ZONE: "timezone: America/New_York", CRON: '"0 0 * * *"'},
    "no promise": {CONTRACT[CONTRACT.index("slaProperties") :]: ""},
    "objective": {"objective: 95%": "objective: 80%"},
    "required removed": {"        required: true\n": ""},
    "maximum relaxed": {"maximum: 100": "maximum: 200"},
    "maximum removed": {", maximum: 100": ""},
    "minimum tightened": {"minimum: 0": "minimum: 1"},
    "volume relaxed": {"mustBeGreaterThan: 100": "mustBeGreaterThan: 10"},
    "volume tightened": {"mustBeGreaterThan: 100": "mustBeGreaterThan: 200"},
    "volume removed": {"    quality: [{id: volume, metric: rowCount, mustBeGreaterThan: 100}]\n": ""},
    "nulls removed": {"        quality: [{metric: nullValues, mustBe: 0}]\n": ""},
    "unique removed": {", unique: true": ""},
    "country widened": {"{value: AT}": "{value: AT}, {value: CH}"},
    "country removed": {
        "      - {name: country, logicalType: string, physicalType: string,"
        " enum: [{value: DE}, {value: AT}]}\n": ""
    },
    "amount is text": {"number\n        physicalType: double": "string\n        physicalType: string"},
    "lines required removed": {"bigint, required: true}": "bigint}"},
}
ALL = "[orders]"
REQUIRED, VOLUME = "{quality: [orders.amount.required]}", "{quality: [orders.volume]}"


def by_berlin(time: str) -> str:
    return f'{{by: "{time}", timezone: Europe/Berlin}}'


# Change, needs, columns -> rule and verdict of the change, what billing loses (`uses` without a need, or
# nothing), and what is unmet at the gate.
PAIRS = [
    ("06:30", "", ALL, "sla-relaxed break: uses", ""),
    ("06:30", by_berlin("07:30"), ALL, "sla-relaxed break: -", ""),
    ("06:30", by_berlin("07:00"), ALL, "sla-relaxed break: -", ""),
    (
        "06:30",
        by_berlin("06:45"),
        ALL,
        "sla-relaxed break: orders by 06:45 Europe/Berlin",
        "'daily' promises 2026-01-15 06:30 CET with 30m grace",
    ),
    (
        "07:30",
        by_berlin("07:30"),
        ALL,
        "sla-relaxed break: orders by 07:30 Europe/Berlin",
        "'daily' promises 2026-01-15 07:30 CET with 30m grace",
    ),
    ("07:30", by_berlin("08:00"), ALL, "sla-relaxed break: -", ""),
    ("07:30", REQUIRED, ALL, "sla-relaxed break: -", ""),
    ("05:00", by_berlin("05:30"), ALL, "sla-tightened ok: -", ""),
    (
        "05:00",
        by_berlin("05:29"),
        ALL,
        "sla-tightened ok: -",
        "'daily' promises 2026-01-15 05:00 CET with 30m grace",
    ),
    ("none", by_berlin("06:30"), ALL, "-", ""),
    ("none", by_berlin("06:29"), ALL, "-", "'daily' promises 2026-01-15 06:00 CET with 30m grace"),
    ("none", '{by: "05:30", timezone: UTC}', ALL, "-", ""),
    (
        "none",
        '{by: "05:00", timezone: UTC}',
        ALL,
        "-",
        "'daily' promises 2026-01-15 05:00 UTC with 30m grace",
    ),
    ("none", '{by: "06:30+1d", timezone: Asia/Tokyo}', ALL, "-", ""),
    (
        "none",
        '{by: "13:00", timezone: Asia/Tokyo}',
        ALL,
        "-",
        "'daily' promises 2026-01-15 14:00 JST with 30m grace",
    ),
    ("none", '{by: "14:30", timezone: Asia/Tokyo}', ALL, "-", ""),
    ("hourly", by_berlin("00:30"), ALL, "sla-tightened ok: -", ""),
    (
        "hourly",
        by_berlin("00:29"),
        ALL,
        "sla-tightened ok: -",
        "'daily' promises 2026-01-15 00:00 CET with 30m grace",
    ),
    (
        "weekdays",
        by_berlin("07:30"),
        ALL,
        "sla-relaxed break: orders by 07:30 Europe/Berlin, also on 2026-01-17",
        "",
    ),
    (
        "sundays at nine",
        by_berlin("07:30"),
        ALL,
        "sla-relaxed break: orders by 07:30 Europe/Berlin",
        "'daily' promises 2026-01-18 09:00 CET with 30m grace",
    ),
    (
        "evening",
        by_berlin("07:30"),
        ALL,
        "sla-relaxed break: orders by 07:30 Europe/Berlin",
        "'daily' promises 2026-01-15 22:00 CET with 30m grace",
    ),
    ("evening", by_berlin("07:30+1d"), ALL, "sla-relaxed break: -", ""),
    (
        "grace 2h",
        by_berlin("07:30"),
        ALL,
        "sla-relaxed break: orders by 07:30 Europe/Berlin",
        "'daily' promises 2026-01-15 06:00 CET with 2h grace",
    ),
    ("grace 2h", by_berlin("08:00"), ALL, "sla-relaxed break: -", ""),
    ("grace 10m", by_berlin("06:10"), ALL, "sla-tightened ok: -", ""),
    (
        "in UTC",
        by_berlin("07:30"),
        ALL,
        "sla-relaxed break: orders by 07:30 Europe/Berlin",
        "'daily' promises 2026-03-29 08:00 CEST with 30m grace",
    ),
    ("in UTC", by_berlin("08:30"), ALL, "sla-relaxed break: -", ""),
    ("in UTC", '{by: "06:30", timezone: UTC}', ALL, "sla-relaxed break: -", ""),
    ("in New York", by_berlin("12:30"), ALL, "sla-relaxed break: -", ""),
    ("midnight in New York", by_berlin("06:30"), ALL, "sla-tightened ok: -", ""),
    (
        "midnight in New York",
        by_berlin("05:30"),
        ALL,
        "sla-tightened ok: -",
        "'daily' promises 2026-01-15 06:00 CET with 30m grace",
    ),
    (
        "no promise",
        by_berlin("07:30"),
        ALL,
        "sla-removed break: orders by 07:30 Europe/Berlin",
        "'orders' has no delivery SLO",
    ),
    ("no promise", VOLUME, ALL, "sla-removed break: -", ""),
    ("no promise", "", ALL, "sla-removed break: uses", ""),
    ("none", by_berlin("07:30"), "[lines.id]", "-", "'lines' has no delivery SLO"),
    ("objective", by_berlin("07:30"), ALL, "sla-relaxed break: uses", ""),
    ("objective", VOLUME, ALL, "sla-relaxed break: -", ""),
    (
        "required removed",
        REQUIRED,
        ALL,
        "required-removed break: orders.amount.required",
        "'orders' has no clause 'orders.amount.required'.",
    ),
    ("required removed", VOLUME, ALL, "required-removed break: -", ""),
    ("required removed", "", ALL, "required-removed break: uses", ""),
    (
        "required removed",
        REQUIRED,
        "[orders.amount]",
        "required-removed break: orders.amount.required",
        "'orders' has no clause 'orders.amount.required'.",
    ),
    ("required removed", "", "[orders.id]", "required-removed break: -", ""),
    (
        "maximum relaxed",
        "{quality: [orders.amount.maximum]}",
        ALL,
        "bound-relaxed break: orders.amount.maximum",
        "",
    ),
    ("maximum relaxed", "{quality: [orders.amount.minimum]}", ALL, "bound-relaxed break: -", ""),
    (
        "maximum removed",
        "{quality: [orders.amount.maximum]}",
        ALL,
        "bound-removed break: orders.amount.maximum",
        "'orders' has no clause 'orders.amount.maximum'.",
    ),
    ("minimum tightened", "{quality: [orders.amount.minimum]}", ALL, "bound-tightened ok: -", ""),
    ("volume relaxed", VOLUME, ALL, "quality-relaxed break: orders.volume", ""),
    ("volume relaxed", REQUIRED, ALL, "quality-relaxed warn: -", ""),
    ("volume relaxed", "", ALL, "quality-relaxed warn: uses", ""),
    ("volume relaxed", "{quality: [orders.rowCount]}", ALL, "quality-relaxed break: orders.rowCount", ""),
    ("volume tightened", VOLUME, ALL, "quality-tightened ok: -", ""),
    (
        "volume removed",
        VOLUME,
        ALL,
        "quality-removed break: orders.volume",
        "'orders' has no clause 'orders.volume'.",
    ),
    ("volume removed", REQUIRED, ALL, "quality-removed warn: -", ""),
    (
        "nulls removed",
        "{quality: [orders.amount.nullValues]}",
        ALL,
        "quality-removed break: orders.amount.nullValues",
        "'orders' has no clause 'orders.amount.nullValues'.",
    ),
    ("nulls removed", VOLUME, ALL, "quality-removed break: -", ""),
    (
        "unique removed",
        "{quality: [orders.id.unique]}",
        ALL,
        "unique-removed break: orders.id.unique",
        "'orders' has no clause 'orders.id.unique'.",
    ),
    ("unique removed", REQUIRED, ALL, "unique-removed break: -", ""),
    (
        "country widened",
        "{quality: [orders.country.enum]}",
        ALL,
        "allowed-values-widened break: orders.country.enum",
        "",
    ),
    ("country widened", REQUIRED, ALL, "allowed-values-widened warn: -", ""),
    ("country widened", "", "[orders.id]", "allowed-values-widened warn: -", ""),
    ("country removed", REQUIRED, ALL, "column-removed break: uses", ""),
    ("country removed", REQUIRED, "[orders.amount]", "column-removed break: -", ""),
    (
        "country removed",
        "{quality: [orders.country.enum]}",
        "[orders.country]",
        "column-removed break: orders.country.enum",
        "'orders' has no clause 'orders.country.enum'.",
    ),
    (
        "amount is text",
        "{quality: [orders.amount.physicalType]}",
        "[orders.amount]",
        "type-changed break: orders.amount.physicalType",
        "",
    ),
    ("amount is text", VOLUME, "[orders.amount]", "type-changed break: uses", ""),
    ("amount is text", VOLUME, "[orders.id]", "type-changed break: -", ""),
    (
        "lines required removed",
        "{quality: [lines.id.required]}",
        "[lines]",
        "required-removed break: lines.id.required",
        "'orders' has no clause 'lines.id.required'.",
    ),
    ("lines required removed", REQUIRED, ALL, "required-removed break: -", ""),
    (
        "none",
        "{quality: [orders.amount.requird]}",
        ALL,
        "-",
        "'orders' has no clause 'orders.amount.requird'.",
    ),
]


def contract(change: str) -> Contract:
    parsed = parse(replaced(CONTRACT, CHANGES[change]).encode(), "orders.odcs.yaml")
    assert parsed.contract is not None
    assert [finding for finding in parsed.findings if finding.severity.blocks] == []
    return parsed.contract


def subscription_text(needs: str, columns: str) -> bytes:
    lines = {
        "contract": "orders",
        "major": "1",
        "consumer": "{team: billing}",
        "purpose": "Invoices.",
        "columns": columns,
        "startDate": "2026-01-01",
        **({"needs": needs} if needs else {}),
    }
    return "".join(f"{key}: {value}\n" for key, value in lines.items()).encode()


def billing(needs: str, columns: str) -> Subscription:
    subscription, findings = read(subscription_text(needs, columns), FILE)
    assert subscription is not None
    assert findings == []
    return subscription


def compared(change: str, needs: str, columns: str, unneeded: Level = Level.ERROR) -> ClassifiedChange | None:
    """The worst change of a producer, if there is one, for one consumer."""
    terms = DiffTerms(TODAY, subscriptions=(billing(needs, columns),), unneeded=unneeded)
    changes = diff(contract("none"), contract(change), terms).changes
    return next((item for item in changes if not item.rule.startswith("version-")), None)


def unmet(change: str, needs: str, columns: str) -> str:
    """The messages of the gate on the subscription to the changed contract."""
    after = contract(change)
    files = {FILE: subscription_text(needs, columns)}
    given = SubscriptionFiles(files, frozenset(files), {after.identity: after})
    found = lint_files([], rules=RULES, today=TODAY, subscriptions=lambda _: given).findings
    assert {finding.rule for finding in found} <= {"subscription-need-unmet", "subscription-column-unknown"}
    return " ".join(finding.message for finding in found if finding.rule == "subscription-need-unmet")


@pytest.mark.parametrize(
    ("change", "needs", "columns", "expected", "gate"), PAIRS, ids=lambda value: str(value)[:30]
)
def test_a_change_is_held_against_what_a_consumer_needs(
    change: str, needs: str, columns: str, expected: str, gate: str
) -> None:
    item = compared(change, needs, columns)
    need = item.consumers[0].need or "uses" if item and item.consumers else "-"

    assert (f"{item.rule} {item.verdict}: {need}" if item else "-") == expected
    message = unmet(change, needs, columns)
    assert (message.partition(", but ")[2].rstrip(".") or message) == gate


def test_the_producer_sees_who_needs_it_and_where() -> None:
    item = compared("volume removed", VOLUME, ALL)

    assert item is not None
    assert item.subscribers_text == (
        " Subscribed: billing (Invoices; needs orders.volume; subscriptions/billing.yaml:7)."
    )
    assert item.consumers[0].as_dict()["at"] == "subscriptions/billing.yaml:7"
    without_needs = compared("country removed", "", "[orders.id, orders.country]")
    assert without_needs is not None
    assert without_needs.consumers[0].at == "subscriptions/billing.yaml:5"


@pytest.mark.parametrize(
    ("change", "needs", "columns", "verdict"),
    [
        ("country removed", REQUIRED, "[orders.amount]", Verdict.WARN),
        ("country removed", REQUIRED, ALL, Verdict.BREAK),
        ("06:30", by_berlin("07:30"), ALL, Verdict.WARN),
        ("07:30", by_berlin("07:30"), ALL, Verdict.BREAK),
        ("required removed", VOLUME, ALL, Verdict.WARN),
        ("required removed", REQUIRED, ALL, Verdict.BREAK),
        ("required removed", "", ALL, Verdict.BREAK),
        # Writers and the history are affected too.
        ("amount is text", VOLUME, "[orders.id]", Verdict.BREAK),
    ],
)
def test_a_policy_may_lower_what_no_consumer_needs(
    change: str, needs: str, columns: str, verdict: Verdict
) -> None:
    item = compared(change, needs, columns, unneeded=Level.WARN)

    assert item is not None
    assert item.verdict is verdict


def test_nothing_is_lowered_while_a_subscription_cannot_be_read() -> None:
    subscriptions = (billing(REQUIRED, "[orders.amount]"),)
    before, after = contract("none"), contract("country removed")
    for terms in (
        DiffTerms(TODAY, subscriptions=subscriptions, subscriptions_incomplete=True, unneeded=Level.WARN),
        DiffTerms(TODAY, unneeded=Level.WARN),
    ):
        assert diff(before, after, terms).verdict is Verdict.BREAK
