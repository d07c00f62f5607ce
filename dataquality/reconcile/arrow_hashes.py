"""Hashes of Arrow arrays by normal forms: of rows, and of keys as Spark computes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dq.contracts.types import DataType
from dq.dataquality.answers import splitmix
from dq.dataquality.answers.statistics import CERTAIN_FROM
from dq.lake.types import arrow_type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]


class UncertainValue(ValueError):
    """A value that Spark may read as another one."""


_NULL = 0x5851F42D4C957F2D
_TIMES = {"timestamp", "timestamp_ntz"}
_TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1}
# Before this, Spark may read a date or time in another calendar than it is written in.
_FIRST_DAY = (CERTAIN_FROM - dt.date(1970, 1, 1)).days
_FIRST_MICROSECOND = _FIRST_DAY * 86_400_000_000
# Bytes of a text up to which it is hashed with all others, eight bytes at a time.
_MOST_BYTES = 256
# Digits of a decimal that fit into 64 bits.
_MOST_DIGITS = 18


def row_hashes(columns: Sequence[Any], forms: Sequence[DataType]) -> Words:
    """Return a hash of each row of these Arrow arrays, by the normal form of each column.

    Raises UncertainValue for dates and times before 1900.
    """
    import numpy as np

    hashes = np.full(len(columns[0]), splitmix.INCREMENT, np.uint64)
    for column, form in zip(columns, forms, strict=True):
        hashes += _codes(column, form)
        _mix(hashes)
    return hashes


def _codes(column: Any, form: DataType) -> Words:
    """Return a number for each value: the value itself if it has 64 bits, else a hash."""
    import numpy as np
    import pyarrow as pa

    if form.name in ("string", "binary"):
        if pa.types.is_dictionary(column.type):
            codes = _text_codes(column.dictionary)
            indices = _buffer(column.indices, np.dtype(column.indices.type.to_pandas_dtype()))
            if column.null_count:
                indices = np.where(_is_null(column), 0, indices)
            codes = codes[indices] if len(codes) else np.zeros(len(column), np.uint64)
        else:
            codes = _text_codes(column)
    else:
        codes, high = _numbers(column, form)
        if high is not None:
            codes = codes.copy()
            _mix(codes)
            codes += high
    return np.where(_is_null(column), np.uint64(_NULL), codes) if column.null_count else codes


def _numbers(column: Any, form: DataType) -> tuple[Words, Words | None]:
    """Return the bits of each value, and the high 64 bits of decimals that have more; any bits for NULL."""
    import numpy as np
    import pyarrow as pa

    if form.name == "decimal":
        column = column.cast(arrow_type(form))
        words = _buffer(column, np.dtype(np.uint64), 2)
        return words[::2], None if form.numbers[0] <= _MOST_DIGITS else words[1::2]
    if form.name in ("float", "double"):
        values = _buffer(column, np.dtype(column.type.to_pandas_dtype()))
        if form.name == "float":
            values = values.astype(np.float32)
        # Adding zero turns -0.0 into 0.0, and every NaN becomes the same.
        doubles: NDArray[np.float64] = values.astype(np.float64, copy=False) + 0.0
        is_nan = np.isnan(doubles)
        if is_nan.any():
            doubles[is_nan] = np.nan
        return doubles.view(np.uint64), None
    if form.name == "boolean":
        column = column.cast(pa.int8())
    is_time, is_date = form.name in _TIMES, form.name == "date"
    stored: Any = np.int64 if is_time else np.int32 if is_date else column.type.to_pandas_dtype()
    numbers = _buffer(column, np.dtype(stored)).astype(np.int64, copy=False)
    if is_time and _TICKS[column.type.unit] != 1:
        numbers = numbers * _TICKS[column.type.unit]
    if is_time or is_date:
        certain = numbers[~_is_null(column)] if column.null_count else numbers
        if len(certain) and certain.min() < (_FIRST_DAY if is_date else _FIRST_MICROSECOND):
            raise UncertainValue(f"a {form.name} before {CERTAIN_FROM}")
    return numbers.view(np.uint64), None


def _buffer(column: Any, dtype: np.dtype[Any], size: int = 1) -> NDArray[Any]:
    """Return the values of a primitive array, `size` items each, whatever its NULLs are."""
    import numpy as np

    start, end = column.offset * size, (column.offset + len(column)) * size
    return np.frombuffer(column.buffers()[1] or b"", dtype)[start:end]


def _is_null(column: Any) -> NDArray[np.bool_]:
    """Return the rows that are NULL. pyarrow's own conversion imports pandas, which takes over a second."""
    import numpy as np

    validity = column.buffers()[0]
    if validity is None:
        return np.zeros(len(column), np.bool_)
    start, end = column.offset, column.offset + len(column)
    # Only the bytes of these rows: a batch is a slice of a longer array.
    content = np.frombuffer(validity, np.uint8)[start // 8 : -(-end // 8)]
    is_valid = np.unpackbits(content, bitorder="little").view(np.bool_)
    return ~is_valid[start % 8 : start % 8 + len(column)]


def _mix(numbers: Words) -> None:
    """Change the numbers in place, one to one, so that every bit of a number depends on all of its bits.

    With less, sums of rows that differ in the highest bit of two columns can be equal.
    """
    import numpy as np

    for bits, factor in splitmix.ROUNDS:
        numbers ^= numbers >> np.uint64(bits)
        numbers *= np.uint64(factor)
    numbers ^= numbers >> np.uint64(splitmix.LAST_SHIFT)


def _text_codes(texts: Any) -> Words:
    """Return a hash of the bytes of each text."""
    import numpy as np

    starts, lengths, content = _text_buffers(texts)
    codes = lengths.astype(np.uint64)
    words = _unaligned(content, np.dtype("<u8"))
    masks = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
    is_long = lengths > _MOST_BYTES
    position, rows = 0, np.flatnonzero((lengths > 0) & ~is_long)
    while len(rows):
        is_all = len(rows) == len(codes)
        begin, size = (starts, lengths) if is_all else (starts[rows], lengths[rows])
        word = words[begin + position] & masks[np.minimum(size - position, 8)]
        word ^= codes if is_all else codes[rows]
        _mix(word)
        if is_all:
            codes = word
        else:
            codes[rows] = word
        position += 8
        rows = rows[size > position]
    for row in np.flatnonzero(is_long):
        text = content[starts[row] : starts[row] + lengths[row]]
        codes[row] = int.from_bytes(blake2b(text.tobytes(), digest_size=8).digest())
    return codes


def _text_buffers(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return the start and the length of each text (0 for NULL), and all bytes with eight more."""
    import numpy as np
    import pyarrow as pa

    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    dtype = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(texts.buffers()[1] or bytes(dtype.itemsize), dtype)
    offsets = offsets[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(texts) else (0, 0)
    content = np.zeros(last - first + 8, np.uint8)
    if last > first:
        content[:-8] = np.frombuffer(texts.buffers()[2], np.uint8)[first:last]
    offsets -= first
    lengths = np.diff(offsets)
    if texts.null_count:
        lengths[_is_null(texts)] = 0
    return offsets[:-1], lengths, content


def _unaligned(content: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the number that begins at each byte."""
    import numpy as np

    return np.ndarray((len(content) - dtype.itemsize + 1,), dtype, content, strides=(1,))


# Spark's xxhash64, by Yann Collet: of numbers, and of the bytes of texts.

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_SEED = 42
_INTS = {"boolean", "date"}


def spark_hashes(columns: Sequence[Any], forms: Sequence[DataType]) -> Words:
    """Return what `hash_of` returns in Spark for each row of these Arrow arrays, by their normal forms.

    Raises UncertainValue for dates and times before 1900.
    """
    import numpy as np

    nulls = [_is_null(column) if column.null_count else None for column in columns]
    masks = np.zeros(len(columns[0]) if any(column.null_count for column in columns) else 1, np.uint64)
    for bit, null in enumerate(nulls):
        if null is not None:
            masks[null] |= np.uint64(1 << bit)
    # Without NULLs, all rows have the same mask.
    seeds = _hash_of_longs(masks, np.full(len(masks), _SEED, np.uint64))
    hashes = np.broadcast_to(seeds, (len(columns[0]),))
    for column, form, null in zip(columns, forms, nulls, strict=True):
        # Spark skips NULLs.
        hashed = _hash_of_column(column, form, hashes)
        hashes = hashed if null is None else np.where(null, hashes, hashed)
    return hashes


def has_spark_hash(form: DataType) -> bool:
    """Return whether `spark_hashes` supports a normal form."""
    return form.name != "decimal" or form.numbers[0] <= _MOST_DIGITS


def _hash_of_column(column: Any, form: DataType, seeds: Words) -> Words:
    import pyarrow as pa

    if form.name in ("string", "binary"):
        texts = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        return _hash_of_texts(texts, seeds)
    numbers, _ = _numbers(column, form)
    return _hash_of_ints(numbers, seeds) if form.name in _INTS else _hash_of_longs(numbers, seeds)


def _hash_of_longs(numbers: Words, seeds: Words) -> Words:
    return _finished(_with_long(seeds + _u(_P5) + _u(8), numbers))


def _hash_of_ints(numbers: Words, seeds: Words) -> Words:
    return _finished(_with_int(seeds + _u(_P5) + _u(4), numbers & _u(0xFFFFFFFF)))


def _hash_of_texts(texts: Any, seeds: Words) -> Words:
    """Return the hashes of texts, those of the same length at once."""
    import numpy as np

    starts, lengths, content = _text_buffers(texts)
    longs, ints = _unaligned(content, np.dtype("<u8")), _unaligned(content, np.dtype("<u4"))
    hashes = np.empty(len(seeds), np.uint64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        begin = starts[rows]
        hashed = _with_blocks(longs, begin, length, seeds[rows]) + _u(length)
        for place in range(length // 32 * 32, length - 7, 8):
            hashed = _with_long(hashed, longs[begin + place])
        place = length // 8 * 8
        if length - place >= 4:
            hashed = _with_int(hashed, ints[begin + place].astype(np.uint64))
            place += 4
        for last in range(place, length):
            hashed ^= content[begin + last].astype(np.uint64) * _u(_P5)
            hashed = _rotated(hashed, 11) * _u(_P1)
        hashes[rows] = _finished(hashed)
    return hashes


def _with_blocks(longs: NDArray[np.uint64], begin: NDArray[np.int64], length: int, seeds: Words) -> Words:
    """Return the hashes of the whole blocks of 32 bytes."""
    if length < 32:
        return seeds + _u(_P5)
    lanes = [seeds + _u(_P1 + _P2), seeds + _u(_P2), seeds.copy(), seeds - _u(_P1)]
    for position in range(0, length // 32 * 32, 32):
        lanes = [
            _rotated(lane + longs[begin + position + 8 * number] * _u(_P2), 31) * _u(_P1)
            for number, lane in enumerate(lanes)
        ]
    hashed = sum(
        (_rotated(lane, bits) for lane, bits in zip(lanes[1:], (7, 12, 18), strict=True)),
        _rotated(lanes[0], 1),
    )
    for lane in lanes:
        hashed ^= _rotated(lane * _u(_P2), 31) * _u(_P1)
        hashed = hashed * _u(_P1) + _u(_P4)
    return hashed


def _with_long(hashes: Words, numbers: Words) -> Words:
    hashes = hashes ^ _rotated(numbers * _u(_P2), 31) * _u(_P1)
    return _rotated(hashes, 27) * _u(_P1) + _u(_P4)


def _with_int(hashes: Words, numbers: Words) -> Words:
    return _rotated(hashes ^ numbers * _u(_P1), 23) * _u(_P2) + _u(_P3)


def _finished(hashes: Words) -> Words:
    hashes = hashes ^ hashes >> _u(33)
    hashes *= _u(_P2)
    hashes ^= hashes >> _u(29)
    hashes *= _u(_P3)
    return hashes ^ hashes >> _u(32)


def _rotated(numbers: Words, bits: int) -> Words:
    return numbers << _u(bits) | numbers >> _u(64 - bits)


def _u(number: int) -> np.uint64:
    import numpy as np

    return np.uint64(number & (1 << 64) - 1)
