"""Data Contract Specification: models with their fields and quality rules, and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dq.contracts.odcs import OLD_KEY, SERVER_TYPES
from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.registry.importing import (
    STRING,
    ImportedColumn,
    ImportedTable,
    ImportKind,
    SchemaReader,
    SourceMetadata,
)
from dq.registry.importing.sources import (
    JsonObject,
    as_list,
    as_mapping,
    as_text,
    excerpt,
    limit_sentences,
    read_json_object,
    read_yaml_object,
)

# TABLE: quality rules of the Data Contract Specification; ODCS took over their keys with few changes.

_METRICS = {
    "duplicateCount": "duplicateValues",
    "duplicatePercent": "duplicateValues",
    "uniqueCheck": "duplicateValues",
}
_RENAMED = {
    "mustBeGreaterThanOrEqualTo": "mustBeGreaterOrEqualTo",
    "mustBeLessThanOrEqualTo": "mustBeLessOrEqualTo",
}
_RULE_KEYS = {
    "library": ("rule", "metric", "arguments", "validValues", "unit", "severity", "dimension"),
    "sql": ("query", "severity", "dimension"),
    "text": (),
    "custom": ("engine", "implementation", "severity", "dimension"),
}
_PLACEHOLDERS = {
    "{model}": "{object}",
    "{table}": "{object}",
    "{field}": "{property}",
    "{column}": "{property}",
}
_OPERATORS = (
    "mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan",
    "mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween",
)  # fmt: skip


def odcs_rules(quality: object, location: str, unsupported: list[str]) -> list[dict[str, object]]:
    """Return the rules in ODCS form; what ODCS cannot express is appended to `unsupported`."""
    return [
        rule for item in as_list(quality) if (rule := _odcs_rule(as_mapping(item), location, unsupported))
    ]


def _odcs_rule(source_rule: dict[str, object], location: str, unsupported: list[str]) -> dict[str, object]:
    kind = as_text(source_rule.get("type")) or "library"
    if kind not in _RULE_KEYS:
        unsupported.append(f"{location}: quality {excerpt(source_rule)}")
        return {}
    renamed = {_RENAMED.get(key, key): value for key, value in source_rule.items()}
    rule: dict[str, object] = {} if kind == "library" else {"type": kind}
    for key in (
        "name",
        "description",
        *_RULE_KEYS[kind],
        *(_OPERATORS if kind in ("library", "sql") else ()),
    ):
        if renamed.get(key) is not None:
            rule[key] = renamed[key]
    if isinstance(rule.get("query"), str):
        for word, new in _PLACEHOLDERS.items():
            rule["query"] = str(rule["query"]).replace(word, new)
    if kind == "library" and "rule" in rule and "metric" not in rule:
        word = as_text(rule.pop("rule"))
        rule = {"metric": _METRICS.get(word, word), **rule}
        if word.endswith("Percent"):
            rule["unit"] = "percent"
    used_keys = {"type", "rule", *rule}
    unsupported += [
        f"{location}: quality {key} {excerpt(value)}"
        for key, value in renamed.items()
        if key not in used_keys
    ]
    return rule


# Fields of a Data Contract Specification: types and other keys, at any depth.
#
# Source: the Data Contract Specification 1.2.0, sections "Field Object" and "Data Types".

_PLAIN = {
    **dict.fromkeys(("string", "text", "varchar", "time", "json"), "string"),
    **dict.fromkeys(("int", "integer"), "int"),
    **dict.fromkeys(("long", "bigint"), "bigint"),
    **dict.fromkeys(("timestamp", "timestamp_tz"), "timestamp"),
    "timestamp_ntz": "timestamp_ntz",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "date": "date",
    "bytes": "binary",
    "variant": "variant",
}
_DECIMAL = ("number", "decimal", "numeric")
_RECORD = ("object", "record", "struct")
# Options that ODCS calls the same, for strings and for numbers.
_TEXT_OPTIONS = ("minLength", "maxLength", "pattern", "format")
_NUMBER_OPTIONS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NUMBERS = ("int", "bigint", "float", "double", "decimal")
# Keys copied to an ODCS key, and all keys that the reader knows.
_RENAMED_KEYS = {"description": "description", "title": "businessName", "classification": "classification"}
_FIELD_KEYS = {
    "type", "required", "unique", "primary", "primaryKey", "references", "enum", "example", "examples", "pii",
    "tags", "links", "quality", "config", "fields", "items", "keys", "values", "precision", "scale", "$ref",
    "domain", "name", *_RENAMED_KEYS, *_TEXT_OPTIONS, *_NUMBER_OPTIONS,
}  # fmt: skip
_MAX_DEPTH = 32


class FieldReader(SchemaReader):
    """Reads the fields of one document."""

    def __init__(self, source: str, top: JsonObject) -> None:
        super().__init__(source)
        self.top = top
        self.models = {name: as_mapping(model) for name, model in as_mapping(top.get("models")).items()}

    def resolve_refs(self, field: object, location: str) -> JsonObject:
        """Return the field merged with the definitions of its `$ref`; its own keys take precedence."""
        resolved, visited = as_mapping(field), set[str]()
        while "$ref" in resolved:
            reference = as_text(resolved.pop("$ref"))
            target: object = self.top
            for step in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ():
                target = as_mapping(target).get(step)
            if reference in visited or not reference.startswith("#/") or not isinstance(target, Mapping):
                self.unsupported.append(f"{location}: {reference or '$ref'}, which does not exist")
                break
            visited.add(reference)
            resolved = {**as_mapping(target), **resolved}
        return resolved

    def type(self, field: object, location: str, path: str, depth: int = 0) -> tuple[DataType, str]:
        """Return the type and its evidence ("" for none)."""
        self.count_field()
        if depth > _MAX_DEPTH:
            return STRING, "nested too deeply"
        own = self.resolve_refs(field, location)
        kind, evidence = self._type(own, location, path, depth)
        self.add_keys(path, self._odcs_keys(own, kind, location))
        return kind, evidence

    def _type(self, own: JsonObject, location: str, path: str, depth: int) -> tuple[DataType, str]:
        word, config = as_text(own.get("type")).lower(), as_mapping(own.get("config"))
        for key in ("glueType", "databricksType"):
            try:
                return parse(as_text(config.get(key))), ""
            except NotAType:
                continue
        if word in _RECORD and as_mapping(own.get("fields")):
            fields = as_mapping(own["fields"])
            kinds = tuple(
                self.type(inner, f"{location}.{name}", f"{path}.{name}", depth + 1)[0]
                for name, inner in fields.items()
            )
            return DataType("struct", (), kinds, tuple(fields)), ""
        if word == "array":
            item, why = self.type(own.get("items"), f"{location}[]", f"{path}[]", depth + 1)
            return DataType("array", (), (item,)), why
        if word == "map":
            kinds = tuple(
                self.type(own.get(key), f"{location}.{key}", f"{path}.{sign}", depth + 1)[0]
                for key, sign in (("keys", "^"), ("values", "*"))
            )
            return DataType("map", (), kinds), ""
        if word in _DECIMAL:
            precision, scale = own.get("precision", 38), own.get("scale", 0)
            evidence = "" if "precision" in own else f"declared as {word}, which has 38 digits by default"
            try:
                decimal = parse(f"decimal({precision},{scale})")
            except NotAType:
                return STRING, f"declared as {word}({precision},{scale}), which Spark does not support"
            self.add_keys(path, {"logicalType": "number"})
            return decimal, evidence
        if word in _PLAIN:
            if word == "time":
                self.add_keys(path, {"logicalType": "time"})
            return DataType(_PLAIN[word]), ""
        return STRING, f"declared as {word or 'no type'}"

    def _odcs_keys(self, own: JsonObject, kind: DataType, location: str) -> dict[str, object]:
        odcs_keys: dict[str, object] = {
            new: as_text(own[key]) for key, new in _RENAMED_KEYS.items() if as_text(own.get(key))
        }
        for key in ("required", "unique"):
            if own.get(key) is True:
                odcs_keys[key] = True
        option_names = (
            _TEXT_OPTIONS if kind.name == "string" else _NUMBER_OPTIONS if kind.name in _NUMBERS else ()
        )
        options = {key: own[key] for key in option_names if own.get(key) is not None}
        if options:
            odcs_keys["logicalTypeOptions"] = options
        for key in (*_TEXT_OPTIONS, *_NUMBER_OPTIONS):
            if own.get(key) is not None and key not in option_names:
                self.unsupported.append(f"{location}: {key} {excerpt(own[key])}, on {kind}")
        if as_list(own.get("enum")):
            odcs_keys["enum"] = [
                {"value": value} for value in as_list(own["enum"]) if not isinstance(value, dict | list)
            ]
        examples = as_list(own.get("examples")) or (
            [own["example"]] if own.get("example") is not None else []
        )
        if examples:
            odcs_keys["examples"] = examples
        if as_text(own.get("references")):
            self._reference(as_text(own["references"]), odcs_keys, location)
        if as_list(own.get("tags")):
            odcs_keys["tags"] = [str(tag) for tag in as_list(own["tags"])]
        odcs_keys.update(links(own))
        custom = [{"property": key, "value": value} for key, value in as_mapping(own.get("config")).items()]
        if isinstance(own.get("pii"), bool):
            custom.append({"property": "pii", "value": own["pii"]})
        if custom:
            odcs_keys["customProperties"] = custom
        quality = odcs_rules(own.get("quality"), location, self.unsupported)
        if quality:
            odcs_keys["quality"] = quality
        self.unsupported += [
            f"{location}: {key} {excerpt(own[key])}" for key in own if key not in _FIELD_KEYS
        ]
        return odcs_keys

    def _reference(self, reference: str, odcs_keys: dict[str, object], location: str) -> None:
        model, _, field = reference.partition(".")
        if field.partition(".")[0] in as_mapping(self.models.get(model, {}).get("fields")):
            odcs_keys["relationships"] = [{"to": reference}]
        else:
            self.unsupported.append(f"{location}: references {reference}, which does not exist")


def links(own: JsonObject) -> dict[str, object]:
    """Return the links as `authoritativeDefinitions`."""
    definitions = [
        {"type": key, "url": as_text(url)}
        for key, url in as_mapping(own.get("links")).items()
        if as_text(url)
    ]
    return {"authoritativeDefinitions": definitions} if definitions else {}


# Metadata of a Data Contract Specification: owner, servers, terms, service levels.

_STATUS = {"in development": "draft"}
_STATUSES = ("proposed", "draft", "active", "deprecated", "retired")
_TOP_KEYS = {
    "dataContractSpecification", "id", "info", "servers", "terms", "models", "definitions", "servicelevels",
    "serviceLevels", "links", "tags",
}  # fmt: skip
_DURATION = re.compile(r"P?T?(\d+)\s*([A-Za-z]+)")
_UNITS = {
    "s": "s", "second": "s", "m": "min", "min": "min", "minute": "min", "h": "h", "hour": "h", "d": "d",
    "day": "d", "w": "w", "week": "w", "mo": "mo", "month": "mo", "y": "y", "year": "y",
}  # fmt: skip
_INTERVALS = {"hourly": "h", "daily": "d", "weekly": "w", "monthly": "mo", "yearly": "y"}


def top_level_keys(top: JsonObject, unsupported: list[str]) -> dict[str, object]:
    """Return the top-level ODCS keys; what ODCS cannot express is appended to `unsupported`."""
    info, terms = as_mapping(top.get("info")), as_mapping(top.get("terms"))
    status = as_text(info.get("status")).lower()
    status = _STATUS.get(status, status)
    odcs_keys: dict[str, object] = {"id": as_text(top.get("id")), "name": as_text(info.get("title"))}
    odcs_keys["version"] = str(info.get("version") or "")
    odcs_keys["status"] = status if status in _STATUSES else ""
    purpose = {"purpose": as_text(info.get("description"))}
    odcs_keys["description"] = _without_empty(
        {**purpose, **{key: as_text(terms.get(key)) for key in ("usage", "limitations")}}
    )
    odcs_keys["tags"] = [str(tag) for tag in as_list(top.get("tags"))]
    odcs_keys["team"] = _without_empty({"name": as_text(info.get("owner"))})
    odcs_keys["servers"] = [
        _server(name, as_mapping(server), unsupported)
        for name, server in as_mapping(top.get("servers")).items()
    ]
    odcs_keys |= links(top)
    odcs_keys["customProperties"] = [
        {"property": key, "value": as_text(terms[key])}
        for key in ("billing", "noticePeriod")
        if as_text(terms.get(key))
    ]
    odcs_keys["slaProperties"] = _service_levels(
        {**as_mapping(top.get("serviceLevels")), **as_mapping(top.get("servicelevels"))}, unsupported
    )
    unsupported += [f"terms.{key} {excerpt(value)}" for key, value in terms.items()
             if key not in ("usage", "limitations", "billing", "noticePeriod")]  # fmt: skip
    unsupported += [f"info.{key} {excerpt(value)}" for key, value in info.items()
             if key not in ("title", "version", "status", "description", "owner")]  # fmt: skip
    if as_text(info.get("status")) and not odcs_keys["status"]:
        unsupported.append(f"info.status {excerpt(info['status'])}")
    unsupported += [f"{key} {excerpt(value)}" for key, value in top.items() if key not in _TOP_KEYS]
    return _without_empty(odcs_keys)


def _without_empty(entries: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in entries.items() if value not in ("", [], {}, None)}


def _server(name: str, server: JsonObject, unsupported: list[str]) -> dict[str, object]:
    kind = as_text(server.pop("type", "")).lower()
    server_type = SERVER_TYPES.get(kind) or SERVER_TYPES["custom"]
    odcs_keys: dict[str, object] = {"server": name, "type": kind if kind in SERVER_TYPES else "custom"}
    if kind not in SERVER_TYPES:
        unsupported.append(f"servers.{name} has the type {kind or 'none'}, which is not in ODCS")
    for key, value in server.items():
        if key == "roles":
            roles = [as_mapping(role) for role in as_list(value)]
            odcs_keys[key] = [
                _without_empty(
                    {"role": as_text(role.get("name")), "description": as_text(role.get("description"))}
                )
                for role in roles
            ]
        elif key in (*server_type.required, *server_type.optional, "description", "environment"):
            odcs_keys[key] = value
        else:
            unsupported.append(f"servers.{name}.{key} {excerpt(value)}")
    return odcs_keys


def _service_levels(levels: JsonObject, unsupported: list[str]) -> list[dict[str, object]]:
    sla_properties = []
    for name, level in ((name, as_mapping(level)) for name, level in levels.items()):
        odcs_keys, read = _service_level(name, level)
        if odcs_keys:
            sla_properties.append(
                {
                    "property": name,
                    **odcs_keys,
                    **_without_empty({"description": as_text(level.get("description"))}),
                }
            )
        remaining = {
            key: value for key, value in level.items() if key not in read and value not in (None, False)
        }
        if not odcs_keys or remaining:
            unsupported.append(f"servicelevels.{name} {excerpt(remaining if odcs_keys else level)}")
    return sla_properties


def _service_level(name: str, level: JsonObject) -> tuple[dict[str, object], set[str]]:
    """Return the ODCS keys of a service level, and the source keys that were read."""
    match name:
        case "availability":
            percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", as_text(level.get("percentage")))
            odcs_keys = {"value": float(percent[1]), "unit": "percent"} if percent else {}
            return odcs_keys, {"percentage", "description"}
        case "retention" | "freshness" | "latency":
            key = "period" if name == "retention" else "threshold"
            field = "timestampField" if name != "latency" else "processedTimestampField"
            odcs_keys = _duration(as_text(level.get(key)))
            return odcs_keys and {**odcs_keys, **_without_empty({"element": as_text(level.get(field))})}, {
                key,
                field,
                "description",
            }
        case "frequency":
            unit = _INTERVALS.get(as_text(level.get("interval")).lower())
            cron = (
                {"scheduler": "cron", "schedule": as_text(level.get("cron"))}
                if as_text(level.get("cron"))
                else {}
            )
            return ({"value": 1, "unit": unit, **cron} if unit else {}), {"interval", "cron", "description"}
    return {}, set()


def _duration(duration: str) -> dict[str, object]:
    """Return value and unit of a duration, e.g. `5 minutes`, `P1D` or `PT5M`, or {} if it is not one."""
    length = _DURATION.fullmatch(duration)
    if length is None:
        return {}
    word = length[2].lower()
    unit = _UNITS.get(word if len(word) == 1 else word.rstrip("s"))
    if duration.startswith("P") and length[2] == "M":
        unit = "min" if "T" in duration else "mo"
    return {"value": int(length[1]), "unit": unit} if unit else {}


_HINT = f"Pass a file that begins with '{OLD_KEY}: 1.1.0'."
_MODEL_KEYS = {"type", "title", "description", "fields", "primaryKey", "quality", "additionalFields", "tags"}


def read(source: str) -> list[ImportedTable]:
    """Read the models as tables, with everything that a contract can express.

    Raises UsageError if the document is of another kind or has no model with fields, ReadError if it is not
    YAML.
    """
    top = read_json_object(source, _HINT) if source.endswith(".json") else read_yaml_object(source, _HINT)
    if OLD_KEY not in top:
        raise UsageError(f"{source} is not a Data Contract Specification.", _HINT)
    reader, unsupported = FieldReader(source, top), list[str]()
    terms = top_level_keys(top, unsupported)
    tables = []
    for name, model in reader.models.items():
        if as_mapping(model.get("fields")):
            tables.append((name, model))
        else:
            unsupported.append(f"model {name} has no fields")
    if not tables:
        raise UsageError(f"{source} has no model with fields.", _HINT)
    levels = [as_mapping(level) for level in as_list(terms.pop("slaProperties", []))]
    own = {name: tuple(level for level in levels if _level_model(level) == name) for name, _ in tables}
    other_levels = [level for level in levels if _level_model(level) not in own]
    metadata = SourceMetadata(
        {**terms, **({"slaProperties": other_levels} if other_levels else {})}, limit_sentences(unsupported)
    )
    return [
        replace(_table(name, model, reader, metadata), service_levels=own[name]) for name, model in tables
    ]


def _level_model(level: JsonObject) -> str:
    return as_text(level.get("element")).partition(".")[0]


def _table(name: str, model: JsonObject, reader: FieldReader, metadata: SourceMetadata) -> ImportedTable:
    reader.unsupported = []
    columns, keys = [], [str(key) for key in as_list(model.get("primaryKey"))]
    for column, field in as_mapping(model["fields"]).items():
        reader.odcs_keys = {}
        kind, evidence = reader.type(field, column, "")
        own = reader.odcs_keys.get("", {})
        whole_field = reader.resolve_refs(field, column)
        if column not in keys and True in (whole_field.get("primary"), whole_field.get("primaryKey")):
            keys.append(column)
        comment, required = as_text(own.pop("description", "")), bool(own.pop("required", False))
        columns.append(ImportedColumn(column, kind, comment, required, evidence, reader.odcs_keys))
    table_keys: dict[str, object] = {"physicalType": "view"} if model.get("type") == "view" else {}
    if as_text(model.get("title")):
        table_keys["businessName"] = as_text(model["title"])
    if as_list(model.get("tags")):
        table_keys["tags"] = [str(tag) for tag in as_list(model["tags"])]
    quality = odcs_rules(model.get("quality"), name, reader.unsupported)
    if quality:
        table_keys["quality"] = quality
    if isinstance(model.get("additionalFields"), bool):
        word = "allow" if model["additionalFields"] else "forbid"
        table_keys["customProperties"] = [
            {"property": "dataset", "vendor": "dq", "value": {"additionalColumns": word}}
        ]
    reader.unsupported += [
        f"{key} {excerpt(value)}" for key, value in model.items() if key not in _MODEL_KEYS
    ]
    return ImportedTable(
        name, tuple(columns), description=as_text(model.get("description")), keys=tuple(keys),
        unsupported=limit_sentences(reader.unsupported), odcs_keys=table_keys, metadata=metadata,
    )  # fmt: skip


KIND = ImportKind("dcs", "a Data Contract Specification of datacontract.com", read)
