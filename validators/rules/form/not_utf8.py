"""File that is not UTF-8 text.

Why: Tools guess other encodings differently, so names and descriptions differ between readers.

Bad:
    description: {purpose: "Bestellungen für den Shop, saved as Latin-1"}

Good:
    description: {purpose: "Bestellungen für den Shop"}

How to fix: Save the file as UTF-8, and remove characters that are not text.
"""

from dq.validators.rule import form_rule

RULE = form_rule("not-utf8", __doc__, bad=b"name: Bestellungen f\xfcr den Shop\n")
