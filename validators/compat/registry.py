"""Two states of a registry, compared: identity is (id, major), so a file that moves is no change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from pathlib import PurePosixPath

from dq.contracts.model import Contract, Identity
from dq.contracts.shared.outcome import Location
from dq.validators.compat.classification.model import Bump, Judgement, Level, Mode, neutral, policy, weaken
from dq.validators.compat.classified_change import ChangePlace, Comparison, Judged, comparison, judged
from dq.validators.compat.comparison import (
    DiffTerms,
    compare_one_sided,
    compare_versions,
    is_enforced,
    judge_removal,
)


@dataclass(frozen=True, slots=True)
class History:
    """What came before the base: older versions, newest first, and since when elements are deprecated."""

    earlier: Sequence[Contract] = ()
    deprecated_since: Mapping[str, date] = field(default_factory=dict)


Recall = Callable[[Contract], History]


Mentions = Callable[[str], Iterable[str]]
"""The files of the new state, read or not, whose text names a file."""


def compare(
    before: Iterable[Contract],
    after: Iterable[Contract],
    terms: DiffTerms,
    *,
    invalid: Iterable[str] = (),
    history: Recall = lambda _: History(),
    mentions: Mentions = lambda _: (),
) -> Comparison:
    """Every contract of the old state against its counterpart in the new one.

    `invalid` are files that cannot be read in the old state; what stands there now is judged as new.
    `history` is asked for the past of each contract that is on both sides, `mentions` for files beside the
    given ones that may name a file which moved. Both states may leave out files
    that are the same on both sides. `required_version` is None unless exactly one contract was compared.
    """
    old, new = _index(before), _index(after)
    found: list[Judged] = []
    required: list[str | None] = []
    for file in invalid:
        found.append(_note(policy("base-invalid", Level.WARN), file, Location(file), terms))
    for key, twins in new.items():
        for twin in twins[1:]:
            found.append(_contract(policy("contract-id-duplicate"), twin, twin, terms))
        found_, version = _one(old, new, key, terms, history, mentions)
        found += found_
        required.append(version)
    for key, gone in old.items():
        if key not in new and not _continued(gone[0], old, new):
            found += compare_one_sided(gone[0], None, terms).changes
    versions = [one for one in required if one is not None]
    return comparison(found, versions[0] if len(versions) == 1 else None)


def _index(contracts: Iterable[Contract]) -> dict[Identity, list[Contract]]:
    found: dict[Identity, list[Contract]] = defaultdict(list)
    for one in contracts:
        found[one.identity].append(one)
    return dict(found)


def _one(
    old: dict[Identity, list[Contract]],
    new: dict[Identity, list[Contract]],
    key: Identity,
    terms: DiffTerms,
    history: Recall,
    mentions: Mentions,
) -> tuple[list[Judged], str | None]:
    """The changes of one contract of the new state, and the version that they ask for."""
    contract = new[key][0]
    source = old[key][0] if key in old else _predecessor(contract, old, new)
    if source is None:
        beside = any(id_ == key[0] for id_, _ in (*old, *(other for other in new if other != key)))
        rule = "contract-major-added" if beside else "contract-added"
        return list(compare_one_sided(None, contract, terms, rule).changes), None
    past = history(source)
    dated = replace(terms, deprecated_since={**terms.deprecated_since, **past.deprecated_since})
    made = compare_versions(source, contract, dated, past.earlier if key in old else ())
    changes = list(made.changes)
    if key in old:
        others = [one for ones in new.values() for one in ones]
        return [*changes, *_moved(source, contract, others, terms, mentions)], made.required_version
    if source.id == contract.id and not _announced(changes):
        # The old major was overwritten: its consumers lose it without notice, whatever the version says.
        removal = judge_removal(source, terms.today)
        if is_enforced(source, terms.today) or removal.rule != "contract-removed":
            note = f"Version {source.version} was replaced by {contract.version} in its own file."
            changes.append(_contract(removal._replace(note=note), source, contract, terms))
    return changes, made.required_version


def _announced(changes: Iterable[Judged]) -> bool:
    """Whether all that breaks was deprecated long enough before, so that the next major may replace it."""
    breaks = [one for one in changes if one.verdict.value == "break"]
    return all(one.rule == "column-removed-deprecated" for one in breaks)


def _predecessor(
    contract: Contract, old: dict[Identity, list[Contract]], new: dict[Identity, list[Contract]]
) -> Contract | None:
    """What stood in the same file and is nowhere else now: an id or a major that changed in place."""
    for key, ones in old.items():
        if key not in new and ones[0].file == contract.file:
            return ones[0]
    same_id = [ones[0] for key, ones in old.items() if key[0] == contract.id and key not in new]
    others = [key for key in new if key[0] == contract.id and key not in old]
    return same_id[-1] if same_id and len(others) == 1 else None


def _continued(
    gone: Contract, old: dict[Identity, list[Contract]], new: dict[Identity, list[Contract]]
) -> bool:
    """Whether a contract that is gone was judged as the predecessor of another one."""
    return any(key not in old and _predecessor(ones[0], old, new) is gone for key, ones in new.items())


def _moved(
    before: Contract, after: Contract, others: Iterable[Contract], terms: DiffTerms, mentions: Mentions
) -> Iterator[Judged]:
    if before.file == after.file:
        return
    named = (one.file for one in others if one is not after and _names(one, before.file))
    told = (one for one in mentions(before.file) if one not in (before.file, after.file))
    referring = next(chain(named, told), None)
    if referring is None:
        judgement = neutral("contract-moved", Bump.NONE)
    else:
        note = f"{referring} names {before.file}."
        judgement = weaken("contract-moved-referenced", Level.WARN, note)._replace(bump=Bump.NONE)
    moved = _contract(judgement, before, after, terms)
    bump = Bump.NONE if judgement.rule.startswith("contract-moved") else moved.bump
    yield replace(moved, before=before.file, after=after.file, bump=bump)


def _names(contract: Contract, file: str) -> bool:
    """Whether a contract refers to another one's file, by its path or its name."""
    name = PurePosixPath(file).name
    return any(
        f"{part}#" in text or text.endswith(part) for text in _references(contract) for part in (file, name)
    )


def _references(contract: Contract) -> Iterator[str]:
    for definition in contract.authoritative_definitions:
        yield definition.url
    for one in contract.objects:
        for element in (one, *one.walk()):
            for definition in element.authoritative_definitions:
                yield definition.url
            for relation in element.relationships:
                for end in (relation.from_, relation.to):
                    yield from end if isinstance(end, list) else [end] if end else []


def _contract(judgement: Judgement, before: Contract, after: Contract, terms: DiffTerms) -> Judged:
    place = ChangePlace(after.id, "", "", before.version, after.version, after.at(), before.at())
    return judged(judgement, place, terms.mode or Mode.FORWARD)


def _note(judgement: Judgement, file: str, at: Location, terms: DiffTerms) -> Judged:
    return judged(judgement, ChangePlace(file, "", "", None, None, at, at), terms.mode or Mode.FORWARD)
