"""Examples of the check `unique`."""

from __future__ import annotations

from fakes.examples import Example

_ID = "properties: [{name: id, logicalType: string, unique: true}]"
_NUMBER = "properties: [{name: id, logicalType: number, unique: true}]"
_ITEM = "properties: [{name: tags, logicalType: array, items: {logicalType: string, unique: true}}]"
_NAN = float("nan")
EXAMPLES = (
    Example("once each", _ID, "id string", (("a",), ("b",), (None,), (None,)), "pass", ("0 rows",)),
    Example("three alike", _ID, "id string", (("a",), ("a",), ("a",), ("b",)), "fail", ("2 rows",)),
    Example("no rows", _ID, "id string", (), "pass"),
    Example("only NULL", _ID, "id string", ((None,), (None,)), "pass"),
    Example("NaN and zero", _NUMBER, "id double", ((_NAN,), (_NAN,), (0.0,), (-0.0,)), "fail", ("2 rows",)),
    Example("case and composition", _ID, "id string", (("é",), ("e\u0301",), ("É",)), "pass"),
    Example(
        "a field of a struct",
        "properties: [{name: s, logicalType: object,"
        " properties: [{name: n, logicalType: integer, unique: true}]}]",
        "s struct<n: bigint>",
        (((2**63 - 1,),), ((-(2**63),),), ((2**63 - 1,),), ((None,),), ((None,),), (None,), (None,)),
        "fail",
        ("1 row",),
    ),
    Example("items", _ITEM, "tags array<string>", ((["a", "a"],),), "error"),
)
