"""Every key of a relationship is a key of the object that it refers to.

Why: A join on a key without a match silently loses rows, or fills them with NULL.
Bad: `relationships: [{to: customers.id}]` on `orders.customer_id`, and an order of an unknown customer.
Good: Every order's customer is among the customers.
Nulls: NULL in any column of the key refers to nothing and passes; NULLs among the keys that are
referred to match nothing. NaN matches NaN, and -0.0 matches 0.0, as in Spark's joins. Both sides must be of
one family of types: exact numbers, floats, texts, dates and so on; nothing is cast between them. Each
relationship is one anti-join; where the other object is small, Spark sends it to every task in a job before.
How to fix: Deliver the missing rows of the other object first, or correct the keys. The whole table of the
other object is read: `dq check` finds it by its server; in Python pass `other_objects={"customers": frame}`.
The other contract of a relationship is found in the same registry: the nearest folder around the file with a
policy or a Git repository. In Python pass `registry=["crm.odcs.yaml"]` and
`other_objects={"crm/customers": frame}`. Its data is looked for on the server of the same name, else of the
same environment, else on the only one. Without that contract, and where several have an object of that name,
the relationship is not evaluated; write `crm.odcs.yaml#customers.id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, Relationship, SchemaObject
from dq.contracts.outcome import Severity
from dq.dataquality.clauses.clause import Clause, ExternalKeys, not_evaluated, refuse
from dq.dataquality.clauses.foreign_key import ExternalReference, as_list, resolve_external, target
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.run_context import Unusable


def clauses(contract: Contract, schema_object: SchemaObject) -> Iterator[Clause]:
    for relationship in schema_object.relationships:
        clause = _clause(schema_object, relationship, "")
        source_keys = as_list(relationship.from_)
        try:
            source = target(contract, source_keys) if source_keys else None
        except (ExternalReference, Unusable) as error:
            yield refuse(clause, f"its 'from': {error}")
            continue
        if source is None:
            yield refuse(clause, "it has no 'from'")
        elif source.object != schema_object.name:
            reason = f"its 'from' is of {source.object}; write it on that object"
            yield not_evaluated(clause, reason)
        else:
            yield _lookup_clause(contract, relationship, clause, source.keys)
    for prop, column in columns(schema_object):
        for relationship in prop.relationships:
            clause = _clause(schema_object, relationship, str(column))
            if column.single:
                yield _lookup_clause(contract, relationship, clause, (column,))
            else:
                yield not_evaluated(clause, "keys inside arrays and maps are not compared")


def _clause(schema_object: SchemaObject, relationship: Relationship, name: str) -> Clause:
    return Clause(
        "relationship",
        relationship.path(),
        schema_object.name,
        name,
        relationship.locate(),
        Severity.ERROR,
        "any key",
    )


def _lookup_clause(
    contract: Contract, relationship: Relationship, clause: Clause, keys: tuple[Column, ...]
) -> Clause:
    texts = as_list(relationship.to)
    if len(texts) != len(keys):
        return refuse(clause, f"'from' has {len(keys)} columns and 'to' has {len(texts)}")
    resolved = resolve_external(clause, ExternalKeys(keys, tuple(texts)), lambda: target(contract, texts))
    return (
        resolved
        if resolved.refusal_reason
        else replace(resolved, property=clause.property or ", ".join(map(str, keys)))
    )


CHECK = CheckKind("relationship", __doc__, clauses)
