"""Key that the type of the quality rule does not have.

Why: A rule with `type: text` is only read by people and never run, so an operator in it has no effect.

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

How to fix: Change the type to the one that has the key, or remove the key.
"""

from dq.contracts.model import OPERATORS
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

# Type -> the keys that only it has. In ODCS 3.0, `validValues` is a sibling of the metric.
_OWN: dict[str, frozenset[str]] = {
    "text": frozenset(),
    "library": frozenset({"metric", "rule", "arguments", "validValues", *OPERATORS}),
    "sql": frozenset({"query", *OPERATORS}),
    "custom": frozenset({"engine", "implementation"}),
}
_ALL = frozenset().union(*_OWN.values())


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        strange = (quality.place.keys.keys() & _ALL) - _OWN[quality.type]
        if not strange or (quality.type == "library" and not (quality.metric or quality.rule)):
            continue
        key = min(strange, key=lambda name: quality.place.keys[name])
        types = ", ".join(type_ for type_, keys in _OWN.items() if key in keys)
        message = f"a rule of type {quality.type!r} has no {key!r}."
        yield violation(quality, key, message, f"Remove it, or change the type to {types}.")


RULE = Rule("key-not-for-quality-type", Severity.ERROR, __doc__, check, first=(3, 1, 0))
