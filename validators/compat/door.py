"""Two versions of one contract, compared and judged: the public `diff`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from dq.contracts.diff.element import Change, ElementKind, FlatElement
from dq.contracts.diff.facts import changes
from dq.contracts.diff.normalize import normalise
from dq.contracts.extension import dataset
from dq.contracts.model import Contract
from dq.contracts.node import Node
from dq.contracts.subscriptions.subscription import Subscription
from dq.validators.compat.judged import ChangePlace, Comparison, Judged, comparison, judged, lowered
from dq.validators.compat.judgement import table
from dq.validators.compat.judgement.setting import DEFAULT_ENGINES, NOTICE_DAYS, Setting, engine, formats_of
from dq.validators.compat.judgement.words import Bump, Judgement, Mode, Verdict, neutral
from dq.validators.compat.judgement.words import replace as replaced
from dq.validators.compat.lifecycle import is_enforced, judge_removal, judge_status, why_not_enforced
from dq.validators.compat.subscribers import affected_consumers
from dq.validators.compat.version import judge_version, required_version
from dq.validators.compat.waive import Waiver, apply_waivers


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
        if change.kind is ElementKind.CONTRACT and change.attribute in table.BY_POLICY:
            continue
        judgement = table.classify(change, setting)
        found.append(_of(change, judgement, before, terms))
    # A column whose type changes says so twice, logically and physically: one mistake, one finding.
    physical = {(one.path, one.rule) for one in found if one.attribute == "physicalType"}
    return [one for one in found if one.attribute != "logicalType" or (one.path, one.rule) not in physical]


def _of(change: Change, judgement: Judgement, contract: Contract, terms: DiffTerms) -> Judged:
    mode = _mode(contract, change.object_name, terms)
    return _judged(judgement, ChangePlace.of(change, contract.id), contract, terms, mode)


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
    what = (change.contract, change.path, change.attribute, change.before, change.after)
    place = ChangePlace(*what, change.at, change.at_before, change.pointer)
    return judged(judgement, place, change.mode)


def _columns(contract: Contract) -> set[str]:
    return {inner.path for one in normalise(contract).of(ElementKind.OBJECT) for inner in one.walk()}
