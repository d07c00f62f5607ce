"""Number that YAML 1.1 and YAML 1.2 read differently.

Why: In YAML 1.1, which dq and most tools read, `0123` is octal and means 83, `1_000` is 1000 and `1:30` is
90, while `0o17`, `08` and `1e3` are strings. YAML 1.2 reads each of them differently. Where ODCS requires a
number and only one reading is a number, e.g. `1e-06` in a threshold, that number is used, and this is a
warning.

Bad:
    servers: [{server: lake, type: postgres, host: db, database: sales, schema: sales, port: 0123}]

Good:
    servers: [{server: lake, type: postgres, host: db, database: sales, schema: sales, port: 123}]

How to fix: Write the number in digits without leading zeros, and small numbers as `1.0e-06`; put strings in
quotes.
"""

from dq.validators.rule import form_rule

RULE = form_rule("ambiguous-number", __doc__)
