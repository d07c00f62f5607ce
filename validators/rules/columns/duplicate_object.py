"""Two objects of the contract have one name.

Why: References, service levels and the catalog find an object by its name; nobody can tell which is meant.

Bad:
    schema:
      - name: orders
      - name: Orders

Good:
    schema:
      - name: orders
      - name: order_lines

Mend: Rename one of them, or remove the copy.
"""

from dq.contracts.model import SchemaObject
from dq.validators.context import alike, note
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    seen: dict[str, SchemaObject] = {}
    for one in contract.objects:
        first = seen.setdefault(alike(one.name.lower()), one)
        if first is not one:
            line = f"line {first.at('name').line}{note(one.name, first.name)}"
            message = f"{one.name!r} is the name of the object in {line} already."
            yield fault(one, "name", message, "Rename one of them, or remove the copy.")


RULE = Rule("duplicate-object", Severity.ERROR, __doc__, check)
