"""Requests to a bucket: one listing for each folder, and footers by one client that keeps its connections."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.late_s3 import LateS3, environment

from dq.dataquality.answers.statistics import read_footers
from dq.dataquality.spark.columnar_files import columns_of
from dq.dataquality.table_metadata import TableLocation, list_files
from dq.lake.storage import ArrowFiles

FILES = 60
# Of reads in 16 threads, some of which have two requests at once.
MOST_CONNECTIONS = 40


class CountingS3(LateS3):
    """The server with the number of connections to it."""

    connections = 0

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await super()._client(reader, writer)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingS3]:
    server = CountingS3()
    for name, text in environment(server.url).items():
        monkeypatch.setenv(name, text)
    content = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), content)
    client = boto3.client("s3")
    client.create_bucket(Bucket="footers")
    for number in range(FILES):
        client.put_object(Bucket="footers", Key=f"t/part-{number}.parquet", Body=content.getvalue())
    server.connections = 0
    yield server
    server.close()


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda files: [found.names for found in columns_of(files, "parquet")], id="columns"),
        pytest.param(
            lambda files: [("id",) if file.rows == 2 else () for file in read_footers(files, ()) or ()],
            id="statistics",
        ),
    ],
)
def test_many_footers_need_few_connections(
    bucket: CountingS3, read: Callable[[Sequence[str]], list[tuple[str, ...]]]
) -> None:
    columns = read([f"s3a://footers/t/part-{number}.parquet" for number in range(FILES)])

    assert columns == [("id",)] * FILES
    assert bucket.connections <= MOST_CONNECTIONS


@pytest.mark.parametrize(
    ("table", "layout", "folder"),
    [
        ("hive", "", "tenant={}/day=2026-{}-01"),
        ("template", "{tenant}/{day:%Y/%m}", "{}/2026/{}"),
    ],
)
def test_a_folder_is_listed_once(bucket: CountingS3, table: str, layout: str, folder: str) -> None:
    names = [folder.format(tenant, month) for tenant in "ab" for month in ("03", "04")]
    bucket.put(f"lake/{table}/{name}/part-0.parquet" for name in names)
    place = TableLocation(f"s3://lake/{table}", "parquet", ("tenant", "day"), layout)
    bucket.asked = 0

    listing = list_files(ArrowFiles(), place, datetime.now(UTC))

    assert sorted(path for path, _ in listing.files) == [
        f"s3://lake/{table}/{name}/part-0.parquet" for name in names
    ]
    every_folder = {"/".join(name.split("/")[:depth]) for name in names for depth in range(5)}
    assert bucket.asked == len(every_folder)
