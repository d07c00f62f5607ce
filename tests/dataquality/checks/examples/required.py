"""Examples of the check `required`."""

from __future__ import annotations

from fakes.examples import Example

_ID = "properties: [{name: id, logicalType: string, required: true}]"
_NESTED = """
properties:
  - {name: place, logicalType: object, properties: [{name: zip, logicalType: string, required: true}]}
  - {name: tags, logicalType: array, items: {logicalType: string, required: true}}
"""
_DDL = "place struct<zip: string>, tags array<string>"
EXAMPLES = (
    Example("a value everywhere", _ID, "id string", (("a",), ("",)), "pass", ("0 of 2 rows",)),
    Example("NULLs", _ID, "id string", (("a",), (None,), (None,)), "fail", ("2 of 3 rows",)),
    Example("no rows", _ID, "id string", (), "pass", ("0 of 0 rows",)),
    Example("NaN is a value", _ID.replace("string", "number"), "id double", ((float("nan"),),), "pass"),
    Example("NULL holders", _NESTED, _DDL, ((None, None), (None, [])), "pass pass"),
    Example("NULL parts", _NESTED, _DDL, (((None,), ["a", None]),), "fail fail"),
    Example(
        "values of a map, and fields in them",
        "properties: [{name: v, logicalType: map, map: {key: {logicalType: string}, value: {required: true,"
        " logicalType: object, properties: [{name: n, logicalType: integer, required: true}]}}}]",
        "v map<string,struct<n: int>>",
        (({"a": (1,)},), ({"a": None},), ({"a": (None,)},), ({},), (None,)),
        "fail fail",
        ("1 of 5 rows", "1 of 5 rows"),
    ),
    Example("no such column", _ID, "other string", (("a",),), "error"),
)
