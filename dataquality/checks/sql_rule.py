"""The number that a query of the contract gives is within the bounds of its rule.

Why: Some promises hold between columns or over a whole table, and only a query can express them.
Bad: `type: sql` with `query: SELECT count(*) FROM {object} WHERE paid > price` and `mustBe: 0`, and a row
that is paid twice.
Good: The same rule, and no such row.
Nulls: As in Spark's SQL. A query that does not give one number (NULL, NaN, a text, no row, several rows or
columns) is an error. The object is seen in the scope of the rule: the checked partitions, or with
`rows: table` all of it. The query is one SELECT on its own object, with functions that only compute; every
other is refused, and what runs is generated from the parsed query. One count, minimum, maximum, sum or
average of the object's rows shares the pass of the other checks; every other query is a pass of its own. The
number is not shown where a classified column has to do with it, or, in an object that has one, a column that
the contract does not describe, but for one count of rows, such as
`SELECT count(*) FROM {object} WHERE salary < 0`. A quote inside a text is doubled, as in SQL: `'it''s'` is
`it's`, where Spark's own reading is `its`. What dialects read in different ways is refused: a single
backslash, and adjacent text literals.
How to fix: Correct the data, the query or the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dq.contracts.check_result import CheckResult, Status
from dq.contracts.model import SchemaObject
from dq.dataquality.clauses.clause import CheckParameters, Clause, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, evaluate_number, result, subject
from dq.dataquality.clauses.quality_rule import Rule, clause_from_quality, with_number_limit
from dq.dataquality.model.column import MASK, Column, Need
from dq.dataquality.model.column import reason_not_shown as why_untold
from dq.dataquality.model.metric import Metric, Query, aggregate, distinct, require_number
from dq.dataquality.model.predicate import Opaque, all_of

if TYPE_CHECKING:
    from dq.contracts.sql.analysis import RowAggregate

_CHECK = "sql_rule"


def clause(rule: Rule) -> Clause:
    schema, quality, column = rule.object, rule.quality, rule.column
    draft = clause_from_quality(_CHECK, schema, quality, rule.column_name)
    if draft.refusal_reason:
        return draft
    draft = with_number_limit(draft)
    if not (quality.query or "").strip():
        return refuse(draft, "it has no query")
    if column is not None and not column.single:
        return refuse(draft, "a value inside an array or map does not have its own column")
    # Imported here so that only contracts with SQL rules load the parser.
    from dq.contracts.sql.guard import RejectedSql, validate_rule_query

    path = None if column is None else [str(step) for step in column.steps]
    parsed = validate_rule_query(schema, quality, path)
    if isinstance(parsed, RejectedSql):
        return refuse(draft, f"its query is refused: {parsed.reason}. {parsed.hint}".rstrip("."))
    named = tuple(Column((name,)) for name in parsed.columns)
    separate_query = Query(parsed.sql, named, draft.row_filter.where, parsed.fields)
    terms = _Terms(
        _shared(schema, parsed.row_aggregate, separate_query) or separate_query,
        why_untold(schema, parsed.revealed_columns),
    )
    return with_test(draft, CheckParameters(terms))


@dataclass(frozen=True, slots=True)
class _Terms:
    """The metric, and the reason why its number is not shown, or an empty text."""

    metric: Metric
    hidden_reason: str


def _shared(schema_object: SchemaObject, folded: RowAggregate | None, separate_query: Query) -> Metric | None:
    """Return the query as a metric of the shared pass, or None if that differs or reads more."""
    if folded is None:
        return None
    partitions = {part.column.lower() for part in schema_object.partition_keys()}
    if partitions & {name.lower() for name in folded.columns}:
        # As a separate query it may read only some partitions; the shared pass reads the whole table.
        return None
    slow = folded.interpreted
    where = all_of(separate_query.where, *(Opaque(condition, (), slow) for condition in folded.conditions))
    if folded.keys:
        return distinct(tuple(Column(key) for key in folded.keys), where, separate_query)
    return aggregate(
        folded.aggregate,
        None if folded.value == "1" else Opaque(folded.value, (), True) if slow else folded.value,
        where,
        needs=tuple(Need(Column((name,))) for name in folded.columns),
        instead=separate_query,
    )


def metrics(clause: Clause) -> tuple[Metric, ...]:
    return (parameters_of(clause, _Terms).metric,)


def judge(clause: Clause, values: Values) -> CheckResult:
    (answer,) = values.values()
    hidden_reason = parameters_of(clause, _Terms).hidden_reason
    judged = evaluate_number(clause, require_number(answer), "the query")
    if not hidden_reason or judged.status is Status.ERROR:
        return judged
    allowed = f"; allowed: {clause.allowed}" if judged.status is Status.FAIL else ""
    message = f"{subject(clause)}: the query gives a number that is not shown, because {hidden_reason}"
    return result(clause, judged.status, MASK, f"{message}{allowed}")


CHECK = CheckKind(_CHECK, __doc__, metrics=metrics, evaluate=judge, rule=clause)
