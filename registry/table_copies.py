"""Likely copies among many tables, by their columns and by what metadata says of their rows.

Only tables that share a rare column, or a rare bound of a column, are compared, so that the work does not
grow with the square of their number.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

COLUMNS = 0.65
"""Share of common columns, by name and type, from which two tables have nearly the same columns."""
# Share of equal minima and maxima that shows the same rows, and with fewer common columns than _SIMILAR.
_BOUNDS, _STRICT_BOUNDS = 0.6, 0.8
_SIMILAR = 0.8
_ROWS = 0.05
_MIN_COLUMNS = 3
# Tables with the same column, or the same bound, that are compared with each other.
_MAX_SHARED = 200
# A group of so many tables is compared pair by pair.
_SMALL = 20
_WORD = re.compile(r"[a-z]+|\d+")
# Words in the name of a copy that its original does not have.
_COPY_WORDS = frozenset({
    "copy", "backup", "bak", "bkp", "old", "new", "tmp", "temp", "test", "dev", "stg", "staging", "snapshot",
    "archive", "clone", "orig", "final", "export", "dump", "mirror", "replica", "sandbox", "v", "of", "the",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableSketch:
    """Properties by which two tables are compared.

    `name` is the table's and that of its database or folder. `columns` are name and type of each column.
    `rows` is None if unknown. `bounds` has a digest of the minimum and of the maximum by column, and is empty
    without footers. `sizes` are the sizes of all files, in order.
    """

    name: str
    format: str
    columns: frozenset[str]
    rows: int | None = None
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()

    @property
    def limits(self) -> frozenset[str]:
        """The bounds as a set."""
        return frozenset(
            f"{column} {side} {text}"
            for column, pair in self.bounds.items()
            for side, text in zip(("min", "max"), pair, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Copy:
    """A likely copy: positions of the two tables, and the evidence in words."""

    original: int
    copy: int
    evidence: str


def find_copies(tables: Sequence[TableSketch]) -> list[Copy]:
    """Return the likely copies; of two tables, the one that comes first is the original.

    A copy of several tables is shown with the first one. Tables with fewer than three columns are left out.
    """
    candidates: dict[int, set[int]] = defaultdict(set)
    for first, second in _candidates(tables):
        candidates[max(first, second)].add(min(first, second))
    copies: dict[int, Copy] = {}
    for number in sorted(candidates):
        for original in sorted(candidates[number]):
            if original in copies:
                continue
            evidence = _evidence(tables[original], tables[number])
            if evidence:
                copies[number] = Copy(original, number, evidence)
                break
    return list(copies.values())


def _candidates(tables: Sequence[TableSketch]) -> Iterator[tuple[int, int]]:
    """Yield pairs with nearly the same columns that may have the same rows."""
    by_columns: dict[frozenset[str], list[int]] = defaultdict(list)
    for number, table in enumerate(tables):
        if len(table.columns) >= _MIN_COLUMNS:
            by_columns[table.columns].append(number)
    distinct = list(by_columns)
    groups: list[list[int]] = list(by_columns.values())
    for first, second in _similar_pairs(distinct, COLUMNS):
        groups.append([*by_columns[distinct[first]], *by_columns[distinct[second]]])
    for group in groups:
        if len(group) > 1:
            yield from _same_rows(tables, group)


def _same_rows(tables: Sequence[TableSketch], group: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of a group with similar bounds, the same files, or similar names."""
    if len(group) <= _SMALL:
        yield from ((first, second) for index, first in enumerate(group) for second in group[index + 1 :])
        return
    # Tables with the same content are compared with the first one only.
    by_limits: dict[frozenset[str], list[int]] = defaultdict(list)
    for number in group:
        if tables[number].bounds:
            by_limits[tables[number].limits].append(number)
    for numbers in by_limits.values():
        yield from ((numbers[0], number) for number in numbers[1:])
    limits = list(by_limits)
    for first, second in _similar_pairs(limits, _BOUNDS):
        yield by_limits[limits[first]][0], by_limits[limits[second]][0]
    keys: tuple[Callable[[TableSketch], object], ...] = (
        lambda table: (table.format, table.sizes) if table.sizes else None,
        lambda table: base_name(table.name),
    )
    for key in keys:
        by_key: dict[object, list[int]] = defaultdict(list)
        for number in group:
            if (value := key(tables[number])) is not None:
                by_key[value].append(number)
        for numbers in by_key.values():
            yield from ((numbers[0], number) for number in numbers[1:])


def _similar_pairs(sets: Sequence[frozenset[str]], share: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sets whose Jaccard similarity is at least `share`.

    Two such sets have one of their rarest elements in common (prefix filtering: Chaudhuri et al., "A
    primitive operator for similarity joins", 2006), so only those are indexed.
    """
    frequency = Counter(element for elements in sets for element in elements)
    index: dict[str, list[int]] = defaultdict(list)
    for number in sorted(range(len(sets)), key=lambda position: len(sets[position])):
        elements = sets[number]
        rarest = sorted(elements, key=lambda element: (frequency[element], element))
        prefix = rarest[: len(elements) - _at_least(share, len(elements)) + 1]
        candidates: set[int] = set()
        for element in prefix:
            candidates.update(index[element][-_MAX_SHARED:])
            index[element].append(number)
        for other in candidates:
            common = len(elements & sets[other])
            if common >= share * (len(elements) + len(sets[other]) - common):
                yield other, number


def _at_least(share: float, count: int) -> int:
    """Return the smallest number of common elements that a set of this size needs."""
    return max(1, -int(-share * count // 1))


def _evidence(first: TableSketch, second: TableSketch) -> str:
    """Return why a table is a likely copy of another, or ""."""
    common, union = len(first.columns & second.columns), len(first.columns | second.columns)
    if common < COLUMNS * union:
        return ""
    text = f"{common} of {union} columns"
    if first.format == second.format and first.sizes and first.sizes == second.sizes:
        return f"{text}, files of the same sizes"
    shared = first.bounds.keys() & second.bounds.keys()
    if first.rows is not None and second.rows is not None and len(shared) >= _MIN_COLUMNS:
        equal = sum(_equal(first.bounds[name], second.bounds[name]) for name in shared)
        is_close = abs(first.rows - second.rows) <= _ROWS * max(first.rows, second.rows)
        needed = _BOUNDS if common >= _SIMILAR * union else _STRICT_BOUNDS
        if not is_close or not first.rows or equal < needed * 2 * len(shared):
            return ""
        rows = "the same number of" if first.rows == second.rows else f"{second.rows:,} and {first.rows:,}"
        return f"{text}, {rows} rows, {equal} of {2 * len(shared)} equal minima and maxima"
    if first.rows is not None and second.rows is not None and first.rows != second.rows:
        return ""
    # Without footers on both sides only the names are left, e.g. `sales/orders` and `sales/orders_old`.
    name = base_name(first.name)
    if common == union and name and first.name != second.name and name == base_name(second.name):
        return f"{text}, similar names"
    return ""


def _equal(first: tuple[str, str], second: tuple[str, str]) -> int:
    return (first[0] == second[0]) + (first[1] == second[1])


def base_name(name: str) -> str | None:
    """Return a table's name without words such as `copy`; None if nothing remains."""
    words = [word for word in _WORD.findall(name.lower()) if word not in _COPY_WORDS]
    return "_".join(words) or None


def columns_of(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the columns of a sketch from names and types."""
    return frozenset(f"{name.lower()} {kind}" for name, kind in pairs)
