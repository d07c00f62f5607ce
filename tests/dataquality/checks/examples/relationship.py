"""Examples of the check `relationship`."""

from __future__ import annotations

from fakes.examples import Example

_STAFF = """
relationships: [{from: [t.boss, t.unit], to: [t.id, t.unit]}]
properties:
  - {name: id, logicalType: integer}
  - {name: unit, logicalType: string}
  - {name: boss, logicalType: integer}
"""


def _leads(to: str, kind: str = "integer") -> str:
    return (
        "properties: [{id: id_field, name: id, physicalName: nr, logicalType: integer},"
        f" {{name: boss, logicalType: {kind}, relationships: [{{to: {to}}}]}}]"
    )


_DDL = "nr bigint, boss int"
_UNIT = "id int, unit string, boss int"
EXAMPLES = (
    Example("kept, and NULL", _leads("t.id"), _DDL, ((1, 1), (2, 1), (3, None)), "pass", ("0 rows",)),
    Example("no such key", _leads("t.id"), _DDL, ((1, 1), (None, 2), (None, 2)), "fail", ("2 rows",)),
    Example("no rows", _leads("t.id"), _DDL, (), "pass", ("0 rows",)),
    Example("only NULL", _leads("t.id"), _DDL, ((None, None),), "pass", ("0 rows",)),
    Example("two columns", _STAFF, _UNIT, ((1, "a", 1), (2, "b", 2), (3, "b", None)), "pass"),
    Example(
        "two columns, broken",
        _STAFF,
        _UNIT,
        ((1, "a", 1), (2, "b", 1), (2, None, 1), (3, "", 4)),
        "fail",
        ("2 rows",),
    ),
    Example("of another type", _leads("t.id", "string"), "nr bigint, boss string", ((1, "1"),), "error"),
    Example("a column less", _leads("t.id"), "boss int", ((1,),), "error"),
    Example("no such column", _leads("t.nr_"), _DDL, ((1, 1),), "error"),
    Example(
        "outside of the contract", _leads("'other.odcs.yaml#/schema/a/properties/b'"), _DDL, ((1, 9),), ""
    ),
    Example("another contract's object", _leads("people.id"), _DDL, ((1, 9),), ""),
)
