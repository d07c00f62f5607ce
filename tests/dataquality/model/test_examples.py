"""What the checks promise in their examples is the same for every renderer, and for plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from fakes.examples import OF_ROWS, contract_of, examples_of
from oracle.renderers import compared
from oracle.tree_truth import readable
from oracle.trees import narrow

from dq.contracts.types import DataType, parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import clauses_of
from dq.dataquality.model import predicate as p
from dq.dataquality.model.metric import count
from dq.dataquality.spark.measure import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Case:
    """The rows and predicates of all examples whose rows have one schema, and who asks them."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    predicates: dict[p.Predicate, str] = field(default_factory=dict)


def value_of(value: Any, kind: DataType) -> Any:
    """A value of an example as rows in memory have it: structs are mappings, maps lists of pairs."""
    if value is None or not kind.parts:
        return narrow(value) if kind.name == "float" and value is not None else value
    if kind.name == "struct":
        pairs = zip(kind.names, kind.parts, value, strict=True)
        return {name: value_of(part, inner) for name, inner, part in pairs}
    if kind.name == "map":
        key, inner = kind.parts
        return [(value_of(one, key), value_of(part, inner)) for one, part in value.items()]
    return [value_of(one, kind.parts[0]) for one in value]


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for check in built_in().values():
        for example in examples_of(check.id):
            schema = parse(f"struct<{example.columns}>")
            case = found.setdefault(example.columns, Case())
            case.rows += [value_of(row, schema) for row in example.rows]
            contract = contract_of(example)
            for clause in clauses_of(contract, contract.objects[0], {check.id: check}):
                if clause.breaks is not None and not plan([count(clause.breaks)], schema).failures:
                    case.predicates.setdefault(clause.breaks, check.id)
    return {columns: case for columns, case in found.items() if case.predicates and case.rows}


CASES = cases()
# Predicates of other packages are SQL, which no plain evaluator knows.
BY_SQL = {"custom"}


def test_every_check_of_single_rows_is_asked() -> None:
    asked = {check for case in CASES.values() for check in case.predicates.values()}

    assert asked == OF_ROWS | {"custom", "primary_key"}


def differences(spark: SparkSession | None, columns: str) -> Iterator[str]:
    case, schema = CASES[columns], parse(f"struct<{columns}>")
    known = [one for one, check in case.predicates.items() if check not in BY_SQL and readable(one)]
    for one in compared(known, case.rows, {}, spark, Counter(), schema):
        yield str(one)


@pytest.mark.parametrize("columns", CASES)
def test_memory_and_tasks_agree_on_the_examples(columns: str) -> None:
    assert list(differences(None, columns)) == []


@pytest.mark.spark
def test_spark_agrees_on_the_examples(spark: SparkSession) -> None:
    assert [one for columns in CASES for one in differences(spark, columns)] == []
