"""A contract is a link, a pipe, a device, a socket or a folder, where a file was expected.

Why: Whoever proposes a link chooses which file of the machine is read, and what is in it would come out in a
report. So links are not followed below the folder that is named, and nothing but files is opened.

Bad:
    description: {purpose: "orders.odcs.yaml is a link to another file"}

Good:
    description: {purpose: "orders.odcs.yaml is the file itself"}

Mend: Put the file itself there. Where another program makes the links, as Kubernetes does of a ConfigMap,
name the folder that they lead to: `registry/..data`.
"""

from dq.contracts.access.files import NotPlain
from dq.validators.rule import form

RULE = form("not-a-plain-file", __doc__, bad=NotPlain("it is a link and not a file.", "Put the file there."))
