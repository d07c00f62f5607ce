"""dbt: the objects as tables of a source, with the tests that dbt has for them."""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.yaml.writing import block, quoted
from dq.registry.exporting.exported import Exported, ExportKind, Losses, columns
from dq.registry.exporting.unsaid import words


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """A `sources.yml`. `required`, `unique` and `enum` of columns become tests; other rules stay dq's."""
    lines = ["version: 2", "sources:", f"  - name: {quoted(contract.domain or contract.id)}"]
    lines.append("    tables:")
    losses = Losses()
    for one in objects:
        lines += _table(one)
        key = one.primary_key()
        if key:
            tests = "the tests not_null and unique" if len(key) == 1 else "the test not_null of each column"
            losses.note(one.name, f"the primary key {', '.join(prop.column for prop in key)}", tests)
    return Exported("\n".join(lines) + "\n", losses.all())


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
        values = [one.value for one in prop.enum]
        texts = all(isinstance(value, str) for value in values)
        yield "- accepted_values:"
        yield "    values:"
        yield from block(values, "      ")
        if not texts:
            yield "    quote: false"


SAYS = words("description required unique primaryKey enum", objects="description")
KIND = ExportKind("dbt", "a source of dbt, with its tests (sources.yml)", write, SAYS, comment="#")
