"""Pandera's own checks in an exported schema: the verdicts of dq on random frames, and what they are for."""

from __future__ import annotations

import os
import random
import warnings
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml
from pandera.errors import SchemaErrors

from dq.contracts.model import Contract
from dq.contracts.types import row_type
from dq.contracts.yaml.parse import parse
from dq.dataquality.answers.memory import measure
from dq.dataquality.answers.rows import rows_from_arrow
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.coverage import bind_clauses
from dq.dataquality.clauses.kind import evaluate_clause, metrics_for_all
from dq.dataquality.model.run_context import EMPTY_CONTEXT
from dq.dataquality.pandera import export, schema, why_unanswerable

EXAMPLES = int(os.environ.get("DQ_EXAMPLES", "60"))
ORDERS = b"""
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.2.0
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, physicalType: bigint, required: true,
         logicalTypeOptions: {minimum: 0, exclusiveMaximum: 4}}
      - {name: n, logicalType: integer, physicalType: int, enum: [{value: 1}, {value: 2}, {value: 3}],
         logicalTypeOptions: {exclusiveMinimum: 0, maximum: 2}}
      - {name: state, logicalType: string, enum: [{value: open}, {value: "a\\U0001F600"}, {value: ""}],
         logicalTypeOptions: {minLength: 1, maxLength: 4}}
"""
NATIVE = {
    "schema[0].properties[0].logicalTypeOptions.minimum": "greater_than_or_equal_to",
    "schema[0].properties[0].logicalTypeOptions.exclusiveMaximum": "less_than",
    "schema[0].properties[1].enum": "isin",
    "schema[0].properties[1].logicalTypeOptions.exclusiveMinimum": "greater_than",
    "schema[0].properties[1].logicalTypeOptions.maximum": "less_than_or_equal_to",
    "schema[0].properties[2].enum": "isin",
    "schema[0].properties[2].logicalTypeOptions.minLength": "str_length",
    "schema[0].properties[2].logicalTypeOptions.maxLength": "str_length",
}


def orders() -> Contract:
    parsed = parse(ORDERS, "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    return parsed.contract


def random_table(draw: random.Random) -> pa.Table:
    rows = draw.randrange(5)
    values = {
        "id": (-1, 0, 3, 4, 2**62),
        "n": (0, 1, 2, 3, None),
        "state": ("open", "a\U0001f600", "", "paid!", None),
    }
    types = {"id": pa.int64(), "n": pa.int32(), "state": pa.string()}
    return pa.table(
        {name: pa.array([draw.choice(values[name]) for _ in range(rows)], types[name]) for name in values}
    )


def broken_by_dq(table: pa.Table) -> set[str]:
    """The clauses among NATIVE that dq's own evaluator finds broken."""
    contract, kinds = orders(), built_in()
    exported = export(contract, contract.objects[0], why_unanswerable)
    rows = rows_from_arrow(table, row_type(exported.schema_object))
    asked = bind_clauses(rows.schema, exported.clauses, EMPTY_CONTEXT)
    answers = measure(rows, metrics_for_all(asked, kinds))
    return {
        clause.path
        for clause in asked
        if clause.path in NATIVE and evaluate_clause(clause, answers, kinds).status == "fail"
    }


def broken_by_pandera(made: Any, frame: Any) -> set[str]:
    try:
        made.validate(frame, lazy=True)
    except SchemaErrors as errors:
        return {
            error.check.name
            for error in errors.schema_errors
            if not isinstance(error.check, str) and error.check.name in NATIVE
        }
    return set()


def own_checks(made: Any) -> dict[str, str]:
    return {
        check.name: check._check_fn.__name__.removeprefix("_")
        for column in made.columns.values()
        for check in column.checks
    }


FRAMES = {
    "numpy and objects": lambda table: table.to_pandas(),
    "nullable": lambda table: table.to_pandas().convert_dtypes(),
    "arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "categories": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype).astype(
        {"state": pd.CategoricalDtype(["open", "a\U0001f600", "", "paid!"])}
    ),
    "polars": pl.from_arrow,
}


@pytest.mark.parametrize("form", FRAMES)
def test_the_verdicts_on_random_frames_are_those_of_dq(form: str) -> None:
    draw = random.Random(form)
    made = schema(orders(), backend="polars" if form == "polars" else "pandas")

    for _ in range(EXAMPLES):
        table = random_table(draw)
        assert broken_by_pandera(made, FRAMES[form](table)) == broken_by_dq(table), table.to_pydict()


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_these_clauses_are_checks_of_pandera_and_floats_and_decimals_are_not(backend: str) -> None:
    assert own_checks(schema(orders(), backend=backend)) == NATIVE
    parsed = parse(
        ORDERS.replace(b"bigint", b"double").replace(
            b"logicalType: integer, physicalType: int,", b"logicalType: number,"
        ),
        "shop.odcs.yaml",
    )
    assert parsed.contract is not None

    found = own_checks(schema(parsed.contract, backend=backend))

    assert all("properties[2]" in path for path in found)


def test_the_schema_is_written_down_with_its_own_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = yaml.safe_load(schema(orders(), backend="pandas").to_yaml())

    columns = written["columns"]
    assert "nullable" not in columns["id"]
    assert columns["n"]["nullable"] is True
    assert columns["id"]["greater_than_or_equal_to"]["min_value"] == 0
    assert columns["n"]["isin"]["allowed_values"] == [1, 2, 3]


def test_failure_cases_name_the_values_and_their_rows() -> None:
    frame = pd.DataFrame({"id": [1, 9], "n": [1, 1], "state": ["closed", "open"]})

    with pytest.raises(SchemaErrors) as failed:
        schema(orders(), backend="pandas").validate(frame, lazy=True)

    cases = failed.value.failure_cases[["column", "failure_case", "index"]].values.tolist()
    assert ["id", 9, 1] in cases
    assert ["state", "closed", 0] in cases


def test_a_failure_names_the_promise_and_its_line() -> None:
    frame = pd.DataFrame({"id": [1], "n": [7], "state": ["open"]})

    with pytest.raises(SchemaErrors, match=r"orders.n: enum, allowed: .*at shop.odcs.yaml:1\d:"):
        schema(orders(), backend="pandas").validate(frame, lazy=True)
