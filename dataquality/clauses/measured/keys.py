"""What the metrics of different values share: the questions about keys, and examples of all."""

from __future__ import annotations

from dq.dataquality.clauses.kind import Example
from dq.dataquality.clauses.measured.found import MeasureAsked, Question
from dq.dataquality.clauses.measured.values import present
from dq.dataquality.model.metric import DistinctKeys
from dq.dataquality.model.predicate import Predicate


def different(asked: MeasureAsked, where: Predicate | None) -> tuple[Question, ...]:
    """How many different keys there are, and how many rows have one; a key with NULL is none."""
    return DistinctKeys(asked.columns, where), present(asked, where)


def pair(check: str, rest: str, names: str = "v, g") -> str:
    """The contract of an example: a rule on the object, about two columns."""
    return (
        "{properties: [{name: v, logicalType: string}, {name: g, logicalType: string}], quality:"
        f" [{{type: custom, engine: dq, implementation: {{check: {check},"
        f" arguments: {{properties: [{names}]}}, {rest}}}}}]}}"
    )


TEXTS = "v string, g string"
# Three of five rows have a value, two of them the same one.
SOME = (("x", "a"), ("x", None), ("y", "a"), (None, "b"), (None, "a"))


def of_keys(check: str) -> tuple[Example, ...]:
    """What is the same for every metric of keys."""
    wrong = pair(check, "mustBeGreaterOrEqualTo: 0", "v, x")
    return (Example("a name that is none", wrong, TEXTS, SOME, "error"),)
