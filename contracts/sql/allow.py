"""Allowlist of the functions, syntax nodes and types in a rule's SQL, and where they may be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from dq.contracts.outcome import nearest
from dq.contracts.sql import text as sql

# TABLE: allowed functions, kinds of nodes with their parts, and types in the SQL of a rule.


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# Functions of Spark 3.5 and later that read only their arguments (and the time of the query) and whose result
# is no larger than their arguments by much: no `repeat`, `lpad` or `sequence`, which expand a number, no
# `collect_list`, `median` or exact `percentile`, which gather a table in one place, no `raise_error`, whose
# message could reveal data, and nothing that reaches the JVM, files, the session or the network.
AGGREGATES = words(
    "any any_value approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count count_if "
    "covar_pop covar_samp every first first_value kurtosis last last_value max max_by mean min min_by "
    "percentile_approx regr_count regr_r2 skewness some std stddev stddev_pop stddev_samp sum try_avg "
    "try_sum var_pop var_samp variance"
)
WINDOWS = words("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")
GENERATORS = words("explode explode_outer posexplode posexplode_outer")
# They take a lambda.
LAMBDAS = words("aggregate exists filter forall reduce transform")
# Their result is always a number, a boolean or an instant.
_FLAT = words(
    # conditions and numbers
    "isnan isnotnull isnull abs bround cbrt ceil ceiling exp floor ln log log10 log2 mod negative pmod "
    "positive pow power rint round sign signum sqrt try_add try_divide try_multiply try_subtract "
    # texts
    "ascii bit_length char_length character_length contains endswith instr len length levenshtein locate "
    "octet_length regexp regexp_count regexp_instr regexp_like rlike startswith "
    # dates and times
    "add_months current_date current_timestamp date date_add date_diff date_sub date_trunc dateadd datediff "
    "day dayofmonth dayofweek dayofyear from_utc_timestamp hour last_day make_date make_timestamp minute "
    "month months_between next_day now quarter second timestamp_micros timestamp_millis timestamp_seconds "
    "to_date to_timestamp to_unix_timestamp to_utc_timestamp trunc try_to_timestamp unix_date unix_micros "
    "unix_millis unix_seconds unix_timestamp weekday weekofyear year "
    # collections
    "array_contains array_position array_size arrays_overlap cardinality map_contains_key size "
    # values and their forms
    "bigint boolean crc32 decimal double float hash int json_array_length md5 sha sha1 sha2 smallint "
    "timestamp tinyint to_number try_to_number typeof xxhash64"
)
# Their result may be as large as their arguments, or larger (see `analysis`).
_LARGE = words(
    "coalesce greatest if ifnull least nanvl nullif nvl nvl2 "
    "btrim concat concat_ws initcap lcase left lower ltrim regexp_extract regexp_substr replace reverse "
    "right rtrim soundex split split_part substr substring substring_index translate trim ucase upper "
    "date_format from_unixtime "
    "array array_distinct array_except array_intersect array_max array_min array_union element_at flatten "
    "get map_keys map_values named_struct slice sort_array struct try_element_at "
    "get_json_object string"
)
FUNCTIONS = AGGREGATES | WINDOWS | GENERATORS | LAMBDAS | _FLAT | _LARGE
# Functions allowed in an expression that reads a single row only.
ROW_FUNCTIONS = _FLAT | _LARGE
FLAT = (
    _FLAT | WINDOWS | AGGREGATES - words("any_value first first_value last last_value max max_by min min_by")
)

# What to write instead of a function that is not on the list.
INSTEAD = {
    **dict.fromkeys(
        words("collect_list collect_set array_agg listagg string_agg"),
        "Count instead, e.g. count(DISTINCT a).",
    ),
    **dict.fromkeys(
        words("median percentile percentile_cont percentile_disc"), "Write percentile_approx(a, 0.5)."
    ),
    "mode": "Write SELECT a FROM … GROUP BY a ORDER BY count(*) DESC LIMIT 1.",
    **dict.fromkeys(
        words("repeat lpad rpad space sequence array_repeat"),
        "Compare with a literal.",
    ),
    **dict.fromkeys(
        words("from_json from_csv to_json json_tuple variant_get"), "Write get_json_object(a, '$.b')."
    ),
    "regexp_replace": "Write replace, translate or regexp_extract.",
    "regexp_extract_all": "Write regexp_count or regexp_extract.",
    **dict.fromkeys(words("format_string format_number printf to_char"), "Compare the number itself."),
    **dict.fromkeys(words("nullifzero zeroifnull decode"), "Write CASE WHEN … THEN … END."),
    **dict.fromkeys(
        words("stack inline map map_from_arrays map_from_entries zip_with"),
        "Write explode in a subquery, or exists(a, x -> …).",
    ),
    "current_timezone": "Times are in UTC.",
    "position": "Write instr(b, a).",
}

# A node whose class is not listed, or that has a part not listed, is rejected, so that syntax added by a new
# version of the parser is not allowed by accident.
NODES: dict[str, frozenset[str]] = {
    **dict.fromkeys(words("Star CurrentDate CurrentTimestamp Null"), frozenset()),
    **dict.fromkeys(
        words("From Where Having RawString Boolean Var DataTypeParam Paren Not Neg Exists"), words("this")
    ),
    **dict.fromkeys(words("With Group Order Distinct Tuple"), words("expressions")),
    **dict.fromkeys(words("Limit Offset"), words("expression")),
    **dict.fromkeys(words("Subquery CTE Alias"), words("this alias")),
    **dict.fromkeys(words("Anonymous Lambda Bracket"), words("this expressions")),
    **dict.fromkeys(
        words(
            "And Or Add Sub Mul IntDiv Mod EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ RegexpLike "
            "Is Dot Extract Filter"
        ),
        words("this expression"),
    ),
    **dict.fromkeys(words("Like ILike"), words("this expression negate")),
    **dict.fromkeys(
        words("Union Except Intersect"), words("this expression distinct with_ order limit offset")
    ),
    "Select": words("with_ expressions distinct from_ joins where group having order limit offset"),
    "Join": words("this on using side kind"),
    "Table": words("this db catalog alias"),
    "TableAlias": words("this columns"),
    "Ordered": words("this desc nulls_first"),
    "Column": words("this table db catalog"),
    "Identifier": words("this quoted"),
    "Window": words("this partition_by order spec over"),
    "WindowSpec": words("kind start start_side end end_side"),
    "Literal": words("this is_string"),
    "Interval": words("this unit"),
    "Cast": words("this to"),
    "TryCast": words("this to safe"),
    "DataType": words("this expressions nested"),
    "Case": words("this ifs default"),
    "If": words("this true false"),
    "Between": words("this low high"),
    "In": words("this expressions query"),
    "Div": words("this expression typed safe"),
    "DPipe": words("this expression safe"),
}

# Those of them that change the set of rows, or give a name another meaning.
NON_ROW_NODES = words(
    "Select Union Except Intersect Subquery With CTE From Join Table TableAlias Where Group Having Order "
    "Ordered Limit Offset Distinct Exists Alias Star Lambda Filter Window WindowSpec"
)

# Names of the parser's types; Spark's names are the same or aliases.
TYPES = words(
    "ARRAY BIGINT BINARY BOOLEAN DATE DECIMAL DOUBLE FLOAT INT SMALLINT TEXT TIMESTAMP TIMESTAMPLTZ "
    "TIMESTAMPNTZ TIMESTAMPTZ TINYINT VARCHAR CHAR"
)
UNITS = words("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND")
UNITS |= words("YEARS MONTHS WEEKS DAYS HOURS MINUTES SECONDS DOW DOY DAYOFWEEK DOW_ISO DAYOFWEEK_ISO")


# Spark SQL dialect of the guard: functions are kept as written, identifiers and texts are quoted by us.


class _Parser(SparkParser):
    """Spark's grammar, in which a function is just its name and arguments: none is translated."""

    FUNCTIONS = {}
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")}
    NO_PAREN_FUNCTION_PARSERS = {name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")}


class _Generator(SparkGenerator):
    """Generates Spark SQL with identifiers and texts quoted as in `text`."""

    def identifier_sql(self, expression: exp.Identifier) -> str:
        return sql.name(expression.name)

    def literal_sql(self, expression: exp.Literal) -> str:
        return sql.text(expression.name) if expression.is_string else expression.name

    def rawstring_sql(self, expression: exp.RawString) -> str:
        return sql.text(expression.name)

    def interval_sql(self, expression: exp.Interval) -> str:
        # Its number must be a plain literal.
        return f"INTERVAL '{expression.this.name}' {expression.args['unit'].name.upper()}"


class SqlDialect(Spark):
    Parser = _Parser
    Generator = _Generator


# Validation of a query's tokens and tree: everything in them must be on a list.

MAX_NODES = 2_000
# Of parentheses and brackets in the text, and of nodes in the tree.
MAX_DEPTH = 60
SELECT = "Write one SELECT, or WITH … SELECT, that gives one number."
SEE_DOCS = "See docs/how-to/check-data.md for the supported SQL."


class DisallowedSql(Exception):
    """The SQL is not allowed. `str(error)` is the reason, phrased to follow "the query …".

    `hint` says what to write instead. `reads` is False unless it is a single read-only statement.
    """

    def __init__(self, reason: str, hint: str = SELECT, *, reads: bool = True) -> None:
        super().__init__(reason)
        self.hint = hint
        self.reads = reads


_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
# Spark's pipes, paths into JSON, and parameters.
_UNSUPPORTED_TOKENS = (TokenType.PIPE_GT, TokenType.COLON, TokenType.PLACEHOLDER, TokenType.PARAMETER)
_ESCAPES = re.compile(r"\\\\|\\'|\\\"")
_SIMPLER = "Write a simpler one, or several rules."


def join_doubled_quotes(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens with texts joined at doubled quotes: `'it''s'` is `it's`, as in standard SQL.

    Spark 3.5 and 4.0 would concatenate the two to `its`, so they are joined before Spark sees them.
    """
    result: list[Token] = []
    for token in tokens:
        previous = result[-1] if result else None
        if (
            previous is not None
            and token.token_type is previous.token_type is TokenType.STRING
            and token.start == previous.end + 1
            and text[token.start] == text[previous.end]
        ):
            joined = previous.text + text[token.start] + token.text
            result[-1] = Token(
                TokenType.STRING, joined, previous.line, previous.col, previous.start, token.end
            )
        else:
            result.append(token)
    return result


def validate_tokens(tokens: list[Token], text: str, *, is_query: bool) -> None:
    """Raise DisallowedSql if the text is ambiguous between parsers, or nested too deeply."""
    if not tokens:
        raise DisallowedSql("it is empty", reads=False)
    if is_query and tokens[0].token_type not in _FIRST:
        raise DisallowedSql(f"it begins with {tokens[0].text[:40]!r}; only a SELECT is allowed", reads=False)
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MAX_DEPTH:
            raise DisallowedSql("it is nested too deeply", _SIMPLER)
        if token.token_type in _UNSUPPORTED_TOKENS:
            raise DisallowedSql(f"{token.text!r} is not allowed")
        source = text[token.start : token.end + 1]
        # Spark and the parser interpret other escapes differently.
        if token.token_type is TokenType.STRING and "\\" in _ESCAPES.sub("", source):
            raise DisallowedSql(
                "a string with a single backslash is not allowed", "Double it, or write r'…'."
            )


def validate_ast(tree: exp.Expr) -> None:
    """Raise DisallowedSql if the tree contains anything that is not on the lists."""
    for number, (node, depth) in enumerate(_walk(tree)):
        if number > MAX_NODES:
            raise DisallowedSql(f"it has more than {MAX_NODES:,} parts", _SIMPLER)
        if depth > MAX_DEPTH:
            raise DisallowedSql("it is nested too deeply", _SIMPLER)
        kind = type(node).__name__
        if kind not in NODES:
            raise _not_allowed(kind, kind)
        for part, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if part not in NODES[kind]:
                raise _not_allowed(f"{kind}.{part}", f"{part.rstrip('_')} of {kind}")
            _validate_scalars(kind, part, value)
        _validate_node(node)


def _walk(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += [(child, depth + 1) for child in node.iter_expressions()]


def _not_allowed(key: str, default: str) -> DisallowedSql:
    description, hint = _DESCRIPTIONS.get(key, (default, SEE_DOCS))
    return DisallowedSql(f"{description} is not allowed", hint, reads=key not in _WRITES)


_LEAVE_OUT = "Leave it out."
_GROUPS = "Write GROUP BY with columns alone."
_CASES = "Write count_if, or CASE WHEN … THEN … END."
# Users' term for a construct, where the parser's term differs, and what to write instead.
_DESCRIPTIONS = {
    "Concat": ("adjacent string literals", "Write them as one string, or concatenate them with ||."),
    "Hint": ("a hint", _LEAVE_OUT),
    "Select.hint": ("a hint", _LEAVE_OUT),
    "Select.into": ("INTO", _LEAVE_OUT),
    "Select.laterals": ("LATERAL VIEW (use explode in a subquery)", "Write FROM (SELECT explode(a) AS b …)."),
    "Select.locks": ("FOR UPDATE", _LEAVE_OUT),
    "Select.cluster": ("CLUSTER BY", _LEAVE_OUT),
    "Select.distribute": ("DISTRIBUTE BY", _LEAVE_OUT),
    "Select.sort": ("SORT BY", "Write ORDER BY."),
    "Select.windows": ("WINDOW", "Write the window after OVER."),
    "Select.qualify": ("QUALIFY", "Write the condition in a WHERE around a subquery."),
    "Cube": ("CUBE", _GROUPS),
    "Rollup": ("ROLLUP", _GROUPS),
    "GroupingSets": ("GROUPING SETS", _GROUPS),
    "Pivot": ("PIVOT", _CASES),
    "Table.pivots": ("PIVOT", _CASES),
    "Escape": ("ESCAPE", "Write contains, startswith or endswith."),
    "Any": ("ANY or ALL", "Write the comparisons with OR or AND."),
    "All": ("ANY or ALL", "Write the comparisons with OR or AND."),
    "HexString": ("a hexadecimal string", "Write it as a string."),
    "Table.version": ("time travel", _LEAVE_OUT),
    "Table.when": ("time travel", _LEAVE_OUT),
    "Table.sample": ("TABLESAMPLE", _LEAVE_OUT),
    "TableSample": ("TABLESAMPLE", _LEAVE_OUT),
    "With.recursive": ("a recursive query", "Write a join for each level."),
    "Values": ("VALUES", "Write IN (…), or CASE WHEN … THEN … END."),
    "Lateral": ("LATERAL", "Write a subquery with a join on equal columns."),
    "Placeholder": ("a placeholder", "Write {object}, or the value itself."),
    "Parameter": ("a parameter", "Write the value itself."),
    "SessionParameter": ("a session variable", "Write the value itself."),
    "Command": ("a command", SELECT),
}
_WRITES = frozenset({"Select.into", "Command"})

_KEYWORDS = re.compile(r"[A-Za-z_ ]*")
# Parts that hold the user's own text; each is checked by `_validate_node`, or quoted in the output.
_USER_TEXT = frozenset(
    [("Identifier", "this"), ("Literal", "this"), ("RawString", "this"), ("Anonymous", "this")]
)


def _validate_scalars(kind: str, part: str, value: object) -> None:
    """Raise DisallowedSql for a value of a node's part, unless it is a flag, keywords or the user's own text.

    Nodes are accepted here, and validated by `_validate_node`.
    """
    if isinstance(value, list):
        for item in value:
            _validate_scalars(kind, part, item)
    elif isinstance(value, str):
        if (kind, part) not in _USER_TEXT and not _KEYWORDS.fullmatch(value):
            raise DisallowedSql(f"{part} of {kind} is not supported")
    elif not isinstance(value, exp.Expr | bool | Enum):
        raise DisallowedSql(f"{part} of {kind} is not supported")


_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_INTERVAL = re.compile(r"[+-]?\d{1,9}(\.\d{1,9})?")
# Names reserved by Spark: session variables, and metadata of the source files.
_RESERVED = frozenset(["session", "system", "_metadata", "global_temp"])
_JAVA = frozenset(["java_method", "reflect", "try_reflect"])
_RENAME = "Name a column of the object."


# The parser accepts nearly everything in these positions.
_QUERY, _TABLE = exp.Select | exp.SetOperation | exp.Subquery, exp.Table | exp.Subquery
_REQUIRED_CHILDREN = {
    "CTE": ("this", _QUERY),
    "Subquery": ("this", _QUERY | exp.Table),
    "Exists": ("this", _QUERY),
    "From": ("this", _TABLE),
    "Join": ("this", _TABLE),
}


def _validate_node(node: exp.Expr) -> None:
    name = node.name
    part, expected = _REQUIRED_CHILDREN.get(type(node).__name__, ("", exp.Expr))
    if part and not isinstance(node.args.get(part), expected):
        raise DisallowedSql(f"{node.args.get(part)!s:.40} is used where a query or table is required")
    if isinstance(node, exp.Anonymous):
        _validate_function(name)
    elif isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(name):
        raise DisallowedSql(f"the number {name!r} is not supported", "Write e.g. 12.5.")
    elif isinstance(node, exp.Identifier) and (not name or not name.isprintable()):
        raise DisallowedSql(f"the name {name!r} is not allowed", _RENAME)
    elif isinstance(node, exp.Identifier) and name.lower() in _RESERVED:
        raise DisallowedSql(f"the name {name!r} belongs to Spark and is not allowed", _RENAME)
    elif isinstance(node, exp.Dot) and isinstance(node.this, exp.Literal):
        raise DisallowedSql("a field of a number or string is not allowed", "Name a column before the dot.")
    elif isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
        raise DisallowedSql("a function of a schema is not allowed", "Use a built-in function of Spark.")
    elif isinstance(node, exp.DataType) and getattr(node.this, "name", "") not in TYPES:
        kind = node.sql(dialect=SqlDialect)
        raise DisallowedSql(f"the type {kind!r} is not allowed in a cast", "Write e.g. decimal(18, 2).")
    elif isinstance(node, exp.Var) and name.upper() not in UNITS:
        raise DisallowedSql(f"{name!r} is not supported")
    elif isinstance(node, exp.Interval):
        is_number_and_unit = isinstance(node.this, exp.Literal) and isinstance(node.args.get("unit"), exp.Var)
        if not is_number_and_unit or not _INTERVAL.fullmatch(node.this.name):
            raise DisallowedSql(
                "an interval must be a number and one unit, e.g. INTERVAL 7 DAYS",
                "Write date_add(a, b) for a number of days from a column.",
            )
    elif isinstance(node, exp.Join) and not (node.args.get("on") or node.args.get("using")):
        raise DisallowedSql("a join without ON or USING is not allowed", "Write JOIN … ON a.id = b.id.")


def _validate_function(name: str) -> None:
    lower = name.lower()
    if lower in FUNCTIONS:
        return
    suggestion = None if lower in INSTEAD else nearest(name, sorted(FUNCTIONS))
    suffix = f"; did you mean {suggestion!r}?" if suggestion else ""
    hint = INSTEAD.get(lower) or (f"Write {suggestion}." if suggestion else SEE_DOCS)
    raise DisallowedSql(f"the function {name!r} is not allowed{suffix}", hint, reads=lower not in _JAVA)


# TABLE: clauses of a SELECT that allow an aggregate, a window or a generator in Spark.
#
# Spark rejects them elsewhere only when it plans the query, which is too late for the gate. Ungrouped columns
# are reported only where names are unambiguous.

_PARTS = {
    "expressions": "SELECT",
    "where": "WHERE",
    "joins": "the condition of a join",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
}
_USE_SUBQUERY = "Put it into a subquery with an alias, and use the alias in the outer query."
# By kind: the parts of a SELECT that allow it, and what to write elsewhere.
_PLACEMENT = {
    "an aggregate": (frozenset({"expressions", "having", "order"}), "Write HAVING, or use a subquery."),
    "a window": (frozenset({"expressions"}), _USE_SUBQUERY),
    "a generator": (frozenset({"expressions"}), _USE_SUBQUERY),
}


def validate_placement(tree: exp.Expr) -> None:
    """Raise DisallowedSql if an aggregate, window or generator is where Spark would reject it."""
    for select in tree.find_all(exp.Select):
        parts = [(part, node) for part in _PARTS for node in _nodes(select, part)]
        aggregates = False
        for part, top in parts:
            for node in _walk_without_queries(top):
                kind = _restricted_kind(node)
                # A subquery of HAVING may compare with an aggregate of the query around it.
                if kind is not None and not (kind == "an aggregate" and select.find_ancestor(exp.Having)):
                    _validate_position(kind, node, part, top)
                    aggregates |= kind == "an aggregate"
        groups = list(_nodes(select, "group"))
        if (aggregates or groups) and select.parent_select is None:
            _validate_grouping(select, groups)


def _nodes(select: exp.Select, part: str) -> Iterator[exp.Expr]:
    value = select.args.get(part)
    if part == "joins":
        yield from (on for join in value or () if (on := join.args.get("on")) is not None)
    elif isinstance(value, list):
        yield from value
    elif value is not None:
        yield from value.expressions if isinstance(value, exp.Group | exp.Order) else [value]


def _walk_without_queries(top: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the node and its descendants, without subqueries."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in node.iter_expressions() if not isinstance(child, exp.Query)]


def _restricted_kind(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Window):
        if isinstance(node.this, exp.Filter):
            raise DisallowedSql(
                "FILTER before OVER is not allowed", "Write sum(CASE WHEN … THEN 1 END) OVER (…)."
            )
        return "a window"
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in GENERATORS:
        return "a generator"
    if name in WINDOWS and _window_of(node) is None:
        message = f"{name!r} without OVER is not allowed"
        raise DisallowedSql(message, f"Write {name}(…) OVER (PARTITION BY … ORDER BY …).")
    return "an aggregate" if name in AGGREGATES and _window_of(node) is None else None


def _window_of(call: exp.Expr) -> exp.Window | None:
    """Return the window that a function is called over, or None."""
    parent = call.parent
    return parent if isinstance(parent, exp.Window) and parent.this is call else None


def _validate_position(kind: str, node: exp.Expr, part: str, top: exp.Expr) -> None:
    allowed_parts, hint = _PLACEMENT[kind]
    if part not in allowed_parts:
        raise DisallowedSql(f"{kind} in {_PARTS[part]} is not allowed", hint)
    if kind == "a generator" and node is not top and not (isinstance(top, exp.Alias) and top.this is node):
        raise DisallowedSql("a generator inside an expression is not allowed", _USE_SUBQUERY)
    ancestor = node.parent
    while ancestor is not None and not isinstance(ancestor, exp.Query):
        if _restricted_kind(ancestor) == "an aggregate":
            raise DisallowedSql(f"{kind} inside an aggregate is not allowed", _USE_SUBQUERY)
        ancestor = ancestor.parent


def _validate_grouping(select: exp.Select, groups: list[exp.Expr]) -> None:
    grouped = {part.name.lower() for group in groups if isinstance(group, exp.Column) for part in group.parts}
    aliases = {projection.alias.lower() for projection in select.expressions if projection.alias}
    if grouped & aliases or not all(isinstance(group, exp.Column) for group in groups):
        # Positions, aliases of the SELECT and expressions are left to Spark.
        return
    grouped |= aliases
    grouped |= {
        argument.name.lower()
        for lambda_node in select.find_all(exp.Lambda)
        for argument in lambda_node.expressions
    }
    for part in ("expressions", "having", "order"):
        for top in _nodes(select, part):
            for column in _outside_aggregates(top):
                if grouped.isdisjoint(part_node.name.lower() for part_node in column.parts):
                    raise DisallowedSql(
                        f"{column.name!r} is neither grouped nor in an aggregate",
                        f"Write GROUP BY … {column.name}, or an aggregate, e.g. max({column.name}).",
                    )


def _outside_aggregates(top: exp.Expr) -> Iterator[exp.Column]:
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            yield node
        elif _restricted_kind(node) != "an aggregate" and not isinstance(node, exp.Filter):
            stack += [child for child in node.iter_expressions() if not isinstance(child, exp.Query)]
