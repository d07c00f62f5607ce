"""Name that Glue, Hive and Athena do not store unchanged.

Why: Catalogs convert names to lower case and reject most special characters, so readers look for a column
that does not exist under this name.

Bad:
    schema:
      - name: orders
        properties:
          - {name: orderDate, logicalType: date}

Good:
    schema:
      - name: orders
        properties:
          - {name: order_date, logicalType: date}

How to fix: Use lower-case letters, digits and underscores, at most 255 characters. With a `physicalName`,
`name` can be anything.
"""

import re

from dq.contracts.model import Element
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, is_on_lake, violation

_NAME = re.compile(r"[a-z0-9_]+")
MAX_BYTES = 255


def check(contract: Contract, context: Context) -> Violations:
    if not is_on_lake(contract):
        return
    for element in (*contract.objects, *context.walk.properties):
        yield from _check_name(element)


def _check_name(element: Element) -> Violations:
    name = element.column
    if not name or (_NAME.fullmatch(name) and len(name) <= MAX_BYTES):
        return
    key = "physicalName" if element.physical_name else "name"
    if len(name.encode()) > MAX_BYTES:
        message = f"the name {name[:40] + '…'!r} has more than {MAX_BYTES} bytes."
        yield violation(element, key, message, "Shorten it.", kind="length")
        return
    message = f"{name!r} is not a valid catalog name: use lower-case letters, digits and underscores."
    yield violation(element, key, message, f"Write {_snake_case(name)!r}.", kind="signs")


def _snake_case(name: str) -> str:
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9_]+", "_", separated.lower()).strip("_") or "a_name"


RULE = Rule(
    "name-not-for-catalog", Severity.WARNING, __doc__, check, after=("duplicate-property", "duplicate-object")
)
