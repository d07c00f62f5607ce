"""The file is YAML that a contract may not use.

Why: Tags, several documents, deep nesting and aliases that grow without bound can run code, hide a second
contract or exhaust the machine that validates a pull request. A contract needs none of them.

Bad:
    name: !!python/name:os.system Orders

Good:
    name: Orders

Mend: Write plain values, one contract per file, at most 64 levels deep.
"""

from dq.validators.rule import form

RULE = form("yaml-refused", __doc__)
