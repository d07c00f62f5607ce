"""What a catalog says of a table."""

from __future__ import annotations

import re

from dq.contracts.types import DataType, NotAType, parse
from dq.lake.types import from_iceberg
from dq.registry.importing.found import FoundColumn, FoundTable, Said
from dq.registry.importing.guess import foreign
from dq.registry.table import ReaderTerms, TableColumn, TableSpec


def of_spec(spec: TableSpec) -> FoundTable:
    """The table. A type that Spark does not have keeps its name."""
    columns = tuple(_column(one, spec.format) for one in spec.columns)
    partitions = tuple(_column(one, spec.format) for one in spec.partitions)
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


def _column(one: TableColumn, form: str) -> FoundColumn:
    name, _, spelled = one.spelled.partition(" ")
    kind, evidence, said = _type(spelled or one.type, form)
    own = {"": said} if said else {}
    return FoundColumn(name or one.name, kind, one.comment, one.required, evidence, own)


# Types of Iceberg that Spark reads by another name, alone and inside of others.
_ICEBERG_ONLY = re.compile(r"(?<![^<,:])(?:uuid|fixed\[\d+\])(?![^,>])", re.ASCII)


def _type(written: str, form: str) -> tuple[DataType, str, Said]:
    renamed = (
        _ICEBERG_ONLY.sub(lambda found: _spark_name(found[0]), written) if form == "iceberg" else written
    )
    try:
        return parse(renamed), f"stored as {written}" if renamed != written else "", {}
    except NotAType:
        return foreign(written)


def _spark_name(written: str) -> str:
    known = from_iceberg(written)
    return written if known is None else str(known[0])
