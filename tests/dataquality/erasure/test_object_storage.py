"""Keys in a bucket: names that need escaping, hidden objects, and an object that cannot be read."""

from __future__ import annotations

import io
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.erasure import KEY, OTHER, Place, hit_files
from moto.server import ThreadedMotoServer

from dq.operations.erasure_certificate import prove_erasure, verify_erasure


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "DQ_LAKE_ROOTS": "s3://lake",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    # The buckets of other tests are in this process.
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/moto-api/reset", method="POST"))
    client = boto3.client("s3")
    client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    yield client
    server.stop()


def _place(folder: Path) -> Place:
    place = Place(folder, "parquet")
    contract = folder / "registry/people.odcs.yaml"
    server = "servers: [{server: lake, type: s3, location: s3://lake/people, format: parquet}]"
    lines = contract.read_text().splitlines()
    contract.write_text("\n".join(server if line.startswith("servers:") else line for line in lines))
    return place


def _put(bucket: Any, name: str, email: str) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"email": [email]}), file)
    bucket.put_object(Bucket="lake", Key=name, Body=file.getvalue())


def test_objects_of_a_bucket_are_searched(bucket, tmp_path: Path) -> None:
    place = _place(tmp_path)
    names = {
        "people/day=2026-05-01/part-0.parquet": OTHER, "people/day=2026-05-01/a b?c#d%20e+f.parquet": KEY,
        "people/_hidden/.part": KEY, "people_other/part-0.parquet": KEY,
    }  # fmt: skip
    for name, email in names.items():
        _put(bucket, name, email)
    bucket.put_object(Bucket="lake", Key="people/broken", Body=b"PAR1")

    outcome = place.find()

    assert hit_files(outcome) == {
        "s3://lake/people/day=2026-05-01/a b?c#d%20e+f.parquet": 1, "s3://lake/people/_hidden/.part": 1,
    }  # fmt: skip
    assert [gap.what for gap in outcome.search.gaps] == ["s3://lake/people/broken"]


def test_an_erasure_in_a_bucket_is_proven_and_verified_until_an_object_changes(
    bucket, tmp_path: Path
) -> None:
    _place(tmp_path)
    name = "people/day=2026-05-01/part-0.parquet"
    arguments = {"keys": "keys.txt", "identity": "customer.email", "folder": tmp_path}

    for _ in range(10):  # on a busy machine the second may end before the search begins
        time.sleep(1 - time.time() % 1)
        _put(bucket, name, OTHER)
        _put(bucket, "people/_old/part-0.parquet", KEY)
        fresh = prove_erasure("registry", **arguments)
        if fresh.certificate["gaps"]:
            break
    time.sleep(1.1)  # objects have times in seconds
    before = prove_erasure("registry", **arguments)
    bucket.delete_object(Bucket="lake", Key="people/_old/part-0.parquet")
    after = prove_erasure("registry", **arguments)

    assert {gap["reason"].partition(",")[0] for gap in fresh.certificate["gaps"]} == {
        "it was written in the second in which the search began"
    }
    assert (before.verdict, after.verdict) == ("found", "proven"), after.certificate["gaps"]
    (tmp_path / "proof.json").write_text(json.dumps(after.as_dict()))
    assert _problems(tmp_path) == []
    _put(bucket, "people/day=2026-05-01/_part-1.parquet", OTHER)
    assert ["is in the lake, and not in the certificate" in text for text in _problems(tmp_path)] == [True]
    bucket.delete_object(Bucket="lake", Key="people/day=2026-05-01/_part-1.parquet")
    assert _problems(tmp_path) == []
    _put(bucket, name, KEY)
    assert ["was changed after the search" in text for text in _problems(tmp_path)] == [True]
    bucket.delete_object(Bucket="lake", Key=name)
    assert any("no longer in the lake" in text for text in _problems(tmp_path))


def _problems(folder: Path) -> list[str]:
    options = {"keys": "keys.txt", "identity": "customer.email", "registry": ["registry"], "folder": folder}
    return list(verify_erasure("proof.json", **options).problems)
