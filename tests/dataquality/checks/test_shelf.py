from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.examples import FOLDER, OF_ROWS, Example, contract_of, examples_of

from dq.contracts import install
from dq.dataquality.check import check
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a row check makes of its count is the same on each Spark: one example of each tells.
CASES = [
    pytest.param(
        kind,
        example,
        id=f"{kind.id}: {example.name}",
        marks=[pytest.mark.alike] if kind.id in OF_ROWS and number >= 1 else [],
    )
    for kind in built_in().values()
    for number, example in enumerate(examples_of(kind.id))
]
SECTIONS = ("Why: ", "Bad: ", "Good: ", "Nulls: ", "How to fix: ")


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "example"), CASES)
def test_an_example_ends_as_its_kind_says(spark: SparkSession, kind: CheckKind, example: Example) -> None:
    frame = spark.createDataFrame(list(example.rows), example.columns)

    report = check(
        Request(contract_of(example), frame, kinds={kind.id: kind}, now=example.now, history=example.history)
    )

    ends = " ".join(result.status for result in report.results)
    assert ends == example.ends, "\n".join(result.message for result in report.results)
    if example.observed:
        shown = [result.observed for result in report.results if result.status != "error"]
        assert tuple(shown[: len(example.observed)]) == example.observed


@pytest.mark.parametrize("kind", built_in().values(), ids=lambda kind: kind.id)
def test_a_kind_has_a_page_and_examples_of_both_ends(kind: CheckKind) -> None:
    positions = [kind.page.find(f"\n{section}") for section in SECTIONS]

    assert -1 not in positions
    assert positions == sorted(positions)
    assert {"pass", "fail"} <= {end for example in examples_of(kind.id) for end in example.ends.split()}
    assert any(not example.rows for example in examples_of(kind.id))


def test_every_file_on_disk_is_on_the_shelf() -> None:
    folder = Path(__file__).parents[3] / "dataquality" / "checks"

    names = {file.stem for file in folder.glob("*.py")} - {"__init__"}

    assert names == set(built_in())


def test_every_file_of_examples_is_of_a_check() -> None:
    assert {file.stem for file in FOLDER.glob("*.py")} == set(built_in())


def test_no_check_knows_spark() -> None:
    folder = Path(__file__).parents[3] / "dataquality" / "checks"

    assert [file.name for file in folder.glob("*.py") if "pyspark" in file.read_text()] == []


NEW_KIND = '''
"""Texts are in upper case."""
from dq.dataquality.clauses.clause import PropertyKeys, RowTest, with_test
from dq.dataquality.model.column import columns
from dq.dataquality.clauses.kind import CheckKind
from dq.dataquality.model.predicate import Compare
from dq.dataquality.model.predicate import Function

def clauses(contract, one):
    for prop, column in columns(one):
        if "upper" in prop.tags:
            made = PropertyKeys("upper", one, prop, column).clause("tags", "upper case")
            breaks = column.where(lambda value: Compare(Function("upper", (value,)), "<>", value))
            yield with_test(made, RowTest(breaks, "are not in upper case"))

CHECK = CheckKind("upper", __doc__, clauses)
'''


@pytest.mark.spark
def test_one_new_file_is_a_new_check(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "own_checks"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "upper.py").write_text(NEW_KIND)
    monkeypatch.syspath_prepend(tmp_path)
    own_checks = importlib.import_module("own_checks")
    kinds = {**built_in(), **install.load_plugins(own_checks, "CHECK", CheckKind)}
    example = Example("", "properties: [{name: v, tags: [upper]}]", "v string", (("a",), ("B",)), "")
    report = check(
        Request(contract_of(example), spark.createDataFrame(list(example.rows), "v string"), kinds=kinds)
    )

    assert [(one.status, one.observed, one.samples) for one in report.results if one.check == "upper"] == [
        ("fail", "1 of 2 rows", ({"v": "a"},))
    ]
    assert report.passes == 1
