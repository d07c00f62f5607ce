"""The exported pandera schemas say of the rows of every check's examples what dq says of them on Spark.

How each example ends on Spark is in the example, and held by test_checks_shelf.py.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pytest
from fakes.examples import Example, contract_of, examples_of
from fakes.frames import arrow
from pandera.errors import SchemaErrors, SchemaWarning

from dq.contracts.model import Contract
from dq.contracts.outcome import UsageError
from dq.contracts.yaml.parse import parse
from dq.dataquality.checks import built_in
from dq.dataquality.clauses import coverage
from dq.dataquality.clauses.clause import Clause
from dq.dataquality.clauses.kind import CheckKind, clauses_of
from dq.dataquality.pandera import left_out, schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [
    pytest.param(kind, example, id=f"{kind.id}: {example.name}")
    for kind in built_in().values()
    for example in examples_of(kind.id)
]
# Why a schema of one frame may leave out what dq tests on Spark, by the ends of the reasons.
ALLOWED = {
    "pandas": ("needs Spark", "a schema sees one frame"),
    "polars": ("needs Spark", "a schema sees one frame", "polars has no type for a map"),
    "pyspark": ("a schema sees one frame",),
}


def in_memory(made: Any, frame: Any) -> list[tuple[str, str]]:
    """What failed or was warned of, each as the column of pandera's own tests and the name of the check."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            made.validate(frame, lazy=True)
            errors = []
        except SchemaErrors as found:
            errors = found.schema_errors
    soft = "\n".join(str(one.message) for one in warned if issubclass(one.category, SchemaWarning))
    failed = [
        ("", one.check.name)
        if not isinstance(one.check, str)
        else (one.failure_cases if one.check == "column_in_dataframe" else one.schema.name, one.check)
        for one in errors
    ]
    return failed + [("", name) for name in re.findall(r"(schema\[0\]\S*) at ", soft)]


def on_spark(made: Any, frame: Any) -> list[tuple[str, str]]:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        errors = made.validate(frame).pandera.errors
    failed = [
        (one["column"], one["check"])
        for listed in errors.values()
        for several in listed.values()
        for one in several
    ]
    soft = [str(one.message).rpartition("> failed")[2] for one in warned]
    texts = [(column, check) for column, check in failed] + [("", text) for text in soft if text]
    return [("", name[1]) if (name := re.search(r"\((schema\[0\]\S*) at ", check)) else (column, check)
            for column, check in texts]  # fmt: skip


FAILURES = {"pandas": in_memory, "polars": in_memory, "pyspark": on_spark}


def native(contract: Contract, failed: list[tuple[str, str]]) -> set[str]:
    """The clauses that pandera's own tests of columns speak for: presence, and NULLs."""
    one = contract.objects[0]
    found = {name for column, name in failed if not column}
    for column, _ in failed:
        for prop in one.properties:
            if column and prop.column == column:
                found |= {prop.path("required")} if prop.required else set()
                found |= {prop.path("primaryKey")} if prop.primary_key else set()
    return found


def mine(kind: CheckKind, example: Example, contract: Contract) -> list[tuple[Clause, str]]:
    """The clauses of the example's kind with the ends that they have on Spark."""
    found = clauses_of(contract, contract.objects[0], {kind.id: kind})
    tested = coverage.testable(found)
    return list(zip(tested, example.ends.split(), strict=True))


def wrong(backend: str, kind: CheckKind, example: Example, frame: Any) -> dict[str, tuple[str, str]]:
    """Clauses on which the schema and dq differ: by path, the end on Spark and that of pandera."""
    contract = contract_of(example)
    made = schema(contract, backend=backend)
    told = native(contract, FAILURES[backend](made, frame))
    out = {one.clause: one.reason for one in left_out(made)}
    differ = {}
    for clause, end in mine(kind, example, contract):
        reason = next((out[path] for path in (clause.path, *clause.covers) if path in out), None)
        ends = ("left out",) if reason else ("fail", "error") if clause.path in told else ("pass", "skipped")
        allowed = end in ends or (reason and (end == "error" or reason.endswith(ALLOWED[backend])))
        if not allowed:
            differ[clause.path] = end, reason or ends[0]
    return differ


@pytest.mark.parametrize(("kind", "example"), CASES)
def test_pandas_ends_as_dq_on_every_clause(kind: CheckKind, example: Example) -> None:
    frame = arrow(example.columns, example.rows).to_pandas(types_mapper=pd.ArrowDtype)

    assert wrong("pandas", kind, example, frame) == {}


@pytest.mark.parametrize(("kind", "example"), CASES)
def test_polars_ends_as_dq_on_every_clause(kind: CheckKind, example: Example) -> None:
    frame = pl.from_arrow(arrow(example.columns, example.rows))

    assert wrong("polars", kind, example, frame) == {}


# One example of both ends of each kind: on Spark the schema asks `check` itself.
ON_SPARK = [
    pytest.param(
        kind, next(one for one in examples_of(kind.id) if end in one.ends.split()), id=f"{kind.id} {end}"
    )
    for name in ("required", "bounds", "sql_rule")
    for kind in [built_in()[name]]
    for end in ("pass", "fail")
]


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "example"), ON_SPARK)
def test_pyspark_ends_as_dq_on_every_clause(spark: SparkSession, kind: CheckKind, example: Example) -> None:
    frame = spark.createDataFrame(list(example.rows), example.columns)

    assert wrong("pyspark", kind, example, frame) == {}


SHOP = b"""
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.2.0
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, primaryKey: true}
      - {name: price, logicalType: number, required: true, logicalTypeOptions: {minimum: 0}}
      - {name: customer, logicalType: integer, relationships: [{to: customers.id}]}
    quality:
      - {type: sql, query: 'SELECT avg(price) FROM {object}', mustBeGreaterThan: 0}
      - {metric: rowCount, mustBeBetween: [1, 1000], severity: warning}
  - name: customers
    properties: [{name: id, logicalType: integer}]
slaProperties:
  - {property: latency, value: 1, unit: d, element: orders}
"""


def shop() -> Contract:
    parsed = parse(SHOP, "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


@pytest.mark.parametrize(
    ("backend", "listed"),
    [
        ("pandas", {"quality: sql", "relationship: customers.id", "service level: latency"}),
        ("polars", {"quality: sql", "relationship: customers.id", "service level: latency"}),
        ("pyspark", {"relationship: customers.id", "service level: latency"}),
    ],
)
def test_what_a_backend_cannot_test_is_listed_with_its_reason_and_place(
    backend: str, listed: set[str]
) -> None:
    found = left_out(schema(shop(), "orders", backend))

    assert {one.description for one in found} == listed
    assert all(one.reason and one.at.startswith("shop.odcs.yaml:") for one in found)


def test_a_failure_names_the_rows_the_promise_and_its_line() -> None:
    made = schema(shop(), "orders", "pandas")
    frame = pd.DataFrame({"id": [1, 1, 2], "price": [1.0, -1.0, 2.0], "customer": [1, 1, 1]})

    with pytest.raises(SchemaErrors) as failed:
        made.validate(frame, lazy=True)

    cases = failed.value.failure_cases
    assert set(cases["index"]) == {1}
    assert set(cases["check"]) == {
        "orders.price: bounds, allowed: at least 0"
        " (schema[0].properties[1].logicalTypeOptions.minimum at shop.odcs.yaml:10:90)",
        "orders.id: primary_key, allowed: no key twice (schema[0].primaryKey at shop.odcs.yaml:9:76)",
    }


def test_nan_of_numpy_is_null_and_nan_of_arrow_is_a_value() -> None:
    made = schema(shop(), "orders", "pandas")
    numpy = pd.DataFrame({"id": [1], "price": [float("nan")], "customer": [1]})
    known = arrow("id bigint, price double, customer bigint", ((1, float("nan"), 1),))

    assert native(shop(), in_memory(made, numpy)) == {"schema[0].properties[1].required"}
    assert native(shop(), in_memory(made, known.to_pandas(types_mapper=pd.ArrowDtype))) == {
        "schema[0].properties[1].logicalTypeOptions.minimum"
    }


def test_a_frame_that_changed_is_measured_anew() -> None:
    made = schema(shop(), "orders", "pandas")
    frame = pd.DataFrame({"id": [1, 2], "price": [1.0, 2.0], "customer": [1, 1]})

    before = in_memory(made, frame)
    frame.loc[0, "price"] = -1.0

    assert (before, len(in_memory(made, frame))) == ([], 1)


def test_a_column_of_nothing_but_null_shows_no_type_and_one_of_mixed_values_a_wrong_one() -> None:
    made = schema(shop(), "orders", "pandas")
    empty = pd.DataFrame({"id": [1], "price": [1.0], "customer": pd.Series([None], dtype=object)})
    mixed = pd.DataFrame({"id": [1], "price": [1.0], "customer": pd.Series(["a"], dtype=object)})

    assert in_memory(made, empty) == []
    assert in_memory(made, mixed) == [("", "schema[0].properties[2]")]


def test_names_are_compared_exactly_as_frames_do() -> None:
    made = schema(shop(), "orders", "polars")
    frame = pl.DataFrame({"ID": [1], "price": [1.0], "customer": [1]})

    assert in_memory(made, frame) == [("id", "column_in_dataframe")]


def test_an_unknown_backend_is_a_mistake_with_a_hint() -> None:
    with pytest.raises(UsageError, match="Did you mean polars"):
        schema(shop(), "orders", "polar")
