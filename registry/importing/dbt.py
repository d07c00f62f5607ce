"""Projects of dbt: relations, their tests, and the manifest or the files of properties that name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dq.contracts.shared.outcome import Unreadable, UsageError
from dq.lake.storage import exists
from dq.registry.importing.documents import Mapped, json_of, listed, mapped, shown, text, yaml_of

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
    """What the tests of one column say of it: keys of ODCS, and whether it may be NULL."""

    required: bool = False
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


def _not_null(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    if not test.column:
        return "which names no column"
    if _is_plain(test):
        made.required = True
    else:
        _rule(test, made, metric="nullValues")
    return None


def _unique(test: DbtTest, made: TestedColumn, _: Named) -> str | None:
    if not test.column:
        return "which names no column"
    if _is_plain(test):
        made.said["unique"] = True
    else:
        _rule(test, made, metric="duplicateValues")
    return None


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


_KNOWN: dict[str, Callable[[DbtTest, TestedColumn, Named], str | None]] = {
    "not_null": _not_null,
    "unique": _unique,
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
