"""A predicate is the same truth for every engine, and for plain Python that knows none of them.

`benchmarks/predicates.py` is the long form.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.proofs import Rule, lies
from oracle.renderers import compared
from oracle.trees import SCHEMA, Trees, askable, row

from dq.dataquality.model import predicate as p
from dq.dataquality.model.column import Column, Need, needs
from dq.dataquality.model.metric import MetricExecution, Proof, count, count_proof, extreme_proof
from dq.dataquality.model.predicate import Inside, Length, Opaque, Path, Since1970, Size
from dq.dataquality.sql_predicate import predicate_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

V, S = Path(("v",)), Path(("s", "n"))
SEEDS = st.integers(0, 2**32)


def some(seed: int, number: int) -> tuple[Trees, list[p.Predicate]]:
    trees = Trees(Random(seed))
    made: list[p.Predicate] = []
    while len(made) < number:
        made += [one for one in [trees.tree()] if askable(one)]
    return trees, made


@settings(max_examples=25)
@given(SEEDS)
def test_memory_and_tasks_say_what_plain_python_says(seed: int) -> None:
    trees, made = some(seed, 12)
    rows = [row(trees.random) for _ in range(12)]

    assert not [str(one) for one in compared(made, rows, trees.meanings, None, Counter())]


@pytest.mark.spark
@settings(max_examples=1)
@given(SEEDS)
def test_spark_says_what_plain_python_says(spark: SparkSession, seed: int) -> None:
    trees, made = some(seed, 60)
    rows = [row(trees.random) for _ in range(40)]
    asked: Counter[str] = Counter()

    assert not [str(one) for one in compared(made, rows, trees.meanings, spark, asked)]
    assert asked["Spark"] == 60 * 40


def test_no_proof_says_more_than_is_so() -> None:
    assert list(lies(count_proof, 7, 3000)) == []


def _interval(where: p.Predicate) -> tuple[Proof, Column | None]:
    """As if every predicate of a value had no gaps."""
    proof, column = count_proof(where)
    return (Proof.INTERVAL if proof is Proof.VALUES else proof), column


def _of_the_first(where: p.Predicate) -> tuple[Proof, Column | None]:
    """As if a predicate depended on the first of its columns alone."""
    proof, column = count_proof(where)
    return (proof, column) if column else (Proof.VALUES, needs(where)[0].column)


def _not_null(where: p.Predicate) -> tuple[Proof, Column | None]:
    """As if what is not NULL were counted as NULL is."""
    return count_proof(where.part) if isinstance(where, p.Not) else count_proof(where)


@pytest.mark.parametrize("wrong", [_interval, _of_the_first, _not_null])
def test_a_wrong_rule_of_proof_is_caught(wrong: Rule) -> None:
    assert list(lies(wrong, 7, 3000))


BELOW, ABOVE = p.Compare(V, "<", 0), p.Compare(V, ">", 9)
PROOFS = [
    (p.Missing(V), Proof.NULLS),
    (p.IsNull(S), Proof.NULLS),
    (p.Missing(Path()), Proof.NONE),
    (p.Not(p.Missing(V)), Proof.INTERVAL),
    (BELOW, Proof.INTERVAL),
    (p.Or((BELOW, ABOVE, p.IsNaN(V))), Proof.INTERVAL),
    (p.And((ABOVE, p.Compare(V, ">", 5))), Proof.INTERVAL),
    (p.And((ABOVE, p.Not(BELOW))), Proof.INTERVAL),
    (p.And((ABOVE, p.Compare(V, "<", 20))), Proof.VALUES),
    (p.Not(p.Or((BELOW, ABOVE))), Proof.VALUES),
    (p.Compare(V, "<>", 3), Proof.INTERVAL),
    (p.Compare(V, "<", "b"), Proof.VALUES),
    (p.Compare(Length(V), "<", 3), Proof.VALUES),
    (p.Not(p.In(V, (1, 2))), Proof.VALUES),
    (p.Or((p.Missing(V), p.In(V, (1, 2)))), Proof.NONE),
    (p.Or((BELOW, p.Compare(Path(("w",)), "<", 0))), Proof.NONE),
    (p.Compare(S, "<", 0), Proof.NONE),
    (p.Compare(V, "<", Path(("w",))), Proof.NONE),
    (p.Exists(V, Inside.ITEM, p.Compare(Path(), "<", 0)), Proof.NONE),
    (p.Compare(Size(V), "<", 3), Proof.NONE),
    (p.Constant(True), Proof.NONE),
    (Opaque("`v` < 0"), Proof.NONE),
    (p.And((Opaque("`w` < 0"), BELOW)), Proof.NONE),
]


@pytest.mark.parametrize(("where", "proof"), PROOFS, ids=repr)
def test_a_proof_follows_from_the_tree(where: p.Predicate, proof: Proof) -> None:
    assert count(where).proof is proof


def test_only_what_rises_with_its_column_is_an_extreme_of_it() -> None:
    assert extreme_proof(Since1970(V, "date")) == (Proof.EXTREME, Column(("v",)))
    assert extreme_proof(Length(V)) == (Proof.NONE, None)


def test_needs_of_one_column_are_one_where_their_types_meet() -> None:
    asked = p.Or(
        (p.IsNull(V), p.Compare(V, "<", 5), p.Compare(Path(("v",), frozenset({"int", "date"})), ">", 12))
    )

    assert needs(asked) == (Need(Column(("v",)), frozenset({"int"}), (2, 0)),)


def test_types_that_exclude_each_other_are_met_by_no_data() -> None:
    found = needs(p.Or((p.Compare(V, "<", 5), p.Matches(V, "a"))))

    assert [need.column for need in found] == [Column(("v",))] * 2
    assert not found[0].types & found[1].types


def test_what_is_walked_over_is_asked_apart_from_what_is_compiled() -> None:
    walk = p.any_value(("v", Inside.ITEM), lambda item: p.Compare(item, "<", 0))

    assert count(BELOW).kind is MetricExecution.ROWS
    assert count(walk).kind is MetricExecution.INTERPRETED
    assert count(p.And((Opaque("f(`v`)", (), True), BELOW))).kind is MetricExecution.INTERPRETED


def test_true_and_one_are_different_literals() -> None:
    assert p.Compare(V, "=", True) != p.Compare(V, "=", 1)
    assert p.In(V, (1,)) != p.In(V, (True,))


def test_a_float_column_is_compared_with_floats_and_needs_no_choice_by_type() -> None:
    tree = p.Or((p.Compare(Path(("f",)), "<", 1), p.Compare(Path(("x",)), "<", 1)))

    assert predicate_sql(tree, SCHEMA) == "(`f` < CAST(1 AS FLOAT)) OR (`x` < 1)"
