"""Keys in a bucket: names that need escaping, hidden objects, and an object that cannot be read."""

from __future__ import annotations

import io
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.erasure import KEY, OTHER, Place, hit_files
from moto.server import ThreadedMotoServer


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


def test_objects_of_a_bucket_are_searched(bucket, tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    contract = tmp_path / "registry/people.odcs.yaml"
    text = contract.read_text()
    server = "servers: [{server: lake, type: s3, location: s3://lake/people, format: parquet}]"
    contract.write_text("\n".join(server if one.startswith("servers:") else one for one in text.splitlines()))
    names = {
        "people/day=2026-05-01/part-0.parquet": OTHER, "people/day=2026-05-01/a b?c#d%20e+f.parquet": KEY,
        "people/_hidden/.part": KEY, "people_other/part-0.parquet": KEY,
    }  # fmt: skip
    for name, email in names.items():
        file = io.BytesIO()
        pq.write_table(pa.table({"email": [email]}), file)
        bucket.put_object(Bucket="lake", Key=name, Body=file.getvalue())
    bucket.put_object(Bucket="lake", Key="people/broken", Body=b"PAR1")

    outcome = place.find()

    assert hit_files(outcome) == {
        "s3://lake/people/day=2026-05-01/a b?c#d%20e+f.parquet": 1, "s3://lake/people/_hidden/.part": 1,
    }  # fmt: skip
    assert [gap.what for gap in outcome.search.gaps] == ["s3://lake/people/broken"]
