"""A query of a quality rule reads a column that the object does not have.

Why: The query fails at night on the cluster, or the data has a column that the contract does not tell its
readers of.

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

Mend: Write the column as the schema names it, or add it to the schema.
"""

from dq.contracts.access.data_location import formats
from dq.contracts.model import SchemaObject
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, read_columns, suggestion


def check(contract: Contract, context: Context) -> Faults:
    for one, node, key, columns in read_columns(contract, context):
        names = _names(one)
        strange = next((name for name in columns if name not in names), None)
        if strange is not None:
            known = {name.lower() for name in names}
            strange = next((name for name in columns if name.lower() not in known), None)
        # Without properties nothing is said of the columns.
        if names and strange is not None:
            mend = suggestion(strange, names, f"Add the column to {one.name!r}, or correct it.")
            needs = tuple(prop.path("name") for prop in one.properties)
            yield fault(
                node,
                key,
                f"{one.name!r} has no property {strange!r}{_why(contract, one)}.",
                mend,
                needs=needs,
            )


def _why(contract: Contract, one: SchemaObject) -> str:
    """Why the data cannot have the column all the same: files of texts have no types of their own."""
    forms = formats(contract, one)
    if not forms or not forms <= {"csv", "json"}:
        return ""
    return f", and over {' and '.join(sorted(forms)).upper()} a query is not run without its type"


def _names(one: SchemaObject) -> list[str]:
    named = ((prop.physical_name, prop.name) for prop in one.properties)
    return [name for names in named for name in names if name]


RULE = Rule("sql-column-unknown", Severity.WARNING, __doc__, check, after=("sql-refused",))
