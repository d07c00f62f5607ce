"""Drift of JSON and CSV: added and removed leaves and changed kinds, at any depth, and no others."""

from __future__ import annotations

import json
import os

from fakes.drift_pairs import pairs, shown


def test_drift_of_random_pairs_is_the_difference_of_their_leaves(dq, folder):
    wrong = []
    for number, pair in enumerate(pairs(seed=1, count=200)):
        file, contract = f"t{number}.{pair.kind}", f"t{number}.odcs.yaml"
        (folder / file).write_text(pair.before)
        assert dq("import", pair.kind, file, "-o", contract).code == 0, pair
        again = dq("import", pair.kind, file, "-o", contract)
        (folder / file).write_text(pair.after)
        ran = dq("import", pair.kind, file, "-o", contract)
        drift = {(sign, path.lower()) for sign, path in shown(ran.out.splitlines())}
        if again.code or drift != pair.expected or ran.code != bool(pair.expected):
            wrong.append((pair.before, pair.after, drift ^ pair.expected, again.out, ran.err))
    assert wrong == []


def contract(folder, name, properties, **server):
    terms = {"server": "lake", "type": "local", "path": "t", "format": "json", **server}
    document = {
        "apiVersion": "v3.2.0",
        "kind": "DataContract",
        "id": name,
        "version": "1.0.0",
        "status": "active",
        "servers": [terms],
        "schema": [{"name": name, "properties": properties}],
    }
    (folder / f"{name}.odcs.yaml").write_text(json.dumps(document))
    return f"{name}.odcs.yaml"


def drift(ran):
    return [line.strip() for line in ran.out.splitlines()[:-1]]


def test_what_a_contract_leaves_open_is_no_drift(dq, folder):
    properties = [
        {"name": "untyped"},
        {"name": "any", "physicalType": "variant"},
        {"name": "free", "logicalType": "object"},
        {"name": "list", "logicalType": "array"},
        {"name": "who", "logicalType": "object", "properties": [{"name": "tags", "logicalType": "array"}]},
        {"name": "vector", "logicalType": "vector"},
    ]
    file = contract(folder, "t", properties)
    row = {
        "untyped": 1,
        "any": [1],
        "free": {"a": 1},
        "list": [1],
        "who": {"tags": [{"a": 1}]},
        "vector": [1],
    }
    (folder / "t.json").write_text(json.dumps(row))
    ran = dq("import", "json", "t.json", "-o", file)
    assert (drift(ran), ran.code) == ([], 0)

    (folder / "t.json").write_text(json.dumps({**row, "free": [1], "list": {"a": 1}}))
    assert [line.partition(" (")[0] for line in drift(dq("import", "json", "t.json", "-o", file))] == [
        "~ t.free: string → array<bigint>",
        "~ t.list: array<string> → struct<a:bigint>",
    ]


def test_values_of_a_map_are_compared_as_those_of_all_its_keys(dq, folder):
    file = contract(folder, "t", [{"name": "m", "physicalType": "map<string,struct<a:int,b:int>>"}])
    (folder / "t.json").write_text('{"m": {"x": {"a": 1}, "y": {"b": 2}}}\n{"m": {}}\n')
    assert dq("import", "json", "t.json", "-o", file).code == 0

    (folder / "t.json").write_text('{"m": {"x": {"a": 1}, "y": {"A": 2, "c": true}}}\n')
    assert drift(dq("import", "json", "t.json", "-o", file)) == [
        "+ t.m.*.c: boolean (a guess from 1 value: all are true or false)",
        "- t.m.*.b: int (not in the 1 row of 1 file)",
    ]


def test_a_field_that_is_not_read_says_how_far_was_read(dq, folder):
    file = contract(
        folder, "t", [{"name": "a", "logicalType": "integer"}, {"name": "b", "logicalType": "date"}]
    )
    (folder / "t").mkdir()
    many = '{"a": 1}\n' * 10_000 + '{"a": 1, "b": "2026-05-01"}\n'
    for texts, note in (
        (['{"a": 1}\n'], "the 1 row of 1 file"),
        (['{"a": 1}\n{"a": 2}\n'] * 3, "the 6 rows of 3 files"),
        ([many], "the first 10,000 rows of 1 file"),
        ([many, ""], "the first 10,000 rows of each of 2 files"),
        (['{"a": 1}\n'] * 21, "the 20 rows of 20 of 21 files"),
    ):
        for number, text in enumerate(texts):
            (folder / f"t/{number:02}.json").write_text(text)
        assert drift(dq("import", "json", "t", "-o", file)) == [f"- t.b: date (not in {note})"]
        for number in range(len(texts)):
            (folder / f"t/{number:02}.json").unlink()
    (folder / "t/a.csv").write_text("a,c\n1,2\n")
    assert "- t.b: date (not in the header of 1 file)" in drift(dq("import", "csv", "t", "-o", file))


def test_a_word_for_null_in_the_contract_is_no_drift(dq, folder):
    terms = [{"property": "csv", "vendor": "dq", "value": {"nullText": "missing"}}]
    columns = [{"name": "a", "logicalType": "integer"}, {"name": "b", "logicalType": "integer"}]
    (folder / "t.csv").write_text("a,b\n1,missing\nmissing,2.5\n")
    plain = contract(folder, "plain", columns, format="csv")
    assert len(drift(dq("import", "csv", "t.csv", "-o", plain))) == 2

    file = contract(folder, "words", columns, format="csv", customProperties=terms)
    assert [line.partition(":")[0] for line in drift(dq("import", "csv", "t.csv", "-o", file))] == [
        "~ words.b"
    ]


def test_discover_shows_the_same_drift_also_from_its_cache(dq, folder):
    properties = [
        {"name": "a", "physicalType": "struct<x:int,y:int>"},
        {"name": "n", "logicalType": "integer"},
    ]
    contract(folder, "t", properties, path="lake/t", format="json")
    (folder / "lake/t").mkdir(parents=True)
    (folder / "lake/t/a.json").write_text('{"a": {"x": 1, "z": [{"w": "q"}]}, "n": null}\n')
    os.utime(folder / "lake/t/a.json", (1, 1))
    lines = drift(dq("import", "json", "lake/t", "-o", "t.odcs.yaml"))
    assert lines == [
        "+ t.a.z[].w: string (a guess from 1 value: they are texts)",
        "- t.a.y: int (not in the 1 row of 1 file)",
    ]
    for _ in range(2):
        [table] = dq("discover", "lake/t", "--format", "json").json["tables"]
        assert table["drift"] == lines
