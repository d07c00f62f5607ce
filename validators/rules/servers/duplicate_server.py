"""Duplicate server name.

Why: Commands select a server by its name (`--server prod`), and would use either of the two.

Bad:
    servers:
      - {server: prod, type: duckdb, database: sales}
      - {server: prod, type: duckdb, database: archive}

Good:
    servers:
      - {server: prod, type: duckdb, database: sales}
      - {server: archive, type: duckdb, database: archive}

How to fix: Give each server its own name. In ODCS, `server` is the identifier of the server.
"""

from dq.contracts.model import Server
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    by_name: dict[str, Server] = {}
    for server in contract.servers:
        first = by_name.setdefault(server.server, server)
        if first is not server:
            message = f"server name {server.server!r} is already used in line {first.locate('server').line}."
            yield violation(server, "server", message, "Rename one of them, or remove the duplicate.")


RULE = Rule("duplicate-server", Severity.WARNING, __doc__, check)
