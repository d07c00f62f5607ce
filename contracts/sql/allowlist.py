"""TABLE: what the SQL of a rule may be made of: functions, kinds of nodes with their parts, and types."""

from __future__ import annotations


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Functions of Spark 3.5 and later that read nothing but their arguments (and the time of the query) and give
# little for little: no `repeat`, `lpad` or `sequence`, which make much out of a number, no `collect_list`,
# which gathers a table in one place, no `raise_error`, which speaks, and nothing that reaches the JVM, files,
# the session or the network.
FUNCTIONS = _words(
    # aggregates
    "any any_value approx_count_distinct avg bit_and bit_or bit_xor bool_and bool_or corr count count_if "
    "covar_pop covar_samp every first first_value kurtosis last last_value max max_by mean median min "
    "min_by mode percentile percentile_approx regr_count regr_r2 skewness some std stddev stddev_pop "
    "stddev_samp sum try_avg try_sum var_pop var_samp variance "
    # windows
    "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number "
    # conditions
    "coalesce greatest if ifnull isnan isnotnull isnull least nanvl nullif nvl nvl2 "
    # numbers
    "abs bround cbrt ceil ceiling exp floor ln log log10 log2 mod negative pmod positive pow power rint "
    "round sign signum sqrt try_add try_divide try_multiply try_subtract "
    # texts
    "ascii bit_length btrim char_length character_length concat concat_ws contains endswith initcap instr "
    "lcase left len length levenshtein locate lower ltrim octet_length regexp regexp_count regexp_extract "
    "regexp_instr regexp_like regexp_substr replace reverse right rlike rtrim soundex split split_part "
    "startswith substr substring substring_index translate trim ucase upper "
    # dates and times
    "add_months current_date current_timestamp date date_add date_diff date_format date_sub date_trunc "
    "dateadd datediff day dayofmonth dayofweek dayofyear from_unixtime from_utc_timestamp hour "
    "last_day make_date make_timestamp minute month months_between next_day now quarter second "
    "timestamp_micros timestamp_millis timestamp_seconds to_date to_timestamp to_unix_timestamp "
    "to_utc_timestamp trunc try_to_timestamp unix_date unix_micros unix_millis unix_seconds "
    "unix_timestamp weekday weekofyear year "
    # arrays, maps and structs
    "aggregate array array_contains array_distinct array_except array_intersect array_max array_min "
    "array_position array_size arrays_overlap array_union cardinality element_at exists explode "
    "explode_outer filter flatten forall get map_contains_key map_keys map_values named_struct posexplode "
    "posexplode_outer reduce size slice sort_array struct transform try_element_at "
    # values and their forms
    "bigint boolean crc32 decimal double float get_json_object hash int json_array_length md5 sha sha1 "
    "sha2 smallint string timestamp tinyint to_number try_to_number typeof xxhash64 "
)

_BINARY = _words("this expression")
_SET = _words("this expression distinct with_ order limit offset")
# A node whose class is not here, or that has another part, is refused: what a new version of the parser
# understands besides cannot slip through.
NODES: dict[str, frozenset[str]] = {
    "Select": _words("with_ expressions distinct from_ joins where group having order limit offset"),
    "Union": _SET,
    "Except": _SET,
    "Intersect": _SET,
    "Subquery": _words("this alias"),
    "With": _words("expressions"),
    "CTE": _words("this alias"),
    "From": _words("this"),
    "Join": _words("this on using side kind"),
    "Table": _words("this db catalog alias"),
    "TableAlias": _words("this columns"),
    "Where": _words("this"),
    "Group": _words("expressions"),
    "Having": _words("this"),
    "Order": _words("expressions"),
    "Ordered": _words("this desc nulls_first"),
    "Limit": _words("expression"),
    "Offset": _words("expression"),
    "Distinct": _words("expressions"),
    "Alias": _words("this alias"),
    "Column": _words("this table db catalog"),
    "Identifier": _words("this quoted"),
    "Star": frozenset(),
    "Anonymous": _words("this expressions"),
    "CurrentDate": frozenset(),
    "CurrentTimestamp": frozenset(),
    "Lambda": _words("this expressions"),
    "Filter": _words("this expression"),
    "Window": _words("this partition_by order spec over"),
    "WindowSpec": _words("kind start start_side end end_side"),
    "Literal": _words("this is_string"),
    "RawString": _words("this"),
    "Boolean": _words("this"),
    "Null": frozenset(),
    "Interval": _words("this unit"),
    "Var": _words("this"),
    "Cast": _words("this to"),
    "TryCast": _words("this to safe"),
    "DataType": _words("this expressions nested"),
    "DataTypeParam": _words("this"),
    "Extract": _BINARY,
    "Case": _words("this ifs default"),
    "If": _words("this true false"),
    "Paren": _words("this"),
    "Tuple": _words("expressions"),
    "Not": _words("this"),
    "Neg": _words("this"),
    "Is": _BINARY,
    "Between": _words("this low high"),
    "In": _words("this expressions query"),
    "Exists": _words("this"),
    "Bracket": _words("this expressions"),
    "Dot": _BINARY,
    "Div": _words("this expression typed safe"),
    **dict.fromkeys(
        _words(
            "And Or Add Sub Mul IntDiv Mod DPipe EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ "
            "Like ILike RegexpLike"
        ),
        _BINARY,
    ),
}

# Of them, those that make of the rows something else than the rows, or give a name another meaning.
NOT_OF_A_ROW = _words(
    "Select Union Except Intersect Subquery With CTE From Join Table TableAlias Where Group Having Order "
    "Ordered Limit Offset Distinct Exists Alias Star Lambda Filter Window WindowSpec"
)

# Names of the parser's types; what they are called in Spark is the same or an alias.
TYPES = _words(
    "ARRAY BIGINT BINARY BOOLEAN DATE DECIMAL DOUBLE FLOAT INT SMALLINT TEXT TIMESTAMP TIMESTAMPLTZ "
    "TIMESTAMPNTZ TIMESTAMPTZ TINYINT VARCHAR CHAR"
)
UNITS = _words("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND")
UNITS |= _words("YEARS MONTHS WEEKS DAYS HOURS MINUTES SECONDS DOW DOY DAYOFWEEK DOW_ISO DAYOFWEEK_ISO")
