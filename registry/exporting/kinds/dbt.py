"""dbt: the objects as tables of a source, with the tests that dbt has for them."""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.yaml.writing import quoted
from dq.registry.exporting.exported import Exported, ExportKind, columns


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """A `sources.yml`. `required`, `unique` and `enum` of columns become tests; other rules stay dq's."""
    lines = ["version: 2", "sources:", f"  - name: {quoted(contract.domain or contract.id)}"]
    lines.append("    tables:")
    for one in objects:
        lines += _table(one)
    return Exported("\n".join(lines) + "\n")


def _table(one: SchemaObject) -> Iterator[str]:
    yield f"      - name: {quoted(one.column)}"
    if one.description:
        yield f"        description: {quoted(one.description)}"
    yield "        columns:"
    key = one.primary_key()
    for prop, kind in columns(one):
        yield f"          - name: {quoted(prop.column)}"
        yield f"            data_type: {quoted(str(kind))}"
        if prop.description:
            yield f"            description: {quoted(prop.description)}"
        tests = list(_tests(prop, alone=key == [prop]))
        if tests:
            yield "            data_tests:"
            yield from (f"              {line}" for line in tests)


def _tests(prop: Property, *, alone: bool) -> Iterator[str]:
    if prop.required or prop.primary_key:
        yield "- not_null"
    if prop.unique or alone:
        yield "- unique"
    if prop.enum:
        values = ", ".join(quoted(str(one.value)) for one in prop.enum)
        yield "- accepted_values:"
        yield f"    values: [{values}]"
        if not all(isinstance(one.value, str) for one in prop.enum):
            yield "    quote: false"


KIND = ExportKind("dbt", "a source of dbt, with its tests (sources.yml)", write)
