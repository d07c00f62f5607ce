"""Fields of a Data Contract Specification: their types, and what else is said of them at any depth.

Source: the Data Contract Specification 1.2.0, sections "Field Object" and "Data Types".
"""

from __future__ import annotations

from collections.abc import Mapping

from dq.contracts.types import DataType, NotAType, parse
from dq.registry.importing.dcs.quality import rules
from dq.registry.importing.documents import Mapped, listed, mapped, shown, text
from dq.registry.importing.found import Unfolding
from dq.registry.importing.guess import STRING

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
_READ = {
    "type", "required", "unique", "primary", "primaryKey", "references", "enum", "example", "examples", "pii",
    "tags", "links", "quality", "config", "fields", "items", "keys", "values", "precision", "scale", "$ref",
    "domain", "name", *_ALIKE, *_OF_TEXT, *_OF_NUMBERS,
}  # fmt: skip
_MOST_DEPTH = 32


class FieldReader:
    """Reads the fields of one document. `lost` gathers what a contract cannot say, a sentence each."""

    def __init__(self, source: str, top: Mapped) -> None:
        self.top, self.unfolding = top, Unfolding(source)
        self.lost: list[str] = []
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

    def type(
        self, field: object, where: str, path: str, said: dict[str, dict[str, object]], depth: int = 0
    ) -> tuple[DataType, str]:
        """The type and what has to be said of it. What else is said goes to `said`, by the path inside."""
        self.unfolding.step()
        if depth > _MOST_DEPTH:
            return STRING, "nested too deep"
        own = self.whole(field, where)
        kind, evidence = self._type(own, where, path, said, depth)
        keys = self._said(own, kind, where)
        if keys:
            said[path] = {**said.get(path, {}), **keys}
        return kind, evidence

    def _type(
        self, own: Mapped, where: str, path: str, said: dict[str, dict[str, object]], depth: int
    ) -> tuple[DataType, str]:
        word, config = text(own.get("type")).lower(), mapped(own.get("config"))
        for key in ("glueType", "databricksType"):
            try:
                return parse(text(config.get(key))), ""
            except NotAType:
                continue
        if word in _RECORD and mapped(own.get("fields")):
            parts = []
            for name, inner in mapped(own["fields"]).items():
                below = f"{path}.{name}".lstrip(".")
                parts.append((name, self.type(inner, f"{where}.{name}", below, said, depth + 1)[0]))
            names, kinds = zip(*parts, strict=True)
            return DataType("struct", (), tuple(kinds), tuple(names)), ""
        if word == "array":
            item, why = self.type(own.get("items"), f"{where}[]", f"{path}[]", said, depth + 1)
            return DataType("array", (), (item,)), why
        if word == "map":
            inner = [
                self.type(own.get(key), f"{where}.{key}", f"{path}.{sign}".lstrip("."), said, depth + 1)[0]
                for key, sign in (("keys", "^"), ("values", "*"))
            ]
            return DataType("map", (), tuple(inner)), ""
        if word in _DECIMAL:
            precision, scale = own.get("precision", 38), own.get("scale", 0)
            evidence = (
                "" if "precision" in own else f"declared as {word}, which has 38 digits if it says none"
            )
            try:
                made = parse(f"decimal({precision},{scale})")
            except NotAType:
                return STRING, f"declared as {word}({precision},{scale}), which Spark does not have"
            if "logicalType" not in said.get(path, {}):
                said[path] = {**said.get(path, {}), "logicalType": "number"}
            return made, evidence
        if word in _PLAIN:
            if word == "time":
                said[path] = {**said.get(path, {}), "logicalType": "time"}
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
        self.lost += [f"{where}: {key} {shown(own[key])}" for key in own if key not in _READ]
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
