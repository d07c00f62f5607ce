"""Examples of the check `columns`."""

from __future__ import annotations

from fakes.examples import Example


def _typed(kind: str) -> str:
    return f"properties: [{{name: v, physicalType: '{kind}'}}]"


_NESTED = """
properties:
  - name: place
    logicalType: object
    properties:
      - {name: zip, logicalType: string}
      - {name: tags, logicalType: array, items: {logicalType: integer}}
  - {name: prices, logicalType: map, map: {key: {logicalType: string}, value: {logicalType: number}}}
"""
_DDL = "place struct<zip: string, tags: array<bigint>>, prices map<string, double>"
_WHOLE = "properties: [{name: v, logicalType: integer}]"
EXAMPLES = (
    Example("exact", _typed("decimal(18, 2)"), "v decimal(18,2)", (), "pass", ("decimal(18,2)",)),
    Example("another scale", _typed("decimal(18, 2)"), "v decimal(18,3)", (), "fail", ("decimal(18,3)",)),
    Example("case of the name", _typed("int"), "V int", (), "pass"),
    Example("missing", _typed("int"), "w int", (), "fail", ("missing",)),
    Example("a logical type", "properties: [{name: v, logicalType: integer}]", "v smallint", (), "pass"),
    Example("cannot hold it", "properties: [{name: v, logicalType: integer}]", "v double", (), "fail"),
    Example("whole decimals", _WHOLE, "v decimal(20,0)", (), "pass"),
    Example("broken decimals", _WHOLE, "v decimal(20,2)", (), "fail", ("decimal(20,2)",)),
    Example("varchar", _typed("varchar(3)"), "v string", (), "pass"),
    Example("without zone", _typed("timestamp"), "v timestamp_ntz", (), "fail"),
    Example("nested", _NESTED, _DDL, (), "pass pass pass pass pass pass pass"),
    Example(
        "a text as an object", _NESTED, "place string", (), "pass error error skipped fail skipped skipped"
    ),
    Example("struct as text", _typed("struct<a:int,b:string>"), "v struct<b: string, a: int>", (), "pass"),
    Example("a field of another type", _typed("struct<a:int>"), "v struct<a: bigint>", (), "fail"),
)
