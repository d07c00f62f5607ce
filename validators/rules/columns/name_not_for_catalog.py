"""A name is not one that Glue, Hive and Athena keep as it is written.

Why: Catalogs fold names to lower case and refuse most signs, so that readers look for a column that does
not exist under this name.

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

Mend: Write lower-case letters, digits and underscores, at most 255 of them. A `physicalName` frees `name`.
"""

import re

from dq.contracts.model import Element
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, on_lake

_NAME = re.compile(r"[a-z0-9_]+")
MAX_BYTES = 255


def check(contract: Contract, context: Context) -> Faults:
    if not on_lake(contract):
        return
    for one in (*contract.objects, *context.walk.properties):
        yield from _judge(one)


def _judge(one: Element) -> Faults:
    name = one.column
    if not name or (_NAME.fullmatch(name) and len(name) <= MAX_BYTES):
        return
    key = "physicalName" if one.physical_name else "name"
    if len(name.encode()) > MAX_BYTES:
        message = f"the name {name[:40] + '…'!r} has more than {MAX_BYTES} bytes."
        yield fault(one, key, message, "Shorten it.", kind="length")
        return
    message = f"{name!r} is not a name that catalogs keep: lower-case letters, digits and underscores."
    yield fault(one, key, message, f"Write {_snake(name)!r}.", kind="signs")


def _snake(name: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9_]+", "_", parted.lower()).strip("_") or "a_name"


RULE = Rule(
    "name-not-for-catalog", Severity.WARNING, __doc__, check, after=("duplicate-property", "duplicate-object")
)
