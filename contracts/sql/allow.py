"""The allowlist: functions, kinds of nodes and types that SQL of a rule may be made of, and where."""

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

# TABLE: what the SQL of a rule may be made of: functions, kinds of nodes with their parts, and types.


def words(listed: str) -> frozenset[str]:
    """The words of a table, which stand in one text."""
    return frozenset(listed.split())


# Functions of Spark 3.5 and later that read nothing but their arguments (and the time of the query) and give
# little for little: no `repeat`, `lpad` or `sequence`, which make much out of a number, no `collect_list`,
# `median` or exact `percentile`, which gather a table in one place, no `raise_error`, which speaks, and
# nothing that reaches the JVM, files, the session or the network.
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
# Their result is a number, a flag or an instant, whatever they get.
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
# It may be as large as what they get, or larger (see `analysis`).
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
# Of one row, in an expression that nothing but the row is asked for.
OF_A_ROW = _FLAT | _LARGE
FLAT = (
    _FLAT | WINDOWS | AGGREGATES - words("any_value first first_value last last_value max max_by min min_by")
)

# What to write instead of a function that is not on the list.
INSTEAD = {
    **dict.fromkeys(
        words("collect_list collect_set array_agg listagg string_agg"),
        "Count instead, such as count(DISTINCT a).",
    ),
    **dict.fromkeys(
        words("median percentile percentile_cont percentile_disc"), "Write percentile_approx(a, 0.5)."
    ),
    "mode": "Write SELECT a FROM … GROUP BY a ORDER BY count(*) DESC LIMIT 1.",
    **dict.fromkeys(
        words("repeat lpad rpad space sequence array_repeat"),
        "Compare with a text or a number that is written out.",
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

# A node whose class is not here, or that has another part, is refused: what a new version of the parser
# understands besides cannot slip through.
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

# Of them, those that make of the rows something else than the rows, or give a name another meaning.
NOT_OF_A_ROW = words(
    "Select Union Except Intersect Subquery With CTE From Join Table TableAlias Where Group Having Order "
    "Ordered Limit Offset Distinct Exists Alias Star Lambda Filter Window WindowSpec"
)

# Names of the parser's types; what they are called in Spark is the same or an alias.
TYPES = words(
    "ARRAY BIGINT BINARY BOOLEAN DATE DECIMAL DOUBLE FLOAT INT SMALLINT TEXT TIMESTAMP TIMESTAMPLTZ "
    "TIMESTAMPNTZ TIMESTAMPTZ TINYINT VARCHAR CHAR"
)
UNITS = words("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND")
UNITS |= words("YEARS MONTHS WEEKS DAYS HOURS MINUTES SECONDS DOW DOY DAYOFWEEK DOW_ISO DAYOFWEEK_ISO")


# Spark's SQL for the guard: functions stay as they are written, names and texts are written in our way.


class _Parser(SparkParser):
    """Spark's grammar, in which a function is just its name and arguments: none is translated."""

    FUNCTIONS = {}
    FUNCTION_PARSERS = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")}
    NO_PAREN_FUNCTION_PARSERS = {name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")}


class _Generator(SparkGenerator):
    """Spark SQL whose identifiers and texts are written as everywhere in this room."""

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


# Which texts and trees of a query may run: everything in them must be on a list.

MAX_NODES = 2_000
# Of parentheses and brackets in the text, and of nodes in the tree.
MAX_DEPTH = 60
SELECT = "Write one SELECT, or WITH … SELECT, that gives one number."
KNOWN = "docs/how-to/check-data.md says what SQL may be used."


class Forbidden(Exception):
    """The query may not run; the message is the reason, as the end of a sentence about it.

    `instead` is what to write. `reads` is false for what is no single statement that only reads.
    """

    def __init__(self, reason: str, instead: str = SELECT, *, reads: bool = True) -> None:
        super().__init__(reason)
        self.instead = instead
        self.reads = reads


_FIRST = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
# Spark's pipes, paths into JSON, and parameters.
_STRANGE = (TokenType.PIPE_GT, TokenType.COLON, TokenType.PLACEHOLDER, TokenType.PARAMETER)
_ESCAPES = re.compile(r"\\\\|\\'|\\\"")
_SIMPLER = "Write a simpler one, or several rules."


def unquoted(tokens: list[Token], text: str) -> list[Token]:
    """The tokens, with a text whose quotes are doubled as one: `'it''s'` is `it's`.

    That is SQL's own rule. Spark would join the two to `its`, in 3.5 and in 4.0; it is given the text as it
    is meant here.
    """
    made: list[Token] = []
    for token in tokens:
        before = made[-1] if made else None
        if (
            before is not None
            and token.token_type is before.token_type is TokenType.STRING
            and token.start == before.end + 1
            and text[token.start] == text[before.end]
        ):
            joined = before.text + text[token.start] + token.text
            made[-1] = Token(TokenType.STRING, joined, before.line, before.col, before.start, token.end)
        else:
            made.append(token)
    return made


def vouch_for_tokens(tokens: list[Token], text: str, *, is_query: bool) -> None:
    """Nothing in the text that is read in different ways, or nested without end. Raises Forbidden."""
    if not tokens:
        raise Forbidden("it is empty", reads=False)
    if is_query and tokens[0].token_type not in _FIRST:
        raise Forbidden(f"it begins with {tokens[0].text[:40]!r}; only a SELECT is allowed", reads=False)
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MAX_DEPTH:
            raise Forbidden("it is nested too deeply", _SIMPLER)
        if token.token_type in _STRANGE:
            raise Forbidden(f"{token.text!r} is not allowed")
        written = text[token.start : token.end + 1]
        # Spark and the parser read other escapes in different ways.
        if token.token_type is TokenType.STRING and "\\" in _ESCAPES.sub("", written):
            raise Forbidden("a text with a single backslash is not allowed", "Double it, or write r'…'.")


def vouch_for_tree(tree: exp.Expr) -> None:
    """Nothing in the tree that is not on the lists. Raises Forbidden."""
    for number, (node, depth) in enumerate(_walk(tree)):
        if number > MAX_NODES:
            raise Forbidden(f"it has more than {MAX_NODES:,} parts", _SIMPLER)
        if depth > MAX_DEPTH:
            raise Forbidden("it is nested too deeply", _SIMPLER)
        kind = type(node).__name__
        if kind not in NODES:
            raise _strange(kind, kind)
        for part, value in node.args.items():
            if value is None or value is False or value == []:
                continue
            if part not in NODES[kind]:
                raise _strange(f"{kind}.{part}", f"{part.rstrip('_')} of {kind}")
            _vouch_scalars(kind, part, value)
        _vouch_node(node)


def _walk(tree: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack += [(child, depth + 1) for child in node.iter_expressions()]


def _strange(key: str, otherwise: str) -> Forbidden:
    said, instead = _SAID.get(key, (otherwise, KNOWN))
    return Forbidden(f"{said} is not allowed", instead, reads=key not in _WRITES)


_LEAVE_OUT = "Leave it out."
_GROUPS = "Write GROUP BY with columns alone."
_CASES = "Write count_if, or CASE WHEN … THEN … END."
# What a reader calls it, where the parser's word is not the same, and what to write instead.
_SAID = {
    "Concat": ("a text beside a text", "Write them as one text, or join them with ||."),
    "Hint": ("a hint", _LEAVE_OUT),
    "Select.hint": ("a hint", _LEAVE_OUT),
    "Select.into": ("INTO", _LEAVE_OUT),
    "Select.laterals": ("LATERAL VIEW (use explode in a subquery)", "Write FROM (SELECT explode(a) AS b …)."),
    "Select.locks": ("FOR UPDATE", _LEAVE_OUT),
    "Select.cluster": ("CLUSTER BY", _LEAVE_OUT),
    "Select.distribute": ("DISTRIBUTE BY", _LEAVE_OUT),
    "Select.sort": ("SORT BY", "Write ORDER BY."),
    "Select.windows": ("WINDOW", "Write the window behind OVER."),
    "Select.qualify": ("QUALIFY", "Write the condition in a WHERE around a subquery."),
    "Cube": ("CUBE", _GROUPS),
    "Rollup": ("ROLLUP", _GROUPS),
    "GroupingSets": ("GROUPING SETS", _GROUPS),
    "Pivot": ("PIVOT", _CASES),
    "Table.pivots": ("PIVOT", _CASES),
    "Escape": ("ESCAPE", "Write contains, startswith or endswith."),
    "Any": ("ANY or ALL", "Write the comparisons with OR or AND."),
    "All": ("ANY or ALL", "Write the comparisons with OR or AND."),
    "HexString": ("a text in hexadecimal", "Write it as a text."),
    "Table.version": ("time travel", _LEAVE_OUT),
    "Table.when": ("time travel", _LEAVE_OUT),
    "Table.sample": ("TABLESAMPLE", _LEAVE_OUT),
    "TableSample": ("TABLESAMPLE", _LEAVE_OUT),
    "With.recursive": ("a recursive query", "Write a join for each level that is meant."),
    "Values": ("VALUES", "Write IN (…), or CASE WHEN … THEN … END."),
    "Lateral": ("LATERAL", "Write a subquery with a join on equal columns."),
    "Placeholder": ("a placeholder", "Write {object}, or the value itself."),
    "Parameter": ("a parameter", "Write the value itself."),
    "SessionParameter": ("a session variable", "Write the value itself."),
    "Command": ("a command", SELECT),
}
_WRITES = frozenset({"Select.into", "Command"})

_KEYWORDS = re.compile(r"[A-Za-z_ ]*")
# Parts that hold the user's own text; each is looked at by `_vouch_node`, or quoted when it is written.
_FREE = frozenset([("Identifier", "this"), ("Literal", "this"), ("RawString", "this"), ("Anonymous", "this")])


def _vouch_scalars(kind: str, part: str, value: object) -> None:
    if isinstance(value, list):
        for one in value:
            _vouch_scalars(kind, part, one)
    elif isinstance(value, str):
        if (kind, part) not in _FREE and not _KEYWORDS.fullmatch(value):
            raise Forbidden(f"{part} of {kind} is not understood")
    elif not isinstance(value, exp.Expr | bool | Enum):
        raise Forbidden(f"{part} of {kind} is not understood")


_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")
_INTERVAL = re.compile(r"[+-]?\d{1,9}(\.\d{1,9})?")
# Names of Spark's own: variables of the session, and the files that rows come from.
_RESERVED = frozenset(["session", "system", "_metadata", "global_temp"])
_JAVA = frozenset(["java_method", "reflect", "try_reflect"])
_RENAME = "Name a column of the object."


# The parser takes nearly everything in these places.
_QUERY, _TABLE = exp.Select | exp.SetOperation | exp.Subquery, exp.Table | exp.Subquery
_HOLDS = {
    "CTE": ("this", _QUERY),
    "Subquery": ("this", _QUERY | exp.Table),
    "Exists": ("this", _QUERY),
    "From": ("this", _TABLE),
    "Join": ("this", _TABLE),
}


def _vouch_node(node: exp.Expr) -> None:
    name = node.name
    place, wanted = _HOLDS.get(type(node).__name__, ("", exp.Expr))
    if place and not isinstance(node.args.get(place), wanted):
        raise Forbidden(f"{node.args.get(place)!s:.40} stands where a query or a table must")
    if isinstance(node, exp.Anonymous):
        _vouch_function(name)
    elif isinstance(node, exp.Literal) and not node.is_string and not _NUMBER.fullmatch(name):
        raise Forbidden(f"the number {name!r} is not understood", "Write it like 12.5.")
    elif isinstance(node, exp.Identifier) and (not name or not name.isprintable()):
        raise Forbidden(f"the name {name!r} is not allowed", _RENAME)
    elif isinstance(node, exp.Identifier) and name.lower() in _RESERVED:
        raise Forbidden(f"the name {name!r} belongs to Spark and is not allowed", _RENAME)
    elif isinstance(node, exp.Dot) and isinstance(node.this, exp.Literal):
        raise Forbidden("a field of a number or a text is not allowed", "Name a column before the dot.")
    elif isinstance(node, exp.Dot) and not isinstance(node.expression, exp.Identifier):
        raise Forbidden("a function of a schema is not allowed", "Write a function of Spark's own.")
    elif isinstance(node, exp.DataType) and getattr(node.this, "name", "") not in TYPES:
        kind = node.sql(dialect=SqlDialect)
        raise Forbidden(f"the type {kind!r} is not allowed in a cast", "Write one such as decimal(18, 2).")
    elif isinstance(node, exp.Var) and name.upper() not in UNITS:
        raise Forbidden(f"{name!r} is not understood")
    elif isinstance(node, exp.Interval):
        plain = isinstance(node.this, exp.Literal) and isinstance(node.args.get("unit"), exp.Var)
        if not plain or not _INTERVAL.fullmatch(node.this.name):
            raise Forbidden(
                "an interval is a number and one unit, such as INTERVAL 7 DAYS",
                "Write date_add(a, b) for a number of days that a column holds.",
            )
    elif isinstance(node, exp.Join) and not (node.args.get("on") or node.args.get("using")):
        raise Forbidden("a join without ON or USING is not allowed", "Write JOIN … ON a.id = b.id.")


def _vouch_function(name: str) -> None:
    lower = name.lower()
    if lower in FUNCTIONS:
        return
    near = None if lower in INSTEAD else nearest(name, sorted(FUNCTIONS))
    meant = f"; did you mean {near!r}?" if near else ""
    instead = INSTEAD.get(lower) or (f"Write {near}." if near else KNOWN)
    raise Forbidden(f"the function {name!r} is not allowed{meant}", instead, reads=lower not in _JAVA)


# TABLE: where in a SELECT an aggregate, a window and a generator may stand, as Spark has it.
#
# Spark refuses them elsewhere only when it plans the query, which is too late for a gate. Whether every
# column is grouped is judged where no name can mean anything else.

_PARTS = {
    "expressions": "SELECT",
    "where": "WHERE",
    "joins": "the condition of a join",
    "group": "GROUP BY",
    "having": "HAVING",
    "order": "ORDER BY",
    "limit": "LIMIT",
}
_AROUND = "Put it into a subquery under a name, and ask for that name around it."
# By kind: the parts of a SELECT in which it may stand, and what to write where it may not.
_ALLOWED = {
    "an aggregate": (frozenset({"expressions", "having", "order"}), "Write HAVING, or use a subquery."),
    "a window": (frozenset({"expressions"}), _AROUND),
    "a generator": (frozenset({"expressions"}), _AROUND),
}


def vouch_for_places(tree: exp.Expr) -> None:
    """Nothing stands where Spark would refuse it. Raises Forbidden."""
    for select in tree.find_all(exp.Select):
        parts = [(part, node) for part in _PARTS for node in _nodes(select, part)]
        aggregates = False
        for part, top in parts:
            for node in _within(top):
                kind = _kind(node)
                # A subquery of HAVING may compare with an aggregate of the query around it.
                if kind is not None and not (kind == "an aggregate" and select.find_ancestor(exp.Having)):
                    _vouch(kind, node, part, top)
                    aggregates |= kind == "an aggregate"
        groups = list(_nodes(select, "group"))
        if (aggregates or groups) and select.parent_select is None:
            _vouch_for_groups(select, groups)


def _nodes(select: exp.Select, part: str) -> Iterator[exp.Expr]:
    held = select.args.get(part)
    if part == "joins":
        yield from (on for join in held or () if (on := join.args.get("on")) is not None)
    elif isinstance(held, list):
        yield from held
    elif held is not None:
        yield from held.expressions if isinstance(held, exp.Group | exp.Order) else [held]


def _within(top: exp.Expr) -> Iterator[exp.Expr]:
    """The node and what is in it, without the queries in it."""
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in node.iter_expressions() if not isinstance(child, exp.Query)]


def _kind(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Window):
        if isinstance(node.this, exp.Filter):
            raise Forbidden(
                "FILTER before OVER is not allowed", "Write sum(CASE WHEN … THEN 1 END) OVER (…)."
            )
        return "a window"
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in GENERATORS:
        return "a generator"
    if name in WINDOWS and _windowed(node) is None:
        said = f"{name!r} without OVER is not allowed"
        raise Forbidden(said, f"Write {name}(…) OVER (PARTITION BY … ORDER BY …).")
    return "an aggregate" if name in AGGREGATES and _windowed(node) is None else None


def _windowed(call: exp.Expr) -> exp.Window | None:
    """The window that a call is asked over, if it is."""
    above = call.parent
    return above if isinstance(above, exp.Window) and above.this is call else None


def _vouch(kind: str, node: exp.Expr, part: str, top: exp.Expr) -> None:
    places, instead = _ALLOWED[kind]
    if part not in places:
        raise Forbidden(f"{kind} in {_PARTS[part]} is not allowed", instead)
    if kind == "a generator" and node is not top and not (isinstance(top, exp.Alias) and top.this is node):
        raise Forbidden("a generator inside of an expression is not allowed", _AROUND)
    above = node.parent
    while above is not None and not isinstance(above, exp.Query):
        if _kind(above) == "an aggregate":
            raise Forbidden(f"{kind} inside of an aggregate is not allowed", _AROUND)
        above = above.parent


def _vouch_for_groups(select: exp.Select, groups: list[exp.Expr]) -> None:
    known = {part.name.lower() for one in groups if isinstance(one, exp.Column) for part in one.parts}
    given = {one.alias.lower() for one in select.expressions if one.alias}
    if known & given or not all(isinstance(one, exp.Column) for one in groups):
        # Places, names of the SELECT and expressions are left to Spark.
        return
    known |= given
    known |= {name.name.lower() for each in select.find_all(exp.Lambda) for name in each.expressions}
    for part in ("expressions", "having", "order"):
        for top in _nodes(select, part):
            for column in _outside_aggregates(top):
                if known.isdisjoint(each.name.lower() for each in column.parts):
                    raise Forbidden(
                        f"{column.name!r} is neither grouped nor in an aggregate",
                        f"Write GROUP BY … {column.name}, or an aggregate such as max({column.name}).",
                    )


def _outside_aggregates(top: exp.Expr) -> Iterator[exp.Column]:
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            yield node
        elif _kind(node) != "an aggregate" and not isinstance(node, exp.Filter):
            stack += [child for child in node.iter_expressions() if not isinstance(child, exp.Query)]
