"""dbt: the objects as tables of a source, with the tests that dbt has for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dq.contracts.escaping import dbt_name, is_dbt_name, is_dbt_value, is_plain_name, jinja
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.yaml.insertion import block, quoted
from dq.registry.exporting import Exported, ExportKind, Losses, columns, words


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """A `sources.yml`. `required`, `unique` and `enum` of columns become tests; other rules stay dq's.

    Raises UsageError for a name that dbt would evaluate.
    """
    losses = Losses()
    source = contract.domain or contract.id
    if not is_dbt_name(source):
        source = dbt_name(contract.id)
        losses.note(
            contract.id, f"the domain {contract.domain!r}, which is no name for dbt,", "the contract's id"
        )
    lines = ["version: 2", "sources:", f"  - name: {quoted(source)}"]
    if not is_plain_name(source):
        lines.append("    quoting: {schema: true}")
    lines.append("    tables:")
    for one in objects:
        lines += _table(one, losses)
        key = one.primary_key()
        if key:
            tests = "the tests not_null and unique" if len(key) == 1 else "the test not_null of each column"
            losses.note(one.name, f"the primary key {', '.join(prop.column for prop in key)}", tests)
    return Exported("\n".join(lines) + "\n", losses.all())


def _table(one: SchemaObject, losses: Losses) -> Iterator[str]:
    yield f"      - name: {quoted(dbt_name(one.column))}"
    if not is_plain_name(one.column):
        yield "        quoting: {identifier: true}"
    if one.description:
        yield f"        description: {_text(one.name, 'the description', one.description, losses)}"
    yield "        columns:"
    key = one.primary_key()
    for prop, kind in columns(one):
        where = f"{one.name}.{prop.column}"
        yield f"          - name: {quoted(dbt_name(prop.column, spaces=True))}"
        if not is_plain_name(prop.column):
            yield "            quote: true"
        yield f"            data_type: {_text(where, 'the type', str(kind), losses)}"
        if prop.description:
            yield f"            description: {_text(where, 'the description', prop.description, losses)}"
        tests = list(_tests(where, prop, losses, alone=key == [prop]))
        if tests:
            yield "            data_tests:"
            yield from (f"              {line}" for line in tests)


def _text(where: str, what: str, text: str, losses: Losses) -> str:
    inert = jinja(text)
    if inert != text:
        losses.note(where, f"{what}, in which Jinja would be evaluated,", "text with spaces in its brackets")
    return quoted(inert)


def _tests(where: str, prop: Property, losses: Losses, *, alone: bool) -> Iterator[str]:
    if prop.required or prop.primary_key:
        yield "- not_null"
    if prop.unique or alone:
        yield "- unique"
    if prop.enum:
        values = [one.value for one in prop.enum]
        texts = all(isinstance(value, str) and is_dbt_value(value) for value in values)
        if not texts and not _same_literals(values):
            losses.leave(where, "enum, whose values dbt would not write as they are,")
            return
        yield "- accepted_values:"
        yield "    values:"
        yield from block(values, "      ")
        if not texts:
            yield "    quote: false"


def _same_literals(values: Sequence[object]) -> bool:
    """Whether all are numbers or all are booleans, whose literals SQL and YAML share."""
    booleans = [isinstance(value, bool) for value in values]
    return all(booleans) or (not any(booleans) and all(isinstance(value, int | float) for value in values))


SAYS = words("description required unique primaryKey enum", objects="description")
KIND = ExportKind("dbt", "a source of dbt, with its tests (sources.yml)", write, SAYS, comment="#")
