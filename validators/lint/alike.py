"""Columns of one object with the same fault are one finding, at the line of the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from dq.contracts.shared.counts import counted, first_of
from dq.validators.context import PropertyPlace, Walk
from dq.validators.rule import Fault

_COLUMN = re.compile(r"schema\[\d+\](?:\.properties\[\d+\]|\.items|\.map\.(?:key|value))+")
# As many names as a reader takes in at a glance.
_NAMED = 5
_LONGEST_NAME = 40


class Alike:
    """Gathers the faults of one contract that differ by their column alone."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk

    @cached_property
    def _columns(self) -> dict[str, PropertyPlace]:
        return {one.property.path(): one for one in self._walk.columns}

    def key(self, fault: Fault) -> tuple[str, str]:
        """The same text for faults that are one finding."""
        place = self._place(fault)
        return (fault.kind, place.object.path()) if fault.kind and place else (fault.path, fault.message)

    def merged(self, faults: Sequence[Fault]) -> Fault:
        """One fault for those of one key, in the order of the file."""
        first = faults[0]
        place = self._place(first)
        names = [name for name in dict.fromkeys(self._names(faults)) if place and name != _name(place)]
        if place is None or not names:
            return first
        others = f"{counted(len(names), 'other column')} of {place.object.name!r}"
        message = f"{first.message} The same holds for {others}: {first_of(names, _NAMED)}."
        alike = all(fault.mend == first.mend for fault in faults)
        mend = first.mend if alike else f"{first.mend.rstrip('.')}, and the others likewise."
        return replace(first, message=message, mend=mend)

    def _place(self, fault: Fault) -> PropertyPlace | None:
        match = _COLUMN.match(fault.path)
        return self._columns.get(match[0]) if match else None

    def _names(self, faults: Iterable[Fault]) -> Iterator[str]:
        for fault in faults:
            place = self._place(fault)
            if place is not None:
                yield _name(place)


def _name(place: PropertyPlace) -> str:
    name = place.property.name or place.property.path().rpartition(".")[2]
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
