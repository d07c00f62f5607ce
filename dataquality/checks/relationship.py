"""Every key of a relationship is a key of the object that it refers to.

Why: A join by a key without its row loses rows in silence, or fills them with NULL.
Bad: `relationships: [{to: customers.id}]` on `orders.customer_id`, and an order of an unknown customer.
Good: Every order's customer is among the customers.
Nulls: NULL in any column of the key refers to nothing and does not break it; NULLs among the keys that are
referred to match nothing. NaN matches NaN, and -0.0 matches 0.0, as in Spark's joins. Both sides must be of
one family of types: exact numbers, floats, texts, dates and so on; nothing is cast between them. Each
relationship is one anti-join; where the other object is small, Spark sends it to every task in a job before.
Mend: Deliver the missing rows of the other object first, or correct the keys. The whole table of the other
object is read: `dq check` finds it by its server; in Python hand it in: `others={"customers": frame}`. A
relationship into another contract is tested where that contract is at hand: `dq check` of the folder that
holds both, in Python `registry=["crm.odcs.yaml"]` and `others={"crm/customers": frame}`. Its data is looked
for on the server of the same name, else of the same environment, else on the only one. Else, and where
several contracts have an object of that name, it is not evaluated; write `crm.odcs.yaml#customers.id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dq.contracts.model import Contract, Relationship, SchemaObject
from dq.contracts.outcome import Severity
from dq.dataquality.clauses.clause import Clause, OutsideKeys, left_out, refuse
from dq.dataquality.clauses.foreign_key import Outside, leading, listed, target
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.column import Column, columns
from dq.dataquality.model.run_context import Unusable


def clauses(contract: Contract, one: SchemaObject) -> Iterator[Clause]:
    for relationship in one.relationships:
        made = _clause(one, relationship, "")
        written = listed(relationship.from_)
        try:
            source = target(contract, written) if written else None
        except (Outside, Unusable) as error:
            yield refuse(made, f"its 'from': {error}")
            continue
        if source is None:
            yield refuse(made, "it has no 'from'")
        elif source.object != one.name:
            reason = f"its 'from' is of {source.object}; write it on that object"
            yield left_out(made, reason)
        else:
            yield _towards(contract, relationship, made, source.keys)
    for prop, column in columns(one):
        for relationship in prop.relationships:
            made = _clause(one, relationship, str(column))
            if column.single:
                yield _towards(contract, relationship, made, (column,))
            else:
                yield left_out(made, "keys inside of arrays and maps are not compared")


def _clause(one: SchemaObject, relationship: Relationship, name: str) -> Clause:
    return Clause(
        "relationship", relationship.path(), one.name, name, relationship.at(), Severity.ERROR, "any key"
    )


def _towards(
    contract: Contract, relationship: Relationship, made: Clause, keys: tuple[Column, ...]
) -> Clause:
    texts = listed(relationship.to)
    if len(texts) != len(keys):
        return refuse(made, f"it leads from {len(keys)} columns to {len(texts)}")
    found = leading(made, OutsideKeys(keys, tuple(texts)), lambda: target(contract, texts))
    return found if found.refused else replace(found, property=made.property or ", ".join(map(str, keys)))


CHECK = CheckKind("relationship", __doc__, clauses)
