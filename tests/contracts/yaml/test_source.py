"""Bytes become plain values with places, at bounded cost, or one finding that says why not."""

from __future__ import annotations

import datetime as dt

import pytest
import yaml

from dq.contracts.access.files import MAX_BYTES
from dq.contracts.model import MAX_DEPTH, SOURCE_MAP_KEY, SourceMap, strip_source_maps
from dq.contracts.outcome import Location
from dq.contracts.yaml.builder import MAX_EXPANSION
from dq.contracts.yaml.source import read


def _values(text: str) -> object:
    top, findings = read(text.encode(), "f")
    assert [one for one in findings if one.rule != "ambiguous-number"] == []
    return strip_source_maps(top)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\nb: [x, {c: true}]\n", id="mappings and lists"),
        pytest.param("a: 1.10\nb: 010\nc: 0x1f\nd: 1_000\ne: 12:30:00\nf: 1e3\ng: 1.5e+3", id="numbers"),
        pytest.param("a: yes\nb: No\nc: on\nd: OFF\ne: true\nf: y", id="truth values"),
        pytest.param("a: ~\nb: null\nc:\nd: Null", id="nothing"),
        pytest.param("a: 2026-01-31\nb: 2026-01-31T10:00:00+02:00\nc: 2026-01-31 10:00:00.5", id="dates"),
        pytest.param("a: 'yes'\nb: \"1\"\nc: |\n  x\n  y\nd: >-\n  x\n  y\n", id="quoted and block text"),
        pytest.param("a: &x {b: [1]}\nc: *x\nd: [*x]", id="aliases"),
        pytest.param("x: &x {a: 1, b: 2}\nc: {<<: *x, b: 3}", id="a merge"),
        pytest.param("x: &x {a: 1}\ny: &y {a: 2, b: 2}\nc: {<<: [*x, *y]}", id="a merge of a list"),
        pytest.param("'<<': {a: 1}", id="a quoted merge key is a key"),
        pytest.param("b: !!str 1\nc: !!int '2'\nd: ! 3", id="tags of plain data"),
        pytest.param("%YAML 1.1\n---\na: 1\n...\n", id="a directive and document marks"),
        pytest.param("'': 1\n\"a b\": 2\n'1': 3", id="odd keys"),
        pytest.param("a: ü\nb: 名\nc: 😀", id="beyond ASCII"),
        pytest.param("a: []\nb: {}\n", id="empty collections"),
    ],
)
def test_values_are_those_of_any_other_yaml_reader(text: str) -> None:
    assert _values(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("data", "rule", "line", "column", "message"),
    [
        pytest.param(b"", "not-a-contract", 1, 1, "the document is empty.", id="nothing"),
        pytest.param(b"# only\n", "not-a-contract", 1, 1, "the document is empty.", id="a comment"),
        pytest.param(b"- a\n", "not-a-contract", 1, 1, "the document is a list.", id="a list"),
        pytest.param(b"a\n", "not-a-contract", 1, 1, "the document is a single value.", id="a scalar"),
        pytest.param(b"a: \xff", "not-utf8", 1, 4, "byte 0xff is not UTF-8.", id="Latin-1"),
        pytest.param(b"a: b\nc: \xc3(", "not-utf8", 2, 4, "byte 0xc3 is not UTF-8.", id="a cut character"),
        pytest.param(b"\xff\xfea\0", "not-utf8", 1, 1, "the file is encoded as UTF-16.", id="UTF-16"),
        pytest.param(b"a: b\nc: \0", "not-utf8", 2, 4, "the file contains a NUL character.", id="NUL"),
        pytest.param(
            b'a: "b\\0"', "yaml-refused", 1, 4, "a string contains a NUL character.", id="NUL by an escape"
        ),
        pytest.param(
            b'a: b\n"\\0place": 1',
            "yaml-refused",
            2,
            1,
            "a string contains a NUL character.",
            id="NUL by an escape, in a key",
        ),
        pytest.param(
            b'a: !!str "\\x00<<"',
            "yaml-refused",
            1,
            4,
            "a string contains a NUL character.",
            id="NUL under a tag",
        ),
        pytest.param(
            b"#" * (MAX_BYTES + 1),
            "file-too-large",
            1,
            1,
            "the file has 5,000,001 bytes, more than 5,000,000.",
            id="too large",
        ),
        pytest.param(
            b"a: 1\n---\nb: 2",
            "yaml-refused",
            2,
            1,
            "the file contains several documents.",
            id="two documents",
        ),
        pytest.param(
            b"a: " + b"[" * MAX_DEPTH,
            "yaml-refused",
            1,
            3 + MAX_DEPTH,
            "values are nested deeper than 64.",
            id="too deep",
        ),
        pytest.param(
            b"a: &a [*a]", "yaml-refused", 1, 8, "alias '*a' contains itself.", id="an alias inside of itself"
        ),
        pytest.param(
            b"a: *b",
            "yaml-refused",
            1,
            4,
            "alias '*b' has no anchor '&b' before it.",
            id="an alias of nothing",
        ),
        pytest.param(
            b"<<: 1", "yaml-refused", 1, 5, "'<<' merges something that is not a mapping.", id="merge"
        ),
        pytest.param(
            b"a: !!python/object:os.system x",
            "yaml-refused",
            1,
            4,
            "tag '!!python/object:os.system' is not allowed.",
            id="a tag that runs code",
        ),
        pytest.param(
            b"a: !x {b: 1}", "yaml-refused", 1, 4, "tag '!x' is not allowed.", id="a tag of a mapping"
        ),
        pytest.param(
            b"a: !!binary eA==", "yaml-refused", 1, 4, "tag '!!binary' is not allowed.", id="binary"
        ),
        pytest.param(
            b"on: 1",
            "yaml-refused",
            1,
            1,
            "the key 'on' is read as true (a boolean), not as text.",
            id="a key that YAML reads as true",
        ),
        pytest.param(
            b"2026-01-31: 1",
            "yaml-refused",
            1,
            1,
            "the key '2026-01-31' is read as a date, not as text.",
            id="a key that is a date",
        ),
        pytest.param(b"? [a]\n: 1", "yaml-refused", 1, 3, "a key is not text.", id="a list for a key"),
        pytest.param(b"a: &x 1\n*x : 2", "yaml-refused", 2, 1, "a key is an alias.", id="an alias for a key"),
        pytest.param(
            b"a: 2026-02-30",
            "yaml-refused",
            1,
            4,
            "'2026-02-30' looks like a date, but is not valid.",
            id="a day that does not exist",
        ),
        pytest.param(
            b"a: " + b"9" * 1001,
            "yaml-refused",
            1,
            4,
            "a value that looks like a whole number has 1001 characters.",
            id="a number of a thousand digits",
        ),
        pytest.param(
            b"a:\n\tb: 1",
            "yaml-syntax",
            2,
            1,
            "this is not YAML: a tab is used where YAML requires spaces.",
            id="tab",
        ),
        pytest.param(
            b"a: b: c",
            "yaml-syntax",
            1,
            5,
            "this is not YAML: mapping values are not allowed in this context.",
            id="a colon in a text",
        ),
        pytest.param(
            b"a: \x07",
            "yaml-syntax",
            1,
            1,
            "this is not YAML: control characters are not allowed.",
            id="a bell",
        ),
        pytest.param(
            b"a: 'x",
            "yaml-syntax",
            1,
            6,
            "this is not YAML: found unexpected end of stream.",
            id="an open quote",
        ),
    ],
)
def test_what_cannot_be_read_is_one_finding(
    data: bytes, rule: str, line: int, column: int, message: str
) -> None:
    top, findings = read(data, "f")

    assert top is None
    assert [(one.rule, one.at, one.message) for one in findings] == [
        (rule, Location("f", line, column), message)
    ]
    assert findings[0].hint


def test_a_byte_order_mark_moves_nothing() -> None:
    top, _ = read(b"\xef\xbb\xbfa: 1\n", "f")

    assert top is not None
    assert (strip_source_maps(top), top[SOURCE_MAP_KEY].keys) == ({"a": 1}, {"a": (1, 1)})


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_every_line_ending_counts_lines_alike(ending: str) -> None:
    top, _ = read(f"a: 1{ending}b:{ending}  - c: x{ending}".encode(), "f")

    assert top is not None
    assert top["b"][0][SOURCE_MAP_KEY].values == {"c": (3, 8)}


def test_the_last_of_twins_wins_and_each_one_is_said() -> None:
    top, findings = read(b"a: 1\nb: {c: 1, c: 2}\na: 3\na: 4\n", "f")

    assert strip_source_maps(top) == {"a": 4, "b": {"c": 2}}
    assert [(one.at.line, one.at.column, one.path, one.message) for one in findings] == [
        (2, 11, "b.c", "duplicate key 'c' (first in line 2)."),
        (3, 1, "a", "duplicate key 'a' (first in line 1)."),
        (4, 1, "a", "duplicate key 'a' (first in line 3)."),
    ]


def test_twins_without_end_are_refused() -> None:
    top, findings = read(b"a: 1\n" * 1_002, "f")

    assert top is None
    assert [(one.rule, one.at.line) for one in findings] == [("yaml-refused", 1_002)]


def test_a_place_knows_keys_values_items_and_what_was_written() -> None:
    top, _ = read(b"a: 1.10\nb:\n  - x\n  - {c: yes}\n", "f")

    assert top is not None
    place: SourceMap = top[SOURCE_MAP_KEY]
    inner: SourceMap = top["b"][1][SOURCE_MAP_KEY]
    assert (place.path, place.position, place.keys) == ("", (1, 1), {"a": (1, 1), "b": (2, 1)})
    assert (place.values, place.items) == ({"a": (1, 4), "b": (3, 3)}, {"b": [(3, 5), (4, 5)]})
    assert place.raw == {"a": "1.10"}
    assert (inner.path, inner.position, inner.raw) == ("b[1]", (4, 5), {"c": "yes"})


def test_a_place_that_is_not_there_is_the_mapping_itself() -> None:
    top, _ = read(b"a:\n  b: [1]\n", "f")

    assert top is not None
    place: SourceMap = top["a"][SOURCE_MAP_KEY]
    assert place.locate("nothing") == place.locate() == Location("f", 2, 3)
    assert (place.locate("b", 0), place.locate("b", 7)) == (Location("f", 2, 7), Location("f", 2, 6))
    assert (place.locate_key("b"), place.child_path("b")) == (Location("f", 2, 3), "a.b")


def test_merged_keys_stand_where_they_were_written() -> None:
    top, _ = read(b"x: &x\n  v: 1.10\n  l: [1]\ny:\n  <<: *x\n  w: 2\n", "f")

    assert top is not None
    place: SourceMap = top["y"][SOURCE_MAP_KEY]
    assert place.keys == {"w": (6, 3), "v": (2, 3), "l": (3, 3)}
    assert (place.raw, place.items) == ({"w": "2", "v": "1.10"}, {"l": [(3, 7)]})


def test_depth_up_to_the_limit_is_read() -> None:
    assert _values("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)) is not None


def test_aliases_may_expand_up_to_the_limit() -> None:
    lines = "x: &x 1\ny: [" + ", ".join(["*x"] * MAX_EXPANSION)

    _, fine = read((lines + "]").encode(), "f")
    _, refused = read((lines + ", *x]").encode(), "f")

    assert fine == []
    assert [one.message for one in refused] == ["aliases expand to more than 10,000 values."]


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 30)]

    top, (refused,) = read("\n".join(lines).encode(), "f")

    assert top is None
    assert (refused.rule, refused.at.line) == ("yaml-refused", 5)


def test_more_keys_and_values_than_a_contract_can_have_are_refused() -> None:
    top, (refused,) = read("".join(f"k{number}: v\n" for number in range(100_001)).encode(), "f")

    assert top is None
    assert refused.message == "the file has more than 100,000 keys and values."


def test_places_are_left_out_of_plain_values() -> None:
    top, _ = read(b"a: [{b: 2026-01-31}]", "f")

    assert strip_source_maps(top) == {"a": [{"b": dt.date(2026, 1, 31)}]}


@pytest.mark.parametrize("end", ["---\n", "...\n---\n# the end\n", "---\n---\n"])
def test_t66_a_separator_at_the_end_begins_no_other_document(end: str) -> None:
    document, findings = read(f"a: 1\n{end}".encode(), "a.yaml")

    assert (strip_source_maps(document), findings) == ({"a": 1}, [])


@pytest.mark.parametrize("more", ["~", "{}", '""', "&a", "!!str"])
def test_what_stands_below_a_separator_is_another_document(more: str) -> None:
    _, findings = read(f"a: 1\n---\n{more}\n".encode(), "a.yaml")

    assert [finding.message for finding in findings] == ["the file contains several documents."]
