"""TABLE: what the SQL of a rule may be made of: functions, kinds of nodes with their parts, and types."""

from __future__ import annotations


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
# It may be as large as what they get, or larger (see `growth`).
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

_BINARY = words("this expression")
_SET = words("this expression distinct with_ order limit offset")
# A node whose class is not here, or that has another part, is refused: what a new version of the parser
# understands besides cannot slip through.
NODES: dict[str, frozenset[str]] = {
    "Select": words("with_ expressions distinct from_ joins where group having order limit offset"),
    "Union": _SET,
    "Except": _SET,
    "Intersect": _SET,
    "Subquery": words("this alias"),
    "With": words("expressions"),
    "CTE": words("this alias"),
    "From": words("this"),
    "Join": words("this on using side kind"),
    "Table": words("this db catalog alias"),
    "TableAlias": words("this columns"),
    "Where": words("this"),
    "Group": words("expressions"),
    "Having": words("this"),
    "Order": words("expressions"),
    "Ordered": words("this desc nulls_first"),
    "Limit": words("expression"),
    "Offset": words("expression"),
    "Distinct": words("expressions"),
    "Alias": words("this alias"),
    "Column": words("this table db catalog"),
    "Identifier": words("this quoted"),
    "Star": frozenset(),
    "Anonymous": words("this expressions"),
    "CurrentDate": frozenset(),
    "CurrentTimestamp": frozenset(),
    "Lambda": words("this expressions"),
    "Filter": words("this expression"),
    "Window": words("this partition_by order spec over"),
    "WindowSpec": words("kind start start_side end end_side"),
    "Literal": words("this is_string"),
    "RawString": words("this"),
    "Boolean": words("this"),
    "Null": frozenset(),
    "Interval": words("this unit"),
    "Var": words("this"),
    "Cast": words("this to"),
    "TryCast": words("this to safe"),
    "DataType": words("this expressions nested"),
    "DataTypeParam": words("this"),
    "Extract": _BINARY,
    "Case": words("this ifs default"),
    "If": words("this true false"),
    "Paren": words("this"),
    "Tuple": words("expressions"),
    "Not": words("this"),
    "Neg": words("this"),
    "Is": _BINARY,
    "Between": words("this low high"),
    "In": words("this expressions query"),
    "Exists": words("this"),
    "Bracket": words("this expressions"),
    "Dot": _BINARY,
    "Div": words("this expression typed safe"),
    **dict.fromkeys(
        words("And Or Add Sub Mul IntDiv Mod EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ RegexpLike"),
        _BINARY,
    ),
    **dict.fromkeys(("Like", "ILike"), words("this expression negate")),
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
