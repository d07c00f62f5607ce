"""Rules whose violations the loader finds while it reads a file, so that each is a page alone."""

from dq.contracts.access.files import FileRejected, NotARegularFile
from dq.validators.rule import form_rule

RULES = (
    form_rule(
        "ambiguous-number",
        """Number that YAML 1.1 and YAML 1.2 read differently.

        Why: In YAML 1.1, which dq and most tools read, `0123` is octal and means 83, `1_000` is 1000 and
        `1:30` is 90, while `0o17`, `08` and `1e3` are strings. YAML 1.2 reads each of them differently.
        Where ODCS requires a number and only one reading is a number, e.g. `1e-06` in a threshold, that
        number is used, and this is a warning.

        Bad:
            servers: [{server: lake, type: postgres, host: db, database: sales, schema: sales, port: 0123}]

        Good:
            servers: [{server: lake, type: postgres, host: db, database: sales, schema: sales, port: 123}]

        How to fix: Write the number in digits without leading zeros, and small numbers as `1.0e-06`; put
        strings in quotes.
        """,
    ),
    form_rule(
        "duplicate-key",
        """Duplicate key in a mapping.

        Why: YAML parsers silently use one of the two, and different parsers use different ones.

        Bad:
            name: Orders
            domain: sales
            name: Orders of the shop

        Good:
            name: Orders of the shop
            domain: sales

        How to fix: Keep one of the two.
        """,
    ),
    form_rule(
        "file-too-large",
        """File larger than five million bytes.

        Why: No contract that a person maintains is that large. It contains data by mistake, or is an attack
        on CI.

        Bad:
            description: {purpose: "… followed by five million more bytes"}

        Good:
            description: {purpose: "One row per order."}

        How to fix: Split it into one contract per data product, and keep data out of it.
        """,
        bad=b"#" * 5_000_001,
    ),
    form_rule(
        "file-unreadable",
        """Contract file or folder that cannot be read.

        Why: A file that was not read was not validated, so the result is unknown and the exit code is 3.

        Bad:
            description: {purpose: "This process may not read orders.odcs.yaml"}

        Good:
            description: {purpose: "One row per order."}

        How to fix: Check the permissions of the file and of the folders above it. Contracts may be at most
        64 folders deep.
        """,
        bad=FileRejected("it cannot be read: Permission denied.", "Check it."),
    ),
    form_rule(
        "later-version",
        """Key or value that requires a later ODCS version.

        Why: Tools that support only the contract's `apiVersion` reject it, or ignore the key.

        Bad:
            apiVersion: v3.1.0
            schema:
              - name: orders
                properties:
                  - name: state
                    logicalType: string
                    enum: [{value: open}, {value: paid}]

        Good:
            apiVersion: v3.2.0
            schema:
              - name: orders
                properties:
                  - name: state
                    logicalType: string
                    enum: [{value: open}, {value: paid}]

        How to fix: Raise `apiVersion`, or remove the key.
        """,
    ),
    form_rule(
        "missing-key",
        """Missing key that ODCS requires.

        Why: Without it the element has no meaning, or cannot be referenced.

        Bad:
            support:
              - tool: slack
                scope: notifications

        Good:
            support:
              - channel: "#sales-data"
                tool: slack
                scope: notifications

        How to fix: Add the key.
        """,
    ),
    form_rule(
        "not-a-contract",
        """Document that is empty, a list or a single value.

        Why: A contract is a mapping of keys to values; nothing else can be validated.

        Bad:
            ---
            - orders
            - payments

        Good:
            name: Orders

        How to fix: Start with `apiVersion: v3.2.0` and `kind: DataContract`, or create a skeleton with `dq
        init`.
        """,
    ),
    form_rule(
        "not-a-plain-file",
        """Link, pipe, device, socket or folder instead of a regular file.

        Why: The author of a link chooses which file of the machine is read, and its content could appear in
        a report. So links below the given folder are not followed, and only regular files are opened.

        Bad:
            description: {purpose: "orders.odcs.yaml is a link to another file"}

        Good:
            description: {purpose: "orders.odcs.yaml is the file itself"}

        How to fix: Replace it with the file itself. If another program creates the links, e.g. Kubernetes
        for a ConfigMap, pass the folder that they point to: `registry/..data`.
        """,
        bad=NotARegularFile("it is a link and not a file.", "Put the file there."),
    ),
    form_rule(
        "not-utf8",
        """File that is not UTF-8 text.

        Why: Tools guess other encodings differently, so names and descriptions differ between readers.

        Bad:
            description: {purpose: "Bestellungen für den Shop, saved as Latin-1"}

        Good:
            description: {purpose: "Bestellungen für den Shop"}

        How to fix: Save the file as UTF-8, and remove characters that are not text.
        """,
        bad=b"name: Bestellungen f\xfcr den Shop\n",
    ),
    form_rule(
        "old-format",
        """Format that ODCS 3 has replaced.

        Why: ODCS 2 and the Data Contract Specification use other keys; reading them as ODCS 3 would only
        produce misleading findings.

        Bad:
            apiVersion: v2.2.2

        Good:
            apiVersion: v3.2.0

        How to fix: Convert the contract once, and keep the result.
        """,
    ),
    form_rule(
        "unknown-api-version",
        """Missing or unknown ODCS version.

        Why: A contract is validated against its own version of the standard. Without it, the meaning of its
        keys is undefined.

        Bad:
            apiVersion: 3.2.0

        Good:
            apiVersion: v3.2.0

        How to fix: Write `apiVersion: v3.2.0`, with the `v`.
        """,
    ),
    form_rule(
        "unknown-key",
        """Unknown key.

        Why: A misspelt key has no effect and is never checked, although its author believes that it is.

        Bad:
            schema:
              - name: orders
                properties:
                  - name: order_id
                    requierd: true

        Good:
            schema:
              - name: orders
                properties:
                  - name: order_id
                    required: true

        How to fix: Correct the spelling. Put your own keys under `customProperties`.
        """,
    ),
    form_rule(
        "unknown-value",
        """Value that ODCS does not allow for this key.

        Why: Tools ignore a clause with a value that they do not know.

        Bad:
            schema:
              - name: orders
                properties:
                  - name: order_id
                    logicalType: strng

        Good:
            schema:
              - name: orders
                properties:
                  - name: order_id
                    logicalType: string

        How to fix: Use one of the allowed values.
        """,
    ),
    form_rule(
        "wrong-type",
        """Value with the wrong type.

        Why: YAML reads `yes`, `1.10` and `2026-01-31` as a boolean, a number and a date. Tools that convert
        them back do so differently.

        Bad:
            version: 1.2

        Good:
            version: "1.2.0"

        How to fix: Put strings in quotes; remove the quotes from numbers and booleans.
        """,
    ),
    form_rule(
        "yaml-refused",
        """YAML feature that contracts must not use.

        Why: Tags, multiple documents, deep nesting and aliases that expand without limit can run code, hide
        a second contract or exhaust the machine that validates a pull request. Contracts need none of them.

        Bad:
            name: !!python/name:os.system Orders

        Good:
            name: Orders

        How to fix: Write plain values, one contract per file, at most 64 levels deep.
        """,
    ),
    form_rule(
        "yaml-syntax",
        """Invalid YAML, or invalid JSON in a `.json` file.

        Why: Nothing in the file can be read. The location is where the parser stopped; the mistake is there
        or just before it. Files named `.json` are read by programs that only understand JSON.

        Bad:
            name: Orders: all of them

        Good:
            name: "Orders: all of them"

        How to fix: Correct the line in the message. Usually a quote, a bracket or the indentation is wrong.
        """,
    ),
)
