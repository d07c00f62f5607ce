"""Bloom filters of Parquet are read as their writers wrote them, and damaged ones not at all."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import parquet_footer

from dq.dataquality.answers.statistics import read_chunk_metadata
from dq.lake.bloom import BloomFilter, read_filter, xxhash64

NAMES = [f"user{number}@a-domain-longer-than-a-lane.example" for number in range(2_000)]


# From xxHash's own `xxhsum -H64`.
@pytest.mark.parametrize(
    ("data", "value"),
    [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)],
)
def test_hashes_are_those_of_xxhash(data: bytes, value: int) -> None:
    assert xxhash64(data) == value


def _filters(path: Path) -> list[BloomFilter | None]:
    with pa.OSFile(str(path)) as source:
        return [
            read_filter(source, chunk)
            for group in read_chunk_metadata(source, pq.read_metadata(path))
            for chunk in group
        ]


def _possible(bloom: BloomFilter | None, values: list[bytes]) -> list[bool]:
    assert bloom is not None
    return bloom.possible(pa.array(map(xxhash64, values), pa.uint64()))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    table = pa.table({"mail": NAMES, "id": pa.array(range(2_000), pa.int64())})
    pq.write_table(table, tmp_path / "a.parquet", bloom_filter_options={"mail": True, "id": True})
    return tmp_path / "a.parquet"


def test_every_value_is_possible_and_few_others(written: Path) -> None:
    mails, ids = _filters(written)

    assert all(_possible(mails, [name.encode() for name in NAMES]))
    assert all(_possible(ids, [struct.pack("<q", number) for number in range(2_000)]))
    assert sum(_possible(mails, [f"other{number}".encode() for number in range(2_000)])) < 100


def test_a_filter_whose_length_is_wrong_is_not_used(written: Path) -> None:
    def change(footer: dict[int, parquet_footer.Node]) -> None:
        for chunk in parquet_footer.chunks(footer):
            chunk[15] = parquet_footer.whole(chunk[15][1] + 32)

    assert [bloom is None for bloom in _filters(parquet_footer.rewritten(written, change))] == [True, False]


@pytest.mark.parametrize("offset", [0, 4, 10**9])
def test_a_filter_at_a_wrong_place_is_not_used(written: Path, offset: int) -> None:
    def change(footer: dict[int, parquet_footer.Node]) -> None:
        for chunk in parquet_footer.chunks(footer):
            chunk[14] = parquet_footer.whole(offset)

    assert _filters(parquet_footer.rewritten(written, change))[0] is None


def test_a_file_without_filters_has_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({"mail": NAMES}), tmp_path / "a.parquet")

    assert _filters(tmp_path / "a.parquet") == [None]
