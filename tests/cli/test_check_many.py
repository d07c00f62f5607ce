"""dq check over several contracts and deliveries: what is chosen, what one failure does, what is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import parquet_footer as footer
from fakes.lake import write_days

from dq.dataquality.results import COLUMNS
from dq.operations.runtime.spark import run_concurrently

SMALL = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
servers:
  - {{server: lake, type: local, path: '${{DQ_LAKE}}/{name}', format: parquet}}
schema:
  - name: {name}
    quality:
      - {{id: some, metric: rowCount, mustBeGreaterThan: 2}}
      - {{id: told, type: text, description: Fresh.}}
    properties:
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
"""


@pytest.fixture(autouse=True)
def lake(folder, monkeypatch) -> None:
    """Where the data lies, from anywhere: the session of the tests began in another folder."""
    monkeypatch.setenv("DQ_LAKE", str(folder / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")


@pytest.fixture
def orders(folder: Path) -> Path:
    """A contract with two delivered days: a good one, and one with a duplicate and a null."""
    (folder / "orders.odcs.yaml").unlink()
    write_days(folder)
    return folder


@pytest.fixture
def watched(orders, dq) -> Path:
    """The same, after the watcher has seen both days arrive and a third one missing."""
    for at in ("2026-05-10T12:00:00Z", "2026-05-13T12:00:00Z"):
        dq("watch", "--as-of", at, "--channel", "console")
    return orders


def small(folder: Path, name: str, ids: list[int | None] | None) -> None:
    """A contract of one table; without ids there is no data."""
    (folder / f"{name}.odcs.yaml").write_text(SMALL.format(name=name))
    if ids is not None:
        (folder / "lake" / name).mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), folder / "lake" / name / "part.parquet")


def dashboard() -> str:
    """The query that the documentation gives for a dashboard."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "check-data.md"
    return page.read_text().split("```sql not-run\n")[1].split("```")[0]


def check(dq, *arguments: str):
    return dq("check", *arguments, "--format", "json", "--channel", "file:alerts.jsonl")


def scopes(ran) -> list[dict[str, str]]:
    return [report["partitions"][0] for report in ran.json]


def incidents(dq) -> list[list[str]]:
    return [one["subjects"] for one in dq("status", "--format", "json").json["incidents"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--all", "--partition", "day=2026-05-10"), "--partition and --all exclude each other"),
        (
            ("--since", "2026-05-10T00:00:00Z", "--cycle", "2026-05-11T06:00:00Z"),
            "--cycle and --since exclude",
        ),
        (("--cycle", "2026-05-11T06:00:00"), "has no time zone"),
        (("--cycle", "2026-05-11T07:00:00Z"), "Known due times include 2026-05-11T06:00:00Z"),
        (("--object", "order"), "Did you mean 'orders'?"),
        (("--rule", "requird"), "'requird' is not a check, a clause path, or the id or name"),
        (("--rule", "bound"), "Did you mean 'bounds'?"),
        (("--parallel", "0"), "--parallel"),
        (("--results-table", "a.b;c"), "is neither a table nor a path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_mean_nothing_are_exit_2_before_spark_starts(watched, dq, options, said):
    found = check(dq, *options)

    assert found.code == 2
    assert said in " ".join(found.err.replace("│", " ").split())


def test_a_rule_that_nothing_tests_is_refused_with_its_reason(folder, dq):
    small(folder, "people", [1, 2, 3])

    found = check(dq, "people.odcs.yaml", "--rule", "told")

    assert found.code == 2
    assert "'told' is not tested: it is free text" in found.err


def test_a_delivery_that_has_not_arrived_is_exit_3_and_named(watched, dq):
    found = check(dq, "--cycle", "2026-05-13T06:00:00Z")

    assert found.code == 3
    assert "due 2026-05-13T06:00:00Z is missing" in found.err
    assert [one["error"] is not None for one in found.json] == [True]


@pytest.mark.spark
def test_a_cycle_is_tested_by_its_due_instant_and_since_takes_what_was_tested_before_too(spark, watched, dq):
    by_cycle = check(dq, "--cycle", "2026-05-12T06:00:00Z")
    new = check(dq)
    since = check(dq, "--since", "2026-05-12T00:00:00Z")
    all_since = check(dq, "--since", "2026-05-01T00:00:00Z")

    assert scopes(by_cycle) == [{"day": "2026-05-11"}]
    assert scopes(new) == [{"day": "2026-05-10"}]
    assert scopes(since) == [{"day": "2026-05-11"}]
    assert scopes(all_since) == [{"day": "2026-05-10"}, {"day": "2026-05-11"}]


@pytest.mark.spark
def test_a_run_of_some_clauses_resolves_and_claims_nothing_that_it_did_not_ask(spark, watched, dq):
    day = ("--partition", "day=2026-05-11")
    before = check(dq, *day, "--rule", "bounds")
    silent = incidents(dq)
    check(dq, *day, "--rule", "primary_key")
    opened = incidents(dq)
    check(dq, *day, "--rule", "bounds")
    still = incidents(dq)
    new = check(dq)
    found = dq("status", "--format", "json").json["checks"]

    assert {result["check"] for result in before.json[0]["results"]} == {"bounds"}
    assert before.json[0]["rules"] == ["bounds"]
    assert "not selected in this run" in {clause["reason"] for clause in before.json[0]["clauses"]}
    assert (silent[1:], opened[1:], still[1:]) == ([], [["day=2026-05-11"]], [["day=2026-05-11"]])
    # A run of some clauses is not the test of a delivery.
    assert {"day": "2026-05-11"} in scopes(new)
    assert {line["check"] for line in found if line["status"] == "fail"} >= {"primary_key"}


@pytest.mark.spark
def test_a_run_of_what_was_broken_resolves_it_when_nothing_else_is_broken(spark, folder, dq):
    small(folder, "people", [1, 2])
    first = check(dq, "people.odcs.yaml")
    broken = incidents(dq)
    small_table = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    pq.write_table(small_table, folder / "lake" / "people" / "part.parquet")

    check(dq, "people.odcs.yaml", "--rule", "required")
    still = incidents(dq)
    mended = check(dq, "people.odcs.yaml", "--rule", "some")

    assert (first.code, broken, still) == (1, [["table"]], [["table"]])
    assert (mended.code, incidents(dq)) == (0, [])


@pytest.mark.spark
def test_one_that_cannot_be_tested_stops_no_other_and_the_order_is_that_of_the_contracts(spark, folder, dq):
    (folder / "orders.odcs.yaml").unlink()
    for name, ids in (("a", [1, 2, 3]), ("b", None), ("c", [1]), ("e", [1, 1, 2])):
        small(folder, name, ids)
    (folder / "d.odcs.yaml").write_text(SMALL.format(name="d").replace("logicalType", "logicalTyp"))

    found = check(dq, "--parallel", "3")

    said = {
        one["contract"]: one["error"]
        or {result["check"] for result in one["results"] if result["status"] == "fail"}
        for one in found.json
    }
    assert [one["contract"] for one in found.json] == [None, "a", "b", "c", "e"]
    assert "logicalTyp" in said[None]
    assert "Check the server's path" in said["b"]
    assert (said["a"], said["c"], said["e"]) == (set(), {"row_count"}, {"unique"})
    assert found.code == 3


WHOLE = """\
apiVersion: v3.2.0
kind: DataContract
id: visits
version: 1.0.0
status: active
servers:
  - {server: lake, type: local, path: '${DQ_LAKE}/visits', format: csv}
schema:
  - name: visits
    quality:
      - metric: rowCount
        mustBe: 3
        customProperties: [{property: scope, vendor: dq, value: {rows: table}}]
    properties:
      - {name: day, logicalType: date, partitioned: true, partitionKeyPosition: 1}
      - {name: id, logicalType: integer}
"""


@pytest.mark.spark
def test_what_is_promised_of_the_table_is_told_from_kept_counts_of_what_did_not_change(spark, folder, dq):
    (folder / "visits.odcs.yaml").write_text(WHOLE)
    for day, text in (("2026-05-10", "id\n1\n2\n"), ("2026-05-11", "id\n3\n")):
        file = folder / "lake" / "visits" / f"day={day}" / "part.csv"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        os.utime(file, (1_700_000_000, 1_700_000_000))
    options = ("visits.odcs.yaml", "--partition", "day=2026-05-11")

    first = check(dq, *options).json[0]
    second = check(dq, *options).json[0]
    file.write_text("id\n3\n4\n")
    third = check(dq, *options).json[0]

    found = [
        [one["measure"]["observed"] for one in report["results"] if one["check"] == "row_count"]
        for report in (first, second, third)
    ]
    assert found == [["3 rows"], ["3 rows"], ["4 rows"]]
    assert (first["passes"], second["passes"], third["passes"]) == (1, 0, 1)


@pytest.mark.spark
def test_one_switch_has_everything_read_by_spark(spark, folder, dq):
    (folder / "orders.odcs.yaml").unlink()
    small(folder, "one", [1, 2, 3])

    begun = _jobs(spark)
    read, own = check(dq).json[0], _jobs(spark) - begun
    scanned = check(dq, "--scan").json[0]

    assert (read["passes"], scanned["passes"], own) == (1, 2, 0)
    assert read["results"] == scanned["results"]


def _jobs(spark) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


@pytest.mark.spark
def test_sparks_pages_tell_which_contract_a_job_is_of(spark, folder, dq):
    (folder / "orders.odcs.yaml").unlink()
    for name in ("one", "two"):
        small(folder, name, [1, 2, 3])

    check(dq, "--parallel", "2", "--scan")

    status = spark.sparkContext._jsc.sc().statusStore()
    jobs = status.jobsList(None)
    told = {
        jobs.apply(at).jobGroup().get(): jobs.apply(at).description().get()
        for at in range(jobs.size())
        if jobs.apply(at).jobGroup().isDefined() and "/" in jobs.apply(at).jobGroup().get()
    }
    assert told["dq check one/one"] == "dq check one/one 1.0.0 table"
    assert told["dq check two/two"] == "dq check two/two 1.0.0 table"


@pytest.mark.spark
def test_a_dry_run_shows_the_passes_reads_the_schema_only_and_keeps_nothing(spark, watched, dq):
    shown = dq("check", "--dry-run")
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("dq check --dry-run orders/orders")
    found = check(dq, "--dry-run", "--rule", "primary_key")
    ran = check(dq)

    assert shown.code == 0
    assert "repeated keys, a shuffle" in shown.out
    # The files of the two days are small: this process tells their schema.
    assert len(jobs) == 0
    assert [(one["kind"], one["questions"]) for one in found.json[0]["passes"]] == [
        ("rows", 3),
        ("duplicates", 1),
    ]
    assert "not selected in this run" in {one["reason"] for one in found.json[0]["untested"]}
    # Nothing was kept: both days are still new.
    assert len(ran.json) == 2


@pytest.mark.spark
def test_a_dry_run_names_what_will_be_an_error(spark, folder, dq):
    small(folder, "people", [1])
    file = folder / "people.odcs.yaml"
    file.write_text(file.read_text() + "      - {name: gone, logicalType: string, required: true}\n")

    found = check(dq, "people.odcs.yaml", "--dry-run")

    assert [(one["clause"], one["reason"]) for one in found.json[0]["errors"]] == [
        ("schema[0].properties[1].required", "column 'gone' is missing")
    ]


@pytest.mark.spark
def test_a_bug_in_one_piece_of_work_leaves_the_others_their_answers(spark):
    def work(number: int) -> int:
        if number == 2:
            raise ValueError("no such luck")
        return spark.range(number).count()

    answers = run_concurrently(lambda: spark, [1, 2, 3, 4, 5], work, threads=2)

    assert [str(answer) for answer in answers] == ["1", "no such luck", "3", "4", "5"]


@pytest.mark.spark
def test_results_are_appended_to_a_folder_for_dashboards_with_a_row_for_what_could_not_be_tested(
    spark, folder, dq
):
    (folder / "orders.odcs.yaml").unlink()
    small(folder, "a", [1, 1])
    small(folder, "b", None)
    target = str(folder / "results")

    first = check(dq, "--results-table", target, "--as-of", "2026-05-10T12:00:00Z")
    check(dq, "a.odcs.yaml", "--results-table", target, "--as-of", "2026-05-11T12:00:00Z")

    found = spark.read.parquet(target)
    found.createOrReplaceTempView("told")
    stands = spark.sql(dashboard().replace("quality.results", "told")).collect()
    rows = {
        (row["contract"], f"{row['at']:%d}", row["check"]): (row["status"], row["value"], row["scope"])
        for row in found.collect()
    }
    assert first.code == 3
    assert found.columns == [column for column, _ in COLUMNS]
    assert rows[("a", "10", "unique")] == ("fail", 1.0, "table")
    assert rows[("a", "11", "row_count")] == ("fail", 2.0, "table")
    assert rows[("b", "10", "")] == ("error", None, "table")
    assert len(rows) == 11
    # The newest answer of each clause, and the object that could not be tested.
    assert [(row["contract"], row["check"]) for row in stands] == [
        ("a", "row_count"),
        ("a", "unique"),
        ("b", ""),
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_results_are_appended_to_a_table_that_may_have_columns_of_its_own(spark, folder, dq):
    small(folder, "a", [1, 2, 3])
    spark.sql("CREATE DATABASE IF NOT EXISTS quality")
    ours = ", ".join(f"`{column}` {kind}" for column, kind in reversed(COLUMNS))
    spark.sql(f"CREATE TABLE quality.results (team string, {ours}) USING orc")
    try:
        check(dq, "a.odcs.yaml", "--results-table", "quality.results")
        check(dq, "a.odcs.yaml", "--results-table", "quality.made")
        check(dq, "a.odcs.yaml", "--results-table", "quality.made")
        # A table of an older dq has no column for names.
        older = ", ".join(f"`{column}` {kind}" for column, kind in COLUMNS if column != "clause_name")
        spark.sql(f"CREATE TABLE quality.older ({older}) USING orc")
        check(dq, "a.odcs.yaml", "--results-table", "quality.older")
        spark.sql("CREATE TABLE quality.other (id int) USING orc")
        refused = check(dq, "a.odcs.yaml", "--results-table", "quality.other")

        broken = spark.sql(dashboard()).collect()
        kept = spark.table("quality.results").select("team", "contract", "status").distinct().collect()
        made = spark.table("quality.made").count()
        names = {row.clause: row.clause_name for row in spark.table("quality.made").collect()}
        older = spark.table("quality.older").count()
    finally:
        spark.sql("DROP DATABASE quality CASCADE")

    assert [tuple(row) for row in kept] == [(None, "a", "pass")]
    assert (made, older) == (10, 5)
    assert names["schema[0].properties[0].unique"] == "schema/a/properties/id/unique"
    assert broken == []
    assert refused.code == 2
    assert "has no column contract" in refused.err


@pytest.mark.spark
def test_statistics_are_verified_and_the_rate_of_all_runs_is_told(spark, folder, dq):
    (folder / "orders.odcs.yaml").unlink()
    small(folder, "one", [1, 2, 3])
    honest = check(dq, "--verify-statistics", "1").json[0]["verification"]
    part = folder / "lake" / "one" / "part.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2, None], pa.int64())}), part)

    def lie(fields):
        for told in footer.statistics(fields):
            told[footer.NULLS] = footer.whole(0)

    footer.rewritten(part, lie)
    # Of a small table no word of the footers is taken.
    read = dq("check", "--channel", "console")
    caught = check(dq, "--verify-statistics", "1")
    shown = dq("check", "--verify-statistics", "1", "--channel", "console")

    assert (honest["ever"], read.code) == ({"proofs": 2, "scans": 2, "disagreements": 0}, 1)
    told = caught.json[0]["verification"]
    assert (caught.code, told["ever"]) == (3, {"proofs": 4, "scans": 4, "disagreements": 1})
    assert told["disagreements"][0]["files"][0]["writer"].startswith("parquet-cpp-arrow")
    assert (shown.code, "6 of 6 answers verified on the rows, 2 wrong" in shown.out) == (3, True)
    assert "part.parquet (parquet-cpp-arrow version" in shown.out
    assert "must not be NULL" in shown.out or "required" in shown.out


def test_a_share_is_between_nothing_and_everything(folder, dq):
    refused = dq("check", "--verify-statistics", "1.5")

    assert (refused.code, "Traceback" in refused.err) == (2, False)
