"""TABLE: types of columns as Glue writes them, against Spark's DDL, which our specifications hold.

Source: AWS, "Data types in Amazon Athena" and "AWS Glue data types"; Hive's DDL.
"""

from __future__ import annotations

from dataclasses import replace

from dq.contracts.types import DataType, NotAType, parse

# Spark's type -> what Hive and Athena read in its place. The column's own parameters keep the exact one.
_READ_AS = {"timestamp_ntz": "timestamp"}
# No engine on this catalog has anything for these.
_UNKNOWN = frozenset({"variant", "interval"})
_LONGEST = {"char": 255, "varchar": 65535}
NESTED = frozenset({"array", "map", "struct", "uniontype", "binary"})
"""What no partition key can be."""

EXACT_TYPE = "dq.type"
"""The parameter of a column that keeps the type of the contract, where Glue's is another."""

SPELLING = "dq.spelling"
"""The parameter of a column that keeps its name and type as the keys of JSON are written."""


def glue_type(text: str) -> str:
    """The type as Glue and Athena read it. Raises NotAType, with the reason, for one that they have not."""
    return str(_translated(parse(text)))


def _translated(kind: DataType) -> DataType:
    if kind.name in _UNKNOWN:
        raise NotAType(f"neither Glue nor Athena knows {kind.name}")
    longest = _LONGEST.get(kind.name)
    if longest is not None and kind.numbers and kind.numbers[0] > longest:
        raise NotAType(f"{kind} is longer than the {longest} characters of Hive")
    if longest is not None and not kind.numbers:
        raise NotAType(f"{kind.name} needs a length, such as {kind.name}(20)")
    name = _READ_AS.get(kind.name, kind.name)
    return replace(kind, name=name, parts=tuple(_translated(part) for part in kind.parts))


def spark_type(text: str, exact: str | None = None) -> str:
    """The type as our specifications write it: `exact`, if that is what Glue's stands for.

    A type that nobody knows stays as it is written, in lower case.
    """
    try:
        if exact is not None and glue_type(exact) == text:
            return exact.lower()
        return str(parse(text)).lower()
    except NotAType:
        return text.lower()


def fault_of(text: str) -> str | None:
    """Why Athena would not read a column of this type; None when it would. Hive's spellings only."""
    try:
        kind = parse(text)
        plain = str(_translated(kind))
    except NotAType as error:
        return str(error)
    if text != text.lower():
        return "Glue writes types in lower case"
    if any(character.isspace() for character in text):
        return "Glue writes types without spaces"
    # `integer` and a bare `decimal` are Hive's own.
    if plain != text and text not in ("integer", "decimal"):
        return f"Glue writes it as {plain}"
    return None
