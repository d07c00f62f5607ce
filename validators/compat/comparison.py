"""Comparison of two versions of a contract, or of two states of a registry."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from dq.contracts.diff import Change, ElementKind, FlatElement, changes
from dq.contracts.extension import dataset
from dq.contracts.model import Contract, Identity, Node
from dq.contracts.needs import lost_need, needed_clauses
from dq.contracts.normalize import normalize
from dq.contracts.outcome import Location, Severity
from dq.contracts.service_levels import parse_date, service_level_name
from dq.contracts.subscriptions import Subscription, affects, locate_use
from dq.validators.compat import classification_table
from dq.validators.compat.classification import (
    DEFAULT_ENGINES,
    NOTICE_DAYS,
    Bump,
    ChangeClassification,
    ComparisonContext,
    Effect,
    Level,
    Mode,
    Verdict,
    neutral,
    normalize_engine,
    object_formats,
    policy,
    weaken,
)
from dq.validators.compat.classification import replace as replaced
from dq.validators.compat.classified_change import (
    AffectedConsumer,
    ChangePlace,
    ClassifiedChange,
    Comparison,
    UseLookup,
    Waiver,
    affected_consumers,
    apply_waivers,
    build_comparison,
    classify_change,
    downgrade,
)

# Comparison of two versions of one contract: the public `diff`.

# Effect of a contract's status on its changes, and classification of status changes.

DRAFT, ACTIVE, DEPRECATED, RETIRED = "draft", "active", "deprecated", "retired"
_STAGES = {"draft": DRAFT, "proposed": DRAFT, "deprecated": DEPRECATED, "retired": RETIRED}


def stage(contract: Contract) -> str:
    """Return the lifecycle stage of a contract; a missing or unknown status counts as active."""
    return _STAGES.get(_status_word(contract), ACTIVE)


def _status_word(contract: Contract) -> str:
    return (contract.status or ACTIVE).strip().lower()


def end_of_support(contract: Contract) -> date | None:
    """Return the last day of support (`endOfSupport`, else `endOfLife`), or None if there is none."""
    dates: dict[str, date] = {}
    for sla in contract.sla_properties:
        day = parse_date(str(sla.value))
        if day is not None:
            dates.setdefault(service_level_name(sla.property), day)
    return dates.get("endOfSupport", dates.get("endOfLife"))


def is_enforced(before: Contract, today: date) -> bool:
    """Return True if changes of a contract can break; those of drafts and ended contracts are only
    reported.
    """
    current = stage(before)
    if current == DEPRECATED:
        end = end_of_support(before)
        return end is None or end >= today
    return current == ACTIVE


def why_not_enforced(before: Contract) -> str:
    """Return the reason, as a sentence, why changes are only reported: the contract is a draft or has
    ended.
    """
    return {
        DRAFT: f"Breaks no consumers: its status is {_status_word(before)}, so it is not in force yet.",
        RETIRED: "Breaks no consumers: the contract is retired.",
    }.get(stage(before), f"Breaks no consumers: support ended on {end_of_support(before)}.")


def _deprecation(end: date | None, context: ComparisonContext) -> ChangeClassification:
    if end is None:
        return policy("deprecation-end-missing", bump=Bump.MINOR)
    if end < context.today + timedelta(days=context.notice_days):
        note = f"{end} is less than {context.notice_days} days away."
        return policy("deprecation-too-short", bump=Bump.MINOR, note=note)
    return neutral("status-deprecated", note=f"Supported until {end}.")


def _retirement(end: date | None, context: ComparisonContext) -> ChangeClassification:
    if end is not None and end <= context.today:
        return neutral("status-retired")
    return weaken(
        "status-retired-early", note=f"Supported until {end}." if end else "It had no end of support."
    )


_DEMOTED, _REACTIVATED = weaken("status-demoted"), neutral("status-reactivated")
# TABLE: (stage before, stage after) -> classification, or a function that derives it from the end date.
_STEPS: Mapping[
    tuple[str, str], ChangeClassification | Callable[[date | None, ComparisonContext], ChangeClassification]
] = {
    (DRAFT, ACTIVE): neutral("status-promoted"),
    (DRAFT, DEPRECATED): _deprecation,
    (DRAFT, RETIRED): neutral("status-retired"),
    (ACTIVE, DRAFT): _DEMOTED,
    (ACTIVE, DEPRECATED): _deprecation,
    (ACTIVE, RETIRED): weaken("status-retired-early", note="It was not deprecated before."),
    (DEPRECATED, DRAFT): _DEMOTED,
    (DEPRECATED, ACTIVE): _REACTIVATED,
    (DEPRECATED, RETIRED): _retirement,
    (RETIRED, DRAFT): _REACTIVATED,
    (RETIRED, ACTIVE): _REACTIVATED,
    (RETIRED, DEPRECATED): _REACTIVATED,
}


def classify_status_change(
    before: Contract, after: Contract, context: ComparisonContext
) -> ChangeClassification | None:
    """Classify a status change; None if the status did not change.

    A retired contract is checked against the end date announced before, a deprecated one against its new one.
    """
    step = (stage(before), stage(after))
    if step[0] == step[1]:
        end_removed = (
            step[0] == DEPRECATED and end_of_support(before) is not None and end_of_support(after) is None
        )
        if end_removed:
            return policy("deprecation-end-missing", bump=Bump.MINOR)
        return neutral("status-promoted", Bump.PATCH) if _status_word(before) != _status_word(after) else None
    classification = _STEPS[step]
    if isinstance(classification, ChangeClassification):
        return classification
    return classification(
        (end_of_support(before) if step[1] == RETIRED else None) or end_of_support(after), context
    )


def classify_removal(before: Contract, today: date) -> ChangeClassification:
    """Classify the removal of a contract."""
    current, end = stage(before), end_of_support(before)
    has_ended = end is not None and end <= today
    if current in (DEPRECATED, RETIRED):
        if has_ended or (current == RETIRED and end is None):
            return neutral("contract-removed-retired", Bump.NONE)
        note = f"Supported until {end}." if end else "No end of support was announced."
        return weaken("contract-removed-early", note=note)
    return weaken("contract-removed")


# Version policy: semantic versioning of contracts.

_SEMVER = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


class Version(NamedTuple):
    """Numbers of a semantic version; pre-release and build parts are ignored."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def read_version(text: str) -> Version | None:
    """Parse a semantic version, with or without a leading v; None if it is not one."""
    match = _SEMVER.fullmatch(text.strip())
    return Version(int(match[1]), int(match[2]), int(match[3])) if match else None


def effective_bump(version: Version, bump: Bump) -> Bump:
    """Return the bump that announces a change; below 1.0, a breaking change is a minor bump."""
    below = {Bump.MAJOR: Bump.MINOR, Bump.MINOR: Bump.PATCH}
    return below.get(bump, bump) if version.major == 0 else bump


def next_version(version: Version, bump: Bump) -> Version:
    """Return the next version after a bump."""
    steps = {
        Bump.MAJOR: Version(version.major + 1, 0, 0),
        Bump.MINOR: Version(version.major, version.minor + 1, 0),
        Bump.PATCH: Version(version.major, version.minor, version.patch + 1),
    }
    return steps.get(bump, version)


def classify_version_change(before: str, after: str, bump: Bump) -> ChangeClassification | None:
    """Classify a version change, given the required bump; None if neither requires anything."""
    if before == after and bump is Bump.NONE:
        return None
    new = read_version(after)
    if new is None:
        return policy("version-not-semver")
    old = read_version(before)
    if old is None:
        return neutral("version-bump-ok", Bump.NONE, f"{before!r} was not a semantic version.")
    needed_bump = effective_bump(old, bump)
    minimum = next_version(old, needed_bump)
    if new < old:
        return policy("version-decreased")
    if new == old and needed_bump is not Bump.NONE:
        # Documentation and other metadata carry no guarantee, so a missing patch bump is harmless.
        level = Level.WARN if bump is Bump.PATCH else Level.ERROR
        return policy("version-not-bumped", level, needed_bump, f"At least {minimum} is required.")
    if new < minimum:
        return policy("version-bump-too-small", bump=needed_bump, note=f"At least {minimum} is required.")
    return neutral("version-bump-ok", needed_bump)


def required_version(before: str, bump: Bump) -> str | None:
    """Return the smallest version that announces the changes, or None if `before` is not a semantic
    version.
    """
    old = read_version(before)
    return None if old is None else str(next_version(old, effective_bump(old, bump)))


@dataclass(frozen=True, slots=True)
class DiffTerms:
    """Options for classifying changes; in a pull request they are read at the base.

    `subscriptions_incomplete`: some subscriptions cannot be read, so a change without subscribers may still
    have some. `mode` None uses the mode of each object's `dataset` terms at the base, else FORWARD. `format`
    None uses the format of the contract. `unneeded` is the level of changes that would break consumers, but
    that affect no subscription. `engines` are names as users write them (`spark<=3.5`, `trino`).
    """

    today: date
    mode: Mode | None = None
    engines: tuple[str, ...] = DEFAULT_ENGINES
    format: str | None = None
    notice_days: int = NOTICE_DAYS
    deprecated_since: Mapping[str, date] = field(default_factory=dict)
    waivers: tuple[Waiver, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    subscriptions_incomplete: bool = False
    unneeded: Level = Level.ERROR

    def with_unneeded(self, severity: Severity) -> DiffTerms:
        """Return the terms under a policy, with its severity for changes that affect no subscription."""
        return replace(self, unneeded=Level.WARN if severity is Severity.WARNING else Level.ERROR)

    def comparison_context(
        self, before: Contract, after: Contract, normal: FlatElement | None = None
    ) -> ComparisonContext:
        """Return the context for classifying changes; `normal` is the old contract in normal form."""
        return ComparisonContext(
            today=self.today,
            engines=tuple(normalize_engine(name) for name in self.engines),
            format=self.format,
            formats=object_formats(after) | object_formats(before),
            notice_days=self.notice_days,
            deprecated_since=self.deprecated_since,
            before=normal,
        )


def diff(
    before: Contract | None, after: Contract | None, terms: DiffTerms, earlier: Sequence[Contract] = ()
) -> Comparison:
    """Compare two versions of a contract. None stands for a contract that does not exist.

    `earlier` are older versions, newest first, for the transitive modes; those of another major are ignored.
    Pure: uses no file, clock or network, and never raises for any contract.
    """
    if before is not None and after is not None:
        return compare_versions(before, after, terms, earlier)
    return compare_one_sided(before, after, terms)


def compare_one_sided(
    before: Contract | None, after: Contract | None, terms: DiffTerms, added_rule: str = "contract-added"
) -> Comparison:
    """Classify a contract that was added or removed."""
    contract = before or after
    if contract is None:
        return Comparison(())
    classification = classify_removal(before, terms.today) if before else neutral(added_rule, Bump.NONE)
    old, new = before.version if before else None, after.version if after else None
    place = ChangePlace(contract.id, "", "", old, new, contract.locate(), contract.locate())
    classified = [_classify(classification, place, contract, terms, _mode_for(contract, "", terms))]
    draft = before is not None and not is_enforced(before, terms.today)
    if draft and classification.rule == "contract-removed":
        classified = [
            downgrade(change, Bump.NONE, reason=why_not_enforced(contract)) for change in classified
        ]
    return build_comparison(apply_waivers(classified, terms.waivers, terms.today), None)


def compare_versions(
    before: Contract, after: Contract, terms: DiffTerms, earlier: Sequence[Contract] = ()
) -> Comparison:
    """Compare two versions of a contract, regardless of their ids and version numbers."""
    classified = compare_content(before, after, terms)
    classified += _transitive(before, after, terms, earlier, classified)
    if not is_enforced(before, terms.today):
        classified = [downgrade(change, Bump.NONE, reason=why_not_enforced(before)) for change in classified]
    step = classify_status_change(before, after, terms.comparison_context(before, after))
    if step is not None:
        place = _change_place(before, after, "status", before.status, after.status)
        classified.append(_classify(step, place, before, terms, _mode_for(before, "", terms)))
    classified = apply_waivers(classified, terms.waivers, terms.today)
    needed_bump = max(
        (change.bump for change in classified), key=lambda candidate: candidate.rank, default=Bump.NONE
    )
    version_change = classify_version_change(before.version, after.version, needed_bump)
    if version_change is not None:
        place = _change_place(before, after, "version", before.version, after.version)
        classified_version = _classify(version_change, place, before, terms, _mode_for(before, "", terms))
        classified += apply_waivers([classified_version], terms.waivers, terms.today)
    required = required_version(before.version, needed_bump)
    version_by_bump = {bump: required_version(before.version, bump) or "" for bump in Bump}
    classified = [
        replace(change, required_version=required or "", own_version=version_by_bump[change.bump])
        for change in classified
    ]
    return build_comparison(classified, required)


def compare_content(before: Contract, after: Contract, terms: DiffTerms) -> list[ClassifiedChange]:
    """Return the classified changes of the content, without status and version."""
    old, new = normalize(before), normalize(after)
    context = terms.comparison_context(before, after, old)
    classified: list[ClassifiedChange] = []
    for change in changes(old, new, terms.today):
        if change.kind is ElementKind.CONTRACT and change.attribute in classification_table.POLICY_ATTRIBUTES:
            continue
        classification = classification_table.classify(change, context)
        place, mode = ChangePlace.from_change(change, before.id), _mode_for(before, change.object_name, terms)
        use = partial(use_of_change, change, before, after, terms.today)
        classified.append(_classify(classification, place, before, terms, mode, use))
    # A type change shows up in both the logical and the physical type: report it once.
    physical = {(item.path, item.rule) for item in classified if item.attribute == "physicalType"}
    return [
        item
        for item in classified
        if item.attribute != "logicalType" or (item.path, item.rule) not in physical
    ]


def _classify(
    classification: ChangeClassification,
    place: ChangePlace,
    contract: Contract,
    terms: DiffTerms,
    mode: Mode,
    use: UseLookup | None = None,
) -> ClassifiedChange:
    """Classify a change; by what consumers need of it, if `use` is given."""
    consumers = affected_consumers(
        terms.subscriptions,
        contract,
        use or (lambda subscription: _whole_use(subscription, contract, place.path)),
        terms.today,
    )
    are_known = bool(terms.subscriptions) and not terms.subscriptions_incomplete
    if use is not None:
        classification = _weigh_needs(classification, consumers, are_known=are_known, unneeded=terms.unneeded)
    return classify_change(classification, place, mode, consumers, has_subscriptions=are_known)


def _whole_use(subscription: Subscription, contract: Contract, path: str) -> tuple[Location, str] | None:
    if not affects(subscription, contract, path):
        return None
    return locate_use(subscription, contract, path), ""


_TIMES = ("", "schedule", "delivery", "delivery.grace", "element", "column")
_CLAUSE_ATTRIBUTES = ("required", "unique", "allowedValues", "primaryKey")


def use_of_change(
    change: Change, before: Contract, after: Contract, today: date, subscription: Subscription
) -> tuple[Location, str] | None:
    """Return where a subscription uses or needs what a change is about, and the need that it takes away.

    A subscription without `needs` relies on everything that it covers. One with `needs` relies on the time
    and the clauses that it names, and on the columns that it covers. Returns None if it does not.
    """
    needs = subscription.needs
    covered_use = _whole_use(subscription, before, change.path)
    if needs is None:
        return covered_use
    if change.kind is ElementKind.SLA:
        if needs.by is None or change.attribute not in _TIMES:
            return covered_use if needs.by is not None else None
        need = lost_need(subscription, before, after, today)
        return (needs.locate("by"), need) if need else None
    for entry in needed_clauses(subscription, before):
        if any(clause.is_changed_by(change.path, change.attribute) for clause in entry.clauses):
            return needs.locate("quality", entry.index), entry.text
    is_clause = change.kind is ElementKind.QUALITY or (
        change.attribute in _CLAUSE_ATTRIBUTES or change.attribute.startswith("logicalTypeOptions.")
    )
    return None if is_clause else covered_use


def _weigh_needs(
    classification: ChangeClassification,
    consumers: tuple[AffectedConsumer, ...],
    *,
    are_known: bool,
    unneeded: Level,
) -> ChangeClassification:
    """Return the classification, as an error if it takes away a need, else milder if nobody is affected."""
    level, effect = classification.level, classification.effect
    if level is Level.WARN and effect in (Effect.WEAKEN, Effect.REPLACE):
        if any(consumer.need for consumer in consumers):
            return classification._replace(level=Level.ERROR)
    elif level is Level.ERROR and effect is Effect.WEAKEN and are_known and not consumers:
        return classification._replace(level=unneeded)
    return classification


def _mode_for(contract: Contract, object_name: str, terms: DiffTerms) -> Mode:
    """Return the mode of an object; for the contract itself, the mode shared by all its objects."""
    if terms.mode is not None:
        return terms.mode
    declared = {
        Mode(dataset(schema_object)[0].compatibility)
        for schema_object in contract.objects
        if object_name in ("", schema_object.column, schema_object.name)
    }
    return declared.pop() if len(declared) == 1 else Mode.FORWARD


def _change_place(before: Node, after: Node, key: str, old: object, new: object) -> ChangePlace:
    return ChangePlace(
        getattr(before, "id", ""), "", key, old, new, after.locate(key), before.locate(key), after.path(key)
    )


def _transitive(
    before: Contract,
    after: Contract,
    terms: DiffTerms,
    earlier: Sequence[Contract],
    direct: list[ClassifiedChange],
) -> list[ClassifiedChange]:
    """Return what the new version breaks of versions older than `before`; the oldest one is reported.

    Differences that `before` already had are not caused by this change and are left out.
    """
    breaks: dict[str, ClassifiedChange] = {}
    same_major = [contract for contract in earlier if contract.identity == after.identity]
    direct_fingerprints = {change.fingerprint for change in direct}
    between = [before]
    for old in same_major:
        existing_fingerprints = {change.fingerprint for change in compare_content(old, before, terms)}
        for candidate in compare_content(old, after, terms):
            if (
                not candidate.mode.transitive
                or candidate.fingerprint in direct_fingerprints | existing_fingerprints
            ):
                continue
            candidate = _detect_name_reuse(candidate, old, between)
            if candidate.verdict is not Verdict.OK:
                breaks[candidate.fingerprint] = replace(candidate, against=old.version)
        between.append(old)
    return list(breaks.values())


def _detect_name_reuse(
    change: ClassifiedChange, old: Contract, between: Sequence[Contract]
) -> ClassifiedChange:
    """Reclassify a type change as a reused name if the column was removed and added again in between."""
    if not change.rule.startswith("type-") or not change.path:
        return change
    was_removed = any(change.path not in _column_paths(contract) for contract in between)
    if not was_removed or change.path not in _column_paths(old):
        return change
    classification = replaced("column-name-reused", note="The column was removed in between.")
    return classify_change(classification, change, change.mode)


def _column_paths(contract: Contract) -> set[str]:
    return {
        inner.path for element in normalize(contract).parts_of(ElementKind.OBJECT) for inner in element.walk()
    }


# Comparison of two states of a registry: the identity is (id, major), so moving a file is not a change.


@dataclass(frozen=True, slots=True)
class BaselineHistory:
    """Older versions before the base, newest first, and deprecation dates by element path."""

    earlier: Sequence[Contract] = ()
    deprecated_since: Mapping[str, date] = field(default_factory=dict)


HistoryLookup = Callable[[Contract], BaselineHistory]


MentionLookup = Callable[[str], Iterable[str]]
"""Returns the files of the new state, read or not, whose text mentions a file."""


def compare(
    before: Iterable[Contract],
    after: Iterable[Contract],
    terms: DiffTerms,
    *,
    invalid: Iterable[str] = (),
    history: HistoryLookup = lambda _: BaselineHistory(),
    mentions: MentionLookup = lambda _: (),
) -> Comparison:
    """Compare every contract of the old state with its counterpart in the new one.

    `invalid` are files that cannot be read in the old state; their new content counts as new. `history`
    returns the past of each contract that is on both sides, `mentions` further files that may refer to a
    moved file. Both states may omit files that are unchanged. `required_version` is None unless exactly one
    contract was compared.
    """
    old, new = _index(before), _index(after)
    classified: list[ClassifiedChange] = []
    required_versions: list[str | None] = []
    for file in invalid:
        place = ChangePlace(file, "", "", None, None, Location(file), Location(file))
        classified.append(
            classify_change(policy("base-invalid", Level.WARN), place, terms.mode or Mode.FORWARD)
        )
    for key, twins in new.items():
        for twin in twins[1:]:
            classified.append(_contract_change(policy("contract-id-duplicate"), twin, twin, terms))
        contract_changes, version = _compare_contract(old, new, key, terms, history, mentions)
        classified += contract_changes
        required_versions.append(version)
    for key, removed in old.items():
        is_continued = (
            _predecessor(new[added][0], old, new) is removed[0] for added in new.keys() - old.keys()
        )
        if key not in new and not any(is_continued):
            classified += compare_one_sided(removed[0], None, terms).changes
    versions = [candidate for candidate in required_versions if candidate is not None]
    return build_comparison(classified, versions[0] if len(versions) == 1 else None)


def _index(contracts: Iterable[Contract]) -> dict[Identity, list[Contract]]:
    by_identity: dict[Identity, list[Contract]] = defaultdict(list)
    for contract in contracts:
        by_identity[contract.identity].append(contract)
    return dict(by_identity)


def _compare_contract(
    old: dict[Identity, list[Contract]],
    new: dict[Identity, list[Contract]],
    key: Identity,
    terms: DiffTerms,
    history: HistoryLookup,
    mentions: MentionLookup,
) -> tuple[list[ClassifiedChange], str | None]:
    """Return the changes of one contract of the new state, and the version that they require."""
    contract = new[key][0]
    source = old[key][0] if key in old else _predecessor(contract, old, new)
    if source is None:
        has_other_major = any(id_ == key[0] for id_, _ in (*old, *(other for other in new if other != key)))
        rule = "contract-major-added" if has_other_major else "contract-added"
        return list(compare_one_sided(None, contract, terms, rule).changes), None
    past = history(source)
    dated_terms = replace(terms, deprecated_since={**terms.deprecated_since, **past.deprecated_since})
    result = compare_versions(source, contract, dated_terms, past.earlier if key in old else ())
    changes = list(result.changes)
    if key in old:
        all_contracts = [candidate for group in new.values() for candidate in group]
        return [
            *changes,
            *_file_move(source, contract, all_contracts, terms, mentions),
        ], result.required_version
    breaks = [change for change in changes if change.verdict is Verdict.BREAK]
    # The next major version may remove what was deprecated long enough before.
    announced = all(change.rule == "column-removed-deprecated" for change in breaks)
    if source.id == contract.id and not announced:
        # The old major was overwritten, so its consumers lose it without notice even if the version is
        # correct.
        removal = classify_removal(source, terms.today)
        if is_enforced(source, terms.today) or removal.rule != "contract-removed":
            note = f"Version {source.version} was replaced by {contract.version} in its own file."
            changes.append(_contract_change(removal._replace(note=note), source, contract, terms))
    return changes, result.required_version


def _predecessor(
    contract: Contract, old: dict[Identity, list[Contract]], new: dict[Identity, list[Contract]]
) -> Contract | None:
    """Return the old contract of the same file that no longer exists: its id or major changed in place."""
    for key, contracts in old.items():
        if key not in new and contracts[0].file == contract.file:
            return contracts[0]
    same_id = [
        old_contracts[0] for key, old_contracts in old.items() if key[0] == contract.id and key not in new
    ]
    new_keys = [key for key in new if key[0] == contract.id and key not in old]
    return same_id[-1] if same_id and len(new_keys) == 1 else None


def _file_move(
    before: Contract,
    after: Contract,
    contracts: Iterable[Contract],
    terms: DiffTerms,
    mentions: MentionLookup,
) -> Iterator[ClassifiedChange]:
    if before.file == after.file:
        return
    referencing = (
        other.file for other in contracts if other is not after and _mentions_file(other, before.file)
    )
    mentioning = (name for name in mentions(before.file) if name not in (before.file, after.file))
    referring = next(chain(referencing, mentioning), None)
    if referring is None:
        classification = neutral("contract-moved", Bump.NONE)
    else:
        note = f"{referring} refers to {before.file}."
        classification = weaken("contract-moved-referenced", Level.WARN, note)._replace(bump=Bump.NONE)
    change = _contract_change(classification, before, after, terms)
    bump = Bump.NONE if classification.rule.startswith("contract-moved") else change.bump
    yield replace(change, before=before.file, after=after.file, bump=bump)


def _mentions_file(contract: Contract, file: str) -> bool:
    """Return True if a contract refers to another contract's file, by path or by name."""
    name = PurePosixPath(file).name
    return any(
        f"{part}#" in text or text.endswith(part) for text in _references(contract) for part in (file, name)
    )


def _references(contract: Contract) -> Iterator[str]:
    for definition in contract.authoritative_definitions:
        yield definition.url
    for schema_object in contract.objects:
        for element in (schema_object, *schema_object.walk()):
            for definition in element.authoritative_definitions:
                yield definition.url
            for relation in element.relationships:
                for end in (relation.from_, relation.to):
                    yield from end if isinstance(end, list) else [end] if end else []


def _contract_change(
    classification: ChangeClassification, before: Contract, after: Contract, terms: DiffTerms
) -> ClassifiedChange:
    place = ChangePlace(after.id, "", "", before.version, after.version, after.locate(), before.locate())
    return classify_change(classification, place, terms.mode or Mode.FORWARD)
