"""A server names a place that no watcher and no check will use.

Why: A query, a user, `..` in a URI or a character that cannot be seen could lead to another place than the
one that is read, so dq refuses them, whatever its operator allows.

Bad:
    servers:
      - {server: lake, type: s3, location: "s3://sales/orders?endpoint_override=example.com"}

Good:
    servers:
      - {server: lake, type: s3, location: "s3://sales/orders"}

Mend: Write a plain path or URI: `lake/orders`, `s3://bucket/orders`.
"""

from dq.contracts.access.data_location import form_faults
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    for server in contract.servers:
        for key, wrong in form_faults(server):
            yield fault(server, key, f"{key} {server.get(key)!r} {wrong.message}.", wrong.mend)


RULE = Rule("location-refused", Severity.WARNING, __doc__, check)
