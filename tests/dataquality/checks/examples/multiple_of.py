"""Examples of the check `multiple_of`."""

from __future__ import annotations

from decimal import Decimal

from fakes.examples import Example


def _step(kind: str, step: str, more: str = "") -> str:
    return f"properties: [{{name: v, logicalType: {kind}{more}, logicalTypeOptions: {{multipleOf: {step}}}}}]"


EXAMPLES = (
    Example("floats", _step("number", "0.01"), "v double", ((0.07,), (-1.1,), (0.0,), (None,)), "pass"),
    Example(
        "floats between",
        _step("number", "0.01"),
        "v double",
        ((1.005,), (float("nan"),), (float("inf"),), (1e300,)),
        "fail",
        ("4 of 4 rows",),
    ),
    Example(
        "integers",
        _step("integer", "5.0"),
        "v bigint",
        ((-10,), (0,), (9223372036854775807,)),
        "fail",
        ("1 of 3 rows",),
    ),
    Example(
        "decimals of many digits",
        _step("number", "10"),
        "v decimal(38,0)",
        ((Decimal(10**30),), (Decimal(10**30 + 1),)),
        "fail",
        ("1 of 2 rows",),
    ),
    Example("narrow floats", _step("number", "0.01"), "v float", ((0.07,), (-1.1,), (None,)), "pass"),
    Example(
        "narrow floats between",
        _step("number", "0.01"),
        "v float",
        ((1.005,), (float("nan"),), (float("-inf"),), (1e30,)),
        "fail",
        ("4 of 4 rows",),
    ),
    Example(
        "decimals",
        _step("number", "0.05", ", physicalType: 'decimal(9,2)'"),
        "v decimal(9,2)",
        ((Decimal("1.05"),), (Decimal("-0.10"),), (Decimal("1.02"),), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
    Example(
        "values of a map",
        "properties: [{name: v, logicalType: map, map: {key: {logicalType: string},"
        " value: {logicalType: integer, logicalTypeOptions: {multipleOf: 5}}}}]",
        "v map<string,int>",
        (({"a": 5, "b": None},), ({"a": 4},), ({},), (None,)),
        "fail",
        ("1 of 4 rows",),
    ),
    Example("no rows", _step("integer", "5.0"), "v int", (), "pass"),
    Example("no step", _step("integer", "0.0"), "v int", ((1,),), "error"),
)
