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


def test_a_bucket_that_does_not_exist_is_an_error(place: Place) -> None:
    with pytest.raises(ReadError, match="NO_SUCH_BUCKET"):
        ArrowFiles().root_exists("s3://gone/sales/orders")
