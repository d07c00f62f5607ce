"""Classification that the registry's policy does not list.

Why: Masking, access and retention depend on the classification; an unknown one protects nothing.

Bad:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, classification: ""}

Good:
    schema:
      - name: orders
        properties:
          - {name: amount, logicalType: number, classification: internal}

How to fix: Use one of the policy's classifications. If the policy has no such list, any word is valid.
"""

from dq.validators.rule import (
    Argument,
    Context,
    Contract,
    Rule,
    Severity,
    Violations,
    one_of,
    suggestion,
    violation,
)

CLASSIFICATIONS: Argument[tuple[str, ...]] = Argument(
    "classifications", (), "Allowed classifications, case-insensitive; an empty list allows every word."
)


def check(_contract: Contract, context: Context) -> Violations:
    allowed = {word.lower(): word for word in context.value(CLASSIFICATIONS)}
    for prop in context.walk.properties:
        classification = prop.classification
        if classification is None or (
            classification.strip() and (not allowed or classification.lower() in allowed)
        ):
            continue
        fallback = (
            f"Write {one_of(list(allowed.values()))}." if allowed else "Write a word, or remove the key."
        )
        hint = suggestion(classification, allowed.values(), fallback)
        yield violation(prop, "classification", f"unknown classification {classification!r}.", hint)


RULE = Rule("classification-unknown", Severity.WARNING, __doc__, check, arguments=(CLASSIFICATIONS,))
