"""Whether a rule of proof says too much: its words against what plain Python counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from oracle.tree_truth import Plain
from oracle.trees import COLUMNS, Trees
from oracle.trees import value as random_value

from dq.contracts.types import DataType
from dq.dataquality.model import predicate as p
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Proof

Rule = Callable[[p.Predicate], tuple[Proof, Column | None]]
_FLAT = [name for name, kind in COLUMNS.items() if not kind.parts]


def lies(rule: Rule, seed: int, trees: int) -> Iterator[str]:
    """What the rule says of random predicates that is not so for some value."""
    random = Random(seed)
    made = Trees(random)
    for _ in range(trees):
        names = random.choices(_FLAT, k=random.choice([1, 1, 2]))
        subject = DataType("struct", (), tuple(COLUMNS[name] for name in names), tuple(names))
        tree = made.tree(subject, 2)
        proof, column = rule(tree)
        if column is None:
            continue
        (name,) = column.steps
        rows = [{each: random_value(random, COLUMNS[each]) for each in names} for _ in range(30)]
        found = Plain({})
        told = [(row[str(name)], found.truth(tree, row, subject) is True) for row in rows]
        if not _so(proof, told):
            yield f"{proof} of {name}: {tree!r}"


def _so(proof: Proof, told: list[tuple[Any, bool]]) -> bool:
    if proof is Proof.NULLS:
        return all(counted == (value is None) for value, counted in told)
    known: dict[Any, bool] = {}
    for value, counted in told:
        if value is None and counted:
            return False
        if known.setdefault(_key(value), counted) is not counted:
            return False
    if proof is Proof.INTERVAL:
        there = sorted(((value, counted) for value, counted in told if value is not None), key=_order)
        changes = [counted for at, (_, counted) in enumerate(there) if not at or counted != there[at - 1][1]]
        # Counted at the ends only: at most one stretch is not.
        return changes.count(False) < 2
    return True


def _key(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _order(pair: tuple[Any, bool]) -> tuple[bool, Any]:
    nan = _key(pair[0]) == "NaN"
    return nan, 0 if nan else pair[0]
