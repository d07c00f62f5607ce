"""A layout that does not fit the table or its deliveries does not pass the gate."""

from __future__ import annotations

import pytest

RULE = "layout-invalid"
DOCUMENT = """\
servers:
  - server: lake
    type: s3
    location: s3://logs/views
    format: {format}
    customProperties: [{{property: layout, vendor: dq, value: {{path: "{layout}"}}}}]
schema:
  - name: views
    properties:
      - {{name: tenant, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
      - {{name: hour, logicalType: timestamp, partitioned: true, partitionKeyPosition: 2}}
      - {{name: id, logicalType: string}}
slaProperties:
  - property: frequency
    value: 1
    unit: h
    element: views
    schedule: "15 * * * *"
    customProperties: [{{property: delivery, vendor: dq, value: {{{delivery}}}}}]
"""
LAYOUT = "{tenant}/{hour:%Y/%m/%d/%H}"
HOUR = "partition: {tenant: [a, b], hour: '{due - 1h:%Y-%m-%d %H:00:00}'}"


def findings_of(lint_fragment, layout=LAYOUT, delivery=HOUR, format="parquet"):
    findings = lint_fragment(DOCUMENT.format(layout=layout, delivery=delivery, format=format))
    return [(finding.rule, finding.message) for finding in findings]


def test_hourly_folders_of_tenants_pass(lint_fragment):
    assert findings_of(lint_fragment) == []


@pytest.mark.parametrize(
    "delivery",
    [
        "partition: {tenant: [a, b], hour: '{due - 1h:%Y-%m-%dT%H}'}",
        "partition: {tenant: a}, evidence: [receipt]",
    ],
)
def test_a_partition_that_has_a_folder_passes(lint_fragment, delivery):
    assert findings_of(lint_fragment, delivery=delivery) == []


@pytest.mark.parametrize(
    ("layout", "delivery", "message"),
    [
        ("{hour:%Y/%m/%d/%H}", HOUR, "has the columns hour, but views is partitioned by tenant, hour"),
        ("{tenant}/{day:%F}", HOUR, "has the columns tenant, day, but views is partitioned by tenant, hour"),
        (
            LAYOUT,
            "partition: {tenant: a, hour: '{due:%Y-%m-%d %H:%M:00}'}",
            "'2026-01-01 00:15:00' shares its folder",
        ),
        (
            LAYOUT,
            "partition: {tenant: a, hour: '{due:%Y/%m/%d/%H}'}",
            "'2026/01/01/00' is not a time of 'hour'",
        ),
        (
            LAYOUT,
            "partition: {hour: '{due:%Y-%m-%d %H:00:00}'}",
            "needs a value for each column above 'hour'",
        ),
        (LAYOUT, "objective: 99%", "the delivery has no partition"),
    ],
)
def test_a_layout_that_does_not_fit_is_an_error(lint_fragment, layout, delivery, message):
    (finding,) = findings_of(lint_fragment, layout, delivery)

    assert finding[0] == RULE
    assert message in finding[1]


def test_a_layout_on_a_table_with_a_log_has_no_effect(lint_fragment):
    (finding,) = findings_of(lint_fragment, format="delta")

    assert finding == (RULE, f"the layout {LAYOUT!r} has no effect on views, which has a log of its files.")


@pytest.mark.parametrize(
    "layout", ["{hour:%m/%d/%H}", "{tenant}{hour", "{tenant}{user}/{hour:%F/%H}", "../{hour:%F/%H}"]
)
def test_a_template_that_cannot_be_read_back_is_an_error_at_its_line(lint_fragment, layout):
    findings = lint_fragment(DOCUMENT.format(layout=layout, delivery=HOUR, format="parquet"))

    assert [finding.path for finding in findings if finding.severity.name == "ERROR"] == [
        "servers[0].customProperties[0].value.path"
    ]
