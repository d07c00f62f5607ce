"""import(export(c)) is c, but for what the form cannot say; and each thing that it cannot is told."""

from __future__ import annotations

import json
import re

import fastavro
import pytest
import sqlglot
import yaml
from fakes.schemas import document, facts
from jsonschema import Draft202012Validator

from dq.contracts.yaml.parse import read

# Form -> how its file is called and imported, and what of a schema it cannot say: that is policy.
FORMS = {
    "sql": ("t.sql", ""),
    "jsonschema": ("t.json", ""),
    "avro": ("t.avsc", ""),
    "dbt": ("t.yml", "@spark"),
}
# Readers that are not ours take each of them.
READERS = {
    "sql": lambda text: sqlglot.parse(text, dialect="spark"),
    "jsonschema": lambda text: Draft202012Validator.check_schema(json.loads(text)),
    "avro": lambda text: fastavro.parse_schema(json.loads(text)),
    "dbt": yaml.safe_load,
}
TYPES = {
    "sql": set(),
    "jsonschema": {
        "tinyint", "smallint", "int", "float", "decimal", "timestamp_ntz", "char", "varchar", "binary",
    },
    "avro": {"tinyint", "smallint", "char", "varchar"},
    "dbt": set(),
}  # fmt: skip
KEYS = {
    "sql": {"unique", "enum", "primaryKey", "businessName", "classification", "name", "logicalType",
            "logicalTypeOptions", "description of a part", "required of a part"},
    "jsonschema": {"unique", "logicalTypeOptions", "primaryKey", "businessName", "classification", "name",
                   "logicalType", "partitioned", "description of a key", "required of a part"},
    "avro": {"unique", "enum", "primaryKey", "businessName", "classification", "name", "logicalType",
             "logicalTypeOptions", "partitioned", "description of a part", "required of a key"},
    "dbt": {"primaryKey", "businessName", "classification", "name", "logicalType", "partitioned",
            "logicalTypeOptions", "description inside", "required inside"},
}  # fmt: skip
LIMITS = {"minimum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength", "format", "minItems"}
# A test of dbt for the key makes a column required, and unique.
GAINED = {"dbt": {"unique", "required"}}
_LEFT = re.compile(r"t: (?P<key>\w+) of (?P<paths>.+) is left out")
_WRITTEN = re.compile(r"(?P<where>\S+): (?P<what>.+) (is|are) written as (?P<instead>.+)")


def told(lines, columns):
    """The (path, key) pairs that a person reads of."""
    found = set()
    for line in lines:
        left, written = _LEFT.fullmatch(line.rstrip(".")), _WRITTEN.fullmatch(line.rstrip("."))
        if left:
            key = "logicalTypeOptions" if left["key"] in LIMITS else left["key"]
            found |= {(path, key) for path in left["paths"].split(", ")}
            continue
        assert written, line
        keys = re.fullmatch(r"the (partition keys?|primary key) (.+)", written["what"])
        if keys:
            key = "primaryKey" if keys[1] == "primary key" else "partitioned"
            found |= {(column, key) for column in keys[2].split(", ")}
        elif written["where"] == "t" and written["what"] == "the primary key":
            found |= {(column, "primaryKey") for column in columns}
        elif written["what"].startswith("the description, in which Jinja"):
            found.add((re.sub(r"^t\.?", "", written["where"]), "description"))
        else:
            found.add((re.split(r"[.\[]", written["where"])[0], "type"))
    return found


def word(path, key):
    """A key by where it stands: at a column, inside one, at an item or value, at the key of a map."""
    if key in ("description", "required") and path.endswith("^"):
        return {f"{key} of a key", f"{key} of a part", f"{key} inside"}
    if key in ("description", "required") and path.endswith(("[]", "*")):
        return {f"{key} of a part", f"{key} inside"}
    return {f"{key} inside"} if key in ("description", "required") and "." in path else {key}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seeds", [range(12)], ids=["twelve"])
def test_what_comes_back_is_what_was_said_but_for_what_was_told(dq, folder, form, seeds):
    name, dialect = FORMS[form]
    lost_types, lost_keys = set(), set()
    for seed in seeds:
        source = folder / f"{seed}.odcs.yaml"
        source.write_text(document(seed))
        before = facts(read(source))

        ran = dq("export", form, source.name, "-o", f"{seed}{name}")
        assert ran.code == 0, ran.err
        READERS[form]((folder / f"{seed}{name}").read_text())
        back = dq("import", form, f"{seed}{name}{dialect}", "-o", f"{seed}again.odcs.yaml")
        assert back.code == 0, back.err
        after = facts(read(folder / f"{seed}again.odcs.yaml"))

        keys = {path for path, key in before if key == "primaryKey"}
        heard = told(ran.err.splitlines(), keys)
        gained = {(path, key) for path in keys for key in GAINED.get(form, ())}
        differs = {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)}
        assert differs - gained == heard - gained, (seed, ran.err)
        lost_types |= {re.split(r"[<(]", str(before[place]))[0] for place in heard if place[1] == "type"}
        lost_keys |= set().union(*(word(*place) for place in heard if place[1] != "type"))

    assert lost_types - {"array", "map", "struct"} == TYPES[form]
    assert KEYS[form] <= lost_keys


def test_records_with_one_path_have_two_names(dq, folder):
    field = "{name: x, logicalType: integer}"
    (folder / "t.odcs.yaml").write_text(
        "apiVersion: v3.2.0\nkind: DataContract\nid: t\nversion: 1.0.0\nstatus: draft\nschema:\n"
        "  - name: a_record\n    properties:\n"
        f"      - {{name: a_b, logicalType: object, properties: [{field}]}}\n"
        "      - {name: a, logicalType: object,"
        f" properties: [{{name: b, logicalType: object, properties: [{field}]}}]}}\n"
    )

    schema = fastavro.parse_schema(json.loads(dq("export", "avro", "t.odcs.yaml").out))

    assert [one["type"][1]["name"] for one in schema["fields"]] == ["a_b_record", "a_record1"]
