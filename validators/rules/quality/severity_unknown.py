"""Unknown severity; use info, warning, error or critical.

Why: ODCS allows any word. Tools treat a severity that they do not know as an error, or ignore it.

Bad:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeGreaterThan: 0, severity: eror}

Good:
    schema:
      - name: orders
        quality:
          - {metric: rowCount, mustBeGreaterThan: 0, severity: error}

How to fix: Write info, warning, error or critical.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, nearest, violation

_ALIASES = {
    "warn": "warning", "low": "info", "minor": "info", "medium": "warning", "high": "error",
    "major": "error", "fatal": "critical", "blocker": "critical",
}  # fmt: skip


def check(_contract: Contract, context: Context) -> Violations:
    severities = [severity.value for severity in Severity]
    for quality in context.walk.qualities:
        word = quality.severity
        if word is not None and word not in severities:
            similar = _ALIASES.get(word.lower()) or nearest(word, severities)
            hint = f"Did you mean {similar!r}?" if similar else f"Write one of {', '.join(severities)}."
            yield violation(quality, "severity", f"unknown severity {word!r}.", hint)


RULE = Rule("severity-unknown", Severity.WARNING, __doc__, check)
