"""`dq export pandera`: a module that says of frames of Spark what the contract says of their schema."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

import pytest

from dq.contracts.yaml.portable import quoted

# Type, and another one that a frame may have instead.
TYPES = {
    "text": ("string", "int"),
    "three": ("char(3)", "int"),
    "some": ("varchar(20)", "boolean"),
    "tiny": ("tinyint", "smallint"),
    "small": ("smallint", "int"),
    "whole": ("int", "bigint"),
    "big": ("bigint", "int"),
    "single": ("float", "double"),
    "twice": ("double", "float"),
    "money": ("decimal(9,2)", "decimal(9,3)"),
    "day": ("date", "timestamp"),
    "at": ("timestamp", "timestamp_ntz"),
    "local": ("timestamp_ntz", "timestamp"),
    "flag": ("boolean", "string"),
    "raw": ("binary", "string"),
    "lists": ("array<array<string>>", "array<string>"),
    "named": ("map<int,date>", "map<string,date>"),
    "inside": ("struct<a:int,b:array<struct<c:decimal(5,1),d:char(2)>>>", "struct<a:bigint>"),
}
LOGICAL = {
    "char": "string", "varchar": "string", "binary": "string", "tinyint": "integer", "smallint": "integer",
    "int": "integer", "bigint": "integer", "float": "number", "double": "number", "decimal": "number",
    "timestamp_ntz": "timestamp", "struct": "object",
}  # fmt: skip
HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: all\nversion: 1.0.0\nstatus: active\n"


def written(folder, *extra):
    columns = "".join(
        f"      - {{name: {name}, physicalType: '{kind}',"
        f" logicalType: {LOGICAL.get(word := kind.partition('<')[0].partition('(')[0], word)}}}\n"
        for name, (kind, _) in TYPES.items()
    )
    (folder / "all.odcs.yaml").write_text(
        f"{HEAD}schema:\n  - name: all of it\n    properties:\n{columns}"
        "      - {name: id, logicalType: integer, physicalType: int, required: true, primaryKey: true}\n"
        '      - {name: state, logicalType: string, enum: [{value: paid}, {value: "it\'s"}]}\n'
        + "".join(extra)
    )


def module(text: str) -> Any:
    made = ModuleType("exported")
    exec(compile(text, "exported.py", "exec"), made.__dict__)
    return made


def faults(schema: Any, frame: Any) -> set[tuple[str, str]]:
    """What pandera finds: the kind of each error, and the check or the column that it names."""
    found = schema.validate(frame).pandera.errors
    return {
        (kind, each["check"] if kind == "DATAFRAME_CHECK" else each["column"] or "")
        for group in found.values()
        for kind, errors in group.items()
        for each in errors
    }


@pytest.mark.spark
def test_the_schema_takes_frames_of_the_contract_and_no_others(dq, folder, spark):
    written(folder)
    ran = dq("export", "pandera", "all.odcs.yaml", "-o", "schemas.py")
    assert ran.code == 0, ran.err
    schema = module((folder / "schemas.py").read_text()).SCHEMAS["all of it"]
    right = ", ".join(f"cast(null as {kind}) as {name}" for name, (kind, _) in TYPES.items())
    wrong = ", ".join(f"cast(null as {kind}) as {name}" for name, (_, kind) in TYPES.items())

    rows = "values (1, 'paid'), (2, null), (3, \"it's\") as t(id, state)"
    others = "values (1, 'lost'), (1, null), (null, null) as t(id, state)"

    good = faults(schema, spark.sql(f"select {right}, id, state from {rows}"))  # noqa: S608  # ours
    bad = faults(schema, spark.sql(f"select {wrong}, id, state from {others}").drop("flag"))  # noqa: S608  # ours

    assert good == set()
    checked = {"lists", "named", "inside", "at", "local"}
    assert {name for kind, name in bad if kind == "WRONG_DATATYPE"} == set(TYPES) - checked - {"flag"}
    assert {name for kind, name in bad if kind == "DATAFRAME_CHECK"} == {
        "isin(['paid', \"it's\"])",
        *(f"{name!r} is not a {TYPES[name][0].replace('char(2)', 'string')}" for name in checked),
    }
    kinds = [
        "COLUMN_NOT_IN_DATAFRAME",
        "DATAFRAME_CHECK",
        "DUPLICATES",
        "SERIES_CONTAINS_NULLS",
        "WRONG_DATATYPE",
    ]
    assert sorted({kind for kind, _ in bad}) == kinds
    told = {line.partition(":")[0] for line in ran.err.splitlines()}
    assert told == {"all of it.three", "all of it.some", "all of it.inside"}
    assert all(f"# {line}" in (folder / "schemas.py").read_text() for line in ran.err.splitlines())


HOSTILE = (
    '"""', "'''", "\\", '\\"""\nimport os\nos.system("touch harm")\n"""',
    "'); __import__('os').system('x') #",
    "coding: utf-7", "+AGkAbQBwAG8AcgB0-", "\u202e\u2028\x85", "{x}", "${HOME}",
    "a\nb", "a.b", "`", "\U0001f600",
)  # fmt: skip


def test_no_text_of_a_contract_becomes_code(dq, folder):
    texts = [quoted(text) for text in HOSTILE]
    columns = "".join(
        f"      - {{name: {text}, physicalType: string, description: {text}, businessName: {text},"
        f" required: true, enum: [{{value: {text}}}]}}\n"
        for text in texts
    )
    (folder / "evil.odcs.yaml").write_text(
        HEAD.replace("id: all", f"id: {texts[5]}")
        + "schema:\n"
        + "".join(f"  - name: {text}\n    description: {text}\n    properties:\n{columns}" for text in texts)
    )

    ran = dq("export", "pandera", "evil.odcs.yaml", "-o", "schemas.py")

    assert ran.code == 0, ran.err
    data = (folder / "schemas.py").read_bytes()
    tree = ast.parse(data)
    # As bytes and as text it is the same program: no comment names an encoding.
    assert ast.dump(tree) == ast.dump(ast.parse(data.decode()))
    [made] = [node for node in tree.body if isinstance(node, ast.Assign)]
    names = {node.id for node in ast.walk(made) if isinstance(node, ast.Name)}
    assert names == {"SCHEMAS", "pa", "T"}
    assert {type(node) for node in tree.body} == {
        ast.Expr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign,
    }  # fmt: skip
    assert isinstance(made.value, ast.Dict)
    assert [ast.literal_eval(key) for key in made.value.keys] == list(HOSTILE)
    for one in made.value.values:
        said = {word.arg: word.value for word in one.keywords}
        assert [ast.literal_eval(key) for key in said["columns"].keys] == list(HOSTILE)
        assert {ast.literal_eval(said["name"]), ast.literal_eval(said["description"])} <= set(HOSTILE)
    assert "a.b: required is left out" in ran.err
