"""dbt: the objects as tables of a source, with dbt's built-in tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dq.contracts.escaping import dbt_name, is_dbt_name, is_dbt_value, is_plain_name, jinja
from dq.contracts.model import Contract, Property, SchemaObject
from dq.contracts.yaml.portable import block, quoted
from dq.registry.exporting import Exported, ExportKind, LossReport, columns, supported_keys


def write(contract: Contract, objects: list[SchemaObject]) -> Exported:
    """Return a `sources.yml`. `required`, `unique` and `enum` of columns become tests; other rules do not.

    Raises UsageError for a name that dbt would evaluate.
    """
    losses = LossReport()
    source = contract.domain or contract.id
    if not is_dbt_name(source):
        source = dbt_name(contract.id)
        losses.note(
            contract.id,
            f"the domain {contract.domain!r}, which is not a valid dbt name,",
            "the contract's id",
        )
    lines = ["version: 2", "sources:", f"  - name: {quoted(source)}"]
    if not is_plain_name(source):
        lines.append("    quoting: {schema: true}")
    lines.append("    tables:")
    for schema_object in objects:
        lines += _table(schema_object, losses)
        key = schema_object.primary_key()
        if key:
            tests = "the tests not_null and unique" if len(key) == 1 else "the test not_null of each column"
            losses.note(
                schema_object.name, f"the primary key {', '.join(prop.column for prop in key)}", tests
            )
    return Exported("\n".join(lines) + "\n", losses.all())


def _table(schema_object: SchemaObject, losses: LossReport) -> Iterator[str]:
    yield f"      - name: {quoted(dbt_name(schema_object.column))}"
    if not is_plain_name(schema_object.column):
        yield "        quoting: {identifier: true}"
    if schema_object.description:
        yield (
            "        description: "
            f"{_text(schema_object.name, 'the description', schema_object.description, losses)}"
        )
    yield "        columns:"
    key = schema_object.primary_key()
    for prop, kind in columns(schema_object):
        path = f"{schema_object.name}.{prop.column}"
        yield f"          - name: {quoted(dbt_name(prop.column, spaces=True))}"
        if not is_plain_name(prop.column):
            yield "            quote: true"
        yield f"            data_type: {_text(path, 'the type', str(kind), losses)}"
        if prop.description:
            yield f"            description: {_text(path, 'the description', prop.description, losses)}"
        tests = list(_tests(path, prop, losses, sole_key=key == [prop]))
        if tests:
            yield "            data_tests:"
            yield from (f"              {line}" for line in tests)


def _text(path: str, label: str, text: str, losses: LossReport) -> str:
    inert = jinja(text)
    if inert != text:
        losses.note(path, f"{label}, in which Jinja would be evaluated,", "text with spaces in its brackets")
    return quoted(inert)


def _tests(path: str, prop: Property, losses: LossReport, *, sole_key: bool) -> Iterator[str]:
    if prop.required or prop.primary_key:
        yield "- not_null"
    if prop.unique or sole_key:
        yield "- unique"
    if prop.enum:
        values = [entry.value for entry in prop.enum]
        texts = all(isinstance(value, str) and is_dbt_value(value) for value in values)
        if not texts and not _same_literals(values):
            losses.leave(path, "enum, whose values dbt would not write as they are,")
            return
        yield "- accepted_values:"
        yield "    values:"
        yield from block(values, "      ")
        if not texts:
            yield "    quote: false"


def _same_literals(values: Sequence[object]) -> bool:
    """Return True if all are numbers or all are booleans, whose literals are the same in SQL and YAML."""
    booleans = [isinstance(value, bool) for value in values]
    return all(booleans) or (not any(booleans) and all(isinstance(value, int | float) for value in values))


SUPPORTED_KEYS = supported_keys("description required unique primaryKey enum", objects="description")
KIND = ExportKind("dbt", "a dbt source with its tests (sources.yml)", write, SUPPORTED_KEYS, comment="#")
