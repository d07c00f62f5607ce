"""TABLE: the comparator for every attribute of every contract element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from dq.contracts.diff import Change, ChangeKind, ElementKind, ScheduleRelation
from dq.contracts.normalize import COORDINATES, RuleThreshold
from dq.contracts.service_levels import parse_date
from dq.validators.compat.classification import (
    Bump,
    ChangeClassification,
    ComparisonContext,
    Level,
    column_order,
    column_rename,
    grain,
    is_partition_key,
    logical_type,
    neutral,
    partition,
    physical_type,
    policy,
    presence,
    replace,
    strengthen,
    table_presence,
    table_rename,
    weaken,
)

# Comparators: the ways in which two values of an attribute can relate, each used by many rows.

Comparator = Callable[[Change, ComparisonContext], ChangeClassification]


@dataclass(frozen=True, slots=True)
class FixedRule:
    """Comparator with a fixed result for every change."""

    result: ChangeClassification

    def __call__(self, _change: Change, _: ComparisonContext) -> ChangeClassification:
        return self.result


@dataclass(frozen=True, slots=True)
class Presence:
    """Comparator that distinguishes added, removed and changed attributes. A flag is present if true."""

    added: ChangeClassification
    removed: ChangeClassification
    changed: ChangeClassification

    def __call__(self, change: Change, _: ComparisonContext) -> ChangeClassification:
        by_action = {ChangeKind.ADDED: self.added, ChangeKind.REMOVED: self.removed}
        return by_action.get(change.action, self.changed)


def flag(on: ChangeClassification, off: ChangeClassification) -> Presence:
    """Return a comparator for an attribute that is either true or absent."""
    return Presence(on, off, on)


@dataclass(frozen=True, slots=True)
class Bound:
    """Comparator of a bound on values; an upper bound is relaxed if it grows, a lower one if it falls."""

    upper: bool

    def __call__(self, change: Change, _: ComparisonContext) -> ChangeClassification:
        if change.action is ChangeKind.ADDED:
            return strengthen("bound-added")
        if change.action is ChangeKind.REMOVED:
            return weaken("bound-removed")
        before, after = _limit(change.before), _limit(change.after)
        if before is None or after is None or isinstance(before[0], str) != isinstance(after[0], str):
            return replace("bound-relaxed", note="The two bounds cannot be compared.")
        if before[0] == after[0]:
            return strengthen("bound-tightened") if after[1] else weaken("bound-relaxed")
        relaxed = (after[0] > before[0]) == self.upper  # type: ignore[operator]  # both text, or both numbers
        return weaken("bound-relaxed") if relaxed else strengthen("bound-tightened")


def _limit(value: object) -> tuple[str | float, bool] | None:
    """Return a limit and True if it is exclusive, or None if it cannot be compared."""
    limit, exclusive = value if isinstance(value, tuple) and len(value) == 2 else (value, False)
    return (limit, bool(exclusive)) if isinstance(limit, (str, int, float)) else None


def multiple_of(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of `multipleOf`; e.g. every multiple of 10 is a multiple of 5."""
    if change.action is not ChangeKind.CHANGED:
        return Bound(upper=True)(change, context)
    before, after = change.before, change.after
    if isinstance(before, (int, float)) and isinstance(after, (int, float)) and before and after:
        if before % after == 0:
            return weaken("bound-relaxed")
        if after % before == 0:
            return strengthen("bound-tightened")
    return replace("bound-relaxed", note="Neither is a multiple of the other.")


def allowed_values(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a change of a column's set of allowed values."""
    if change.action is ChangeKind.ADDED:
        return strengthen("allowed-values-added")
    if change.action is ChangeKind.REMOVED:
        return weaken("allowed-values-removed")
    before, after = _value_sets(change)
    if before < after:
        return weaken("allowed-values-widened", Level.WARN)
    if after < before:
        return strengthen("allowed-values-narrowed")
    return replace("allowed-values-changed")


def primary_key(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a change of the primary key columns."""
    if change.action is ChangeKind.ADDED:
        return strengthen("primary-key-added", Level.WARN)
    if change.action is ChangeKind.REMOVED:
        return weaken("primary-key-changed", note="The primary key was removed.")
    before, after = _value_sets(change)
    return neutral("primary-key-reordered", Bump.PATCH) if before == after else replace("primary-key-changed")


def _value_sets(change: Change) -> tuple[set[object], set[object]]:
    before, after = (
        set(value) if isinstance(value, tuple) else set() for value in (change.before, change.after)
    )
    return before, after


@dataclass(frozen=True, slots=True)
class Ranked:
    """Comparator of ranked words, lowest first; an unlisted word ranks above all of them."""

    words: Sequence[str]
    raised: ChangeClassification
    lowered: ChangeClassification
    absent: str = ""

    def __call__(self, change: Change, _: ComparisonContext) -> ChangeClassification:
        return self.raised if self._rank(change.after) >= self._rank(change.before) else self.lowered

    def _rank(self, value: object) -> int:
        word = self.absent if value is None else str(value).lower()
        return self.words.index(word) if word in self.words else len(self.words) if word else -1


@dataclass(frozen=True, slots=True)
class LevelComparator:
    """Comparator of a service level for which smaller (or larger) is better; the diff provides `order`."""

    smaller_is_better: bool = True

    def __call__(self, change: Change, _: ComparisonContext) -> ChangeClassification:
        if change.action is ChangeKind.ADDED:
            return strengthen("sla-tightened", Level.WARN)
        if change.action is ChangeKind.REMOVED:
            return weaken("sla-relaxed")
        order = change.facts.get("order")
        if order is None:
            return replace("sla-changed", Level.WARN)
        if (order == -1) == self.smaller_is_better:
            return weaken("sla-relaxed")
        return strengthen("sla-tightened", Level.WARN)


def schedule(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a change of a delivery schedule by comparing the due times of one year."""
    if change.action is ChangeKind.ADDED:
        return strengthen("sla-tightened", Level.WARN)
    if change.action is ChangeKind.REMOVED:
        return weaken("sla-relaxed")
    by_fires = {
        ScheduleRelation.LATER: weaken("sla-relaxed"),
        ScheduleRelation.EARLIER: strengthen("sla-tightened", Level.WARN),
    }
    fires = change.facts.get("fires")
    other = replace("sla-changed", Level.WARN, "Neither schedule is earlier on every day.")
    return by_fires.get(fires, other) if isinstance(fires, ScheduleRelation) else other


# Metrics equivalent to column constraints: removing one is like removing `required`.
SCHEMA_LIKE = frozenset({"nullValues", "missingValues", "invalidValues", "duplicateValues"})


def quality_level(change: Change) -> Level:
    """Return the level of a quality rule for consumers."""
    element = change.old or change.new
    name = element.normal("metric") if element else None
    return Level.ERROR if name in SCHEMA_LIKE else Level.WARN


def quality_presence(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a quality rule that was added or removed."""
    if change.action is ChangeKind.ADDED:
        return strengthen("quality-added", Level.WARN)
    return weaken("quality-removed", quality_level(change))


def quality_subject(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a quality rule that measures something else under its old id or name."""
    if quality_level(change) is Level.ERROR:
        return weaken("quality-removed", Level.ERROR, "Another rule now has its id or name.")
    return replace("quality-changed", Level.WARN)


def threshold(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a change of a quality rule's threshold, compared as intervals."""
    if change.action is ChangeKind.ADDED:
        return strengthen("quality-tightened", Level.WARN)
    if change.action is ChangeKind.REMOVED:
        return weaken("quality-relaxed", quality_level(change))
    before, after = change.before, change.after
    if isinstance(before, RuleThreshold) and isinstance(after, RuleThreshold) and before.unit == after.unit:
        if before.interval and after.interval and before.interval.within(after.interval):
            return weaken("quality-relaxed", quality_level(change))
        if before.interval and after.interval and after.interval.within(before.interval):
            return strengthen("quality-tightened", Level.WARN)
    return replace("quality-changed", Level.WARN)


def price(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a change of the price that consumers pay."""
    before, after = change.before, change.after
    is_cheaper = isinstance(before, (int, float)) and (
        after is None or (isinstance(after, (int, float)) and after < before)
    )
    if is_cheaper:
        return neutral("description-changed", Bump.PATCH, "It costs less.")
    return weaken("price-raised", Level.WARN)


_CONFIDENTIAL = (
    "", "public", "open", "internal", "private", "confidential", "sensitive", "pii", "restricted", "secret",
)  # fmt: skip
_confidentiality = Ranked(
    _CONFIDENTIAL,
    weaken("classification-raised", Level.WARN),
    policy("classification-lowered", Level.WARN, Bump.MINOR),
)


def classification(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of a column's classification: raising may revoke access, lowering may leak data.

    The first classification is neutral because the data itself does not change.
    """
    if change.action is ChangeKind.ADDED:
        return neutral("description-changed", Bump.PATCH, "It had no classification before.")
    return _confidentiality(change, context)


# Service levels, servers and text formats: rows that need more than a generic comparator.


def text_format(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of a text or date format; for a partition column it is the granularity."""
    if is_partition_key(change, context):
        return grain(change, context)
    type_ = change.new.normal("logicalType") if change.new else None
    is_text = type_ in ("string", None)
    if change.action is ChangeKind.ADDED:
        return strengthen("pattern-added") if is_text else strengthen("type-declared", Level.INFO)
    if change.action is ChangeKind.REMOVED:
        return weaken("pattern-removed") if is_text else weaken("type-undeclared", Level.WARN)
    return replace("pattern-changed", Level.WARN) if type_ == "string" else replace("type-format-changed")


_SMALLER = (
    "latency", "frequency", "errorRate", "timeToDetect", "timeToNotify", "timeToRepair", "timeOfAvailability",
    "generalAvailability",
)  # fmt: skip
_DIRECTIONS: Mapping[str, LevelComparator] = {
    **dict.fromkeys(_SMALLER, LevelComparator(smaller_is_better=True)),
    **dict.fromkeys(("availability", "throughput", "retention"), LevelComparator(smaller_is_better=False)),
}
END_DATES = ("endOfSupport", "endOfLife")


def sla_level(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a change of a service level's value; its property decides which direction is better."""
    name = change.new.column if change.new else ""
    if name in END_DATES:
        order = change.facts.get("order")
        if change.action is not ChangeKind.CHANGED or order is None:
            return replace("sla-changed", Level.WARN)
        return weaken("end-date-earlier") if order == 1 else neutral("status-reactivated")
    direction = _DIRECTIONS.get(name)
    return direction(change, context) if direction else replace("sla-changed", Level.WARN)


def sla_presence(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify a service level that was added or removed; adding an end date is the restriction."""
    element = change.new or change.old
    is_end_date = element is not None and element.column in END_DATES
    if change.action is ChangeKind.ADDED and is_end_date and element is not None:
        return _end_announced(parse_date(str(element.source_value("level"))), context)
    if change.action is ChangeKind.ADDED:
        return _SLA_ADDED
    return (
        neutral("status-reactivated", note="The end date was removed.")
        if is_end_date
        else weaken("sla-removed")
    )


def _end_announced(end: date | None, context: ComparisonContext) -> ChangeClassification:
    """Classify a new end date, which is fine if it is announced early enough."""
    if end is not None and end >= context.today + timedelta(days=context.notice_days):
        return neutral("status-deprecated", note=f"Its end was announced for {end}.")
    return weaken("end-date-earlier", note="It had no end date before, and the new one is near.")


_SLA_ADDED = strengthen("sla-added", Level.WARN)
_NON_PRODUCTION = frozenset(
    {"dev", "development", "test", "testing", "int", "integration", "qa", "uat", "ci", "demo", "local"}
    | {"staging", "stage", "preprod", "pre-prod", "sandbox"}
)


def server_presence(change: Change, _: ComparisonContext) -> ChangeClassification:
    """Classify a server that was added or removed; non-production servers matter less."""
    if change.action is ChangeKind.ADDED:
        return neutral("server-added")
    assert change.old is not None
    environment = str(change.old.normal("environment") or change.old.column).lower()
    return weaken("server-removed", Level.WARN if environment in _NON_PRODUCTION else Level.ERROR)


# TABLE: (element, attribute) -> comparator.
#
# An attribute without a row gives `unclassified-change`. A test compares the table with the models and the
# JSON Schema of ODCS. A trailing `.*` matches all remaining attributes.

_DOCUMENTED = FixedRule(neutral("description-changed", Bump.PATCH))
_TAGS = FixedRule(neutral("tags-changed", Bump.PATCH))
_CUSTOM = FixedRule(neutral("custom-property-changed", Bump.PATCH))
_CONTRACT_NAME = FixedRule(neutral("contract-name-changed", Bump.PATCH))
_OWNER = FixedRule(neutral("owner-changed", Bump.PATCH))
_TABLE_LABEL = FixedRule(neutral("table-label-changed"))
_COLUMN_LABEL = FixedRule(neutral("column-label-changed"))
# Titles shown next to the name; no query uses them.
_TABLE_TITLE = FixedRule(neutral("table-label-changed", Bump.PATCH))
_COLUMN_TITLE = FixedRule(neutral("column-label-changed", Bump.PATCH))
_RULE_LABEL = FixedRule(neutral("quality-label-changed", Bump.PATCH))
_SERVER_LABEL = FixedRule(neutral("server-label-changed"))
_LOCATION = FixedRule(replace("server-location-changed"))
_FORMAT = FixedRule(replace("server-format-changed"))
_RULE = FixedRule(replace("quality-changed", Level.WARN))
_SLA = FixedRule(replace("sla-changed", Level.WARN))
_SLA_LABEL = FixedRule(neutral("sla-changed", Bump.PATCH))
_MEANING = FixedRule(replace("type-format-changed"))
_DEPRECATED = flag(neutral("column-deprecated"), neutral("column-deprecated", note="No longer deprecated."))
_CONTACT = Presence(
    neutral("owner-changed", Bump.PATCH),
    weaken("owner-removed", Level.WARN),
    neutral("owner-changed", Bump.PATCH),
)
_DOCUMENTATION: Mapping[str, Comparator] = {
    "description": _DOCUMENTED,
    "authoritativeDefinitions": _DOCUMENTED,
    "tags": _TAGS,
    "customProperties.*": _CUSTOM,
}
# A column's unit is part of the meaning of its numbers, wherever it is declared.
_UNIT = Presence(
    strengthen("type-declared", Level.INFO),
    weaken("type-undeclared", Level.WARN),
    replace("type-format-changed"),
)


_CONTRACT: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **dict.fromkeys(("apiVersion", "context", "contractCreatedTs"), _DOCUMENTED),
    **dict.fromkeys(("name", "tenant", "domain", "dataProduct"), _CONTRACT_NAME),
    "id": FixedRule(weaken("contract-id-changed")),
    "team": _CONTACT,
}
_OBJECT: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": table_presence,
    "column": table_rename,
    **dict.fromkeys(("id", "name"), _TABLE_LABEL),
    **dict.fromkeys(("synonyms", "dataGranularityDescription", "context"), _DOCUMENTED),
    "businessName": _TABLE_TITLE,
    "deprecated": flag(neutral("status-deprecated"), neutral("status-reactivated")),
    **dict.fromkeys(("physicalType", "logicalType"), FixedRule(replace("table-kind-changed", Level.WARN))),
    "order": column_order,
    "primaryKey": primary_key,
    "partition": partition,
    "allowedValues": allowed_values,
    "dataset.additionalColumns": Ranked(
        ("forbid", "warn", "allow"),
        weaken("custom-property-changed", Level.WARN, "Undeclared columns may appear."),
        strengthen("custom-property-changed", Level.WARN, "Undeclared columns are now findings."),
        absent="warn",
    ),
    **dict.fromkeys(("dataset.compatibility", "dataset.partitionIndexes"), _CUSTOM),
    "dataset.marker": FixedRule(
        replace("server-location-changed", Level.WARN, "Consumers may wait for the marker.")
    ),
    "dataset.format": _FORMAT,
}
_OPTIONS: Mapping[str, Comparator] = {
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), Bound(upper=False)),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), Bound(upper=True)),
    "multipleOf": multiple_of,
    "uniqueItems": flag(strengthen("bound-added"), weaken("bound-removed")),
    "pattern": Presence(
        strengthen("pattern-added"), weaken("pattern-removed"), replace("pattern-changed", Level.WARN)
    ),
    "format": text_format,
    **dict.fromkeys(("timezone", "defaultTimezone"), FixedRule(replace("type-timezone-changed"))),
    **dict.fromkeys(("dimensions", "elementType"), FixedRule(replace("type-changed"))),
    **dict.fromkeys(("distanceMetric", "embeddingModel", "embeddingModelVersion", "normalized"), _MEANING),
}
_PROPERTY: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **{f"logicalTypeOptions.{key}": comparator for key, comparator in _OPTIONS.items()},
    "": presence,
    "column": column_rename,
    **dict.fromkeys(("id", "name", "semanticType"), _COLUMN_LABEL),
    **dict.fromkeys(("synonyms", "examples", "enumLabels"), _DOCUMENTED),
    **dict.fromkeys(("transformSourceObjects", "transformLogic", "transformDescription"), _DOCUMENTED),
    "businessName": _COLUMN_TITLE,
    "criticalDataElement": _TAGS,
    "encryptedName": FixedRule(replace("column-renamed", Level.WARN, "The encrypted column was renamed.")),
    "deprecated": _DEPRECATED,
    "logicalType": logical_type,
    "physicalType": physical_type,
    "required": flag(strengthen("required-added"), weaken("required-removed")),
    "unique": flag(strengthen("unique-added"), weaken("unique-removed")),
    "classification": classification,
    "allowedValues": allowed_values,
    "order": column_order,
    **dict.fromkeys(("customProperties.unit", "customProperties.currency"), _UNIT),
}
_QUALITY: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _RULE_LABEL),
    "": quality_presence,
    **dict.fromkeys(("id", "name", "dimension", "method", "businessImpact"), _RULE_LABEL),
    **dict.fromkeys(("scheduler", "schedule"), _RULE_LABEL),
    "severity": Ranked(
        ("info", "warning", "error", "critical"),
        strengthen("quality-tightened", Level.WARN),
        weaken("quality-relaxed", Level.WARN),
        absent="error",
    ),
    **dict.fromkeys(("type", "metric"), quality_subject),
    **dict.fromkeys(("query", "text", "engine", "implementation", "arguments", "scope.*"), _RULE),
    "validValues": allowed_values,
    "threshold": threshold,
}
_DELIVERY: Mapping[str, Comparator] = {
    "grace": LevelComparator(smaller_is_better=True),
    "objective": LevelComparator(smaller_is_better=False),
    **dict.fromkeys(("window", "partition", "servers"), _SLA),
    **dict.fromkeys(("giveUpAfter", "evidence", "severity", "warn", "falseWarnings"), _SLA_LABEL),
    "expect": Ranked(
        ("new_data", "delivery"),
        strengthen("sla-tightened", Level.WARN),
        weaken("sla-relaxed", note="Any new data now counts as a delivery."),
        absent="delivery",
    ),
    "empty": Ranked(
        ("allowed", "forbidden"),
        strengthen("sla-tightened", Level.WARN),
        weaken("sla-relaxed", note="Deliveries may now have zero rows."),
        absent="forbidden",
    ),
}
_SLAS: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **{f"delivery.{key}": comparator for key, comparator in _DELIVERY.items()},
    "": sla_presence,
    "column": FixedRule(replace("sla-removed", note="Another service level now has its id.")),
    **dict.fromkeys(("id", "driver", "scheduler"), _SLA_LABEL),
    **dict.fromkeys(("valueExt", "element"), _SLA),
    "level": sla_level,
    "schedule": schedule,
    "delivery": Presence(strengthen("sla-tightened", Level.WARN), weaken("sla-relaxed"), _SLA.result),
}
_SERVER: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _SERVER_LABEL),
    **dict.fromkeys(COORDINATES, _LOCATION),
    "": server_presence,
    **dict.fromkeys(("column", "id", "server", "environment", "workgroup", "stagingDir"), _SERVER_LABEL),
    **dict.fromkeys(("format", "delimiter", "encoding", "csv"), _FORMAT),
    **dict.fromkeys(("type", "layout"), _LOCATION),
}
_ROLE: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": Presence(_OWNER.result, weaken("role-removed", Level.WARN), _OWNER.result),
    "column": FixedRule(weaken("role-removed", Level.WARN, "It was renamed.")),
    **dict.fromkeys(("id", "firstLevelApprovers", "secondLevelApprovers"), _OWNER),
    "access": FixedRule(weaken("role-removed", Level.WARN, "It grants different access.")),
}
_SUPPORT: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _OWNER),
    **dict.fromkeys(("column", "id", "url", "tool", "scope", "invitationUrl", "route.*"), _OWNER),
    "": _CONTACT,
}
_PRICE: Mapping[str, Comparator] = {
    "": Presence(
        weaken("price-raised", Level.WARN, "There was no price before."),
        neutral("description-changed", Bump.PATCH, "It is now free."),
        weaken("price-raised", Level.WARN),
    ),
    "priceAmount": price,
    "priceCurrency": FixedRule(
        weaken("price-raised", Level.WARN, "The currency changed, so the prices cannot be compared.")
    ),
    "priceUnit": FixedRule(
        weaken("price-raised", Level.WARN, "The unit changed; prices cannot be compared.")
    ),
}
_RELATIONSHIP: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": Presence(
        strengthen("relationship-added", Level.WARN),
        weaken("relationship-removed", Level.WARN),
        _DOCUMENTED.result,
    ),
    "type": FixedRule(replace("relationship-removed", Level.WARN, "Its type changed.")),
}
TABLE: Mapping[ElementKind, Mapping[str, Comparator]] = {
    ElementKind.CONTRACT: _CONTRACT,
    ElementKind.OBJECT: _OBJECT,
    ElementKind.PROPERTY: _PROPERTY,
    ElementKind.QUALITY: _QUALITY,
    ElementKind.SLA: _SLAS,
    ElementKind.SERVER: _SERVER,
    ElementKind.ROLE: _ROLE,
    ElementKind.SUPPORT: _SUPPORT,
    ElementKind.PRICE: _PRICE,
    ElementKind.RELATIONSHIP: _RELATIONSHIP,
}
# Contract attributes that are evaluated with the version policy, because they depend on further values.
POLICY_ATTRIBUTES = frozenset({"status", "version"})


def comparator_for(kind: ElementKind, attribute: str) -> Comparator | None:
    """Return the comparator of an attribute, or None if the table has none."""
    rows = TABLE[kind]
    comparator = rows.get(attribute)
    if comparator is None and "." in attribute:
        comparator = rows.get(f"{attribute.partition('.')[0]}.*")
    return comparator


def classify(change: Change, context: ComparisonContext) -> ChangeClassification:
    """Classify one change, before the version policy."""
    comparator = comparator_for(change.kind, change.attribute)
    if comparator is None:
        subject = f"{change.kind} {change.attribute}".strip()
        return replace("unclassified-change", Level.WARN, f"dq has no rule for changes of {subject!r}.")
    return comparator(change, context)
