"""Query with a column that the object does not have.

Why: The query fails when it runs on the data, or the data has a column that the contract does not document.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number}
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} WHERE amuont < 0", mustBe: 0}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number}
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} WHERE amount < 0", mustBe: 0}

How to fix: Write the column as the schema names it, or add it to the schema.
"""

from dq.contracts.access.data_location import data_formats
from dq.contracts.model import SchemaObject
from dq.validators.rule import (
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    read_columns,
    suggestion,
    violation,
)


def check(contract: Contract, context: Context) -> Violations:
    for schema_object, node, key, columns in read_columns(contract, context):
        names = _names(schema_object)
        strange = next((name for name in columns if name not in names), None)
        if strange is not None:
            lower_names = {name.lower() for name in names}
            strange = next((name for name in columns if name.lower() not in lower_names), None)
        # Without properties the columns are unknown.
        if names and strange is not None:
            hint = suggestion(strange, names, f"Add the column to {schema_object.name!r}, or correct it.")
            needs = tuple(prop.path("name") for prop in schema_object.properties)
            yield violation(
                node,
                key,
                f"{schema_object.name!r} has no property {strange!r}{_reason(contract, schema_object)}.",
                hint,
                needs=needs,
            )


def _reason(contract: Contract, schema_object: SchemaObject) -> str:
    """Return the reason why the data cannot have the column either: text files have no types."""
    forms = data_formats(contract, schema_object)
    if not forms or not forms <= {"csv", "json"}:
        return ""
    return f", and queries on {' and '.join(sorted(forms)).upper()} need its type"


def _names(schema_object: SchemaObject) -> list[str]:
    name_pairs = ((prop.physical_name, prop.name) for prop in schema_object.properties)
    return [name for names in name_pairs for name in names if name]


RULE = Rule("sql-column-unknown", Severity.WARNING, __doc__, check, after=("sql-refused",))
