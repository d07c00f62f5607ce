"""Two files hold a contract with the same id and the same major version.

Why: They promise different things under one identity; which one is registered and watched is chance.

Bad:
    id: orders
    version: 1.3.0

Good:
    id: orders
    version: 2.0.0

Mend: Remove one, or give it an id of its own; a new major version may stand beside the old one.
"""

from __future__ import annotations

from collections.abc import Iterator

from dq.contracts.model import Contract
from dq.contracts.outcome import Severity
from dq.validators.context import Context, identity
from dq.validators.rule import Fault, Rule, Scope, fault


def check(contract: Contract, context: Context) -> Iterator[Fault]:
    twins = context.registry.by_identity.get(identity(contract), ())
    first = twins[0] if twins else contract
    if first is not contract:
        id_, major = identity(contract)
        message = f"{first.file} holds {id_!r} in version {major} already."
        yield fault(contract, "id", message, "Remove one of the two, or give it an id of its own.")


RULE = Rule("duplicate-contract", Severity.ERROR, __doc__, check, scope=Scope.REGISTRY)
