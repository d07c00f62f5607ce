"""A number is written in a way that readers of YAML do not agree about.

Why: To YAML 1.1, which dq and most tools read, `0123` is octal and means 83, `1_000` is 1000 and `1:30` is
90; `0o17`, `08` and `1e3` are texts. YAML 1.2 reads each of them otherwise. Where ODCS takes a number and
only one reading is a number, as of `1e-06` in a threshold, that number counts, and this is a warning.

Bad:
    servers: [{server: lake, type: postgres, host: db, database: sales, schema: sales, port: 0123}]

Good:
    servers: [{server: lake, type: postgres, host: db, database: sales, schema: sales, port: 123}]

Mend: Write the number in digits, without zeros before it, and a small one as `1.0e-06`; put quotes
around what is a text.
"""

from dq.validators.rule import form

RULE = form("ambiguous-number", __doc__)
