"""What the handler understands of Lambda's events, and which partitions object events are about."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dq.aws.events import Promise, Tick, read_event
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse
from dq.operations.object_events import ObjectEvent, event_tables, storage_events
from dq.operations.runtime.context import runtime_context

AT = datetime(2026, 11, 21, 5, 10, 23, tzinfo=UTC)
SCHEDULE = {
    "contract": "orders",
    "version": "2.3.0",
    "object": "orders",
    "slo": "daily",
    "scheduled_at": "2026-11-21T07:00:00Z",
    "grace_seconds": 3600,
    "registry": "air",
}
# As "Event message structure" of Amazon S3's user guide shows it.
NOTIFICATION = {
    "eventVersion": "2.1",
    "eventSource": "aws:s3",
    "awsRegion": "eu-central-1",
    "eventTime": "2026-11-21T05:10:23.000Z",
    "eventName": "ObjectCreated:CompleteMultipartUpload",
    "userIdentity": {"principalId": "AWS:AROAEXAMPLE:job"},
    "requestParameters": {"sourceIPAddress": "10.0.0.1"},
    "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMyUVURIY8"},
    "s3": {
        "s3SchemaVersion": "1.0",
        "configurationId": "dq",
        "bucket": {
            "name": "lake",
            "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
            "arn": "arn:aws:s3:::lake",
        },
        "object": {
            "key": "sales/orders/day%3D2026-11-20/name+with%2Bplus",
            "size": 1024,
            "eTag": "d41d8cd98f00b204e9800998ecf8427e",
            "sequencer": "0055AED6DCD90281E5",
        },
    },
}
# As "Amazon S3 event notification types" for EventBridge shows it.
EVENTBRIDGE = {
    "version": "0",
    "id": "17793124-05d4-b198-2fde-7ededc63b103",
    "detail-type": "Object Created",
    "source": "aws.s3",
    "account": "123456789012",
    "time": "2026-11-21T05:10:23Z",
    "region": "eu-central-1",
    "resources": ["arn:aws:s3:::lake"],
    "detail": {
        "version": "0",
        "bucket": {"name": "lake"},
        "object": {
            "key": "sales/orders/day=2026-11-20/_SUCCESS",
            "size": 0,
            "etag": "b1946ac92492d2347c6235b4d2611184",
            "sequencer": "00617F08299329D189",
        },
        "request-id": "N4N7GDK58NMKJ12R",
        "requester": "123456789012",
        "source-ip-address": "10.0.0.1",
        "reason": "PutObject",
    },
}
CREATED = ObjectEvent("lake", "sales/orders/day=2026-11-20/name with+plus", AT, 1024)
MARKER = ObjectEvent("lake", "sales/orders/day=2026-11-20/_SUCCESS", AT, 0)


def sqs(*bodies: object) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "eventSource": "aws:sqs",
                "body": body if isinstance(body, str) else json.dumps(body),
            }
            for number, body in enumerate(bodies)
        ]
    }


def sns(message: object) -> dict[str, Any]:
    return {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": json.dumps(message)}}]}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"tick": True}, [Tick()]),
        (SCHEDULE, [Promise("orders@2", "orders", "daily")]),
        ({**SCHEDULE, "version": "1.0.0", "due": "x"}, [Promise("orders", "orders", "daily")]),
        (
            {"source": "dq", "detail-type": "Delivery due", "detail": SCHEDULE},
            [Promise("orders@2", "orders", "daily")],
        ),
        ({"Records": [NOTIFICATION, NOTIFICATION]}, [CREATED, CREATED]),
        (EVENTBRIDGE, [MARKER]),
        (sqs(EVENTBRIDGE, {"Records": [NOTIFICATION]}), [MARKER, CREATED]),
        (sns({"Records": [NOTIFICATION]}), [CREATED]),
        (sqs({"Type": "Notification", "Message": json.dumps(EVENTBRIDGE)}), [MARKER]),
        (sqs(SCHEDULE), [Promise("orders@2", "orders", "daily")]),
        (
            {"Records": [{**NOTIFICATION, "eventName": "ObjectRemoved:DeleteMarkerCreated"}]},
            [ObjectEvent("lake", CREATED.key, AT, 1024, is_removal=True)],
        ),
        (
            {**EVENTBRIDGE, "detail-type": "Object Deleted"},
            [ObjectEvent("lake", MARKER.key, AT, 0, is_removal=True)],
        ),
        # What says nothing about an object's presence.
        ({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake"}, []),
        ({"Records": [{**NOTIFICATION, "eventName": "ObjectTagging:Put"}]}, []),
        ({**EVENTBRIDGE, "detail-type": "Object Tags Added"}, []),
    ],
)  # fmt: skip
def test_each_event_of_lambda_is_understood(event: object, expected: list[object]) -> None:
    assert [request for message in read_event(event) for request in message.requests] == expected


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({}, "unknown event (empty)"),
        ([], "unknown event (list)"),
        ("tick", "unknown event (str)"),
        ({"tick": 1}, "unknown event (tick)"),
        ({"contract": "orders", "slo": "daily"}, "unknown event (contract, slo)"),
        ({"Records": [{"eventSource": "aws:kinesis"}]}, "unknown event (eventSource)"),
        ({"Records": [{**NOTIFICATION, "s3": {}}]}, "the object event has no s3.bucket.name"),
        ({**EVENTBRIDGE, "time": "yesterday"}, "invalid time 'yesterday'"),
        (sns("x"), "unknown event (str)"),
    ],
)
def test_an_unknown_event_is_a_clear_error(event: object, text: str) -> None:
    with pytest.raises(UsageError) as error:
        read_event(event)
    assert text in str(error.value)
    assert error.value.hint


def test_a_message_that_is_not_understood_does_not_stop_the_others() -> None:
    messages = read_event(sqs("not JSON", EVENTBRIDGE, {"a": 1}))

    assert [(message.id, message.error is not None) for message in messages] == [
        ("m0", True),
        ("m1", False),
        ("m2", True),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda node: st.lists(node) | st.dictionaries(
        st.sampled_from(["Records", "eventSource", "body", "Sns", "Message", "detail", "s3", "source"]), node
    ),
    max_leaves=12,
)  # fmt: skip


@given(event=JSON)
def test_whatever_arrives_is_read_or_refused(event: object) -> None:
    try:
        read_event(event)
    except UsageError:
        return


# Partitions of object events.

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
servers: [{server: lake, type: s3, location: s3a://lake/sales/orders/, format: parquet__LAYOUT__}]
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: orders
    schedule: "0 6 * * *"
    customProperties:
      - {property: delivery, vendor: dq, value: {grace: 1h, partition: {day: "{due - 1d:%Y-%m-%d}"}__MORE__}}
"""
DAY = "day=2026-11-20"


def stored(
    key: str, more: str = "", layout: str = "", bucket: str = "lake", size: int | None = 10
) -> list[tuple[str, bool]]:
    """The partition, and whether it is the marker, for each table that the object belongs to."""
    text = CONTRACT.replace("__MORE__", more).replace("__LAYOUT__", layout)
    contract = parse(text.encode(), "orders.odcs.yaml").contract
    assert contract is not None
    tables = event_tables(runtime_context(working_folder=Path("/")), [contract])
    found = storage_events(tables, ObjectEvent(bucket, key, AT, size))
    return [(event.partition, event.is_marker) for event in found]


@pytest.fixture(autouse=True)
def _roots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (f"sales/orders/{DAY}/part-0.parquet", [(DAY, False)]),
        (f"sales/orders/{DAY}/_SUCCESS", [(DAY, True)]),
        # Not in the partition's own folder.
        (f"sales/orders/{DAY}/_temporary/0/task_1/part-0.parquet", []),
        (f"sales/orders/_temporary/0/{DAY}/part-0.parquet", []),
        (f"sales/orders/.spark-staging-1/{DAY}/part-0.parquet", []),
        (f"sales/orders/{DAY}/hour=3/part-0.parquet", []),
        (f"sales/orders/{DAY}/sub/_SUCCESS", []),
        # Neither data nor the marker.
        (f"sales/orders/{DAY}/.part-0.parquet.crc", []),
        (f"sales/orders/{DAY}/_committed_123", []),
        (f"sales/orders/{DAY}/part-0.parquet._COPYING_", []),
        (f"sales/orders/{DAY}/", []),
        ("sales/orders/_SUCCESS", []),
        ("sales/orders/part-0.parquet", []),
        # Another table, whose name begins alike, and other columns.
        (f"sales/orders_copy/{DAY}/_SUCCESS", []),
        ("sales/orders/month=2026-11/_SUCCESS", []),
        (f"{DAY}/_SUCCESS", []),
        # No database stores it.
        ("sales/orders/day=%00/_SUCCESS", []),
        ("", []),
        ("/", []),
    ],
)
def test_only_marker_and_data_of_a_partition_are_evidence(key: str, expected: list[tuple[str, bool]]) -> None:
    assert stored(key) == expected


def test_another_bucket_an_empty_file_and_a_contract_without_events_give_nothing() -> None:
    key = f"sales/orders/{DAY}/part-0.parquet"

    assert stored(key, bucket="other") == []
    assert stored(key, size=0) == []
    assert stored(f"sales/orders/{DAY}/_SUCCESS", size=0) == [(DAY, True)]
    assert stored(key, more=", evidence: [receipt, marker, file]") == []


def test_a_layout_gives_the_partition_of_a_folder() -> None:
    layout = ', customProperties: [{property: layout, vendor: dq, value: {path: "{day:%Y/%m/%d}"}}]'

    assert stored("sales/orders/2026/11/20/part-0.gz", layout=layout) == [(DAY, False)]
    assert stored("sales/orders/2026/11/part-0.gz", layout=layout) == []
    assert stored("sales/orders/2026/13/45/part-0.gz", layout=layout) == []


def test_a_location_that_is_not_allowed_has_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake/other")

    assert stored(f"sales/orders/{DAY}/_SUCCESS") == []
