"""Partitions of the lake against those of the catalog: which are missing, and which have no folder any more.

What `MSCK REPAIR TABLE` does in Hive, planned before anything is written, for every catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from dq.contracts.shared.outcome import UsageError
from dq.lake.storage import is_data_name, unescaped
from dq.registry.catalog import Partition
from dq.registry.publishing.publication import partition_values
from dq.registry.table import TableSpec, fold_location

Listing = Callable[[str], Iterable[str]]
"""The names of the folders directly inside a folder."""

# Spark and Hive write so what is NULL or empty: no value of a key.
_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Strange:
    """A folder that is no partition of the table, and why."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What a catalog's table lacks. `gone` are partitions whose folder is not there; they are only told.

    `moved` are folders of partitions that the catalog has at another place, with that place.
    """

    missing: tuple[Partition, ...] = ()
    gone: tuple[Partition, ...] = ()
    moved: tuple[tuple[Partition, str], ...] = ()
    strange: tuple[Strange, ...] = ()


def repair_plan(
    spec: TableSpec, known: Iterable[Partition], inside: Listing, holds_files: Callable[[str], bool]
) -> RepairPlan:
    """How the folders below the table differ from the `known` partitions of the catalog; nothing is written.

    A folder without a file is no partition yet, and one whose value is not of its key's type is none.
    """
    places = {one.values: one.location for one in known}
    missing: list[Partition] = []
    moved: list[tuple[Partition, str]] = []
    strange: list[Strange] = []
    seen: dict[str, str] = {}
    for folder, found in _walk(spec, spec.location, [], inside):
        if isinstance(found, str):
            strange.append(Strange(folder, found))
            continue
        try:
            values = partition_values(spec, dict(found))
        except UsageError as error:
            strange.append(Strange(folder, error.what))
            continue
        twin = seen.setdefault(repr(values), folder)
        place = places.get(values)
        if twin != folder:
            strange.append(Strange(folder, f"it has the values of {twin}"))
        elif place is None and holds_files(folder):
            missing.append(Partition(values, folder))
        elif place is None:
            strange.append(Strange(folder, "it holds no file"))
        elif fold_location(place) != fold_location(folder):
            moved.append((Partition(values, folder), place))
    below = f"{fold_location(spec.location)}/"
    folders = {fold_location(folder) for folder in seen.values()}
    gone = [
        Partition(values, place)
        for values, place in places.items()
        if fold_location(place).startswith(below) and fold_location(place) not in folders
    ]
    return RepairPlan(tuple(missing), tuple(gone), tuple(moved), tuple(strange))


def with_published(
    plan: RepairPlan,
    known: Iterable[Partition],
    published: Iterable[Partition],
    holds_files: Callable[[str], bool],
) -> RepairPlan:
    """The plan with the partitions that were `published` in folders of their own, not below the table.

    One that the catalog has lost is missing, and one whose folder has no file is gone. One that the catalog
    has where it was published is as it should be, whatever lies below the table.
    """
    places = {one.values: fold_location(one.location) for one in known}
    below = {one.values for one in plan.missing}
    elsewhere = {one.values: one for one in published}
    missing = [
        one
        for values, one in elsewhere.items()
        if values not in places and values not in below and holds_files(one.location)
    ]
    kept = [one for one in elsewhere.values() if places.get(one.values) == fold_location(one.location)]
    gone = [one for one in kept if not holds_files(one.location)]
    as_published = {one.values for one in kept}
    moved = tuple(pair for pair in plan.moved if pair[0].values not in as_published)
    return replace(plan, missing=(*plan.missing, *missing), gone=(*plan.gone, *gone), moved=moved)


Pairs = list[tuple[str, str]]


def _walk(spec: TableSpec, folder: str, above: Pairs, inside: Listing) -> Iterator[tuple[str, Pairs | str]]:
    """Each folder at the depth of the keys with its values, and what on the way is none, with the reason."""
    if len(above) == len(spec.partitions):
        yield folder, above
        return
    key = spec.partitions[len(above)].name
    for name in sorted(inside(folder)):
        if not is_data_name(name):
            continue
        way = f"{folder.rstrip('/')}/{name}"
        found, equals, value = name.partition("=")
        if not equals or unescaped(found).lower() != key:
            yield way, f"it is called otherwise than {key}=…"
        elif value == _NULL:
            yield way, f"its {key} is NULL"
        else:
            yield from _walk(spec, way, [*above, (key, unescaped(value))], inside)
