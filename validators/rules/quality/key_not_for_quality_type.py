"""A quality rule has a key that rules of its type do not have.

Why: A rule that says `type: text` and compares something is read by people and run by nobody; the promise
that its operator makes is void.

Bad:
    schema:
      - name: orders
        quality:
          - {type: text, description: There are orders on every day., mustBeGreaterThan: 0}

Good:
    schema:
      - name: orders
        quality:
          - {type: library, metric: rowCount, mustBeGreaterThan: 0}

Mend: Give the rule the type that its keys belong to, or remove the key.
"""

from dq.contracts.model import OPERATORS
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

# Type -> the keys that are its own. `validValues` stood beside the metric in ODCS 3.0.
_OWN: dict[str, frozenset[str]] = {
    "text": frozenset(),
    "library": frozenset({"metric", "rule", "arguments", "validValues", *OPERATORS}),
    "sql": frozenset({"query", *OPERATORS}),
    "custom": frozenset({"engine", "implementation"}),
}
_ALL = frozenset().union(*_OWN.values())


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        strange = (quality.place.keys.keys() & _ALL) - _OWN[quality.type]
        if not strange or (quality.type == "library" and not (quality.metric or quality.rule)):
            continue
        key = min(strange, key=lambda one: quality.place.keys[one])
        types = ", ".join(type_ for type_, keys in _OWN.items() if key in keys)
        message = f"a rule of the type {quality.type!r} has no {key!r}."
        yield fault(quality, key, message, f"Remove it, or write the type it belongs to: {types}.")


RULE = Rule("key-not-for-quality-type", Severity.ERROR, __doc__, check, first=(3, 1, 0))
