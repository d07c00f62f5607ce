"""Two contracts with the same id and major version, or file names that differ only by case.

Why: They share one identity, so it is undefined which of them is registered and watched. Files whose names
differ only by case or Unicode normalization have the same problem: a clone on macOS or Windows has only one
of them.

Bad:
    id: orders
    version: 1.3.0

Good:
    id: orders
    version: 2.0.0

How to fix: Remove one, or give it its own id. A new major version may exist next to the old one.
"""

from dq.validators.context import confusable_note
from dq.validators.rule import ContractEntry, Registry, Severity, Violation, Violations, registry_rule


def check(entry: ContractEntry, registry: Registry) -> Violations:
    id_, major = entry.identity
    first = registry.same_contract(entry)
    if first is not entry:
        message = (
            f"{id_!r} version {major} is already defined in "
            f"{first.file}{confusable_note(id_, first.identity[0])}."
        )
        yield Violation(entry.location, message, "Remove one of the two, or give it its own id.", "id")
        return
    first = registry.same_file(entry)
    if first is not entry:
        message = (
            f"{first.file} and {entry.file} differ only by case or Unicode normalization, "
            "so some file systems cannot hold both."
        )
        yield Violation(entry.location, message, "Rename one of the two.", "id")


RULE = registry_rule("duplicate-contract", Severity.ERROR, __doc__, check)
