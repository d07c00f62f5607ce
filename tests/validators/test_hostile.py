"""Whatever bytes come in, findings come out: placed inside the file, and never a traceback."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dq.contracts.model import MAX_FINDINGS
from dq.contracts.outcome import Finding
from dq.validators import rule_page
from dq.validators.lint import MAX_OF_ONE_RULE, MAX_TEXT, lint, load_rules

RULES = load_rules()
TODAY = date(2026, 11, 21)
BASE = rule_page.document(
    "slaProperties:\n"
    "  - id: daily\n"
    "    property: frequency\n"
    "    value: 1\n"
    "    unit: d\n"
    "    element: orders\n"
    "    schedule: '0 6 * * *'\n"
    "    customProperties:\n"
    "      - {property: delivery, vendor: dq, value: {timezone: Europe/Berlin, grace: 1h}}\n"
)[0]
DOCUMENT = yaml.safe_load(BASE)
HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"


def _lint(data: bytes) -> list[Finding]:
    found = lint(data, "orders.odcs.yaml", rules=RULES, today=TODAY)
    # YAML 1.1 breaks lines at three signs of Unicode besides.
    lines = len(data.decode("utf-8", "replace").splitlines()) + 1
    outside = [one for one in found if not (1 <= one.at.line <= lines and one.at.column >= 1)]
    assert outside == []
    assert len(found) <= MAX_FINDINGS * 2
    return found


ODD = ["9" * 5_000, "* * * * *", "decimal(99999999999)", "P9D", "\u2028", "${", "{due", "a" * 9_000]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.sampled_from(ODD)
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


def _paths(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, inner in inside for path in ((*above, key), *_paths(inner, (*above, key)))]


def _replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    if isinstance(value, dict):
        return {key: _replaced(one, path[1:], other) if key == path[0] else one for key, one in value.items()}
    return [_replaced(one, path[1:], other) if index == path[0] else one for index, one in enumerate(value)]


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    assert _lint(data)


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    assert _lint(text.encode("utf-8", "surrogatepass"))


@settings(deadline=None)
@given(TREES)
def test_any_tree(tree: object) -> None:
    assert _lint(yaml.safe_dump(tree, allow_unicode=True).encode())


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(_paths(DOCUMENT)), TREES)
def test_a_good_contract_with_anything_anywhere(path: tuple[Any, ...], tree: object) -> None:
    _lint(yaml.safe_dump(_replaced(DOCUMENT, path, tree), allow_unicode=True, sort_keys=False).encode())


@settings(deadline=None)
@given(st.data())
def test_a_good_contract_with_a_piece_of_its_text_changed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(BASE)))
    to = data.draw(st.integers(at, min(len(BASE), at + 40)))
    signs = st.sampled_from(["&a ", "*a", "<<: *a", "!!int ", "{", "- ", "|\n"])
    piece = data.draw(st.text(max_size=10) | signs)

    _lint((BASE[:at] + piece + BASE[to:]).encode())


REFUSED = {
    "duplicate keys": ("name: a\nname: b\n", "duplicate-key"),
    "an alias bomb": (
        "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
        "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
        "e: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n",
        "yaml-refused",
    ),
    "an alias of itself": ("a: &a [*a]\n", "yaml-refused"),
    "65 levels": ("a: " + "[" * 65 + "]" * 65 + "\n", "yaml-refused"),
    "more than 5 MB": ("a: " + "x" * 5_000_000, "file-too-large"),
    "several documents": ("a: 1\n---\nb: 2\n", "yaml-refused"),
    "a list at the top": ("- a\n", "not-a-contract"),
    "a scalar at the top": ("a\n", "not-a-contract"),
    "nothing at all": ("", "not-a-contract"),
    "tabs": ("a:\n\tb: 1\n", "yaml-syntax"),
    "NUL": ("a: \0\n", "not-utf8"),
    "a tag that runs code": ("a: !!python/object/apply:os.system [ls]\n", "yaml-refused"),
    "a key that is no text": ("? [a, b]\n: 1\n", "yaml-refused"),
    "a key that YAML reads as true": ("yes: 1\n", "yaml-refused"),
    "a number of a million digits": ("a: " + "9" * 1_000_000 + "\n", "yaml-refused"),
    "an impossible date": ("a: 2026-13-45\n", "yaml-refused"),
}


@pytest.mark.parametrize(("text", "rule"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_with_one_finding_and_a_mend(text: str, rule: str) -> None:
    found = [one for one in _lint(text.encode()) if one.rule == rule]

    assert len(found) == 1
    assert found[0].hint


@pytest.mark.parametrize("data", ["name: é\n".encode("latin-1"), "name: a\n".encode("utf-16")])
def test_another_encoding_is_refused(data: bytes) -> None:
    assert [one.rule for one in _lint(data)] == ["not-utf8"]


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbf" + BASE.encode(), BASE.replace("\n", "\r\n").encode()], ids=["BOM", "CRLF"]
)
def test_a_byte_order_mark_and_line_ends_of_windows_are_fine(data: bytes) -> None:
    assert _lint(data) == []


SURPRISES = {
    "a version that is a float": (
        "version: 1.10",
        "version must be text, and YAML reads 1.10 as the number 1.1.",
        'Quote it: version: "1.10".',
    ),
    "a yes": (
        "name: yes",
        "name must be text, and YAML reads yes as true (a boolean).",
        'Quote it: name: "yes".',
    ),
    "an account of digits": (
        "servers: [{server: a, type: glue, account: 123456789012, database: d}]",
        "account must be text, and YAML reads 123456789012 as the number 123456789012.",
        'Quote it: account: "123456789012".',
    ),
}


@pytest.mark.parametrize(("line", "message", "hint"), SURPRISES.values(), ids=SURPRISES)
def test_what_yaml_made_of_a_value_is_said_with_how_to_quote_it(line: str, message: str, hint: str) -> None:
    text, _ = rule_page.document(line + "\n")

    (found,) = [one for one in _lint(text.encode()) if one.rule == "wrong-type"]

    assert (found.message, found.hint) == (message, hint)


def test_thousands_of_mistakes_are_cut_off(lint_fragment) -> None:
    found = lint_fragment("slaProperties:\n" + "  - {property: latency, value: x, unit: h}\n" * 3_000)

    assert len(found) == MAX_OF_ONE_RULE


def test_a_file_of_another_kind_is_one_finding() -> None:
    found = _lint((HEAD + "".join(f"key{number}: 1\n" for number in range(21_000))).encode())

    assert [(one.rule, one.message) for one in found] == [
        (
            "not-a-contract",
            "21,000 unknown keys or values; this may not be a contract.",
        )
    ]


def test_what_a_contract_says_at_length_is_quoted_in_short(lint_fragment) -> None:
    found = lint_fragment("status: " + "a" * 1_000_000 + "\n")

    assert [(one.rule, len(one.message) <= MAX_TEXT + 1) for one in found] == [("status-unknown", True)]
