"""Static analysis of validated SQL: the columns it reads, bounds on its result size, and its cost limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dq.contracts import pattern
from dq.contracts.pattern import TOO_LONG, to_spark_pattern
from dq.contracts.sql.allow import (
    AGGREGATES,
    FLAT,
    GENERATORS,
    NODES,
    NON_ROW_NODES,
    DisallowedSql,
    SqlDialect,
    words,
)

# TABLE: functions that take a regular expression, rewritten so that no text can exhaust Java's stack.

# Their first argument is the text, and the second the regular expression.
PATTERNS = words("regexp regexp_count regexp_extract regexp_instr regexp_like regexp_substr rlike split")


def with_bounded_patterns(tree: exp.Expr) -> exp.Expr:
    """Return the query with repeated groups made possessive where that does not change their meaning.

    Elsewhere, a text that is too long raises an error in the query instead of ending the session. The regular
    expressions must have passed `enforce_cost_limits`.
    """
    for node in list(tree.walk()):
        search = _regex_search(node)
        if search is None:
            continue
        text, regex = search
        possessive, longest = to_spark_pattern(regex.name)
        if possessive != regex.name:
            regex.set("this", possessive)
        if longest is not None:
            guarded = _with_length_check(node, text, longest)
            if node is tree:
                return guarded
            node.replace(guarded)
    return tree


def _regex_search(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    if isinstance(node, exp.RegexpLike):
        return node.this, node.expression
    if isinstance(node, exp.Anonymous) and node.name.lower() in PATTERNS and len(node.expressions) > 1:
        return node.expressions[0], node.expressions[1]
    return None


def _with_length_check(node: exp.Expr, text: exp.Expr, longest: int) -> exp.Expr:
    length = exp.Anonymous(this="length", expressions=[text.copy()])
    short = exp.LTE(this=length, expression=exp.Literal.number(longest))
    raise_error = exp.Anonymous(this="raise_error", expressions=[exp.Literal.string(TOO_LONG)])
    not_null = exp.Not(this=exp.Is(this=text.copy(), expression=exp.Null()))
    return exp.Paren(
        this=exp.Case(ifs=[exp.If(this=short, true=node.copy()), exp.If(this=not_null, true=raise_error)])
    )


# TABLE: bounds on the size of an expression's value, derived from the sizes of its arguments.
#
# Sizes are those of a nominal row. The data is unknown here, but an expression that makes gigabytes from ten
# kilobytes does so with any data.

# Nominal size of a value of the data, in bytes and in items of an array or map. A number is eight bytes.
VALUE, ITEMS, NUMBER = 10_000, 1_000, 8
# Largest value that an expression may produce.
MAX_BYTES = 20_000_000
# Estimates are capped at this size.
_SIZE_CAP = 10**15
# Stands for all columns of a row.
ALL = "*"


@dataclass(frozen=True, slots=True)
class SizeEstimate:
    """Bounds on an expression, known before it runs.

    Attributes:
        parts: Number of nodes once all subqueries and WITH definitions are inlined.
        reads: Columns of the data that it depends on, in lower case.
        plain: True for a column as it is, or in a form that keeps different values distinct.
        sources: Tables of its own SELECT that it names.
        outer: True if it names a table of an enclosing SELECT.
    """

    size: int = NUMBER
    items: int = 1
    parts: int = 1
    reads: frozenset[str] = frozenset()
    plain: bool = False
    sources: frozenset[str] = frozenset()
    outer: bool = False


def combine_estimates(*values: SizeEstimate) -> SizeEstimate:
    """Return the estimate of a value that combines all of them and is as large as the largest."""
    return SizeEstimate(
        max((value.size for value in values), default=NUMBER),
        max((value.items for value in values), default=1),
        min(_SIZE_CAP, 1 + sum(value.parts for value in values)),
        frozenset().union(*(value.reads for value in values)),
        False,
        frozenset().union(*(value.sources for value in values)),
        any(value.outer for value in values),
    )


# A name that cannot be resolved may be any column, or all of them.
_ANY_COLUMN = SizeEstimate(VALUE, ITEMS, reads=frozenset([ALL]))


def _enforce_size(size: int, node: exp.Expr) -> None:
    """Raise DisallowedSql if a value may be too large."""
    if size > MAX_BYTES:
        subject = (
            f"the result of {node.name.lower()}(…)"
            if isinstance(node, exp.Anonymous)
            else "one of its values"
        )
        raise DisallowedSql(
            f"{subject} may be {size / VALUE:,.0f} times as large as the value in a row",
            _SMALLER.get(
                node.name.lower(), "Compare the values of the row directly, without expanding them."
            ),
        )


_SMALLER = {
    "levenshtein": "Write levenshtein(left(a, 200), left(b, 200)), or pass a threshold as third argument.",
    "transform": "Write exists or filter, and use columns of the row outside the lambda.",
}

_FLAT_NODES = (
    exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Exists, exp.EQ, exp.NEQ, exp.GT, exp.GTE,
    exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike, exp.RegexpLike, exp.Add, exp.Sub,
    exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Extract, exp.Interval,
)  # fmt: skip
# Functions that keep different values distinct, or nearly so: a join on them counts as a join on columns.
_INJECTIVE_FUNCTIONS = words(
    "bigint btrim date int lcase lower ltrim rtrim string timestamp to_date trim ucase upper"
)
_FEW_VALUES = frozenset(["BOOLEAN", "TINYINT"])


def estimate_node(node: exp.Expr, values: Sequence[SizeEstimate]) -> SizeEstimate:
    """Return the estimate of a node from the estimates of its children."""
    result = combine_estimates(*values)
    if isinstance(node, exp.Literal | exp.RawString):
        return SizeEstimate(max(1, len(node.name.encode("utf-8", "replace"))))
    if isinstance(node, exp.Anonymous):
        return _estimate_call(node, values, result)
    if isinstance(node, exp.DPipe):
        return replace(
            result, size=sum(value.size for value in values), items=sum(value.items for value in values)
        )
    if isinstance(node, _FLAT_NODES):
        return replace(result, size=NUMBER, items=1)
    if isinstance(node, exp.Paren | exp.Alias | exp.Dot):
        return replace(result, plain=values[0].plain)
    if isinstance(node, exp.Cast):
        has_few_values = getattr(node.to.this, "name", "") in _FEW_VALUES
        return replace(result, plain=values[0].plain and not has_few_values)
    if isinstance(node, exp.Bracket):
        return replace(result, size=values[0].size, items=max(1, values[0].size // NUMBER))
    return result


def _estimate_call(node: exp.Anonymous, values: Sequence[SizeEstimate], base: SizeEstimate) -> SizeEstimate:
    name = node.name.lower()
    if name == "levenshtein" and len(values) == 2:
        _enforce_size(values[0].size * values[1].size, node)
    rule = _SIZE_RULES.get(name)
    if rule is not None:
        size, items = rule(node.expressions, values)
        return replace(base, size=min(_SIZE_CAP, size), items=min(_SIZE_CAP, items))
    if name in FLAT:
        base = replace(base, size=NUMBER, items=1)
    return replace(base, plain=name in _INJECTIVE_FUNCTIONS and len(values) == 1 and values[0].plain)


Arguments = Sequence[exp.Expr]
SizeRule = Callable[[Arguments, Sequence[SizeEstimate]], tuple[int, int]]


def _sum(_: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    return sum(value.size for value in values), sum(value.items for value in values)


def _collection(_: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    return sum(value.size for value in values), max(1, len(values))


def _joined_text(_: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    separator, *texts = values or (SizeEstimate(),)
    return sum(text.size + separator.size * text.items for text in texts) or separator.size, 1


def _replaced_text(arguments: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    text, *operands = values
    replacement_size = operands[1].size if len(operands) > 1 else 0
    search_size = operands[0].size if operands and isinstance(arguments[1], exp.Literal) else 1
    return text.size * max(1, -(-replacement_size // max(1, search_size))), 1


def _substring(arguments: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    last = arguments[-1]
    is_literal = isinstance(last, exp.Literal) and not last.is_string and last.name.isdigit()
    # A character has four bytes at most.
    return (min(values[0].size, 4 * int(last.name)) if is_literal else values[0].size), values[0].items


def _formatted_text(_: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    return 10 * values[-1].size, 1


def _single_item(_: Arguments, values: Sequence[SizeEstimate]) -> tuple[int, int]:
    size = max(NUMBER, values[0].size // max(1, values[0].items)) if values else NUMBER
    return size, max(1, size // NUMBER)


_SIZE_RULES: dict[str, SizeRule] = {
    **dict.fromkeys(("concat", "array_union"), _sum),
    **dict.fromkeys(("array", "named_struct", "struct"), _collection),
    "concat_ws": _joined_text,
    "replace": _replaced_text,
    **dict.fromkeys(("left", "right", "substr", "substring"), _substring),
    "split": lambda _, values: (2 * values[0].size, values[0].size),
    "flatten": lambda _, values: (values[0].size, max(values[0].items, values[0].size // NUMBER)),
    **dict.fromkeys(("date_format", "from_unixtime"), _formatted_text),
    **dict.fromkeys(GENERATORS, _single_item),
}


# TABLE: cost limits of a query: bounds on its parts, each with what to write instead.
#
# All limits apply without looking at the data. Costs that depend on the data, e.g. a join on a column with a
# single value, are bounded by the rule's time limit.

_TEXT, _DIGITS, _EXPONENT = 1_000, 38, 308
# A lambda in a lambda runs for each pair of items.
_MAX_LAMBDA_DEPTH = 2
_ARGUMENTS, _DISTINCT, _WINDOWS = 100, 4, 8
# Rows sorted for a LIMIT are held in memory.
_LIMIT = 10_000
# A window that moves at both ends is recomputed for each row.
_FRAME = 1_000


@dataclass(frozen=True, slots=True)
class _Bound:
    """Allowed range of a numeric argument of a function, by the argument's position."""

    position: int
    minimum: float
    maximum: float
    reason: str


_NUMBERS = {
    **dict.fromkeys(
        ("round", "bround", "ceil", "ceiling", "floor"),
        _Bound(1, -_DIGITS, _DIGITS, "numbers have at most that many digits"),
    ),
    "percentile_approx": _Bound(2, 1, 100_000, "each group stores that many values"),
    "approx_count_distinct": _Bound(1, 0.01, 0.5, "smaller numbers need more memory per group"),
    "ntile": _Bound(0, 1, 10_000, "it is the number of buckets"),
}
# Functions whose second argument is a date or number format.
_FORMAT_FUNCTIONS = words(
    "date_format from_unixtime to_date to_number to_timestamp to_unix_timestamp try_to_number "
    "try_to_timestamp unix_timestamp"
)
_MAX_FORMAT_LENGTH = 100
# Functions that return a longer text, or a larger array, than they are given.
_GROWING = words("array array_union concat concat_ws flatten replace split transform")


def enforce_cost_limits(tree: exp.Expr) -> None:
    """Raise DisallowedSql, with what to write instead, if a part of the query exceeds its limit."""
    distinct = windows = 0
    for node in tree.walk():
        distinct += isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Anonymous)
        windows += isinstance(node, exp.Window)
        for kinds, check in _COST_CHECKS:
            if isinstance(node, kinds):
                check(node)
    _enforce_limit(distinct, _DISTINCT, "distinct counts", "Write a rule for each.")
    _enforce_limit(windows, _WINDOWS, "windows", "Write a rule for each.")


def _enforce_limit(count: int, limit: int, items: str, instead: str) -> None:
    if count > limit:
        raise DisallowedSql(f"it has {count:,} {items}; {limit:,} are allowed", instead)


def _check_literal(node: exp.Expr) -> None:
    if isinstance(node, exp.RawString) or node.args.get("is_string"):
        _enforce_limit(len(node.name), _TEXT, "characters in one string", "Use a shorter string.")
        return
    digits, _, exponent = node.name.lower().partition("e")
    if len(digits) > _DIGITS + 1 or len(exponent.lstrip("+-")) > 3 or abs(int(exponent or 0)) > _EXPONENT:
        raise DisallowedSql(
            f"the number {node.name[:50]!r} is out of range",
            f"Use at most {_DIGITS} digits, or up to 1e{_EXPONENT}.",
        )


def _check_function(node: exp.Anonymous) -> None:
    name, arguments = node.name.lower(), node.expressions
    _enforce_limit(len(arguments), _ARGUMENTS, f"arguments of {name}", "Write IN (…), or several rules.")
    bound = _NUMBERS.get(name)
    if bound is not None and len(arguments) > bound.position:
        _check_number(name, arguments[bound.position], bound)
    if name in PATTERNS and len(arguments) > 1:
        _check_pattern(arguments[1])
    if name in _FORMAT_FUNCTIONS and len(arguments) > 1:
        _check_format(name, arguments[1])
    if name in ("aggregate", "reduce"):
        _check_accumulator(node)


def _check_number(name: str, node: exp.Expr, bound: _Bound) -> None:
    literal = node.this if isinstance(node, exp.Neg) else node
    number = float(literal.name) if isinstance(literal, exp.Literal) and not literal.is_string else None
    if number is not None and isinstance(node, exp.Neg):
        number = -number
    if number is None or not bound.minimum <= number <= bound.maximum:
        sql = node.sql(dialect="spark")[:40]
        raise DisallowedSql(
            f"{name} requires a number from {bound.minimum:,} to {bound.maximum:,}, not {sql}, because"
            f" {bound.reason}",
            "Use a number within these bounds, or remove it.",
        )


def _check_format(name: str, node: exp.Expr) -> None:
    if not isinstance(node, exp.Literal | exp.RawString) or len(node.name) > _MAX_FORMAT_LENGTH:
        raise DisallowedSql(
            f"{name} requires a literal format of at most {_MAX_FORMAT_LENGTH} characters",
            "Write e.g. 'yyyy-MM-dd'.",
        )


def _check_pattern(node: exp.Expr) -> None:
    if not isinstance(node, exp.Literal | exp.RawString):
        raise DisallowedSql(
            "a regular expression must be a literal",
            "Write it as a string, e.g. a RLIKE '^[0-9]+$'; for the value of a column, use contains(a, b).",
        )
    problem = pattern.sql_pattern_problem(node.name)
    if problem is not None:
        raise DisallowedSql(f"the regular expression {node.name[:60]!r}: {problem.message}", problem.hint)


def _check_like(node: exp.Like | exp.ILike) -> None:
    pattern_node = node.expression
    if not isinstance(pattern_node, exp.Literal | exp.RawString):
        raise DisallowedSql("LIKE requires a literal", "Write contains, startswith or endswith.")
    # Each wildcard is tried at every position of the text, except one at the end of the pattern.
    wildcards = pattern_node.name.removesuffix("%").count("%")
    if wildcards > 2:
        raise DisallowedSql(
            f"LIKE with {wildcards + pattern_node.name.endswith('%')} wildcards % tries all combinations",
            "Write several LIKE '%…%' with AND.",
        )


def _check_accumulator(node: exp.Anonymous) -> None:
    """Reject an accumulator that grows with each item."""
    merge = node.expressions[2] if len(node.expressions) > 2 else None
    if not isinstance(merge, exp.Lambda) or not merge.expressions:
        raise DisallowedSql(
            f"{node.name.lower()} takes a value and a lambda of two arguments",
            "Write aggregate(a, 0, (sum, x) -> sum + x).",
        )
    accumulator = merge.expressions[0].name.lower()
    for part in merge.this.walk():
        grows = isinstance(part, exp.DPipe) or (
            isinstance(part, exp.Anonymous) and part.name.lower() in _GROWING
        )
        if grows and any(
            identifier.name.lower() == accumulator for identifier in part.find_all(exp.Identifier)
        ):
            raise DisallowedSql(
                f"{accumulator!r} grows with each step of {node.name.lower()}",
                "Use a number, boolean or date, or write exists, filter or array_contains.",
            )


def _check_lambda(node: exp.Lambda) -> None:
    depth, ancestor = 1, node.parent
    while ancestor is not None:
        depth += isinstance(ancestor, exp.Lambda)
        ancestor = ancestor.parent
    if depth > _MAX_LAMBDA_DEPTH:
        raise DisallowedSql(
            f"{depth} nested lambdas; {_MAX_LAMBDA_DEPTH} are allowed",
            "Write flatten, or explode in a subquery.",
        )


def _check_limit(node: exp.Limit | exp.Offset) -> None:
    literal = node.expression
    if not isinstance(literal, exp.Literal) or not literal.name.isdigit() or int(literal.name) > _LIMIT:
        raise DisallowedSql(
            f"LIMIT and OFFSET allow numbers up to {_LIMIT:,}",
            "Write LIMIT 1; a rule needs one row and one number.",
        )


def _check_frame(node: exp.WindowSpec) -> None:
    start, end = (str(node.args.get(key) or "") for key in ("start", "end"))
    from_first_row = start == "UNBOUNDED" and node.args.get("start_side") == "PRECEDING"
    if from_first_row and end in ("", "UNBOUNDED", "CURRENT ROW"):
        return
    numbers = [node.args[key] for key in ("start", "end") if isinstance(node.args.get(key), exp.Expr)]
    is_bounded = all(
        isinstance(number, exp.Literal) and number.name.isdigit() and int(number.name) <= _FRAME
        for number in numbers
    )
    if "UNBOUNDED" in (start, end) or not is_bounded or node.args.get("kind") != "ROWS":
        raise DisallowedSql(
            "each row would be combined with all rows in its window",
            f"Write ROWS BETWEEN n PRECEDING AND CURRENT ROW, n up to {_FRAME:,}, or UNBOUNDED PRECEDING; to"
            " look ahead, reverse the order.",
        )


def _check_not_in(node: exp.Not) -> None:
    inner = node.this.unnest() if isinstance(node.this, exp.Paren) else node.this
    if isinstance(inner, exp.In) and inner.args.get("query") and isinstance(inner.this, exp.Tuple):
        raise DisallowedSql(
            "NOT IN with several columns compares every row with every other",
            "Write NOT EXISTS (SELECT 1 FROM … b WHERE b.id = a.id AND …).",
        )


_COST_CHECKS: tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., None]], ...] = (
    ((exp.Literal, exp.RawString), _check_literal),
    ((exp.Anonymous,), _check_function),
    ((exp.RegexpLike,), lambda node: _check_pattern(node.expression)),
    ((exp.Like, exp.ILike), _check_like),
    ((exp.Lambda,), _check_lambda),
    ((exp.Limit, exp.Offset), _check_limit),
    ((exp.WindowSpec,), _check_frame),
    ((exp.Not,), _check_not_in),
)


# Names of columns and fields in a query or condition, collected from the nodes of its tree.


def unqualified_columns(nodes: Sequence[exp.Expr]) -> tuple[str, ...]:
    """Return the column names without a table that the query does not define itself."""
    alias_counts = Counter(node.alias.lower() for node in nodes if isinstance(node, exp.Alias))
    internal_names: set[str] = set()
    for table in (node for node in nodes if isinstance(node, exp.TableAlias)):
        # A whole row can be named by its table: `count(o)`.
        internal_names |= {table.name.lower(), *(column.name.lower() for column in table.columns)}
    for lambda_node in (node for node in nodes if isinstance(node, exp.Lambda)):
        internal_names |= {argument.name.lower() for argument in lambda_node.expressions}
    used = {
        node.name
        for node in nodes
        if isinstance(node, exp.Column)
        and not node.table
        and isinstance(node.this, exp.Identifier)
        and node.name.lower() not in internal_names
        and alias_counts[node.name.lower()] <= _own_aliases(node).count(node.name.lower())
    }
    return tuple(sorted(used))


def qualified_columns(nodes: Sequence[exp.Expr], views: set[str]) -> tuple[str, ...]:
    """Return the columns qualified with the alias of a data table, unless the alias has another meaning
    too.
    """
    data_aliases: set[str] = set()
    other_kinds = exp.Subquery, exp.CTE, exp.Alias
    other_aliases: set[str] = {node.alias.lower() for node in nodes if isinstance(node, other_kinds)}
    for table in (node for node in nodes if isinstance(node, exp.Table)):
        (data_aliases if table.name in views else other_aliases).add(table.alias_or_name.lower())
    aliases = data_aliases - other_aliases
    return tuple(
        sorted(
            {
                node.name
                for node in nodes
                if isinstance(node, exp.Column)
                and node.table.lower() in aliases
                and len(node.parts) == 2
                and isinstance(node.this, exp.Identifier)
            }
        )
    )


# Column names that generators and maps produce.
_GENERATED_NAMES = frozenset({"pos", "col", "key", "value"})


def field_names(nodes: Sequence[exp.Expr]) -> tuple[str, ...]:
    """Return the names after a dot, behind a table, a struct or an argument of a lambda."""
    used, defined_names = set(), set(_GENERATED_NAMES)
    for node in nodes:
        if isinstance(node, exp.Column):
            used |= {part.name.lower() for part in node.parts[1:] if isinstance(part, exp.Identifier)}
        elif isinstance(node, exp.Dot):
            used.add(node.expression.name.lower())
        elif isinstance(node, exp.Alias):
            defined_names.add(node.alias.lower())
        elif isinstance(node, exp.TableAlias):
            defined_names |= {column.name.lower() for column in node.columns}
        elif isinstance(node, exp.Anonymous) and node.name.lower() == "named_struct":
            defined_names |= {
                argument.name.lower() for argument in node.expressions if isinstance(argument, exp.Literal)
            }
    return tuple(sorted(used - defined_names))


def _own_aliases(column: exp.Column) -> list[str]:
    """Return the aliases that a SELECT gives to its results, which its WHERE cannot see."""
    where_clause = column.find_ancestor(exp.Where, exp.Select)
    if not isinstance(where_clause, exp.Where) or not isinstance(where_clause.parent, exp.Select):
        return []
    return [
        projection.alias.lower()
        for projection in where_clause.parent.expressions
        if isinstance(projection, exp.Alias)
    ]


# Name resolution: the table, or enclosing SELECT, that a column belongs to.


@dataclass(frozen=True, slots=True)
class Relation:
    """Estimates of a query or table.

    Attributes:
        columns: Estimates by column name in lower case.
        other_columns: Estimate of any column not listed, or None if there is none.
        rows_per_row: Number of rows that one input row may become.
        reads: Columns that determine which rows there are.
        outer: True if it names a column of an enclosing SELECT.
    """

    columns: Mapping[str, SizeEstimate] = field(default_factory=dict)
    other_columns: SizeEstimate | None = None
    rows_per_row: int = 1
    tables: int = 0
    parts: int = 1
    reads: frozenset[str] = frozenset()
    outer: bool = False

    def get(self, name: str) -> SizeEstimate | None:
        """Return the estimate of a column by its name, or None if there is no such column."""
        column = self.columns.get(name)
        if column is None and self.other_columns is not None:
            return replace(self.other_columns, reads=self.other_columns.reads | {name})
        return column


DATA = Relation(other_columns=SizeEstimate(VALUE, ITEMS, plain=True), tables=1)
CteRelations = Mapping[str, Relation]


@dataclass(slots=True)
class SelectScope:
    """The tables of one SELECT, its enclosing SELECT, the arguments of lambdas, and running totals."""

    ctes: CteRelations
    outer: SelectScope | None
    tables: dict[str, Relation] = field(default_factory=dict)
    arguments: Mapping[str, SizeEstimate] = field(default_factory=dict)
    rows_per_row: int = 1
    subquery_tables: int = 0
    row_deciding_columns: frozenset[str] = frozenset()


def with_column_names(rows: Relation, alias: exp.Expr | None) -> Relation:
    """Return the rows with the column names that an alias such as `x(a, b)` assigns."""
    names = [column.name.lower() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if not names:
        return rows
    values = list(rows.columns.values())
    columns = {
        name: values[index] if index < len(values) else _ANY_COLUMN for index, name in enumerate(names)
    }
    return replace(rows, columns=columns, other_columns=None)


def resolve_column(node: exp.Column, scope: SelectScope) -> SizeEstimate:
    """Return the estimate of a column reference, resolved from its scope outwards."""
    first, *path = (part.name.lower() for part in node.parts)
    if isinstance(node.this, exp.Star):
        return _ANY_COLUMN
    current: SelectScope | None = scope
    if path and first not in scope.arguments:
        # A table of an enclosing SELECT takes precedence over a struct of this name, which may not exist.
        enclosing = scope
        while first not in enclosing.tables and enclosing.outer is not None:
            enclosing = enclosing.outer
        current = enclosing if first in enclosing.tables else scope
    while current is not None:
        estimate = _find_column(current, first, path)
        if estimate is not None:
            # A name that an enclosing subquery assigns, and that may also be a column of the data.
            named_outside = (
                current is scope and not path and _is_named_by_subquery(scope.outer, first, enclosing=True)
            )
            unsure = named_outside and not _is_named_by_subquery(scope, first)
            sources = estimate.sources if current is scope else frozenset()
            plain = estimate.plain and not unsure
            return replace(estimate, outer=current is not scope or unsure, sources=sources, plain=plain)
        current = current.outer
    # Cannot be resolved, e.g. a column that Spark names: it may be any column.
    return _ANY_COLUMN


def _find_column(scope: SelectScope, first: str, path: list[str]) -> SizeEstimate | None:
    if first in scope.arguments:
        return scope.arguments[first]
    if path and first in scope.tables:
        column = scope.tables[first].get(path[0])
        return replace(column, sources=frozenset([first])) if column is not None else None
    exact_matches = [(name, rows) for name, rows in scope.tables.items() if first in rows.columns]
    if not exact_matches and first in scope.tables:
        # The whole row.
        return replace(_ANY_COLUMN, sources=frozenset([first]))
    holders = exact_matches or [
        (name, rows) for name, rows in scope.tables.items() if rows.other_columns is not None
    ]
    values = [(name, value) for name, rows in holders if (value := rows.get(first)) is not None]
    if not values:
        return None
    merged = combine_estimates(*(value for _, value in values))
    plain = all(value.plain for _, value in values)
    return replace(merged, parts=merged.parts - 1, plain=plain, sources=frozenset(name for name, _ in values))


def _is_named_by_subquery(scope: SelectScope | None, name: str, *, enclosing: bool = False) -> bool:
    """Return True if a subquery of the SELECT, or with `enclosing` of an enclosing one, has this column."""
    while scope is not None:
        if any(name in rows.columns for rows in scope.tables.values()):
            return True
        scope = scope.outer if enclosing else None
    return False


# Reads and size of a validated query, with every name resolved to columns of the data.
#
# A WITH definition counts once for each use, because Spark inlines it. `estimate_node` estimates a single
# expression.

# Maximum rows per input row, and maximum parts and tables once everything is inlined: every table is one more
# pass over the data.
MAX_ROWS, MAX_PARTS, MAX_TABLES = 100_000, 20_000, 8
_IN_STEPS = "Split it into several rules."


def analyze_query(tree: exp.Expr) -> Relation:
    """Return the estimates of a query. Raises DisallowedSql, with what to write instead, if it grows too
    large.

    It must name only tables that the guard has inserted: the data, or WITH definitions.
    """
    return _query(tree, {}, None)


def analyze_condition(tree: exp.Expr) -> SizeEstimate:
    """Return the estimate of a condition on one row of the data.

    Raises DisallowedSql like `analyze_query`.
    """
    return _estimate(tree, SelectScope({}, None, {"": DATA}))


def _query(
    node: exp.Expr, ctes: CteRelations, outer: SelectScope | None, is_equality: bool = False
) -> Relation:
    defined = node.args.get("with_")
    for cte in defined.expressions if defined else ():
        # The guard has renamed WITH definitions; each is visible to those after it.
        ctes = {**ctes, cte.alias.lower(): with_column_names(_query(cte.this, ctes, None), cte.args["alias"])}
    if isinstance(node, exp.Subquery):
        return _query(node.this, ctes, outer, is_equality)
    if isinstance(node, exp.SetOperation):
        left, right = (_query(side, ctes, outer, is_equality) for side in (node.this, node.expression))
        return _enforce_limits(_union(left, right))
    assert isinstance(node, exp.Select)
    return _enforce_limits(_select(node, ctes, outer, is_equality))


def _enforce_limits(rows: Relation) -> Relation:
    if rows.tables > MAX_TABLES:
        message = f"it reads {rows.tables} tables, counting each use; {MAX_TABLES} are allowed"
        raise DisallowedSql(message, _IN_STEPS)
    if rows.parts > MAX_PARTS:
        raise DisallowedSql(
            f"it has more than {MAX_PARTS:,} parts when all subqueries are expanded", _IN_STEPS
        )
    if rows.rows_per_row > MAX_ROWS:
        raise DisallowedSql(
            f"it may turn one row into {rows.rows_per_row:,}; {MAX_ROWS:,} are allowed",
            "Write exists, filter or size instead of nested explode.",
        )
    return rows


def _union(left: Relation, right: Relation) -> Relation:
    """Return the rows of both; columns are matched by position."""
    pairs = zip(left.columns.items(), right.columns.values(), strict=False)
    return Relation(
        {
            **left.columns,
            **{name: combine_estimates(value, right_value) for (name, value), right_value in pairs},
        },
        left.other_columns or right.other_columns,
        left.rows_per_row + right.rows_per_row,
        left.tables + right.tables,
        left.parts + right.parts,
        # All but UNION ALL compare the rows.
        left.reads.union(
            right.reads, *(value.reads for value in (*left.columns.values(), *right.columns.values()))
        ),
        left.outer or right.outer,
    )


def _select(node: exp.Select, ctes: CteRelations, outer: SelectScope | None, is_equality: bool) -> Relation:
    scope = SelectScope(ctes, outer)
    conditions: list[SizeEstimate] = []
    from_ = node.args.get("from_")
    if from_ is not None:
        _add_table(from_.this, scope)
    for join in node.args.get("joins") or ():
        conditions.append(_join_condition(join, _add_table(join.this, scope), scope))
    where_clause = node.args.get("where")
    if where_clause is not None:
        conditions.append(_estimate(where_clause.this, scope))
    columns, other_columns = _project(node, scope)
    values = [*columns.values(), *conditions]
    # GROUP BY, HAVING and ORDER BY also see the names that the SELECT assigns.
    scope.tables = {**scope.tables, "": Relation(columns)} if from_ is not None else scope.tables
    groups = (
        [_estimate(group, scope) for group in node.args["group"].expressions]
        if node.args.get("group")
        else []
    )
    having_and_order = [
        _estimate(clause, scope) for key in ("having", "order") if (clause := node.args.get(key)) is not None
    ]
    values += [*groups, *having_and_order]
    correlated = outer is not None and any(value.outer for value in values)
    if (
        correlated
        and not is_equality
        and not any(
            _is_correlated_equality(condition, scope)
            for condition in _split_and(where_clause and where_clause.this)
        )
    ):
        raise DisallowedSql(
            "a correlated subquery has no equality between columns of both queries",
            "Add e.g. WHERE b.id = a.id, with plain columns of the tables.",
        )
    returns_one_row = all(group.plain for group in groups) and (bool(groups) or _is_aggregated(node))
    tables = [table for name, table in scope.tables.items() if name]
    row_deciding = scope.row_deciding_columns.union(
        *(value.reads for value in (*conditions, *groups, *having_and_order))
    )
    if any(node.args.get(key) for key in ("distinct", "group", "order")):
        # They may refer to selected columns by position.
        row_deciding = row_deciding.union(*(value.reads for value in columns.values()))
    return Relation(
        columns,
        other_columns,
        1 if returns_one_row else scope.rows_per_row * math.prod(table.rows_per_row for table in tables),
        sum(table.tables for table in tables) + scope.subquery_tables,
        1 + sum(table.parts for table in tables) + sum(value.parts for value in values),
        row_deciding.union(*(table.reads for table in tables)),
        correlated,
    )


def _add_table(node: exp.Expr, scope: SelectScope) -> str:
    """Add a table to the scope and return its name there."""
    cte = scope.ctes.get(node.name.lower(), DATA) if isinstance(node, exp.Table) else None
    name = node.alias_or_name.lower() or f"_{len(scope.tables)}"
    rows = cte if cte is not None else _query(node, scope.ctes, None)
    scope.tables[name] = with_column_names(rows, node.args.get("alias"))
    return name


def _project(node: exp.Select, scope: SelectScope) -> tuple[dict[str, SizeEstimate], SizeEstimate | None]:
    columns: dict[str, SizeEstimate] = {}
    other_columns: SizeEstimate | None = None
    for index, projection in enumerate(node.expressions):
        if projection.is_star and isinstance(projection, exp.Star | exp.Column):
            table = projection.table.lower() if isinstance(projection, exp.Column) else ""
            for name, rows in scope.tables.items():
                if table in ("", name):
                    columns |= rows.columns
                    other_columns = other_columns or rows.other_columns
        else:
            columns[projection.alias_or_name.lower() or f"_{index}"] = _estimate(projection, scope)
    return columns, other_columns


def _is_aggregated(node: exp.Select) -> bool:
    """Return True if an aggregate reduces all rows to one."""
    calls = (call for projection in node.expressions for call in projection.find_all(exp.Anonymous))
    return any(
        call.name.lower() in AGGREGATES and call.find_ancestor(exp.Window, exp.Query) is node
        for call in calls
    )


def _split_and(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the operands joined with AND."""
    pending = [condition] if condition is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, exp.And):
            pending += [node.this, node.expression]
        elif isinstance(node, exp.Paren):
            pending.append(node.this)
        else:
            yield node


def _equality_sides(condition: exp.Expr, scope: SelectScope) -> tuple[SizeEstimate, SizeEstimate] | None:
    """Return the two sides of an equality of plain columns, or None if it is not one."""
    if not isinstance(condition, exp.EQ | exp.NullSafeEQ) or condition.find(exp.Query):
        return None
    left, right = _estimate(condition.this, scope), _estimate(condition.expression, scope)
    return (left, right) if left.plain and right.plain else None


def _is_correlated_equality(condition: exp.Expr, scope: SelectScope) -> bool:
    """Return True if a condition equates a column of the SELECT with one of an enclosing SELECT."""
    sides = _equality_sides(condition, scope)
    return sides is not None and sides[0].outer != sides[1].outer


def _join_condition(join: exp.Join, name: str, scope: SelectScope) -> SizeEstimate:
    """Return the estimate of a join condition, which must equate columns of both sides."""
    using = [column.name.lower() for column in join.args.get("using") or ()]
    earlier_tables = [table for table in scope.tables if table != name]
    pairs = [
        (scope.tables[name].get(column_name), scope.tables[table].get(column_name))
        for column_name in using
        for table in earlier_tables
    ]
    if any(left and right and left.plain and right.plain for left, right in pairs):
        return combine_estimates(*(value for pair in pairs for value in pair if value is not None))
    on: exp.Expr | None = join.args.get("on")
    for condition in _split_and(on):
        sides = _equality_sides(condition, scope)
        if on is None or sides is None:
            continue
        own_side, other_side = sorted(sides, key=lambda side: name not in side.sources)
        if (
            own_side.sources == {name}
            and other_side.sources
            and name not in other_side.sources
            and not other_side.outer
        ):
            return _estimate(on, scope)
    raise DisallowedSql(
        f"the join with {join.this.alias_or_name!r} has no equality between columns of both sides, so it may"
        " match every row with every other",
        "Write JOIN … ON a.id = b.id, with plain columns qualified by table.",
    )


def _estimate(node: exp.Expr, scope: SelectScope) -> SizeEstimate:
    """Return the estimate of an expression. Raises DisallowedSql if its value may be too large."""
    estimate = _estimate_unbounded(node, scope)
    _enforce_size(estimate.size, node)
    return estimate


def _estimate_unbounded(node: exp.Expr, scope: SelectScope) -> SizeEstimate:
    if isinstance(node, exp.Column):
        return resolve_column(node, scope)
    if isinstance(node, exp.Star):
        return _ANY_COLUMN
    if isinstance(node, exp.Identifier):
        return scope.arguments.get(node.name.lower(), SizeEstimate())
    if isinstance(node, exp.Query | exp.Exists):
        return _estimate_subquery(node, scope)
    if isinstance(node, exp.In) and node.args.get("query"):
        left = _estimate(node.this, scope)
        return estimate_node(
            node, [left, _estimate_subquery(node.args["query"], scope, is_equality=left.plain)]
        )
    if isinstance(node, exp.Anonymous):
        if any(isinstance(argument, exp.Lambda) for argument in node.expressions):
            return _estimate_lambda_call(node, scope)
        # Rows are counted without reading any column.
        is_count_star = (
            node.name.lower() == "count" and len(node.expressions) == 1 and node.expressions[0].is_star
        )
        arguments = [] if is_count_star else [_estimate(argument, scope) for argument in node.expressions]
        estimate = estimate_node(node, arguments)
        if node.name.lower() in GENERATORS and arguments and arguments[0].items > 1:
            # A generator makes one row per item.
            scope.rows_per_row *= arguments[0].items
            scope.row_deciding_columns |= estimate.reads
        return estimate
    return estimate_node(node, [_estimate(child, scope) for child in node.iter_expressions()])


def _estimate_subquery(node: exp.Expr, scope: SelectScope, *, is_equality: bool = False) -> SizeEstimate:
    """Return the estimate of a query inside an expression."""
    query = node.this if isinstance(node, exp.Exists) else node
    rows = _query(query, scope.ctes, scope, is_equality)
    scope.subquery_tables += rows.tables
    values = list(rows.columns.values())
    merged = combine_estimates(
        *values,
        SizeEstimate(reads=rows.reads | (rows.other_columns.reads if rows.other_columns else frozenset())),
    )
    return replace(merged, parts=rows.parts, sources=frozenset(), outer=False, plain=False)


def _estimate_lambda_call(node: exp.Anonymous, scope: SelectScope) -> SizeEstimate:
    """Return the estimate of a function call with lambdas."""
    name = node.name.lower()
    value_arguments = [
        _estimate(argument, scope) for argument in node.expressions if not isinstance(argument, exp.Lambda)
    ]
    collection = value_arguments[0] if value_arguments else SizeEstimate()
    size, items = _single_item([], [collection])
    item = replace(collection, size=size, items=items, parts=1, plain=False)
    arguments = [[item, SizeEstimate()]] * len(node.expressions)
    if name in ("aggregate", "reduce") and len(value_arguments) > 1:
        accumulator = replace(value_arguments[1], parts=1, plain=False)
        arguments = [[accumulator, item], [accumulator]]
    lambdas = [argument for argument in node.expressions if isinstance(argument, exp.Lambda)]
    bodies = [
        _lambda_body(lambda_node, lambda_arguments, scope)
        for lambda_node, lambda_arguments in zip(lambdas, arguments, strict=False)
    ]
    work = min(_SIZE_CAP, collection.items * max((body.size for body in bodies), default=NUMBER))
    _enforce_size(work, node)
    merged = combine_estimates(*value_arguments, *bodies)
    if name == "transform":
        return replace(merged, size=max(work, NUMBER), items=collection.items)
    if name in ("aggregate", "reduce"):
        return merged
    return replace(merged, size=collection.size if name == "filter" else NUMBER, items=collection.items)


def _lambda_body(node: exp.Lambda, arguments: list[SizeEstimate], scope: SelectScope) -> SizeEstimate:
    names = [argument.name.lower() for argument in node.expressions]
    outer_arguments = scope.arguments
    scope.arguments = {**outer_arguments, **dict(zip(names, arguments, strict=False))}
    body = _estimate(node.this, scope)
    scope.arguments = outer_arguments
    return body


# Rewriting of a validated query as one aggregate of its rows, and the column values that its result reveals.


@dataclass(frozen=True, slots=True)
class RowAggregate:
    """A query as one aggregate over rows: `aggregate` of `value` where all `conditions` are true.

    Attributes:
        keys: Column paths of `count(DISTINCT …)`; `value` is then empty.
        columns: Names of all columns that are read.
        interpreted: True if it calls a function that Spark does not compile.
    """

    aggregate: str
    value: str
    conditions: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]
    interpreted: bool


# Spark 3.5 does not compile these, nor an aggregation that contains one (Spark 4.0 compiles all functions).
_INTERPRETED = frozenset(["get_json_object", "json_array_length"])
_AGGREGATES = frozenset(["count", "min", "max", "sum", "avg"])
_INSIDE = NODES.keys() - NON_ROW_NODES
# A condition must be boolean by itself: combined with the rule's scope, Spark would cast a text to boolean.
_FLAGS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is,
    exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean,
)  # fmt: skip
_FLAG_FUNCTIONS = words(
    "array_contains contains endswith isnan isnotnull isnull regexp_like rlike startswith"
)


def as_row_aggregate(tree: exp.Expr) -> RowAggregate | None:
    """Return the validated query as an aggregate over rows, or None if it cannot be proven to be one.

    `tree` reads only tables that the guard has renamed; it is not modified.
    """
    if not isinstance(tree, exp.Select) or _parts(tree) != {"expressions", "from_"} | (
        _parts(tree) & {"where"}
    ):
        return None
    table = tree.args["from_"].this
    if len(tree.expressions) != 1 or not isinstance(table, exp.Table) or table.args["alias"].columns:
        return None
    alias = table.alias.lower()
    projection = _unwrap(tree.expressions[0])
    conditions = [tree.args["where"].this] if tree.args.get("where") else []
    if isinstance(projection, exp.Filter):
        conditions.append(projection.expression.this)
        projection = projection.this
    if not isinstance(projection, exp.Anonymous) or len(projection.expressions) != 1:
        return None
    name, argument = projection.name.lower(), projection.expressions[0]
    if name == "count_if":
        conditions.append(argument)
        name, argument = "count", exp.Star()
    if name not in _AGGREGATES or not all(_is_flag(condition) for condition in conditions):
        return None
    keys: list[exp.Expr] = []
    if isinstance(argument, exp.Distinct):
        keys = argument.expressions
        if name != "count" or not all(isinstance(key, exp.Column) for key in keys):
            return None
    every_row = isinstance(argument, exp.Star | exp.Literal) and name == "count"
    values = keys or ([] if every_row else [argument])
    if not all(_foldable(expression, alias) for expression in (*values, *conditions)):
        return None
    expressions = [_without_alias(expression, alias) for expression in (*values, *conditions)]
    return RowAggregate(
        name,
        "" if keys else "1" if every_row else _to_sql(expressions[0]),
        tuple(_to_sql(expression) for expression in expressions[len(values) :]),
        tuple(tuple(part.name for part in _as_column(key).parts) for key in expressions[: len(keys)]),
        tuple(
            sorted(
                {
                    column.parts[0].name
                    for expression in expressions
                    for column in expression.find_all(exp.Column)
                }
            )
        ),
        any(
            call.name.lower() in _INTERPRETED
            for expression in expressions
            for call in expression.find_all(exp.Anonymous)
        ),
    )


_COUNTS = frozenset(["approx_count_distinct", "count", "count_if"])
_NULL_TESTS = frozenset(["isnotnull", "isnull"])
_COMPARISONS = tuple(kind for kind in _FLAGS if kind not in (exp.And, exp.Or, exp.Not, exp.Is, exp.Boolean))


def revealed_columns(tree: exp.Expr, rows: Relation) -> frozenset[str]:
    """Return the columns, in lower case, about which the result reveals more than a number of rows.

    A row count reveals one fact about a column: NULL or not, or one condition on it. Several counts in one
    result, a comparison of two columns, a CASE, a sorted or grouped query or a subquery can reveal a value.
    `rows` is what the whole query reads.
    """
    everything = rows.reads.union(*(column.reads for column in rows.columns.values()))
    if not isinstance(tree, exp.Select) or len(list(tree.find_all(exp.Query))) != 1:
        return everything
    table = tree.args.get("from_")
    if table is None or not _parts(tree) <= {"expressions", "from_", "where"}:
        return everything
    alias = table.this.alias_or_name.lower()
    counts, plain_columns = _split_counts(tree.expressions)
    conditions = [tree.args["where"]] if tree.args.get("where") else []
    revealed = _base_columns(plain_columns, alias) | (
        _base_columns(_compared_columns(*conditions), alias) if plain_columns else frozenset()
    )
    name_counts = Counter(
        name for count in counts for name in _base_columns(_compared_columns(*count, *conditions), alias)
    )
    compared_names = (
        _base_columns(_compared_columns(comparison), alias) for comparison in tree.find_all(*_COMPARISONS)
    )
    # Counting rows up to a value of another column reveals that value.
    cross_compared = frozenset().union(*(names for names in compared_names if len(names) > 1))
    return revealed | cross_compared | {name for name, times in name_counts.items() if times > 1}


def _split_counts(projections: list[exp.Expr]) -> tuple[list[list[exp.Expr]], list[exp.Expr]]:
    """Return the counts, each with its condition, and the columns outside of them."""
    counts: list[list[exp.Expr]] = []
    plain_columns: list[exp.Expr] = []
    pending = list(projections)
    while pending:
        node = pending.pop()
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, exp.Anonymous) and inner.name.lower() in _COUNTS:
            counts.append([node])
        elif isinstance(node, exp.Column | exp.Star):
            plain_columns.append(node)
        else:
            pending += node.iter_expressions()
    return counts, plain_columns


def _compared_columns(*expressions: exp.Expr) -> list[exp.Expr]:
    """Return the columns that are used for more than a NULL test."""
    return [
        column
        for expression in expressions
        for column in expression.find_all(exp.Column)
        if not _is_null_test(column.parent)
    ]


def _is_null_test(parent: exp.Expr | None) -> bool:
    if isinstance(parent, exp.Is):
        return isinstance(parent.expression, exp.Null)
    if isinstance(parent, exp.Anonymous):
        return parent.name.lower() in _NULL_TESTS or parent.name.lower() == "count"
    return False


def _base_columns(columns: Iterable[exp.Expr], alias: str) -> frozenset[str]:
    """Return the top-level columns of the data that these refer to; a whole row is all of them."""
    names = (
        [part.name.lower() for part in column.parts] if isinstance(column, exp.Column) else [ALL]
        for column in columns
    )
    unqualified = (name[1:] if name[0] == alias and len(name) > 1 else name for name in names)
    return frozenset(ALL if name == [alias] or name[0] == "*" else name[0] for name in unqualified)


def _parts(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value not in (None, False, [])}


def _unwrap(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Alias | exp.Paren):
        node = node.this
    return node


def _is_flag(node: exp.Expr) -> bool:
    inner = _unwrap(node)
    if isinstance(inner, exp.Anonymous):
        return inner.name.lower() in _FLAG_FUNCTIONS
    return isinstance(inner, _FLAGS)


def _foldable(node: exp.Expr, alias: str) -> bool:
    return all(type(part).__name__ in _INSIDE for part in node.walk()) and not any(
        # A table's name alone is the whole row.
        [part.name.lower() for part in column.parts] == [alias]
        for column in node.find_all(exp.Column)
    )


def _as_column(node: exp.Expr) -> exp.Column:
    assert isinstance(node, exp.Column)
    return node


def _without_alias(node: exp.Expr, alias: str) -> exp.Expr:
    """Return a copy without the table's name before its columns."""

    def strip_alias(child: exp.Expr) -> exp.Expr:
        if isinstance(child, exp.Column) and len(child.parts) > 1 and child.parts[0].name.lower() == alias:
            name_part, *qualifiers = reversed([part.copy() for part in child.parts[1:]])
            return exp.Column(
                this=name_part, **dict(zip(("table", "db", "catalog"), qualifiers, strict=False))
            )
        return child

    return node.copy().transform(strip_alias)


def _to_sql(node: exp.Expr) -> str:
    return node.sql(dialect=SqlDialect, comments=False)
