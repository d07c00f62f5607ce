"""dbt: the models, seeds, snapshots and sources of a project, with their tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dq.contracts.shared.outcome import UsageError
from dq.contracts.types import DataType
from dq.lake.storage import exists
from dq.registry.importing.dbt import (
    DbtTable,
    Named,
    TestedColumn,
    promised,
    relations_of_manifest,
    relations_of_properties,
)
from dq.registry.importing.documents import Mapped, listed, mapped, shown, text, told
from dq.registry.importing.model import FoundColumn, FoundTable, ImportKind, Said, SourceSays
from dq.registry.importing.type_inference import GUESS, STRING, ValueGuess, declared

# How sqlglot calls the dialect of an adapter of dbt, where that differs.
_DIALECTS = {"sqlserver": "tsql", "fabric": "tsql", "synapse": "tsql", "glue": "spark", "spark": "spark"}
# Adapter -> type of server in ODCS, and its keys for dbt's database and schema; the others need more than
# dbt writes down.
_SERVERS = {
    "athena": ("athena", "catalog", "schema"),
    "bigquery": ("bigquery", "project", "dataset"),
    "databricks": ("databricks", "catalog", "schema"),
    "duckdb": ("duckdb", "database", "schema"),
    "redshift": ("redshift", "database", "schema"),
}
_PERIODS = {"minute": "min", "hour": "h", "day": "d"}
# Keys of a table that a contract has no place for.
_MORE = ("group", "versions", "deprecation_date")


@dataclass(frozen=True, slots=True)
class _Project:
    dialect: str
    names: Named


def read(source: str) -> list[FoundTable]:
    """Every table whose columns are described. `FILE@DIALECT` says whose types a file of properties names.

    Raises UsageError for a project without such a table, Unreadable for what is no file of dbt.
    """
    from dq.contracts.sql import ddl

    file, _, dialect = source.rpartition("@")
    if not file or dialect not in ddl.dialects():
        file, dialect = source, ""
    for inner in ("manifest.json", "target/manifest.json"):
        if exists(f"{file.rstrip('/')}/{inner}", file):
            file = f"{file.rstrip('/')}/{inner}"
            break
    if exists(f"{file.rstrip('/')}/dbt_project.yml", file):
        mend = "Run 'dbt parse' in it, or name its file of properties, such as models/schema.yml."
        raise UsageError(f"{file} has no target/manifest.json.", mend)
    if file.endswith(".json"):
        found, about = relations_of_manifest(file)
        adapter = text(about.get("adapter_type"))
        dialect = dialect or _DIALECTS.get(adapter, adapter)
    else:
        found, about, adapter = relations_of_properties(file), {}, ""
    project = _Project(dialect if dialect in ddl.dialects() else "", _names(found))
    lost: list[str] = []
    described = []
    for one in found:
        if text(one.config("materialized")) == "ephemeral":
            lost.append(f"{one.name} is ephemeral: no table is made of it")
        elif not one.columns and not one.types:
            lost.append(f"{one.name} has no columns that dbt knows; 'dbt docs generate' asks the warehouse")
        else:
            described.append(one)
    if not described:
        raise UsageError(f"{file}: no column is described.", "Run 'dbt docs generate', or describe them.")
    servers, more = _servers(described, adapter)
    name = text(about.get("project_name"))
    whole = SourceSays({**({"id": name} if name else {}), **servers}, told([*lost, *more]))
    return [_table(one, project, whole) for one in described]


def _names(found: Sequence[DbtTable]) -> Named:
    """What each is called in the contract: by its name, and its source's where several have that."""
    count: dict[str, int] = {}
    for one in found:
        count[one.name.lower()] = count.get(one.name.lower(), 0) + 1
    twin = [one for one in found if count[one.name.lower()] > 1]
    return {
        (one.source, one.name): f"{one.source or 'model'}_{one.name}" if one in twin else one.name
        for one in found
    }


def _servers(found: Iterable[DbtTable], adapter: str) -> tuple[Said, list[str]]:
    places = {(text(one.said.get("database")), text(one.said.get("schema"))) for one in found}
    told = [".".join(part for part in place if part) for place in sorted(places)]
    if not adapter or not any(told):
        return {}, []
    if adapter not in _SERVERS:
        return {}, [f"the tables lie in {', '.join(told)} of {adapter}, whose server needs more than that"]
    if len(places) > 1:
        return {}, [f"the tables lie in several places of {adapter}: {', '.join(told)}"]
    kind, database, schema = _SERVERS[adapter]
    said = {database: next(iter(places))[0], schema: next(iter(places))[1]}
    server = {"server": "production", "type": kind, **{key: one for key, one in said.items() if one}}
    return {"servers": [server]}, []


def _table(one: DbtTable, project: _Project, whole: SourceSays) -> FoundTable:
    tested, lost = promised(one.tests, project.names)
    keys, constrained = _constraints(one, lost)
    name = project.names[one.source, one.name]
    columns = [_column(one, each, project, tested, constrained) for each in _in_order(one)]
    known = {column.name.lower() for column in columns}
    lost += [f"{column}: a test of it, and no such column" for column in tested
             if column and column.lower() not in known]  # fmt: skip
    table = tested.get("", TestedColumn())
    said: dict[str, object] = {"physicalType": "view"} if one.config("materialized") == "view" else {}
    if (one.alias or one.name) != name:
        said["physicalName"] = one.alias or one.name
    said |= {**table.said, **_described(one.config("tags"), one.config("meta"))}
    levels, more = _levels(one, name, known)
    lost += [f"{key} {shown(one.said[key])}" for key in _MORE if one.said.get(key)]
    description = text(one.said.get("description"))
    return FoundTable(
        name, tuple(columns), description=description, keys=keys, lost=told([*lost, *more]), said=said,
        levels=levels, whole=whole,
    )  # fmt: skip


def _in_order(one: DbtTable) -> list[str]:
    """The columns as the warehouse has them, called as dbt does; without it, as they are described."""
    called = {name.lower(): name for name in one.columns}
    there = [called.get(name.lower(), name) for name in one.types]
    return there or list(one.columns)


def _column(
    one: DbtTable,
    name: str,
    project: _Project,
    tested: dict[str, TestedColumn],
    constrained: dict[str, set[str]],
) -> FoundColumn:
    said, tests = one.columns.get(name, {}), tested.get(name, TestedColumn())
    types = {key.lower(): kind for key, kind in one.types.items()}
    kind, evidence = _type(text(said.get("data_type")) or types.get(name.lower(), ""), project, tests)
    kinds = constrained.get(name, set())
    config = mapped(said.get("config"))
    more = _described(config.get("tags") or said.get("tags"), config.get("meta") or said.get("meta"))
    if "unique" in kinds:
        more["unique"] = True
    required = tests.required or "not_null" in kinds or "primary_key" in kinds
    return FoundColumn(
        name, kind, text(said.get("description")), required, evidence, {"": {**tests.said, **more}}
    )


def _type(written: str, project: _Project, tests: TestedColumn) -> tuple[DataType, str]:
    from dq.contracts.sql import ddl

    if not written:
        values = ValueGuess()
        for one in tests.accepted():
            values.add(one)
        if values.kinds:
            kind, evidence = values.made()
            return kind, f"{evidence}, by the test accepted_values"
        return STRING, f"{GUESS}: dbt says no type; 'dbt docs generate' asks the warehouse"
    declared_type, types = ddl.data_type(written, project.dialect)
    return declared(declared_type, written, types.notes)


def _described(tags: object, meta: object) -> dict[str, object]:
    """Tags, and dbt's `meta` as custom properties."""
    words = [tags] if isinstance(tags, str) else [one for one in listed(tags) if isinstance(one, str)]
    own = [{"property": key, "value": value} for key, value in mapped(meta).items()]
    return {**({"tags": words} if words else {}), **({"customProperties": own} if own else {})}


def _constraints(one: DbtTable, lost: list[str]) -> tuple[tuple[str, ...], dict[str, set[str]]]:
    """The primary key, and the kinds of constraints by column; what is of another kind goes to `lost`."""
    keys: list[str] = []
    kinds: dict[str, set[str]] = {}
    own = [
        (mapped(each), [name])
        for name, said in one.columns.items()
        for each in listed(said.get("constraints"))
    ]
    whole = [mapped(each) for each in listed(one.said.get("constraints"))]
    for each, columns in [
        *own,
        *((each, [str(name) for name in listed(each.get("columns"))]) for each in whole),
    ]:
        kind = text(each.get("type"))
        if kind == "primary_key" and columns:
            keys += columns
        elif not columns or kind not in ("not_null", "unique") or (kind == "unique" and len(columns) > 1):
            more = text(each.get("expression")) or shown(each.get("to") or "")
            lost.append(f"constraint {' '.join(part for part in (kind, ', '.join(columns), more) if part)}")
            continue
        for name in columns:
            kinds.setdefault(name, set()).add(kind)
    return tuple(dict.fromkeys(keys)), kinds


def _levels(one: DbtTable, name: str, columns: set[str]) -> tuple[tuple[Said, ...], list[str]]:
    """The freshness of a source as a service level: the age at which dbt calls it an error."""
    freshness: Mapped = mapped(one.config("freshness"))
    after = mapped(freshness.get("error_after")) or mapped(freshness.get("warn_after"))
    count, unit = after.get("count"), _PERIODS.get(text(after.get("period")))
    if not freshness or not isinstance(count, int) or unit is None:
        return (), []
    lost = []
    warn = mapped(freshness.get("warn_after"))
    if freshness.get("error_after") and isinstance(warn.get("count"), int):
        lost.append(f"freshness warns after {warn['count']} {warn.get('period')}")
    if text(freshness.get("filter")):
        lost.append(f"freshness is of rows where {text(freshness.get('filter'))}")
    field = text(one.config("loaded_at_field"))
    if field.lower() not in columns:
        why = f"from {field}" if field else "without a column that says when a row is of"
        return (), [*lost, f"freshness of {count} {after.get('period')} {why}"]
    level = {"property": "freshness", "value": count, "unit": unit, "element": f"{name}.{field}"}
    return (level,), lost


KIND = ImportKind("dbt", "a project's target/manifest.json, or a file of properties such as schema.yml", read)
