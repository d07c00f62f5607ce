"""The forty clauses of c40.odcs.yaml as plain data, for engines that do not read the contract; an id each."""

from __future__ import annotations

TYPES = {
    "l_orderkey": "bigint",
    "l_partkey": "bigint",
    "l_suppkey": "bigint",
    "l_linenumber": "int",
    "l_quantity": "decimal(15,2)",
    "l_extendedprice": "decimal(15,2)",
    "l_discount": "decimal(15,2)",
    "l_tax": "decimal(15,2)",
    "l_returnflag": "string",
    "l_linestatus": "string",
    "l_shipdate": "date",
    "l_commitdate": "date",
    "l_receiptdate": "date",
    "l_shipinstruct": "string",
    "l_shipmode": "string",
    "l_comment": "string",
}
COLUMNS = tuple(TYPES)
KEY = ("l_orderkey", "l_linenumber")
# Both ends belong to the range; None is an open end.
RANGES: dict[str, tuple[str, str | None]] = {
    "l_orderkey": ("1", None),
    "l_linenumber": ("1", "7"),
    "l_quantity": ("1.00", "50.00"),
    "l_discount": ("0.00", "0.10"),
    "l_tax": ("0.00", "0.08"),
}
POSITIVE = "l_extendedprice"
ENUMS = {
    "l_returnflag": ("A", "N", "R"),
    "l_linestatus": ("F", "O"),
    "l_shipmode": ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"),
    "l_shipinstruct": ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN"),
}
TEXT, MIN_LENGTH, MAX_LENGTH = "l_comment", 1, 44
FORMED, PATTERN = "l_shipmode", "^[A-Z ]+$"
EARLIER, LATER = "l_shipdate", "l_receiptdate"
DATES = {"l_shipdate": ("1992-01-01", "1998-12-31"), "l_commitdate": ("1992-01-01", "1998-12-31")}
FRESH, FRESH_SINCE = "l_shipdate", "1998-11-01"
# When the contract's freshness is judged.
NOW = "1998-12-02"
MEAN, MEAN_BOUNDS = "l_quantity", (20, 30)
MAXIMUM, MAXIMUM_BOUND = "l_extendedprice", 200_000
DISTINCT = "l_suppkey"
REPEATED, REPEATED_PERCENT = "l_partkey", 98

PREDICATES = (
    *(f"null:{column}" for column in COLUMNS),
    *(f"range:{column}" for column in RANGES),
    f"positive:{POSITIVE}",
    *(f"enum:{column}" for column in ENUMS),
    "min_length",
    "max_length",
    "pattern",
    "order",
    *(f"dates:{column}" for column in DATES),
)
ALL = ("schema", "rows", "key", *PREDICATES, "fresh", "mean", "maximum", "distinct", "repeated")
assert len(set(ALL)) == 40


def row_bounds(scale: float) -> tuple[int, int]:
    """Minimum and maximum number of rows of lineitem at this scale factor."""
    return int(5_900_000 * scale), int(6_100_000 * scale)


def distinct_bounds(scale: float) -> tuple[int, int]:
    """Minimum and maximum number of different suppliers."""
    return int(9_000 * scale), int(11_000 * scale)


def quoted(column: str, value: str) -> str:
    """A bound as SQL."""
    return f"DATE '{value}'" if TYPES[column] == "date" else value


def broken_rows(regex: str) -> dict[str, str]:
    """Id to a SQL predicate that is true for a row that breaks the clause.

    `regex` is the engine's test, with holes for column and pattern: `{column} RLIKE '{pattern}'`.
    """
    conditions = {f"null:{column}": f"{column} IS NULL" for column in COLUMNS}
    for kind, ranges in (("range", RANGES), ("dates", DATES)):
        for column, (least, largest) in ranges.items():
            test = f"{column} < {quoted(column, least)}"
            conditions[f"{kind}:{column}"] = test + (
                f" OR {column} > {quoted(column, largest)}" if largest else ""
            )
    conditions[f"positive:{POSITIVE}"] = f"{POSITIVE} <= 0"
    for column, values in ENUMS.items():
        conditions[f"enum:{column}"] = f"{column} NOT IN ({', '.join(map(repr, values))})"
    conditions["min_length"] = f"length({TEXT}) < {MIN_LENGTH}"
    conditions["max_length"] = f"length({TEXT}) > {MAX_LENGTH}"
    conditions["pattern"] = f"NOT ({regex.format(column=FORMED, pattern=PATTERN)})"
    conditions["order"] = f"{EARLIER} > {LATER}"
    assert set(conditions) == set(PREDICATES)
    return conditions


def judged(
    scale: float, types: dict[str, str], counts: dict[str, int], repeats: int, figures: dict[str, object]
) -> list[str]:
    """The ids of the broken clauses, from what a hand-written query found.

    `counts` are broken rows by id, `repeats` the keys that stand more than once; `figures` are rows, fresh
    (a date), mean, maximum, and the distinct values of DISTINCT and REPEATED.
    """
    rows, distinct, parts = (int(str(figures[name])) for name in ("rows", "distinct", "parts"))
    (fewest, largest), (least, greatest) = row_bounds(scale), distinct_bounds(scale)
    verdicts = {
        "schema": types == TYPES,
        "rows": fewest <= rows <= largest,
        "key": repeats == 0,
        "fresh": str(figures["fresh"]) >= FRESH_SINCE,
        "mean": MEAN_BOUNDS[0] <= float(str(figures["mean"])) <= MEAN_BOUNDS[1],
        "maximum": float(str(figures["maximum"])) <= MAXIMUM_BOUND,
        "distinct": least <= distinct <= greatest,
        "repeated": 100 * (rows - parts) <= REPEATED_PERCENT * rows,
        **{name: count == 0 for name, count in counts.items()},
    }
    assert set(verdicts) == set(ALL)
    return [name for name, is_met in verdicts.items() if not is_met]
