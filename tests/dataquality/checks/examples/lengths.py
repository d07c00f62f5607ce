"""Examples of the check `lengths`."""

from __future__ import annotations

from fakes.examples import Example

_TEXT = "properties: [{name: v, logicalType: string, logicalTypeOptions: {minLength: 1, maxLength: 2}}]"
_VARCHAR = "properties: [{name: v, logicalType: string, physicalType: varchar(2)}]"
_FIELD = (
    "properties: [{name: v, logicalType: object,"
    " properties: [{name: zip, logicalType: string, logicalTypeOptions: {maxLength: 5}}]}]"
)
EXAMPLES = (
    Example("within", _TEXT, "v string", (("a",), ("🙂🙂",), (None,)), "pass pass"),
    Example(
        "outside",
        _TEXT,
        "v string",
        (("",), ("abc",), ("e\u0301x",)),
        "fail fail",
        ("1 of 3 rows", "2 of 3 rows"),
    ),
    Example("no rows", _TEXT, "v string", (), "pass pass"),
    Example("varchar", _VARCHAR, "v string", (("ab",), ("abc",)), "fail", ("1 of 2 rows",)),
    Example("field of a struct", _FIELD, "v struct<zip: string>", ((("123456",),), (None,)), "fail"),
    Example(
        "items of an array, keys of a map",
        "properties: [{name: v, logicalType: array, items: {logicalType: string, logicalTypeOptions:"
        " {minLength: 1}}}, {name: m, logicalType: map, map: {value: {logicalType: integer},"
        " key: {logicalType: string, logicalTypeOptions: {maxLength: 1}}}}]",
        "v array<string>, m map<string,int>",
        ((["a", None], {"a": 1}), (["a", ""], {"ab": 1}), ([], {}), (None, None)),
        "fail fail",
        ("1 of 4 rows", "1 of 4 rows"),
    ),
    Example("a number instead", _TEXT, "v int", ((1,),), "error error"),
)
