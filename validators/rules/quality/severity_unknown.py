"""A quality rule has a severity that is none of info, warning, error and critical.

Why: ODCS leaves the word open. What a tool cannot read it takes for an error, or for nothing.

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

Mend: Write one of the four words.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault, nearest

_MEANT = {
    "warn": "warning", "low": "info", "minor": "info", "medium": "warning", "high": "error",
    "major": "error", "fatal": "critical", "blocker": "critical",
}  # fmt: skip


def check(_contract: Contract, context: Context) -> Faults:
    known = [severity.value for severity in Severity]
    for quality in context.walk.qualities:
        written = quality.severity
        if written is not None and written not in known:
            hint = _MEANT.get(written.lower()) or nearest(written, known)
            mend = f"Did you mean {hint!r}?" if hint else f"Write one of {', '.join(known)}."
            yield fault(quality, "severity", f"{written!r} is not a severity.", mend)


RULE = Rule("severity-unknown", Severity.WARNING, __doc__, check)
