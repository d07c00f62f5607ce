"""Text in Spark SQL: names and literals of statements, run by dq or written into a file."""

from __future__ import annotations

import re

from dq.contracts.shared.errors import UsageError
from dq.contracts.sql.text import name

# The spark-sql shell looks for the end of a statement, quotes and comments inside of back-quoted names, and
# Spark fills in `${…}` there.
_NOT_IN_FILES = re.compile(r"""[;'"\\]|--|/\*|\*/|\$\{""")


def literal(text: str) -> str:
    """A literal for places that take no expression, such as COMMENT and LOCATION.

    `$` is escaped too, because Spark fills in `${env:…}` before it parses.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def name_in_file(identifier: str) -> str:
    """A name for a file of statements, in back quotes.

    Raises:
        UsageError: back quotes do not keep the shell or Spark from evaluating a part of it.
    """
    if not identifier.isprintable() or _NOT_IN_FILES.search(identifier):
        raise UsageError(
            f"a file of SQL takes no name such as {identifier!r}.",
            "Give it a physicalName of letters, digits and _.",
        )
    return name(identifier)
