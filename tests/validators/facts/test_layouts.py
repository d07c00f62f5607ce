"""A delivery that the watcher could not find in its folders does not pass the gate (T7)."""

from __future__ import annotations

import pytest

RULE = "partition-layout-unsupported"
DOCUMENT = """\
servers: [{server}]
schema:
  - name: orders
    properties:
      - {{name: region, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
      - {{name: day, logicalType: date, partitioned: true, partitionKeyPosition: 2}}
slaProperties:
  - property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties: [{{property: delivery, vendor: dq, value: {{{delivery}}}}}]
"""
DAY = "partition: {region: [eu, us], day: '{due - 1d:%F}'}"


def s3(location: str, format: str = "parquet") -> str:
    return f"{{server: lake, type: s3, location: '{location}', format: {format}}}"


def faults(lint_fragment, server: str, delivery: str = DAY) -> list[str]:
    found = lint_fragment(DOCUMENT.format(server=server, delivery=delivery))
    return [finding.path for finding in found if finding.rule == RULE]


@pytest.mark.parametrize(
    "location",
    [
        "s3://sales/orders/{yyyy}/{MM}/{dd}",
        "s3://sales/orders/{due:%Y/%m/%d}",
        "s3://sales/orders/{day}",
        "s3://sales/orders/%Y/%m/%d",
        "s3://sales/orders/yyyy/MM/dd",
        "s3://sales/orders/dt=yyyyMMdd",
        "s3://sales/${STAGE:-dev}/{object}/YYYY-MM-DD",
        "s3://sales/orders/*/*/*.parquet",
        "s3://sales/orders/region={region}",
        "s3://sales/orders/region=eu",
        "s3://sales/{eu,us}/orders",
    ],
)
def test_a_location_with_another_layout_is_an_error_at_its_line(lint_fragment, location):
    assert faults(lint_fragment, s3(location)) == ["servers[0].location"]


@pytest.mark.parametrize("type_", ["local", "custom"])
def test_a_path_with_another_layout_is_an_error_at_its_line(lint_fragment, type_):
    server = f"{{server: lake, type: {type_}, path: 'lake/orders/{{hour:%H}}', format: csv}}"

    assert faults(lint_fragment, server) == ["servers[0].path"]


@pytest.mark.parametrize(
    "location",
    [
        "s3://sales/orders",
        "s3://sales/{model}",
        "s3://sales/${STAGE:-dev}/{object}",
        "s3://${BUCKET}/my%20orders",
        "s3://sales/tenant=acme/orders",
        "s3://sales/2026/orders",
        "s3://sales/bayyyyern/commdd",
    ],
)
def test_a_folder_of_the_table_passes(lint_fragment, location):
    assert faults(lint_fragment, s3(location)) == []


@pytest.mark.parametrize(
    "delivery",
    [
        "partition: {region: eu, day: '{due:%Y/%m/%d}'}",
        "partition: {region: eu, day: '{due:%Y}/{due:%m}'}",
        "partition: {region: eu, day: ['{due:%F}', 'day={due:%F}']}",
        "partition: {day: '{due:%F}'}",
    ],
)
def test_a_partition_that_is_no_folder_of_hive_is_an_error_at_its_line(lint_fragment, delivery):
    (path,) = faults(lint_fragment, s3("s3://sales/orders"), delivery)

    assert path == "slaProperties[0].customProperties[0].value.partition"


@pytest.mark.parametrize(
    "delivery",
    [
        DAY,
        "partition: {day: '{due:%Y%m%d}', region: 'emea/north'}",
        "partition: {region: eu}",
        "partition: {day: '{due:%F}'}, evidence: [receipt]",
        "evidence: [receipt]",
    ],
)
def test_a_partition_in_folders_of_hive_passes(lint_fragment, delivery):
    assert faults(lint_fragment, s3("s3://sales/orders"), delivery) == []


def test_a_table_with_commits_needs_no_folders(lint_fragment):
    server = s3("s3://sales/orders", "delta")

    assert faults(lint_fragment, server, "partition: {day: '{due:%F}'}") == []
    assert faults(lint_fragment, server, "partition: {day: '{due:%F}'}, evidence: [file]") != []


def test_a_location_that_no_promise_reads_passes(lint_fragment):
    found = lint_fragment(
        "servers: [{server: s, type: s3, location: 's3://sales/{model}/*.json', format: json}]\n"
    )

    assert RULE not in [finding.rule for finding in found]


def test_one_location_is_reported_once_for_several_promises(lint_fragment):
    entry = DOCUMENT.format(server=s3("s3://sales/{date}"), delivery=DAY)
    second = entry[entry.index("  - property: frequency") :].replace("frequency", "latency")

    found = [finding.path for finding in lint_fragment(entry + second) if finding.rule == RULE]

    assert found == ["servers[0].location"]
