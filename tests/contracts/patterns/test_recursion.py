"""Repeated groups are made possessive where that means the same, and texts are bounded where it does not."""

from __future__ import annotations

import os
import re
from random import Random

import pytest

from dq.contracts.pattern import analyze_recursion, pattern_problem, search_pattern, to_spark_pattern
from dq.dataquality.answers.rows import python_pattern as in_python
from dq.dataquality.java_pattern import to_java

# The long form is benchmarks/random_tests.py.
EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "30"))
CASES = {
    "a set": ("^[ab]*$", "^[ab]*$", None),
    "one or the other": ("^(a|b)*$", "^(a|b)*+$", None),
    "words": ("^[a-z]+(-[a-z]+)*$", "^[a-z]+(-[a-z]+)*+$", None),
    "one in the other": ("^(a(b(c)*)*)*$", "^(a(b(c)*+)*+)*+$", None),
    "a lazy one": ("^(?:ab|c)*?d$", "^(?:ab|c)*+d$", None),
    "at least two": ("^(?:ab|c){2,}d$", "^(?:ab|c){2,}+d$", None),
    "a shorter way": ("^(a|ab)*$", None, 689),
    "what follows may be a turn": (r"^(\d-)*\d$", None, 965),
    "a lazy one inside": ("^(?:ab??)*$", None, 965),
    "nothing first": ("^(?:a(?:|b))*$", None, 536),
    "the end of a word": (r"(a|-)*\b", None, 804),
    "the begin behind it": ("(a|b)*^c", None, 804),
    "counted turns": (r"^(\.(1|12)){3}$", None, None),
    "many counted turns": ("^(a|ab){5000}$", None, 689),
    "signs of two units": ("^.{0,9000}$", None, 5_000),
}


@pytest.mark.parametrize(("pattern", "possessive", "longest"), CASES.values(), ids=CASES)
def test_a_group_is_possessive_only_where_no_turn_can_be_made_in_another_way(
    pattern: str, possessive: str | None, longest: int | None
) -> None:
    made = to_java(pattern)

    assert made.longest == longest
    if possessive is None:
        assert analyze_recursion(search_pattern(pattern)).possessive == {}
    else:
        assert made.text == possessive.replace("$", r"\z")


def test_in_sql_lazy_repetitions_stay_since_what_is_found_matters() -> None:
    assert to_spark_pattern("^(a|b)*$") == ("^(a|b)*+$", None)
    assert to_spark_pattern("^(a|b)*?$") == ("^(a|b)*?$", 804)
    assert to_spark_pattern("(?i)^(a|b)*$") == ("(?i)^(a|b)*$", 804)


ATOMS = ("a", "b", "c", "[ab]", "[^a]", "ab", "-")


def drawn(random: Random, depth: int = 3) -> str:
    if depth == 0 or random.random() < 0.3:
        return random.choice(ATOMS) + random.choice(("", "", "", "*", "+", "?", "{2}", "??"))
    kind = random.random()
    parts = [drawn(random, depth - 1) for _ in range(random.randint(1, 3))]
    if kind < 0.35:
        return "".join(parts)
    body = "|".join(parts) + ("|" if random.random() < 0.1 else "")
    return f"({body})" + random.choice(("", "*", "+", "?", "*", "{2,}", "{1,3}", "*?", "+?"))


def test_what_is_possessive_finds_the_same_texts() -> None:
    random = Random(7)
    compared = possessive = 0
    while possessive < EXAMPLES:
        written = random.choice(("^", "")) + drawn(random) + drawn(random) + random.choice(("$", ""))
        if pattern_problem(written) is not None or not analyze_recursion(search_pattern(written)).possessive:
            continue
        possessive += 1
        plain, made = re.compile(written), in_python(to_java(written).text)
        assert made is not None
        in_query = in_python(to_spark_pattern(written)[0])
        assert in_query is not None
        for _ in range(60):
            text = "".join(random.choice("aabbc-") for _ in range(random.randint(0, 9)))
            compared += 1
            found, wanted = made.search(text), plain.search(text)
            assert (found is None) == (wanted is None), (written, made.pattern, text)
            asked = in_query.search(text)
            assert (asked and asked.group()) == (wanted and wanted.group()), (written, text)
    assert compared == 60 * EXAMPLES
