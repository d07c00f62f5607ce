"""Two sides that should agree: what is equal, and what every kind of difference is reported as."""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import dq
from dq.contracts.outcome import ReadError, UsageError
from dq.contracts.types import parse
from dq.dataquality.reconcile.columns import Terms, hash_of, pair_columns
from dq.dataquality.reconcile.equality import Equality, equality
from dq.dataquality.reconcile.outcome import Kind
from dq.dataquality.spark.measure import schema_of

pytestmark = pytest.mark.spark

# SQL on the left, SQL on the right, and whether they are equal.
EQUAL = [
    ("NULL", "NULL", True),
    ("CAST(NULL AS STRING)", "''", False),
    ("CAST(NULL AS INT)", "0", False),
    ("CAST(1 AS TINYINT)", "1L", True),
    ("1", "1.00", True),
    ("1", "1.01", False),
    ("CAST(1.50 AS DECIMAL(10,2))", "CAST(1.5 AS DECIMAL(38,18))", True),
    ("CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0))", "CAST(0.5 AS DECIMAL(38,38))", False),
    ("CAST('-7' AS DECIMAL(38,0))", "CAST('-7.00' AS DECIMAL(38,18))", True),
    ("CAST('-7' AS DECIMAL(38,0))", "CAST('-7.000000000000000001' AS DECIMAL(38,18))", False),
    ("0.1D", "CAST(0.1 AS DECIMAL(3,1))", True),
    ("0.1D", "CAST(0.1 AS FLOAT)", True),
    ("0.1D", "0.10000000000000002D", False),
    ("9007199254740993L", "9007199254740992D", True),
    ("-0.0D", "0.0D", True),
    ("CAST('NaN' AS DOUBLE)", "CAST('NaN' AS DOUBLE)", True),
    ("CAST('NaN' AS DOUBLE)", "CAST(NULL AS DOUBLE)", False),
    ("'a'", "'a '", False),
    ("'a'", "'A'", False),
    ("'\u00e9'", "'e\u0301'", False),
    ("TIMESTAMP'2026-03-29 02:00:00 UTC'", "TIMESTAMP'2026-03-29 04:00:00 Europe/Berlin'", True),
    ("TIMESTAMP'2026-03-29 02:00:00 UTC'", "TIMESTAMP_NTZ'2026-03-29 02:00:00'", True),
    ("TIMESTAMP'2026-03-29 02:00:00 UTC'", "TIMESTAMP_NTZ'2026-03-29 04:00:00'", False),
    ("TIMESTAMP'2026-03-29 02:00:00.000001 UTC'", "TIMESTAMP'2026-03-29 02:00:00 UTC'", False),
    ("DATE'2026-03-29'", "TIMESTAMP_NTZ'2026-03-29 00:00:00'", True),
    ("DATE'2026-03-29'", "TIMESTAMP'2026-03-29 00:00:00 UTC'", True),
    ("DATE'2026-03-29'", "TIMESTAMP'2026-03-29 00:00:01 UTC'", False),
    ("DATE'1582-10-04'", "TIMESTAMP_NTZ'1582-10-04 00:00:00'", True),
    ("X'00FF'", "X'00FF'", True),
    ("X'00FF'", "X'00'", False),
    ("'12'", "12", True),
    ("'012'", "12", True),
    ("'twelve'", "12", False),
    ("'twelve'", "CAST(NULL AS INT)", False),
    ("''", "CAST(NULL AS INT)", False),
    ("CAST(NULL AS STRING)", "CAST(NULL AS INT)", True),
    ("'2026-03-29'", "DATE'2026-03-29'", True),
    ("'true'", "true", True),
    ("array(1, NULL)", "array(NULL, 1)", False),
    ("array(1, 2)", "array(1L, 2L)", True),
    ("array(1, 2)", "array(2, 1)", False),
    ("CAST(array() AS ARRAY<INT>)", "CAST(NULL AS ARRAY<INT>)", False),
    ("CAST(array() AS ARRAY<INT>)", "array(CAST(NULL AS INT))", False),
    ("map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", True),
    ("map('a', 1, 'b', 2)", "map('a', 2, 'b', 1)", False),
    ("map('a', map('x', 1, 'y', 2))", "map('a', map('y', 2, 'x', 1))", True),
    ("map('a', CAST(NULL AS INT))", "map('a', 0)", False),
    ("named_struct('a', 1, 'b', 'x')", "named_struct('B', 'x', 'A', 1)", True),
    ("named_struct('a', 1, 'b', NULL)", "named_struct('a', NULL, 'b', 1)", False),
    ("named_struct('a', CAST(NULL AS INT))", "CAST(NULL AS STRUCT<a: INT>)", False),
    ("array(named_struct('a', -0.0D))", "array(named_struct('a', 0.0D))", True),
    ("array(TIMESTAMP'2026-03-29 02:00:00.000001 UTC')", "array(TIMESTAMP'2026-03-29 02:00:00 UTC')", False),
]


@pytest.fixture
def pairs(spark: SparkSession) -> list[DataFrame]:
    """A row for each side, with a column for each pair."""
    return [
        spark.range(1).selectExpr("id", *(f"{pair[side]} AS c{number}" for number, pair in enumerate(EQUAL)))
        for side in (0, 1)
    ]


def test_values_are_equal_by_the_written_rules(pairs: list[DataFrame]) -> None:
    result = dq.reconcile(*pairs, key=["id"])

    assert result.uncompared == ()
    differing = {column.name for column in result.columns if column.differing}
    expected = {f"c{number}" for number, (_, _, equal) in enumerate(EQUAL) if not equal}
    assert differing == expected, [EQUAL[int(name[1:])] for name in differing ^ expected]


def test_hashes_are_equal_for_equal_values_only(pairs: list[DataFrame]) -> None:
    pairing = pair_columns(schema_of(pairs[0]), schema_of(pairs[1]), Terms(key=("id",)))
    hashes = []
    for frame, is_left in zip(pairs, (True, False), strict=True):
        normal = [text for column in pairing.columns for text in column.select(is_left=is_left)]
        row = frame.selectExpr(*normal).selectExpr(*(hash_of([column]) for column in pairing.values)).first()
        assert row is not None
        hashes.append(tuple(row))

    for pair, left, right in zip(EQUAL, *hashes, strict=True):
        assert (left == right) is pair[2], pair


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        ("binary", "string", "binary and string are not comparable"),
        ("boolean", "int", "boolean and int are not comparable"),
        ("array<int>", "array<binary>", "the items int and binary are not comparable"),
        ("map<string,int>", "map<string,date>", "the values int and date are not comparable"),
        ("struct<a:int>", "struct<a:int,b:int>", "structs have different fields: b"),
        ("struct<a:int>", "struct<a:binary>", "field a: int and binary are not comparable"),
    ],
)
def test_other_types_are_not_comparable(left: str, right: str, reason: str) -> None:
    assert equality(parse(left), parse(right)) == reason


def test_padding_of_char_is_not_compared(spark: SparkSession) -> None:
    form = equality(parse("char(5)"), parse("string"))

    assert isinstance(form, Equality)
    row = spark.sql(
        f"SELECT {form.left(repr('a    '))} <=> {form.right(repr('a'))}, {form.left(repr(' a'))} <=> 'a'"
    ).first()
    assert row is not None
    assert tuple(row) == (True, False)


ORDERS = """
    SELECT id, concat('item ', id) AS item, id / 7 AS price, CAST(id AS DECIMAL(12,2)) + 0.55 AS amount,
        timestamp_seconds(1700000000 + id) AS at, map('a', id, 'b', 2) AS tags, array(id, 2, 3) AS list,
        IF(id % 10 = 0, NULL, 'note') AS note, id * 2 AS net, id * 3 AS gross,
        date_add(DATE'2026-11-01', CAST(id % 3 AS INT)) AS day
    FROM range(300)
"""


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    return spark.sql(ORDERS)


def test_changed_cells_are_named_with_what_they_have_in_common(orders: DataFrame) -> None:
    right = orders.selectExpr(
        "id",
        "CASE id WHEN 21 THEN 'item' WHEN 22 THEN 'Item 22 ' WHEN 23 THEN NULL ELSE item END AS item",
        "IF(id = 31, round(price, 2), price) AS price",
        "CAST(CASE id WHEN 41 THEN round(amount, 1) WHEN 42 THEN -amount WHEN 43 THEN amount + 7 ELSE amount"
        " END AS DECIMAL(12,2)) AS amount",
        "CASE id WHEN 51 THEN at + INTERVAL 2 HOURS WHEN 52 THEN at + INTERVAL 7 SECONDS ELSE at END AS at",
        "tags",
        "IF(id = 61, reverse(list), list) AS list",
        "IF(id = 70, '', note) AS note",
        "IF(id = 81, gross, net) AS net",
        "IF(id = 81, net, gross) AS gross",
        "day",
    )
    result = dq.reconcile(orders, right.repartition(3), key=["id"])

    assert dict(result.counts) == {Kind.MISSING: 0, Kind.EXTRA: 0, Kind.CHANGED: 12, Kind.REPEATED: 0}
    assert {
        column.name: (column.differing, dict(column.patterns))
        for column in result.columns
        if column.differing
    } == {
        "item": (3, {"truncated on the right": 1, "case or spaces": 1, "NULL on the right": 1}),
        "price": (1, {"rounded": 1}),
        "amount": (3, {"rounded": 1, "opposite sign": 1}),
        "at": (2, {"shifted by a zone's offset": 1}),
        "list": (1, {"items in another order": 1}),
        "note": (1, {"empty instead of NULL": 1}),
        "net": (1, {}),
        "gross": (1, {}),
    }
    assert result.swapped == (("net", "gross", 1),)
    first = result.differences[0]
    assert (first.kind, first.key, first.left, first.right) == (
        Kind.CHANGED, {"id": 21}, {"item": "item 21"}, {"item": "item"},
    )  # fmt: skip


def test_equal_rows_in_another_order_and_reordered_maps_agree(orders: DataFrame) -> None:
    other = orders.withColumn("tags", orders.tags).selectExpr(
        "*", "map_from_entries(reverse(map_entries(tags))) AS other_tags"
    )
    other = other.drop("tags").withColumnRenamed("other_tags", "tags").orderBy("item")

    for key in ([], ["id"]):
        result = dq.reconcile(orders, other.repartition(5), key=key)
        assert result.agrees, result.as_dict()
        assert result.decisions["hashes"] == 1
        assert result.differences == ()


def test_missing_extra_and_repeated_rows(orders: DataFrame) -> None:
    right = orders.where("id NOT IN (3, 4)").unionByName(orders.where("id = 9"))
    right = right.unionByName(orders.where("id = 5").withColumn("id", orders.id + 1000))
    keyed = dq.reconcile(orders, right, key=["id"])
    whole = dq.reconcile(orders, right)

    assert dict(keyed.counts) == {Kind.MISSING: 2, Kind.EXTRA: 1, Kind.CHANGED: 0, Kind.REPEATED: 2}
    assert [(d.kind, d.key["id"], d.left_rows, d.right_rows) for d in keyed.differences] == [
        (Kind.MISSING, 3, 1, 0),
        (Kind.MISSING, 4, 1, 0),
        (Kind.EXTRA, 1005, 0, 1),
        (Kind.REPEATED, 9, 1, 2),
    ]
    assert dict(whole.counts) == {Kind.MISSING: 2, Kind.EXTRA: 2, Kind.CHANGED: 0, Kind.REPEATED: 0}


def test_repeated_keys_with_the_same_rows_agree_and_with_others_do_not(spark: SparkSession) -> None:
    left = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'b'), (NULL, 'c'), (NULL, 'c') AS t(id, name)")
    same = spark.sql("SELECT * FROM VALUES (NULL, 'c'), (1, 'b'), (NULL, 'c'), (1, 'a') AS t(id, name)")
    other = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, 'x'), (NULL, 'c'), (NULL, 'c') AS t(id, name)")

    assert dq.reconcile(left, same, key=["id"]).agrees
    assert dict(dq.reconcile(left, other, key=["id"]).counts)[Kind.REPEATED] == 2
    # {x, x} and {y, y}: sums of hashes differ, although each value stands twice.
    twice = spark.sql("SELECT * FROM VALUES (1, 'x'), (1, 'x') AS t(id, name)")
    assert not dq.reconcile(twice, twice.replace("x", "y"), key=["id"]).agrees


def test_sides_without_rows_agree_and_one_without_rows_does_not(orders: DataFrame) -> None:
    nothing = orders.where("id < 0")

    assert dq.reconcile(nothing, nothing.repartition(2), key=["id"]).agrees
    result = dq.reconcile(orders, nothing, key=["id"])
    assert dict(result.counts) == {Kind.MISSING: 300, Kind.EXTRA: 0, Kind.CHANGED: 0, Kind.REPEATED: 0}


def test_a_partition_of_nan_is_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 2)):
        rows = spark.sql(f"SELECT 1 AS id, {value} AS value, CAST('NaN' AS DOUBLE) AS part")
        rows.write.partitionBy("part").parquet(str(tmp_path / name))
    result = dq.reconcile(str(tmp_path / "a"), str(tmp_path / "b"), key=["id"], spark=spark)

    assert dict(result.counts)[Kind.CHANGED] == 1


def test_a_column_on_one_side_is_a_difference_and_a_rename_is_suggested(orders: DataFrame) -> None:
    renamed = orders.withColumnRenamed("note", "comment")
    result = dq.reconcile(orders, renamed, key=["id"])

    assert not result.agrees
    assert [(column.name, column.reason) for column in result.uncompared] == [
        ("note", "is only on the left (string); if it was renamed, compare it with --rename note=comment"),
        ("comment", "is only on the right (string)"),
    ]
    assert dq.reconcile(orders, renamed, key=["id"], rename={"note": "comment"}).agrees
    assert dq.reconcile(orders, renamed, key=["id"], ignore=["note", "comment"]).agrees
    assert dq.reconcile(orders, renamed, key=["id"], columns=["item", "price"]).agrees


def test_a_tolerance_is_inclusive_and_never_hides_null_or_nan(spark: SparkSession) -> None:
    left = spark.sql(
        "SELECT * FROM VALUES (1, 1.00BD), (2, 1.00BD), (3, NULL), (4, NULL), (5, 2.00BD) AS t(id, amount)"
    )
    right = spark.sql(
        "SELECT * FROM VALUES (1, 1.01BD), (2, 1.02BD), (3, 0.00BD), (4, NULL), (5, NULL) AS t(id, amount)"
    )
    result = dq.reconcile(left, right, key=["id"], tolerance={"amount": "0.01"})

    assert [difference.key["id"] for difference in result.differences] == [2, 3, 5]
    nan = [
        spark.sql(f"SELECT 1 AS id, CAST('{text}' AS DOUBLE) AS amount") for text in ("NaN", "1", "Infinity")
    ]
    assert not dq.reconcile(nan[0], nan[1], key=["id"], tolerance={"amount": 5}).agrees
    assert not dq.reconcile(nan[1], nan[2], key=["id"], tolerance={"amount": 5}).agrees
    far = [spark.sql(f"SELECT 1 AS id, {n}L AS amount") for n in (-(2**62), 2**62 + 5)]
    assert not dq.reconcile(*far, key=["id"], tolerance={"amount": 5}).agrees


def test_a_tolerance_needs_a_key(orders: DataFrame) -> None:
    with pytest.raises(UsageError, match="A tolerance needs a key"):
        dq.reconcile(orders, orders, tolerance={"price": 1})


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (Terms(key=("idd",)), "unknown column 'idd' on the left. Did you mean 'id'"),
        (Terms(ignored=("prize",)), "unknown column to ignore 'prize' on either side. Did you mean 'price'"),
        (Terms(key=("price",)), "the key column 'price' cannot be compared"),
        (Terms(key=("id",), tolerance={"item": Decimal(1)}), "'item' has a tolerance, but is string"),
    ],
)
def test_names_that_do_not_apply_are_errors(terms: Terms, message: str) -> None:
    left = parse("struct<id:int,item:string,price:int>")
    right = parse("struct<id:int,item:string,price:binary>")
    with pytest.raises(UsageError) as error:
        pair_columns(left, right, terms)
    assert message in f"{error.value.message} {error.value.hint}"


def test_a_failing_side_is_an_error_without_its_values(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    # A query keeps the mode in which it was analyzed.
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        left = spark.sql("SELECT 1 AS id, DATE'2026-11-01' AS name")
        right = spark.sql("SELECT 1 AS id, CAST(concat('secret-value', id) AS DATE) AS name FROM range(1, 2)")
        with pytest.raises(ReadError) as error:
            dq.reconcile(left, right, key=["id"])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
    assert "could not be compared" in error.value.message
    assert "secret-value" not in f"{error.value.message} {error.value.hint}"


def test_no_details_says_which_partitions_differ_and_compares_no_rows(
    spark: SparkSession, tmp_path: Path, orders: DataFrame
) -> None:
    for name, frame in (
        ("a", orders),
        ("b", orders.withColumn("net", orders.net + (orders.id == 4).cast("int"))),
    ):
        frame.write.partitionBy("day").parquet(str(tmp_path / name))
    result = dq.reconcile(str(tmp_path / "a"), str(tmp_path / "b"), key=["id"], details=False, spark=spark)

    assert [(str(part), part.agrees) for part in result.partitions] == [
        ("day=2026-11-01", True),
        ("day=2026-11-02", False),
        ("day=2026-11-03", True),
    ]
    assert result.as_dict()["rows"] is None


TYPES = [
    "BOOLEAN", "TINYINT", "INT", "BIGINT", "DECIMAL(5,2)", "DECIMAL(20,4)", "FLOAT", "DOUBLE", "STRING",
    "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY<INT>", "MAP<STRING,INT>",
    "STRUCT<a: INT, b: STRING>",
]  # fmt: skip
VALUES = {
    "BOOLEAN": ("true", "false"),
    "STRING": ("''", "'a'", "'a '", "'\u00fc'"),
    "BINARY": ("X''", "X'00'", "X'0000'"),
    "DATE": ("DATE'1970-01-01'", "DATE'2026-03-29'"),
    "TIMESTAMP": ("TIMESTAMP'1970-01-01 00:00:00 UTC'", "TIMESTAMP'2026-03-29 01:00:00.000001 UTC'"),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2026-03-29 01:00:00.000001'"),
    "ARRAY<INT>": ("array()", "array(1)", "array(NULL)", "array(1, NULL)", "array(NULL, 1)"),
    "MAP<STRING,INT>": (
        "map()", "map('a', 1)", "map('a', NULL)", "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)",
    ),
    "STRUCT<a: INT, b: STRING>": (
        "named_struct('a', 1, 'b', NULL)", "named_struct('a', NULL, 'b', '1')",
        "named_struct('a', 1, 'b', '1')",
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_random_pairs_of_tables_have_the_verdict_of_counting_rows(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    types = chance.choices(TYPES, k=chance.randint(1, 5))
    numbers = ("0", "1", "2", "3")
    rows = [
        [chance.choice(("NULL", *VALUES.get(kind, numbers))) for kind in types]
        for _ in range(chance.choice((1, 5, 30)))
    ]
    other = [list(row) for row in rows]
    for _ in range(chance.choice((0, 0, 1, 2))):
        row, column = chance.randrange(len(other)), chance.randrange(len(types))
        other[row][column] = chance.choice(("NULL", *VALUES.get(types[column], numbers)))
    if chance.random() < 0.3:
        other.append(chance.choice(other))
    chance.shuffle(other)

    frames = []
    for table in (rows, other):
        cells = ", ".join(
            f"({', '.join(f'CAST({value} AS {kind})' for value, kind in zip(row, types, strict=True))})"
            for row in table
        )
        names = ", ".join(f"c{number}" for number in range(len(types)))
        frames.append(spark.sql(f"VALUES {cells} AS t({names})"))
    left, right = (Counter(map(written, table)) for table in (rows, other))
    result = dq.reconcile(*frames)

    assert result.agrees == (left == right), f"seed {seed}: {rows} and {other}"
    assert result.counts[Kind.MISSING] == (left - right).total()
    assert result.counts[Kind.EXTRA] == (right - left).total()


def written(row: list[str]) -> str:
    """The row with one spelling of each value."""
    return json.dumps(["map('a', 1, 'b', 2)" if value == "map('b', 2, 'a', 1)" else value for value in row])


def test_few_tasks_are_started_whatever_the_session_says_and_its_settings_stay(
    spark: SparkSession,
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "200")
    session.conf.set("spark.sql.adaptive.enabled", "true")
    names = (
        "spark.sql.constraintPropagation.enabled",
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning",
    )
    before = [session.conf.get(name) for name in names]
    left = session.sql(ORDERS)
    context = session.sparkContext
    context.setJobGroup("few tasks", "few tasks")

    result = dq.reconcile(left, left.withColumn("note", left.item), key=["id"], spark=session)

    tracker = context.statusTracker()
    stages = {
        stage for job in tracker.getJobIdsForGroup("few tasks") for stage in tracker.getJobInfo(job).stageIds
    }
    tasks = sum(info.numTasks for stage in stages if (info := tracker.getStageInfo(stage)))
    assert result.counts[Kind.CHANGED] > 0
    assert 0 < tasks < 100
    assert [session.conf.get(name) for name in names] == before


@pytest.mark.parametrize("key", [["id"], []], ids=["key", "whole rows"])
def test_many_differences_in_a_group_of_keys_are_all_found(spark: SparkSession, key: list[str]) -> None:
    left = spark.range(20_000).selectExpr("id", "IF(id % 10 = 0, NULL, id * 3) AS amount")
    # One in 19 changes, so that several groups have two or more, which their sums do not tell apart.
    changed = left.selectExpr("id", "IF(id % 19 = 5, id, amount) AS amount")
    extra_rows = changed.where("id % 9001 = 8").selectExpr("-id AS id", "amount")
    right = changed.where("id % 9001 <> 7").unionByName(extra_rows)

    counts = dq.reconcile(left, right, key=key).counts

    changes = len([number for number in range(20_000) if number % 19 == 5 and number % 9001 != 7])
    missing = len(range(7, 20_000, 9001))
    extra = len(range(8, 20_000, 9001))
    if key:
        assert dict(counts) == {
            Kind.MISSING: missing, Kind.EXTRA: extra, Kind.CHANGED: changes, Kind.REPEATED: 0,
        }  # fmt: skip
    else:
        assert (counts[Kind.MISSING], counts[Kind.EXTRA]) == (missing + changes, extra + changes)


def test_two_keys_whose_sums_look_like_those_of_another_key_are_told_apart(spark: SparkSession) -> None:
    left = spark.createDataFrame([(number,) for number in (*range(100), 36_366, 94_091)], "id long")
    left = left.selectExpr("id", "id * 3 AS amount")
    # The sums of the group of these two are those of a change of one key that no row has.
    right = left.selectExpr("id", "IF(id IN (36366, 94091), id, amount) AS amount")

    result = dq.reconcile(left, right, key=["id"])

    assert (result.agrees, result.counts[Kind.CHANGED]) == (False, 2)
