"""`dq sample` counts repeated keys as `dq check` does, whatever question the rule's bound makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dq.contracts.yaml.parse import parse
from dq.dataquality import sample

HEAD = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
schema:
  - name: orders
    properties:
      - {name: v, logicalType: string, quality: [{metric: duplicateValues, %s}]}
"""
# Seven rows, six with a value, two different ones: four repeat one.
RULES = {
    "few are expected": ("mustBeLessThan: 2", "fail", 4.0),
    "many are expected": ("mustBeGreaterThan: 3", "pass", 4.0),
    "a share of all rows": ("unit: percent, mustBeGreaterThan: 57", "pass", 400 / 7),
    "a share that cannot be": ("unit: percent, mustBeGreaterThan: 100", "fail", 400 / 7),
    "a share between two": ("unit: percent, mustBeBetween: [50, 58]", "pass", 400 / 7),
}
_TOO_MANY = ("mustBeLessThan: 2",)


@pytest.mark.parametrize(("rule", "status", "value"), RULES.values(), ids=RULES)
def test_repetitions_are_counted_whatever_is_expected(
    tmp_path: Path, rule: str, status: str, value: float
) -> None:
    (tmp_path / "orders.csv").write_text("v\na\na\nb\na\nb\nb\nNULL\n")
    parsed = parse((HEAD % rule).encode(), "shop.odcs.yaml")
    assert parsed.contract is not None, parsed.findings
    one = parsed.contract.objects[0]
    read = sample.read(tmp_path / "orders.csv", one)

    report = sample.check(parsed.contract, one, read)

    (found,) = (result for result in report.results if result.check == "duplicate_values")
    assert found.status == status
    assert found.value == pytest.approx(value)
    # Rows are named that are too many, and not those of which more are asked for.
    assert bool(found.samples) is (rule in _TOO_MANY)
