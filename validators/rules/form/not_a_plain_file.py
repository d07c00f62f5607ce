"""Link, pipe, device, socket or folder instead of a regular file.

Why: The author of a link chooses which file of the machine is read, and its content could appear in a report.
So links below the given folder are not followed, and only regular files are opened.

Bad:
    description: {purpose: "orders.odcs.yaml is a link to another file"}

Good:
    description: {purpose: "orders.odcs.yaml is the file itself"}

How to fix: Replace it with the file itself. If another program creates the links, e.g. Kubernetes for a
ConfigMap, pass the folder that they point to: `registry/..data`.
"""

from dq.contracts.access.files import NotARegularFile
from dq.validators.rule import form_rule

RULE = form_rule(
    "not-a-plain-file", __doc__, bad=NotARegularFile("it is a link and not a file.", "Put the file there.")
)
