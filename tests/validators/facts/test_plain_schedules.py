"""Schedules by the keys of ODCS alone: those that are watched, their terms, and the findings of others."""

from __future__ import annotations

from datetime import date

import pytest

from dq.contracts.slo import read_slos
from dq.contracts.yaml.parse import parse
from dq.operations.gate import unenforced
from dq.validators.lint import lint, load_rules

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
name: Orders
version: 1.0.0
status: active
team: {{members: [{{username: ana@example.com, role: owner}}]}}
support: [{{channel: '#sales', tool: slack, scope: notifications}}]
{servers}
schema:
  - name: orders
    description: One row per order.
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: integer, physicalType: bigint, description: Number of the order.}}
{more}
slaProperties:
  - {{{entry}}}
"""
LAKE = "servers: [{server: lake, type: s3, location: s3://lake/orders, format: parquet}]"
LINES = (
    "  - {name: lines, description: Lines., properties: [{name: n, logicalType: integer, physicalType: int}]}"
)
DAILY = "property: frequency, value: 1, unit: d"
RULES = load_rules()


def contract(entry: str, servers: str = LAKE, more: str = "") -> bytes:
    return CONTRACT.format(entry=entry, servers=servers, more=more).encode()


def findings(data: bytes) -> list[tuple[str, str]]:
    found = lint(data, "orders.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)
    return [(one.rule, str(one.severity)) for one in found]


def watched(data: bytes) -> list[tuple[str, str, str, str, str]]:
    parsed = parse(data, "orders.odcs.yaml").contract
    assert parsed is not None
    slos, problems = read_slos(parsed)
    assert problems == []
    return [
        (slo.id, slo.object.name, slo.schedule.timezone, slo.delivery.grace, slo.delivery.expect)
        for slo in slos
    ]


# The entry, and the grace of its terms.
WATCHED = {
    "cron": (f"{DAILY}, scheduler: cron, schedule: '0 6 * * *', element: orders", "1h"),
    "no scheduler": (f"{DAILY}, schedule: '0 6 * * *', element: orders", "1h"),
    "the scheduler in capitals": (f"{DAILY}, scheduler: CRON, schedule: '0 6 * * *'", "1h"),
    "without an element": (f"{DAILY}, schedule: '0 6 * * *'", "1h"),
    "a column": (f"{DAILY}, schedule: '0 6 * * *', element: orders.day", "1h"),
    "columns": (f"{DAILY}, schedule: '0 6 * * *', element: 'orders.day, orders.id'", "1h"),
    "a macro": (f"{DAILY}, schedule: '@daily'", "1h"),
    "each hour": (f"{DAILY}, schedule: '@hourly'", "15m"),
    "each quarter": (f"{DAILY}, schedule: '*/15 * * * *'", "3m"),
    "each minute": (f"{DAILY}, schedule: '* * * * *'", "0m"),
    "twice a day, close": (f"{DAILY}, schedule: '0 6,8 * * *'", "30m"),
    "weekdays": (f"{DAILY}, schedule: '0 6 * * MON-FRI'", "1h"),
    "every leap day": (f"{DAILY}, schedule: '0 6 29 2 *'", "1h"),
    "the time of availability": ("property: timeOfAvailability, value: '06:00', schedule: '0 6 * * *'", "1h"),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "grace"), WATCHED.values(), ids=WATCHED)
def test_a_schedule_of_arrivals_is_watched_by_default_terms(entry: str, grace: str) -> None:
    data = contract(entry)

    assert findings(data) == []
    assert [terms[1:] for terms in watched(data)] == [("orders", "UTC", grace, "new_data")]


# The entry, the servers and other objects, the rule that reports it, and a part of its message and hint.
NOT_WATCHED = {
    "Quartz": ("schedule: '0 0 6 * * ?'", LAKE, "", "cron-invalid", "has 6 fields"),
    "Quartz with years": ("schedule: '0 0 6 * * ? *'", LAKE, "", "cron-invalid", "has 7 fields"),
    "a duration": ("schedule: P1D", LAKE, "", "cron-invalid", "has 1 field"),
    "a repetition": ("schedule: 'R/2026-01-01T06:00:00Z/P1D'", LAKE, "", "cron-invalid", "has 1 field"),
    "rate": ("schedule: rate(1 day)", LAKE, "", "cron-invalid", "is an AWS expression"),
    "EventBridge": ("schedule: 'cron(0 6 * * ? *)'", LAKE, "", "cron-invalid", "is an AWS expression"),
    "a zone in front": (
        "schedule: 'CRON_TZ=Europe/Berlin 0 6 * * *'", LAKE, "", "cron-invalid", "Set the zone in `timezone`"
    ),
    "a zone behind": (
        "schedule: '0 6 * * * Europe/Berlin'", LAKE, "", "cron-invalid", "Set the zone in `timezone`"
    ),
    "words": ("schedule: Every Tuesday", LAKE, "", "cron-invalid", "has 2 fields"),
    "nothing": ("schedule: ''", LAKE, "", "cron-invalid", "is empty"),
    "never": ("schedule: '0 6 31 2 *'", LAKE, "", "cron-invalid", "never occurs"),
    "the start of a machine": ("schedule: '@reboot'", LAKE, "", "cron-invalid", "has no scheduled time"),
    "Airflow": (
        "scheduler: airflow, schedule: '@daily'", LAKE, "", "schedule-not-watched", "schedules of 'airflow'"
    ),
    "no object of that name": (
        "schedule: '0 6 * * *', element: order", LAKE, LINES, "sla-element-unknown", "'order'"
    ),
    "one of two objects": (
        "schedule: '0 6 * * *'", LAKE, LINES, "schedule-not-watched", "has several objects"
    ),
    "both objects": (
        "schedule: '0 6 * * *', element: 'orders, lines'", LAKE, LINES, "schedule-not-watched",
        "Write an entry for each object.",
    ),
    "no server": ("schedule: '0 6 * * *'", "", "", "schedule-not-watched", "has no server"),
    "a database": (
        "schedule: '0 6 * * *'",
        "servers: [{server: db, type: postgres, host: h, port: 1, database: d, schema: s}]",
        "", "schedule-not-watched", "cannot list data of postgres",
    ),
    "a catalog without a location": (
        "schedule: '0 6 * * *'",
        "servers: [{server: g, type: glue, account: '123456789012', database: sales}]",
        "", "schedule-not-watched", "no server has the location",
    ),
    "a location by date": (
        "schedule: '0 6 * * *'",
        "servers: [{server: lake, type: s3, location: 's3://lake/orders/{date}', format: parquet}]",
        "", "schedule-not-watched", "'{date}'",
    ),
    "a pattern": (
        "schedule: '0 6 * * *'",
        "servers: [{server: lake, type: s3, location: 's3://lake/orders/*.csv', format: csv}]",
        "", "schedule-not-watched", "'*'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "servers", "more", "rule", "text"), NOT_WATCHED.values(), ids=NOT_WATCHED)
def test_a_schedule_that_is_not_watched_is_a_warning(
    entry: str, servers: str, more: str, rule: str, text: str
) -> None:
    data = contract(f"{DAILY}, {entry}", servers, more)

    found = lint(data, "orders.odcs.yaml", rules=RULES, today=date(2026, 11, 21), unenforced=unenforced)

    assert watched(data) == []
    assert [(one.rule, str(one.severity)) for one in found if one.rule != "missing-description"] == [
        (rule, "warning")
    ]
    assert text in f"{found[0].message} {found[0].hint}"


@pytest.mark.parametrize("level", ["latency", "retention", "availability", "carbonFootprint"])
def test_the_schedule_of_another_level_is_when_it_is_evaluated(level: str) -> None:
    data = contract(f"property: {level}, value: 1, unit: d, schedule: '0 6 * * *', element: orders.day")

    assert watched(data) == []
    assert [rule for rule, _ in findings(data) if "watched" in rule or "cron" in rule] == []


def test_two_schedules_of_one_object_need_ids() -> None:
    entry = f"{DAILY}, schedule: '0 6 * * *'"
    alike = contract(entry + "}\n  - {" + entry)
    apart = contract(f"id: a, {entry}}}\n  - {{id: b, {entry}")

    assert findings(alike) == [("schedule-not-watched", "warning")]
    assert [terms[0] for terms in watched(alike)] == ["frequency"]
    assert findings(apart) == []
    assert [terms[0] for terms in watched(apart)] == ["a", "b"]


def test_terms_of_its_own_come_before_implied_ones() -> None:
    own = "id: daily, property: frequency, value: 1, unit: d, schedule: '0 6 * * *', element: orders"
    plain = own.replace("id: daily, ", "id: daily, description: again, ")
    terms = 'customProperties: [{property: "delivery:daily", value: {grace: 45m}}]\n'
    data = contract(plain).replace(b"slaProperties", f"{terms}slaProperties".encode())

    assert [slo[3:] for slo in watched(data)] == [("45m", "delivery")]


def test_new_data_has_no_partition(lint_fragment) -> None:
    found = lint_fragment(
        "slaProperties:\n"
        "  - {property: frequency, value: 1, unit: d, element: orders, schedule: '0 6 * * *', "
        "customProperties: [{property: delivery, vendor: dq, "
        "value: {expect: new_data, partition: {day: '{due:%F}'}}}]}\n"
    )

    assert [(one.rule, one.message) for one in found] == [
        ("partition-template-invalid", "'expect: new_data' counts new data in any partition.")
    ]
