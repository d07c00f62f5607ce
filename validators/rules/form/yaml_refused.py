"""YAML feature that contracts must not use.

Why: Tags, multiple documents, deep nesting and aliases that expand without limit can run code, hide a second
contract or exhaust the machine that validates a pull request. Contracts need none of them.

Bad:
    name: !!python/name:os.system Orders

Good:
    name: Orders

How to fix: Write plain values, one contract per file, at most 64 levels deep.
"""

from dq.validators.rule import form_rule

RULE = form_rule("yaml-refused", __doc__)
