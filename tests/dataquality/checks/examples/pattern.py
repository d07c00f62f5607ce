"""Examples of the check `pattern`."""

from __future__ import annotations

from fakes.examples import Example


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
