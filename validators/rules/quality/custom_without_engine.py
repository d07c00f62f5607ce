"""A quality rule of the type custom does not say which engine runs what.

Why: Without an engine and its implementation no tool can run the rule.

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

Mend: Add `engine` and `implementation`.
"""

from dq.validators.rule import Context, Contract, Faults, Rule, Severity, absence


def check(_contract: Contract, context: Context) -> Faults:
    for quality in context.walk.qualities:
        if quality.type != "custom":
            continue
        absent = [key for key in ("engine", "implementation") if not getattr(quality, key)]
        if absent:
            message = f"a rule of the type 'custom' needs {' and '.join(absent)}."
            yield absence(quality, message, f"Add '{absent[0]}: …'.", *absent)


RULE = Rule("custom-without-engine", Severity.ERROR, __doc__, check)
