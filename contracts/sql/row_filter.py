"""Row filters of subscriptions: the predicates that dq and AWS's data filters read alike.

Source: "PartiQL support in row filter expressions" of the Lake Formation guide: comparisons, BETWEEN, IN,
LIKE and IS NULL of columns with literals, joined by AND, OR and NOT; no function, no arithmetic, no query.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dq.contracts.sql.dialect import SqlDialect
from dq.contracts.sql.guard import Guarded, Refused, guarded_predicate

_JUDGE = (
    exp.And, exp.Or, exp.Not, exp.Paren,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.Is,
)  # fmt: skip
_TAKEN = (
    *_JUDGE,
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg,
)  # fmt: skip
_INSTEAD = (
    "Compare columns with literals by =, <>, <, <=, >, >=, BETWEEN, IN, LIKE and IS NULL; join them by AND,"
    " OR and NOT."
)


def row_filter(text: str) -> Guarded | Refused:
    """The filter as SQL that may run, with its columns, or the reason why it may not be one. Never raises."""
    found = guarded_predicate(text)
    if isinstance(found, Refused):
        return found
    try:
        tree = SqlDialect().parser().parse_into(exp.Condition, SqlDialect().tokenize(text), text)[0]
    except SqlglotError:
        return Refused("it is not SQL that is understood", _INSTEAD)
    if not isinstance(tree, _JUDGE):
        return Refused("it is no comparison", _INSTEAD)
    for node in tree.walk():
        if not isinstance(node, _TAKEN):
            return Refused(f"{node.key.upper()} is not known to data filters", _INSTEAD)
        if isinstance(node, exp.Column) and len(node.parts) > 1:
            return Refused(f"{node.sql()!r} is not a column of the object", _INSTEAD)
    return found
