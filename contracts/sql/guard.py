"""The guard in front of Spark: a rule's untrusted query becomes SQL of our own writing, or is refused.

The query is parsed into a tree, every node of the tree must be on a list (`allowlist`), and what runs is
written anew from the tree: the user's text never reaches Spark. Nothing here imports Spark; sqlglot is
imported by this module, so that only those who have a rule to guard import it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from dq.contracts.sql import text as sql
from dq.contracts.sql.aggregate import Folded, folded, shown
from dq.contracts.sql.dialect import Dialect
from dq.contracts.sql.vetting import Forbidden, vouch_for_tokens, vouch_for_tree

MAX_CHARACTERS = 20_000
# Every table is one more pass over the data, and joins multiply rows.
MAX_TABLES = 8
# Identifiers that begin like this are ours.
OURS = "_dq_"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A query that may run.

    `tables` are the identifiers of the tables that it reads. `columns` are the names, without a table, that
    the query does not define itself: Spark would look for one that is no column among the variables of the
    session, so the caller must see that each is a column. `folded` is the same question as an aggregate of
    the table's rows, where it is one. `shown` are columns, and tables, whose values the answer may show.
    """

    sql: str
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    folded: Folded | None = None
    shown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a query may not run, as the end of a sentence about it."""

    reason: str


def guarded(query: str, *, own: str, tables: Mapping[str, str], property: str | None) -> Guarded | Refused:
    """The query as SQL that may run, or the reason why it may not.

    `tables` are the names that may stand after FROM and JOIN (case does not matter), each with the
    identifier that takes its place; `own` is what `{object}` stands for, one of them, and `property` what
    `{property}` stands for, an expression that is already quoted. Never raises for what is in the query.
    """
    try:
        text = _filled(query, own, property)
        tree = _parsed(text)
        vouch_for_tree(tree)
        named = _renamed(tree, tables)
        made = tree.sql(dialect=Dialect, comments=False)
        if "${" in made:
            raise Forbidden("it holds a sign that Spark would replace")
    except Forbidden as refusal:
        return Refused(str(refusal))
    except SqlglotError as error:
        return Refused(f"it is not SQL that is understood: {_first_line(error)}")
    except RecursionError:
        return Refused("it is nested too deeply")
    return Guarded(made, tuple(sorted(named)), _columns(tree), folded(tree), shown(tree))


_PLACEHOLDER = re.compile(
    r"(?P<quote>`?)(?:\$?\{\s*(?P<word>object|property)\s*\}|\$\{\s*(?P<old>table|column)\s*\})(?P=quote)"
)
_LEFT = re.compile(r"\$?\{[^{}\n]{0,40}\}?")


def _filled(query: str, own: str, property: str | None) -> str:
    if len(query) > MAX_CHARACTERS:
        raise Forbidden(f"it has {len(query):,} characters; {MAX_CHARACTERS:,} are allowed")

    def fill(found: re.Match[str]) -> str:
        if (found["word"] or found["old"]) in ("object", "table"):
            return sql.name(own)
        if property is None:
            raise Forbidden(f"{found.group()} stands in a rule that is on no property")
        return property

    text = _PLACEHOLDER.sub(fill, query)
    if "${" in text:
        raise Forbidden(f"{_LEFT.findall(text)[0]!r} is not a placeholder that is filled")
    if OURS in text.lower():
        raise Forbidden(f"names that begin with {OURS!r} are not allowed")
    return text


def _parsed(text: str) -> exp.Query:
    """The one statement of a text, which must begin like a query."""
    dialect = Dialect()
    tokens = dialect.tokenize(text)
    vouch_for_tokens(tokens, text)
    statements = [one for one in dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text) if one]
    if len(statements) != 1:
        raise Forbidden(f"it has {len(statements)} statements; one is allowed")
    tree = statements[0]
    if not isinstance(tree, exp.Query):
        raise Forbidden("it is not a SELECT")
    return tree


def _renamed(tree: exp.Expr, tables: Mapping[str, str]) -> set[str]:
    """Puts the allowed tables' identifiers into the tree, and names of our own for what WITH defines.

    With them a name means the same here and in Spark, whatever the scopes: one of WITH that is used where
    it is not visible finds nothing, and no table of the catalog. Returns the identifiers.
    """
    known = {name.lower(): view for name, view in tables.items()}
    defined = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    for name in defined & known.keys():
        raise Forbidden(f"WITH defines {name!r}, which is the name of a table of the contract")
    for one in tree.find_all(exp.CTE):
        one.args["alias"].set("this", exp.to_identifier(_own(one.alias)))
    found = list(tree.find_all(exp.Table))
    if len(found) > MAX_TABLES:
        raise Forbidden(f"it reads {len(found)} tables; {MAX_TABLES} are allowed")
    read = set()
    for table in found:
        name = ".".join(part.name for part in table.parts).lower()
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            raise Forbidden("a function in the place of a table is not allowed")
        if name in defined and len(table.parts) == 1:
            view = _own(name)
        elif name in known:
            view = known[name]
            read.add(view)
        else:
            shown = ".".join(part.name for part in table.parts)
            raise Forbidden(f"it reads {shown!r}; a rule reads only {' or '.join(sorted(tables))}")
        alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
        table.replace(exp.Table(this=exp.to_identifier(view), alias=alias))
    if not read:
        raise Forbidden("it reads no table of the contract")
    return read


def _columns(tree: exp.Expr) -> tuple[str, ...]:
    given = Counter(one.alias.lower() for one in tree.find_all(exp.Alias))
    inside: set[str] = set()
    for table in tree.find_all(exp.TableAlias):
        # A whole row can be named by its table: `count(o)`.
        inside |= {table.name.lower(), *(column.name.lower() for column in table.columns)}
    for each in tree.find_all(exp.Lambda):
        inside |= {argument.name.lower() for argument in each.expressions}
    used = {
        one.name
        for one in tree.find_all(exp.Column)
        if not one.table
        and isinstance(one.this, exp.Identifier)
        and one.name.lower() not in inside
        and given[one.name.lower()] <= _own_aliases(one).count(one.name.lower())
    }
    return tuple(sorted(used))


def _own_aliases(column: exp.Column) -> list[str]:
    """The aliases that a SELECT gives to its results, and that its WHERE therefore does not see."""
    where = column.find_ancestor(exp.Where, exp.Select)
    if not isinstance(where, exp.Where) or not isinstance(where.parent, exp.Select):
        return []
    return [one.alias.lower() for one in where.parent.expressions if isinstance(one, exp.Alias)]


def _own(name: str) -> str:
    return f"{OURS}with_{name.lower()}"


def _first_line(error: SqlglotError) -> str:
    shown = re.sub(r"\x1b\[\d*m", "", str(error))
    return shown.strip().split("\n", 1)[0][:200]
