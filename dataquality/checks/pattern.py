"""Texts match the `pattern` of their property.

Why: An identifier of another form joins with nothing.
Bad: `pattern: '^[A-Z]{2}$'` and a row with `de`.
Good: A row with `DE`.
Nulls: NULL does not break it; the empty text must match as any other. The pattern is searched, not
anchored, as in JSON Schema: write `^` and `$` for the whole text.
Mend: Correct the value at its source. A pattern that Java's regex and ECMA-262 do not read alike is an
error: write it with what they share; a reference back to a group that is optional, repeated, in an
alternative or in a lookaround is one. Java calls itself for each turn of a repeated group: where turns
cannot be told apart, as in `^([ab]-|[ab])*$`, a text of many hundred characters is an error, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, SchemaObject
from dq.dataquality.clauses.clause import Clause, of_option
from dq.dataquality.clauses.kind import CheckKind, Example
from dq.dataquality.clauses.quality_rule import matching
from dq.dataquality.model.column import columns


def clauses(_contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for prop, column in columns(one):
        options = prop.logical_type_options
        if options and options.pattern is not None:
            made = of_option("pattern", one, prop, column, "pattern", f"matches {options.pattern}")
            yield matching(made, column, options.pattern)


def _text(pattern: str) -> str:
    return f"properties: [{{name: v, logicalType: string, logicalTypeOptions: {{pattern: '{pattern}'}}}}]"


_NBSP = "\u00a0"
EXAMPLES = (
    Example("anchored", _text("^[A-Z]{2}$"), "v string", (("DE",), (None,)), "pass", ("0 of 2 rows",)),
    Example(
        "anchored, broken",
        _text("^[A-Z]{2}$"),
        "v string",
        (("de",), ("DEU",), ("",), ("DE\n",)),
        "fail",
        ("4 of 4 rows",),
    ),
    Example("a search", _text("[0-9]"), "v string", (("a1b",), ("ab",)), "fail", ("1 of 2 rows",)),
    Example("no rows", _text("^a$"), "v string", (), "pass"),
    Example(
        "escapes and quotes",
        _text(r"^\d+\.\d{2} ''\$''$"),
        "v string",
        (("10.00 '$'",), ("10x00 '$'",)),
        "fail",
        ("1 of 2 rows",),
    ),
    Example(
        "white space of Unicode",
        _text(r"^\s[^\s]\S$"),
        "v string",
        ((f"{_NBSP}ab",), (f"a{_NBSP}b",)),
        "fail",
        ("1 of 2 rows",),
    ),
    Example(
        "dot and next line",
        _text("^.$"),
        "v string",
        (("\u0085",), ("🙂",), ("\n",)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "word boundary of ASCII", _text(r"\bb"), "v string", (("éb",), ("ab",)), "fail", ("1 of 2 rows",)
    ),
    Example(
        "values of a map",
        "properties: [{name: v, logicalType: map, map: {key: {logicalType: string},"
        " value: {logicalType: string, logicalTypeOptions: {pattern: '^a'}}}}]",
        "v map<string,string>",
        (({"x": "a", "y": None},), ({"x": "b"},), ({},), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
    Example("of Java alone", _text(r"\Aa\Z"), "v string", (("a",),), "error"),
    Example("a number instead", _text("^1$"), "v int", ((1,),), "error"),
)
CHECK = CheckKind("pattern", __doc__, clauses, EXAMPLES)
