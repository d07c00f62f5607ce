"""dq's extensions of ODCS: one typed custom property per kind of element, and their JSON Schema."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from dq.contracts.layout import HIVE, Layout, parse_layout
from dq.contracts.model import (
    SOURCE_MAP_KEY,
    Contract,
    CustomProperty,
    Extensible,
    Node,
    Property,
    Quality,
    SchemaObject,
    Server,
    SlaProperty,
    SourceMap,
    SupportChannel,
    parse_model,
    strip_source_maps,
)
from dq.contracts.outcome import DataFormat, Finding, ValueProblem, error_finding
from dq.contracts.schedule.calendar import DayEffect, HolidayCalendar

# Value types of the extensions: dates, texts, partition templates, markers, characters.

_LONGEST_NAME = 255


def _date(value: object) -> object:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is not a date of the form 2027-01-31") from None
    return value


def _partition_templates(value: object) -> object:
    """Normalize `{key: template}` or `{key: [template, …]}`, without source maps."""
    if not isinstance(value, dict):
        raise ValueError("it must be a mapping from partition columns to values")
    result = {}
    for key, templates in value.items():
        if key == SOURCE_MAP_KEY:
            continue
        template_list = templates if isinstance(templates, list) else [templates]
        if not template_list or not all(isinstance(template, str) for template in template_list):
            raise ValueError(f"{key} must be text or a list of texts; quote numbers and dates")
        result[key] = template_list
    if not result:
        raise ValueError("it has no partition column")
    return result


# A marker with such a name would be mistaken for data, or for metadata of a table format.
_DATA = re.compile(
    r"(?i).*\.(parquet|orc|avro|json|csv|txt|gz|zst|snappy|lz4|bz2|crc)|.*=.*|_temporary|_delta_log|_metadata"
    r"|_common_metadata|metadata|\.hoodie"
)


def _marker(value: object) -> object:
    """Validate a single file name that cannot be mistaken for data."""
    if not isinstance(value, str):
        return value
    is_invisible = not value.isprintable() or value != value.strip()
    if is_invisible or re.search(r"[/\\:*?\[\]{}#%~]", value) or not value.strip(". "):
        raise ValueError(f"{value!r} is not a valid file name; use e.g. _SUCCESS")
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f"it is longer than {_LONGEST_NAME} bytes")
    if _DATA.fullmatch(value):
        raise ValueError(f"{value!r} looks like a data file; use a marker name, e.g. _SUCCESS")
    return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be empty")
    return text


Date = Annotated[dt.date, BeforeValidator(_date)]

NonEmptyText = Annotated[str, AfterValidator(_not_blank)]

Marker = Annotated[str, BeforeValidator(_marker), WithJsonSchema({"type": "string"})]

IDENTITY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
NORMALIZER = re.compile(r"text|exact|phone:[1-9][0-9]{0,3}")

_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Partition = Annotated[
    dict[str, list[str]],
    BeforeValidator(_partition_templates),
    WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, _TEXTS]}}),
]


def _layout_path(value: object) -> object:
    """Validate a template of folders; the message ends without a period, as those of pydantic do."""
    parsed = parse_layout(value) if isinstance(value, str) else None
    if isinstance(parsed, ValueProblem):
        raise ValueError(f"{parsed.message.rstrip('.')}. {parsed.hint.rstrip('.')}")
    return value


LayoutPath = Annotated[str, BeforeValidator(_layout_path), WithJsonSchema({"type": "string"})]

Character = Annotated[str, Field(min_length=1, max_length=1)]


# Extensions: one custom property per kind of element, with a typed value that allows no unknown keys.
#
# | on | property | model |
# |---|---|---|
# | an SLA entry (ODCS 3.0 and 3.1: the contract, as `delivery:<sla id>`) | `delivery` | `Delivery` |
# | an object | `dataset` | `Dataset` |
# | a server | `csv` | `Csv` |
# | a server | `layout` | `LayoutTerms` |
# | a quality rule | `scope` | `Scope` |
# | a support channel | `route` | `Route` |
# | an SLA entry (the same, as `retention:<sla id>`) | `retention` | `RetentionTerms` |
# | a property, at any depth | `identity` | `IdentityTerms` |
#
# On ODCS 3.2 the entry says `vendor: dq`.

VENDOR = "dq"


class Calendar(Node):
    """Days in the schedule's zone on which a delivery is not due as the schedule says."""

    model_config = ConfigDict(alias_generator=None)

    skip: list[Date] = Field([], description="Dates without a delivery.")
    move: list[Date] = Field([], description="Dates whose delivery is due on the next working day.")
    excuse: list[Date] = Field([], description="Dates whose delivery is due, but excluded from the SLO.")
    weekdays_only: bool = Field(False, description="Treat Saturdays and Sundays as free days.")
    holidays: list[str] = Field(
        [], description="Treat public holidays as free days: ISO 3166 codes, e.g. DE or DE-BY."
    )
    free_days: Literal["skip", "move", "excuse"] = Field(
        "skip", description="How to handle a delivery on a weekend or public holiday."
    )
    valid_until: Date | None = Field(None, description="Last date that the calendar covers.")

    def holiday_calendar(self) -> HolidayCalendar:
        """Return the calendar in the form that schedules use."""
        return HolidayCalendar(
            frozenset(self.skip),
            self.weekdays_only,
            self.valid_until,
            frozenset(self.move),
            frozenset(self.excuse),
            tuple(dict.fromkeys(self.holidays)),
            DayEffect(self.free_days),
        )


# Evidence of the arrival of a cycle, most trusted first.
EvidenceSource = Literal["receipt", "marker", "commit", "event", "file"]


class Delivery(Node):
    """A delivery: when it is due, what it must bring and how its arrival is known."""

    timezone: str = Field("UTC", description="IANA zone of the schedule.")
    dialect: Literal["unix", "seconds_first", "eventbridge"] = Field(
        "unix", description="How to read the cron."
    )
    dst: Literal["vixie", "skip", "shift"] = Field(
        "vixie", description="How to handle times inside a DST change."
    )
    grace: str = Field("0m", description="Time after the due time during which a delivery is still on time.")
    partition: Partition = Field(
        {},
        description="Partition column to value template, e.g. '{due - 1d:%Y-%m-%d}'; a list gives several "
        "values.",
    )
    expect: Literal["delivery", "new_data"] = Field(
        "delivery",
        description="What must arrive: the delivery's own partition or update, or any new data since the "
        "previous due time, in any partition.",
    )
    evidence: list[EvidenceSource] = Field(
        [*get_args(EvidenceSource)], description="Evidence of an arrival, most trusted first."
    )
    servers: list[str] = Field(
        [],
        description="Servers on which the delivery must arrive, each with its own history and error budget; "
        "default: the watched server.",
    )
    empty: Literal["allowed", "forbidden"] = Field(
        "forbidden", description="Whether a delivery may have zero rows."
    )
    calendar: Calendar | None = None
    objective: str = Field("95%", description="Objective: share of deliveries on time.")
    window: str = Field("90d", description="Rolling window of the objective.")
    severity: Literal["info", "warning", "error", "critical"] = Field(
        "error", description="Severity of a breach."
    )
    give_up_after: str | None = Field(
        None, description="Close a missing delivery as never delivered after this time."
    )
    warn: Literal["usual"] | None = Field(
        None,
        description="Warn before the breach when the usual time has passed and neither data nor its inputs "
        "are there; default: no early warnings.",
    )
    false_warnings: str = Field(
        "1/quarter",
        description="How many early warnings may turn out false, e.g. 1/quarter; units are week, month, "
        "quarter and year.",
    )


class DatasetTerms(Node):
    """Format and layout of an object's data, and how it may change."""

    additional_columns: Literal["forbid", "warn", "allow"] = Field(
        "warn", description="How to treat columns that the contract does not declare."
    )
    compatibility: Literal[
        "FORWARD", "BACKWARD", "FULL", "NONE", "FORWARD_TRANSITIVE", "BACKWARD_TRANSITIVE", "FULL_TRANSITIVE"
    ] = Field("FORWARD", description="Which readers a change of this object may not break.")
    marker: Marker = Field("_SUCCESS", description="File that the producer writes last.")
    format: DataFormat | None = None
    partition_indexes: list[list[str]] = Field(
        [], description="Glue partition indexes, at most three, each a list of partition keys."
    )


class Csv(Node):
    """Format of the CSV files of a server; RFC 4180 by default."""

    delimiter: Character | None = Field(
        None, description="Separator between values; default: the server's own key."
    )
    quote: Character | Literal["none"] = Field(
        '"', description="Quotes a value with delimiters, line breaks or quotes; `none` disables quoting."
    )
    escape: Character | None = Field(
        None, description="Escapes a quote inside quotes; default: the quote itself."
    )
    header: bool = Field(True, description="Whether the first line of every file names its columns.")
    encoding: str | None = Field(
        None, description="Text encoding; default: the server's own key, else UTF-8."
    )
    null_text: str | None = Field(None, description="Text that means NULL, in addition to an empty value.")


class LayoutTerms(Node):
    """Folders of the partitions on a server, if they are not Hive's `column=value`."""

    template: LayoutPath = Field(
        alias="path",
        description="Folders below the table, e.g. '{tenant}/{day:%Y/%m/%d}', with all partition columns.",
    )


class Scope(Node):
    """Rows that a quality rule applies to."""

    rows: Literal["partition", "window", "table"] | None = None
    where: str | None = Field(None, description="SQL predicate; rows for which it is not true are ignored.")
    window: str | None = Field(None, description="With rows: window, the length of the window.")
    time: str | None = Field(
        None,
        description="With rows: window, the column with the time of a row; default: the date of the "
        "partition.",
    )


class Route(Node):
    """Breaches that a support channel is notified of, and when."""

    severities: list[Literal["info", "warning", "error", "critical"]] = Field(
        ["warning", "error", "critical"], description="Severities of breaches to send."
    )
    escalate_after: str | None = Field(
        None,
        description="Send only incidents that are still open and unacknowledged after this time, e.g. 30m.",
    )
    quiet: str | None = Field(
        None,
        description="Quiet hours, e.g. '22:00-07:00'; alerts of the quiet severities wait until their end.",
    )
    timezone: str = Field("UTC", description="IANA zone of the quiet hours.")
    quiet_severities: list[Literal["info", "warning", "error", "critical"]] = Field(
        ["info", "warning"], description="Severities that wait during quiet hours."
    )


class RetentionTerms(Node):
    """Meaning of the length of a service level `retention`."""

    of: Literal["rows", "snapshots", "files"] = Field(
        "rows",
        description="rows: values of the column that `element` names; snapshots: those in the table's log, "
        "besides the current one; files: all files below the table's location, besides its log.",
    )
    bound: Literal["atMost", "atLeast"] = Field(
        "atMost", description="atMost: nothing is kept longer; atLeast: nothing is removed earlier."
    )


_IDENTITY_NAME = {"type": "string", "pattern": IDENTITY_NAME.pattern}
_IDENTITY_NAMES = {"anyOf": [_IDENTITY_NAME, {"type": "array", "items": _IDENTITY_NAME, "minItems": 1}]}


def _identity_names(value: object) -> object:
    """Return the names as a list, each validated."""
    names = value if isinstance(value, list) else [value]
    if not names:
        raise ValueError("it has no name")
    for name in names:
        if not isinstance(name, str) or not IDENTITY_NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a name of an identity. "
                "Write letters, digits, - _ and dots, e.g. customer.email"
            )
    return names


def _normalize(value: object) -> object:
    if isinstance(value, str) and not NORMALIZER.fullmatch(value):
        raise ValueError(f"{value!r} is not text, exact, or phone: and a calling code, e.g. phone:49")
    return value


class IdentityTerms(Node):
    """Identities of people in a column; a name or a list of names stands for the names alone."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: schema.update(
            {"anyOf": [{"type": "object", **_pop_object(schema)}, *_IDENTITY_NAMES["anyOf"]]}
        )
    )

    names: Annotated[list[str], BeforeValidator(_identity_names), WithJsonSchema(_IDENTITY_NAMES)] = Field(
        alias="name", description="Names of the identity, shared by all contracts, e.g. customer.email."
    )
    normalize: Annotated[
        str, BeforeValidator(_normalize), WithJsonSchema({"type": "string", "pattern": NORMALIZER.pattern})
    ] = Field(
        "text",
        description="Spellings of texts that are the same value: text (ignore case, spaces around, and "
        "Unicode form), exact, or phone:CODE (digits of phone numbers, with the calling code of those "
        "without one, e.g. phone:49).",
    )


def _pop_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove the keys about objects from a JSON Schema, and return them."""
    keys = ("properties", "required", "additionalProperties")
    return {key: schema.pop(key) for key in (*keys, "type") if key in schema}


MODELS: dict[str, type[Node]] = {
    "delivery": Delivery,
    "dataset": DatasetTerms,
    "csv": Csv,
    "layout": LayoutTerms,
    "scope": Scope,
    "route": Route,
    "retention": RetentionTerms,
    "identity": IdentityTerms,
}

SLA_NAMES = ("delivery", "retention")
"""Extensions of SLA entries, which ODCS 3.0 and 3.1 have at the contract, as `NAME:<sla id>`."""

N = TypeVar("N", bound=Node)


def delivery(contract: Contract, sla: SlaProperty) -> tuple[Delivery | None, list[Finding]]:
    """Return the delivery terms of an SLA entry, or None if it has none or they are invalid."""
    return _read(_sla_property(contract, sla, "delivery"), Delivery)


def retention(contract: Contract, sla: SlaProperty) -> tuple[RetentionTerms, list[Finding]]:
    """Return the terms of a service level `retention`, or the defaults."""
    terms, findings = _read(_sla_property(contract, sla, "retention"), RetentionTerms)
    return terms or _default(sla, RetentionTerms), findings


def _sla_property(contract: Contract, sla: SlaProperty, name: str) -> CustomProperty | None:
    custom = _dq_property(sla, name)
    if custom is None and sla.id is not None:
        custom = contract.custom(f"{name}:{sla.id}")
    return custom


def implied_delivery(sla: SlaProperty, grace: str) -> Delivery:
    """Return the terms of a schedule without delivery terms: any new data counts, in UTC."""
    terms = _default(sla, Delivery)
    return terms.model_copy(update={"expect": "new_data", "grace": grace})


def dataset(schema_object: SchemaObject) -> tuple[DatasetTerms, list[Finding]]:
    """Return the object's dataset terms, or the defaults."""
    terms, findings = _read(_dq_property(schema_object, "dataset"), DatasetTerms)
    return terms or _default(schema_object, DatasetTerms), findings


def csv(server: Server) -> tuple[Csv, list[Finding]]:
    """Return the server's terms for CSV, or the defaults."""
    terms, findings = _read(_dq_property(server, "csv"), Csv)
    return terms or _default(server, Csv), findings


def layout(server: Server) -> tuple[Layout, list[Finding]]:
    """Return the layout of the server's folders, Hive's by default."""
    terms, findings = _read(_dq_property(server, "layout"), LayoutTerms)
    parsed = parse_layout(terms.template) if terms is not None and not findings else HIVE
    assert isinstance(parsed, Layout)
    return parsed, findings


def scope(quality: Quality) -> tuple[Scope, list[Finding]]:
    """Return the rule's scope, or the empty one."""
    terms, findings = _read(_dq_property(quality, "scope"), Scope)
    return terms or _default(quality, Scope), findings


def route(channel: SupportChannel) -> tuple[Route, list[Finding]]:
    """Return the channel's route, or the defaults if it has none or has findings.

    A misspelt severity must not leave a channel without notifications.
    """
    terms, findings = _read(_dq_property(channel, "route"), Route)
    return terms if terms and not findings else _default(channel, Route), findings


def identity(prop: Property) -> tuple[IdentityTerms | None, list[Finding]]:
    """Return the identity terms of a property, or None if it has none or they are invalid."""
    return _read(_dq_property(prop, "identity"), IdentityTerms)


def extension_findings(contract: Contract) -> tuple[list[Finding], set[str]]:
    """Return the findings about all extension values of a contract, and the paths that were removed."""
    findings: list[Finding] = []
    removed: set[str] = set()
    for custom, model in _values(contract):
        _, value_findings, removed_paths = _parse_value(custom, model)
        findings += value_findings
        removed |= removed_paths
    return findings, removed


def _values(contract: Contract) -> Iterator[tuple[CustomProperty, type[Node]]]:
    """Yield every custom property of dq in its allowed places, with the model of its value."""
    for custom in contract.custom_properties:
        name = custom.property.partition(":")[0]
        if custom.property != name and name in SLA_NAMES and custom.vendor in (None, VENDOR):
            yield custom, MODELS[name]
    candidates: list[tuple[str, Sequence[Extensible]]] = [
        *((name, contract.sla_properties) for name in SLA_NAMES),
        ("dataset", contract.objects),
        ("csv", contract.servers),
        ("layout", contract.servers),
        ("route", contract.support),
    ]
    for schema_object in contract.objects:
        candidates.append(("scope", schema_object.quality))
        properties = list(schema_object.walk())
        candidates += [("scope", prop.quality) for prop in properties if prop.quality]
        candidates.append(("identity", [prop for prop in properties if prop.custom_properties]))
    for name, nodes in candidates:
        for node in nodes:
            custom_property = _dq_property(node, name) if node.custom_properties else None
            if custom_property is not None:
                yield custom_property, MODELS[name]


def _dq_property(node: Extensible, name: str) -> CustomProperty | None:
    return next(
        (
            custom
            for custom in node.custom_properties
            if custom.property == name and custom.vendor in (None, VENDOR)
        ),
        None,
    )


def _default(node: Node, model: type[N]) -> N:
    # There is nothing to validate, and building a validator takes longer than reading most contracts.
    return model.model_construct(place=node.place)  # type: ignore[return-value]  # the plugin forgets N


def _read(custom: CustomProperty | None, model: type[N]) -> tuple[N | None, list[Finding]]:
    if custom is None:
        return None, []
    value, findings, _ = _parse_value(custom, model)
    return value, findings


def _parse_value(custom: CustomProperty, model: type[N]) -> tuple[N | None, list[Finding], set[str]]:
    if model is IdentityTerms and isinstance(custom.value, str | list):
        return parse_model(model, {"name": _copy_value(custom.value), SOURCE_MAP_KEY: custom.place})
    if not isinstance(custom.value, dict):
        message = f"the value of {custom.property!r} must be a mapping."
        required = [
            field.alias or key
            for key, field in model.model_fields.items()
            if field.is_required() and key != "place"
        ]
        text = json.dumps(custom.value) if isinstance(custom.value, str) and len(custom.value) < 80 else "…"
        hint = f"Write value: {{{required[0]}: {text}}}." if len(required) == 1 else "See 'dq schema'."
        location, path = custom.locate("value"), custom.path("value")
        return None, [error_finding("wrong-type", message, hint, location, path)], {path}
    return parse_model(model, _copy_value(custom.value))


def _copy_value(value: Any) -> Any:
    """Return a copy that can be modified without changing the contract; source maps are shared."""
    if isinstance(value, dict):
        return {
            key: inner if isinstance(inner, SourceMap) else _copy_value(inner) for key, inner in value.items()
        }
    return [_copy_value(inner) for inner in value] if isinstance(value, list) else value


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the extension values, for editors."""
    definitions: dict[str, object] = {}
    for name, model in MODELS.items():
        schema = model.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        definitions[name] = schema
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dq extension of ODCS custom properties",
        "type": "object",
        "required": ["property", "value"],
        "allOf": [
            {
                "if": {"properties": {"property": {"const": name}}},
                "then": {"properties": {"value": {"$ref": f"#/$defs/{name}"}}},
            }
            for name in MODELS
        ],
        "$defs": strip_source_maps(definitions),
    }


# JSON Schema of the extensions for the whole contract: editors combine it with the official one.


def editor_schema() -> dict[str, object]:
    """Return the schema, which only describes the extensions and their places.

    It uses draft 7, which every editor supports.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "What dq adds to an ODCS contract",
        "type": "object",
        "properties": {
            # ODCS 3.0 and 3.1, where an SLA entry takes no custom property.
            "customProperties": {
                "items": {"allOf": [_custom_property({"pattern": f"^{name}:"}, name) for name in SLA_NAMES]}
            },
            "slaProperties": {"items": {"allOf": [_custom(name) for name in SLA_NAMES]}},
            "schema": {"items": _element(_custom("dataset"))},
            "servers": {"items": _custom("layout")},
            "support": {"items": _custom("route")},
        },
        "$defs": {**json_schema()["$defs"], "property": _element(_custom("identity"))},
    }


def _custom(name: str) -> dict[str, Any]:
    """Return the schema of a mapping with the custom property of this name."""
    return {"properties": {"customProperties": {"items": _custom_property({"const": name}, name)}}}


def _custom_property(name_schema: dict[str, str], value: str) -> dict[str, Any]:
    """Return the schema of a custom property: with this name and no other vendor, its value has this
    schema.
    """
    return {
        "if": {
            "required": ["property"],
            "properties": {"property": name_schema, "vendor": {"const": VENDOR}},
        },
        "then": {"properties": {"value": {"$ref": f"#/$defs/{value}"}}},
    }


def _element(extra: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object or a property: quality rules and properties at any depth."""
    reference = {"$ref": "#/$defs/property"}
    return {
        "properties": {
            **extra["properties"],
            "quality": {"items": _custom("scope")},
            "properties": {"items": reference},
            "items": reference,
            "map": {"properties": {"key": reference, "value": reference}},
        }
    }
