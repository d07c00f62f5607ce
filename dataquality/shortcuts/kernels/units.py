"""Which files one task has to see together, so that no key can stand in the files of two tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dq.dataquality.model.column import Column
from dq.dataquality.shortcuts.statistics.facts import Facts, File

# A task holds the keys of its files in memory: so many rows of two long integers are 160 MB.
MOST_ROWS = 10_000_000

Unit = tuple[File, ...]


@dataclass(frozen=True, slots=True)
class Apart:
    """Groups of files such that every key stands in one of them, unless its `column` has a `shared` value.

    Tables that are sorted and cut into files share the value at each cut. Grouping all that touch would make
    one group of a long table.
    """

    units: tuple[Unit, ...]
    column: str = ""
    shared: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Span:
    file: File
    least: Any
    greatest: Any


def units(files: Sequence[File], key: Sequence[Column]) -> Apart | None:
    """The files in groups by the ranges of some column of the key, which overlap in single values at most.

    None where no column has known ranges, or a group would be too large for a task.
    """
    for column in key:
        made = _apart(files, column)
        if made is not None and all(sum(file.rows for file in unit) <= MOST_ROWS for unit in made.units):
            return made
    return None


def _apart(files: Sequence[File], column: Column) -> Apart | None:
    spans, keyless = [], []
    for file in files:
        facts = file.of(column)
        # Rows with a NULL in the key repeat nothing.
        if facts.nulls == file.rows:
            keyless.append((file,))
            continue
        ends = _ends(facts)
        if ends is None:
            return None
        spans.append(_Span(file, *ends))
    spans.sort(key=lambda span: span.least)
    groups: list[list[File]] = []
    shared: dict[Any, None] = {}
    begin: Any = None
    reach: Any = None
    for span in spans:
        # Where a file has one value only, or the group has, the shared rows would be all of its rows.
        touching = bool(groups) and begin < reach and span.least == reach and span.least < span.greatest
        if touching:
            shared[reach] = None
        if groups and span.least <= reach and not touching:
            groups[-1].append(span.file)
            reach = max(reach, span.greatest)
        else:
            groups.append([span.file])
            begin, reach = span.least, span.greatest
    return Apart((*map(tuple, groups), *keyless), str(column.steps[0]), tuple(shared))


def joined(one: Sequence[Unit], other: Sequence[Unit]) -> tuple[Unit, ...] | None:
    """Units in which the files of each unit of both stand together; None where one would be too large."""
    groups: dict[str, list[File]] = {}
    for unit in (*one, *other):
        together: dict[str, File] = {}
        for file in unit:
            together |= {each.path: each for each in groups.get(file.path, [file])}
        group = list(together.values())
        groups |= dict.fromkeys(together, group)
    made = {id(group): tuple(group) for group in groups.values()}
    fits = all(sum(file.rows for file in unit) <= MOST_ROWS for unit in made.values())
    return tuple(made.values()) if fits else None


def _ends(facts: Facts) -> tuple[Any, Any] | None:
    if facts.least is not None and facts.greatest is not None:
        return facts.least, facts.greatest
    if facts.values is not None and len(facts.values) == 1:
        (value,) = facts.values
        return value, value
    return None
