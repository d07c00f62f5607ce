"""Custom quality rule without an engine or implementation.

Why: Without both, no tool can run the rule.

Bad:
    schema:
      - name: orders
        quality:
          - {type: custom, engine: soda}

Good:
    schema:
      - name: orders
        quality:
          - {type: custom, engine: soda, implementation: "checks: [row_count > 0]"}

How to fix: Add `engine` and `implementation`.
"""

from dq.validators.rule import Context, Contract, Rule, Severity, Violations, missing_key


def check(_contract: Contract, context: Context) -> Violations:
    for quality in context.walk.qualities:
        if quality.type != "custom":
            continue
        absent = [key for key in ("engine", "implementation") if not getattr(quality, key)]
        if absent:
            message = f"a rule of type 'custom' needs {' and '.join(absent)}."
            yield missing_key(quality, message, f"Add '{absent[0]}: …'.", *absent)


RULE = Rule("custom-without-engine", Severity.ERROR, __doc__, check)
