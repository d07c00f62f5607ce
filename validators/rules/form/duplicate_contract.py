"""Two files hold a contract with the same id and the same major version.

Why: They promise different things under one identity; which one is registered and watched is chance. So it is
with two files whose names differ only by case, or by the form of their characters: on macOS and Windows a
clone has one of them.

Bad:
    id: orders
    version: 1.3.0

Good:
    id: orders
    version: 2.0.0

Mend: Remove one, or give it an id of its own; a new major version may stand beside the old one.
"""

from dq.validators.context import note
from dq.validators.rule import Entry, Fault, Faults, Registry, Severity, among_others


def check(one: Entry, registry: Registry) -> Faults:
    id_, major = one.identity
    first = registry.same_contract(one)
    if first is not one:
        message = f"{first.file} holds {id_!r} in version {major} already{note(id_, first.identity[0])}."
        yield Fault(one.at, message, "Remove one of the two, or give it an id of its own.", "id")
        return
    first = registry.same_file(one)
    if first is not one:
        message = (
            f"{first.file} and {one.file} are one file where case or the form of characters does not count."
        )
        yield Fault(one.at, message, "Rename one of the two.", "id")


RULE = among_others("duplicate-contract", Severity.ERROR, __doc__, check)
