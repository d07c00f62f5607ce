"""The file is not text in UTF-8.

Why: Tools guess other encodings differently, so that names and descriptions change from reader to reader.

Bad:
    description: {purpose: "Bestellungen für den Shop, saved as Latin-1"}

Good:
    description: {purpose: "Bestellungen für den Shop"}

Mend: Save the file as UTF-8, and remove characters that are not text.
"""

from dq.validators.rule import form

RULE = form("not-utf8", __doc__, bad=b"name: Bestellungen f\xfcr den Shop\n")
