"""A pattern of a contract cannot keep the gate or Spark busy (S9)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dq.cli.main import run
from dq.contracts.yaml.parse import parse
from dq.dataquality.check import check
from dq.dataquality.request import Request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
status: draft
schema:
  - name: orders
    properties:
      - name: mail
        logicalType: string
"""
OPTION = "        logicalTypeOptions: {pattern: PATTERN}\n"
RULE = "        quality: [{metric: invalidValues, arguments: {pattern: PATTERN}, mustBe: 0}]\n"


@pytest.mark.parametrize("place", [OPTION, RULE], ids=["option", "argument"])
def test_the_gate_refuses_an_ambiguous_pattern_at_its_place(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shop.odcs.yaml"
    file.write_text(CONTRACT + place.replace("PATTERN", r"'^(\w+\s?)*$'"))

    code = run(["validate", str(file), "--format", "text"])

    said = " ".join(capsys.readouterr().out.split())
    assert code == 1
    assert f" 12:{place.index('PATTERN') + 1} error pattern-invalid" in said
    assert "can match the same text in exponentially many ways (position 3)" in said


def test_an_ambiguous_pattern_of_a_policy_is_a_finding_before_it_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.odcs.yaml").write_text(CONTRACT.replace("id: shop", f"id: {'a' * 200}"))
    (tmp_path / "dq-policy.yaml").write_text(
        "own: {ids: {select: contract, message: m, assert: {id: {matches: '(?i)^(a+)+!$'}}}}\n"
    )

    code = run(["validate", str(tmp_path)])

    assert code == 2
    assert "can match the same text in exponentially many ways" in capsys.readouterr().err


# What costs the most of what is accepted, each with a text that it does not match.
ACCEPTED = {
    ".*@.*[.].*": "@" * 1_000,
    r"^\S+@\S+$": "@" * 2_000 + " ",
    r"^[^@\s]+@[^@\s]+[.][^@\s]+$": "a@" + "." * 2_000 + " ",
    "^(.*)@(.*)$": "@" * 2_000 + "\n",
    "([a-z]+[.])+": "ab" * 1_000,
    r"^[\s\u200c]+|[\s\u200c]+$": "<" + " " * 2_000 + "a",
    "^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+[.][a-zA-Z]{2,}$": "a@" + "a." * 1_000,
}


@pytest.mark.spark
@pytest.mark.parametrize("pattern", ACCEPTED)
def test_an_accepted_pattern_is_soon_done_with_a_text_made_against_it(
    spark: SparkSession, pattern: str
) -> None:
    contract = parse((CONTRACT + OPTION.replace("PATTERN", f"'{pattern}'")).encode(), "a.yaml").contract
    assert contract is not None
    rows = spark.createDataFrame([(ACCEPTED[pattern],)], "mail string").cache()
    rows.count()
    begin = time.monotonic()

    report = check(Request(contract, rows))

    # Of 20,000 characters it is about a second, twice, where Java's second compiler is on.
    assert [one.status for one in report.results if one.check == "pattern"] == ["fail"]
    assert time.monotonic() - begin < 300
