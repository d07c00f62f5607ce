"""Delivery promises are judged as the watcher would read them."""

from __future__ import annotations

import pytest

ENTRY = (
    "slaProperties:\n"
    "  - {{property: frequency, value: 1, unit: d, {entry}, customProperties: "
    "[{{property: delivery, vendor: dq, value: {{{delivery}}}}}]}}\n"
)
DAILY = 'element: orders, schedule: "0 6 * * *"'

# What the entry says, what the delivery says, and the rules that speak about it.
CASES = {
    "a sound promise": (DAILY, "grace: 45m, timezone: Europe/Berlin", []),
    "a delivery without a schedule": ("element: orders", "grace: 45m", ["cron-invalid"]),
    "a misspelt schedule is not absent": ('element: orders, schedul: "0 6 * * *"', "", ["unknown-key"]),
    "an unknown zone is said once": (DAILY, "timezone: CET, grace: 30h", ["unknown-timezone"]),
    "a grace of the wrong type is said once": (DAILY, "grace: 45", ["wrong-type"]),
    "months are no elapsed time": (DAILY, "grace: 1mo", ["duration-invalid"]),
    "a grace as long as the gap": (DAILY, "grace: 24h", ["grace-not-shorter-than-gap"]),
    "a grace as long as the night of 23 hours": (
        DAILY,
        "grace: 23h, timezone: Europe/Berlin",
        ["grace-not-shorter-than-gap"],
    ),
    "no objective of one's own is no fault": ('element: orders, schedule: "0 6 1 * *"', "grace: 1h", []),
    "an objective of every cycle is meant": (DAILY, "objective: 100%", []),
    "a window that would take a million years to count": (
        'element: orders, schedule: "* * * * *"',
        "objective: 99.9999%, window: 36500d",
        ["window-longer-than-history"],
    ),
    "one miss allowed in exactly twenty cycles": (DAILY, "objective: 95%, window: 20d", []),
    "longer than history": (DAILY, "objective: 99%, window: 730d", ["window-longer-than-history"]),
    "as long as history": (DAILY, "objective: 99%, window: 400d", []),
    "no miss allowed in nineteen": (DAILY, "objective: 95%, window: 19d", ["budget-below-one"]),
    "a day of the calendar is still today": (DAILY, "calendar: {valid_until: 2026-11-21}", []),
    "a calendar that ended yesterday": (
        DAILY,
        "calendar: {valid_until: 2026-11-20}",
        ["calendar-expired"],
    ),
    "a time that a clock change repeats": (
        'element: orders, schedule: "30 1 * * *"',
        "timezone: America/New_York",
        ["time-in-clock-change"],
    ),
    "an hourly schedule follows real time": (
        'element: orders, schedule: "30 * * * *"',
        "timezone: America/New_York",
        [],
    ),
    "a real-time schedule on whose nights croniter adds a due": (
        'element: orders, schedule: "0 */2 * * *"',
        "timezone: America/New_York",
        ["schedule-differs-in-croniter"],
    ),
    "a day of the month that must be a weekday too": (
        'element: orders, schedule: "0 6 1-7 * */7"',
        "grace: 45m",
        ["schedule-differs-in-croniter"],
    ),
    "a range of one value": (
        'element: orders, schedule: "0 6 * * 5-5"',
        "grace: 45m",
        ["schedule-differs-in-croniter"],
    ),
    "the partition of another column": (
        DAILY,
        'partition: {amount: "{due:%F}"}',
        ["partition-not-a-key"],
    ),
    "an unknown element is said once": (
        'element: order, schedule: "0 6 * * *"',
        "grace: 45m",
        ["sla-element-unknown"],
    ),
    "the element may be left out where there is one object": ('schedule: "0 6 * * *"', "grace: 45m", []),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "delivery", "expected"), CASES.values(), ids=CASES)
def test_a_promise_is_judged(lint_fragment, entry: str, delivery: str, expected: list[str]) -> None:
    found = lint_fragment(ENTRY.format(entry=entry, delivery=delivery))

    assert [one.rule for one in found] == expected


def test_a_delivery_of_one_of_two_objects_must_say_which(lint_fragment) -> None:
    objects = "schema: [{name: orders}, {name: returns}]\n"

    found = lint_fragment(objects + ENTRY.format(entry='schedule: "0 6 * * *"', delivery="grace: 45m"))

    assert [(one.rule, one.hint) for one in found] == [("sla-element-unknown", "Add 'element: orders'.")]


def test_a_schedule_without_delivery_terms_is_read_too(lint_fragment) -> None:
    found = lint_fragment(
        "slaProperties:\n"
        "  - {property: latency, value: 1, unit: d, scheduler: cron, schedule: '0 30 * * *'}\n"
        "  - {property: latency, value: 1, unit: d, scheduler: airflow, schedule: 'after orders'}\n"
        "schema:\n"
        "  - name: orders\n"
        "    quality: [{metric: rowCount, mustBeGreaterThan: 0, schedule: nightly}]\n"
    )

    assert [(one.rule, one.path) for one in found] == [
        ("cron-invalid", "slaProperties[0].schedule"),
        ("cron-invalid", "schema[0].quality[0].schedule"),
    ]


def test_the_reading_of_a_wrong_cron_says_what_was_meant(lint_fragment) -> None:
    (found,) = lint_fragment(ENTRY.format(entry='schedule: "0 30 * * *"', delivery="grace: 45m"))

    assert found.message == "hour 30 is out of range (0–23) in '0 30 * * *'."
    assert found.hint == "The first field is the minute. Did you mean '30 0 * * *'?"


def test_two_deliveries_of_one_object_need_ids_to_be_told_apart(lint_fragment) -> None:
    entry = ENTRY.format(entry=DAILY, delivery="grace: 45m").removeprefix("slaProperties:\n")
    named = entry.replace("{property", "{id: daily, property")

    without = lint_fragment("slaProperties:\n" + entry + entry)
    alike = lint_fragment("slaProperties:\n" + named + named)
    apart = lint_fragment("slaProperties:\n" + named + entry)

    assert [(one.rule, one.path) for one in without] == [("duplicate-id", "slaProperties[1].property")]
    assert [(one.rule, one.path) for one in alike] == [("duplicate-id", "slaProperties[1].id")]
    assert apart == []


def test_a_delivery_of_more_partitions_than_anyone_can_look_for_is_refused(lint_fragment) -> None:
    def of(count: int) -> str:
        values = ", ".join(f'"{number}"' for number in range(count))
        return ENTRY.format(entry=DAILY, delivery=f"partition: {{day: [{values}]}}")

    assert "partition-template-invalid" not in [one.rule for one in lint_fragment(of(1_000))]
    (found,) = (one for one in lint_fragment(of(1_001)) if one.rule == "partition-template-invalid")
    assert found.message == "each delivery would have 1,001 partitions, more than 1,000."
