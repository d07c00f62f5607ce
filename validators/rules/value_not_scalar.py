"""A list or a mapping stands where one value is meant.

Why: A number cannot be compared with a list, so that the promise is never checked.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBe: [100, 900]}

Good:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeBetween: [100, 900]}

Mend: Write one text, number, date, or true or false.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import (
    Contract,
)
from dq.contracts.node import Node
from dq.contracts.outcome import Severity
from dq.contracts.scalar import read_as
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, fault, item_fault

_BOUNDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
}


def check(contract: Contract, context: Context) -> Iterator[Fault]:
    for clause in context.walk.clauses:
        quality = clause.quality
        yield from _judge(quality, {"mustBe": quality.must_be, "mustNotBe": quality.must_not_be})
        for index, value in enumerate(quality.valid_values or ()):
            if isinstance(value, (list, dict)):
                message = f"validValues[{index}] is {read_as(value)}."
                yield item_fault(quality, "validValues", index, message, "Write one value.")
    for column in context.walk.columns:
        options = column.property.logical_type_options
        if options is not None:
            yield from _judge(options, {key: getattr(options, name) for key, name in _BOUNDS.items()})
        for one in column.property.enum or ():
            yield from _judge(one, {"value": one.value})
    for sla in contract.sla_properties:
        yield from _judge(sla, {"value": sla.value, "valueExt": sla.value_ext})


def _judge(node: Node, values: dict[str, object]) -> Iterator[Fault]:
    for key, value in values.items():
        if isinstance(value, (list, dict)):
            yield fault(node, key, f"{key} is {read_as(value)}.", "Write one value.")


RULE = Rule("value-not-scalar", Severity.ERROR, __doc__, check)
