"""File larger than five million bytes.

Why: No contract that a person maintains is that large. It contains data by mistake, or is an attack on CI.

Bad:
    description: {purpose: "… followed by five million more bytes"}

Good:
    description: {purpose: "One row per order."}

How to fix: Split it into one contract per data product, and keep data out of it.
"""

from dq.validators.rule import form_rule

RULE = form_rule("file-too-large", __doc__, bad=b"#" * 5_000_001)
