"""Two servers of a contract have the same name.

Why: Commands choose a server by its name (`--server prod`), and would take one of the two.

Bad:
    servers:
      - {server: prod, type: duckdb, database: sales}
      - {server: prod, type: duckdb, database: archive}

Good:
    servers:
      - {server: prod, type: duckdb, database: sales}
      - {server: archive, type: duckdb, database: archive}

Mend: Give each a name of its own. ODCS calls `server` the identifier of the server.
"""

from dq.contracts.model import Server
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault


def check(contract: Contract, _context: Context) -> Faults:
    seen: dict[str, Server] = {}
    for one in contract.servers:
        first = seen.setdefault(one.server, one)
        if first is not one:
            message = f"{one.server!r} is the name of the server in line {first.at('server').line} already."
            yield fault(one, "server", message, "Rename one of them, or remove the copy.")


RULE = Rule("duplicate-server", Severity.WARNING, __doc__, check)
