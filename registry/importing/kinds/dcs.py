"""A Data Contract Specification (datacontract.com): the format that ODCS has replaced."""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.odcs import OLD_KEY
from dq.contracts.shared.outcome import UsageError
from dq.registry.importing.dcs import FieldReader, rules, said
from dq.registry.importing.documents import Mapped, json_of, listed, mapped, shown, text, told, yaml_of
from dq.registry.importing.model import FoundColumn, FoundTable, ImportKind, SourceSays

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
        inside: dict[str, dict[str, object]] = {}
        kind, evidence = reader.type(field, column, "", inside)
        own = inside.get("", {})
        whole_field = reader.whole(field, column)
        if column not in keys and True in (whole_field.get("primary"), whole_field.get("primaryKey")):
            keys.append(column)
        columns.append(
            FoundColumn(
                column,
                kind,
                text(own.pop("description", "")),
                bool(own.pop("required", False)),
                evidence,
                inside,
            )
        )
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
