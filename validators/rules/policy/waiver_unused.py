"""A waiver of the policy waives nothing: the contract has no such finding.

Why: Perhaps the fault was mended and the waiver forgotten; perhaps the path is misspelt, or an element was
put before it. A waiver that lies about would hide the next fault at its place.

Bad:
    waivers:
      - rule: status-unknown
        contract: orders
        path: status
        reason: The portal still writes the old word.
        by: ana@example.com
        expires: 2120-06-30

Good:
    waivers: []

Mend: Remove it, or copy rule and path from `dq validate --format json`. Waivers of contracts that were not
read in this run are not judged.
"""

from dq.validators.rule import Severity, of_policy

RULE = of_policy("waiver-unused", Severity.WARNING, __doc__)
