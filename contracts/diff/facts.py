"""The facts that differ between two contracts, in the order of the new file, with both places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from dq.contracts.diff import promises
from dq.contracts.diff.element import Change, ElementKind, FlatElement, Motion, Value
from dq.contracts.diff.promises import Fires, PromisedLevel, Timing

# Which element of the old contract is which of the new: by stable id first, by name last.


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


_KEYED_BY_COLUMN = (
    ElementKind.OBJECT,
    ElementKind.PROPERTY,
    ElementKind.SERVER,
    ElementKind.ROLE,
    ElementKind.SUPPORT,
    ElementKind.SLA,
)


def changes(old: FlatElement, new: FlatElement, start: date) -> Iterator[Change]:
    """What differs between two contracts in normal form. Schedules are compared over the year from `start`.

    There is nothing between two files that say the same in other words.
    """
    yield from _values(old, new, start)
    for kind in ElementKind:
        first, second = old.of(kind), new.of(kind)
        if first or second:
            pairs = pair(first, second)
            if kind is ElementKind.PROPERTY:
                yield from _order(old, new, pairs)
            yield from _siblings(old, new, kind, pairs, start)


def _siblings(
    old: FlatElement, new: FlatElement, kind: ElementKind, pairs: Pairs, start: date
) -> Iterator[Change]:
    removed, added, moved = pairs.removed, pairs.added, []
    if kind is ElementKind.PROPERTY and not old.nested:
        moved = _moved(old, new, removed, added)
        gone = {id(change.old) for change in moved}
        come = {id(change.new) for change in moved}
        removed = [element for element in removed if id(element) not in gone]
        added = [element for element in added if id(element) not in come]
    for first, second in pairs.same:
        yield from _named(first, second)
        yield from changes(_renamed(first, second), second, start)
    yield from moved
    hint = _hint(removed, added)
    for element in removed:
        if not element.quiet:
            facts = {"last": element is old.of(kind)[-1], "hint": hint}
            yield _whole(Motion.REMOVED, element, None, new, facts)
    survivors = {id(second) for _, second in pairs.same}
    for element in added:
        if not element.quiet:
            facts = {
                "middle": _followed(new.of(kind), element, survivors),
                "reused": any(one.column == element.column for one in old.of(kind)),
            }
            yield _whole(Motion.ADDED, None, element, old, facts)


def _renamed(old: FlatElement, new: FlatElement) -> FlatElement:
    """The old element with its own keys and partition in the names that its columns have now.

    A renamed column is one finding; it must not change the key that it is part of as well.
    """
    if old.kind is not ElementKind.OBJECT:
        return old
    pairs = pair(old.of(ElementKind.PROPERTY), new.of(ElementKind.PROPERTY)).same
    names = {first.column: second.column for first, second in pairs if first.column != second.column}
    if not names and old.column == new.column:
        return old
    found = dict(old.values)
    for key in ("primaryKey", "partition"):
        value = found.get(key)
        if value is not None and isinstance(value.normal, tuple):
            found[key] = replace(value, normal=tuple(_renamed_item(item, names) for item in value.normal))
    return replace(old, values=found)


def _renamed_item(item: object, names: dict[str, str]) -> object:
    if isinstance(item, tuple):
        return (names.get(str(item[0]), item[0]), *item[1:])
    return names.get(str(item), item)


def _named(old: FlatElement, new: FlatElement) -> Iterator[Change]:
    """The name in the data and the stable id as attributes of their own.

    An id that is given or taken away is no change: the name still says who it is.
    """
    ids = dict(old.keys).get("id"), dict(new.keys).get("id")
    if ids[0] and ids[1] and ids[0] != ids[1]:
        yield _renaming(old, new, "id", ids)
    if old.kind in _KEYED_BY_COLUMN and old.column != new.column:
        yield _renaming(old, new, "column", (old.column, new.column))


def _renaming(old: FlatElement, new: FlatElement, attribute: str, names: tuple[object, object]) -> Change:
    facts: dict[str, object] = {"shown_before": names[0], "shown_after": names[1]}
    ends = (old.at, new.at, new.pointer, old, new)
    return Change(old.kind, attribute, Motion.CHANGED, old.path, names[0], names[1], *ends, facts)


def _values(old: FlatElement, new: FlatElement, start: date) -> Iterator[Change]:
    for key in (*new.values, *(key for key in old.values if key not in new.values)):
        first, second = old.values.get(key), new.values.get(key)
        if key.startswith("delivery.") and ("delivery" in old.values) != ("delivery" in new.values):
            # Terms of a delivery that comes or goes are told by its coming or going.
            continue
        facts = _relation(first, second, start)
        if facts is None:
            continue
        action = Motion.ADDED if first is None else Motion.REMOVED if second is None else Motion.CHANGED
        yield Change(
            new.kind,
            key,
            action,
            new.path,
            first.normal if first else None,
            second.normal if second else None,
            first.at if first else old.at,
            second.at if second else new.at,
            second.pointer if second and second.pointer else new.pointer,
            old,
            new,
            facts,
        )


def _relation(first: Value | None, second: Value | None, start: date) -> dict[str, object] | None:
    """How two values differ, with what only their normal forms can tell; None where they do not."""
    if first is None or second is None:
        return {}
    before, after = first.normal, second.normal
    if isinstance(before, PromisedLevel) and isinstance(after, PromisedLevel):
        order = promises.compare_levels(before, after)
        return None if order == 0 else {"order": order}
    if isinstance(before, Timing) and isinstance(after, Timing):
        fires = promises.compare_timings(before, after, start)
        return None if fires is Fires.SAME else {"fires": fires}
    return None if before == after else {}


def _whole(
    action: Motion,
    old: FlatElement | None,
    new: FlatElement | None,
    other: FlatElement,
    facts: dict[str, object],
) -> Change:
    """An element that came or went; on the side where it is not, it stands at its nearest parent."""
    element = new or old
    assert element is not None
    return Change(
        element.kind,
        "",
        action,
        element.path,
        None,
        None,
        old.at if old else other.at,
        new.at if new else other.at,
        new.pointer if new else other.pointer,
        old,
        new,
        facts,
    )


def _order(old: FlatElement, new: FlatElement, pairs: Pairs) -> Iterator[Change]:
    """Whether the columns that stayed stand in another order."""
    position = {id(element): number for number, element in enumerate(new.of(ElementKind.PROPERTY))}
    stayed = [position[id(second)] for _, second in pairs.same]
    if all(first < second for first, second in pairwise(stayed)):
        return
    before = [first.column for first, _ in pairs.same]
    after = [second.column for _, second in sorted(pairs.same, key=lambda one: position[id(one[1])])]
    facts: dict[str, object] = {"shown_before": before, "shown_after": after, "added": bool(pairs.added)}
    ends = (old.at, new.at, new.pointer, old, new)
    yield Change(new.kind, "order", Motion.CHANGED, new.path, tuple(before), tuple(after), *ends, facts)


def _followed(siblings: Sequence[FlatElement], added: FlatElement, survivors: set[int]) -> bool:
    """Whether a column that was there before stands behind the added one."""
    place = next(number for number, element in enumerate(siblings) if element is added)
    return any(id(element) in survivors for element in siblings[place + 1 :])


def _moved(
    old: FlatElement, new: FlatElement, removed: Sequence[FlatElement], added: Sequence[FlatElement]
) -> list[Change]:
    """Properties of an object that went from one level to another: into a struct, or out of one."""
    gone = [inner for element in removed for inner in element.walk()]
    come = [inner for element in added for inner in element.walk()]
    stayed = [inner for element in new.of(ElementKind.PROPERTY) for inner in element.walk()]
    left = [inner for element in old.of(ElementKind.PROPERTY) for inner in element.walk()]
    paths_before, paths_after = {one.path for one in left}, {one.path for one in stayed}
    come_anywhere = come or [inner for inner in stayed if inner.path not in paths_before]
    gone_anywhere = gone or [inner for inner in left if inner.path not in paths_after]
    found: list[Change] = []
    used: set[int] = set()
    for first in gone_anywhere if come else gone:
        match = next(
            (
                second
                for second in (come_anywhere if gone else come)
                if id(second) not in used and _same_elsewhere(first, second)
            ),
            None,
        )
        if match is not None:
            used.add(id(match))
            facts: dict[str, object] = {"shown_before": first.path, "shown_after": match.path}
            found.append(replace(_whole(Motion.MOVED, first, match, new, facts), path=first.path))
    return found


def _same_elsewhere(first: FlatElement, second: FlatElement) -> bool:
    if first.nested == second.nested or first.column != second.column or first.column[0] in "[{":
        return False
    types = ("physicalType", "logicalType")
    return all(first.normal(key) == second.normal(key) for key in types)


def _hint(removed: Sequence[FlatElement], added: Sequence[FlatElement]) -> str:
    """The new name of what looks like a rename: one column went and one like it came. Never a verdict."""
    if (
        len(removed) != 1
        or len(added) != 1
        or removed[0].kind not in (ElementKind.PROPERTY, ElementKind.OBJECT)
    ):
        return ""
    first, second = removed[0], added[0]
    alike = ("physicalType", "logicalType", "required", "classification")
    if any(first.normal(key) != second.normal(key) for key in alike):
        return ""
    described = first.normal("description") is not None
    if described and first.normal("description") == second.normal("description"):
        return second.column
    return second.column if _similar(first.column, second.column) else ""


def _similar(first: str, second: str) -> bool:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, first.lower(), second.lower()).ratio() >= 0.6
