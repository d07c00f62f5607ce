"""The file has more than five million bytes.

Why: No contract that a person maintains is that large. It is data by mistake, or an attack on the gate.

Bad:
    description: {purpose: "… followed by five million more bytes"}

Good:
    description: {purpose: "One row per order."}

Mend: Split it into one contract per data product, and keep data out of it.
"""

from dq.validators.rule import form

RULE = form("file-too-large", __doc__, bad=b"#" * 5_000_001)
