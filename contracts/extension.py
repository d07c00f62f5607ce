"""What dq adds to ODCS: one custom property per place, its value typed and closed, and its JSON Schema."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from dq.contracts.model import (
    PLACE,
    Contract,
    CustomProperty,
    Extensible,
    Node,
    Place,
    Quality,
    SchemaObject,
    Server,
    SlaProperty,
    SupportChannel,
    plain,
    typed,
)
from dq.contracts.outcome import DataFormat, Finding, mistake
from dq.contracts.schedule.calendar import DayEffect, FreeDays

# The kinds of values that dq's own terms hold: dates, texts, templates of partitions, markers, signs.

_LONGEST_NAME = 255


def _date(value: object) -> object:
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value!r} is not a date such as 2027-01-31") from None
    return value


def _partition(value: object) -> object:
    """`{key: template}` or `{key: [template, …]}`, without the places that the reader left inside."""
    if not isinstance(value, dict):
        raise ValueError("it must be a mapping from partition columns to values")
    made = {}
    for key, templates in value.items():
        if key == PLACE:
            continue
        listed = templates if isinstance(templates, list) else [templates]
        if not listed or not all(isinstance(one, str) for one in listed):
            raise ValueError(f"{key} must be text or a list of texts; quote numbers and dates")
        made[key] = listed
    if not made:
        raise ValueError("it names no partition column")
    return made


# A marker of such a name would be taken for data, or for what a table format keeps of itself.
_DATA = re.compile(
    r"(?i).*\.(parquet|orc|avro|json|csv|txt|gz|zst|snappy|lz4|bz2|crc)|.*=.*|_temporary|_delta_log|_metadata"
    r"|_common_metadata|metadata|\.hoodie"
)


def _marker(value: object) -> object:
    """One file name that is no name of data."""
    if not isinstance(value, str):
        return value
    unseen = not value.isprintable() or value != value.strip()
    if unseen or re.search(r"[/\\:*?\[\]{}#%~]", value) or not value.strip(". "):
        raise ValueError(f"{value!r} is not one file name such as _SUCCESS")
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f"it is longer than {_LONGEST_NAME} bytes")
    if _DATA.fullmatch(value):
        raise ValueError(f"{value!r} is a name that data has; a marker is such as _SUCCESS")
    return value


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be empty")
    return text


Date = Annotated[dt.date, BeforeValidator(_date)]

Filled = Annotated[str, AfterValidator(_filled)]

Marker = Annotated[str, BeforeValidator(_marker), WithJsonSchema({"type": "string"})]

_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
Partition = Annotated[
    dict[str, list[str]],
    BeforeValidator(_partition),
    WithJsonSchema({"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, _TEXTS]}}),
]


Sign = Annotated[str, Field(min_length=1, max_length=1)]


# What dq adds to ODCS: one custom property per place, its value typed and closed.
#
# | on | property | model |
# |---|---|---|
# | an SLA entry (ODCS 3.0 and 3.1: the contract, as `delivery:<sla id>`) | `delivery` | `Delivery` |
# | an object | `dataset` | `Dataset` |
# | a server | `csv` | `Csv` |
# | a quality rule | `scope` | `Scope` |
# | a support channel | `route` | `Route` |
#
# On ODCS 3.2 the entry says `vendor: dq`.

VENDOR = "dq"


class Calendar(Node):
    """Days in the schedule's zone on which a delivery is not due as the schedule says."""

    model_config = ConfigDict(alias_generator=None)

    skip: list[Date] = Field([], description="Dates without a delivery.")
    move: list[Date] = Field([], description="Dates whose delivery is due on the next working day.")
    excuse: list[Date] = Field([], description="Dates whose delivery is due, and counts neither way.")
    weekdays_only: bool = Field(False, description="Saturdays and Sundays are free days.")
    holidays: list[str] = Field(
        [], description="Public holidays are free days: ISO 3166 codes such as DE or DE-BY."
    )
    free_days: Literal["skip", "move", "excuse"] = Field(
        "skip", description="What becomes of a delivery on a weekend or public holiday."
    )
    valid_until: Date | None = Field(None, description="The calendar is known up to this date.")

    def days(self) -> FreeDays:
        """What the schedule asks of it."""
        return FreeDays(
            frozenset(self.skip),
            self.weekdays_only,
            self.valid_until,
            frozenset(self.move),
            frozenset(self.excuse),
            tuple(dict.fromkeys(self.holidays)),
            DayEffect(self.free_days),
        )


# What shows that a cycle arrived, most trusted first.
EvidenceSource = Literal["receipt", "marker", "commit", "file"]


class Delivery(Node):
    """When a delivery is due, what it must bring and how it is known to have arrived."""

    timezone: str = Field("UTC", description="IANA zone of the schedule.")
    dialect: Literal["unix", "seconds_first", "eventbridge"] = Field(
        "unix", description="How to read the cron."
    )
    dst: Literal["vixie", "skip", "shift"] = Field(
        "vixie", description="What a time inside a DST change means."
    )
    grace: str = Field("0m", description="Elapsed time after the due instant that is still good.")
    partition: Partition = Field(
        {},
        description="Partition column to value template, such as '{due - 1d:%Y-%m-%d}'; a list makes a set.",
    )
    evidence: list[EvidenceSource] = Field(
        [*get_args(EvidenceSource)], description="What shows the arrival, most trusted first."
    )
    empty: Literal["allowed", "forbidden"] = Field(
        "forbidden", description="Whether zero rows are a delivery."
    )
    calendar: Calendar | None = None
    objective: str = Field("95%", description="Share of good cycles that is promised.")
    window: str = Field("90d", description="Rolling window of the objective.")
    severity: Literal["info", "warning", "error", "critical"] = Field(
        "error", description="Severity of a breach."
    )
    give_up_after: str | None = Field(None, description="A missing cycle is closed as never after this time.")


class DatasetTerms(Node):
    """How an object's data lies and how it may change."""

    additional_columns: Literal["forbid", "warn", "allow"] = Field(
        "warn", description="What a column means that the contract does not name."
    )
    compatibility: Literal[
        "FORWARD", "BACKWARD", "FULL", "NONE", "FORWARD_TRANSITIVE", "BACKWARD_TRANSITIVE", "FULL_TRANSITIVE"
    ] = Field("FORWARD", description="Whom a change of this object may not break.")
    marker: Marker = Field("_SUCCESS", description="The file that a producer writes last.")
    format: DataFormat | None = None
    partition_indexes: list[list[str]] = Field(
        [], description="Indexes over partition keys that Glue keeps, at most three, each a list of keys."
    )


class Csv(Node):
    """How the CSV files of a server are written; RFC 4180 unless it says otherwise."""

    delimiter: Sign | None = Field(None, description="Between two values; the server's own key otherwise.")
    quote: Sign | Literal["none"] = Field(
        '"', description="Around a value that holds delimiters, line breaks or quotes; `none`: none is."
    )
    escape: Sign | None = Field(None, description="Before a quote in quotes; the quote itself otherwise.")
    header: bool = Field(True, description="Whether the first line of every file names its columns.")
    encoding: str | None = Field(None, description="Of the text; the server's own key, else UTF-8.")
    null_text: str | None = Field(None, description="A text that stands for NULL, as nothing does.")


class Scope(Node):
    """Which rows a quality rule speaks about."""

    rows: Literal["partition", "window", "table"] | None = None
    where: str | None = Field(None, description="SQL predicate; rows where it is not true are left out.")
    window: str | None = Field(None, description="With rows: window, how far back.")
    time: str | None = Field(
        None,
        description="With rows: window, the column that tells when a row is of; else the date of partition.",
    )


class Route(Node):
    """Which breaches a support channel is told about, and when."""

    severities: list[Literal["info", "warning", "error", "critical"]] = Field(
        ["warning", "error", "critical"], description="Breaches of these are told."
    )
    escalate_after: str | None = Field(
        None,
        description="Told only of what is open, and acknowledged by nobody, after this time, such as 30m.",
    )
    quiet: str | None = Field(
        None, description="Time of the day, such as '22:00-07:00', at which small things wait for its end."
    )
    timezone: str = Field("UTC", description="IANA zone of the quiet hours.")
    quiet_severities: list[Literal["info", "warning", "error", "critical"]] = Field(
        ["info", "warning"], description="What is small."
    )


MODELS: dict[str, type[Node]] = {
    "delivery": Delivery,
    "dataset": DatasetTerms,
    "csv": Csv,
    "scope": Scope,
    "route": Route,
}

N = TypeVar("N", bound=Node)


def delivery(contract: Contract, sla: SlaProperty) -> tuple[Delivery | None, list[Finding]]:
    """The delivery terms of an SLA entry, or None when it has none or they cannot be typed."""
    custom = _ours(sla, "delivery")
    if custom is None and sla.id is not None:
        custom = contract.custom(f"delivery:{sla.id}")
    return _read(custom, Delivery)


def dataset(one: SchemaObject) -> tuple[DatasetTerms, list[Finding]]:
    """The object's dataset terms; the defaults where it has none."""
    made, findings = _read(_ours(one, "dataset"), DatasetTerms)
    return made or _default(one, DatasetTerms), findings


def csv(server: Server) -> tuple[Csv, list[Finding]]:
    """The server's terms for CSV; the defaults where it has none."""
    made, findings = _read(_ours(server, "csv"), Csv)
    return made or _default(server, Csv), findings


def scope(quality: Quality) -> tuple[Scope, list[Finding]]:
    """The rule's scope; the empty one where it has none."""
    made, findings = _read(_ours(quality, "scope"), Scope)
    return made or _default(quality, Scope), findings


def route(channel: SupportChannel) -> tuple[Route, list[Finding]]:
    """The channel's route; the defaults where it has none, or one that is not wholly understood.

    A severity that is misspelt must not leave a channel that hears of nothing.
    """
    made, findings = _read(_ours(channel, "route"), Route)
    return made if made and not findings else _default(channel, Route), findings


def faults(contract: Contract) -> tuple[list[Finding], set[str]]:
    """What is wrong with the form of all extension values of a contract, and the paths that were left out."""
    findings: list[Finding] = []
    cut: set[str] = set()
    for custom, model in _values(contract):
        _, wrong, gone = _typed(custom, model)
        findings += wrong
        cut |= gone
    return findings, cut


def _values(contract: Contract) -> Iterator[tuple[CustomProperty, type[Node]]]:
    """Every custom property of ours, where it belongs, with the model of its value."""
    for custom in contract.custom_properties:
        if custom.property.startswith("delivery:") and custom.vendor in (None, VENDOR):
            yield custom, Delivery
    places: list[tuple[str, Sequence[Extensible]]] = [
        ("delivery", contract.sla_properties),
        ("dataset", contract.objects),
        ("csv", contract.servers),
        ("route", contract.support),
    ]
    for one in contract.objects:
        places.append(("scope", one.quality))
        places += [("scope", prop.quality) for prop in one.walk() if prop.quality]
    for name, nodes in places:
        for node in nodes:
            found = _ours(node, name) if node.custom_properties else None
            if found is not None:
                yield found, MODELS[name]


def _ours(node: Extensible, name: str) -> CustomProperty | None:
    return next(
        (one for one in node.custom_properties if one.property == name and one.vendor in (None, VENDOR)), None
    )


def _default(node: Node, model: type[N]) -> N:
    # Nothing is written that could be wrong, and making a validator takes longer than most contracts need.
    return model.model_construct(place=node.place)  # type: ignore[return-value]  # the plugin forgets N


def _read(custom: CustomProperty | None, model: type[N]) -> tuple[N | None, list[Finding]]:
    if custom is None:
        return None, []
    made, findings, _ = _typed(custom, model)
    return made, findings


def _typed(custom: CustomProperty, model: type[N]) -> tuple[N | None, list[Finding], set[str]]:
    if not isinstance(custom.value, dict):
        message = f"the value of {custom.property!r} must be a mapping."
        at, path = custom.at("value"), custom.path("value")
        return None, [mistake("wrong-type", message, "See 'dq schema'.", at, path)], {path}
    return typed(model, _copied(custom.value))


def _copied(value: Any) -> Any:
    """A copy that may be cut without changing the contract; places are shared."""
    if isinstance(value, dict):
        return {key: inner if isinstance(inner, Place) else _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the four extension values, for editors."""
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
        "$defs": plain(definitions),
    }


# What dq adds to ODCS as a JSON Schema of the whole contract: editors lay it over the official one.


def editor_schema() -> dict[str, object]:
    """The schema, which says nothing but what dq's own values look like, and where.

    Written in draft 7, which every editor knows.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "What dq adds to an ODCS contract",
        "type": "object",
        "properties": {
            # ODCS 3.0 and 3.1, where an SLA entry takes no custom property.
            "customProperties": {"items": _custom_property({"pattern": "^delivery:"}, "delivery")},
            "slaProperties": {"items": _custom("delivery")},
            "schema": {"items": _element(_custom("dataset"))},
            "support": {"items": _custom("route")},
        },
        "$defs": {**json_schema()["$defs"], "property": _element({"properties": {}})},
    }


def _custom(name: str) -> dict[str, Any]:
    """A mapping whose custom property of this name is ours."""
    return {"properties": {"customProperties": {"items": _custom_property({"const": name}, name)}}}


def _custom_property(named: dict[str, str], value: str) -> dict[str, Any]:
    """A custom property: when it has the name, and no other vendor, its value is of this kind."""
    return {
        "if": {"required": ["property"], "properties": {"property": named, "vendor": {"const": VENDOR}}},
        "then": {"properties": {"value": {"$ref": f"#/$defs/{value}"}}},
    }


def _element(more: dict[str, Any]) -> dict[str, Any]:
    """An object or a property: quality rules and properties at any depth."""
    inside = {"$ref": "#/$defs/property"}
    return {
        "properties": {
            **more["properties"],
            "quality": {"items": _custom("scope")},
            "properties": {"items": inside},
            "items": inside,
            "map": {"properties": {"key": inside, "value": inside}},
        }
    }
