"""From subscriptions to the grants that they ask for, and from classifications to the tags of columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from dq.contracts.model import Contract
from dq.contracts.subscriptions.coverage import covered
from dq.contracts.subscriptions.subscription import Subscription
from dq.registry.lake_formation.steps import FILTERED, DataFilter, GrantKey
from dq.registry.table import CONTRACT, CONTRACT_VERSION, OBJECT, Key, TableSpec


@dataclass(slots=True)
class WantedGrants:
    """What subscriptions ask for: columns and asking files by key, and the data filters by their names."""

    columns: dict[GrantKey, set[str]] = field(default_factory=dict)
    files: dict[GrantKey, set[str]] = field(default_factory=dict)
    filters: dict[str, DataFilter] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, key: GrantKey, columns: Iterable[str], file: str) -> None:
        """One more subscription that asks for these columns."""
        self.columns.setdefault(key, set()).update(columns)
        self.files.setdefault(key, set()).add(file)


def wanted_grants(
    subscriptions: Iterable[Subscription],
    contracts: Iterable[Contract],
    tables: Mapping[Key, TableSpec],
    today: date | None = None,
) -> WantedGrants:
    """The grants that the subscriptions ask for, on these tables; with a day, those that hold then.

    Several of one principal are added up. Columns are always named one by one, so that one that is added to
    the contract is given to nobody who has not asked for it. Who names neither account nor principal is
    given nothing.
    """
    made = WantedGrants()
    by_identity = {one.identity: one for one in contracts}
    by_object = {
        (spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION), spec.parameter(OBJECT)): spec
        for spec in tables.values()
    }
    for one in subscriptions:
        contract = by_identity.get(one.identity)
        if contract is None or not (today is None or one.active(today)):
            continue
        if not one.reader:
            made.notes.append(f"{one.file} names no account: nothing is given to {one.consumer.team}.")
            continue
        for part in covered(one, contract):
            spec = by_object.get((contract.id, contract.version, part.object.name))
            if spec is not None and part.fields:
                # The whole column would show what nobody asked for and nobody approved.
                named = ", ".join(part.fields)
                said = f"only whole columns can be given, and {named} is a part of one."
                made.notes.append(f"{one.file}: {said}")
            columns = tuple(name.lower() for name in part.columns)
            if spec is None or not columns:
                continue
            if one.row_filter is None:
                made.add(GrantKey(*spec.key, one.reader), columns, one.file)
            else:
                expression = _expression(one.row_filter, ended=today is None)
                if expression is None:
                    made.notes.append(f"{one.file}: its row filter cannot be applied, so nothing is given.")
                    continue
                made_filter = _filter(spec.key, one.reader, expression, columns)
                made.filters[made_filter.name] = made_filter
                made.add(GrantKey(*spec.key, one.reader, made_filter.name), (FILTERED,), one.file)
    return made


def _expression(text: str, *, ended: bool) -> str | None:
    """The filter as Lake Formation is to read it, written anew: nothing of the stranger's text is sent.

    None where it is refused; of what has ended, the text by which an earlier dq named its filter.
    """
    # The parser of SQL takes time to start, and few subscriptions filter rows.
    from dq.contracts.escaping.row_filter import guarded_filter
    from dq.contracts.sql.guard import Guarded

    guarded = guarded_filter(text)
    if isinstance(guarded, Guarded):
        return guarded.sql
    return text.strip() if ended else None


def _filter(on: Key, reader: str, expression: str, columns: tuple[str, ...]) -> DataFilter:
    told = "\0".join((*on, reader, expression, *columns))
    return DataFilter(*on, f"dq_{hashlib.sha256(told.encode()).hexdigest()[:16]}", expression, columns)


def wanted_tags(contracts: Iterable[Contract], tables: Mapping[Key, TableSpec]) -> dict[Key, dict[str, str]]:
    """The classification of each classified column, in lower case, by table."""
    found: dict[Key, dict[str, str]] = {}
    by_version = {(one.id, one.version): one for one in contracts}
    for key, spec in tables.items():
        contract = by_version.get((spec.parameter(CONTRACT), spec.parameter(CONTRACT_VERSION)))
        one = contract.object(spec.parameter(OBJECT)) if contract is not None else None
        if one is None:
            continue
        found[key] = {
            prop.column.lower(): " ".join(prop.classification.lower().split())
            for prop in one.properties
            if prop.classification and prop.classification.strip()
        }
    return found
