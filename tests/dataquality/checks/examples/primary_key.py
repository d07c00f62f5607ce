"""Examples of the check `primary_key`."""

from __future__ import annotations

from fakes.examples import Example

_KEY = """
properties:
  - {name: day, logicalType: date, primaryKey: true, primaryKeyPosition: 2}
  - {name: id, logicalType: integer, primaryKey: true, primaryKeyPosition: 1}
"""
_DDL = "id bigint, day string"
EXAMPLES = (
    Example("once each", _KEY, _DDL, ((1, "a"), (1, "b"), (2, "a")), "pass pass pass"),
    Example("repeated", _KEY, _DDL, ((1, "a"), (1, "a"), (1, "a")), "pass pass fail"),
    Example(
        "NULL twice",
        _KEY,
        _DDL,
        ((1, None), (1, None)),
        "fail pass pass",
        ("2 of 2 rows", "0 of 2 rows", "0 rows"),
    ),
    Example("no rows", _KEY, _DDL, (), "pass pass pass"),
    Example("a column less", _KEY, "id bigint", ((1,),), "error pass error"),
    Example("no key", "properties: [{name: id, logicalType: integer}]", "id bigint", ((1,),), ""),
)
