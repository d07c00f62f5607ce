"""With the policy of the stack, the watcher lists only the folders of its tables; an empty one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes.aws_lake import Lake, write_contract
from fakes.command import Place
from fakes.prefix_policy import limited

from dq.contracts.outcome import ReadError
from dq.lake.storage import ArrowFiles
from dq.registry.publish import folder_exists, write_marker

PREFIXES = ("sales/orders", "sales/orders/*")
TABLE = "s3://lake/sales/orders"
DUE = datetime(2026, 11, 20, 6, tzinfo=UTC)


@pytest.fixture
def lake() -> Iterator[Lake]:
    with Lake() as started:
        yield started


@pytest.fixture
def place(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A watcher that may list `sales/orders` alone; the bucket has other objects too."""
    lake.s3.put_object(Bucket="lake", Key="hr/salaries/part-0.parquet", Body=b"secret")
    write_contract(tmp_path, DUE)
    for name, value in lake.variables.items():
        monkeypatch.setenv(name, value)
    with limited(lake.variables["AWS_ENDPOINT_URL_S3"], PREFIXES) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        yield Place(tmp_path)


def watch(place: Place, at: datetime) -> list[str]:
    ran = place.dq("watch", "registry", "--as-of", f"{at:%Y-%m-%dT%H:%M:%SZ}", "--format", "json")
    return [change["after"] for change in ran.json["changes"]]


def test_a_table_that_was_never_delivered_is_missing(place: Place) -> None:
    watch(place, DUE - timedelta(hours=1))

    assert watch(place, DUE + timedelta(hours=1)) == ["missing"]


def test_a_marker_that_is_not_there_yet_is_missing(place: Place, lake: Lake) -> None:
    lake.s3.put_object(Bucket="lake", Key="sales/orders/day=2026-11-19/_SUCCESS", Body=b"")
    watch(place, DUE - timedelta(hours=1))

    assert watch(place, DUE + timedelta(hours=1)) == ["missing"]


def test_files_are_listed_where_head_requests_are_denied(place: Place, lake: Lake) -> None:
    lake.s3.put_object(Bucket="lake", Key="sales/orders/day=2026-11-20/part-0.parquet", Body=b"")
    files = ArrowFiles()

    assert write_marker(f"{TABLE}/day=2026-11-20", "_SUCCESS")
    assert not write_marker(f"{TABLE}/day=2026-11-20", "_SUCCESS")
    assert (folder_exists(f"{TABLE}/day=2026-11-20/"), folder_exists(f"{TABLE}/day=2026-11-21")) == (
        True,
        False,
    )
    assert files.stat(f"{TABLE}/day=2026-11-20/_SUCCESS") is not None
    assert files.stat(f"{TABLE}/day=2026-11-21/_SUCCESS") is None
    assert (files.holds(TABLE), files.holds(f"{TABLE}/day=2026-11-21")) == (True, False)
    assert files.root_exists(TABLE)
    for question in (files.holds, files.stat, files.root_exists):
        with pytest.raises(ReadError, match=r"s3://lake/hr.* cannot be read"):
            question("s3://lake/hr/x")


def test_an_object_that_may_not_be_read_is_not_missing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    file = f"{TABLE}/day=2026-11-20/part-0.parquet"
    lake.s3.put_object(Bucket="lake", Key=file.removeprefix("s3://lake/"), Body=b"rows")
    for name, value in lake.variables.items():
        monkeypatch.setenv(name, value)

    with limited(
        lake.variables["AWS_ENDPOINT_URL_S3"], ("sales/orders/day=2026-11-20/",), ("*.parquet",)
    ) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        stat = ArrowFiles().stat(file)
        with pytest.raises(ReadError, match="ACCESS_DENIED"):
            ArrowFiles().read(file)

    assert stat is not None
    assert (stat.name, stat.size) == ("part-0.parquet", 4)


def test_an_empty_bucket_or_folder_exists(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the permission to list the root, HEAD requests for the bucket are denied as well."""
    lake.s3.create_bucket(Bucket="new", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    lake.s3.put_object(Bucket="lake", Key="sales/orders/", Body=b"")
    for name, value in lake.variables.items():
        monkeypatch.setenv(name, value)

    with limited(lake.variables["AWS_ENDPOINT_URL_S3"], ("", *PREFIXES)) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        files = ArrowFiles()
        answers = files.root_exists("s3://new/sales/orders"), files.holds("s3://new/sales/orders")
        folder = files.holds(TABLE)

    assert answers == (True, False)
    assert folder


def test_a_file_is_not_a_folder_to_publish(place: Place, lake: Lake) -> None:
    lake.s3.put_object(Bucket="lake", Key="sales/orders/all.parquet", Body=b"")

    assert not folder_exists(f"{TABLE}/all.parquet")


def test_a_bucket_that_does_not_exist_is_an_error(place: Place) -> None:
    with pytest.raises(ReadError, match="NO_SUCH_BUCKET"):
        ArrowFiles().root_exists("s3://gone/sales/orders")
