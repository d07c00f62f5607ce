"""dq as a pipeline or a notebook uses it: `import dq`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dq
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.outcome import Location, ReadError, Severity
from dq.contracts.yaml.parse import BrokenContract, read
from dq.dataquality.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
schema:
  - name: orders
    properties:
      - {name: id, logicalType: integer, required: true}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "orders.odcs.yaml").write_text(ORDERS)
    return tmp_path / "orders.odcs.yaml"


@pytest.mark.spark
def test_a_contract_is_given_as_a_path_a_text_or_itself(spark: SparkSession, file: Path) -> None:
    frame = spark.createDataFrame([(1,), (None,)], "id bigint")

    reports = [dq.check(given, frame) for given in (file, str(file), ORDERS, read(file))]

    assert [[one.message for one in report.failed] for report in reports] == [
        ["orders.id: 1 of 2 rows are NULL; allowed: no NULL"]
    ] * 4
    with pytest.raises(dq.Violated):
        reports[0].raise_for_status()


def test_a_broken_contract_is_one_error_with_every_finding() -> None:
    with pytest.raises(dq.DqError) as raised:
        dq.check(ORDERS.replace("name: id", "nam: id").replace("version:", "versin:"), None)

    assert isinstance(raised.value, BrokenContract)
    assert len(raised.value.findings) > 1
    assert all(str(finding) in str(raised.value) for finding in raised.value.findings)


def test_a_contract_that_is_not_there_is_said_with_its_path() -> None:
    with pytest.raises(ReadError, match=r"'nowhere.odcs.yaml' cannot be read"):
        dq.check("nowhere.odcs.yaml", None)


def test_the_package_names_what_it_has_and_refuses_the_rest() -> None:
    # Which names there are, tests/golden/public-names.txt holds.
    assert dir(dq) == sorted(dq.__all__)
    assert all(getattr(dq, name) is not None for name in dir(dq))
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        dq.chek  # noqa: B018


def report(*statuses: Status) -> Report:
    at = Location("orders.odcs.yaml", 8, 9)
    results = tuple(
        CheckResult(
            "required", f"p{number}", "orders", "<id>", status, Severity.ERROR, "", "", f"{status} & <b>", at,
            samples=({"id": "<script>"},),
        )
        for number, status in enumerate(statuses)
    )  # fmt: skip
    return Report("orders", "1.0.0", "orders", (), results, (), 1)


@pytest.mark.parametrize(
    ("statuses", "shown"),
    [
        ((Status.PASS,), "<orders 1.0.0, orders: passed (1 pass)>"),
        (
            (Status.PASS, Status.FAIL),
            "<orders 1.0.0, orders: failed (1 pass, 1 fail)>\n  fail error fail & <b>",
        ),
        ((Status.ERROR,), "<orders 1.0.0, orders: unknown (1 error)>\n  error error error & <b>"),
        ((), "<orders 1.0.0, orders: passed (no checks)>"),
    ],
)
def test_a_prompt_shows_the_verdict_and_what_is_not_as_promised(
    statuses: tuple[Status, ...], shown: str
) -> None:
    assert repr(report(*statuses)) == shown


def test_a_notebook_shows_the_failures_and_runs_nothing_of_the_data() -> None:
    shown = report(Status.PASS, Status.FAIL)._repr_html_()

    assert "orders 1.0.0, orders</b>: failed (1 pass, 1 fail)" in shown
    assert shown.index("fail &amp;") < shown.index("<summary>1 more") < shown.index("pass &amp;")
    assert "<script>" not in shown
    assert "orders.odcs.yaml:8:9" in shown
