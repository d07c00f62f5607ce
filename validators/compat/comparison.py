"""Two versions of a contract, and two states of a registry, compared and judged."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from dq.contracts.diff import ElementKind, FlatElement, changes, date_of, name_of
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, Identity, Node
from dq.contracts.normalize import normalise
from dq.contracts.outcome import Location
from dq.contracts.subscriptions import Subscription
from dq.validators.compat import classification_table
from dq.validators.compat.classification import (
    DEFAULT_ENGINES,
    NOTICE_DAYS,
    Bump,
    Judgement,
    Level,
    Mode,
    Setting,
    Verdict,
    engine,
    formats_of,
    neutral,
    policy,
    weaken,
)
from dq.validators.compat.classification import replace as replaced
from dq.validators.compat.classified_change import (
    ChangePlace,
    Comparison,
    Judged,
    Waiver,
    affected_consumers,
    apply_waivers,
    comparison,
    judged,
    lowered,
)

# Two versions of one contract, compared and judged: the public `diff`.

# What the status of a contract means for its changes, and what its own changes mean.

DRAFT, ACTIVE, DEPRECATED, RETIRED = "draft", "active", "deprecated", "retired"
_STAGES = {"draft": DRAFT, "proposed": DRAFT, "deprecated": DEPRECATED, "retired": RETIRED}


def stage(contract: Contract) -> str:
    """How far a contract is; without a status, or with one that nobody knows, it is in force."""
    return _STAGES.get(_word(contract), ACTIVE)


def _word(contract: Contract) -> str:
    return (contract.status or ACTIVE).strip().lower()


def end_of(contract: Contract) -> date | None:
    """The day until which the contract is supported: `endOfSupport`, else `endOfLife`."""
    dates: dict[str, date] = {}
    for sla in contract.sla_properties:
        day = date_of(str(sla.value))
        if day is not None:
            dates.setdefault(name_of(sla.property), day)
    return dates.get("endOfSupport", dates.get("endOfLife"))


def is_enforced(before: Contract, today: date) -> bool:
    """Whether changes of a contract are judged: drafts and what is past its end only tell them."""
    now = stage(before)
    if now == DEPRECATED:
        end = end_of(before)
        return end is None or end >= today
    return now == ACTIVE


def why_not_enforced(before: Contract) -> str:
    """Why the changes of a contract are only told, in a sentence: it is a draft, or past its end."""
    return {
        DRAFT: f"It breaks nobody: its status is {_word(before)}, so nothing of it is promised yet.",
        RETIRED: "It breaks nobody: the contract is retired.",
    }.get(stage(before), f"It breaks nobody: the contract's support ended on {end_of(before)}.")


def _noticed(end: date | None, setting: Setting) -> Judgement:
    if end is None:
        return policy("deprecation-end-missing", bump=Bump.MINOR)
    if end < setting.today + timedelta(days=setting.notice_days):
        note = f"{end} is less than {setting.notice_days} days away."
        return policy("deprecation-too-short", bump=Bump.MINOR, note=note)
    return neutral("status-deprecated", note=f"Supported until {end}.")


def _retired(end: date | None, setting: Setting) -> Judgement:
    if end is not None and end <= setting.today:
        return neutral("status-retired")
    return weaken("status-retired-early", note=f"Supported until {end}." if end else "It had no end.")


_DEMOTED, _REACTIVATED = weaken("status-demoted"), neutral("status-reactivated")
# TABLE: (stage before, stage after) -> what it means, or what says so from the end date.
_STEPS: Mapping[tuple[str, str], Judgement | Callable[[date | None, Setting], Judgement]] = {
    (DRAFT, ACTIVE): neutral("status-promoted"),
    (DRAFT, DEPRECATED): _noticed,
    (DRAFT, RETIRED): neutral("status-retired"),
    (ACTIVE, DRAFT): _DEMOTED,
    (ACTIVE, DEPRECATED): _noticed,
    (ACTIVE, RETIRED): weaken("status-retired-early", note="It was not deprecated before."),
    (DEPRECATED, DRAFT): _DEMOTED,
    (DEPRECATED, ACTIVE): _REACTIVATED,
    (DEPRECATED, RETIRED): _retired,
    (RETIRED, DRAFT): _REACTIVATED,
    (RETIRED, ACTIVE): _REACTIVATED,
    (RETIRED, DEPRECATED): _REACTIVATED,
}


def judge_status(before: Contract, after: Contract, setting: Setting) -> Judgement | None:
    """What the step from one status to another means; None where there is none.

    A retired contract needs the end that was promised before; one that is deprecated its new one.
    """
    step = (stage(before), stage(after))
    if step[0] == step[1]:
        lost = step[0] == DEPRECATED and end_of(before) is not None and end_of(after) is None
        if lost:
            return policy("deprecation-end-missing", bump=Bump.MINOR)
        return neutral("status-promoted", Bump.PATCH) if _word(before) != _word(after) else None
    meaning = _STEPS[step]
    if isinstance(meaning, Judgement):
        return meaning
    return meaning((end_of(before) if step[1] == RETIRED else None) or end_of(after), setting)


def judge_removal(before: Contract, today: date) -> Judgement:
    """What it means that a contract is gone."""
    now, end = stage(before), end_of(before)
    over = end is not None and end <= today
    if now in (DEPRECATED, RETIRED):
        if over or (now == RETIRED and end is None):
            return neutral("contract-removed-retired", Bump.NONE)
        note = f"Supported until {end}." if end else "No end of support was announced."
        return weaken("contract-removed-early", note=note)
    return weaken("contract-removed")


# Whether the version announces what changed: semantic versioning, as contracts use it.

_SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


class Version(NamedTuple):
    """The numbers of a version; what follows them does not count."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def read_version(text: str) -> Version | None:
    """The version that a text means, or None where it is no semantic version. A leading v is fine."""
    match = _SEMVER.fullmatch(text.strip())
    return Version(int(match[1]), int(match[2]), int(match[3])) if match else None


def needed(version: Version, asked: Bump) -> Bump:
    """The bump that announces a change of this weight: below 1.0 the minor carries breaks."""
    below = {Bump.MAJOR: Bump.MINOR, Bump.MINOR: Bump.PATCH}
    return below.get(asked, asked) if version.major == 0 else asked


def following(version: Version, bump: Bump) -> Version:
    """The next version after a bump."""
    steps = {
        Bump.MAJOR: Version(version.major + 1, 0, 0),
        Bump.MINOR: Version(version.major, version.minor + 1, 0),
        Bump.PATCH: Version(version.major, version.minor, version.patch + 1),
    }
    return steps.get(bump, version)


def judge_version(before: str, after: str, asked: Bump) -> Judgement | None:
    """What the step between two versions means, when the changes ask for a bump; None when all is still."""
    if before == after and asked is Bump.NONE:
        return None
    second = read_version(after)
    if second is None:
        return policy("version-not-semver")
    first = read_version(before)
    if first is None:
        return neutral("version-bump-ok", Bump.NONE, f"{before!r} was no semantic version.")
    wanted = needed(first, asked)
    least = following(first, wanted)
    if second < first:
        return policy("version-decreased")
    if second == first and wanted is not Bump.NONE:
        # Prose and other metadata change no promise, so a missing patch hurts nobody.
        level = Level.WARN if asked is Bump.PATCH else Level.ERROR
        return policy("version-not-bumped", level, wanted, f"At least {least} is needed.")
    if second < least:
        return policy("version-bump-too-small", bump=wanted, note=f"At least {least} is needed.")
    return neutral("version-bump-ok", wanted)


def required_version(before: str, asked: Bump) -> str | None:
    """The smallest version that announces the changes, or None where the old one is no version."""
    first = read_version(before)
    return None if first is None else str(following(first, needed(first, asked)))


@dataclass(frozen=True, slots=True)
class DiffTerms:
    """By what changes are judged; all of it handed in, and in a pull request read at the base.

    `unclear`: there are subscriptions that cannot be read, so that nobody can say that none names a change.
    `mode` None takes that of each object's `dataset` terms at the base, else FORWARD. `format` None takes
    what the contract says. `engines` are names as people write them (`spark<=3.5`, `trino`).
    """

    today: date
    mode: Mode | None = None
    engines: tuple[str, ...] = DEFAULT_ENGINES
    format: str | None = None
    notice_days: int = NOTICE_DAYS
    deprecated_since: Mapping[str, date] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    unclear: bool = False

    def setting(self, before: Contract, after: Contract, normal: FlatElement | None = None) -> Setting:
        """What the classification looks at; `normal` is the old contract in normal form."""
        return Setting(
            today=self.today,
            engines=tuple(engine(one) for one in self.engines),
            format=self.format,
            formats=formats_of(after) | formats_of(before),
            notice_days=self.notice_days,
            deprecated_since=self.deprecated_since,
            before=normal,
        )


def diff(
    before: Contract | None, after: Contract | None, terms: DiffTerms, earlier: Sequence[Contract] = ()
) -> Comparison:
    """What changed from one version to the next, judged. None stands for a contract that is not there.

    `earlier` are older versions, newest first, for the transitive modes; those of another major are left
    out. Pure: no file, clock or network is touched, and no contract makes it raise.
    """
    if before is not None and after is not None:
        return compare_versions(before, after, terms, earlier)
    return compare_one_sided(before, after, terms)


def compare_one_sided(
    before: Contract | None, after: Contract | None, terms: DiffTerms, added: str = "contract-added"
) -> Comparison:
    """A contract that came or went."""
    contract = before or after
    if contract is None:
        return Comparison(())
    judgement = judge_removal(before, terms.today) if before else neutral(added, Bump.NONE)
    old, new = before.version if before else None, after.version if after else None
    place = ChangePlace(contract.id, "", "", old, new, contract.at(), contract.at())
    found = [_judged(judgement, place, contract, terms, _mode(contract, "", terms))]
    draft = before is not None and not is_enforced(before, terms.today)
    if draft and judgement.rule == "contract-removed":
        found = [lowered(one, Bump.NONE, why=why_not_enforced(contract)) for one in found]
    return comparison(apply_waivers(found, terms.waivers, terms.today), None)


def compare_versions(
    before: Contract, after: Contract, terms: DiffTerms, earlier: Sequence[Contract] = ()
) -> Comparison:
    """Two versions of a contract, whatever their ids and versions say."""
    found = content(before, after, terms)
    found += _transitive(before, after, terms, earlier, found)
    if not is_enforced(before, terms.today):
        found = [lowered(one, Bump.NONE, why=why_not_enforced(before)) for one in found]
    step = judge_status(before, after, terms.setting(before, after))
    if step is not None:
        place = _at(before, after, "status", before.status, after.status)
        found.append(_judged(step, place, before, terms, _mode(before, "", terms)))
    found = apply_waivers(found, terms.waivers, terms.today)
    asked = max((one.bump for one in found), key=lambda one: one.rank, default=Bump.NONE)
    bumped = judge_version(before.version, after.version, asked)
    if bumped is not None:
        place = _at(before, after, "version", before.version, after.version)
        announced = _judged(bumped, place, before, terms, _mode(before, "", terms))
        found += apply_waivers([announced], terms.waivers, terms.today)
    required = required_version(before.version, asked)
    announced_by = {bump: required_version(before.version, bump) or "" for bump in Bump}
    found = [
        replace(one, required_version=required or "", own_version=announced_by[one.bump]) for one in found
    ]
    return comparison(found, required)


def content(before: Contract, after: Contract, terms: DiffTerms) -> list[Judged]:
    """The judged changes of what the contract says; its status and version come later."""
    old, new = normalise(before), normalise(after)
    setting = terms.setting(before, after, old)
    found: list[Judged] = []
    for change in changes(old, new, terms.today):
        if change.kind is ElementKind.CONTRACT and change.attribute in classification_table.BY_POLICY:
            continue
        judgement = classification_table.classify(change, setting)
        place, mode = ChangePlace.of(change, before.id), _mode(before, change.object_name, terms)
        found.append(_judged(judgement, place, before, terms, mode))
    # A column whose type changes says so twice, logically and physically: one mistake, one finding.
    physical = {(one.path, one.rule) for one in found if one.attribute == "physicalType"}
    return [one for one in found if one.attribute != "logicalType" or (one.path, one.rule) not in physical]


def _judged(
    judgement: Judgement, place: ChangePlace, contract: Contract, terms: DiffTerms, mode: Mode
) -> Judged:
    hit = affected_consumers(terms.subscriptions, contract, place.path, terms.today)
    return judged(judgement, place, mode, hit, asked=bool(terms.subscriptions) and not terms.unclear)


def _mode(contract: Contract, object_name: str, terms: DiffTerms) -> Mode:
    """The mode that holds for an object; for the contract itself, the one that all its objects agree on."""
    if terms.mode is not None:
        return terms.mode
    declared = {
        Mode(dataset(one)[0].compatibility)
        for one in contract.objects
        if object_name in ("", one.column, one.name)
    }
    return declared.pop() if len(declared) == 1 else Mode.FORWARD


def _at(before: Node, after: Node, key: str, old: object, new: object) -> ChangePlace:
    return ChangePlace(
        getattr(before, "id", ""), "", key, old, new, after.at(key), before.at(key), after.path(key)
    )


def _transitive(
    before: Contract, after: Contract, terms: DiffTerms, earlier: Sequence[Contract], direct: list[Judged]
) -> list[Judged]:
    """What the new version breaks of older ones and the last step alone does not show, oldest version kept.

    What was already so at `before` is not this change's doing and is left out.
    """
    found: dict[str, Judged] = {}
    same_major = [one for one in earlier if one.identity == after.identity]
    known = {one.fingerprint for one in direct}
    between = [before]
    for old in same_major:
        settled = {one.fingerprint for one in content(old, before, terms)}
        for one in content(old, after, terms):
            if not one.mode.transitive or one.fingerprint in known | settled:
                continue
            one = _reused(one, old, between)
            if one.verdict is not Verdict.OK:
                found[one.fingerprint] = replace(one, against=old.version)
        between.append(old)
    return list(found.values())


def _reused(change: Judged, old: Contract, between: Sequence[Contract]) -> Judged:
    """A column that was away in between and came back as another one is a reused name."""
    if not change.rule.startswith("type-") or not change.path:
        return change
    away = any(change.path not in _columns(one) for one in between)
    if not away or change.path not in _columns(old):
        return change
    judgement = replaced("column-name-reused", note="The name was dropped in between.")
    return judged(judgement, change, change.mode)


def _columns(contract: Contract) -> set[str]:
    return {inner.path for one in normalise(contract).of(ElementKind.OBJECT) for inner in one.walk()}


# Two states of a registry, compared: identity is (id, major), so a file that moves is no change.


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
        place = ChangePlace(file, "", "", None, None, Location(file), Location(file))
        found.append(judged(policy("base-invalid", Level.WARN), place, terms.mode or Mode.FORWARD))
    for key, twins in new.items():
        for twin in twins[1:]:
            found.append(_contract(policy("contract-id-duplicate"), twin, twin, terms))
        found_, version = _one(old, new, key, terms, history, mentions)
        found += found_
        required.append(version)
    for key, gone in old.items():
        continued = (_predecessor(new[added][0], old, new) is gone[0] for added in new.keys() - old.keys())
        if key not in new and not any(continued):
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
    breaks = [one for one in changes if one.verdict is Verdict.BREAK]
    # The next major may replace what was deprecated long enough before.
    announced = all(one.rule == "column-removed-deprecated" for one in breaks)
    if source.id == contract.id and not announced:
        # The old major was overwritten: its consumers lose it without notice, whatever the version says.
        removal = judge_removal(source, terms.today)
        if is_enforced(source, terms.today) or removal.rule != "contract-removed":
            note = f"Version {source.version} was replaced by {contract.version} in its own file."
            changes.append(_contract(removal._replace(note=note), source, contract, terms))
    return changes, made.required_version


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
