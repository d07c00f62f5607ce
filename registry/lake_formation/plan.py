"""What Lake Formation lacks to be as contracts and subscriptions say. Reads, and writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dq.registry.lake_formation.ledger import NotedGrant, noted_grants, noted_tags
from dq.registry.lake_formation.port import EVERYBODY, LakeFormation, LiveGrants
from dq.registry.lake_formation.steps import (
    DefineTag,
    DropFilter,
    Give,
    GrantKey,
    LakePlan,
    LakeStep,
    MakeFilter,
    RegisterLocation,
    TagColumns,
    TakeBack,
    UntagColumns,
)
from dq.registry.lake_formation.wanted import WantedGrants
from dq.registry.table import Key, fold_location
from dq.store.engine import Store


@dataclass(frozen=True, slots=True)
class LakeTerms:
    """What is to be kept in step; None is left alone.

    `places` are the locations of the tables of this run, by key: what dq gave on others is not looked at.
    `unclear` are subscription files, and folders of them, that nobody can understand now: what they asked
    for stays. `ended` is what subscriptions asked for that are over. `behind` are tables that are not as
    their contracts say, because the change was refused or failed: nothing is given on them.
    """

    places: Mapping[Key, str]
    locations: tuple[str, ...] | None = None
    role: str = ""
    tag: str = ""
    tags: Mapping[Key, Mapping[str, str]] | None = None
    grants: WantedGrants | None = None
    ended: WantedGrants = field(default_factory=WantedGrants)
    unclear: frozenset[str] = frozenset()
    behind: frozenset[Key] = frozenset()


def plan_lake(lake: LakeFormation, store: Store, catalog: str, terms: LakeTerms) -> LakePlan:
    """The steps in their order: locations, tags, what is given, what is taken back.

    `catalog` is the id under which the store keeps what dq did there. Raises Unreadable when AWS does not
    answer.
    """
    steps: list[LakeStep] = []
    notes: list[str] = []
    spent: list[TakeBack] = []
    asking: tuple[tuple[GrantKey, frozenset[str]], ...] = ()
    if terms.locations is not None:
        registered = lake.locations()
        steps += _locations(registered, terms)
        notes += _uncovered([*registered, *terms.locations], terms)
    if terms.tags is not None:
        steps += _tags(lake, store, catalog, terms, terms.tags)
    if terms.grants is not None:
        more = _grants(lake, noted_grants(store, catalog), terms, terms.grants)
        steps += more.steps
        notes += [*terms.grants.notes, *more.notes]
        spent, asking = [*more.spent], more.asking
    return LakePlan(tuple(steps), tuple(dict.fromkeys(notes)), tuple(spent), asking)


def _locations(registered: list[str], terms: LakeTerms) -> Iterator[RegisterLocation]:
    there = list(registered)
    # The shorter first: it covers what lies below.
    for location in sorted({fold_location(one) for one in terms.locations or ()}, key=len):
        if not _covered(location, there):
            there.append(location)
            yield RegisterLocation(location, terms.role)


def _uncovered(locations: list[str], terms: LakeTerms) -> Iterator[str]:
    for (database, table), place in sorted(terms.places.items()):
        if place.startswith("s3://") and not _covered(place, locations):
            yield f"{database}.{table} lies at {place}, under no location of Lake Formation."


def _covered(location: str, there: list[str]) -> bool:
    wanted = fold_location(location) + "/"
    return any(wanted.startswith(fold_location(one) + "/") for one in there)


def _tags(
    lake: LakeFormation,
    store: Store,
    catalog: str,
    terms: LakeTerms,
    wanted: Mapping[Key, Mapping[str, str]],
) -> Iterator[LakeStep]:
    values = {value for columns in wanted.values() for value in columns.values()}
    defined = lake.tag_values(terms.tag) if values else None
    missing = tuple(sorted(values - set(defined or ())))
    if missing:
        yield DefineTag(terms.tag, missing, new=defined is None)
    noted = noted_tags(store, catalog, terms.tag)
    removed: list[UntagColumns] = []
    for on, columns in sorted(wanted.items()):
        ours = noted.get(on, frozenset())
        if not columns and not ours:
            continue
        live = lake.column_tags(on, terms.tag)
        by_value: dict[str, list[str]] = defaultdict(list)
        for column, value in sorted(columns.items()):
            if live.get(column) != value:
                by_value[value].append(column)
        for value, named in sorted(by_value.items()):
            yield TagColumns(on, terms.tag, value, tuple(named))
        gone: dict[str, list[str]] = defaultdict(list)
        for column in sorted((ours - columns.keys()) & live.keys()):
            gone[live[column]].append(column)
        removed += (UntagColumns(on, terms.tag, value, tuple(named)) for value, named in sorted(gone.items()))
    yield from removed


def _grants(
    lake: LakeFormation, noted: Mapping[GrantKey, NotedGrant], terms: LakeTerms, wanted: WantedGrants
) -> LakePlan:
    ours = {key: one for key, one in noted.items() if key.on in terms.places}
    keys = wanted.columns.keys() | ours.keys()
    live = {on: lake.grants(on) for on in sorted({key.on for key in keys | terms.ended.columns.keys()})}
    lacking = {key: _lacking(key, live, wanted) for key in keys}
    # Who is to get something else in place of what the table still has keeps the old until then.
    waiting = {(key.on, key.principal) for key in keys if lacking[key] and key.on in terms.behind}
    given: list[LakeStep] = []
    taken: list[LakeStep] = []
    notes: list[str] = []
    spent: list[TakeBack] = []
    for key in sorted(keys):
        there = live[key.on].columns.get(key, frozenset())
        asked = frozenset(wanted.columns.get(key, ()))
        mine = ours[key].columns if key in ours else frozenset()
        if lacking[key] and key.on in terms.behind:
            notes.append(f"{key}: nothing is given before the table is as its contract says.")
        elif lacking[key]:
            if key.filter:
                given.append(MakeFilter(wanted.filters[key.filter]))
            given.append(Give(key, lacking[key], tuple(sorted(wanted.files[key]))))
        if asked & there - mine:
            notes.append(f"{key}: SELECT was given by somebody else; dq will not take it back.")
        hidden = _unclear(ours[key].files, terms) if key in ours else []
        if hidden or (key.on, key.principal) in waiting:
            if mine - asked:
                why = f"{hidden[0]} cannot be understood" if hidden else "what replaces it is not given yet"
                notes.append(f"{key}: it stays, because {why}.")
            continue
        why = _why(key, terms)
        if gone := tuple(sorted((mine - asked) & there)):
            taken.append(TakeBack(key, gone, why))
        made = ours[key].filter if key in ours else None
        if made is not None and not asked:
            taken.append(DropFilter(made, key))
        elif over := tuple(sorted((mine - asked) - there)):
            spent.append(TakeBack(key, over, why))
    notes += _left(live, ours, terms, wanted)
    # What cannot be understood is asked for still, and not only until the next run.
    asking = tuple(
        (key, frozenset((*files, *_unclear(ours[key].files if key in ours else (), terms))))
        for key, files in sorted(wanted.files.items())
    )
    return LakePlan((*given, *taken), tuple(notes), tuple(spent), asking)


def _lacking(key: GrantKey, live: Mapping[Key, LiveGrants], wanted: WantedGrants) -> tuple[str, ...]:
    return tuple(sorted(wanted.columns.get(key, set()) - live[key.on].columns.get(key, frozenset())))


def _unclear(files: Iterable[str], terms: LakeTerms) -> list[str]:
    """Those of the files that are unclear, or lie below a folder that is."""
    return sorted(
        file for file in files if any(file == one or file.startswith(f"{one}/") for one in terms.unclear)
    )


def _why(key: GrantKey, terms: LakeTerms) -> str:
    files = sorted(terms.ended.files.get(key, ()))
    return f"{files[0]} is over" if files else "no subscription asks for it"


def _left(
    live: Mapping[Key, LiveGrants],
    ours: Mapping[GrantKey, NotedGrant],
    terms: LakeTerms,
    wanted: WantedGrants,
) -> Iterator[str]:
    """What lets more be read than subscriptions say, and is not dq's to take back."""
    for on, there in sorted(live.items()):
        if EVERYBODY in there.wide:
            yield f"{'.'.join(on)}: {EVERYBODY} has it, so that IAM alone decides who reads it."
        readers = {key.principal for key in wanted.columns if key.on == on}
        for principal in sorted(there.wide & readers):
            yield f"{'.'.join(on)}: somebody else gave {principal} all columns."
    for key, columns in sorted(terms.ended.columns.items()):
        mine = ours[key].columns if key in ours else frozenset()
        asked = wanted.columns.get(key, set())
        if (columns - asked - mine) & live[key.on].columns.get(key, frozenset()):
            file = sorted(terms.ended.files[key])[0]
            yield f"{key}: {file} is over, and dq has no note of having given it. Take it back by hand."
