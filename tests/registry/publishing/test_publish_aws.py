"""`dq publish` in AWS: Glue, S3 and SNS at once, through moto's server over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from fakes.glue import REGION, GlueShim

from dq.cli.main import run
from dq.registry.aws.sns import _client

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 2.1.0
domain: sales
servers:
  - {server: lake, type: s3, location: s3://lake/orders, format: parquet, environment: prod}
schema:
  - name: orders
    properties:
      - {name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer, physicalType: bigint}
"""
DAY = "day=2026-11-20"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:dq-sales"


@pytest.fixture
def heard(
    glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[dict[str, Any]]]:
    """A registered table with data of a day in S3; gives what a queue of the topic heard."""
    monkeypatch.chdir(tmp_path)
    # The shim is of Glue; S3 is moto's own.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{glue.backend}")
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_TOPIC", TOPIC.replace("sales", "{domain}"))
    monkeypatch.delenv("DQ_STORE_URL", raising=False)
    _client.cache_clear()
    Path("orders.odcs.yaml").write_text(CONTRACT)
    s3, sns, sqs = (boto3.client(name, region_name=REGION) for name in ("s3", "sns", "sqs"))
    s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="lake", Key=f"orders/{DAY}/part-0.parquet", Body=b"PAR1")
    sns.create_topic(Name="dq-sales")
    url = sqs.create_queue(QueueName="all")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = {"environment": ["prod"], "major_version": ["2"]}
    sns.subscribe(
        TopicArn=TOPIC,
        Protocol="sqs",
        Endpoint=queue,
        Attributes={"RawMessageDelivery": "true", "FilterPolicy": json.dumps(policy)},
    )
    assert run(["register", "orders.odcs.yaml", "--catalog", "glue", "--apply"]) == 0

    def read() -> list[dict[str, Any]]:
        found = []
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for one in messages:
                found.append(json.loads(one["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        return found

    return read


def publish(*options: str) -> int:
    return run(["publish", "orders.odcs.yaml", "--partition", DAY, "--catalog", "glue", *options])


def partitions() -> list[dict[str, Any]]:
    found = boto3.client("glue", region_name=REGION).get_partitions(DatabaseName="sales", TableName="orders")
    return list(found["Partitions"])


def marker() -> list[int]:
    found = boto3.client("s3", region_name=REGION).list_objects_v2(
        Bucket="lake", Prefix=f"orders/{DAY}/_SUCCESS"
    )
    return [one["Size"] for one in found.get("Contents", ())]


def test_a_delivery_is_in_glue_in_s3_and_heard_once(
    heard: Callable[[], list[dict[str, Any]]], glue: GlueShim, capfd: pytest.CaptureFixture[str]
) -> None:
    codes = [publish("--rows", "5")]
    with glue.counted() as writes:
        codes.append(publish("--rows", "5"))

    (found,) = partitions()
    assert codes == [0, 0]
    assert writes == []
    assert found["Values"] == ["2026-11-20"]
    assert found["StorageDescriptor"]["Location"] == f"s3://lake/orders/{DAY}/"
    assert marker() == [0]
    (told,) = heard()
    assert told["data"]["catalog"] == f"glue:123456789012:{REGION}"
    assert (told["data"]["location"], told["data"]["rows"]) == (f"s3://lake/orders/{DAY}", 5)
    assert "nothing to do, published before" in capfd.readouterr().out


def test_what_somebody_removed_or_moved_in_aws_is_put_back(
    heard: Callable[[], list[dict[str, Any]]], capfd: pytest.CaptureFixture[str]
) -> None:
    publish()
    client = boto3.client("glue", region_name=REGION)
    table = {"DatabaseName": "sales", "TableName": "orders"}
    (before,) = partitions()

    client.delete_partition(**table, PartitionValues=["2026-11-20"])
    boto3.client("s3", region_name=REGION).delete_object(Bucket="lake", Key=f"orders/{DAY}/_SUCCESS")
    capfd.readouterr()
    publish()
    first = capfd.readouterr().out
    elsewhere = {**before["StorageDescriptor"], "Location": "s3://lake/other/"}
    client.update_partition(
        **table,
        PartitionValueList=["2026-11-20"],
        PartitionInput={"Values": ["2026-11-20"], "StorageDescriptor": elsewhere},
    )
    publish()
    second = capfd.readouterr().out

    assert "fixed: the partition was not in the catalog." in first
    assert "fixed: _SUCCESS was not there." in first
    assert "fixed: the catalog had the partition at s3://lake/other." in second
    assert [one["StorageDescriptor"] for one in partitions()] == [before["StorageDescriptor"]]
    assert marker() == [0]
    assert len(heard()) == 1


def test_a_delivery_in_another_catalog_is_another_one(heard: Callable[[], list[dict[str, Any]]]) -> None:
    publish()
    run(["register", "orders.odcs.yaml", "--apply"])
    here = run(["publish", "orders.odcs.yaml", "--partition", DAY])

    told = heard()

    assert here == 0
    assert sorted(one["data"]["catalog"] for one in told) == [f"glue:123456789012:{REGION}", "local"]
    assert len({one["id"] for one in told}) == 2


def test_an_empty_delivery_needs_no_folder_in_a_bucket(heard: Callable[[], list[dict[str, Any]]]) -> None:
    missing = ["publish", "orders.odcs.yaml", "--partition", "day=2026-11-21", "--catalog", "glue"]

    codes = [run(missing), run([*missing, "--rows", "0"])]

    assert codes == [3, 0]
    assert [one["data"]["rows"] for one in heard()] == [0]


def test_no_secret_is_in_what_is_printed_when_aws_refuses(
    heard: Callable[[], list[dict[str, Any]]],
    glue: GlueShim,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nobody-sees-this")
    monkeypatch.setenv("DQ_TOPIC", TOPIC.replace("sales", "gone"))

    code = publish()

    said = "".join(capfd.readouterr())
    assert code == 4
    assert "AWS refused to publish to" in said
    assert "nobody-sees-this" not in said
