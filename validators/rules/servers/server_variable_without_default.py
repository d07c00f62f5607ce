"""A server is described by a variable that has no default.

Why: Where the variable is not set, nobody can tell where the data lies, and no check can run.

Bad:
    servers:
      - {server: lake, type: s3, location: "s3://${BUCKET}/orders"}

Good:
    servers:
      - {server: lake, type: s3, location: "s3://${BUCKET:-sales-dev}/orders"}

Mend: Write `${NAME:-default}`.
"""

import re

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def check(contract: Contract, _context: Context) -> Faults:
    for server in contract.servers:
        for key, value in (server.model_extra or {}).items():
            found = _VARIABLE.search(value) if isinstance(value, str) else None
            if found is not None:
                name = found.group(1)
                message = f"{key} needs the variable {name!r}, which has no default."
                yield fault(server, key, message, f"Write '${{{name}:-…}}'.")


RULE = Rule("server-variable-without-default", Severity.WARNING, __doc__, check)
