"""A contract becomes typed values and every fault of its form, each at its place, each once."""

from __future__ import annotations

import pytest

from dq.contracts import odcs
from dq.contracts.model import MAX_FINDINGS, Contract, Member, Team
from dq.contracts.yaml.parse import nodes, parse

MINIMAL = b"apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"


def test_a_minimal_contract_is_typed() -> None:
    parsed = parse(MINIMAL, "a.odcs.yaml")

    assert parsed.findings == []
    assert parsed.contract is not None
    assert (parsed.contract.id, parsed.contract.odcs, parsed.contract.file) == ("a", (3, 2, 0), "a.odcs.yaml")


def test_equal_values_are_equal_contracts_wherever_they_stand() -> None:
    moved = parse(b"\n\n# moved\n" + MINIMAL, "b").contract

    assert parse(MINIMAL, "a").contract == moved


# Text from line 6 on, then line, column, rule, path, message and hint of the finding.
FAULTS = {
    "an unknown key with a near one": (
        "nmae: x",
        (6, 1, "unknown-key", "nmae", "the contract has no key 'nmae'.", "Did you mean 'name'?"),
    ),
    "an unknown key with none near": (
        "qqq: x",
        (
            6, 1, "unknown-key", "qqq", "the contract has no key 'qqq'.",
            "Put your own keys under 'customProperties'.",
        ),
    ),
    "an unknown key where no custom properties are": (
        "price: {qqq: 1}",
        (
            6, 9, "unknown-key", "price.qqq", "price has no key 'qqq'.",
            "It takes id, priceAmount, priceCurrency, priceUnit.",
        ),
    ),
    "a key that reads like a tag of the model": (
        "~text: x",
        (
            6, 1, "unknown-key", "~text", "the contract has no key '~text'.",
            "Put your own keys under 'customProperties'.",
        ),
    ),
    "the name of a field of ours": (
        "schema: [{name: a, place: 1}]",
        (
            6, 20, "unknown-key", "schema[0].place", "schema[0] has no key 'place'.",
            "Put your own keys under 'customProperties'.",
        ),
    ),
    "a number for a text": (
        "name: 1.10",
        (
            6, 7, "wrong-type", "name", "name must be text, and YAML reads 1.10 as the number 1.1.",
            'Quote it: name: "1.10".',
        ),
    ),
    "a truth value for a text": (
        "name: no",
        (
            6, 7, "wrong-type", "name", "name must be text, and YAML reads no as false (a boolean).",
            'Quote it: name: "no".',
        ),
    ),
    "a text for a truth value": (
        'schema: [{name: a, deprecated: "yes"}]',
        (
            6, 32, "wrong-type", "schema[0].deprecated",
            "deprecated must be a boolean, not the string 'yes'.", "Write deprecated: true.",
        ),
    ),
    "a quoted number": (
        "price: {priceAmount: '1.5'}",
        (
            6, 22, "wrong-type", "price.priceAmount", "priceAmount must be a number, not the string '1.5'.",
            "Remove the quotes: priceAmount: 1.5.",
        ),
    ),
    "a number that is none": (
        "price: {priceAmount: .nan}",
        (
            6, 22, "wrong-type", "price.priceAmount",
            "priceAmount must be a finite number, not the number nan.", "Write priceAmount: 1.5.",
        ),
    ),
    "a mapping for a list": (
        "schema: {name: a}",
        (6, 9, "wrong-type", "schema", "schema must be a list, not a mapping.", "Write schema: […]."),
    ),
    "a text for a mapping": (
        "description: all",
        (
            6, 14, "wrong-type", "description", "description must be a mapping, not the text 'all'.",
            "Write description: {purpose: \"all\"}.",
        ),
    ),
    "nothing for a list": (
        "schema:",
        (
            6, 1, "wrong-type", "schema", "schema is empty.",
            "Give 'schema' a value, or remove it."
            " YAML treats unquoted text after '#' as a comment.",
        ),
    ),
    "an empty item": (
        "schema: [null]",
        (6, 10, "wrong-type", "schema[0]", "schema[0] is empty.", "Remove the empty item."),
    ),
    "an item of the wrong type": (
        "tags: [a, 1]",
        (
            6, 11, "wrong-type", "tags[1]", "tags[1] must be text, and YAML reads 1 as the number 1.",
            'Quote it: "1".',
        ),
    ),
    "a missing key": (
        "support: [{tool: slack}]",
        (6, 11, "missing-key", "support[0].channel", "support[0] needs 'channel'.", "Add 'channel: …'."),
    ),
    "a word that is near an allowed one": (
        "schema: [{name: a, properties: [{name: b, logicalType: strng}]}]",
        (
            6, 56, "unknown-value", "schema[0].properties[0].logicalType",
            "unknown logicalType 'strng'.", "Did you mean 'string'?",
        ),
    ),
    "neither a list nor a mapping": (
        "team: 1",
        (6, 7, "wrong-type", "team", "team must be a mapping, not the number 1.", "Write team: {…}."),
    ),
    "a fault inside of one of two forms": (
        "team: [{username: 1}]",
        (
            6, 19, "wrong-type", "team[0].username",
            "username must be text, and YAML reads 1 as the number 1.", 'Quote it: username: "1".',
        ),
    ),
    "an unknown server type": (
        "servers: [{server: a, type: hiev}]",
        (
            6, 29, "unknown-server-type", "servers[0].type", "ODCS has no server type 'hiev'.",
            "Write 'hive'.",
        ),
    ),
    "a key of another server type": (
        "servers: [{server: a, type: glue, account: b, database: c, databse: d}]",
        (
            6, 60, "unknown-key", "servers[0].databse", "a server of type 'glue' has no key 'databse'.",
            "Did you mean 'database'?",
        ),
    ),
    "a server that lacks a key of its type": (
        "servers: [{server: a, type: glue, account: b}]",
        (
            6, 11, "missing-key", "servers[0].database", "a server of type 'glue' needs 'database'.",
            "Add 'database: …'.",
        ),
    ),
    "a list for a key of a server": (
        "servers: [{server: a, type: s3, location: [b]}]",
        (
            6,
            43,
            "wrong-type",
            "servers[0].location",
            "location must be text, not a list.",
            "Write 'location: …'.",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_form_is_said_once_with_place_and_mend(read, text: str, expected: tuple) -> None:
    (found,) = read(text).findings

    assert (found.at.line, found.at.column, found.rule, found.path, found.message, found.hint) == expected


def test_all_faults_come_at_once_sorted_by_place(read) -> None:
    parsed = read(
        "tags: [1]\nnmae: x\nschema:\n  - nme: a\n    tags: a\n  - name: b\n    properties: [{required: 1}]\n"
    )

    assert [(one.at.line, one.rule) for one in parsed.findings] == [
        (6, "wrong-type"),
        (7, "unknown-key"),
        (9, "unknown-key"),
        (10, "wrong-type"),
        (12, "wrong-type"),
    ]


def test_what_does_not_fit_is_cut_and_the_rest_is_typed(read) -> None:
    parsed = read("schema:\n  - nme: a\n  - name: b\n    tags: [1, x]\n    physicalType: 3\n")

    assert [one.name for one in parsed.contract.objects] == ["b"]
    assert (parsed.contract.objects[0].tags, parsed.contract.objects[0].physical_type) == (["x"], None)
    assert parsed.contract.objects[0].path() == "schema[1]"
    assert parsed.cut == {
        "schema[0]", "schema[0].nme", "schema[0].name", "schema[1].tags[0]", "schema[1].physicalType",
    }  # fmt: skip


def test_a_contract_without_identity_is_read_all_the_same() -> None:
    parsed = parse(b"apiVersion: v3.2.0\nschema: [{name: a}]\n", "f")

    assert [one.path for one in parsed.findings] == ["kind", "id", "version"]
    assert parsed.contract is not None
    assert [one.name for one in parsed.contract.objects] == ["a"]


def test_a_misspelt_required_key_is_one_fault() -> None:
    parsed = parse(MINIMAL.replace(b"version: 1", b"vresion: 1"), "f")

    assert [(one.rule, one.path) for one in parsed.findings] == [("unknown-key", "vresion")]


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("", "apiVersion is missing.", "Write 'apiVersion: v3.2.0'."),
        ("apiVersion: 3.1.0\n", "apiVersion '3.1.0' is not one of", "Write 'apiVersion: v3.1.0'."),
        ("apiVersion: 3.1\n", "apiVersion 3.1 is not text.", "Write 'apiVersion: v3.2.0'."),
        ("apiVersion: v4.0.0\n", "apiVersion 'v4.0.0' is not one of", "Write 'apiVersion: v3.2.0'."),
    ],
)
def test_an_unknown_version_of_the_standard_is_one_fault(line: str, message: str, hint: str) -> None:
    parsed = parse(MINIMAL.replace(b"apiVersion: v3.2.0\n", line.encode()), "f")

    (found,) = parsed.findings
    assert found.rule == "unknown-api-version"
    assert found.message.startswith(message)
    assert found.hint == hint
    assert parsed.contract is not None


def test_a_misspelt_version_of_the_standard_is_one_fault() -> None:
    parsed = parse(MINIMAL.replace(b"apiVersion", b"apiVerison"), "f")

    assert [one.rule for one in parsed.findings] == ["unknown-key"]


@pytest.mark.parametrize(
    "text",
    [
        "dataContractSpecification: 0.9.3\nid: a\ninfo: {}\n",
        "apiVersion: v2.2.2\nkind: x\n",
        "apiVersion: 2.3.0\n",
    ],
)
def test_older_formats_are_one_fault(text: str) -> None:
    parsed = parse(text.encode(), "f")

    assert parsed.contract is None
    assert [one.rule for one in parsed.findings] == ["old-format"]


@pytest.mark.parametrize("api", odcs.SUPPORTED)
def test_every_supported_version_is_read(read, api: str) -> None:
    assert read("", api).findings == []


@pytest.mark.parametrize(
    ("text", "since", "column"),
    [
        ("schema: [{name: a, properties: [{name: b, enum: [{value: c}]}]}]", "v3.2.0", 43),
        ("schema: [{name: a, deprecated: true}]", "v3.2.0", 20),
        ("slaProperties: [{property: a, value: 1, schedule: x}]", "v3.1.0", 41),
        ("slaProperties: [{property: a, value: 1, customProperties: []}]", "v3.2.0", 41),
        ("customProperties: [{property: a, value: 1, vendor: dq}]", "v3.2.0", 44),
        ("schema: [{name: a, properties: [{name: b, logicalType: map}]}]", "v3.2.0", 43),
        ("schema: [{name: a, properties: [{name: b, logicalType: timestamp}]}]", "v3.1.0", 43),
        ("schema: [{name: a, quality: [{rule: rowCount, metric: rowCount}]}]", "v3.1.0", 47),
    ],
)
def test_what_arrives_later_names_its_version(read, text: str, since: str, column: int) -> None:
    before = "v3.1.0" if since == "v3.2.0" else "v3.0.2"

    (found,) = read(text, before).findings

    assert (found.rule, found.at.line, found.at.column) == ("later-version", 6, column)
    assert f"requires ODCS {since}; this contract uses {before}." in found.message
    assert read(text, since).findings == []


@pytest.mark.parametrize("kind", odcs.SERVER_TYPES)
def test_a_server_of_each_type_takes_its_keys(read, kind: str) -> None:
    row = odcs.SERVER_TYPES[kind]
    keys = ", ".join(f"{key}: x" for key in (*row.required, *row.optional))

    assert read(f"servers: [{{server: a, type: {kind}, {keys}}}]").findings == []


def test_the_team_has_two_forms(read) -> None:
    as_list = read("team: [{username: a}]").contract
    as_object = read("team: {name: t, members: [{username: a}]}").contract

    assert isinstance(as_object.team, Team)
    assert [member.username for member in as_list.members()] == ["a"]
    assert all(isinstance(member, Member) for member in as_object.members())


def test_places_of_values_follow_the_file(read) -> None:
    one = read(
        "schema:\n  - name: a\n    properties:\n      - name: b\n        tags: [x, y]\n"
    ).contract.objects[0]

    prop = one.properties[0]
    assert (str(prop.locate()), str(prop.locate("name"))) == ("orders.odcs.yaml:9:9", "orders.odcs.yaml:9:15")
    assert str(prop.locate("tags", 1)) == "orders.odcs.yaml:10:19"
    assert (prop.path("tags"), prop.has("tags"), prop.has("physicalType")) == (
        "schema[0].properties[0].tags", True, False,
    )  # fmt: skip


def test_every_node_is_visited_once(read) -> None:
    contract = read(
        "schema: [{name: a, properties: [{name: b}, {name: c, items: {}}]}]\nsupport: [{channel: d}]"
    ).contract

    kinds = sorted(type(node).__name__ for node in nodes(contract))

    assert kinds == ["Contract", "Property", "Property", "Property", "SchemaObject", "SupportChannel"]


def test_faults_without_end_are_listed_up_to_a_limit(read) -> None:
    parsed = read("tags: [" + ", ".join(["1"] * (MAX_FINDINGS + 500)) + "]")

    assert len(parsed.findings) == MAX_FINDINGS
    assert parsed.findings[-1].message.endswith("More errors are not listed.")
    assert parsed.contract.tags == []


def test_a_shared_alias_is_reported_once(read) -> None:
    parsed = read("support: [&a {channel: x, nme: y}, *a, *a]")

    assert [(one.rule, one.path) for one in parsed.findings] == [("unknown-key", "support[0].nme")]
    assert len(parsed.contract.support) == 3


def test_contracts_are_frozen() -> None:
    contract = parse(MINIMAL, "f").contract
    assert isinstance(contract, Contract)

    with pytest.raises(ValueError, match="frozen"):
        contract.id = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "key", "kept"),
    [
        ("contractCreatedTs: 2022-11-15T02:59:43+00:00", "contract_created_ts", "2022-11-15T02:59:43+00:00"),
        ("tenant: 2022-1-5", "tenant", "2022-1-5"),
        ("name: 2022-11-15", "name", "2022-11-15"),
        ("tags: [2022-11-15]", "tags", ["2022-11-15"]),
    ],
)
def test_a_date_without_quotes_is_kept_as_text_where_odcs_has_text(
    read, text: str, key: str, kept: object
) -> None:
    parsed = read(text)

    assert parsed.findings == []
    assert parsed.contract is not None
    assert getattr(parsed.contract, key) == kept
