"""dbt: the models, seeds, snapshots and sources of a project, with their tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.types import DataType
from dq.lake.storage import exists
from dq.registry import importing
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

# A dbt model, seed, snapshot or source, from the manifest or a properties file.

# Keys of a test that are not arguments.
_COMMON_KEYS = ("name", "description", "config", "tags", "meta", "docs", "arguments")
_SETTINGS = ("severity", "where", "enabled", "error_if", "warn_if", "limit", "fail_calc", "store_failures")


@dataclass(frozen=True, slots=True)
class DbtTest:
    """A test of a column, or of the whole table if `column` is "". `config` holds dbt's settings."""

    name: str
    arguments: Mapping[str, object]
    column: str = ""
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class DbtTable:
    """A table. `name` is its name in refs, `alias` its name in the database, `source` the group of a source.

    `columns` are dbt's column properties by name; `types` are the types reported by the warehouse.
    """

    name: str
    properties: JsonObject
    alias: str = ""
    source: str = ""
    columns: dict[str, JsonObject] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    tests: list[DbtTest] = field(default_factory=list)

    def config(self, key: str) -> object:
        """Return a setting; newer versions of dbt keep it under `config`."""
        inner = as_mapping(self.properties.get("config"))
        return inner[key] if inner.get(key) not in (None, {}, []) else self.properties.get(key)


def declared_tests(properties: JsonObject, column: str = "") -> Iterator[DbtTest]:
    """Yield the tests that a properties file lists for a table or column, in each of dbt's spellings."""
    for entry in [*as_list(properties.get("data_tests")), *as_list(properties.get("tests"))]:
        if isinstance(entry, str):
            yield DbtTest(entry, {}, column)
            continue
        inner = as_mapping(entry)
        if "test_name" in inner:
            name, test_keys = as_text(inner.pop("test_name")), inner
        elif len(inner) == 1:
            [(name, value)] = inner.items()
            test_keys = as_mapping(value)
        else:
            # `not_null:` with its settings one level too far left, which dbt accepts.
            name = next(iter(inner), "")
            test_keys = {**as_mapping(inner.pop(name, None)), **inner}
        settings = {
            **{key: test_keys[key] for key in _SETTINGS if key in test_keys},
            **as_mapping(test_keys.get("config")),
        }
        arguments = {key: value for key, value in test_keys.items() if key not in (*_COMMON_KEYS, *_SETTINGS)}
        yield DbtTest(name, {**arguments, **as_mapping(test_keys.get("arguments"))}, column, settings)


# TABLE: dbt tests and their counterparts in a contract; other tests are reported as unsupported.
#
# A test that fails a build becomes a key of the column. A test that only warns, or applies to some rows,
# becomes a quality rule, which can express both.

_REF = re.compile(r"""(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?[^)]*\)""")
_STRICT_CONDITIONS = ("", "!= 0", "!=0", "> 0", ">0")


@dataclass(slots=True)
class TestedColumn:
    """ODCS keys derived from the tests of one column."""

    odcs_keys: dict[str, list[object] | object] = field(default_factory=dict)

    def add(self, key: str, value: object) -> None:
        """Append an item to a list of the column."""
        self.odcs_keys[key] = [*as_list(self.odcs_keys.get(key)), value]

    def accepted_values(self) -> list[object]:
        """Return the values that the tests of the column accept."""
        rules = [as_mapping(rule) for rule in as_list(self.odcs_keys.get("quality"))]
        valid_values = [as_mapping(rule.get("arguments")).get("validValues") for rule in rules]
        return [
            *(as_mapping(item).get("value") for item in as_list(self.odcs_keys.get("enum"))),
            *(value for values in valid_values for value in as_list(values)),
        ]


ObjectNames = Mapping[tuple[str, str], str]
"""Name of the contract's object by (source group, "" for a model; name in dbt)."""

TestConverter = Callable[["DbtTest", "TestedColumn", ObjectNames], str | None]
"""Adds a test to the keys of a column; returns the reason if it cannot, or None."""


def keys_from_tests(
    tests: Iterable[DbtTest], names: ObjectNames
) -> tuple[dict[str, TestedColumn], list[str]]:
    """Return the keys derived from tests by column ("" for the whole table), and unsupported tests."""
    columns: dict[str, TestedColumn] = {}
    unsupported = []
    for test in tests:
        if test.config.get("enabled") is False:
            continue
        why = _convert_test(test, columns, names)
        if why is not None:
            about = f"{test.column}: " if test.column else ""
            arguments = f" {excerpt(dict(test.arguments))}" if test.arguments else ""
            unsupported.append(f"{about}test {test.name}{arguments}{why and f', {why}'}")
    return columns, unsupported


def _convert_test(test: DbtTest, columns: dict[str, TestedColumn], names: ObjectNames) -> str | None:
    """Convert a test. Return None if it was converted, else the reason ("" if there is none to give)."""
    convert = _CONVERTERS.get(test.name)
    if convert is None:
        return ""
    error_if = as_text(test.config.get("error_if"))
    if error_if not in _STRICT_CONDITIONS:
        return f"which fails if the count is {error_if}"
    condition = as_text(test.config.get("where"))
    if "{{" in condition or "{%" in condition:
        return f"where {excerpt(condition)}, which is a dbt template"
    existing = columns.get(test.column)
    column = existing or TestedColumn()
    why = convert(test, column, names)
    if why is None:
        columns[test.column] = column
    return why


def _is_plain(test: DbtTest) -> bool:
    return not _scope(test) and as_text(test.config.get("severity")).lower() != "warn"


def _scope(test: DbtTest) -> dict[str, object]:
    condition = as_text(test.config.get("where"))
    return (
        {"property": "scope", "vendor": "dq", "value": {"rows": "table", "where": condition}}
        if condition
        else {}
    )


def _add_rule(test: DbtTest, column: TestedColumn, **keys: object) -> None:
    warns = as_text(test.config.get("severity")).lower() == "warn"
    scope = _scope(test)
    column.add("quality", {
        **keys,
        "mustBe": 0,
        **({"severity": "warning"} if warns else {}),
        **({"customProperties": [scope]} if scope else {}),
    })  # fmt: skip


def _column_test(key: str, metric: str) -> TestConverter:
    """Return a converter to `key` for tests of every row, and to a rule with `metric` for others."""

    def convert(test: DbtTest, column: TestedColumn, _: ObjectNames) -> str | None:
        if not test.column:
            return "which names no column"
        if _is_plain(test):
            column.odcs_keys[key] = True
        else:
            _add_rule(test, column, metric=metric)
        return None

    return convert


def _accepted_values(test: DbtTest, column: TestedColumn, _: ObjectNames) -> str | None:
    values = as_list(test.arguments.get("values"))
    if not test.column or not values or any(isinstance(value, dict | list) for value in values):
        return "which lists no values"
    if test.arguments.get("quote") is not False:
        # dbt quotes these values, so they are strings whatever type YAML gave them.
        values = ["true" if value is True else "false" if value is False else str(value) for value in values]
    if _is_plain(test):
        column.odcs_keys["enum"] = [{"value": value} for value in dict.fromkeys(values)]
    else:
        _add_rule(test, column, metric="invalidValues", arguments={"validValues": values})
    return None


def _relationship(test: DbtTest, column: TestedColumn, names: ObjectNames) -> str | None:
    field, match = as_text(test.arguments.get("field")), _REF.search(as_text(test.arguments.get("to")))
    if match is None or not field or not test.column:
        return "which names no column of another table"
    if not _is_plain(test):
        return "which only warns, or covers only some rows"
    kind, first, second = match.groups()
    target = names.get((first, second or "") if kind == "source" else ("", second or first))
    if target is None:
        return "a table that is not imported"
    column.add("relationships", {"to": f"{target}.{field}"})
    return None


def _combination(test: DbtTest, column: TestedColumn, _: ObjectNames) -> str | None:
    columns = as_list(test.arguments.get("combination_of_columns"))
    if not columns or not all(isinstance(name, str) for name in columns):
        return "which names no columns"
    _add_rule(test, column, metric="duplicateValues", arguments={"properties": columns})
    return None


_CONVERTERS: dict[str, TestConverter] = {
    "not_null": _column_test("required", "nullValues"),
    "unique": _column_test("unique", "duplicateValues"),
    "accepted_values": _accepted_values,
    "relationships": _relationship,
    "dbt_utils.unique_combination_of_columns": _combination,
}


# A properties file of dbt: `schema.yml`, `sources.yml` or any other name.

_KINDS = ("models", "seeds", "snapshots")
# Keys of a source that its tables inherit.
_INHERITED = ("database", "schema", "freshness", "loaded_at_field", "config")
_PROPERTIES_HINT = "Pass a properties file, e.g. models/schema.yml, or the project's target/manifest.json."


def tables_from_properties(source: str) -> list[DbtTable]:
    """Return the tables that the properties file describes. Raises UsageError if there are none."""
    top = read_yaml_object(source, _PROPERTIES_HINT)
    tables = [
        _table_from_properties(entry) for kind in _KINDS for entry in map(as_mapping, as_list(top.get(kind)))
    ]
    for group in map(as_mapping, as_list(top.get("sources"))):
        above: JsonObject = {key: group[key] for key in _INHERITED if key in group}
        for table in map(as_mapping, as_list(group.get("tables"))):
            config = {**as_mapping(above.get("config")), **as_mapping(table.get("config"))}
            properties: JsonObject = {**above, **table, "config": config}
            dbt_table = _table_from_properties(properties)
            dbt_table.source = as_text(group.get("name"))
            dbt_table.alias = as_text(table.get("identifier"))
            tables.append(dbt_table)
    named = [candidate for candidate in tables if candidate.name]
    if not named:
        raise UsageError(f"{source} describes no models or sources.", _PROPERTIES_HINT)
    return named


def _table_from_properties(properties: JsonObject) -> DbtTable:
    table = DbtTable(as_text(properties.get("name")), properties)
    table.alias = as_text(table.config("alias"))
    table.tests += declared_tests(properties)
    for column in map(as_mapping, as_list(properties.get("columns"))):
        name = as_text(column.get("name"))
        if name:
            table.columns[name] = column
            table.tests += declared_tests(column, name)
    return table


# The manifest of a dbt project, and the catalog next to it.
#
# Source: dbt's artifacts, manifest versions 7 to 12 and catalog version 1. Unknown keys are ignored.

OLDEST_MANIFEST = 7
_MANIFEST_HINT = "Run 'dbt parse' in the project, and pass its target/manifest.json."
_TABLES = ("model", "seed", "snapshot")
_VERSION = re.compile(r"/manifest/v(\d+)")
# The tested table in the argument `model` of a test.
_MODEL = re.compile(r"""(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?""")


def tables_from_manifest(source: str) -> tuple[list[DbtTable], JsonObject]:
    """Return the tables of the project, and the manifest's metadata.

    Raises ReadError if the file is not a manifest, or is older than version `OLDEST_MANIFEST`.
    """
    manifest = read_json_object(source, _MANIFEST_HINT)
    about = as_mapping(manifest.get("metadata"))
    version = _VERSION.search(as_text(about.get("dbt_schema_version")))
    if version is None or not isinstance(manifest.get("nodes"), dict):
        raise ReadError(f"{source} is not a dbt manifest.", _MANIFEST_HINT)
    if int(version[1]) < OLDEST_MANIFEST:
        raise ReadError(
            f"{source} is a manifest v{version[1]}, of dbt before 1.3.", "Run a newer 'dbt parse'."
        )
    nodes = {key: as_mapping(entry) for key, entry in as_mapping(manifest["nodes"]).items()}
    sources = {key: as_mapping(entry) for key, entry in as_mapping(manifest.get("sources")).items()}
    tables = {
        key: _table_from_node(entry) for key, entry in nodes.items() if entry.get("resource_type") in _TABLES
    }
    tables |= {key: _table_from_source(entry) for key, entry in sources.items()}
    for node in nodes.values():
        if node.get("resource_type") == "test":
            _attach_test(node, tables)
    _add_catalog_types(source, tables)
    if not tables:
        raise UsageError(f"{source} has no models or sources.", _MANIFEST_HINT)
    return list(tables.values()), about


def _table_from_node(node: JsonObject) -> DbtTable:
    table = DbtTable(as_text(node.get("name")), node, as_text(node.get("alias")))
    version = node.get("version")
    if version is not None:
        # Each version of a model is a separate table.
        table.name = f"{table.name}_v{version}"
    table.columns = {name: as_mapping(column) for name, column in as_mapping(node.get("columns")).items()}
    return table


def _table_from_source(node: JsonObject) -> DbtTable:
    table = _table_from_node(node)
    table.alias, table.source = as_text(node.get("identifier")), as_text(node.get("source_name"))
    return table


def _attach_test(node: JsonObject, tables: dict[str, DbtTable]) -> None:
    """Add a test to the table that it tests; a test of several tables is added to each."""
    about = as_mapping(node.get("test_metadata"))
    arguments = as_mapping(about.get("kwargs"))
    own = (as_text(about.get("namespace")), as_text(about.get("name")))
    name = ".".join(part for part in own if part) or as_text(node.get("name"))
    column = as_text(node.get("column_name")) or as_text(arguments.get("column_name"))
    own_arguments = {key: value for key, value in arguments.items() if key not in ("model", "column_name")}
    test = DbtTest(name, own_arguments, column, as_mapping(node.get("config")))
    table_keys = [key for key in as_list(as_mapping(node.get("depends_on")).get("nodes")) if key in tables]
    attached = as_text(node.get("attached_node"))
    if attached:
        table_keys = [attached]
    elif about and len(table_keys) > 1:
        table_keys = [str(key) for key in table_keys if _is_about(arguments, tables[str(key)])]
    for key in table_keys:
        if str(key) in tables:
            tables[str(key)].tests.append(test)


def _is_about(arguments: JsonObject, relation: DbtTable) -> bool:
    match = _MODEL.search(as_text(arguments.get("model")))
    if match is None:
        return False
    kind, first, second = match.groups()
    if kind == "source":
        return (relation.source, relation.name) == (first, second)
    return not relation.source and relation.name == (second or first)


def _add_catalog_types(source: str, tables: dict[str, DbtTable]) -> None:
    """Add the warehouse's types from the catalog next to the manifest, if there is one."""
    catalog_file = (
        f"{source[: -len('manifest.json')]}catalog.json" if source.endswith("manifest.json") else ""
    )
    if not catalog_file or not exists(catalog_file, catalog_file.removesuffix("catalog.json") or "."):
        return
    catalog = read_json_object(catalog_file, "Run 'dbt docs generate' again, or remove it.")
    for key, node in {**as_mapping(catalog.get("nodes")), **as_mapping(catalog.get("sources"))}.items():
        if key not in tables:
            continue
        columns = [as_mapping(column) for column in as_mapping(as_mapping(node).get("columns")).values()]
        columns.sort(key=lambda column: index if isinstance(index := column.get("index"), int) else 0)
        tables[key].types = {as_text(column.get("name")): as_text(column.get("type")) for column in columns}


# dbt adapter -> sqlglot dialect, where the names differ.
_DIALECTS = {"sqlserver": "tsql", "fabric": "tsql", "synapse": "tsql", "glue": "spark", "spark": "spark"}
# Adapter -> ODCS server type, and its keys for dbt's database and schema. Other servers need keys that dbt
# does not record.
_SERVERS = {
    "athena": ("athena", "catalog", "schema"),
    "bigquery": ("bigquery", "project", "dataset"),
    "databricks": ("databricks", "catalog", "schema"),
    "duckdb": ("duckdb", "database", "schema"),
    "redshift": ("redshift", "database", "schema"),
}
_PERIODS = {"minute": "min", "hour": "h", "day": "d"}
# Keys of a table that a contract cannot express.
_UNSUPPORTED_KEYS = ("group", "versions", "deprecation_date")


@dataclass(frozen=True, slots=True)
class _Project:
    dialect: str
    names: ObjectNames


def read(source: str) -> list[importing.ImportedTable]:
    """Read all tables with described columns. `FILE@DIALECT` names the SQL dialect of the types.

    Raises UsageError for a project without such a table, ReadError if the file is not a dbt file.
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
        hint = "Run 'dbt parse' in it, or pass its properties file, e.g. models/schema.yml."
        raise UsageError(f"{file} has no target/manifest.json.", hint)
    if file.endswith(".json"):
        tables, about = tables_from_manifest(file)
        adapter = as_text(about.get("adapter_type"))
        dialect = dialect or _DIALECTS.get(adapter, adapter)
    else:
        tables, about, adapter = tables_from_properties(file), {}, ""
    project = _Project(dialect if dialect in ddl.dialects() else "", _object_names(tables))
    unsupported: list[str] = []
    described = []
    for table in tables:
        if as_text(table.config("materialized")) == "ephemeral":
            unsupported.append(f"{table.name} is ephemeral: dbt creates no table for it")
        elif not table.columns and not table.types:
            unsupported.append(
                f"{table.name} has no columns known to dbt; 'dbt docs generate' reads them from the warehouse"
            )
        else:
            described.append(table)
    if not described:
        raise UsageError(f"{file}: no columns are described.", "Run 'dbt docs generate', or describe them.")
    servers, server_notes = _servers(described, adapter)
    name = as_text(about.get("project_name"))
    metadata = importing.SourceMetadata(
        {**({"id": name} if name else {}), **servers}, limit_sentences([*unsupported, *server_notes])
    )
    return [_import_table(table, project, metadata) for table in described]


def _object_names(tables: Sequence[DbtTable]) -> ObjectNames:
    """Return the object name of each table, prefixed with its source if several have the same name."""
    count: dict[str, int] = {}
    for table in tables:
        count[table.name.lower()] = count.get(table.name.lower(), 0) + 1
    twin = [table for table in tables if count[table.name.lower()] > 1]
    return {
        (table.source, table.name): f"{table.source or 'model'}_{table.name}" if table in twin else table.name
        for table in tables
    }


def _servers(tables: Iterable[DbtTable], adapter: str) -> tuple[importing.OdcsKeys, list[str]]:
    places = {
        (as_text(table.properties.get("database")), as_text(table.properties.get("schema")))
        for table in tables
    }
    names = [".".join(part for part in place if part) for place in sorted(places)]
    if not adapter or not any(names):
        return {}, []
    if adapter not in _SERVERS:
        return {}, [f"the tables are in {', '.join(names)} of {adapter}, whose server needs more settings"]
    if len(places) > 1:
        return {}, [f"the tables are in several locations of {adapter}: {', '.join(names)}"]
    kind, database, schema = _SERVERS[adapter]
    location = {database: next(iter(places))[0], schema: next(iter(places))[1]}
    server = {
        "server": "production",
        "type": kind,
        **{key: value for key, value in location.items() if value},
    }
    return {"servers": [server]}, []


def _import_table(
    dbt_table: DbtTable, project: _Project, metadata: importing.SourceMetadata
) -> importing.ImportedTable:
    tested, unsupported = keys_from_tests(dbt_table.tests, project.names)
    keys, constrained = _constraints(dbt_table, unsupported)
    name = project.names[dbt_table.source, dbt_table.name]
    columns = [
        _column(dbt_table, column_name, project, tested, constrained)
        for column_name in _column_order(dbt_table)
    ]
    column_names = {column.name.lower() for column in columns}
    unsupported += [f"{column}: tested, but not a column of the table" for column in tested
             if column and column.lower() not in column_names]  # fmt: skip
    table_tests = tested.get("", TestedColumn())
    odcs_keys: dict[str, object] = (
        {"physicalType": "view"} if dbt_table.config("materialized") == "view" else {}
    )
    if (dbt_table.alias or dbt_table.name) != name:
        odcs_keys["physicalName"] = dbt_table.alias or dbt_table.name
    odcs_keys |= {
        **table_tests.odcs_keys,
        **_tags_and_meta(dbt_table.config("tags"), dbt_table.config("meta")),
    }
    levels, level_notes = _service_levels(dbt_table, name, column_names)
    unsupported += [
        f"{key} {excerpt(dbt_table.properties[key])}"
        for key in _UNSUPPORTED_KEYS
        if dbt_table.properties.get(key)
    ]
    description = as_text(dbt_table.properties.get("description"))
    return importing.ImportedTable(
        name, tuple(columns), description=description, keys=keys,
        unsupported=limit_sentences([*unsupported, *level_notes]), odcs_keys=odcs_keys,
        service_levels=levels, metadata=metadata,
    )  # fmt: skip


def _column_order(table: DbtTable) -> list[str]:
    """Return the column names in warehouse order with dbt's spelling, or in dbt's order without a catalog."""
    spelled = {name.lower(): name for name in table.columns}
    in_catalog = [spelled.get(name.lower(), name) for name in table.types]
    return in_catalog or list(table.columns)


def _column(
    table: DbtTable,
    name: str,
    project: _Project,
    tested: dict[str, TestedColumn],
    constrained: dict[str, set[str]],
) -> importing.ImportedColumn:
    properties, tests = table.columns.get(name, {}), tested.get(name, TestedColumn())
    types = {key.lower(): kind for key, kind in table.types.items()}
    kind, evidence = _type(
        as_text(properties.get("data_type")) or types.get(name.lower(), ""), project, tests
    )
    kinds = constrained.get(name, set())
    config = as_mapping(properties.get("config"))
    column_keys = _tags_and_meta(
        config.get("tags") or properties.get("tags"), config.get("meta") or properties.get("meta")
    )
    if "unique" in kinds:
        column_keys["unique"] = True
    required = "required" in tests.odcs_keys or "not_null" in kinds or "primary_key" in kinds
    return importing.ImportedColumn(
        name,
        kind,
        as_text(properties.get("description")),
        required,
        evidence,
        {"": {**tests.odcs_keys, **column_keys}},
    )


def _type(type_text: str, project: _Project, tests: TestedColumn) -> tuple[DataType, str]:
    from dq.contracts.sql import ddl

    if not type_text:
        inference = importing.JsonTypeInference()
        for value in tests.accepted_values():
            inference.add(value)
        if inference.kinds:
            values = inference.read_values()
            return values.type, f"{values.evidence}, by the test accepted_values"
        return (
            importing.STRING,
            f"{importing.GUESS}: dbt declares no type; 'dbt docs generate' reads it from the warehouse",
        )
    declared_type, types = ddl.data_type(type_text, project.dialect)
    return importing.declared_type(declared_type, type_text, types.notes)


def _tags_and_meta(tags: object, meta: object) -> dict[str, object]:
    """Tags, and dbt's `meta` as custom properties."""
    words = [tags] if isinstance(tags, str) else [tag for tag in as_list(tags) if isinstance(tag, str)]
    own = [{"property": key, "value": value} for key, value in as_mapping(meta).items()]
    return {**({"tags": words} if words else {}), **({"customProperties": own} if own else {})}


def _constraints(table: DbtTable, unsupported: list[str]) -> tuple[tuple[str, ...], dict[str, set[str]]]:
    """Return the primary key and the constraints by column; others are appended to `unsupported`."""
    keys: list[str] = []
    kinds: dict[str, set[str]] = {}
    column_constraints = [
        (as_mapping(constraint), [name])
        for name, properties in table.columns.items()
        for constraint in as_list(properties.get("constraints"))
    ]
    table_constraints = [
        as_mapping(constraint) for constraint in as_list(table.properties.get("constraints"))
    ]
    for constraint, columns in [
        *column_constraints,
        *(
            (constraint, [str(name) for name in as_list(constraint.get("columns"))])
            for constraint in table_constraints
        ),
    ]:
        kind = as_text(constraint.get("type"))
        if kind == "primary_key" and columns:
            keys += columns
        elif not columns or kind not in ("not_null", "unique") or (kind == "unique" and len(columns) > 1):
            detail = as_text(constraint.get("expression")) or excerpt(constraint.get("to") or "")
            unsupported.append(
                f"constraint {' '.join(part for part in (kind, ', '.join(columns), detail) if part)}"
            )
            continue
        for name in columns:
            kinds.setdefault(name, set()).add(kind)
    return tuple(dict.fromkeys(keys)), kinds


def _service_levels(
    table: DbtTable, name: str, columns: set[str]
) -> tuple[tuple[importing.OdcsKeys, ...], list[str]]:
    """Return the freshness of a source as a service level, at the age that dbt reports as an error."""
    freshness: JsonObject = as_mapping(table.config("freshness"))
    after = as_mapping(freshness.get("error_after")) or as_mapping(freshness.get("warn_after"))
    count, unit = after.get("count"), _PERIODS.get(as_text(after.get("period")))
    if not freshness or not isinstance(count, int) or unit is None:
        return (), []
    unsupported = []
    warn = as_mapping(freshness.get("warn_after"))
    if freshness.get("error_after") and isinstance(warn.get("count"), int):
        unsupported.append(f"freshness warns after {warn['count']} {warn.get('period')}")
    if as_text(freshness.get("filter")):
        unsupported.append(f"freshness covers only rows where {as_text(freshness.get('filter'))}")
    field = as_text(table.config("loaded_at_field"))
    if field.lower() not in columns:
        why = f"from {field}" if field else "without a column with the time of a row"
        return (), [*unsupported, f"freshness of {count} {after.get('period')} {why}"]
    level = {"property": "freshness", "value": count, "unit": unit, "element": f"{name}.{field}"}
    return (level,), unsupported


KIND = importing.ImportKind(
    "dbt",
    "a project's target/manifest.json, or a properties file, e.g. schema.yml",
    read,
    ("dbt_project.yml", "manifest.json"),
)
