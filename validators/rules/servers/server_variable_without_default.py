"""Server with a variable that has no default.

Why: If the variable is not set, the location of the data is unknown and no check can run.

Bad:
    servers:
      - {server: lake, type: s3, location: "s3://${BUCKET}/orders"}

Good:
    servers:
      - {server: lake, type: s3, location: "s3://${BUCKET:-sales-dev}/orders"}

How to fix: Write `${NAME:-default}`.
"""

import re

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def check(contract: Contract, _context: Context) -> Violations:
    for server in contract.servers:
        for key, value in (server.model_extra or {}).items():
            match = _VARIABLE.search(value) if isinstance(value, str) else None
            if match is not None:
                name = match.group(1)
                message = f"variable {name!r} in {key} has no default."
                yield violation(server, key, message, f"Write '${{{name}:-…}}'.")


RULE = Rule("server-variable-without-default", Severity.WARNING, __doc__, check)
