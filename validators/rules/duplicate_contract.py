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

from dq.contracts.outcome import Severity
from dq.validators.registry import Entry, Registry
from dq.validators.rule import Fault, among_others


def check(one: Entry, registry: Registry) -> Iterator[Fault]:
    first = registry.by_identity[one.identity][0]
    if first is not one:
        id_, major = one.identity
        message = f"{first.file} holds {id_!r} in version {major} already."
        yield Fault(one.at, message, "Remove one of the two, or give it an id of its own.", "id")


RULE = among_others("duplicate-contract", Severity.ERROR, __doc__, check)
