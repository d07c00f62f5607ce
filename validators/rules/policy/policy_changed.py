"""Branch that adds, changes, moves or removes a policy.

Why: A policy applies to all contracts. People who may merge a contract are not always allowed to change the
policy, and a weakened rule is easily overlooked in a pull request. Only reported with `--base`: until the
change is merged, contracts are validated against the stricter of both policies.

Bad:
    profile: default
    rules:
      missing-owner: {severity: off}

Good:
    profile: strict

How to fix: Have the owners of the policy approve the change in a separate pull request. The examples show a
branch's change to a policy with `profile: strict`. No profile turns this rule off; with `severity: error` in
the base policy, every policy change needs someone to override the check.
"""

from dq.validators.rule import Severity, policy_change_rule

RULE = policy_change_rule("policy-changed", Severity.WARNING, __doc__)
