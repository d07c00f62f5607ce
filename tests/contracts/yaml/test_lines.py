"""The fast reader of common YAML returns what PyYAML's events give, or leaves the text to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.model import SOURCE_MAP_KEY
from dq.contracts.yaml import lines
from dq.contracts.yaml.builder import Builder, YamlRejected

EXAMPLES = Path(__file__).parents[3] / "examples"
KEYS = ("a", "b", "logicalType", "tags", "x-y", "on", "no", "null", "_z.1", "1a", '"q"', "my key")
VALUES = (
    "", "text", "two words", "it's", "'single'", "'it''s'", "\"double\"", "\"esc\\n\"", "''", "5", "-5",
    "- 5", "1.50", "1e3", "0123", "0o17", "1_000", "1:30", ".5", ".nan", "-.inf", "true", "yes", "null",
    "~", "2026-01-31", "2026-13-45", "2026-01-31T08:00:00Z", "# comment", "text # comment", "text #",
    "text#not", "'q' # c", "'q'# c", "a: b", "a:", "a:b", "http://x/y", "[]", "{}", "[a, b]",
    "['a', \"b\"]", "[a, ]", "[, a]", "[a b, 1.5, null]", "[a] # c", "[a]# c", "[a", "a]", "[a: b]",
    "[[a], [b, {c: 1}]]", "{a: 1, b: [x]}", "{a: 1, a: 2}", "{a: }", "{a}", "{on: 1}", "{a: {b: {}}}",
    "{{title}}", "{a:1}", "{a: 'x', b: \"y\"}", "[1, 0123]", "[?a]", "[a#b]", "|", ">", "|-", "*a", "&a b",
    "!!str x", "!x", "<<", "=", "?", "? x", "%x", "@x", "`x`", "ü", "日本", "a\xa0b", "a\tb", "a\x85b",
    "a\u2028b", "\U0001f600", "---", "...", "${a}", "(x)", "^x$", "x ", "-", "--", "-a", "+1",
)  # fmt: skip


def plain(value: Any) -> Any:
    """The value with everything that its source maps say, for a comparison."""
    if isinstance(value, dict):
        place = value[SOURCE_MAP_KEY]
        parts = (place.keys, place.values, place.items, place.raw)
        says = (place.file, place.path, place.position, place.removed, [list(part.items()) for part in parts])
        return says, [(key, plain(inner)) for key, inner in value.items() if key != SOURCE_MAP_KEY]
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return type(value), repr(value)


def by_events(text: str) -> Any:
    """The same by PyYAML's events, or None if they refuse the text or report something."""
    builder = Builder("a.yaml")
    try:
        top = builder.build(text)
    except (YamlRejected, yaml.YAMLError):
        return None
    return None if builder.duplicate_keys or builder.ambiguous_numbers else plain(top)


def assert_same(text: str) -> bool:
    top = lines.read(text, "a.yaml")
    if top is not None:
        assert plain(top) == by_events(text)
    return top is not None


LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(("", "", "", "  ", "  ", "    ", " ", "      ")),
    st.sampled_from(("", "", "", "- ", "- ", "-   ", "-", "- - ", "# ")),
    st.sampled_from(("a: ", "b: ", "c: ", "d: ", "e:", "f:", "a:  ", "", *(f"{key}: " for key in KEYS))),
    st.one_of(st.sampled_from(("", "text", "5")), st.sampled_from(VALUES)),
)
TEXTS = st.lists(LINES, max_size=9).map("\n".join)


@settings(max_examples=3_000, deadline=None)
@given(TEXTS, st.sampled_from(("", "", "---\n", "---", "--- ", "\n", "# c\n", "...\n", "%YAML 1.1\n---\n")))
def test_documents_of_random_lines_are_read_as_by_events(text: str, head: str) -> None:
    assert_same(head + text)


@settings(max_examples=3_000, deadline=None)
@given(st.text("ab:-#[]{}'\",? \n\\&*!|>%@.~0_1\t\r\x85ü", max_size=30))
def test_random_characters_are_read_as_by_events(text: str) -> None:
    assert_same(text)
    assert_same(f"a: {text}")
    assert_same(f"a:\n  - {text}")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "around", ["a: {}", "a: {}\nb: 1", "a:\n  - {}\n  - x", "a:\n- b: {}\n  c: d", "{}: a"]
)
def test_every_value_is_read_as_by_events(value: str, around: str) -> None:
    assert_same(around.replace("{}", value))


@pytest.mark.parametrize(
    "text",
    [
        "a:\nb: 1",
        "a:\n- x\n- y\nb:\n  - x: 1\n    y:\n    - z\n  - x: 2\n",
        "a:\n  b:\n    c: 1\nd: [1, two, 'three']\n",
        "---\n# c\na: 1   # c\n\nb: {c: [d, {e: 1.50}], f: {}}\n",
        "a:\n  - [x, y]\n  - {name: id, required: true}\n  -   k: v\n      l: w\n",
        "a: 'x: y'\nb: \"x # y\"\nc: x#y\nd: 2026-01-31\n",
        "a:   \nb:  # c\n",
    ],
)
def test_common_yaml_needs_no_events(text: str) -> None:
    assert assert_same(text)


@pytest.mark.parametrize("count", [49, 50, 60, 64, 65])
def test_deep_documents_are_read_as_by_events(count: int) -> None:
    keys = "".join(f"{' ' * depth}a:\n" for depth in range(count))
    assert_same(f"{keys}{' ' * count}a: {{b: [c, [{{d: 1}}]]}}")


def test_long_texts_are_left_to_events() -> None:
    assert not assert_same("a: b\n" + "# \n" * lines.MAX_CHARACTERS)
    assert not assert_same(f"a: {'b' * 2_000}")


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.odcs.yaml")), ids=lambda file: file.name)
def test_examples_with_any_line_removed_or_indented_are_read_as_by_events(file: Path) -> None:
    content = file.read_text("utf-8").split("\n")
    assert_same("\n".join(content))
    for number in range(len(content)):
        changed = content[:number] + content[number + 1 :]
        assert_same("\n".join(changed))
        assert_same("\n".join([*content[:number], f" {content[number]}", *content[number + 1 :]]))
        assert_same("\n".join([*content[:number], re.sub("^ ", "", content[number]), *content[number + 1 :]]))
