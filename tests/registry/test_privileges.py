"""What a duty may do in AWS against what dq does there: in its sources, and on the wire."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import parse_qs

import boto3
import pytest
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import ServiceModel
from fakes.glue import REGION, GlueShim

from dq.cli.main import run
from dq.registry.aws.sns import _client
from dq.registry.landing_zone import (
    CONSUMER,
    DUTIES,
    INSPECTOR,
    PLANNER,
    PUBLISHER,
    REGISTRAR,
    REPAIRER,
    WATCHER,
    Duty,
    actions_of,
)

ROOT = Path(__file__).parents[2]
LINK = ROOT / "registry" / "aws" / "lake_link.py"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:dq-sales"
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
domain: sales
servers:
  - {server: lake, type: s3, location: s3://lake/orders, format: parquet}
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
      - {property: delivery, vendor: dq, value: {timezone: UTC, grace: 30m, evidence: [marker]}}
"""


def called(service: str, files: Iterable[Path], client: str = "client") -> set[str]:
    """The operations of a service that sources call: by its client, or by the name of a paginator."""
    model = ServiceModel(Loader().load_service_model(service, "service-2"))
    names = {xform_name(one): one for one in model.operation_names}
    pattern = rf"\b{client}\.(?:get_paginator\([\"'])?([a-z_]+)"
    words = {word for file in files for word in re.findall(pattern, file.read_text())}
    return {f"{service}:{names[word]}" for word in words if word in names}


def allowed(service: str, duties: Iterable[Duty]) -> set[str]:
    return {action for one in duties for action in actions_of(one) if action.startswith(f"{service}:")}


@pytest.mark.parametrize(
    ("service", "module"),
    [("glue", "glue"), ("lakeformation", "lake_formation"), ("scheduler", "scheduler"), ("sns", "sns")],
)
def test_the_owners_duties_may_do_what_is_called_and_nothing_else(service: str, module: str) -> None:
    files = [LINK.with_name(f"{module}.py")]

    assert called(service, files) == allowed(
        service, [one for one in DUTIES if one not in (CONSUMER, INSPECTOR)]
    )


def test_the_consumer_may_do_what_the_link_calls_and_nothing_else() -> None:
    clients = {"ram": "ram", "glue": "glue", "lakeformation": "lake"}
    found = {action for service, client in clients.items() for action in called(service, [LINK], client)}

    assert found == actions_of(CONSUMER)


def test_the_inspector_may_do_what_the_check_of_a_stack_calls_and_nothing_else() -> None:
    text = LINK.with_name("stack_parts.py").read_text()
    calls = re.findall(r'part\.call\(\s*"([a-z]+)",\s*"([a-z_]+)"', text)
    operations = {
        service: {xform_name(name): name for name in _operations(service)}
        for service in {s for s, _ in calls}
    }

    assert {f"{service}:{operations[service][name]}" for service, name in calls} == actions_of(INSPECTOR)
    assert all(re.search(":(Get|List|Describe)", action) for action in actions_of(INSPECTOR))


def _operations(service: str) -> list[str]:
    return list(ServiceModel(Loader().load_service_model(service, "service-2")).operation_names)


def test_no_other_part_of_dq_opens_a_client_of_aws() -> None:
    rooms = ("alerts", "api", "cli", "contracts", "dataquality", "lake", "registry", "store", "validators")
    opened = [
        str(file.relative_to(ROOT))
        for room in rooms
        for file in (ROOT / room).rglob("*.py")
        if re.search(r"boto3\.(client|resource|Session)|\.client\(", file.read_text())
    ]

    # The operator runs in Airflow's environment, which has boto3 and not dq's requirements.
    own_environment = ["api/airflow/emr_serverless.py"]
    assert sorted(opened) == [*own_environment, "registry/aws/client.py", "registry/aws/sns.py"]


def test_the_planner_changes_nothing_and_the_page_has_every_action() -> None:
    page = (ROOT / "docs" / "reference" / "privileges.md").read_text()

    assert {action.split(":")[1][:3] for action in actions_of(PLANNER)} <= {"Get", "Lis"}
    assert actions_of(PLANNER) < actions_of(REGISTRAR)
    for duty in DUTIES:
        part = page.split(f"## {duty.name.capitalize()}\n", 1)[1].split("\n## ", 1)[0]
        found = re.search("```json not-run\n(.*?)```", part, re.DOTALL)
        assert found is not None
        told = {action for one in json.loads(found[1])["Statement"] for action in one["Action"]}
        assert told == actions_of(duty), duty.name


# Method and whether it is of a whole bucket -> the action that S3 asks for.
S3 = {
    ("GET", True): "s3:ListBucket",
    ("HEAD", False): "s3:GetObject",
    ("GET", False): "s3:GetObject",
    ("PUT", False): "s3:PutObject",
    ("POST", False): "s3:PutObject",
    ("DELETE", False): "s3:DeleteObject",
}


class Wire:
    """What a command calls of S3 and of the services behind the shim, as actions of IAM."""

    def __init__(self, glue: GlueShim, log: pytest.LogCaptureFixture) -> None:
        self.glue, self.log = glue, log

    def actions(self, *words: str) -> set[str]:
        self.log.clear()
        self.glue.calls.clear()
        self.glue.others.clear()
        # 1 is what a watcher says of a delivery that is not there.
        assert run(list(words)) in (0, 1)
        lines = [one.getMessage() for one in self.log.records if one.name == "werkzeug"]
        asked = [re.search(r"([A-Z]+) /lake(/[^? ]+)?[? ]", line) for line in lines]
        queries = [parse_qs(body.decode()) for path, body in self.glue.others if path == "/"]
        return {
            *(f"glue:{call.operation}" for call in self.glue.calls),
            *(S3[one[1], not one[2]] for one in asked if one is not None),
            *(f"sns:{query['Action'][0]}" for query in queries if "TopicArn" in query),
        }


@pytest.fixture
def wire(
    glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Wire:
    caplog.set_level(logging.INFO, "werkzeug")
    monkeypatch.chdir(tmp_path)
    # The shim is of Glue; S3 is moto's own.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{glue.backend}")
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake")
    monkeypatch.setenv("DQ_TOPIC", TOPIC)
    _client.cache_clear()
    Path("orders.odcs.yaml").write_text(CONTRACT)
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
    for day in (20, 21):
        s3.put_object(Bucket="lake", Key=f"orders/day=2026-11-{day}/part-0.parquet", Body=b"PAR1")
    boto3.client("sns", region_name=REGION).create_topic(Name="dq-sales")
    return Wire(glue, caplog)


def test_on_the_wire_each_duty_does_what_its_policy_allows(wire: Wire, glue: GlueShim) -> None:
    there = ("--catalog", "glue")
    publish = ("publish", "orders.odcs.yaml", "--partition", "day=2026-11-20", *there)

    planned = wire.actions("register", "orders.odcs.yaml", *there)
    applied = wire.actions("register", "orders.odcs.yaml", "--apply", *there)
    published = wire.actions(*publish) | wire.actions(*publish)
    client = boto3.client("glue", region_name=REGION)
    table, values = {"DatabaseName": "sales", "TableName": "orders"}, ["2026-11-20"]
    there_now = client.get_partition(**table, PartitionValues=values)["Partition"]["StorageDescriptor"]
    moved = {"Values": values, "StorageDescriptor": {**there_now, "Location": "s3://lake/other/"}}
    client.update_partition(**table, PartitionValueList=values, PartitionInput=moved)
    published |= wire.actions(*publish)
    repaired = wire.actions("repair", "orders.odcs.yaml", "--apply", *there)
    watched = wire.actions("watch", "orders.odcs.yaml", "--since", "2026-11-20T00:00:00Z")

    assert planned <= actions_of(PLANNER)
    assert applied <= actions_of(REGISTRAR)
    # This table has no indexes, and nothing is audited.
    assert published == actions_of(PUBLISHER) - {"glue:GetPartitions", "glue:GetPartitionIndexes"}
    # A single partition is read only if another process adds it meanwhile.
    assert repaired == actions_of(REPAIRER) - {"glue:GetPartitionIndexes", "glue:GetPartition"}
    assert watched <= actions_of(WATCHER)
    assert watched
