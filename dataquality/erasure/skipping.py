"""Row groups of Parquet that cannot have a key, by bounds, Bloom filters and dictionaries of trusted writers.

A bound or a Bloom filter speaks of one spelling, so it is used only where a key has one: numbers, dates and
texts that are compared exactly. A dictionary has every value, and each is compared as the rows would be.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dq.contracts.identity import EXACT, PHONE
from dq.contracts.types import DataType
from dq.dataquality.answers.statistics import (
    Statistic,
    bounds_of_chunks,
    dictionary_values,
    distrusted,
    leaf_type,
    without_distrusted,
)
from dq.dataquality.erasure.keys import Keys
from dq.dataquality.erasure.model import Means
from dq.lake.bloom import BloomFilter, read_filter, xxhash64
from dq.lake.thrift import Fields

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.parquet import ColumnChunkMetaData, FileMetaData

_DAY_0 = dt.date(1970, 1, 1)
# Plain encoding of a value by its physical type. Smaller integers are left out: writers differ in their hash.
_ENCODERS: dict[tuple[str, str], Callable[[Any], bytes]] = {
    ("int", "INT32"): lambda value: struct.pack("<i", value),
    ("bigint", "INT64"): lambda value: struct.pack("<q", value),
    ("date", "INT32"): lambda value: struct.pack("<i", (value - _DAY_0).days),
    ("string", "BYTE_ARRAY"): lambda value: value.encode(),
}
# Of more keys, a filter has some by chance.
_MOST_PROBED = 1_000
# Keys are looked for in many filters.
_hash = lru_cache(maxsize=1 << 16)(xxhash64)
# The order in which a means is named for a file that several cleared: the last that was needed.
ORDER = (Means.EMPTY, Means.ABSENT, Means.BOUNDS, Means.BLOOM, Means.DICTIONARY, Means.SCAN)


@dataclass(slots=True)
class Skipper:
    """Decides which row groups of a file need not be read; `read_bytes` counts what it read itself."""

    source: NativeFile
    meta: FileMetaData
    chunks: list[list[Fields]]
    keys: Keys
    read_bytes: int = 0

    def means_of(self, group: int, leaf: int, normalize: str) -> Means:
        """Return the proof that a column chunk has no key, or SCAN if there is none."""
        chunk = self.meta.row_group(group).column(leaf)
        if self.meta.row_group(group).num_rows == 0:
            return Means.EMPTY
        column = self.meta.schema.column(leaf)
        kind = leaf_type(column)
        if kind is None:
            return Means.SCAN
        writers = (self.meta.created_by or "",)
        nested, physical_type = column.max_definition_level > 1, column.physical_type
        wrong = distrusted(writers[0], kind.name, nested, physical_type)
        facts = without_distrusted(
            bounds_of_chunks([chunk], kind), writers, kind.name, nested=nested, physical_type=physical_type
        )
        if writers[0].strip() and facts.nulls == chunk.num_values > 0:
            return Means.BOUNDS
        values = typed_values(self.keys, kind, normalize)
        if values is not None:
            ends: tuple[Any, Any] | None = None
            if facts.least is not None and facts.greatest is not None:
                ends = facts.least, facts.greatest
                values = [value for value in values if ends[0] <= value <= ends[1]]
            elif kind.name == "string" and Statistic.BOUNDS not in wrong:
                values = _within_texts(chunk, values)
            if not values:
                return Means.BOUNDS
            if Statistic.BLOOM not in wrong and not self._in_filter(group, leaf, kind, values, ends):
                return Means.BLOOM
        if Statistic.VALUES not in wrong and self._not_in_dictionary(group, leaf, kind, normalize):
            return Means.DICTIONARY
        return Means.SCAN

    def filter_use(self, leaf: int, normalize: str) -> tuple[bool, bool]:
        """Return whether a key has one spelling in a leaf, and whether filters of its type can be read."""
        column = self.meta.schema.column(leaf)
        kind = leaf_type(column)
        if kind is None:
            return False, False
        writer = self.meta.created_by or ""
        return (
            typed_values(self.keys, kind, normalize) is not None,
            (kind.name, column.physical_type) in _ENCODERS
            and Statistic.BLOOM not in distrusted(writer, kind.name),
        )

    def has_filter(self, group: int, leaf: int) -> bool:
        """Return whether a column chunk has a Bloom filter."""
        return bool(self.chunks) and read_filter(self.source, self.chunks[group][leaf]) is not None

    def has_dictionary(self, group: int, leaf: int) -> bool:
        """Return whether a column chunk has a dictionary of all values that is small enough to be read."""
        kind = leaf_type(self.meta.schema.column(leaf))
        if kind is None or not self.chunks:
            return False
        if Statistic.VALUES in distrusted(self.meta.created_by or "", kind.name):
            return False
        return dictionary_values(self.source, [self.chunks[group][leaf]], kind) is not None

    def _in_filter(
        self, group: int, leaf: int, kind: DataType, values: Sequence[Any], ends: tuple[Any, Any] | None
    ) -> bool:
        import pyarrow as pa

        encode = _ENCODERS.get((kind.name, self.meta.schema.column(leaf).physical_type))
        if encode is None or not self.chunks or len(values) > _MOST_PROBED:
            return True
        bloom = read_filter(self.source, self.chunks[group][leaf])
        if bloom is None:
            return True
        self.read_bytes += bloom.read_bytes
        try:
            hashes = [_hash(encode(value)) for value in values]
            if not _has_ends(bloom, encode, ends):
                return True
        except struct.error:
            return True
        return any(bloom.possible(pa.array(hashes, pa.uint64())))

    def _not_in_dictionary(self, group: int, leaf: int, kind: DataType, normalize: str) -> bool:
        if not self.chunks:
            return False
        values = dictionary_values(self.source, [self.chunks[group][leaf]], kind)
        if values is None:
            return False
        chunk = self.meta.row_group(group).column(leaf)
        self.read_bytes += max(chunk.data_page_offset - (chunk.dictionary_page_offset or 0), 0)
        return not any(self.keys.matching(value, normalize) for value in values)


def _has_ends(bloom: BloomFilter, encode: Callable[[Any], bytes], ends: tuple[Any, Any] | None) -> bool:
    """Return whether the filter has the least and the greatest value; one without them is wrong."""
    import pyarrow as pa

    if ends is None:
        return True
    return all(bloom.possible(pa.array([_hash(encode(end)) for end in ends], pa.uint64())))


def typed_values(keys: Keys, kind: DataType, normalize: str) -> list[Any] | None:
    """Return the only values of a type that can be keys, or None if a key has several spellings in it."""
    if kind.name == "string":
        return list(keys.spelled(EXACT)) if normalize == EXACT else None
    if normalize.startswith(PHONE):
        return None
    if kind.name in ("tinyint", "smallint", "int", "bigint"):
        return [int(number) for number in keys.numbers if number == int(number)]
    if kind.name == "decimal":
        return list(keys.numbers)
    if kind.name == "date":
        return list(keys.dates)
    if kind.name == "timestamp":
        return list(keys.instants)
    if kind.name == "timestamp_ntz":
        return [moment.replace(tzinfo=None) for moment in keys.instants]
    return None


def _within_texts(chunk: ColumnChunkMetaData, values: Sequence[str]) -> list[str]:
    """Return the texts that may lie between the bounds of a chunk, in the order of their UTF-8 bytes."""
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None or not statistics.has_min_max:
        return list(values)
    try:
        low, high = (_as_bytes(bound) for bound in (statistics.min, statistics.max))
    except (ValueError, TypeError):
        return list(values)
    if low > high:
        return list(values)
    # Some writers cut a long greatest value without raising it.
    encoded = ((value, value.encode(errors="surrogatepass")) for value in values)
    return [value for value, data in encoded if low <= data and (data <= high or data.startswith(high))]


def _as_bytes(bound: object) -> bytes:
    if isinstance(bound, bytes):
        return bound
    if isinstance(bound, str):
        return bound.encode()
    raise TypeError
