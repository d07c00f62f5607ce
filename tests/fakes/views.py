"""The table of views, partitioned by tenant and hour: its contract, and its layouts in S3."""

from __future__ import annotations

import boto3
import pytest
from fakes.glue import GlueShim

LAYOUTS = {
    "hive": ("", "tenant={}/hour=2026-11-20 {}%3A00%3A00"),
    "template": ("{tenant}/{hour:%Y/%m/%d/%H}", "{}/2026/11/20/{}"),
    "mixed": ("tenant={tenant}/{hour:%Y/%m/%d/%H}", "tenant={}/2026/11/20/{}"),
}
"""Layout -> its template, and the folder of a tenant and hour."""

LAKE = "{server: lake, type: s3, location: s3://lake/views, format: parquet}"
COLUMNS = ("{name: id, logicalType: integer, physicalType: bigint, required: true}",)

_CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: views
version: 1.0.0
status: active
domain: web
servers:
  - @SERVER
schema:
  - name: views
    quality: [@QUALITY]
    properties:
      - {name: tenant, logicalType: string, partitioned: true, partitionKeyPosition: 1}
      - {name: hour, logicalType: timestamp, partitioned: true, partitionKeyPosition: 2}
      - @COLUMNS
slaProperties:
  - id: hourly
    property: frequency
    value: 1
    unit: h
    element: views
    schedule: "15 * * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          grace: 30m
          @DELIVERY
          partition: {tenant: [@TENANTS], hour: "{due - 1h:%Y-%m-%d %H:00:00}"}
"""


def contract(
    tenants: str,
    *,
    server: str = LAKE,
    template: str = "",
    quality: tuple[str, ...] = (),
    columns: tuple[str, ...] = COLUMNS,
    delivery: str = "objective: 90%",
) -> str:
    """The contract; each argument is text of YAML, in flow style."""
    if template:
        layout = f'{{property: layout, vendor: dq, value: {{path: "{template}"}}}}'
        server = f"{server.removesuffix('}')}, customProperties: [{layout}]}}"
    text = _CONTRACT
    for name, value in {
        "@SERVER": server,
        "@QUALITY": ", ".join(quality),
        "@COLUMNS": "\n      - ".join(columns),
        "@DELIVERY": delivery,
        "@TENANTS": tenants,
    }.items():
        text = text.replace(name, value)
    return text


def buckets(glue: GlueShim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the buckets of the lake and of staged deliveries, beside the catalog."""
    # The shim has no HEAD, moto behind it has.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{glue.backend}")
    monkeypatch.setenv("DQ_LAKE_ROOTS", "s3://lake,s3://staging")
    s3 = boto3.client("s3", region_name="us-east-1")
    for bucket in ("lake", "staging"):
        s3.create_bucket(Bucket=bucket)
