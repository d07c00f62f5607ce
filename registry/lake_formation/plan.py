"""What Lake Formation lacks to be as contracts and subscriptions say, and how that is carried out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import delete, insert, select

from dq.contracts.shared.outcome import DqError
from dq.registry.diff import StepResult
from dq.registry.lake_formation.client import EVERYBODY, LakeFormation, LiveGrants
from dq.registry.lake_formation.desired import (
    DataFilter,
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
    WantedGrants,
)
from dq.registry.table import Key, fold_location
from dq.registry.tables import lake_grant, lake_tag
from dq.store.engine import Store

# What dq gave in Lake Formation, kept in the store: only this is ever taken back.
#
# A grant is noted before it is given and forgotten after it was taken back, so that a kill in between
# leaves a note without a grant, and never a grant without a note.


@dataclass(frozen=True, slots=True)
class NotedGrant:
    """The columns that dq gave, the subscriptions that asked for it, and the filter behind it, if any."""

    columns: frozenset[str]
    files: frozenset[str]
    filter: DataFilter | None = None


def noted_grants(store: Store, catalog: str) -> dict[GrantKey, NotedGrant]:
    """Every grant that dq gave in this catalog and has not taken back."""
    with store.read() as connection:
        rows = connection.execute(select(lake_grant).where(lake_grant.c.catalog == catalog)).all()
    found = {}
    for row in rows:
        key = GrantKey(row.database_name, row.name, row.principal, row.filter)
        made = None
        if row.filter:
            made = DataFilter(*key.on, row.filter, row.expression, tuple(row.filter_columns))
        found[key] = NotedGrant(frozenset(row.columns), frozenset(row.files), made)
    return found


def note_grant(store: Store, catalog: str, key: GrantKey, noted: NotedGrant | None) -> None:
    """Keeps what dq gave under a key; None, and no columns, forget it."""
    here = {
        "catalog": catalog,
        "database_name": key.database,
        "name": key.table,
        "principal": key.principal,
        "filter": key.filter,
    }
    with store.write() as connection:
        connection.execute(delete(lake_grant).filter_by(**here))
        if noted is not None and noted.columns:
            connection.execute(
                insert(lake_grant).values(
                    **here,
                    columns=sorted(noted.columns),
                    files=sorted(noted.files),
                    expression=noted.filter.expression if noted.filter else "",
                    filter_columns=list(noted.filter.columns) if noted.filter else [],
                )
            )


def noted_tags(store: Store, catalog: str, key: str) -> dict[Key, frozenset[str]]:
    """The columns to which dq gave a value of this tag, by table."""
    query = select(lake_tag).where(lake_tag.c.catalog == catalog, lake_tag.c.tag == key)
    with store.read() as connection:
        rows = connection.execute(query).all()
    return {(row.database_name, row.name): frozenset(row.columns) for row in rows}


def note_tags(store: Store, catalog: str, key: str, on: Key, columns: Collection[str]) -> None:
    """Keeps to which columns of a table dq gave a value of this tag."""
    here = {"catalog": catalog, "tag": key, "database_name": on[0], "name": on[1]}
    with store.write() as connection:
        connection.execute(delete(lake_tag).filter_by(**here))
        if columns:
            connection.execute(insert(lake_tag).values(**here, columns=sorted(columns)))


# What Lake Formation lacks to be as contracts and subscriptions say. Reads, and writes nothing.


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


# Carries a plan for Lake Formation out: in order, idempotent, resumable after a kill at any point.


def apply_lake(lake: LakeFormation, store: Store, catalog: str, plan: LakePlan) -> list[StepResult[LakeStep]]:
    """One result per step, in order. A grant needs its filter, and a filter goes after its grant: else a step
    that fails stops no other, so that nobody's grant outlives its end because of somebody else's.

    What is given is noted before, what is taken back is forgotten after Lake Formation has it no more.
    """
    noted = noted_grants(store, catalog)
    filters = {step.filter.name: step.filter for step in plan.steps if isinstance(step, MakeFilter)}
    asking = dict(plan.asking)
    for one in plan.spent:
        _forget(store, catalog, noted, one)
    for key, files in plan.asking:
        if key in noted and noted[key].files != files:
            noted[key] = replace(noted[key], files=files)
            note_grant(store, catalog, key, noted[key])
    failed: dict[str, DqError] = {}
    results: list[StepResult[LakeStep]] = []
    for step in plan.steps:
        through = _filter_of(step)
        if through in failed:
            error = DqError(f"'{step}' was not tried, because a step before it failed.", failed[through].mend)
            results.append(StepResult(step, error))
            continue
        try:
            if isinstance(step, Give):
                _note(store, catalog, noted, step, asking[step.key], filters.get(step.key.filter))
            if isinstance(step, TagColumns):
                ours = noted_tags(store, catalog, step.key).get(step.on, frozenset())
                note_tags(store, catalog, step.key, step.on, ours | set(step.columns))
            lake.carry_out(step)
            if isinstance(step, TakeBack):
                _expect_gone(lake, step)
                # With a filter behind it, it is remembered until that is gone too.
                if not step.key.filter:
                    _forget(store, catalog, noted, step)
            if isinstance(step, DropFilter):
                note_grant(store, catalog, step.key, None)
            if isinstance(step, UntagColumns):
                ours = noted_tags(store, catalog, step.key).get(step.on, frozenset())
                note_tags(store, catalog, step.key, step.on, ours - set(step.columns))
        except DqError as error:
            if through:
                failed[through] = error
            results.append(StepResult(step, error))
        else:
            results.append(StepResult(step))
    return results


def _filter_of(step: LakeStep) -> str:
    """The name of the data filter that a step is about, which says the table and the reader too; or ""."""
    match step:
        case Give(key) | TakeBack(key):
            return key.filter
        case MakeFilter(made) | DropFilter(made):
            return made.name
    return ""


def _expect_gone(lake: LakeFormation, step: TakeBack) -> None:
    """Whether it was absent before is told by AWS in the words of an invalid request: so it is looked at."""
    if lake.grants(step.key.on).columns.get(step.key, frozenset()) & set(step.columns):
        raise DqError(f"Lake Formation still has what '{step}' takes back.", "Run again, or revoke by hand.")


def _note(
    store: Store,
    catalog: str,
    noted: dict[GrantKey, NotedGrant],
    step: Give,
    files: frozenset[str],
    made: DataFilter | None,
) -> None:
    before = noted.get(step.key, NotedGrant(frozenset(), frozenset()))
    after = NotedGrant(before.columns | set(step.columns), files, made or before.filter)
    if after != before:
        note_grant(store, catalog, step.key, after)
        noted[step.key] = after


def _forget(store: Store, catalog: str, noted: dict[GrantKey, NotedGrant], step: TakeBack) -> None:
    before = noted.get(step.key)
    if before is not None:
        noted[step.key] = replace(before, columns=before.columns - set(step.columns))
        note_grant(store, catalog, step.key, noted[step.key])
