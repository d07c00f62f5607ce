"""Examples of the check `vector`."""

from __future__ import annotations

from fakes.examples import Example


def _vector(options: str) -> str:
    return f"properties: [{{name: v, logicalType: vector, logicalTypeOptions: {{dimensions: 2{options}}}}}]"


_DDL = "v array<float>"
_NAN = float("nan")
EXAMPLES = (
    Example("as long as promised", _vector(""), _DDL, (([1.0, 2.0],), (None,)), "pass", ("0 of 2 rows",)),
    Example("shorter and longer", _vector(""), _DDL, (([1.0],), ([1.0, 2.0, 3.0],), ([],)), "fail"),
    Example("with gaps", _vector(""), _DDL, (([None, _NAN],),), "pass"),
    Example("no rows", _vector(""), _DDL, (), "pass", ("0 of 0 rows",)),
    Example("texts", _vector(""), "v array<string>", ((["a", "b"],),), "error"),
    Example("no array", _vector(""), "v string", (("[1,2]",),), "error"),
    Example("floats", _vector(", elementType: float32"), _DDL, (), "pass pass", ("0 of 0 rows", "float")),
    Example("wider floats", _vector(", elementType: float32"), "v array<double>", (), "pass fail"),
    Example("unknown type", _vector(", elementType: int4"), _DDL, (), "pass error"),
    Example(
        "bytes",
        _vector(", elementType: uint8"),
        "v array<smallint>",
        (([0, 255],), ([0, 256],), ([-1, None],), (None,)),
        "pass pass fail",
        ("0 of 4 rows", "smallint", "2 of 4 rows"),
    ),
    Example(
        "bits", _vector(", elementType: binary"), "v array<boolean>", (([True, None],),), "pass pass pass"
    ),
    Example(
        "bits as numbers",
        _vector(", elementType: binary"),
        "v array<tinyint>",
        (([0, 2],),),
        "pass pass fail",
    ),
    Example(
        "normalized",
        _vector(", normalized: true"),
        _DDL,
        (([0.6, 0.8],), ([-1.0, 0.0],), (None,)),
        "pass pass",
        ("0 of 3 rows", "0 of 3 rows"),
    ),
    Example(
        "not normalized",
        _vector(", normalized: true"),
        _DDL,
        (([0.0, 0.0],), ([1.0, 1.0],), ([_NAN, 1.0],), ([None, 1.0],), ([3e38, 3e38],)),
        "pass fail",
        ("0 of 5 rows", "5 of 5 rows"),
    ),
    Example(
        "in a struct",
        "properties: [{name: s, logicalType: object, properties:"
        " [{name: v, logicalType: vector, logicalTypeOptions: {dimensions: 1, normalized: true}}]}]",
        "s struct<v: array<double>>",
        ((([1.0],),), (([0.5],),), (None,)),
        "pass fail",
        ("0 of 3 rows", "1 of 3 rows"),
    ),
)
