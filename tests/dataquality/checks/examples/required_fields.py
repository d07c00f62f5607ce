"""Examples of the check `required_fields`."""

from __future__ import annotations

from fakes.examples import Example

_PLACE = """
properties:
  - name: place
    logicalType: object
    logicalTypeOptions: {required: [zip, town]}
    properties:
      - {name: zip, logicalType: string}
      - {name: town, physicalName: town_name, logicalType: string}
"""
_STRUCT = "place struct<zip: string, town_name: string>"
_ITEMS = """
properties:
  - name: lines
    logicalType: array
    items:
      logicalType: object
      logicalTypeOptions: {required: [sku]}
      properties: [{name: sku, logicalType: string}]
"""
_MAP = (
    "properties: [{name: v, logicalType: object, physicalType: 'map<string,int>',"
    ' logicalTypeOptions: {required: [a, "it\'s"]}}]'
)
EXAMPLES = (
    Example("all there", _PLACE, _STRUCT, ((("1", ""),), (None,)), "pass", ("0 of 2 rows",)),
    Example("a field is NULL", _PLACE, _STRUCT, ((("1", None),), ((None, None),)), "fail", ("2 of 2 rows",)),
    Example("no rows", _PLACE, _STRUCT, (), "pass", ("0 of 0 rows",)),
    Example("only NULL", _PLACE, _STRUCT, ((None,),), "pass"),
    Example("no such field", _PLACE, "place struct<zip: string>", ((("1",),),), "error"),
    Example(
        "in the items of an array",
        _ITEMS,
        "lines array<struct<sku: string>>",
        (([("a",)],), ([("a",), (None,)],), ([],), ([None],), (None,)),
        "fail",
        ("1 of 5 rows",),
    ),
    Example("keys of a map", _MAP, "v map<string,int>", (({"a": 1, "it's": None},), (None,)), "pass"),
    Example("a key less", _MAP, "v map<string,int>", (({"a": 1},), ({},)), "fail", ("2 of 2 rows",)),
)
