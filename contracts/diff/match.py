"""Which element of the old contract is which of the new: by stable id first, by name last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dq.contracts.diff.element import FlatElement


@dataclass(frozen=True, slots=True)
class Pairs:
    """Siblings matched up; `same` has (old, new), the others have no counterpart. All in file order."""

    same: list[tuple[FlatElement, FlatElement]]
    removed: list[FlatElement]
    added: list[FlatElement]


def pair(before: Sequence[FlatElement], after: Sequence[FlatElement]) -> Pairs:
    """Siblings of one kind matched by their keys: every element by its surest key, then by the next.

    A key that several elements share on a side matches them in file order, except the ids, of which
    twins are a mistake that the gate reports. `renamedFrom` is matched against the old column or name.
    """
    partner: dict[int, int] = {}
    taken: set[int] = set()
    names = _key_names(before, after)
    for name in names:
        index: dict[str, list[int]] = {}
        for number, element in enumerate(before):
            if number not in partner:
                for text in _old_texts(element, name):
                    index.setdefault(text, []).append(number)
        for number, element in enumerate(after):
            text = _key(element, name)
            if number in taken or not text:
                continue
            found = next((old for old in index.get(text, ()) if old not in partner), None)
            if found is not None:
                partner[found] = number
                taken.add(number)
    same = [(before[old], after[partner[old]]) for old in range(len(before)) if old in partner]
    removed = [element for number, element in enumerate(before) if number not in partner]
    added = [element for number, element in enumerate(after) if number not in taken]
    return Pairs(same, removed, added)


def _key_names(before: Sequence[FlatElement], after: Sequence[FlatElement]) -> list[str]:
    """The keys in the order of trust; an element without one of them does not take part in that step."""
    names: list[str] = []
    for element in (*before, *after):
        for name, _ in element.keys:
            if name not in names:
                names.append(name)
        if names:
            break
    return names


def _key(element: FlatElement, name: str) -> str:
    return next((text for key, text in element.keys if key == name), "")


def _old_texts(element: FlatElement, name: str) -> list[str]:
    if name == "renamedFrom":
        return [text for key, text in element.keys if key in ("column", "name") and text]
    text = _key(element, name)
    return [text] if text else []
