"""Contract file or folder that cannot be read.

Why: A file that was not read was not validated, so the result is unknown and the exit code is 3.

Bad:
    description: {purpose: "This process may not read orders.odcs.yaml"}

Good:
    description: {purpose: "One row per order."}

How to fix: Check the permissions of the file and of the folders above it. Contracts may be at most 64 folders
deep.
"""

from dq.contracts.access.files import FileRejected
from dq.validators.rule import form_rule

RULE = form_rule(
    "file-unreadable", __doc__, bad=FileRejected("it cannot be read: Permission denied.", "Check it.")
)
