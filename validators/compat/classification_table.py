"""TABLE: for every attribute of every element of a contract, how a change of it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from dq.contracts.diff import Change, ElementKind, Fires, Motion, date_of
from dq.contracts.normalize import COORDINATES, RuleThreshold
from dq.validators.compat.classification import (
    Bump,
    Judgement,
    Level,
    Setting,
    grain,
    is_partition_key,
    logical,
    neutral,
    ordered,
    partition,
    physical,
    policy,
    presence,
    renamed,
    replace,
    strengthen,
    table_presence,
    table_renamed,
    weaken,
)

# The comparators: few ways in which two values of an attribute can relate, each made for many rows.

Comparator = Callable[[Change, Setting], Judgement]


@dataclass(frozen=True, slots=True)
class Same:
    """Whatever happens to the attribute, it means this."""

    always: Judgement

    def __call__(self, _change: Change, _: Setting) -> Judgement:
        return self.always


@dataclass(frozen=True, slots=True)
class Presence:
    """It matters whether the attribute is there. A flag is there when it is true."""

    added: Judgement
    removed: Judgement
    changed: Judgement

    def __call__(self, change: Change, _: Setting) -> Judgement:
        by_action = {Motion.ADDED: self.added, Motion.REMOVED: self.removed}
        return by_action.get(change.action, self.changed)


def flag(on: Judgement, off: Judgement) -> Presence:
    """An attribute that is true or absent."""
    return Presence(on, off, on)


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of values; an upper one is relaxed when it grows, a lower one when it falls."""

    upper: bool

    def __call__(self, change: Change, _: Setting) -> Judgement:
        if change.action is Motion.ADDED:
            return strengthen("bound-added")
        if change.action is Motion.REMOVED:
            return weaken("bound-removed")
        before, after = _limit(change.before), _limit(change.after)
        if before is None or after is None or isinstance(before[0], str) != isinstance(after[0], str):
            return replace("bound-relaxed", note="The two bounds cannot be compared.")
        if before[0] == after[0]:
            return strengthen("bound-tightened") if after[1] else weaken("bound-relaxed")
        relaxed = (after[0] > before[0]) == self.upper  # type: ignore[operator]  # both text, or both numbers
        return weaken("bound-relaxed") if relaxed else strengthen("bound-tightened")


def _limit(value: object) -> tuple[str | float, bool] | None:
    """A limit and whether it is itself left out."""
    limit, exclusive = value if isinstance(value, tuple) and len(value) == 2 else (value, False)
    return (limit, bool(exclusive)) if isinstance(limit, (str, int, float)) else None


def multiple(change: Change, setting: Setting) -> Judgement:
    """`multipleOf`: the multiples of 10 are among those of 5."""
    if change.action is not Motion.CHANGED:
        return Bound(upper=True)(change, setting)
    before, after = change.before, change.after
    if isinstance(before, (int, float)) and isinstance(after, (int, float)) and before and after:
        if before % after == 0:
            return weaken("bound-relaxed")
        if after % before == 0:
            return strengthen("bound-tightened")
    return replace("bound-relaxed", note="Neither is a multiple of the other.")


def allowed_values(change: Change, _: Setting) -> Judgement:
    """Which values a column may have, as a set."""
    if change.action is Motion.ADDED:
        return strengthen("allowed-values-added")
    if change.action is Motion.REMOVED:
        return weaken("allowed-values-removed")
    before, after = _sets(change)
    if before < after:
        return weaken("allowed-values-widened", Level.WARN)
    if after < before:
        return strengthen("allowed-values-narrowed")
    return replace("allowed-values-changed")


def primary_key(change: Change, _: Setting) -> Judgement:
    """The columns of a primary key, in order."""
    if change.action is Motion.ADDED:
        return strengthen("primary-key-added", Level.WARN)
    if change.action is Motion.REMOVED:
        return weaken("primary-key-changed", note="No key is promised any more.")
    before, after = _sets(change)
    return neutral("primary-key-reordered", Bump.PATCH) if before == after else replace("primary-key-changed")


def _sets(change: Change) -> tuple[set[object], set[object]]:
    before, after = (set(one) if isinstance(one, tuple) else set() for one in (change.before, change.after))
    return before, after


@dataclass(frozen=True, slots=True)
class Ranked:
    """Words in an order, lowest first; a word that is not among them stands above all."""

    words: Sequence[str]
    raised: Judgement
    lowered: Judgement
    absent: str = ""

    def __call__(self, change: Change, _: Setting) -> Judgement:
        return self.raised if self._rank(change.after) >= self._rank(change.before) else self.lowered

    def _rank(self, value: object) -> int:
        word = self.absent if value is None else str(value).lower()
        return self.words.index(word) if word in self.words else len(self.words) if word else -1


@dataclass(frozen=True, slots=True)
class Measured:
    """A level that is better when it is smaller, or larger; `order` was found by the diff."""

    smaller_is_better: bool = True

    def __call__(self, change: Change, _: Setting) -> Judgement:
        if change.action is Motion.ADDED:
            return strengthen("sla-tightened", Level.WARN)
        if change.action is Motion.REMOVED:
            return weaken("sla-relaxed")
        order = change.facts.get("order")
        if order is None:
            return replace("sla-changed", Level.WARN)
        if (order == -1) == self.smaller_is_better:
            return weaken("sla-relaxed")
        return strengthen("sla-tightened", Level.WARN)


def schedule(change: Change, _: Setting) -> Judgement:
    """When a delivery is due, by the instants of a year."""
    if change.action is Motion.ADDED:
        return strengthen("sla-tightened", Level.WARN)
    if change.action is Motion.REMOVED:
        return weaken("sla-relaxed")
    by_fires = {
        Fires.LATER: weaken("sla-relaxed"),
        Fires.EARLIER: strengthen("sla-tightened", Level.WARN),
    }
    fires = change.facts.get("fires")
    other = replace("sla-changed", Level.WARN, "Neither schedule is at least as early on every day.")
    return by_fires.get(fires, other) if isinstance(fires, Fires) else other


# Metrics that promise what a column's own keys could promise: dropping one is like dropping `required`.
SCHEMA_LIKE = frozenset({"nullValues", "missingValues", "invalidValues", "duplicateValues"})


def quality_level(change: Change) -> Level:
    """How much a quality rule matters to consumers."""
    element = change.old or change.new
    name = element.normal("metric") if element else None
    return Level.ERROR if name in SCHEMA_LIKE else Level.WARN


def quality_presence(change: Change, _: Setting) -> Judgement:
    """A quality rule that came or went."""
    if change.action is Motion.ADDED:
        return strengthen("quality-added", Level.WARN)
    return weaken("quality-removed", quality_level(change))


def quality_subject(change: Change, _: Setting) -> Judgement:
    """Return the judgement of a rule that measures something else under its old id or name."""
    if quality_level(change) is Level.ERROR:
        return weaken("quality-removed", Level.ERROR, "Another rule has its id or name.")
    return replace("quality-changed", Level.WARN)


def threshold(change: Change, _: Setting) -> Judgement:
    """What a quality rule's metric may be, as an interval."""
    if change.action is Motion.ADDED:
        return strengthen("quality-tightened", Level.WARN)
    if change.action is Motion.REMOVED:
        return weaken("quality-relaxed", quality_level(change))
    before, after = change.before, change.after
    if isinstance(before, RuleThreshold) and isinstance(after, RuleThreshold) and before.unit == after.unit:
        if before.interval and after.interval and before.interval.within(after.interval):
            return weaken("quality-relaxed", quality_level(change))
        if before.interval and after.interval and after.interval.within(before.interval):
            return strengthen("quality-tightened", Level.WARN)
    return replace("quality-changed", Level.WARN)


def price(change: Change, _: Setting) -> Judgement:
    """The amount that consumers pay."""
    before, after = change.before, change.after
    fell = isinstance(before, (int, float)) and (
        after is None or (isinstance(after, (int, float)) and after < before)
    )
    if fell:
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


def classification(change: Change, setting: Setting) -> Judgement:
    """How confidential a column is: raised may close access, lowered may leak.

    The first declaration raises nothing: the data is what it was.
    """
    if change.action is Motion.ADDED:
        return neutral("description-changed", Bump.PATCH, "It had no classification before.")
    return _confidentiality(change, setting)


# What changes of service levels, servers and written formats mean: rows that need more than a comparator.


def text_format(change: Change, setting: Setting) -> Judgement:
    """The format of a text, or how a date is written; the grain of a partition."""
    if is_partition_key(change, setting):
        return grain(change, setting)
    type_ = change.new.normal("logicalType") if change.new else None
    text = type_ in ("string", None)
    if change.action is Motion.ADDED:
        return strengthen("pattern-added") if text else strengthen("type-declared", Level.INFO)
    if change.action is Motion.REMOVED:
        return weaken("pattern-removed") if text else weaken("type-undeclared", Level.WARN)
    return replace("pattern-changed", Level.WARN) if type_ == "string" else replace("type-format-changed")


_SMALLER = (
    "latency", "frequency", "errorRate", "timeToDetect", "timeToNotify", "timeToRepair", "timeOfAvailability",
    "generalAvailability",
)  # fmt: skip
_DIRECTIONS: Mapping[str, Measured] = {
    **dict.fromkeys(_SMALLER, Measured(smaller_is_better=True)),
    **dict.fromkeys(("availability", "throughput", "retention"), Measured(smaller_is_better=False)),
}
END_DATES = ("endOfSupport", "endOfLife")


def sla_level(change: Change, setting: Setting) -> Judgement:
    """The level of a service level, better when smaller or larger by its property."""
    name = change.new.column if change.new else ""
    if name in END_DATES:
        order = change.facts.get("order")
        if change.action is not Motion.CHANGED or order is None:
            return replace("sla-changed", Level.WARN)
        return weaken("end-date-earlier") if order == 1 else neutral("status-reactivated")
    direction = _DIRECTIONS.get(name)
    return direction(change, setting) if direction else replace("sla-changed", Level.WARN)


def sla_presence(change: Change, setting: Setting) -> Judgement:
    """A service level that came or went; an end date is a limit, so its coming is the loss."""
    element = change.new or change.old
    ends = element is not None and element.column in END_DATES
    if change.action is Motion.ADDED and ends and element is not None:
        return _announced(date_of(str(element.shown("level"))), setting)
    if change.action is Motion.ADDED:
        return _PROMISED
    return neutral("status-reactivated", note="There is no end any more.") if ends else weaken("sla-removed")


def _announced(end: date | None, setting: Setting) -> Judgement:
    """An end where there was none: fine when it is told early enough."""
    if end is not None and end >= setting.today + timedelta(days=setting.notice_days):
        return neutral("status-deprecated", note=f"Its end is announced for {end}.")
    return weaken("end-date-earlier", note="There was no end before, and it is near.")


_PROMISED = strengthen("sla-added", Level.WARN)
_OTHER_PLACES = frozenset(
    {"dev", "development", "test", "testing", "int", "integration", "qa", "uat", "ci", "demo", "local"}
    | {"staging", "stage", "preprod", "pre-prod", "sandbox"}
)


def server_presence(change: Change, _: Setting) -> Judgement:
    """A server that came or went; one that is not for production is missed less."""
    if change.action is Motion.ADDED:
        return neutral("server-added")
    assert change.old is not None
    place = str(change.old.normal("environment") or change.old.column).lower()
    return weaken("server-removed", Level.WARN if place in _OTHER_PLACES else Level.ERROR)


# TABLE: for every attribute of every element of a contract, how a change of it is judged.
#
# A row is (element, attribute) -> comparator. An attribute without a row gives `unclassified-change`, and a
# test holds the table against the models and the JSON Schema of ODCS. A trailing `.*` stands for the rest.

_DOCUMENTED = Same(neutral("description-changed", Bump.PATCH))
_TAGS = Same(neutral("tags-changed", Bump.PATCH))
_CUSTOM = Same(neutral("custom-property-changed", Bump.PATCH))
_NAMED = Same(neutral("contract-name-changed", Bump.PATCH))
_OWNED = Same(neutral("owner-changed", Bump.PATCH))
_TABLE_LABEL = Same(neutral("table-label-changed"))
_COLUMN_LABEL = Same(neutral("column-label-changed"))
# What readers see beside the name, and no query uses.
_TABLE_TITLE = Same(neutral("table-label-changed", Bump.PATCH))
_COLUMN_TITLE = Same(neutral("column-label-changed", Bump.PATCH))
_RULE_LABEL = Same(neutral("quality-label-changed", Bump.PATCH))
_SERVER_LABEL = Same(neutral("server-label-changed"))
_LOCATION = Same(replace("server-location-changed"))
_FORMAT = Same(replace("server-format-changed"))
_RULE = Same(replace("quality-changed", Level.WARN))
_SLA = Same(replace("sla-changed", Level.WARN))
_SLA_LABEL = Same(neutral("sla-changed", Bump.PATCH))
_MEANING = Same(replace("type-format-changed"))
_DEPRECATED = flag(neutral("column-deprecated"), neutral("column-deprecated", note="It is kept after all."))
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
# A unit of a column is part of what its numbers mean, wherever it is written.
_UNIT = Presence(
    strengthen("type-declared", Level.INFO),
    weaken("type-undeclared", Level.WARN),
    replace("type-format-changed"),
)


_CONTRACT: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **dict.fromkeys(("apiVersion", "context", "contractCreatedTs"), _DOCUMENTED),
    **dict.fromkeys(("name", "tenant", "domain", "dataProduct"), _NAMED),
    "id": Same(weaken("contract-id-changed")),
    "team": _CONTACT,
}
_OBJECT: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": table_presence,
    "column": table_renamed,
    **dict.fromkeys(("id", "name"), _TABLE_LABEL),
    **dict.fromkeys(("synonyms", "dataGranularityDescription", "context"), _DOCUMENTED),
    "businessName": _TABLE_TITLE,
    "deprecated": flag(neutral("status-deprecated"), neutral("status-reactivated")),
    **dict.fromkeys(("physicalType", "logicalType"), Same(replace("table-kind-changed", Level.WARN))),
    "order": ordered,
    "primaryKey": primary_key,
    "partition": partition,
    "allowedValues": allowed_values,
    "dataset.additionalColumns": Ranked(
        ("forbid", "warn", "allow"),
        weaken("custom-property-changed", Level.WARN, "Columns may appear that no one promised."),
        strengthen("custom-property-changed", Level.WARN, "Columns that no one promised are found now."),
        absent="warn",
    ),
    **dict.fromkeys(("dataset.compatibility", "dataset.partitionIndexes"), _CUSTOM),
    "dataset.marker": Same(
        replace("server-location-changed", Level.WARN, "Consumers may wait for the marker.")
    ),
    "dataset.format": _FORMAT,
}
_OPTIONS: Mapping[str, Comparator] = {
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), Bound(upper=False)),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), Bound(upper=True)),
    "multipleOf": multiple,
    "uniqueItems": flag(strengthen("bound-added"), weaken("bound-removed")),
    "pattern": Presence(
        strengthen("pattern-added"), weaken("pattern-removed"), replace("pattern-changed", Level.WARN)
    ),
    "format": text_format,
    **dict.fromkeys(("timezone", "defaultTimezone"), Same(replace("type-timezone-changed"))),
    **dict.fromkeys(("dimensions", "elementType"), Same(replace("type-changed"))),
    **dict.fromkeys(("distanceMetric", "embeddingModel", "embeddingModelVersion", "normalized"), _MEANING),
}
_PROPERTY: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **{f"logicalTypeOptions.{key}": comparator for key, comparator in _OPTIONS.items()},
    "": presence,
    "column": renamed,
    **dict.fromkeys(("id", "name", "semanticType"), _COLUMN_LABEL),
    **dict.fromkeys(("synonyms", "examples", "enumLabels"), _DOCUMENTED),
    **dict.fromkeys(("transformSourceObjects", "transformLogic", "transformDescription"), _DOCUMENTED),
    "businessName": _COLUMN_TITLE,
    "criticalDataElement": _TAGS,
    "encryptedName": Same(replace("column-renamed", Level.WARN, "The encrypted column has another name.")),
    "deprecated": _DEPRECATED,
    "logicalType": logical,
    "physicalType": physical,
    "required": flag(strengthen("required-added"), weaken("required-removed")),
    "unique": flag(strengthen("unique-added"), weaken("unique-removed")),
    "classification": classification,
    "allowedValues": allowed_values,
    "order": ordered,
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
    "grace": Measured(smaller_is_better=True),
    "objective": Measured(smaller_is_better=False),
    **dict.fromkeys(("window", "partition"), _SLA),
    **dict.fromkeys(("giveUpAfter", "evidence", "severity"), _SLA_LABEL),
    "empty": Ranked(
        ("allowed", "forbidden"),
        strengthen("sla-tightened", Level.WARN),
        weaken("sla-relaxed", note="Zero rows are a delivery now."),
        absent="forbidden",
    ),
}
_SLAS: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **{f"delivery.{key}": comparator for key, comparator in _DELIVERY.items()},
    "": sla_presence,
    "column": Same(replace("sla-removed", note="Another one has its id.")),
    **dict.fromkeys(("id", "driver", "scheduler"), _SLA_LABEL),
    **dict.fromkeys(("valueExt", "element"), _SLA),
    "level": sla_level,
    "schedule": schedule,
    "delivery": Presence(strengthen("sla-tightened", Level.WARN), weaken("sla-relaxed"), _SLA.always),
}
_SERVER: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _SERVER_LABEL),
    **dict.fromkeys(COORDINATES, _LOCATION),
    "": server_presence,
    **dict.fromkeys(("column", "id", "server", "environment", "workgroup", "stagingDir"), _SERVER_LABEL),
    **dict.fromkeys(("format", "delimiter", "encoding", "csv"), _FORMAT),
    "type": _LOCATION,
}
_ROLE: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": Presence(_OWNED.always, weaken("role-removed", Level.WARN), _OWNED.always),
    "column": Same(weaken("role-removed", Level.WARN, "It has another name.")),
    **dict.fromkeys(("id", "firstLevelApprovers", "secondLevelApprovers"), _OWNED),
    "access": Same(weaken("role-removed", Level.WARN, "It gives other access.")),
}
_SUPPORT: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _OWNED),
    **dict.fromkeys(("column", "id", "url", "tool", "scope", "invitationUrl", "route.*"), _OWNED),
    "": _CONTACT,
}
_PRICE: Mapping[str, Comparator] = {
    "": Presence(
        weaken("price-raised", Level.WARN, "There was no price before."),
        neutral("description-changed", Bump.PATCH, "It costs nothing any more."),
        weaken("price-raised", Level.WARN),
    ),
    "priceAmount": price,
    "priceCurrency": Same(
        weaken("price-raised", Level.WARN, "Another currency: nobody can say which is more.")
    ),
    "priceUnit": Same(weaken("price-raised", Level.WARN, "Another unit: nobody can say which is more.")),
}
_RELATIONSHIP: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": Presence(
        strengthen("relationship-added", Level.WARN),
        weaken("relationship-removed", Level.WARN),
        _DOCUMENTED.always,
    ),
    "type": Same(replace("relationship-removed", Level.WARN, "It has another type.")),
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
# Attributes of the contract that the policy stage judges, because more than two values speak there.
BY_POLICY = frozenset({"status", "version"})


def row(kind: ElementKind, attribute: str) -> Comparator | None:
    """The comparator of an attribute, or None when nobody has thought of it yet."""
    rows = TABLE[kind]
    found = rows.get(attribute)
    if found is None and "." in attribute:
        found = rows.get(f"{attribute.partition('.')[0]}.*")
    return found


def classify(change: Change, setting: Setting) -> Judgement:
    """What one change means, before policy."""
    comparator = row(change.kind, change.attribute)
    if comparator is None:
        where = f"{change.kind} {change.attribute}".strip()
        return replace("unclassified-change", Level.WARN, f"dq has no rule for a change of {where!r}.")
    return comparator(change, setting)
