"""Patterns are those that ECMA-262 and Java read alike."""

from __future__ import annotations

import re

import pytest
from fakes.work import calls

from dq.contracts.pattern import pattern_problem, search_pattern

DISAGREED = "where ECMA-262 and Java disagree on its value"


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        r"^(a|b)x\1$",
        r"^((a)b)\2\1$",
        r"^(?<q>[;'])(?:[a-z](-x)?)*\k<q>$",
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
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "the group opened at position 1 is not closed"),
        ("a)", "unmatched ')' (position 2)"),
        ("[a", "'[' is not closed (position 1)"),
        ("a{", r"unmatched '{'; escape it as '\{' (position 2)"),
        ("a}", r"unmatched '}'; escape it as '\}' (position 2)"),
        ("a]", r"unmatched ']'; escape it as '\]' (position 2)"),
        ("*a", "'*' has nothing to repeat (position 1)"),
        ("a**", "'*' has nothing to repeat (position 3)"),
        ("a{2}{3}", "'{3}' has nothing to repeat (position 5)"),
        ("^*", "'*' has nothing to repeat (position 2)"),
        (r"\b+", "'+' has nothing to repeat (position 3)"),
        ("(?=a)*", "'*' has nothing to repeat (position 6)"),
        ("a++", "ECMA-262 has no possessive '+' (position 3)"),
        ("a{3,1}", "the bounds of '{3,1}' are reversed (position 2)"),
        ("[z-a]", "the range z-a is reversed (position 5)"),
        (r"[\d-x]", "a range needs single characters at both ends (position 6)"),
        ("[]", "an empty class matches nothing in ECMA-262 and is an error in Java (position 1)"),
        ("[a[b]]", r"'[' in a class opens a nested class in Java; escape it as '\[' (position 3)"),
        ("[a&&b]", "'&&' in a class is an intersection in Java; write one '&' (position 3)"),
        (r"[\b]", r"'\b' in a class means different things in ECMA-262 and Java (position 2)"),
        ("(?i)a", "'(?i' is not supported by both ECMA-262 and Java (position 1)"),
        ("(?P<a>b)", "'(?P' is not supported by both ECMA-262 and Java (position 1)"),
        ("(?>a)", "'(?>' is not supported by both ECMA-262 and Java (position 1)"),
        (r"a\Z", r"'\Z' is Java only (position 2)"),
        (r"\Qa\E", r"'\Q' is Java only (position 1)"),
        (r"\cA", r"'\c' means different things in ECMA-262 and Java (position 1)"),
        (r"\_", r"'\_' means different things in ECMA-262 and Java (position 1)"),
        (r"\0", r"'\0' means different things in ECMA-262 and Java (position 1)"),
        (r"\v", r"'\v' is Java only (position 1)"),
        ("a\\", "a backslash ends the pattern (position 2)"),
        (r"\1", "position 1 refers to the unknown group 1"),
        (r"^(;)?[a-z]+\1$", f"the group 1 is optional, {DISAGREED} (position 12)"),
        (r"(?:(a)b)?\1", f"the group 1 is optional, {DISAGREED} (position 10)"),
        (r"(a)+\1", f"the group 1 is repeated, {DISAGREED} (position 5)"),
        (r"(?:(a)\1){2,3}", f"the group 1 is repeated, {DISAGREED} (position 7)"),
        (r"(?:(a)|b)\1", f"the group 1 is in an alternative, {DISAGREED} (position 10)"),
        (r"(a)|b\1", f"the group 1 is in an alternative, {DISAGREED} (position 6)"),
        (r"(?!(a))b\1", f"the group 1 is in a lookaround, {DISAGREED} (position 9)"),
        (r"(?<=(a))b\1", f"the group 1 is in a lookaround, {DISAGREED} (position 10)"),
        (r"(a\1)", f"the group 1 is not closed there, {DISAGREED} (position 3)"),
        (r"\1(a)", f"the group 1 is not closed there, {DISAGREED} (position 1)"),
        (r"(?<q>a)?\k<q>", f"the group 'q' is optional, {DISAGREED} (position 9)"),
        (r"(a)\10", r"'\1' before a digit refers to different groups in ECMA-262 and Java (position 4)"),
        (r"(?<a>b)\k<c>", "position 8 refers to the unknown group 'c'"),
        ("(?<a>b)(?<a>c)", "the group name 'a' is used twice (position 8)"),
        ("(?<a_b>c)", "the group name 'a_b' has an underscore, which Java rejects (position 1)"),
        (r"\p{Script=Greek}", r"'\p' means different things in ECMA-262 and Java (position 1)"),
    ],
)
def test_what_only_one_reads_is_refused_with_its_place(pattern: str, reason: str) -> None:
    found = pattern_problem(pattern)

    assert found is not None
    assert found.message == reason


@pytest.mark.parametrize("count", [1, 100, 1_900])
def test_a_long_pattern_takes_no_recursion(count: int) -> None:
    assert pattern_problem("(" * count + "a" + ")" * count) is None


def test_what_is_allowed_compiles_in_python_too_where_python_has_the_syntax() -> None:
    for pattern in ("^[A-Z0-9]{2}$", r"[\w.-]+@[\w-]+\.[a-z]{2,}", "(?:a|b)+?", "(?<!a)b"):
        assert pattern_problem(pattern) is None
        re.compile(pattern)


# From contracts, standards and handbooks: a text of 20,000 characters takes them a square of it at most.
SOON = r"""
^[a-z]+(-[a-z]+)*$
([a-z]+\.)+
^([a-z]+\.)+[a-z]+$
^[A-Z0-9]{2}$
^N[0-9A-Z]{1,5}$
[\w.-]+@[\w-]+\.[a-z]{2,}
^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$
^[^@\s]+@[^@\s]+\.[^@\s]+$
.+@.+\..+
.*@.*\..*
\S+@\S+\.\S+
^\S+@\S+$
^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$
^[0-9a-fA-F]{64}$
^[0-9a-f]{128}$
^\d{4}-\d{2}-\d{2}$
^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$
^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$
^(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)(\.(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)){3}$
^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$
^\+[1-9]\d{1,14}$
^\+?\d{1,3}[- ]?\(?\d{3}\)?[- ]?\d{3}[- ]?\d{4}$
^(?:\d[ -]*?){13,16}$
^(\d{4}[- ]?){3}\d{4}$
^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$
^[A-Z]{6}[A-Z0-9]{2}([A-Z0-9]{3})?$
^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$
^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$
^https?://[^\s/$.?#].[^\s]*$
^(https?|ftp)://[^\s/$.?#]+\.[^\s]+$
^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z\d@$!%*?&]{8,}$
^s3a?://[a-z0-9.-]{3,63}/[\w!.*'()/-]*$
^arn:aws:[a-z0-9-]+:[a-z0-9-]*:\d{12}:.+$
^[A-Z][a-z]+( [A-Z][a-z]+)*$
^[\p{L}' -]{1,100}$
^\p{Lu}\p{Ll}+(-\p{Lu}\p{Ll}+)*$
^.{1,255}$
^.{0,4000}$
^\s*$
^\S(.*\S)?$
^-?\d+(\.\d+)?([eE][+-]?\d+)?$
^[1-9]\d{0,2}(,\d{3})*(\.\d{2})?$
^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$
^(AF|AX|AL|DZ|AS|AD|AO|AI|AQ|AG|AR|AM|AW|AU|AT|AZ|BS|BH|BD|BB|BY|BE|BZ)$
^(true|false|yes|no|0|1)$
^[A-Za-z0-9+/]*={0,2}$
^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$
^v\d+(\.\d+){0,2}$
^(.*)@(.*)$
^[A-Z]{3}(,[A-Z]{3})*$
^([^,]*,){5}[^,]*$
^\{"[a-z]+":.*\}$
^(?!0000)\d{4}$
^(?<year>\d{4})-\k<year>$
^(\w+)\s\1$
(a|(b(c)*)?)
^((\d{1,3}\.){3}\d{1,3})(:\d{1,5})?$
^(([01]?\d|2[0-3]):)?[0-5]?\d:[0-5]\d$
^(\d+|\d+\.\d*|\.\d+)$
^[A-Z]{1,3}-?\d{1,4}$
^\$?\d+(\.\d{1,2})?$
^/(?:[^/]+/)*[^/]*$
^\w+([.-]\w+)*@\w+([.-]\w+)*\.\w{2,3}$
^(\/[\w-]+)+\/?$
^\d{5}(-\d{4})?$
^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$
^[A-Z0-9]{1,10}[A-Z]{1,10}$
^(?:P(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$
^[\s\u200c]+|[\s\u200c]+$
""".strip().splitlines()


# From what is written about denial of service by regular expressions, and kin of these.
NEVER = r"""
(a+)+
^(a+)+$
(a|a)*
^(a|a)*$
(\w+\s?)*
^(\w+\s?)*$
(a|b|ab)*c
(a*)*b
(a|aa)+$
([a-zA-Z]+)*
^(([a-z])+.)+[A-Z]([a-z])+$
(.*a){11}
(.*a){20}
^(.*?,){11}P
(x+x+)+y
^(\w+\d?)+$
^(([a-z])+)+$
(a{1,1000}){1,1000}
^\w+([.-]?\w+)*@\w+([.-]?\w+)*(\.\w{2,3})+$
^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$
^(https?|ftp)://(-\.)?([^\s/?\.#-]+\.?)+(/[^\s]*)?$
\s*\s*\s*x
.*.*.*=
^.*.*.*=$
x*x*x*x*y
^\d+\d+\d+$
(a?){30}a{30}
a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaaaaaaaaaa
(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)b
((a+)+)+
(a+){2,}
(([a-z])*)*x
^(\s+\w*)*$
^([\s\S]*)*$
(?:(?:a*)*)*b
(\d+)*\.
^((ab)*|(a|b)*)*c$
^(?=(a+)+b).*$
(.+)+@(.+)+
^(?:.|\n)*\*(?:.|\n)*\*(?:.|\n)*$
^(?:.|[\n])*(?:[\s\S])*(?:.)*x$
(\p{L}+|[a-z]+)*9
(é+)+x
([à-ÿ]|[é-ü])*x
(?:(?:(?:(?:\d+){2,4}){2,4}){2,4}){2,4}x
<[^>]*(?:[^>]*)*(?:[^>]*)*>
^\S+@\S+\.\S+$
^.+@.+\..+$
""".strip().splitlines()


def test_there_are_enough_of_both() -> None:
    assert (len(SOON) >= 60, len(NEVER) >= 40) == (True, True)


@pytest.mark.parametrize("pattern", SOON)
def test_a_pattern_of_real_contracts_stays_legal(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize("pattern", NEVER)
def test_a_pattern_that_some_text_keeps_busy_is_refused(pattern: str) -> None:
    found = pattern_problem(pattern)

    assert found is not None
    assert found.code == "PATTERN_AMBIGUOUS"


def test_what_is_refused_names_the_places_and_what_to_write() -> None:
    assert str(pattern_problem(r"^([a-z]+\s?)*$")) == (
        "the repetition can match the same text in exponentially many ways (position 3) Let each repetition"
        " begin or end with a character that nothing else in it matches, e.g. ^[a-z]+(-[a-z]+)*$, and let"
        " adjacent parts match different characters: [^@]+@[^@]+, not .+@.+."
    )


@pytest.mark.parametrize("pattern", ["x.*y.*z", ".*x.*y.*z", ".+x.*y.*z"])
def test_the_places_are_those_of_the_pattern_as_it_is_written(pattern: str) -> None:
    found = pattern_problem(pattern)

    assert found is not None
    assert found.message.endswith(f"(position {pattern.index('x') + 2}, {pattern.index('y') + 2})")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (".*@.*", "@.*"),
        (r"\w+@x", r"\w@x"),
        ("[^]a-c]*?b", "[^]a-c]*?b"),
        (r"[^\]]+b", r"[^\]]b"),
        ("^.*a", "^.*a"),
        (".*a|b", ".*a|b"),
        (".*(a|b)", "(a|b)"),
        ("a.*", "a.*"),
    ],
)
def test_a_search_needs_no_repetition_before_it(pattern: str, found: str) -> None:
    assert search_pattern(pattern) == found


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 1_000 + "a" + "+)" * 1_000,
        "(a|" * 900 + "b" + ")*" * 900,
        "a?" * 1_900,
        "(.*)" * 900,
        "(?=a*)" * 600,
    ],
    ids=["nested", "alternatives", "optional", "loops", "lookaheads"],
)
def test_the_work_of_vetting_grows_with_the_length_of_a_pattern_alone(pattern: str) -> None:
    assert calls(lambda: pattern_problem(pattern)) < 200 * len(pattern)

    assert pattern_problem(pattern) is not None
