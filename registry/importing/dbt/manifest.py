"""The manifest that dbt writes of a project, and the catalog that lies beside it.

Source: dbt's artifacts, manifest versions 7 to 12 and catalog version 1. Unknown keys are passed over.
"""

from __future__ import annotations

import re

from dq.contracts.shared.errors import Unreadable, UsageError
from dq.registry.importing.dbt.relation import DbtTable, DbtTest
from dq.registry.importing.documents import Mapped, json_of, listed, mapped, text
from dq.registry.importing.lake_files import exists

OLDEST = 7
_MEND = "Run 'dbt parse' in the project, and name its target/manifest.json."
_TABLES = ("model", "seed", "snapshot")
_VERSION = re.compile(r"/manifest/v(\d+)")
# What a test is about, as its argument `model` says it.
_MODEL = re.compile(r"""(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?""")


def relations(source: str) -> tuple[list[DbtTable], Mapped]:
    """The tables of the project, and what the manifest says of itself.

    Raises Unreadable for what is no manifest, or one of a version before `OLDEST`.
    """
    whole = json_of(source, _MEND)
    about = mapped(whole.get("metadata"))
    version = _VERSION.search(text(about.get("dbt_schema_version")))
    if version is None or not isinstance(whole.get("nodes"), dict):
        raise Unreadable(f"{source} is no manifest of dbt.", _MEND)
    if int(version[1]) < OLDEST:
        raise Unreadable(
            f"{source} is a manifest v{version[1]}, of dbt before 1.3.", "Run a newer 'dbt parse'."
        )
    nodes = {key: mapped(one) for key, one in mapped(whole["nodes"]).items()}
    sources = {key: mapped(one) for key, one in mapped(whole.get("sources")).items()}
    found = {key: _relation(one) for key, one in nodes.items() if one.get("resource_type") in _TABLES}
    found |= {key: _source(one) for key, one in sources.items()}
    for node in nodes.values():
        if node.get("resource_type") == "test":
            _put(node, found)
    _types(source, found)
    if not found:
        raise UsageError(f"{source} has no model and no source.", _MEND)
    return list(found.values()), about


def _relation(said: Mapped) -> DbtTable:
    made = DbtTable(text(said.get("name")), said, text(said.get("alias")))
    version = said.get("version")
    if version is not None:
        # Versions of a model are tables of their own.
        made.name = f"{made.name}_v{version}"
    made.columns = {name: mapped(one) for name, one in mapped(said.get("columns")).items()}
    return made


def _source(said: Mapped) -> DbtTable:
    made = _relation(said)
    made.alias, made.source = text(said.get("identifier")), text(said.get("source_name"))
    return made


def _put(node: Mapped, found: dict[str, DbtTable]) -> None:
    """Puts a test to the table that it is about; one that is about several is told at each."""
    about = mapped(node.get("test_metadata"))
    arguments = mapped(about.get("kwargs"))
    own = (text(about.get("namespace")), text(about.get("name")))
    name = ".".join(part for part in own if part) or text(node.get("name"))
    column = text(node.get("column_name")) or text(arguments.get("column_name"))
    rest = {key: value for key, value in arguments.items() if key not in ("model", "column_name")}
    test = DbtTest(name, rest, column, mapped(node.get("config")))
    on = [key for key in listed(mapped(node.get("depends_on")).get("nodes")) if key in found]
    attached = text(node.get("attached_node"))
    if attached:
        on = [attached]
    elif about and len(on) > 1:
        on = [str(key) for key in on if _is_about(arguments, found[str(key)])]
    for key in on:
        if str(key) in found:
            found[str(key)].tests.append(test)


def _is_about(arguments: Mapped, relation: DbtTable) -> bool:
    match = _MODEL.search(text(arguments.get("model")))
    if match is None:
        return False
    kind, first, second = match.groups()
    if kind == "source":
        return (relation.source, relation.name) == (first, second)
    return not relation.source and relation.name == (second or first)


def _types(source: str, found: dict[str, DbtTable]) -> None:
    """Takes from the catalog beside the manifest, where one is, what the warehouse says of types."""
    beside = f"{source[: -len('manifest.json')]}catalog.json" if source.endswith("manifest.json") else ""
    if not beside or not exists(beside, beside.removesuffix("catalog.json") or "."):
        return
    catalog = json_of(beside, "Run 'dbt docs generate' again, or remove it.")
    for key, node in {**mapped(catalog.get("nodes")), **mapped(catalog.get("sources"))}.items():
        if key not in found:
            continue
        columns = [mapped(one) for one in mapped(mapped(node).get("columns")).values()]
        columns.sort(key=lambda one: index if isinstance(index := one.get("index"), int) else 0)
        found[key].types = {text(one.get("name")): text(one.get("type")) for one in columns}
