"""dbt: the models, seeds, snapshots and sources of a project, with their tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dq.contracts.outcome import Unreadable, UsageError
from dq.contracts.types import DataType
from dq.lake.storage import exists
from dq.registry import importing
from dq.registry.importing.sources import Mapped, json_of, listed, mapped, shown, text, told, yaml_of

# A model, seed, snapshot or source of dbt, whichever file it was read from.

# Keys of a test beside its arguments.
_BESIDE = ("name", "description", "config", "tags", "meta", "docs", "arguments")
_SETTINGS = ("severity", "where", "enabled", "error_if", "warn_if", "limit", "fail_calc", "store_failures")


@dataclass(frozen=True, slots=True)
class DbtTest:
    """A test with the column that it is about, "" for the whole table. `config` are dbt's own settings."""

    name: str
    arguments: Mapping[str, object]
    column: str = ""
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class DbtTable:
    """A table. `name` is what refs call it, `alias` its name in the database, `source` the group of a source.

    `columns` are as dbt writes them, by name; `types` what the warehouse said of their types.
    """

    name: str
    said: Mapped
    alias: str = ""
    source: str = ""
    columns: dict[str, Mapped] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    tests: list[DbtTest] = field(default_factory=list)

    def config(self, key: str) -> object:
        """A setting, which newer versions of dbt keep under `config`."""
        inner = mapped(self.said.get("config"))
        return inner[key] if inner.get(key) not in (None, {}, []) else self.said.get(key)


def written_tests(said: Mapped, column: str = "") -> Iterator[DbtTest]:
    """The tests that a file of properties lists at a table or a column, in each of dbt's spellings."""
    for one in [*listed(said.get("data_tests")), *listed(said.get("tests"))]:
        if isinstance(one, str):
            yield DbtTest(one, {}, column)
            continue
        inner = mapped(one)
        if "test_name" in inner:
            name, rest = text(inner.pop("test_name")), inner
        elif len(inner) == 1:
            [(name, value)] = inner.items()
            rest = mapped(value)
        else:
            # `not_null:` with its settings one step too far left, as dbt takes it too.
            name = next(iter(inner), "")
            rest = {**mapped(inner.pop(name, None)), **inner}
        settings = {**{key: rest[key] for key in _SETTINGS if key in rest}, **mapped(rest.get("config"))}
        arguments = {key: value for key, value in rest.items() if key not in (*_BESIDE, *_SETTINGS)}
        yield DbtTest(name, {**arguments, **mapped(rest.get("arguments"))}, column, settings)


# TABLE: what a test of dbt is in a contract; what no row has is told.
#
# A test that fails a build is a promise of the column. One that only warns, or is of some rows, is a
# quality
# rule, which can say both.

_REF = re.compile(r"""(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?[^)]*\)""")
_STRICT = ("", "!= 0", "!=0", "> 0", ">0")


@dataclass(slots=True)
class TestedColumn:
    """What the tests of one column say of it, as keys of ODCS."""

    said: dict[str, list[object] | object] = field(default_factory=dict)

    def add(self, key: str, value: object) -> None:
        """Adds one item to a list of the column."""
        self.said[key] = [*listed(self.said.get(key)), value]

    def accepted(self) -> list[object]:
        """The values that a test of the column accepts."""
        rules = [mapped(one) for one in listed(self.said.get("quality"))]
        listed_in = [mapped(one.get("arguments")).get("validValues") for one in rules]
        return [
            *(mapped(one).get("value") for one in listed(self.said.get("enum"))),
            *(value for values in listed_in for value in listed(values)),
        ]


Named = Mapping[tuple[str, str], str]
"""The object's name of a relation, by the group of its source ("" for a model) and its name."""

Test = Callable[["DbtTest", "TestedColumn", Named], str | None]
"""Puts a test into the promises of a column; why it cannot, or None."""


def promised(tests: Iterable[DbtTest], names: Named) -> tuple[dict[str, TestedColumn], list[str]]:
    """What the tests of a table say of its columns, those of the whole table under "", and what is lost."""
    columns: dict[str, TestedColumn] = {}
    lost = []
    for test in tests:
        if test.config.get("enabled") is False:
            continue
        why = _carried(test, columns, names)
        if why is not None:
            about = f"{test.column}: " if test.column else ""
            arguments = f" {shown(dict(test.arguments))}" if test.arguments else ""
            lost.append(f"{about}test {test.name}{arguments}{why and f', {why}'}")
    return columns, lost


def _carried(test: DbtTest, columns: dict[str, TestedColumn], names: Named) -> str | None:
    """None where the test is taken over, else why it is not; "" where nothing can be said of that."""
    put = _KNOWN.get(test.name)
    if put is None:
        return ""
    error_if = text(test.config.get("error_if"))
    if error_if not in _STRICT:
        return f"which fails if the count is {error_if}"
    where = text(test.config.get("where"))
    if "{{" in where or "{%" in where:
        return f"where {shown(where)}, which dbt fills in"
    known = columns.get(test.column)
    made = known or TestedColumn()
    why = put(test, made, names)
    if why is None:
        columns[test.column] = made
    return why


def _is_plain(test: DbtTest) -> bool:
    return not _scope(test) and text(test.config.get("severity")).lower() != "warn"


def _scope(test: DbtTest) -> dict[str, object]:
    where = text(test.config.get("where"))
    return {"property": "scope", "vendor": "dq", "value": {"rows": "table", "where": where}} if where else {}


def _rule(test: DbtTest, made: TestedColumn, **said: object) -> None:
    warns = text(test.config.get("severity")).lower() == "warn"
    scope = _scope(test)
    made.add("quality", {
        **said,
        "mustBe": 0,
        **({"severity": "warning"} if warns else {}),
        **({"customProperties": [scope]} if scope else {}),
    })  # fmt: skip


def _of_column(key: str, metric: str) -> Test:
    """A test of one column: the key of ODCS that promises the same of every row, and the metric otherwise."""

    def put(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
        if not test.column:
            return "which names no column"
        if _is_plain(test):
            made.said[key] = True
        else:
            _rule(test, made, metric=metric)
        return None

    return put


def _accepted(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    values = listed(test.arguments.get("values"))
    if not test.column or not values or any(isinstance(one, dict | list) for one in values):
        return "which lists no values"
    if test.arguments.get("quote") is not False:
        # dbt puts quotes around them: they are texts, whatever YAML read.
        values = ["true" if one is True else "false" if one is False else str(one) for one in values]
    if _is_plain(test):
        made.said["enum"] = [{"value": one} for one in dict.fromkeys(values)]
    else:
        _rule(test, made, metric="invalidValues", arguments={"validValues": values})
    return None


def _relationship(test: DbtTest, made: TestedColumn, names: Named) -> str | None:
    field, match = text(test.arguments.get("field")), _REF.search(text(test.arguments.get("to")))
    if match is None or not field or not test.column:
        return "which names no column of another table"
    if not _is_plain(test):
        return "which only warns, or is of some rows"
    kind, first, second = match.groups()
    to = names.get((first, second or "") if kind == "source" else ("", second or first))
    if to is None:
        return "a table that is not imported"
    made.add("relationships", {"to": f"{to}.{field}"})
    return None


def _combination(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    columns = listed(test.arguments.get("combination_of_columns"))
    if not columns or not all(isinstance(one, str) for one in columns):
        return "which names no columns"
    _rule(test, made, metric="duplicateValues", arguments={"properties": columns})
    return None


_KNOWN: dict[str, Test] = {
    "not_null": _of_column("required", "nullValues"),
    "unique": _of_column("unique", "duplicateValues"),
    "accepted_values": _accepted,
    "relationships": _relationship,
    "dbt_utils.unique_combination_of_columns": _combination,
}


# A file of properties of dbt: `schema.yml`, `sources.yml`, whatever it is called.

_KINDS = ("models", "seeds", "snapshots")
# What a source says for all of its tables.
_INHERITED = ("database", "schema", "freshness", "loaded_at_field", "config")
_MEND_PROPERTIES = (
    "Name a file of properties, such as models/schema.yml, or the project's target/manifest.json."
)


def relations_of_properties(source: str) -> list[DbtTable]:
    """The tables that the file describes. Raises UsageError for a file that describes none."""
    top = yaml_of(source, _MEND_PROPERTIES)
    found = [_relation_of_properties(one) for kind in _KINDS for one in map(mapped, listed(top.get(kind)))]
    for group in map(mapped, listed(top.get("sources"))):
        above: Mapped = {key: group[key] for key in _INHERITED if key in group}
        for table in map(mapped, listed(group.get("tables"))):
            config = {**mapped(above.get("config")), **mapped(table.get("config"))}
            said: Mapped = {**above, **table, "config": config}
            made = _relation_of_properties(said)
            made.source = text(group.get("name"))
            made.alias = text(table.get("identifier"))
            found.append(made)
    named = [one for one in found if one.name]
    if not named:
        raise UsageError(f"{source} describes no model and no source.", _MEND_PROPERTIES)
    return named


def _relation_of_properties(said: Mapped) -> DbtTable:
    made = DbtTable(text(said.get("name")), said)
    made.alias = text(made.config("alias"))
    made.tests += written_tests(said)
    for column in map(mapped, listed(said.get("columns"))):
        name = text(column.get("name"))
        if name:
            made.columns[name] = column
            made.tests += written_tests(column, name)
    return made


# The manifest that dbt writes of a project, and the catalog that lies beside it.
#
# Source: dbt's artifacts, manifest versions 7 to 12 and catalog version 1. Unknown keys are passed over.

OLDEST = 7
_MEND = "Run 'dbt parse' in the project, and name its target/manifest.json."
_TABLES = ("model", "seed", "snapshot")
_VERSION = re.compile(r"/manifest/v(\d+)")
# What a test is about, as its argument `model` says it.
_MODEL = re.compile(r"""(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?""")


def relations_of_manifest(source: str) -> tuple[list[DbtTable], Mapped]:
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


def read(source: str) -> list[importing.FoundTable]:
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
    whole = importing.SourceSays({**({"id": name} if name else {}), **servers}, told([*lost, *more]))
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


def _servers(found: Iterable[DbtTable], adapter: str) -> tuple[importing.Said, list[str]]:
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


def _table(one: DbtTable, project: _Project, whole: importing.SourceSays) -> importing.FoundTable:
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
    return importing.FoundTable(
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
) -> importing.FoundColumn:
    said, tests = one.columns.get(name, {}), tested.get(name, TestedColumn())
    types = {key.lower(): kind for key, kind in one.types.items()}
    kind, evidence = _type(text(said.get("data_type")) or types.get(name.lower(), ""), project, tests)
    kinds = constrained.get(name, set())
    config = mapped(said.get("config"))
    more = _described(config.get("tags") or said.get("tags"), config.get("meta") or said.get("meta"))
    if "unique" in kinds:
        more["unique"] = True
    required = "required" in tests.said or "not_null" in kinds or "primary_key" in kinds
    return importing.FoundColumn(
        name, kind, text(said.get("description")), required, evidence, {"": {**tests.said, **more}}
    )


def _type(written: str, project: _Project, tests: TestedColumn) -> tuple[DataType, str]:
    from dq.contracts.sql import ddl

    if not written:
        values = importing.ValueGuess()
        for one in tests.accepted():
            values.add(one)
        if values.kinds:
            kind, evidence = values.made()
            return kind, f"{evidence}, by the test accepted_values"
        return (
            importing.STRING,
            f"{importing.GUESS}: dbt says no type; 'dbt docs generate' asks the warehouse",
        )
    declared_type, types = ddl.data_type(written, project.dialect)
    return importing.declared(declared_type, written, types.notes)


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


def _levels(one: DbtTable, name: str, columns: set[str]) -> tuple[tuple[importing.Said, ...], list[str]]:
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


KIND = importing.ImportKind(
    "dbt", "a project's target/manifest.json, or a file of properties such as schema.yml", read
)
