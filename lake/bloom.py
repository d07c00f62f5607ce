"""Bloom filters of Parquet column chunks.

Source: https://parquet.apache.org/docs/file-format/bloomfilter/ and parquet.thrift: split blocks of 256 bits,
values hashed with xxHash64 (seed 0) in their plain encoding.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dq.lake.thrift import Fields, Malformed, read_struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import NativeFile

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
)  # fmt: skip
_SALTS = (
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
)  # fmt: skip
# Ids of fields in parquet.thrift.
_FILTER_AT, _FILTER_LENGTH = 14, 15
_SIZE, _ALGORITHM, _HASH, _COMPRESSION = 1, 2, 3, 4
_BLOCK_BYTES, _HEADER_BYTES = 32, 64
MOST_BYTES = 128 << 20
"""Limit in bytes of a filter, as in parquet-java."""


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The filter of a column chunk; `read_bytes` is its size in the file."""

    bits: bytes
    read_bytes: int

    def possible(self, hashes: pa.Array) -> list[bool]:
        """Return whether the chunk may have a value of each hash (unsigned, 64 bits); False is certain."""
        import pyarrow as pa
        from pyarrow import compute as pc

        words = pa.Array.from_buffers(pa.uint32(), len(self.bits) // 4, [None, pa.py_buffer(self.bits)])
        blocks = pc.shift_right(
            pc.multiply(pc.shift_right(hashes, _u64(32)), _u64(len(self.bits) // 32)), _u64(32)
        )
        low = pc.bit_wise_and(hashes, _u64(0xFFFFFFFF))
        possible = pa.array([True] * len(hashes))
        for lane, salt in enumerate(_SALTS):
            bit = pc.shift_right(pc.bit_wise_and(pc.multiply(low, _u64(salt)), _u64(0xFFFFFFFF)), _u64(27))
            word = words.take(pc.add(pc.multiply(blocks, _u64(8)), _u64(lane))).cast(pa.uint64())
            is_set = pc.equal(pc.bit_wise_and(pc.shift_right(word, bit), _u64(1)), _u64(1))
            possible = pc.and_(possible, is_set)
        return list(possible.to_pylist())


def _u64(number: int) -> pa.Scalar:
    import pyarrow as pa

    return pa.scalar(number, pa.uint64())


def read_filter(source: NativeFile, chunk: Fields) -> BloomFilter | None:
    """Return the filter of a column chunk with this metadata, or None if it has none that can be trusted."""
    offset, length = chunk.get(_FILTER_AT), chunk.get(_FILTER_LENGTH)
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 < offset < source.size():
        return None
    head = source.read_at(min(_HEADER_BYTES, source.size() - offset), offset)
    try:
        header, header_size = read_struct(head)
    except Malformed:
        return None
    size: Any = header.get(_SIZE)
    # Each is a union with one defined member: split blocks, xxHash, uncompressed.
    kinds: list[Any] = [header.get(field) for field in (_ALGORITHM, _HASH, _COMPRESSION)]
    if not isinstance(size, int) or not 0 < size <= MOST_BYTES or size % _BLOCK_BYTES:
        return None
    if any(not isinstance(kind, dict) or list(kind) != [1] for kind in kinds):
        return None
    if isinstance(length, int) and length != header_size + size:
        return None
    bits = source.read_at(size, offset + header_size)
    # An empty filter has no value at all, which no chunk with values has.
    return BloomFilter(bits, header_size + size) if len(bits) == size and any(bits) else None


def xxhash64(data: bytes) -> int:
    """Return the xxHash64 of bytes with the seed 0."""
    length, at = len(data), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= length:
            lanes = [
                _round(lane, word)
                for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)
            ]
            at += 32
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        value = _P5
    value = (value + length) & _MASK
    while at + 8 <= length:
        (word,) = struct.unpack_from("<Q", data, at)
        value = (_rotate(value ^ _round(0, word), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        (half,) = struct.unpack_from("<I", data, at)
        value = (_rotate(value ^ (half * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        value = _rotate(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    value = (value ^ (value >> 33)) * _P2 & _MASK
    value = (value ^ (value >> 29)) * _P3 & _MASK
    return value ^ (value >> 32)


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
