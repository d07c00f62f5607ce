"""Partitions in folders that a template names, in AWS Glue and S3: other readers get their locations."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import views
from fakes.command import Place
from fakes.glue import Answer, Call, GlueShim

from dq.contracts import extension
from dq.contracts.yaml.parse import read


@pytest.mark.parametrize("name", views.LAYOUTS)
def test_another_reader_of_glue_finds_each_partition(
    glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    views.buckets(glue, monkeypatch)
    template, folder = views.LAYOUTS[name]
    place = Place(tmp_path)
    place.put("registry/dq-policy.yaml", "{}\n")
    delivery = "evidence: [marker, file]"
    text = views.contract('"a b+c", d', template=template, delivery=delivery)
    file = place.put("registry/views.odcs.yaml", text)
    s3 = boto3.client("s3", region_name="us-east-1")
    data = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), data)

    def put(bucket: str, tenant: str, hour: str) -> None:
        key = f"{'views' if bucket == 'lake' else 'run'}/{folder.format(tenant, hour)}/part 0.parquet"
        s3.put_object(Bucket=bucket, Key=key, Body=data.getvalue())

    put("lake", "a b+c", "03")
    put("lake", "d", "03")
    place.dq("watch", str(file), "--as-of", "2026-11-20T04:20:00Z")
    registered = place.dq("register", "registry", "--catalog", "glue", "--apply")
    repaired = place.dq("repair", str(file), "--catalog", "glue", "--apply")
    put("lake", "d", "04")
    hour = ("--partition", "hour=2026-11-20 04:00:00")
    published = place.dq(
        "publish", str(file), "--catalog", "glue", "--partition", "tenant=d", *hour, "--rows", "2"
    )
    again = place.dq("repair", str(file), "--catalog", "glue")
    tables = place.dq("tables", "registry", "--format", "json")
    watched = place.dq("watch", str(file), "--as-of", "2026-11-20T06:00:00Z")
    imported = place.dq("import", "glue", "web.views", "--output", str(tmp_path / "imported.odcs.yaml"))

    assert registered.code == 0, registered.all
    assert repaired.code == 0, repaired.all
    assert published.code == 0, published.all
    assert "0 missing, 0 gone, 0 elsewhere" in again.out, again.all
    partitions = boto3.client("glue").get_partitions(DatabaseName="web", TableName="views")["Partitions"]
    assert {
        tuple(partition["Values"]): partition["StorageDescriptor"]["Location"] for partition in partitions
    } == {
        (tenant, f"2026-11-20 {hour}:00:00"): f"s3://lake/views/{folder.format(tenant, hour)}/"
        for tenant, hour in [("a b+c", "03"), ("d", "03"), ("d", "04")]
    }
    (table,) = tables.json
    assert not table["problem"], table["problem"]
    assert (table["files"], table["rows"]) == (3, 6), table
    assert "s3://lake/views/" + folder.format("a b+c", "04") in watched.all, watched.all
    assert imported.code == 0, imported.all
    contract = read(tmp_path / "imported.odcs.yaml")
    assert [extension.layout(server)[0].template for server in contract.servers] == [template]
    assert [key.name for key in contract.objects[0].partition_keys()] == ["tenant", "hour"]


def test_a_repair_names_and_counts_what_glue_refuses(
    glue: GlueShim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views.buckets(glue, monkeypatch)
    place = Place(tmp_path)
    file = str(place.put("registry/views.odcs.yaml", views.contract("d")))
    hours = ("03", "04", "05")
    s3 = boto3.client("s3", region_name="us-east-1")
    for hour in hours:
        key = f"views/{views.LAYOUTS['hive'][1].format('d', hour)}/part-0.parquet"
        s3.put_object(Bucket="lake", Key=key, Body=b"PAR1")
    assert place.dq("register", "registry", "--catalog", "glue", "--apply").code == 0

    def refuse_the_second(call: Call, forward: Callable[[], Answer]) -> Answer:
        refused = call.body["PartitionInputList"].pop(1)
        detail = {"ErrorCode": "InternalServiceException", "ErrorMessage": "sorry"}
        error = {"PartitionValues": refused["Values"], "ErrorDetail": detail}
        answer = forward()
        return Answer(answer.status, json.dumps({"Errors": [error]}).encode())

    glue.faults["BatchCreatePartition"] = [refuse_the_second]
    repaired = place.dq("repair", file, "--catalog", "glue", "--apply")
    glue.faults["BatchCreatePartition"] = [lambda call, forward: None] * 10
    silent = place.dq("repair", file, "--catalog", "glue", "--apply")
    glue.faults.clear()
    again = place.dq("repair", file, "--catalog", "glue", "--apply")

    assert repaired.code == 3
    assert "web.views: 2 of 3 added, 0 gone, 0 elsewhere\n" in repaired.out
    assert (
        "tenant=d/hour=2026-11-20 04%3A00%3A00: Glue refused partitions of web.views: "
        "InternalServiceException: sorry"
    ) in repaired.out
    # It is not known what Glue did before it hung up.
    assert silent.code == 3
    assert "web.views: 1 missing, 0 gone, 0 elsewhere\n" in silent.out
    assert (again.code, again.out) == (
        0,
        "web.views: 1 added, 0 gone, 0 elsewhere\n  + tenant=d/hour=2026-11-20 04%3A00%3A00\n",
    )
