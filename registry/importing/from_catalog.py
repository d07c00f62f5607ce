"""What a catalog says of a table."""

from __future__ import annotations

from dq.contracts.types import NotAType, parse
from dq.registry.importing.found import FoundColumn, FoundTable
from dq.registry.importing.guess import STRING
from dq.registry.table import ReaderTerms, TableColumn, TableSpec


def of_spec(spec: TableSpec) -> FoundTable:
    """The table. A type that Spark does not have is a text."""
    columns = tuple(_column(one) for one in spec.columns)
    partitions = tuple(_column(one) for one in spec.partitions)
    return FoundTable(
        spec.name,
        columns,
        partitions,
        spec.location,
        spec.format,
        spec.description,
        reader=_reader(spec.reader),
    )


def _reader(terms: ReaderTerms) -> tuple[tuple[str, object], ...]:
    """How its texts are written, in the words of a server's `csv`."""
    made: dict[str, object] = {}
    for name, text in terms:
        if name == "header":
            made[name] = text == "true"
        elif name == "quote":
            made[name] = text or "none"
        elif text:
            made["nullText" if name == "null_text" else name] = text
    return tuple(made.items())


def _column(one: TableColumn) -> FoundColumn:
    name, _, spelled = one.spelled.partition(" ")
    try:
        kind, evidence = parse(spelled or one.type), ""
    except NotAType:
        kind, evidence = STRING, f"declared as {one.type}, which Spark does not have"
    return FoundColumn(name or one.name, kind, one.comment, one.required, evidence)
