"""Patterns are those that ECMA-262 and Java read alike."""

from __future__ import annotations

import re

import pytest

from dq.contracts.pattern import refused


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[A-Z0-9]{2}$",
        "^N[0-9A-Z]{1,5}$",
        r"[\w.-]+@[\w-]+\.[a-z]{2,}",
        "[a-]",
        "[-a]",
        "[^-a]",
        "a|b|",
        r"(a)\1",
        r"(?<year>\d{4})-\k<year>",
        "(?:a|b)+?",
        "(?=a)b",
        "(?!a)b",
        "(?<=a)b",
        "(?<!a)b",
        r"\p{L}+",
        r"[\p{Lu}_]",
        r"A\x41",
        "é+",
        "[+-]?\\d+(\\.\\d+)?",
        r"\(\)\[\]\{\}\^\$\.\|\?\*\+\\\/\-",
        r"a{3}b{3,}c{3,5}?",
        r"[\]\[\\]",
        r"\bword\b",
        "(a|(b(c)*)?)",
        "[a-z&]",
        r"[\n\t]",
    ],
)
def test_what_both_read_is_allowed(pattern: str) -> None:
    assert refused(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "the group opened at position 1 is not closed"),
        ("a)", "')' closes nothing (position 2)"),
        ("[a", "'[' is not closed (position 1)"),
        ("a{", r"'{' stands alone; escape it as '\{' (position 2)"),
        ("a}", r"'}' stands alone; escape it as '\}' (position 2)"),
        ("a]", r"']' stands alone; escape it as '\]' (position 2)"),
        ("*a", "'*' repeats nothing (position 1)"),
        ("a**", "'*' repeats nothing (position 3)"),
        ("a{2}{3}", "'{3}' repeats nothing (position 5)"),
        ("^*", "'*' repeats nothing (position 2)"),
        (r"\b+", "'+' repeats nothing (position 3)"),
        ("(?=a)*", "'*' repeats nothing (position 6)"),
        ("a++", "a possessive '+' is not known to ECMA-262 (position 3)"),
        ("a{3,1}", "'{3,1}' counts down (position 2)"),
        ("[z-a]", "the range z-a counts down (position 5)"),
        (r"[\d-x]", "a range ends in a class of characters (position 6)"),
        ("[]", "an empty class matches nothing in one and is an error in the other (position 1)"),
        ("[a[b]]", r"'[' in a class opens another one in Java; escape it as '\[' (position 3)"),
        ("[a&&b]", "'&&' in a class is an intersection in Java; write one '&' (position 3)"),
        (r"[\b]", r"'\b' in a class is read differently by the two (position 2)"),
        ("(?i)a", "'(?i' is not known to both (position 1)"),
        ("(?P<a>b)", "'(?P' is not known to both (position 1)"),
        ("(?>a)", "'(?>' is not known to both (position 1)"),
        (r"a\Z", r"'\Z' is known to Java alone (position 2)"),
        (r"\Qa\E", r"'\Q' is known to Java alone (position 1)"),
        (r"\cA", r"'\c' does not mean the same to both (position 1)"),
        (r"\_", r"'\_' does not mean the same to both (position 1)"),
        (r"\0", r"'\0' does not mean the same to both (position 1)"),
        (r"\v", r"'\v' is known to Java alone (position 1)"),
        ("a\\", "a backslash ends the pattern (position 2)"),
        (r"\1", "there is no group 1, which position 1 refers to"),
        (r"(?<a>b)\k<c>", "there is no group 'c', which position 8 refers to"),
        ("(?<a>b)(?<a>c)", "the group name 'a' is used twice (position 8)"),
        ("(?<a_b>c)", "the group name 'a_b' has an underscore, which Java refuses (position 1)"),
        (r"\p{Script=Greek}", r"'\p' does not mean the same to both (position 1)"),
    ],
)
def test_what_only_one_reads_is_refused_with_its_place(pattern: str, reason: str) -> None:
    assert refused(pattern) == reason


@pytest.mark.parametrize("count", [1, 100, 1_900])
def test_a_long_pattern_takes_no_recursion(count: int) -> None:
    assert refused("(" * count + "a" + ")" * count) is None


def test_what_is_allowed_compiles_in_python_too_where_python_has_the_syntax() -> None:
    for pattern in ("^[A-Z0-9]{2}$", r"[\w.-]+@[\w-]+\.[a-z]{2,}", "(?:a|b)+?", "(?<!a)b"):
        assert refused(pattern) is None
        re.compile(pattern)
