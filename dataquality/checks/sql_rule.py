"""The number that a query of the contract gives is within the bounds of its rule.

Why: Some promises hold between columns, or over the whole of a table, and only a query can say them.
Bad: `type: sql` with `query: SELECT count(*) FROM {object} WHERE paid > price` and `mustBe: 0`, and a row
that is paid twice.
Good: The same rule, and no such row.
Nulls: As in Spark's SQL. A query that gives no number (NULL, NaN, a text, no row, several rows or columns)
is an error, not an answer. The object is seen in the scope of the rule: the checked partitions, or with
`rows: table` all of it. The query is one SELECT on its own object, with functions that only compute; every
other is refused, and what runs is written anew from what was understood. One count, minimum, maximum, sum or
average of the object's rows shares the pass of the other checks; every other query is a pass of its own. The
number is not shown where a classified column has to do with it, or, in an object that has one, a column that
the contract does not describe, but for one count of rows, such as
`SELECT count(*) FROM {object} WHERE salary < 0`. A quote inside of a text is doubled, as in SQL: `'it''s'` is
`it's`, where Spark's own reading is `its`. What dialects read in different ways is refused: a single
backslash, and a text beside a text.
Mend: Correct the data, the query or the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.model import SchemaObject
from dq.contracts.outcome import CheckResult, Status
from dq.dataquality.clauses.clause import Clause, KindTerms, asking, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, judge_number, result, subject
from dq.dataquality.clauses.quality_rule import Rule, of_number, of_quality
from dq.dataquality.model.column import MASK, Column, Need
from dq.dataquality.model.column import untold as why_untold
from dq.dataquality.model.metric import Metric, Query, aggregate, distinct, one_number
from dq.dataquality.model.predicate import Opaque, all_of

if TYPE_CHECKING:
    from dq.contracts.sql.analysis import Folded

_CHECK = "sql_rule"


def clause(rule: Rule) -> Clause:
    schema, quality, column = rule.object, rule.quality, rule.column
    made = of_quality(_CHECK, schema, quality, rule.shown)
    if made.refused:
        return made
    made = of_number(made)
    if not (quality.query or "").strip():
        return refuse(made, "it has no query")
    if column is not None and not column.single:
        return refuse(made, "a value inside of an array or map has no column of its own")
    # Only who has a SQL rule pays for the parser.
    from dq.contracts.sql.guard import Refused, query

    way = None if column is None else [str(step) for step in column.steps]
    found = query(schema, quality, way)
    if isinstance(found, Refused):
        return refuse(made, f"its query is refused: {found.reason}. {found.instead}".rstrip("."))
    named = tuple(Column((name,)) for name in found.columns)
    alone = Query(found.sql, named, made.extent.where, found.fields)
    terms = _Terms(_shared(schema, found.folded, alone) or alone, why_untold(schema, found.shown))
    return asking(made, KindTerms(terms))


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is asked, and why its number is not shown, where it is not."""

    metric: Metric
    untold: str


def _shared(one: SchemaObject, folded: Folded | None, alone: Query) -> Metric | None:
    """The query as a metric that shares the pass over all rows, where that is the same and reads no more."""
    if folded is None:
        return None
    partitions = {part.column.lower() for part in one.partition_keys()}
    if partitions & {name.lower() for name in folded.columns}:
        # By itself it may read some partitions only, where the shared pass reads the whole table.
        return None
    slow = folded.interpreted
    where = all_of(alone.where, *(Opaque(one, (), slow) for one in folded.conditions))
    if folded.keys:
        return distinct(tuple(Column(key) for key in folded.keys), where, alone)
    return aggregate(
        folded.aggregate,
        None if folded.value == "1" else Opaque(folded.value, (), True) if slow else folded.value,
        where,
        needs=tuple(Need(Column((name,))) for name in folded.columns),
        instead=alone,
    )


def metrics(clause: Clause) -> tuple[Metric, ...]:
    return (terms_of(clause, _Terms).metric,)


def judge(clause: Clause, values: Values) -> CheckResult:
    (found,) = values.values()
    untold = terms_of(clause, _Terms).untold
    judged = judge_number(clause, one_number(found), "the query")
    if not untold or judged.status is Status.ERROR:
        return judged
    allowed = f"; allowed: {clause.allowed}" if judged.status is Status.FAIL else ""
    message = f"{subject(clause)}: the query gives a number that is not shown, because {untold}"
    return result(clause, judged.status, MASK, f"{message}{allowed}")


CHECK = CheckKind(_CHECK, __doc__, metrics=metrics, judge=judge, rule=clause)
