"""One contract's fault is its own: whatever is wrong with one, the next is judged, told of and registered."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.command import BEGIN, MISSED, Place, Ran, contract, replaced

BAD = "aaa.odcs.yaml"  # before the good one, so that a loop that ends at it never reaches the good one
SERVER = "  - {server: lake, type: local, path: lake/bad, format: parquet}\n"
POSTGRES = "  - {server: pg, type: postgres, host: h, port: 1, database: d, schema: s}\n"
TERMS = 'value: {grace: 30m, partition: {day: "{due - 1d:%F}"}, objective: 90%}'
ID_COLUMN = "{name: id, logicalType: integer, physicalType: bigint}"
DAY_COLUMN = "{name: day, logicalType: date, physicalType: date,"
ROUTE = '"#bad", tool: slack, scope: notifications'
ENTRY = contract("bad")[contract("bad").index("  - id: daily") :]


def server(text: str) -> dict[str, str]:
    return {SERVER: text}


def many(count: int) -> str:
    return "[" + ", ".join(f'"{number}"' for number in range(count)) + "]"


# What stands in the bad contract instead, and the commands whose finding that is. Where a place is given, the
# finding stands there: a line of the file.
CASES: dict[str, tuple[dict[str, str], str, int]] = {
    "several servers": (server(SERVER + SERVER.replace("lake,", "two,")), "watch register check", 7),
    "no server": ({"servers:\n" + SERVER: ""}, "watch register check", 1),
    "a database": (server(POSTGRES), "watch register check", 7),
    "a variable that is not set": (
        server(SERVER.replace("lake/bad", '"${DQ_TEST_NOT_SET}/bad"')),
        "watch register check",
        7,
    ),
    "a placeholder that nobody knows": (
        server(SERVER.replace("lake/bad", '"lake/{what}"')),
        "watch register check",
        7,
    ),
    "a catalog without a location": (
        server("  - {server: hive, type: hive, host: h, database: d}\n"),
        "watch",
        7,
    ),
    "a host that is none": (
        server('  - {server: s, type: s3, location: "s3://[bad/x", format: parquet}\n'),
        "watch register check",
        7,
    ),
    "a format that nobody reads": (server(SERVER.replace("parquet", "xml")), "check", 11),
    "a text with NUL": (server(SERVER.replace("lake/bad", '"la\\0ke"')), "watch status register check", 7),
    "a key with NUL": ({"status: active": '"\\0place": 3'}, "watch status register check", 5),
    "two promises of one id": ({ENTRY: ENTRY * 2}, "watch status", 26),
    "two promises without an id": (
        {ENTRY: (ENTRY * 2).replace("- id: daily\n    property", "- property")},
        "watch status",
        25,
    ),
    "no objective": ({"90%": "0%"}, "watch status", 25),
    "a schedule that never comes": ({"0 6 * * *": "0 0 30 2 *"}, "watch status", 21),
    "a zone that is none": ({"grace: 30m": "grace: 30m, timezone: Mars/Base"}, "watch status", 25),
    "a template that leads to no year": ({"due - 1d": "due - 400y - 400y"}, "watch status", 25),
    "ninety thousand partitions for each delivery": (
        {TERMS: f"value: {{partition: {{day: {many(300)}, id: {many(300)}}}}}"},
        "watch status",
        25,
    ),
    "an element that is not there": ({"element: bad": "element: worse"}, "watch status", 20),
    "a route to no known severity": (
        {
            ROUTE: '"alerts/bad.jsonl", tool: file, customProperties: '
            "[{property: route, vendor: dq, value: {severities: [loud]}}]"
        },
        "watch status",
        9,
    ),
    "a route that is no mapping": (
        {ROUTE: '"#bad", tool: slack, customProperties: [{property: route, vendor: dq, value: 3}]'},
        "watch status",
        9,
    ),
    "a partition key with parts": (
        {DAY_COLUMN: "{name: day, logicalType: object, properties: [{name: a, logicalType: string}],"},
        "register",
        13,
    ),
    "nothing but partition keys": ({f"      - {ID_COLUMN}\n": ""}, "register", 11),
    "a column beyond ASCII": ({"{name: id,": "{name: größe,"}, "register", 14),
    "a column twice": ({ID_COLUMN: ID_COLUMN + "\n      - {name: ID, logicalType: string}"}, "register", 15),
    "a table whose name no catalog takes": (
        {"name: bad\n    prop": 'name: bad\n    physicalName: "a b/../c"\n    prop'},
        "register",
        11,
    ),
    "two objects of one table": (
        {"slaProperties:": "  - {name: b, physicalName: bad, properties: [{name: x}]}\nslaProperties:"},
        "register",
        15,
    ),
}  # fmt: skip
# Files that hold no contract at all.
FILES: dict[str, bytes] = {
    "broken YAML": b"apiVersion: v3.2.0\nkind: [",
    "an empty file": b"",
    "another encoding": contract("b\xe9d").encode("latin-1"),
    "six megabytes": b"#" + b"x" * 6_000_000,
    "aliases that explode": b"a: &a [1, 1]\n" + b"".join(b"b%d: [*a, *a]\n" % n for n in range(9_000)),
    "depth": b"a: " + b"[" * 500 + b"]" * 500,
    "another kind of file": b"version: 2\nmodels:\n  - name: orders\n",
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("DQ_STORE_URL", "DQ_CONFIG", "SLACK_BOT_TOKEN", "DQ_TEST_NOT_SET"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "dq-policy.yaml").write_text("")
    made = Place(tmp_path)
    made.put("good.odcs.yaml", contract("good"))
    return made


def all_of(place: Place) -> dict[str, Ran]:
    """Every command that goes over many contracts, with a missing delivery of the good one in between."""
    watch = ("watch", "--channel", "file:told.jsonl", "--as-of")
    begun = place.dq(*watch, BEGIN)
    assert begun.code in (0, 3), begun.err
    return {
        "watch": place.dq(*watch, MISSED),
        "status": place.dq("status", "--as-of", MISSED, "--format", "json"),
        "register": place.dq("register", "--apply", "--format", "json"),
        "check": place.dq("check", "--as-of", MISSED, "--channel", "console"),
    }


def assert_the_good_one_went_on(place: Place, ran: dict[str, Ran]) -> None:
    told = (place.folder / "told.jsonl").read_text()
    assert told.count("good is missing: day=2026-05-10") == 1
    standings = {one["contract"]: one for one in ran["status"].json["deliveries"]}
    assert [cycle["status"] for cycle in standings["good"]["cycles"]] == ["missing"]
    actions = {one["table"]: one for one in ran["register"].json["actions"]}
    assert actions["good.good"]["outcome"] == "done"


@pytest.mark.parametrize("name", CASES)
def test_a_contract_that_cannot_be_used_is_its_own_finding_with_its_line(place: Place, name: str) -> None:
    changes, whose, line = CASES[name]
    place.put(BAD, replaced(contract("bad"), changes))

    ran = all_of(place)

    assert_the_good_one_went_on(place, ran)
    assert "Traceback" not in "".join(one.err for one in ran.values())
    refusing = {command for command, one in ran.items() if f"{BAD}:{line}:" in one.err}
    assert refusing == set(whose.split())
    assert {command: one.code for command, one in ran.items()} == {
        "watch": 3 if "watch" in refusing else 1,
        "status": 3 if "status" in refusing else 0,
        "register": 3 if "register" in refusing else 0,
        "check": 3 if "check" in refusing else ran["check"].code,
    }
    assert ran["check"].code in (0, 3)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_contract_is_its_own_finding(place: Place, name: str) -> None:
    (place.folder / BAD).write_bytes(FILES[name])

    ran = all_of(place)

    assert_the_good_one_went_on(place, ran)
    assert {command: one.code for command, one in ran.items()} == dict.fromkeys(ran, 3)
    assert all(f"{BAD}:" in one.err for one in ran.values())


def test_what_is_left_out_stands_in_the_json_too(place: Place) -> None:
    place.put(BAD, contract("bad", **server(POSTGRES)))

    for command in (("watch", "--as-of", BEGIN), ("register",)):
        (found,) = place.dq(*command, "--format", "json").json["findings"]
        assert (found["rule"], found["contract"]) == ("contract-refused", "bad")
        assert (found["file"], found["line"]) == (BAD, 7)
        assert found["message"] == "server 'pg' has type 'postgres', which dq cannot read."
        assert found["hint"].startswith("Choose a server of type local, s3")


def test_a_server_that_only_some_contracts_have_leaves_out_the_others(place: Place) -> None:
    place.put(BAD, contract("bad", **server(SERVER + SERVER.replace("lake,", "two,"))))

    found = place.dq("register", "--apply", "--server", "two", "--format", "json")

    assert found.code == 3
    assert [one["table"] for one in found.json["actions"]] == ["bad.bad"]
    assert "good.odcs.yaml:7:" in found.err


# Places that can be named and not looked at: the probe says so, and the next cycle is judged.
PLACES = {
    "a scheme that nobody reads": '  - {server: s, type: custom, location: "foo://x/y", format: parquet}\n',
    "a path longer than any": SERVER.replace("lake/bad", "x" * 4_000),
    "a log that nobody understands": SERVER.replace("parquet", "iceberg").replace("lake/bad", "lake/odd"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_cannot_be_looked_at_is_unknown_and_ends_no_tick(place: Place, name: str) -> None:
    place.put(BAD, contract("bad", **server(PLACES[name])))
    place.put("lake/odd/metadata/v1.metadata.json", "{")

    ran = all_of(place)

    assert_the_good_one_went_on(place, ran)
    assert ran["watch"].code == 3
    assert "bad" in ran["watch"].err


@pytest.mark.parametrize("broken", ["aaa.odcs.yaml", "zzz.odcs.yaml"])
def test_another_contract_that_wants_the_same_table_does_not_stop_its_owner(
    place: Place, broken: str
) -> None:
    place.dq("register", "--apply")
    wider = {ID_COLUMN: ID_COLUMN + "\n      - {name: more, logicalType: string}"}
    place.put("good.odcs.yaml", contract("good", version="1.1.0", **wider))
    mine = {
        "- name: bad\n": "- name: bad\n    physicalName: good\n",
        "status: active": "status: active\ndomain: good",
    }
    place.put(broken, contract("bad", **mine))

    found = place.dq("register", "--apply", "--format", "json")

    endings = [(one["table"], one["kind"], one["outcome"]) for one in found.json["actions"]]
    assert sorted(endings) == [("good.good", "conflict", "refused"), ("good.good", "update", "done")]
    assert found.code == 3
