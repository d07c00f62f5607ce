"""Examples of the check `items`."""

from __future__ import annotations

from fakes.examples import Example


def _array(options: str) -> str:
    return (
        "properties: [{name: v, logicalType: array, items: {logicalType: integer},"
        f" logicalTypeOptions: {{{options}}}}}]"
    )


_MAP = (
    "properties: [{name: v, logicalType: map,"
    " map: {key: {logicalType: string}, value: {logicalType: integer}},"
    " logicalTypeOptions: {minProperties: 1}}]"
)
_OBJECT = (
    "properties: [{name: v, logicalType: object, logicalTypeOptions: {minProperties: 1, maxProperties: 1},"
    " properties: [{name: 'a{', logicalType: integer}, {name: b, physicalName: b_id, logicalType: integer}]}]"
)
_STRUCT = "v struct<`a{`: int, b_id: int, c: int>"
EXAMPLES = (
    Example(
        "within",
        _array("minItems: 1, maxItems: 2"),
        "v array<int>",
        (([1],), ([1, 2],), (None,)),
        "pass pass",
    ),
    Example(
        "outside", _array("minItems: 1, maxItems: 2"), "v array<int>", (([],), ([1, 2, None],)), "fail fail"
    ),
    Example(
        "repeated",
        _array("uniqueItems: true"),
        "v array<int>",
        (([1, 1],), ([None, None],), ([1],)),
        "fail",
        ("2 of 3 rows",),
    ),
    Example("no rows", _array("minItems: 1"), "v array<int>", (), "pass"),
    Example("an empty map", _MAP, "v map<string,int>", (({},), ({"a": 1},)), "fail", ("1 of 2 rows",)),
    Example("no array", _array("minItems: 1"), "v int", ((1,),), "error"),
    Example(
        "fields of an object", _OBJECT, _STRUCT, (((1, None, 1),), ((None, 2, None),), (None,)), "pass pass"
    ),
    Example(
        "too few and too many fields",
        _OBJECT,
        _STRUCT,
        (((1, 2, None),), ((None, None, 3),), ((None, None, None),)),
        "fail fail",
        ("2 of 3 rows", "1 of 3 rows"),
    ),
    Example(
        "a map of too many",
        "properties: [{name: v, logicalType: object, physicalType: 'map<string,int>',"
        " logicalTypeOptions: {maxProperties: 1}}]",
        "v map<string,int>",
        (({"a": 1, "b": None},), ({"a": 1},), (None,)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "arrays in arrays",
        "properties: [{name: v, logicalType: array,"
        " items: {logicalType: array, logicalTypeOptions: {minItems: 1}}}]",
        "v array<array<int>>",
        (([[1], []],), ([],), ([None],), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
)
