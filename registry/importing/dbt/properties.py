"""A file of properties of dbt: `schema.yml`, `sources.yml`, whatever it is called."""

from __future__ import annotations

from dq.contracts.shared.errors import UsageError
from dq.registry.importing.dbt.relation import DbtTable, written_tests
from dq.registry.importing.documents import Mapped, listed, mapped, text, yaml_of

_KINDS = ("models", "seeds", "snapshots")
# What a source says for all of its tables.
_INHERITED = ("database", "schema", "freshness", "loaded_at_field", "config")
_MEND = "Name a file of properties, such as models/schema.yml, or the project's target/manifest.json."


def relations(source: str) -> list[DbtTable]:
    """The tables that the file describes. Raises UsageError for a file that describes none."""
    top = yaml_of(source, _MEND)
    found = [_relation(one) for kind in _KINDS for one in map(mapped, listed(top.get(kind)))]
    for group in map(mapped, listed(top.get("sources"))):
        above: Mapped = {key: group[key] for key in _INHERITED if key in group}
        for table in map(mapped, listed(group.get("tables"))):
            config = {**mapped(above.get("config")), **mapped(table.get("config"))}
            said: Mapped = {**above, **table, "config": config}
            made = _relation(said)
            made.source = text(group.get("name"))
            made.alias = text(table.get("identifier"))
            found.append(made)
    named = [one for one in found if one.name]
    if not named:
        raise UsageError(f"{source} describes no model and no source.", _MEND)
    return named


def _relation(said: Mapped) -> DbtTable:
    made = DbtTable(text(said.get("name")), said)
    made.alias = text(made.config("alias"))
    made.tests += written_tests(said)
    for column in map(mapped, listed(said.get("columns"))):
        name = text(column.get("name"))
        if name:
            made.columns[name] = column
            made.tests += written_tests(column, name)
    return made
