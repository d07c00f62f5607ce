"""Keys and items that are added to a contract's text: where they stand, and that nothing else changes."""

from __future__ import annotations

import pytest

from dq.contracts.model import strip_source_maps
from dq.contracts.yaml import source
from dq.contracts.yaml.insertion import Addition, InsertionNotSupported, can_insert, insert

REQUIRED = Addition(("columns", 0), "required", True, "no NULL")
LEAST = Addition(("columns", 0, "options"), "minimum", 0, "smallest 12")
MOST = Addition(("columns", 0, "options"), "maximum", 900, "largest 881")
RULE = Addition(("columns", 0, "rules"), "", {"metric": "rowCount", "mustBe": 1}, "always")

# The text -> what is added -> what comes out.
CASES = {
    "a key": (
        "columns:\n  - name: id  # mine\nlast: 1\n",
        (REQUIRED,),
        "columns:\n  - name: id  # mine\n    required: true  # no NULL\nlast: 1\n",
    ),
    "keys of a mapping that is made": (
        "columns:\n- name: id\n",
        (LEAST, MOST),
        "columns:\n- name: id\n  options:\n    minimum: 0  # smallest 12\n    maximum: 900  # largest 881\n",
    ),
    "a key of a mapping that is there": (
        "columns:\n  - name: id\n    options:\n        minimum: 3\n    kind: x\n",
        (MOST,),
        "columns:\n  - name: id\n    options:\n        minimum: 3\n        maximum: 900  # largest 881\n"
        "    kind: x\n",
    ),
    "an item of a list that is made": (
        "columns:\n  - name: id\n",
        (RULE,),
        "columns:\n  - name: id\n    rules:\n      - metric: rowCount  # always\n        mustBe: 1\n",
    ),
    "an item of a list that is there": (
        "columns:\n  - name: id\n    rules:\n    - metric: mine\n    kind: x\n",
        (RULE,),
        "columns:\n  - name: id\n    rules:\n    - metric: mine\n    - metric: rowCount  # always\n"
        "      mustBe: 1\n    kind: x\n",
    ),
    "several at the end of one line, the deeper first": (
        "columns:\n  - name: id\n",
        (Addition((), "more", 1, "a"), REQUIRED),
        "columns:\n  - name: id\n    required: true  # no NULL\nmore: 1  # a\n",
    ),
    "in brackets": (
        "columns:\n  - {name: id, kind: x}  # mine\n",
        (REQUIRED, LEAST, MOST),
        "columns:\n  - {name: id, kind: x,\n     required: true,  # no NULL\n"
        "     options: {minimum: 0, maximum: 900}  # smallest 12; largest 881\n     }  # mine\n",
    ),
    "in brackets after a comma": (
        "columns: [{name: id, }]\n",
        (REQUIRED,),
        "columns: [{name: id, \n           required: true  # no NULL\n           }]\n",
    ),
    "in brackets with a comment before they close": (
        "columns:\n  - {name: id  # mine, too\n    }\n",
        (REQUIRED,),
        "columns:\n  - {name: id  # mine, too\n    \n     ,\n     required: true  # no NULL\n     }\n",
    ),
    "in empty brackets": (
        "columns:\n  - name: id\n    options: {}\n    rules: []\n",
        (LEAST, RULE),
        "columns:\n  - name: id\n    options: {\n              minimum: 0  # smallest 12\n              }\n"
        "    rules: [\n            {metric: rowCount, mustBe: 1}  # always\n            ]\n",
    ),
    "lines that end as Windows ends them": (
        "columns:\r\n  - name: id\r\n",
        (REQUIRED,),
        "columns:\r\n  - name: id\r\n    required: true  # no NULL\r\n",
    ),
    "without a last line end": (
        "columns:\n  - name: id",
        (REQUIRED,),
        "columns:\n  - name: id\n    required: true  # no NULL",
    ),
    "after a text of several lines": (
        "columns:\n  - name: id\n    said: |\n      a\n\n      # b\n\n\n# next\nlast: 1\n",
        (REQUIRED,),
        "columns:\n  - name: id\n    said: |\n      a\n\n      # b\n    required: true  # no NULL\n\n\n"
        "# next\nlast: 1\n",
    ),
    "after a text that keeps its blank lines": (
        "columns:\n  - name: id\n    said: |+\n      a\n\n\nlast: 1\n",
        (REQUIRED,),
        "columns:\n  - name: id\n    said: |+\n      a\n\n\n    required: true  # no NULL\nlast: 1\n",
    ),
    "after a key without a value": (
        "columns:\n  - name: id\n    said:\nlast: 1\n",
        (REQUIRED,),
        "columns:\n  - name: id\n    said:\n    required: true  # no NULL\nlast: 1\n",
    ),
    "beside an anchor that nobody uses": (
        "columns:\n  - &one\n    name: id\n",
        (REQUIRED,),
        "columns:\n  - &one\n    name: id\n    required: true  # no NULL\n",
    ),
    "beside keys that are merged": (
        "base: &base {kind: x}\ncolumns:\n  - <<: *base\n    name: id\n",
        (REQUIRED,),
        "base: &base {kind: x}\ncolumns:\n  - <<: *base\n    name: id\n    required: true  # no NULL\n",
    ),
    "signs that count as two or none": (
        "\ufeff# é\U0001f600\ncolumns:\n  - name: \U0001f600\nlast: 1\n",
        (REQUIRED,),
        "\ufeff# é\U0001f600\ncolumns:\n  - name: \U0001f600\n    required: true  # no NULL\nlast: 1\n",
    ),
}


@pytest.mark.parametrize(("text", "additions", "made"), CASES.values(), ids=CASES)
def test_what_is_added_stands_where_it_belongs(text: str, additions: tuple[Addition, ...], made: str) -> None:
    assert insert(text.encode(), "a.yaml", additions).decode() == made


HOSTILE = (
    "a # b", "a\nmore: 1", "a\r\nmore: 1", "a\u2028more: 1", "a\x85more: 1", "${HOME}", "\x1b[31mred", "'\"",
    "- b", "{{x}}", "a: b", "\t", "*x", "&y", "!!python/object", "---", "...", "\ufffe",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
@pytest.mark.parametrize(
    "before", ["columns:\n  - name: id\n", "columns: [{name: id}]\n"], ids=["lines", "brackets"]
)
def test_no_value_and_no_comment_breaks_out(before: str, text: str) -> None:
    additions = [
        Addition(("columns", 0), "said", text, text),
        Addition(("columns", 0, "values"), "", {"value": text}, text),
    ]

    made = insert(before.encode(), "a.yaml", additions)

    top, findings = source.read(made, "a.yaml")
    assert findings == []
    assert strip_source_maps(top) == {"columns": [{"name": "id", "said": text, "values": [{"value": text}]}]}
    assert "\x1b" not in made.decode()


def test_many_columns_are_written_at_once() -> None:
    text = "columns:\n" + "".join(f"  - name: c{at}\n    # kept {at}\n" for at in range(2_000))

    made = insert(
        text.encode(), "a.yaml", [Addition(("columns", at), "required", True, "") for at in range(2_000)]
    )

    lines = made.decode().splitlines()
    assert [line for line in lines if line != "    required: true"] == text.splitlines()
    assert lines.count("    required: true") == 2_000


@pytest.mark.parametrize(
    "text",
    [
        "base: &base {name: id}\ncolumns:\n  - *base\n",
        "columns:\n  - &one\n    name: id\nothers: [*one]\n",
        "columns: &all\n  - name: id\nothers: *all\n",
        "columns:\n  - ? name\n    : id\n",
    ],
    ids=["an alias", "an anchor", "an anchor further out", "a key after ?"],
)
def test_what_stands_for_several_places_is_left_alone(text: str) -> None:
    assert can_insert(text.encode(), [REQUIRED.path]) == [False]
    with pytest.raises(InsertionNotSupported):
        insert(text.encode(), "a.yaml", [REQUIRED])


def test_a_key_without_a_value_takes_nothing() -> None:
    assert can_insert(b"columns:\n  - name: id\n    rules:\n", [RULE.path, REQUIRED.path]) == [False, True]


def test_json_has_no_comments() -> None:
    with pytest.raises(InsertionNotSupported, match="JSON"):
        insert(b'{"columns": [{"name": "id"}]}', "a.json", [REQUIRED])


def test_nothing_to_add_leaves_the_bytes() -> None:
    assert insert(b"a: 1", "a.yaml", []) == b"a: 1"
