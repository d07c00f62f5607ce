"""Keys of people, and the values of any type that are one of them."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dq.contracts.identity import EXACT, PHONE, TEXT, as_uuid, normalized, phone_prefix, spellings

if TYPE_CHECKING:
    import pyarrow as pa

Positions = tuple[int, ...]
"""Positions of keys in the file of keys, from 0."""

# ASCII characters that `normalized` removes at the ends of a text.
_BLANK = " \t\n\r\v\f\x00\x1c\x1d\x1e\x1f"
# ASCII texts that `normalized` changes inside.
_INNER = r"[\t\n\r\v\f\x00\x1c-\x1f]|  "
_MOST_DIGITS = 40
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Types for which Arrow has few functions, and those with the same values.
_VIEWS = {"string_view": "large_string", "binary_view": "large_binary"}


class Unsearchable(ValueError):
    """A column has a type in which keys cannot be searched."""


@dataclass(frozen=True, repr=False)
class Keys:
    """Keys as texts. They are personal data: neither `repr` nor messages have them."""

    values: tuple[str, ...]
    _spelled: dict[str, Mapping[str, Positions]] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Keys({len(self)})"

    def spelled(self, normalize: str) -> Mapping[str, Positions]:
        """Return the positions of the keys by each of their normalized texts."""
        if normalize not in self._spelled:
            pairs = ((text, at) for at, key in enumerate(self.values) for text in spellings(key, normalize))
            self._spelled[normalize] = _grouped(pairs)
        return self._spelled[normalize]

    @cached_property
    def numbers(self) -> Mapping[Decimal, Positions]:
        """The keys that are numbers, by value."""
        return _grouped(
            (number, at) for at, key in enumerate(self.values) if (number := _number(key)) is not None
        )

    @cached_property
    def uuids(self) -> Mapping[bytes, Positions]:
        """The keys that are UUIDs, by their bytes."""
        return _grouped((value, at) for at, key in enumerate(self.values) if (value := as_uuid(key)))

    @cached_property
    def dates(self) -> Mapping[dt.date, Positions]:
        """The keys that are dates in ISO 8601."""
        return _grouped((day, at) for at, key in enumerate(self.values) if (day := _date(key)) is not None)

    @cached_property
    def instants(self) -> Mapping[dt.datetime, Positions]:
        """The keys that are times in ISO 8601, in UTC unless they have a zone; a date is its midnight."""
        return _grouped((at_, at) for at, key in enumerate(self.values) if (at_ := _instant(key)) is not None)

    def matching(self, value: object, normalize: str) -> Positions:
        """Return the keys that a Python value is, as readers of JSON and Avro return values."""
        match value:
            case None | bool():
                return ()
            case str():
                return self.spelled(normalize).get(normalized(value, normalize), ())
            case bytes():
                return _merged(
                    self.uuids.get(value, ()), self.matching(value.decode("utf-8", "replace"), normalize)
                )
            case int() | Decimal() | float():
                return self._number_matching(value, normalize)
            case dt.datetime():
                return self.instants.get(_in_utc(value), ())
            case dt.date():
                return self.dates.get(value, ())
            case _:
                return self.matching(str(value), normalize)

    def _number_matching(self, value: int | float | Decimal, normalize: str) -> Positions:
        # A float is the shortest decimal that is nearest to it; float32 has about seven digits.
        texts = {str(value), f"{value:.7g}"} if isinstance(value, float) else {str(value)}
        numbers = [number for text in texts if (number := Decimal(text)).is_finite()]
        if not normalize.startswith(PHONE):
            return _merged(*(self.numbers.get(number, ()) for number in numbers))
        wholes = (format(number, "f").partition(".")[0] for number in numbers)
        return _merged(*(self.spelled(normalize).get(normalized(text, normalize), ()) for text in wholes))

    def written(self, value: str) -> Positions:
        """Return the keys that a text of a date, time or whole number is, as logs write values."""
        text = normalized(value, TEXT)
        day, instant = _date(text), _instant(text)
        number = int(text) if re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII) else None
        return _merged(
            self.dates.get(day, ()) if day else (),
            self.instants.get(instant, ()) if instant else (),
            self.encoded(number) if number is not None else (),
        )

    def encoded(self, number: int) -> Positions:
        """Return the keys that are dates or times, and that a number encodes.

        Logs encode dates as days, and times as seconds or their fractions since 1970. Keys of digits alone
        are numbers.
        """
        if not self.instants:
            return ()
        moments = []
        for microseconds in (
            number * 86_400_000_000,
            number * 1_000_000,
            number * 1_000,
            number,
            number // 1_000,
        ):
            with suppress(OverflowError):
                moments.append(_EPOCH + dt.timedelta(microseconds=microseconds))
        positions = _merged(
            *(self.instants.get(moment, ()) for moment in moments),
            *(self.dates.get(moment.date(), ()) for moment in moments[:1]),
        )
        return tuple(position for position in positions if not self.values[position].strip().isdigit())

    def in_tree(self, value: object, normalize: str) -> Iterator[Positions]:
        """Yield the keys of every leaf of a JSON value, texts that are JSON included."""
        match value:
            case Mapping():
                for name, inner in value.items():
                    yield self.matching(name, normalize)
                    yield from self.in_tree(inner, normalize)
            case list() | tuple():
                for inner in value:
                    yield from self.in_tree(inner, normalize)
            case _:
                yield self.matching(value, normalize)
                if isinstance(value, str) and value[:1] in ("{", "["):
                    try:
                        inner = json.loads(value)
                    except (ValueError, RecursionError):
                        return
                    yield from self.in_tree(inner, normalize)

    def in_array(self, values: pa.Array, normalize: str) -> list[tuple[int, Positions]]:
        """Return the indices of the values that are keys, each with these.

        Raises Unsearchable for a type without values that can be compared.
        """
        import pyarrow as pa

        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if str(values.type) in _VIEWS:
            values = values.cast(getattr(pa, _VIEWS[str(values.type)])())
        kind = values.type
        if pa.types.is_dictionary(kind):
            return _of_dictionary(values, self.in_array(values.dictionary, normalize))
        if pa.types.is_null(kind) or pa.types.is_boolean(kind):
            return []
        if _is_text(kind):
            candidates = self._texts(values, normalize)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            candidates = self._numbers(values, normalize)
        elif pa.types.is_date(kind):
            candidates = _is_in(values, list(self.dates))
        elif pa.types.is_timestamp(kind):
            candidates = _of_instants(values, self.instants)
        elif _is_binary(kind):
            candidates = _present(values)
        else:
            raise Unsearchable(f"its type {kind} cannot be compared with keys")
        return self._verified(values, candidates, normalize)

    def _verified(
        self, values: pa.Array, candidates: pa.Array, normalize: str
    ) -> list[tuple[int, Positions]]:
        """Return the candidates that are keys, by the definition for Python values."""
        from pyarrow import compute as pc

        indices = pc.indices_nonzero(pc.fill_null(candidates, False))
        if not len(indices):
            return []
        picked = values.take(indices)
        cache: dict[object, Positions] = {}
        verified = []
        for index, value in zip(indices.to_pylist(), picked.to_pylist(), strict=True):
            if value not in cache:
                cache[value] = self.matching(value, normalize)
            if cache[value]:
                verified.append((index, cache[value]))
        return verified

    def _texts(self, values: pa.Array, normalize: str) -> pa.Array:
        """Return which texts may be keys. ASCII is compared by Arrow, other texts by `normalized`."""
        from pyarrow import compute as pc

        texts = list(self.spelled(normalize))
        if normalize == EXACT:
            return _is_in(values, texts)
        if normalize == TEXT:
            plain = pc.ascii_lower(pc.ascii_trim(values, characters=_BLANK))
            odd = pc.invert(pc.string_is_ascii(plain))
            # A text with a space inside is only one of the keys if a key has one.
            if any(" " in text for text in texts):
                odd = pc.or_(odd, pc.match_substring_regex(plain, _INNER))
            else:
                odd = pc.or_(odd, pc.match_substring(plain, "\x00"))
        else:
            digits = pc.replace_substring_regex(values, "[^0-9]+", "")
            plain = pc.replace_substring_regex(digits, phone_prefix(normalize), "")
            odd = pc.invert(pc.string_is_ascii(values))
        return pc.or_(_is_in(plain, texts), odd)

    def _numbers(self, values: pa.Array, normalize: str) -> pa.Array:
        import pyarrow as pa
        from pyarrow import compute as pc

        kind = values.type
        if normalize.startswith(PHONE):
            return _present(values)
        if pa.types.is_floating(kind):
            # A key is the float nearest to it.
            return _is_in(pc.cast(values, pa.float64()), [_nearest(number, kind) for number in self.numbers])
        fitting = []
        for number in self.numbers:
            try:
                value = int(number) if pa.types.is_integer(kind) and number == int(number) else number
                fitting.append(pa.scalar(value, kind).as_py())
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
                continue  # the column cannot hold this number
        return _is_in(values, fitting)


def _nearest(number: Decimal, kind: pa.DataType) -> float:
    import pyarrow as pa

    return float(pa.scalar(float(number), kind).as_py())


def _grouped(pairs: Iterator[tuple[Any, int]]) -> dict[Any, Positions]:
    grouped: dict[Any, Positions] = {}
    for value, position in pairs:
        grouped[value] = (*grouped.get(value, ()), position)
    return grouped


def _merged(*positions: Positions) -> Positions:
    return tuple(sorted({position for part in positions for position in part}))


def _number(key: str) -> Decimal | None:
    text = normalized(key, TEXT)
    if not re.fullmatch(rf"[-+]?[0-9]{{1,{_MOST_DIGITS}}}(\.[0-9]{{1,{_MOST_DIGITS}}})?", text, re.ASCII):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _date(key: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(normalized(key, TEXT))
    except ValueError:
        return None


def _instant(key: str) -> dt.datetime | None:
    try:
        return _in_utc(dt.datetime.fromisoformat(normalized(key, TEXT).upper()))
    except (ValueError, OverflowError):
        return None


def _in_utc(moment: dt.datetime) -> dt.datetime:
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in ("string", "large_string")


def _is_binary(kind: pa.DataType) -> bool:
    return str(kind).partition("[")[0] in ("binary", "large_binary", "fixed_size_binary")


def _is_in(values: pa.Array, values_to_find: Sequence[object]) -> pa.Array:
    import pyarrow as pa
    from pyarrow import compute as pc

    return pc.is_in(values, value_set=pa.array(values_to_find, values.type))


def _present(values: pa.Array) -> pa.Array:
    from pyarrow import compute as pc

    return pc.is_valid(values)


def _of_instants(values: pa.Array, instants: Mapping[dt.datetime, Positions]) -> pa.Array:
    import pyarrow as pa
    from pyarrow import compute as pc

    zone = values.type.tz
    values_to_find = [moment if zone else moment.replace(tzinfo=None) for moment in instants]
    coarse = pc.cast(values, pa.timestamp("us", zone), safe=False)
    return pc.is_in(coarse, value_set=pa.array(values_to_find, coarse.type))


def _of_dictionary(
    values: pa.DictionaryArray, matches: list[tuple[int, Positions]]
) -> list[tuple[int, Positions]]:
    import pyarrow as pa
    from pyarrow import compute as pc

    by_code = dict(matches)
    if not by_code:
        return []
    codes = values.indices
    mask = pc.fill_null(pc.is_in(codes, value_set=pa.array(list(by_code), codes.type)), False)
    indices = pc.indices_nonzero(mask)
    return [
        (index, by_code[code])
        for index, code in zip(indices.to_pylist(), codes.take(indices).to_pylist(), strict=True)
    ]
