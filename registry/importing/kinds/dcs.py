"""The Data Contract Specification: models, their fields and rules of quality, and what it says besides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dq.contracts.odcs import OLD_KEY, SERVER_TYPES
from dq.contracts.outcome import UsageError
from dq.contracts.types import DataType, NotAType, parse
from dq.registry.importing import STRING, FoundColumn, FoundTable, ImportKind, SchemaReader, SourceSays
from dq.registry.importing.sources import Mapped, json_of, listed, mapped, shown, text, told, yaml_of

# TABLE: rules of quality of a Data Contract Specification, whose words ODCS took over with few changes.

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
_HOLES = {"{model}": "{object}", "{table}": "{object}", "{field}": "{property}", "{column}": "{property}"}
_OPERATORS = (
    "mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan",
    "mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween",
)  # fmt: skip


def rules(written: object, where: str, lost: list[str]) -> list[dict[str, object]]:
    """The rules in the words of ODCS; what has no word there goes to `lost`."""
    return [made for one in listed(written) if (made := _rule(mapped(one), where, lost))]


def _rule(one: dict[str, object], where: str, lost: list[str]) -> dict[str, object]:
    kind = text(one.get("type")) or "library"
    if kind not in _RULE_KEYS:
        lost.append(f"{where}: quality {shown(one)}")
        return {}
    said = {_RENAMED.get(key, key): value for key, value in one.items()}
    made: dict[str, object] = {} if kind == "library" else {"type": kind}
    for key in (
        "name",
        "description",
        *_RULE_KEYS[kind],
        *(_OPERATORS if kind in ("library", "sql") else ()),
    ):
        if said.get(key) is not None:
            made[key] = said[key]
    if isinstance(made.get("query"), str):
        for word, new in _HOLES.items():
            made["query"] = str(made["query"]).replace(word, new)
    if kind == "library" and "rule" in made and "metric" not in made:
        word = text(made.pop("rule"))
        made = {"metric": _METRICS.get(word, word), **made}
        if word.endswith("Percent"):
            made["unit"] = "percent"
    known = {"type", "rule", *made}
    lost += [f"{where}: quality {key} {shown(value)}" for key, value in said.items() if key not in known]
    return made


# Fields of a Data Contract Specification: their types, and what else is said of them at any depth.
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
# What its options of ODCS are called alike, by the kind of type that takes them.
_OF_TEXT = ("minLength", "maxLength", "pattern", "format")
_OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NUMBERS = ("int", "bigint", "float", "double", "decimal")
# Keys that are taken over by name, or that the reader follows.
_ALIKE = {"description": "description", "title": "businessName", "classification": "classification"}
_FIELD_KEYS = {
    "type", "required", "unique", "primary", "primaryKey", "references", "enum", "example", "examples", "pii",
    "tags", "links", "quality", "config", "fields", "items", "keys", "values", "precision", "scale", "$ref",
    "domain", "name", *_ALIKE, *_OF_TEXT, *_OF_NUMBERS,
}  # fmt: skip
_MOST_DEPTH = 32


class FieldReader(SchemaReader):
    """Reads the fields of one document."""

    def __init__(self, source: str, top: Mapped) -> None:
        super().__init__(source)
        self.top = top
        self.models = {name: mapped(one) for name, one in mapped(top.get("models")).items()}

    def whole(self, field: object, where: str) -> Mapped:
        """The field with what its `$ref` leads to; its own keys come first."""
        made, seen = mapped(field), set[str]()
        while "$ref" in made:
            reference = text(made.pop("$ref"))
            found: object = self.top
            for step in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ():
                found = mapped(found).get(step)
            if reference in seen or not reference.startswith("#/") or not isinstance(found, Mapping):
                self.lost.append(f"{where}: {reference or '$ref'}, which is not here")
                break
            seen.add(reference)
            made = {**mapped(found), **made}
        return made

    def type(self, field: object, where: str, path: str, depth: int = 0) -> tuple[DataType, str]:
        """The type, and what has to be said of it."""
        self.step()
        if depth > _MOST_DEPTH:
            return STRING, "nested too deep"
        own = self.whole(field, where)
        kind, evidence = self._type(own, where, path, depth)
        self.say(path, self._said(own, kind, where))
        return kind, evidence

    def _type(self, own: Mapped, where: str, path: str, depth: int) -> tuple[DataType, str]:
        word, config = text(own.get("type")).lower(), mapped(own.get("config"))
        for key in ("glueType", "databricksType"):
            try:
                return parse(text(config.get(key))), ""
            except NotAType:
                continue
        if word in _RECORD and mapped(own.get("fields")):
            fields = mapped(own["fields"])
            kinds = tuple(
                self.type(inner, f"{where}.{name}", f"{path}.{name}", depth + 1)[0]
                for name, inner in fields.items()
            )
            return DataType("struct", (), kinds, tuple(fields)), ""
        if word == "array":
            item, why = self.type(own.get("items"), f"{where}[]", f"{path}[]", depth + 1)
            return DataType("array", (), (item,)), why
        if word == "map":
            kinds = tuple(
                self.type(own.get(key), f"{where}.{key}", f"{path}.{sign}", depth + 1)[0]
                for key, sign in (("keys", "^"), ("values", "*"))
            )
            return DataType("map", (), kinds), ""
        if word in _DECIMAL:
            precision, scale = own.get("precision", 38), own.get("scale", 0)
            evidence = (
                "" if "precision" in own else f"declared as {word}, which has 38 digits if it says none"
            )
            try:
                made = parse(f"decimal({precision},{scale})")
            except NotAType:
                return STRING, f"declared as {word}({precision},{scale}), which Spark does not have"
            self.say(path, {"logicalType": "number"})
            return made, evidence
        if word in _PLAIN:
            if word == "time":
                self.say(path, {"logicalType": "time"})
            return DataType(_PLAIN[word]), ""
        return STRING, f"declared as {word or 'nothing'}"

    def _said(self, own: Mapped, kind: DataType, where: str) -> dict[str, object]:
        made: dict[str, object] = {new: text(own[key]) for key, new in _ALIKE.items() if text(own.get(key))}
        for key in ("required", "unique"):
            if own.get(key) is True:
                made[key] = True
        takes = _OF_TEXT if kind.name == "string" else _OF_NUMBERS if kind.name in _NUMBERS else ()
        options = {key: own[key] for key in takes if own.get(key) is not None}
        if options:
            made["logicalTypeOptions"] = options
        for key in (*_OF_TEXT, *_OF_NUMBERS):
            if own.get(key) is not None and key not in takes:
                self.lost.append(f"{where}: {key} {shown(own[key])}, on {kind}")
        if listed(own.get("enum")):
            made["enum"] = [{"value": one} for one in listed(own["enum"]) if not isinstance(one, dict | list)]
        examples = listed(own.get("examples")) or ([own["example"]] if own.get("example") is not None else [])
        if examples:
            made["examples"] = examples
        if text(own.get("references")):
            self._reference(text(own["references"]), made, where)
        if listed(own.get("tags")):
            made["tags"] = [str(one) for one in listed(own["tags"])]
        made.update(links(own))
        custom = [{"property": key, "value": value} for key, value in mapped(own.get("config")).items()]
        if isinstance(own.get("pii"), bool):
            custom.append({"property": "pii", "value": own["pii"]})
        if custom:
            made["customProperties"] = custom
        quality = rules(own.get("quality"), where, self.lost)
        if quality:
            made["quality"] = quality
        self.lost += [f"{where}: {key} {shown(own[key])}" for key in own if key not in _FIELD_KEYS]
        return made

    def _reference(self, reference: str, made: dict[str, object], where: str) -> None:
        model, _, field = reference.partition(".")
        if field.partition(".")[0] in mapped(self.models.get(model, {}).get("fields")):
            made["relationships"] = [{"to": reference}]
        else:
            self.lost.append(f"{where}: references {reference}, which is not here")


def links(own: Mapped) -> dict[str, object]:
    """Links, as definitions that stand elsewhere."""
    found = [{"type": key, "url": text(url)} for key, url in mapped(own.get("links")).items() if text(url)]
    return {"authoritativeDefinitions": found} if found else {}


# What a Data Contract Specification says beside its models: who, where, on what terms, how well.

_STATUS = {"in development": "draft"}
_KNOWN = ("proposed", "draft", "active", "deprecated", "retired")
_TOP_KEYS = {
    "dataContractSpecification", "id", "info", "servers", "terms", "models", "definitions", "servicelevels",
    "serviceLevels", "links", "tags",
}  # fmt: skip
_LENGTH = re.compile(r"P?T?(\d+)\s*([A-Za-z]+)")
_UNITS = {
    "s": "s", "second": "s", "m": "min", "min": "min", "minute": "min", "h": "h", "hour": "h", "d": "d",
    "day": "d", "w": "w", "week": "w", "mo": "mo", "month": "mo", "y": "y", "year": "y",
}  # fmt: skip
_INTERVALS = {"hourly": "h", "daily": "d", "weekly": "w", "monthly": "mo", "yearly": "y"}


def said(top: Mapped, lost: list[str]) -> dict[str, object]:
    """The top keys of ODCS; what has no place there goes to `lost`."""
    info, terms = mapped(top.get("info")), mapped(top.get("terms"))
    status = text(info.get("status")).lower()
    status = _STATUS.get(status, status)
    made: dict[str, object] = {"id": text(top.get("id")), "name": text(info.get("title"))}
    made["version"] = str(info.get("version") or "")
    made["status"] = status if status in _KNOWN else ""
    purpose = {"purpose": text(info.get("description"))}
    made["description"] = _full(
        {**purpose, **{key: text(terms.get(key)) for key in ("usage", "limitations")}}
    )
    made["tags"] = [str(one) for one in listed(top.get("tags"))]
    made["team"] = _full({"name": text(info.get("owner"))})
    made["servers"] = [_server(name, mapped(one), lost) for name, one in mapped(top.get("servers")).items()]
    made |= links(top)
    made["customProperties"] = [
        {"property": key, "value": text(terms[key])}
        for key in ("billing", "noticePeriod")
        if text(terms.get(key))
    ]
    made["slaProperties"] = _levels(
        {**mapped(top.get("serviceLevels")), **mapped(top.get("servicelevels"))}, lost
    )
    lost += [f"terms.{key} {shown(one)}" for key, one in terms.items()
             if key not in ("usage", "limitations", "billing", "noticePeriod")]  # fmt: skip
    lost += [f"info.{key} {shown(one)}" for key, one in info.items()
             if key not in ("title", "version", "status", "description", "owner")]  # fmt: skip
    if text(info.get("status")) and not made["status"]:
        lost.append(f"info.status {shown(info['status'])}")
    lost += [f"{key} {shown(one)}" for key, one in top.items() if key not in _TOP_KEYS]
    return _full(made)


def _full(one: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in one.items() if value not in ("", [], {}, None)}


def _server(name: str, one: Mapped, lost: list[str]) -> dict[str, object]:
    kind = text(one.pop("type", "")).lower()
    known = SERVER_TYPES.get(kind) or SERVER_TYPES["custom"]
    made: dict[str, object] = {"server": name, "type": kind if kind in SERVER_TYPES else "custom"}
    if kind not in SERVER_TYPES:
        lost.append(f"servers.{name} is of type {kind or 'nothing'}, which ODCS does not name")
    for key, value in one.items():
        if key == "roles":
            roles = [mapped(role) for role in listed(value)]
            made[key] = [
                _full({"role": text(role.get("name")), "description": text(role.get("description"))})
                for role in roles
            ]
        elif key in (*known.required, *known.optional, "description", "environment"):
            made[key] = value
        else:
            lost.append(f"servers.{name}.{key} {shown(value)}")
    return made


def _levels(levels: Mapped, lost: list[str]) -> list[dict[str, object]]:
    found = []
    for name, one in ((name, mapped(one)) for name, one in levels.items()):
        made, read = _level(name, one)
        if made:
            found.append({"property": name, **made, **_full({"description": text(one.get("description"))})})
        rest = {key: value for key, value in one.items() if key not in read and value not in (None, False)}
        if not made or rest:
            lost.append(f"servicelevels.{name} {shown(rest if made else one)}")
    return found


def _level(name: str, one: Mapped) -> tuple[dict[str, object], set[str]]:
    """A service level, and the keys that it was read from."""
    match name:
        case "availability":
            percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text(one.get("percentage")))
            made = {"value": float(percent[1]), "unit": "percent"} if percent else {}
            return made, {"percentage", "description"}
        case "retention" | "freshness" | "latency":
            key = "period" if name == "retention" else "threshold"
            field = "timestampField" if name != "latency" else "processedTimestampField"
            made = _length(text(one.get(key)))
            return made and {**made, **_full({"element": text(one.get(field))})}, {key, field, "description"}
        case "frequency":
            unit = _INTERVALS.get(text(one.get("interval")).lower())
            cron = {"scheduler": "cron", "schedule": text(one.get("cron"))} if text(one.get("cron")) else {}
            return ({"value": 1, "unit": unit, **cron} if unit else {}), {"interval", "cron", "description"}
    return {}, set()


def _length(written: str) -> dict[str, object]:
    """A length of time, such as `5 minutes`, `P1D` or `PT5M`; nothing for what is none."""
    length = _LENGTH.fullmatch(written)
    if length is None:
        return {}
    word = length[2].lower()
    unit = _UNITS.get(word if len(word) == 1 else word.rstrip("s"))
    if written.startswith("P") and length[2] == "M":
        unit = "min" if "T" in written else "mo"
    return {"value": int(length[1]), "unit": unit} if unit else {}


_MEND = f"Name a file that begins with '{OLD_KEY}: 1.1.0'."
_READ = {"type", "title", "description", "fields", "primaryKey", "quality", "additionalFields", "tags"}


def read(source: str) -> list[FoundTable]:
    """Its models as tables, with all that a contract has a word for.

    Raises UsageError for what is no such document or has no model with fields, Unreadable for what is no
    YAML.
    """
    top = json_of(source, _MEND) if source.endswith(".json") else yaml_of(source, _MEND)
    if OLD_KEY not in top:
        raise UsageError(f"{source} is no Data Contract Specification.", _MEND)
    reader, lost = FieldReader(source, top), list[str]()
    terms = said(top, lost)
    tables = []
    for name, model in reader.models.items():
        if mapped(model.get("fields")):
            tables.append((name, model))
        else:
            lost.append(f"model {name} has no fields")
    if not tables:
        raise UsageError(f"{source} has no model with fields.", _MEND)
    levels = [mapped(one) for one in listed(terms.pop("slaProperties", []))]
    own = {name: tuple(one for one in levels if _model(one) == name) for name, _ in tables}
    rest = [one for one in levels if _model(one) not in own]
    whole = SourceSays({**terms, **({"slaProperties": rest} if rest else {})}, told(lost))
    return [replace(_table(name, model, reader, whole), levels=own[name]) for name, model in tables]


def _model(level: Mapped) -> str:
    return text(level.get("element")).partition(".")[0]


def _table(name: str, model: Mapped, reader: FieldReader, whole: SourceSays) -> FoundTable:
    reader.lost = []
    columns, keys = [], [str(key) for key in listed(model.get("primaryKey"))]
    for column, field in mapped(model["fields"]).items():
        reader.said = {}
        kind, evidence = reader.type(field, column, "")
        own = reader.said.get("", {})
        whole_field = reader.whole(field, column)
        if column not in keys and True in (whole_field.get("primary"), whole_field.get("primaryKey")):
            keys.append(column)
        comment, required = text(own.pop("description", "")), bool(own.pop("required", False))
        columns.append(FoundColumn(column, kind, comment, required, evidence, reader.said))
    more: dict[str, object] = {"physicalType": "view"} if model.get("type") == "view" else {}
    if text(model.get("title")):
        more["businessName"] = text(model["title"])
    if listed(model.get("tags")):
        more["tags"] = [str(one) for one in listed(model["tags"])]
    quality = rules(model.get("quality"), name, reader.lost)
    if quality:
        more["quality"] = quality
    if isinstance(model.get("additionalFields"), bool):
        word = "allow" if model["additionalFields"] else "forbid"
        more["customProperties"] = [
            {"property": "dataset", "vendor": "dq", "value": {"additionalColumns": word}}
        ]
    reader.lost += [f"{key} {shown(one)}" for key, one in model.items() if key not in _READ]
    return FoundTable(
        name, tuple(columns), description=text(model.get("description")), keys=tuple(keys),
        lost=told(reader.lost), said=more, whole=whole,
    )  # fmt: skip


KIND = ImportKind("dcs", "a Data Contract Specification of datacontract.com", read)
