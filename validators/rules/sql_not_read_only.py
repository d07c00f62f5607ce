"""A quality rule's query is not one statement that only reads.

Why: The query of a pull request runs with the rights of the checker. A second statement, a write or a call
into Java would change data, or more, under its name.

Bad:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "DELETE FROM orders WHERE amount < 0", mustBe: 0}

Good:
    schema:
      - name: orders
        quality:
          - {type: sql, query: "SELECT count(*) FROM {object} WHERE amount < 0", mustBe: 0}

Mend: Write one SELECT, or WITH … SELECT, that gives one number. The check of the data asks Spark's own
parser once more, before it runs anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from dq.contracts.model import Contract
from dq.contracts.outcome import Severity
from dq.validators.context import Context
from dq.validators.rule import Fault, Rule, fault

# A comment, a text or a quoted name, which may hold anything; else a word, or a sign that ends a statement.
_TOKEN = re.compile(
    r"(?P<skip>--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<end>;)|(?P<open>['\"`]|/\*)",
    re.DOTALL,
)
_FIRST = frozenset({"select", "with", "values"})
# What writes, with the word that follows; a column may well be called `update`.
_WRITES = {
    ("insert", "into"), ("insert", "overwrite"), ("merge", "into"), ("delete", "from"), ("truncate", "table"),
    ("drop", "table"), ("create", "table"), ("alter", "table"), ("select", "into"), ("replace", "table"),
}  # fmt: skip
_CALLS = frozenset({"reflect", "java_method", "try_reflect"})
_MEND = "Write one SELECT that gives one number."


def check(_contract: Contract, context: Context) -> Iterator[Fault]:
    for clause in context.walk.clauses:
        query = clause.quality.query
        if clause.quality.type == "sql" and query is not None and query.strip():
            wrong = refused(query)
            if wrong is not None:
                yield fault(clause.quality, "query", f"the query {wrong}.", _MEND)


def refused(query: str) -> str | None:
    """Why a query is not one that only reads, as the rest of a sentence; None if it seems to be."""
    words: list[str] = []
    ended = False
    for token in _TOKEN.finditer(query):
        if token["open"]:
            return f"opens {token['open']} and does not close it"
        if token["end"]:
            ended = True
        elif token["word"]:
            if ended:
                return "holds several statements"
            words.append(token["word"].lower())
    if not words or words[0] not in _FIRST:
        return f"begins with {words[0].upper()[:40]!r}, and not with SELECT or WITH" if words else "is empty"
    for pair in pairwise(words):
        if pair in _WRITES:
            return f"writes: {' '.join(pair).upper()}"
    if words[0] == "with" and "update" in words and "set" in words[words.index("update") :]:
        return "writes: UPDATE"
    called = _CALLS.intersection(words)
    return f"calls Java with {min(called)}" if called else None


RULE = Rule("sql-not-read-only", Severity.ERROR, __doc__, check, after=("sql-without-query",))
