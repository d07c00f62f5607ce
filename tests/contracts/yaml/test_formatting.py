"""Formatting changes how a contract looks, keeps every comment, and never changes what it says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dq.contracts import model
from dq.contracts.model import SOURCE_MAP_KEY, Node, strip_source_maps
from dq.contracts.yaml import formatting, source
from dq.contracts.yaml.formatting import ORDER, OTHER_KEYS, Formatted, formatted, kind_below
from dq.contracts.yaml.parse import parse

# The long form is benchmarks/random_tests.py.
DRAWN = int(os.environ.get("DQ_EXAMPLES", "120"))
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.odcs.yaml"))


def done(text: str | bytes) -> str:
    made = formatted(text.encode() if isinstance(text, str) else text, "a.odcs.yaml")
    assert isinstance(made, Formatted)
    assert made.unchanged_reason == ""
    return made.data.decode()


def data_of(text: str) -> Any:
    top, _ = source.read(text.encode(), "")
    return strip_source_maps(top)


def comments(text: str) -> list[str]:
    return formatting.read(text.replace("\r\n", "\n")).comments


# --- tables

CASES = {
    "keys come in the order of the standard": (
        "version: 1.0.0\nid: a\nkind: DataContract\napiVersion: v3.2.0\n",
        "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n",
    ),
    "keys that nobody knows keep their order before the custom properties": (
        "customProperties: []\nzeta: 1\nalpha: 2\nid: a\n",
        "id: a\nzeta: 1\nalpha: 2\ncustomProperties: []\n",
    ),
    "what is the organisation's own keeps its order": (
        "customProperties:\n- value: {name: b, id: a}\n  property: p\n",
        "customProperties:\n  - property: p\n    value: {name: b, id: a}\n",
    ),
    "lists are indented": ("tags:\n- a\n-   b\n", "tags:\n  - a\n  - b\n"),
    "lists of lists stay": ("a:\n-   - 1\n    - 2\n- - 3\n", "a:\n  - - 1\n    - 2\n  - - 3\n"),
    "brackets are spaced alike and sorted": (
        "schema: [ {properties: [{required: true,name: b}],name: a} ]\n",
        "schema: [{name: a, properties: [{name: b, required: true}]}]\n",
    ),
    "brackets over several lines become one line that fits": (
        "tags: [\n  a,\n  b,\n]\n",
        "tags: [a, b]\n",
    ),
    "brackets that are too long are written out": (
        f"team: {{members: [{{username: {'a' * 50}}}, {{role: owner, username: {'b' * 50}}}], name: x}}\n",
        f"team:\n  name: x\n  members:\n    - {{username: {'a' * 50}}}\n"
        f"    - {{username: {'b' * 50}, role: owner}}\n",
    ),
    "a comment above stays above its key": (
        "version: 1.0.0\n# whose\nid: a\n# which\nkind: DataContract\n",
        "# which\nkind: DataContract\n# whose\nid: a\nversion: 1.0.0\n",
    ),
    "a comment beside stays beside": ("version: '1' # v\nid: a #i\n", "id: a  #i\nversion: '1'  # v\n"),
    "the first comment is the file's and not the first key's": (
        "# Orders.\n\nid: a\nkind: DataContract\n",
        "# Orders.\n\nkind: DataContract\nid: a\n",
    ),
    "a comment over the first key of an item stands over the dash": (
        "schema:\n  - # of t\n    # the name\n    name: t\n",
        "schema:\n  -  # of t\n    # the name\n    name: t\n",
    ),
    "a key that comes first in its item brings its comment over the dash": (
        "schema:\n  - description: d\n    # the name\n    name: t\n",
        "schema:\n  # the name\n  - name: t\n    description: d\n",
    ),
    "comments close the collection that they are indented like": (
        "schema:\n  - name: t\n    # of t\n  # of schema\n# of kind\nkind: DataContract\n",
        "# of kind\nkind: DataContract\nschema:\n  - name: t\n    # of t\n  # of schema\n",
    ),
    "comments after a key without value stay": (
        "status: # none\n# of id\nid: a\n",
        "# of id\nid: a\nstatus:  # none\n",
    ),
    "a comment before a value on the next line moves above": (
        "name: # why\n  Orders\n",
        "# why\nname: Orders\n",
    ),
    "one blank line stays, more do not": ("id: a\n\n\n\nname: b\n", "id: a\n\nname: b\n"),
    "quotes stay": (
        'version: "1.10"\nname: \'yes\'\nstatus: "2026-01-01"\n',
        'name: \'yes\'\nversion: "1.10"\nstatus: "2026-01-01"\n',
    ),
    "what YAML 1.1 reads otherwise stays as it is": (
        "a: 010\nb: 1_000\nc: 1.10\nd: on\ne: 12:30:45\nf: 2026-01-01 01:02:03 +1\ng: ~\nh: 0x1F\n",
        "a: 010\nb: 1_000\nc: 1.10\nd: on\ne: 12:30:45\nf: 2026-01-01 01:02:03 +1\ng: ~\nh: 0x1F\n",
    ),
    "a long text stays in its lines": (
        f"name: {'word ' * 40}end\n",
        f"name: {'word ' * 40}end\n",
    ),
    "lines of a plain text are indented": ("name: one\n      two\n\n      three\n", None),
    "lines of a literal text are moved": (
        "description:\n      usage: |\n          one\n            two\n\n          three\n",
        "description:\n  usage: |\n    one\n      two\n\n    three\n",
    ),
    "a literal text that begins with spaces keeps them": (
        "description:\n    usage: |2\n         one\n      two\n",
        "description:\n  usage: |2\n       one\n    two\n",
    ),
    "line breaks at the end that are kept are kept": (
        "description:\n    usage: |+\n        one\n\n\nid: a\n",
        "id: a\ndescription:\n  usage: |+\n    one\n\n\n",
    ),
    "a blank line after a literal text stays when the text comes last": (
        "schema:\n- quality: []\n  description: |\n    a\n\n- name: |\n    b\n\n\n  id: c\n",
        "schema:\n  - description: |\n      a\n    quality: []\n\n  - id: c\n    name: |\n      b\n",
    ),
    "a comment after the header of a literal text stays": (
        "name: >-  # folded\n    one\n    two\n",
        "name: >-  # folded\n  one\n  two\n",
    ),
    "anchors and aliases stay": (
        "team: &t\n    name: x\ncustomProperties:\n- {property: p, value: *t}\n",
        "team: &t\n  name: x\ncustomProperties:\n  - {property: p, value: *t}\n",
    ),
    "an alias is not moved before its anchor": (
        "schema:\n- &a\n    name: x\nservers: [*a]\n",
        "schema:\n  - &a\n    name: x\nservers: [*a]\n",
    ),
    "a merge stands first": (
        "schema: [{name: a, <<: {description: b}}]\n",
        "schema: [{<<: {description: b}, name: a}]\n",
    ),
    "brackets with comments stay as they are": (
        "tags: [a, # first\n   b]\n",
        "tags: [a, # first\n   b]\n",
    ),
    "a document's start is left out": ("---\n# c\nid: a\n...\n", "# c\nid: a\n"),
    "keys in quotes are known": ("\"version\": '1'\n'id': a\n", "'id': a\n\"version\": '1'\n"),
    "a line break at the end is added": ("id: a", "id: a\n"),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_a_contract_is_written_in_its_canonical_form(before: str, after: str | None) -> None:
    made = done(before)

    assert after is None or made == after
    assert done(made) == made
    assert data_of(made) == data_of(before)


def test_line_endings_stay_and_a_byte_order_mark_goes() -> None:
    assert done(b"\xef\xbb\xbfversion: a\r\n# c\r\nid: b\r\n") == "# c\r\nid: b\r\nversion: a\r\n"


def test_a_literal_text_with_windows_line_endings_means_the_same() -> None:
    before = "name: |\r\n   one\r\n   two\r\n"

    assert done(before) == "name: |\r\n  one\r\n  two\r\n"


def test_what_is_no_yaml_gives_its_findings() -> None:
    found = formatted(b"a: [\n", "a.odcs.yaml")

    assert isinstance(found, list)
    assert [one.rule for one in found] == ["yaml-syntax"]


@pytest.mark.parametrize(
    "text",
    [
        "? id\n: a\n",
        "{id: a}\n",
        "%YAML 1.1\n---\nid: a\n",
        "id: a\rname: b\n",
        "name: a\u2028  # b\nid: c\n",
    ],
    ids=[
        "a key after ?",
        "brackets around all",
        "a directive",
        "a lone carriage return",
        "a break of Unicode",
    ],
)
def test_what_is_beyond_the_writer_is_left_alone_with_a_reason_or_means_the_same(text: str) -> None:
    made = formatted(text.encode(), "a.odcs.yaml")

    assert isinstance(made, Formatted)
    assert data_of(made.data.decode()) == data_of(text)
    assert made.unchanged_reason or made.data != text.encode()


# --- laws


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_are_in_canonical_form(file: Path) -> None:
    assert done(file.read_bytes()) == file.read_text()


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_with_its_keys_reversed_comes_back(file: Path) -> None:
    text = file.read_text()
    shuffled = yaml.safe_dump(_reversed(data_of(text)), sort_keys=False, allow_unicode=True)

    made = done(shuffled)

    assert typed(made) == typed(text)
    assert [line.split(":")[0] for line in made.splitlines() if line[0].isalpha()] == [
        line.split(":")[0] for line in text.splitlines() if line[:1].isalpha()
    ]


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(inner) for inner in value] if isinstance(value, list) else value


KEYS = sorted(
    {key for keys in ORDER.values() for key in keys if key != OTHER_KEYS} | {"own", "a b", "yes!", "x-1"}
)
TEXTS = st.one_of(
    st.sampled_from(
        ["yes", "1.10", "2026-01-01", "~", "", " a", "a: b", "#c", "- d", "[e", "*f", "é 名", "'", '"']
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=12),
    st.text("ab \n", max_size=12),
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 99), st.floats(allow_nan=False), st.dates(), TEXTS
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), TREES, min_size=1, max_size=5)


class Scribe:
    """Writes a value as YAML in a style that hypothesis draws: indents, brackets, quotes, comments."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.number = 0

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def comment(self) -> str:
        self.number += 1
        return f"# {self.number}"

    def scalar(self, value: Any) -> str:
        style = self.pick(None, "'", '"') if isinstance(value, str) else None
        text: str = yaml.safe_dump(value, default_style=style, allow_unicode=True, width=10**6)
        text = text.removesuffix("\n").removesuffix("\n...")
        return text if "\n" not in text else yaml.safe_dump(value, default_style='"', width=10**6).strip()

    def inline(self, value: Any) -> str:
        return yaml.safe_dump(
            value, default_flow_style=True, allow_unicode=True, width=self.pick(20, 10**6)
        ).strip()

    def lines(self, value: Any, indent: int) -> list[str]:
        step, made = self.pick(1, 2, 4), []
        for key, inner in value.items() if isinstance(value, dict) else ((None, one) for one in value):
            for _ in range(self.pick(0, 0, 1, 2)):
                made.append(self.pick("", " " * self.pick(0, indent, indent + 3) + self.comment()))
            lead = " " * indent + (f"{key}:" if key is not None else "-")
            beside = self.pick("", "", f"  {self.comment()}")
            if isinstance(inner, (dict, list)) and inner and self.pick(True, True, False):
                flat = isinstance(inner, list) and key is not None and self.pick(True, False)
                below = self.lines(inner, indent if flat else indent + step)
                joined = key is None and not beside and below[0].lstrip()[:1] not in ("", "#")
                made += (
                    [lead + " " * step + below[0].lstrip(), *self.shift(below[1:], 1)]
                    if joined
                    else [lead + beside, *below]
                )
            elif isinstance(inner, (dict, list)):
                made += [
                    lead + " " + one if not at else " " * (indent + 3) + one
                    for at, one in enumerate(self.inline(inner).split("\n"))
                ]
                made[-1] += beside
            elif isinstance(inner, str) and inner.strip() and "\n" in inner and self.pick(True, False):
                made += self.literal(lead, inner, indent + step)
            else:
                made.append(f"{lead} {self.scalar(inner)}{beside}")
        return made

    def shift(self, lines: list[str], by: int) -> list[str]:
        return [" " * by + line if line else line for line in lines]

    def literal(self, lead: str, value: str, indent: int) -> list[str]:
        body = value.rstrip("\n")
        kept = len(value) - len(body)
        first = next(line for line in value.split("\n") if line)
        digit = (
            str(indent - len(lead) + len(lead.lstrip()))
            if first.startswith(" ") or value.startswith("\n")
            else ""
        )
        chomp = "-" if kept == 0 else "" if kept == 1 else "+"
        return [
            f"{lead} |{digit}{chomp}",
            *(" " * indent + line if line else "" for line in body.split("\n")),
            *[""] * (kept - 1),
        ]


@st.composite
def documents(draw: Any) -> str:
    value = draw(DOCUMENTS)
    text = "\n".join(Scribe(draw).lines(value, 0)) + "\n"
    top, wrong = source.read(text.encode(), "")
    # Now and then the scribe writes something else than was meant; it is a document all the same.
    return text if top is not None and not wrong else "id: a\n"


@settings(
    max_examples=DRAWN,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(documents())
def test_formatting_keeps_meaning_and_comments_and_is_done_after_one_run(text: str) -> None:
    made = done(text)

    assert typed(made) == typed(text)
    assert comments(made) == comments(text)
    assert done(made) == made


PIECES = [
    "  ",
    "\n",
    "- ",
    ": ",
    "# c",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "|\n",
    ">-",
    "'",
    '"',
    "? ",
    "---\n",
    "\t",
    "é",
    ",",
]
CUTS = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(0, 30), st.sampled_from(["", *PIECES])), max_size=4
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([file.read_text() for file in EXAMPLES]), CUTS)
def test_whatever_a_file_holds_it_is_refused_left_or_means_the_same(text: str, cuts: Any) -> None:
    for start, length, piece in cuts:
        text = text[:start] + piece + text[start + length :]

    made = formatted(text.encode(), "a.odcs.yaml")

    if isinstance(made, Formatted):
        assert _typed(data_of(made.data.decode())) == _typed(data_of(text))
        assert made.unchanged_reason or done(made.data) == made.data.decode()


def typed(text: str) -> Any:
    """The values with their types, and the contract where there is one."""
    contract = parse(text.encode(), "x").contract
    return _typed(data_of(text)), contract and _typed(strip_source_maps(contract.model_dump()))


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    return type(value).__name__, repr(value)


# --- the table


def _nodes() -> set[type[Node]]:
    """The models of all mappings in a contract."""
    bases = {Node, model.Extensible, model.Described, model.Element}
    return {one for one in vars(model).values() if isinstance(one, type) and issubclass(one, Node)} - bases


def test_every_key_of_every_mapping_has_its_place_in_the_order() -> None:
    absent = {
        one: keys
        for one in _nodes()
        if (
            keys := {info.alias or key for key, info in one.model_fields.items()}
            - {SOURCE_MAP_KEY}
            - set(ORDER[one])
        )
    }

    assert absent == {}
    assert _nodes() == set(ORDER)


def test_no_key_stands_twice_in_the_order() -> None:
    assert [name for name, keys in ORDER.items() if len(set(keys)) != len(keys)] == []


def test_the_members_of_an_old_team_are_known() -> None:
    assert kind_below(model.Contract, "team", listed=False) is model.Team
    assert kind_below(model.Contract, "team", listed=True) is model.Member
