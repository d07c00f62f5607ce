"""Files at the limits, where a cost that is not linear shows."""

from __future__ import annotations

from collections.abc import Callable

HEAD = "apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n"
LAKE = HEAD + "servers: [{server: a, type: glue, account: '1', database: d}]\n"
TABLE = "schema:\n  - name: t\n    properties:\n"
MANY = 40_000


def _repeated(line: str, count: int = MANY) -> str:
    """The line so many times, `#` in it being its number."""
    return "".join(line.replace("#", str(number)) for number in range(count))


def _property(value: str) -> str:
    return LAKE + "schema: [{name: t, properties: [{name: a, logicalType: string, " + value + "}]}]\n"


def _laughs() -> str:
    lines = ["a: &a [x, x, x, x, x, x, x, x]\n"]
    for above, name in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{above}'] * 8)}]\n")
    return "".join(lines)


def large() -> dict[str, Callable[[], str]]:
    """Name -> what makes the text, of at most 5 MB."""
    element = "  - {property: latency, value: 1, unit: h, element: t.colum_#}\n"
    return {
        "5 MB of columns": lambda: (
            LAKE
            + TABLE
            + _repeated("      - {name: c#, logicalType: string, physicalType: string}\n", 70_000)
        ),
        "one name for all columns": lambda: LAKE + TABLE + _repeated("      - {name: Column}\n"),
        "elements that are not there": lambda: (
            HEAD + TABLE + _repeated("      - {name: column_#}\n") + "slaProperties:\n" + _repeated(element)
        ),
        "references that are not there": lambda: (
            HEAD + TABLE + _repeated("      - {name: column_#, relationships: [{to: t.colum_#}]}\n")
        ),
        "unknown keys": lambda: HEAD + _repeated("verzion#: 1\n"),
        "unknown keys in columns": lambda: HEAD + TABLE + _repeated("      - {name: a, requierd: true}\n"),
        "wrong types": lambda: HEAD + "tags: [" + "1, " * 200_000 + "1]\n",
        "faulty service levels": lambda: (
            HEAD
            + "slaProperties:\n"
            + _repeated("  - {id: a/b, property: latency, value: x, unit: parsec}\n")
        ),
        "twin keys": lambda: HEAD + "name: a\n" * 300_000,
        "one long text": lambda: HEAD + "name: " + "a" * 4_900_000 + "\n",
        "one long number": lambda: HEAD + "name: " + "1" * 4_900_000 + "\n",
        "one long text, often": lambda: (
            LAKE + "name: &a " + "A" * 4_000_000 + "\n" + TABLE + "      - {name: *a}\n" * 9_000
        ),
        "one long type": lambda: _property("physicalType: 'struct<" + "a:int," * 700_000 + "a:int>'"),
        "one long pattern": lambda: _property("logicalTypeOptions: {pattern: '" + "(a+)" * 1_000_000 + "'}"),
        "one long query": lambda: (
            HEAD
            + "schema: [{name: t, quality: [{type: sql, mustBe: 0, query: 'select "
            + "(/**/" * 900_000
            + "'}]}]\n"
        ),
        "brackets": lambda: "[" * 2_000_000,
        "billion laughs": _laughs,
        "deep values": lambda: (
            HEAD + "customProperties: [{property: a, value: " + "[" * 60 + "]" * 60 + "}]\n"
        ),
        "deep properties": lambda: (
            HEAD
            + "schema: [{name: t, properties: ["
            + "{name: a, logicalType: object, properties: [" * 28
            + "]}" * 28
            + "]}]\n"
        ),
        "anchors": lambda: (
            HEAD + "customProperties:\n" + _repeated("  - &a# {property: a, value: 1}\n", 100_000)
        ),
        "merge keys": lambda: (
            HEAD + "price: &p {priceAmount: 1}\nroles:\n" + "  - {<<: *p, role: a}\n" * 4_000
        ),
    }
