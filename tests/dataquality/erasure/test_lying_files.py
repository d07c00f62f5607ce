"""Statistics, filters and dictionaries that lie: a key is never taken for gone by those of known liars."""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import parquet_footer
from fakes.erasure import KEY, Place, hit_files
from fakes.parquet_footer import CREATED_BY, MAX, MAX_EXACT, MIN, MIN_EXACT, Node, raw, statistics

from dq.dataquality.erasure.model import Means

EXACT = "{name: customer.email, normalize: exact}"
TRUSTED = "parquet-mr version 1.16.0 (build x)"
LOW, HIGH = "zz@example.com", "zzz@example.com"
Change = Callable[[dict[int, Node]], None]


def _write(place: Place, column: pa.Array, name: str = "email", **options: object) -> Path:
    folder = place.lake / "day=2026-05-01"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "part-0.parquet"
    pq.write_table(pa.table({name: column}), path, **{"use_dictionary": False, **options})
    return path


def _lie(writer: str, low: bytes, high: bytes) -> Change:
    """Bounds that leave out the key, by a writer."""

    def change(footer: dict[int, Node]) -> None:
        footer[CREATED_BY] = raw(writer.encode())
        for facts in statistics(footer):
            facts[MIN], facts[MAX] = raw(low), raw(high)
            facts.pop(MIN_EXACT, None), facts.pop(MAX_EXACT, None)

    return change


def _searched(place: Place, number: int = 0) -> tuple[int, Means]:
    outcome = place.find(f"out{number}")
    assert outcome.search.gaps == ()
    (result,) = outcome.search.files
    return sum(hit_files(outcome).values()), result.means


@pytest.mark.parametrize(
    "writer",
    [
        "", "duckdb version v1.4.0", "Polars", "polars version 0.20.3", "parquet-mr version 1.7.0",
        "parquet-cpp-arrow version 11.0.0", "parquet-cpp version 1.5.1", "trino version 392",
    ],
)  # fmt: skip
def test_text_bounds_of_a_liar_are_not_used(tmp_path: Path, writer: str) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    path = _write(place, pa.array([KEY, LOW]))
    parquet_footer.rewritten(path, _lie(writer, LOW.encode(), HIGH.encode()))

    assert _searched(place) == (1, Means.SCAN)


def test_the_same_bounds_of_a_trusted_writer_are_used(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    path = _write(place, pa.array([LOW, HIGH]))
    parquet_footer.rewritten(path, _lie(TRUSTED, LOW.encode(), HIGH.encode()))

    assert _searched(place) == (0, Means.BOUNDS)


@pytest.mark.parametrize(
    "writer",
    [
        "polars version 2.0.0", "ClickHouse version 25.7.1", "hyparquet-writer",
        "parquet-mr version 1.7.0", "trino version 392",
    ],
)  # fmt: skip
def test_decimal_bounds_of_a_liar_are_not_used(tmp_path: Path, writer: str) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    place.keys(["17"])
    column = pa.array([Decimal("17.00"), Decimal("90.00")], pa.decimal128(9, 2))
    path = _write(place, column, store_decimal_as_integer=True)
    parquet_footer.rewritten(path, _lie(writer, struct.pack("<i", 8000), struct.pack("<i", 9000)))

    assert _searched(place) == (1, Means.SCAN)


def test_decimals_that_are_stored_as_bytes_are_read(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    place.keys(["17"])
    _write(place, pa.array([Decimal("17.00"), Decimal("90.00")], pa.decimal128(9, 2)))

    assert _searched(place) == (1, Means.SCAN)


def test_a_greatest_value_that_was_cut_does_not_clear_longer_keys(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    path = _write(place, pa.array(["a", KEY]))
    parquet_footer.rewritten(path, _lie(TRUSTED, b"a", KEY[:5].encode()))

    assert _searched(place) == (1, Means.SCAN)


@pytest.mark.parametrize(("low", "high"), [(b"z", b"a"), (b"\xff\xfe", b"\xff\xff")])
def test_bounds_that_are_no_bounds_are_not_used(tmp_path: Path, low: bytes, high: bytes) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    path = _write(place, pa.array([KEY, LOW]))
    parquet_footer.rewritten(path, _lie(TRUSTED, low, high))

    assert _searched(place) == (1, Means.SCAN)


def _clear_filter(path: Path, bits: bytes) -> None:
    """Overwrite the bits of the file's only Bloom filter."""
    data = path.read_bytes()
    footer: dict[int, Node] = {}
    parquet_footer.rewritten(path, lambda whole: footer.update(whole))
    path.write_bytes(data)
    (chunk,) = parquet_footer.chunks(footer)
    end = chunk[14][1] + chunk[15][1]
    size = chunk[15][1] // 32 * 32
    path.write_bytes(data[: end - size] + bits * (size // len(bits)) + data[end:])


@pytest.mark.parametrize("bits", [b"\x00", struct.pack("<q", 1) * 4])
def test_a_filter_that_lacks_the_least_and_greatest_value_is_not_used(tmp_path: Path, bits: bytes) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    place.keys(["17"])
    path = _write(place, pa.array([3, 17, 99], pa.int64()), bloom_filter_options={"email": True})
    _clear_filter(path, bits)

    assert _searched(place) == (1, Means.SCAN)


@pytest.mark.parametrize("writer", ["", "parquet-go version 18.4.0"])
def test_a_filter_of_a_liar_is_not_used(tmp_path: Path, writer: str) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    path = _write(place, pa.array([LOW, HIGH]), write_statistics=False, bloom_filter_options={"email": True})
    assert _searched(place) == (0, Means.BLOOM)

    parquet_footer.rewritten(path, lambda footer: footer.update({CREATED_BY: raw(writer.encode())}))

    assert _searched(place, 1) == (0, Means.SCAN)


def test_a_filter_speaks_of_one_spelling_and_a_dictionary_of_all(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    options = {"write_statistics": False, "bloom_filter_options": {"email": True}}
    _write(place, pa.array([KEY.upper(), LOW]), **options)
    assert _searched(place) == (1, Means.SCAN)

    _write(place, pa.array([HIGH, LOW]), **options)
    assert _searched(place, 1) == (0, Means.SCAN)

    _write(place, pa.array([HIGH, LOW]), use_dictionary=True)
    assert _searched(place, 2) == (0, Means.DICTIONARY)

    _write(place, pa.array([HIGH, KEY.title()]), use_dictionary=True)
    assert _searched(place, 3) == (1, Means.SCAN)


def test_a_dictionary_without_a_writer_is_not_used(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet")
    path = _write(place, pa.array([HIGH, LOW]), use_dictionary=True)
    parquet_footer.rewritten(path, lambda footer: footer.update({CREATED_BY: raw(b"")}))

    assert _searched(place) == (0, Means.SCAN)


def test_padded_texts_are_their_keys(tmp_path: Path) -> None:
    place = Place(tmp_path, "parquet", EXACT)
    contract = place.folder / "registry/people.odcs.yaml"
    contract.write_text(
        contract.read_text().replace("name: email", "physicalType: char(20)\n        name: email")
    )
    _write(place, pa.array([KEY.ljust(20), LOW.ljust(20)]), bloom_filter_options={"email": True})

    assert _searched(place) == (1, Means.SCAN)


@pytest.mark.parametrize(
    "spelling",
    [
        "ANN@Example.COM",
        "ann@example.com ",
        "\u00a0ann@example.com",
        "ａｎｎ@example.com",
        "ann\u200b@example.com",
    ],
)
def test_other_spellings_are_their_keys_whatever_the_file_states(tmp_path: Path, spelling: str) -> None:
    place = Place(tmp_path, "parquet")
    _write(place, pa.array([spelling, LOW]), bloom_filter_options={"email": True})

    assert _searched(place) == (1, Means.SCAN)
