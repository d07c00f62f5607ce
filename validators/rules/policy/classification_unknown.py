"""A classification is not one that the policy of the registry knows.

Why: Masking, access and retention hang on the word; a word of one's own protects nothing.

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

Mend: Use one of the policy's classifications. Without such a list, any word will do.
"""

from dq.validators.rule import Argument, Context, Contract, Faults, Rule, Severity, fault, one_of, suggestion

KNOWN: Argument[tuple[str, ...]] = Argument(
    "classifications", (), "The words that may be used, in any case; an empty list allows every word."
)


def check(_contract: Contract, context: Context) -> Faults:
    known = {one.lower(): one for one in context.value(KNOWN)}
    for prop in context.walk.properties:
        written = prop.classification
        if written is None or (written.strip() and (not known or written.lower() in known)):
            continue
        listed = f"Write {one_of(list(known.values()))}." if known else "Write a word, or remove the key."
        mend = suggestion(written, known.values(), listed)
        yield fault(prop, "classification", f"{written!r} is not a known classification.", mend)


RULE = Rule("classification-unknown", Severity.WARNING, __doc__, check, arguments=(KNOWN,))
