"""moto's S3 over HTTP with the requests that it received, and a registry whose contract is due when asked."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3
from fakes import cloudformation
from fakes.lambda_runtime import environment
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
_REQUEST = re.compile(r'"(?P<method>[A-Z]+) (?P<path>/\S*) HTTP')
_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers: [{{server: lake, type: s3, location: s3://lake/sales/{name}, format: parquet}}]
support: [{{channel: "#{name}", tool: slack, scope: notifications}}]
schema:
  - name: {name}
    properties:
      - {{name: day, logicalType: date, physicalType: date, partitioned: true, partitionKeyPosition: 1}}
      - {{name: id, logicalType: integer, physicalType: bigint}}
slaProperties:
  - id: daily
    property: frequency
    value: 1
    unit: d
    element: {name}
    schedule: "{due:%-S %-M %-H} * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value: {{dialect: seconds_first, grace: 1m, partition: {{day: "{{due:%F}}"}}, objective: 90%{more}}}
"""


class Lake:
    """A bucket `lake` in moto, and the requests to it as (method, path with query)."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadedMotoServer(port=0, verbose=False)
        self._log = _Requests(self.requests)

    def __enter__(self) -> Self:
        logger = logging.getLogger("werkzeug")
        logger.addHandler(self._log)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        self._server.start()
        # All of moto's servers in a process have one account.
        cloudformation.reset(self.variables)
        self.s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
        self.requests.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        logger = logging.getLogger("werkzeug")
        logger.removeHandler(self._log)
        logger.propagate = True

    @property
    def variables(self) -> dict[str, str]:
        host, port = self._server.get_host_and_port()
        return {
            "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "DQ_LAKE_ROOTS": "s3://lake",
        }

    @property
    def s3(self) -> Any:
        return boto3.client(
            "s3",
            region_name=REGION,
            endpoint_url=self.variables["AWS_ENDPOINT_URL_S3"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    @property
    def lists(self) -> list[str]:
        return [path for method, path in self.requests if method == "GET" and "list-type" in path]


class _Requests(logging.Handler):
    def __init__(self, requests: list[tuple[str, str]]) -> None:
        super().__init__()
        self._requests = requests

    def emit(self, record: logging.LogRecord) -> None:
        match = _REQUEST.search(re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage()))
        if match:
            self._requests.append((match["method"], match["path"]))


def write_contract(folder: Path, due: datetime, name: str = "orders", more: str = "") -> None:
    """A contract due each day at the time of `due` in UTC, with a grace of a minute."""
    (folder / "registry").mkdir(exist_ok=True)
    (folder / "registry" / "dq-policy.yaml").write_text("registry: air\n")
    text = _CONTRACT.format(name=name, due=due, more=f", {more}" if more else "")
    (folder / "registry" / f"{name}.odcs.yaml").write_text(text)


def begin(folder: Path, variables: dict[str, str], before: timedelta = timedelta(hours=1)) -> None:
    """A first tick some time ago, since nothing is expected for the time before."""
    at = datetime.now(UTC) - before
    command = [
        sys.executable,
        "-m",
        "dq",
        "watch",
        "registry",
        "--as-of",
        at.isoformat(),
        "--channel",
        "console",
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=120
    )
    assert done.returncode in (0, 1), done.stderr


def payload(name: str = "orders", **changes: str) -> dict[str, object]:
    """What a schedule of `dq register` sends."""
    return {
        "contract": name,
        "version": "1.0.0",
        "object": name,
        "slo": "daily",
        "scheduled_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "grace_seconds": 60,
        "registry": "air",
        **changes,
    }


def object_created(key: str, at: datetime, size: int = 10, bucket: str = "lake") -> dict[str, object]:
    """The event of EventBridge."""
    return {
        "version": "0",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "123456789012",
        "time": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "region": REGION,
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": bucket},
            "object": {
                "key": key,
                "size": size,
                "etag": "b1946ac92492d2347c6235b4d2611184",
                "sequencer": "0",
            },
            "request-id": "N4N7GDK58NMKJ12R",
            "requester": "123456789012",
            "reason": "PutObject",
        },
    }


def sqs(bodies: list[dict[str, object]]) -> dict[str, object]:
    """A batch of a queue."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": "AQEB",
                "body": json.dumps(body),
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{REGION}:123456789012:dq-object-events",
                "awsRegion": REGION,
            }
            for number, body in enumerate(bodies)
        ]
    }
