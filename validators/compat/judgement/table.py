"""TABLE: for every attribute of every element of a contract, how a change of it is judged.

A row is (element, attribute) -> comparator. An attribute without a row gives `unclassified-change`, and a
test holds the table against the models and the JSON Schema of ODCS. A trailing `.*` stands for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from dq.contracts.diff.element import Change, ElementKind
from dq.contracts.diff.normalize import COORDINATES
from dq.validators.compat.judgement import columns, partitions, promises, types
from dq.validators.compat.judgement import comparators as by
from dq.validators.compat.judgement.comparators import (
    Bound,
    Comparator,
    Measured,
    Presence,
    Ranked,
    Same,
    flag,
)
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import Bump, Judgement, Level, neutral, replace, strengthen, weaken

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
    "apiVersion": _DOCUMENTED,
    "id": Same(weaken("contract-id-changed")),
    "name": _NAMED,
    "tenant": _NAMED,
    "domain": _NAMED,
    "dataProduct": _NAMED,
    "context": _DOCUMENTED,
    "contractCreatedTs": _DOCUMENTED,
    "team": _CONTACT,
}
_OBJECT: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": columns.table_presence,
    "column": columns.table_renamed,
    "id": _TABLE_LABEL,
    "name": _TABLE_LABEL,
    "businessName": _TABLE_TITLE,
    "synonyms": _DOCUMENTED,
    "dataGranularityDescription": _DOCUMENTED,
    "context": _DOCUMENTED,
    "deprecated": flag(neutral("status-deprecated"), neutral("status-reactivated")),
    "physicalType": Same(replace("table-kind-changed", Level.WARN)),
    "logicalType": Same(replace("table-kind-changed", Level.WARN)),
    "order": columns.ordered,
    "primaryKey": by.primary_key,
    "partition": partitions.partition,
    "allowedValues": by.allowed_values,
    "dataset.additionalColumns": Ranked(
        ("forbid", "warn", "allow"),
        weaken("custom-property-changed", Level.WARN, "Columns may appear that no one promised."),
        strengthen("custom-property-changed", Level.WARN, "Columns that no one promised are found now."),
        absent="warn",
    ),
    "dataset.compatibility": _CUSTOM,
    "dataset.partitionIndexes": _CUSTOM,
    "dataset.marker": Same(
        replace("server-location-changed", Level.WARN, "Consumers may wait for the marker.")
    ),
    "dataset.format": _FORMAT,
}
_OPTIONS: Mapping[str, Comparator] = {
    "minimum": Bound(upper=False),
    "minLength": Bound(upper=False),
    "minItems": Bound(upper=False),
    "minProperties": Bound(upper=False),
    "maximum": Bound(upper=True),
    "maxLength": Bound(upper=True),
    "maxItems": Bound(upper=True),
    "maxProperties": Bound(upper=True),
    "multipleOf": by.multiple,
    "uniqueItems": flag(strengthen("bound-added"), weaken("bound-removed")),
    "pattern": Presence(
        strengthen("pattern-added"), weaken("pattern-removed"), replace("pattern-changed", Level.WARN)
    ),
    "format": promises.text_format,
    "timezone": Same(replace("type-timezone-changed")),
    "defaultTimezone": Same(replace("type-timezone-changed")),
    "dimensions": Same(replace("type-changed")),
    "elementType": Same(replace("type-changed")),
    "distanceMetric": _MEANING,
    "embeddingModel": _MEANING,
    "embeddingModelVersion": _MEANING,
    "normalized": _MEANING,
}
_PROPERTY: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    **{f"logicalTypeOptions.{key}": comparator for key, comparator in _OPTIONS.items()},
    "": columns.presence,
    "column": columns.renamed,
    "id": _COLUMN_LABEL,
    "name": _COLUMN_LABEL,
    "businessName": _COLUMN_TITLE,
    "synonyms": _DOCUMENTED,
    "examples": _DOCUMENTED,
    "transformSourceObjects": _DOCUMENTED,
    "transformLogic": _DOCUMENTED,
    "transformDescription": _DOCUMENTED,
    "semanticType": _COLUMN_LABEL,
    "criticalDataElement": _TAGS,
    "encryptedName": Same(replace("column-renamed", Level.WARN, "The encrypted column has another name.")),
    "deprecated": _DEPRECATED,
    "logicalType": types.logical,
    "physicalType": types.physical,
    "required": flag(strengthen("required-added"), weaken("required-removed")),
    "unique": flag(strengthen("unique-added"), weaken("unique-removed")),
    "classification": by.classification,
    "allowedValues": by.allowed_values,
    "enumLabels": _DOCUMENTED,
    "order": columns.ordered,
    "customProperties.unit": _UNIT,
    "customProperties.currency": _UNIT,
}
_QUALITY: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _RULE_LABEL),
    "": by.quality_presence,
    "id": _RULE_LABEL,
    "name": _RULE_LABEL,
    "dimension": _RULE_LABEL,
    "method": _RULE_LABEL,
    "businessImpact": _RULE_LABEL,
    "scheduler": _RULE_LABEL,
    "schedule": _RULE_LABEL,
    "severity": Ranked(
        ("info", "warning", "error", "critical"),
        strengthen("quality-tightened", Level.WARN),
        weaken("quality-relaxed", Level.WARN),
        absent="error",
    ),
    "type": by.quality_subject,
    "metric": by.quality_subject,
    "query": _RULE,
    "text": _RULE,
    "engine": _RULE,
    "implementation": _RULE,
    "arguments": _RULE,
    "validValues": by.allowed_values,
    "threshold": by.threshold,
    "scope.*": _RULE,
}
_DELIVERY: Mapping[str, Comparator] = {
    "grace": Measured(smaller_is_better=True),
    "objective": Measured(smaller_is_better=False),
    "window": _SLA,
    "giveUpAfter": _SLA_LABEL,
    "evidence": _SLA_LABEL,
    "severity": _SLA_LABEL,
    "partition": _SLA,
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
    "": promises.sla_presence,
    "column": Same(replace("sla-removed", note="Another one has its id.")),
    "id": _SLA_LABEL,
    "level": promises.sla_level,
    "valueExt": _SLA,
    "element": _SLA,
    "driver": _SLA_LABEL,
    "scheduler": _SLA_LABEL,
    "schedule": by.schedule,
    "delivery": Presence(strengthen("sla-tightened", Level.WARN), weaken("sla-relaxed"), _SLA.always),
}
_SERVER: Mapping[str, Comparator] = {
    **dict.fromkeys(_DOCUMENTATION, _SERVER_LABEL),
    **dict.fromkeys(COORDINATES, _LOCATION),
    "": promises.server_presence,
    "column": _SERVER_LABEL,
    "id": _SERVER_LABEL,
    "server": _SERVER_LABEL,
    "environment": _SERVER_LABEL,
    "workgroup": _SERVER_LABEL,
    "stagingDir": _SERVER_LABEL,
    "type": _LOCATION,
    "format": _FORMAT,
    "delimiter": _FORMAT,
    "encoding": _FORMAT,
    "csv": _FORMAT,
}
_ROLE: Mapping[str, Comparator] = {
    **_DOCUMENTATION,
    "": Presence(_OWNED.always, weaken("role-removed", Level.WARN), _OWNED.always),
    "column": Same(weaken("role-removed", Level.WARN, "It has another name.")),
    "id": _OWNED,
    "access": Same(weaken("role-removed", Level.WARN, "It gives other access.")),
    "firstLevelApprovers": _OWNED,
    "secondLevelApprovers": _OWNED,
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
    "priceAmount": by.price,
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
