"""The branch adds, changes, moves or removes a policy.

Why: A policy decides what the gate asks of everybody. Who may merge a contract need not be the one who may
decide that, and a weaker rule is easily overlooked between two contracts. Told with `--base` only: until it
is merged, contracts are judged by the stricter of both.

Bad:
    profile: default
    rules:
      missing-owner: {severity: off}

Good:
    profile: strict

Mend: Let those who own the policy agree to it, in a pull request of its own. The fragments are what a branch
makes of a policy that says `profile: strict`. No profile lifts this rule; `severity: error` of the base makes
every change of a policy somebody's decision to overrule the gate.
"""

from dq.validators.rule import Severity, of_change

RULE = of_change("policy-changed", Severity.WARNING, __doc__)
