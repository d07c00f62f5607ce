"""Server location that the watcher and checks reject.

Why: A query string, a user, `..` in a URI or an invisible character could lead to a different location than
readers see, so dq always rejects them, regardless of the operator's settings.

Bad:
    servers:
      - {server: lake, type: s3, location: "s3://sales/orders?endpoint_override=example.com"}

Good:
    servers:
      - {server: lake, type: s3, location: "s3://sales/orders"}

How to fix: Write a plain path or URI: `lake/orders`, `s3://bucket/orders`.
"""

from dq.contracts.access.data_location import location_problems
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    for server in contract.servers:
        for key, wrong in location_problems(server):
            yield violation(server, key, f"{key} {server.get(key)!r} {wrong.message}.", wrong.hint)


RULE = Rule("location-refused", Severity.WARNING, __doc__, check)
