"""A contract, or a folder of contracts, cannot be read.

Why: What was not read was not judged, and nobody can tell whether it is fine: the exit code is 3.

Bad:
    description: {purpose: "This process may not read orders.odcs.yaml"}

Good:
    description: {purpose: "One row per order."}

Mend: Check the permissions of the file and of the folders above it. Contracts lie at most 64 folders deep.
"""

from dq.contracts.access.files import FileRefused
from dq.validators.rule import form

RULE = form("file-unreadable", __doc__, bad=FileRefused("it cannot be read: Permission denied.", "Check it."))
