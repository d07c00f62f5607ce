"""Folders of partitions that a template names: every command finds in them what it finds in Hive's."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from fakes import views
from fakes.command import Place
from sqlalchemy import create_engine, text

COLUMNS = (
    "{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}",
    "{name: amount, logicalType: number, physicalType: double, logicalTypeOptions: {minimum: 0}}",
)
QUALITY = (
    "{id: enough, metric: rowCount, mustBeGreaterThan: 2}",
    "{id: spend, type: sql, query: 'SELECT SUM(amount) FROM {object}', mustBeLessThan: 20}",
    "{id: b, type: sql, mustBe: 0, "
    "query: \"SELECT COUNT(*) FROM {object} WHERE tenant = 'b' AND amount < 0\"}",
)
HOUR = "hour=2026-11-20 04:00:00"
TEMPLATES = {
    "hive": "",
    "template": "{tenant}/{hour:%Y/%m/%d/%H}",
    "mixed": "tenant={tenant}/{hour:%Y%m%d/%H}",
}
FOLDERS: Mapping[str, Callable[[str, int], str]] = {
    "hive": lambda tenant, hour: f"tenant={tenant}/hour=2026-11-20 {hour:02}%3A00%3A00",
    "template": lambda tenant, hour: f"{tenant}/2026/11/20/{hour:02}",
    "mixed": lambda tenant, hour: f"tenant={tenant}/20261120/{hour:02}",
}
# Rows by tenant and hour: good ones, a repeated id and a negative amount, and too few rows.
ROWS: dict[tuple[str, int], dict[str, list[Any]]] = {
    ("a", 3): {"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0]},
    ("b", 3): {"id": [4, 5, 5], "amount": [1.0, -2.0, 3.0]},
    ("a", 4): {"id": [6, None], "amount": [9.0, 9.5]},
    ("b", 4): {"id": [7, 8, 9], "amount": [0.0, 1.0, 2.0]},
}
WRITERS: Mapping[str, Callable[[pa.Table, Path], object]] = {
    "parquet": lambda table, folder: pq.write_table(table, folder / "part-0.parquet"),
    "orc": lambda table, folder: pyarrow.orc.write_table(table, folder / "part-0.orc"),
    "csv": lambda table, folder: pyarrow.csv.write_csv(table, folder / "part-0.csv"),
    "json": lambda table, folder: (folder / "part-0.json").write_text(
        "".join(f"{json.dumps(row)}\n" for row in table.to_pylist())
    ),
}
SCHEMA = pa.schema({"id": pa.int64(), "amount": pa.float64()})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DQ_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("DQ_VARS", "DQ_LAKE")
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "dq-policy.yaml").write_text("{}\n")
    return Place(tmp_path)


def write(place: Place, name: str, form: str = "parquet", hours: tuple[int, ...] = (3, 4)) -> str:
    """Write the table in a layout, and its contract; return the contract's path."""
    for (tenant, hour), rows in ROWS.items():
        if hour in hours:
            folder = place.folder / "lake" / name / FOLDERS[name](tenant, hour)
            folder.mkdir(parents=True, exist_ok=True)
            WRITERS[form](pa.table(rows, schema=SCHEMA), folder)
            written = datetime(2026, 11, 20, hour + 1, 10, tzinfo=UTC).timestamp()
            for file in folder.iterdir():
                os.utime(file, (written, written))
    file = f"registry/{name}.odcs.yaml"
    place.put(file, contract(name, form, TEMPLATES[name]))
    return file


def contract(name: str, form: str, template: str) -> str:
    server = f'{{server: lake, type: local, path: "${{DQ_LAKE}}/{name}", format: {form}}}'
    return views.contract("a, b", server=server, template=template, quality=QUALITY, columns=COLUMNS)


def verdicts(report: Any) -> list[tuple[str, str, str]]:
    return sorted((result["clause"], result["status"], result["message"]) for result in report["results"])


@pytest.mark.spark
@pytest.mark.parametrize("form", WRITERS)
def test_the_same_rows_get_the_same_verdicts_in_every_layout(spark, place, form):
    answers: dict[str, Any] = {}
    # A layout is matched with paths whatever is in the files: CSV and Parquet have all of them.
    for name in TEMPLATES if form in ("parquet", "csv") else ("hive", "template"):
        file = write(place, name, form)
        asked = place.dq(
            "check", file, "--partition", "tenant=b/hour=2026-11-20 03:00:00", "--format", "json"
        )
        # A key that two rows of another partition share: the rule applies to the whole table.
        other = place.dq(
            "check", file, "--partition", "tenant=b/hour=2026-11-20 04:00:00", "--format", "json"
        )
        both = place.dq("check", file, "--partition", "hour=2026-11-20 03:00:00", "--format", "json")
        whole = place.dq("check", file, "--all", "--format", "json")
        past = place.dq("backtest", file, "--format", "json")
        assert (asked.code, other.code, whole.code) == (1, 1, 1), asked.all + other.all + whole.all
        rules = [
            (rule["name"], rule["counts"], sorted(map(str, rule["failed"]))) for rule in past.json[0]["rules"]
        ]
        answers[name] = (*(verdicts(run.json[0]) for run in (asked, other, both, whole)), rules)

    assert list(answers.values()) == [answers["hive"]] * len(answers)
    assert any(status == "fail" for _, status, _ in answers["hive"][0])


@pytest.mark.parametrize("name", TEMPLATES)
def test_deliveries_are_on_time_late_and_missing(place, name):
    file = write(place, name, hours=(3,))
    assert place.dq("validate", "registry").code == 0

    first = place.dq("watch", file, "--as-of", "2026-11-20T04:20:00Z")
    missing = place.dq("watch", file, "--as-of", "2026-11-20T06:00:00Z")
    write(place, name)
    arrived = datetime(2026, 11, 20, 6, 10, tzinfo=UTC).timestamp()
    for tenant in "ab":
        for file_of in (place.folder / "lake" / name / FOLDERS[name](tenant, 4)).iterdir():
            os.utime(file_of, (arrived, arrived))
    late = place.dq("watch", file, "--as-of", "2026-11-20T06:30:00Z")

    assert "views is missing: " in missing.all, first.all + missing.all
    assert FOLDERS[name]("a", 4).rpartition("/")[0] in missing.all
    assert "RESOLVED: views came 55 min late" in late.all, late.all


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_catalog_gets_every_partition_with_its_folder(place, name):
    file = write(place, name, hours=(3,))
    assert place.dq("register", "registry", "--apply").code == 0
    repaired = place.dq("repair", file, "--apply")
    write(place, name)
    published = place.dq("publish", file, "--partition", "tenant=a", "--partition", HOUR, "--rows", "2")
    again = place.dq("repair", file)

    assert repaired.code == 0, repaired.all
    assert published.code == 0, published.all
    assert again.out.count("  + ") == 1, again.all
    with create_engine(f"sqlite:///{place.folder / '.dq' / 'store.db'}").connect() as connection:
        locations = connection.execute(text("SELECT location FROM catalog_partition")).scalars().all()
    below = sorted(location.partition(f"lake/{name}/")[2] for location in locations)
    assert below == sorted(FOLDERS[name](*key) for key in [("a", 3), ("b", 3), ("a", 4)])
    marker = place.folder / "lake" / name / FOLDERS[name]("a", 4) / "_SUCCESS"
    assert marker.exists()


@pytest.mark.parametrize("name", TEMPLATES)
def test_metadata_counts_the_rows_of_every_partition(place, name):
    write(place, name)

    table = place.dq("tables", "registry", "--format", "json").json[0]

    assert (table["files"], table["rows"]) == (4, 11), table


@pytest.mark.parametrize("name", ["template", "mixed"])
def test_import_guesses_the_layout_and_a_second_import_agrees(place, name):
    write(place, name)
    imported = place.dq("import", "parquet", f"lake/{name}", "--output", "made.odcs.yaml")
    template = TEMPLATES[name].replace("{tenant}", "{level_1}") if name == "template" else TEMPLATES[name]

    assert imported.code == 0, imported.all
    assert f'path: "{template}"' in (place.folder / "made.odcs.yaml").read_text()
    assert place.dq("import", "parquet", f"lake/{name}", "--output", "made.odcs.yaml").code == 0


def test_import_takes_the_layout_and_refuses_one_that_does_not_fit(place):
    write(place, "template")
    named = place.dq("import", "parquet", "lake/template", "--layout", "{tenant}/{hour:%Y/%m/%d/%H}")
    wrong = place.dq("import", "parquet", "lake/template", "--layout", "{hour:%Y/%m/%d/%H}")
    invalid = place.dq("import", "parquet", "lake/template", "--layout", "{hour:%m/%d}")
    useless = place.dq("import", "sql", "x.sql", "--layout", "{day:%F}")

    assert "- name: tenant" in named.out
    assert (wrong.code, invalid.code, useless.code) == (2, 2, 2)
    assert "is in no folder of the layout" in wrong.err
    assert "has no year (%Y)" in invalid.err
    assert "--layout has no effect on sql" in useless.err


@pytest.mark.spark
def test_a_layout_without_a_matching_folder_is_an_error_and_not_an_empty_table(spark, place):
    write(place, "hive")
    file = write(place, "template")
    (place.folder / file).write_text((place.folder / file).read_text().replace("}/template", "}/hive"))

    checked = place.dq("check", file, "--all")
    listed = place.dq("tables", file)

    assert checked.code == 3, checked.all
    assert "lake/hive is one of the layout" in checked.err
    assert "has no folder of the layout" in listed.all


@pytest.mark.spark
def test_a_partition_that_is_absent_has_no_rows(spark, place):
    file = write(place, "template")

    result = place.dq("check", file, "--partition", "tenant=c/hour=2026-11-20 03:00:00", "--format", "json")

    assert result.code == 1, result.all
    assert any("has 0 rows" in message or "0 rows" in message for _, _, message in verdicts(result.json[0]))


def test_a_changed_layout_is_another_location_for_consumers(place):
    file = write(place, "template")
    before = (place.folder / file).read_text()
    place.put("new.odcs.yaml", before.replace("{hour:%Y/%m/%d/%H}", "{hour:%Y%m%d%H}"))

    result = place.dq("diff", file, "new.odcs.yaml", "--format", "json")

    assert "server-location-changed" in result.out, result.all
    assert "({tenant}/{hour:%Y/%m/%d/%H} → {tenant}/{hour:%Y%m%d%H})" in result.out, result.all


def test_the_description_of_a_layout_is_no_location(place):
    file = write(place, "template")
    before = (place.folder / file).read_text()
    place.put("new.odcs.yaml", before.replace("property: layout,", "property: layout, description: By hour,"))

    result = place.dq("diff", file, "new.odcs.yaml", "--format", "json")

    assert result.code == 0, result.all
    assert "server-location-changed" not in result.out, result.all


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_portal_says_where_the_partition_columns_are(place, name):
    write(place, name)

    built = place.dq("portal", "build", "site", "registry")

    assert built.code == 0, built.all
    page = html.unescape((place.folder / "site" / "products" / "views" / "index.html").read_text())
    if name == "hive":
        assert 'spark.read.format("parquet").load(' in page
        assert "does not read columns from these names" not in page
    else:
        assert 'spark.read.format("parquet").option("recursiveFileLookup", "true").load(' in page
        assert f"The folders are named {TEMPLATES[name]}, and Spark does not read columns" in page
        assert "from these names: tenant, hour." in page


@pytest.mark.spark
def test_files_outside_of_the_layout_are_named(spark, place):
    file = write(place, "template")
    lake = place.folder / "lake" / "template"
    # An impossible date, a folder of another layout, and files above the partitions.
    for folder in ("a/2026/02/30/05", "tenant=a/hour=7", "b/2026", "."):
        (lake / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1], "amount": [1.0]}, schema=SCHEMA), lake / folder / "x.parquet")
    (lake / "_temporary" / "0").mkdir(parents=True)
    (lake / "_temporary" / "0" / "x.parquet").write_text("")

    (table,) = place.dq("tables", file, "--format", "json").json
    listed = place.dq("tables", file)
    checked = place.dq("check", file, "--all", "--format", "json").json[0]
    repaired = place.dq("repair", file) if place.dq("register", "registry", "--apply").code == 0 else listed

    assert (table["files"], table["rows"], checked["rows"]) == (4, 11, 11), table
    assert table["outside"] == ["a/2026/02/30/05/", "b/2026/x.parquet", "tenant=a/hour=7/", "x.parquet"]
    left_out = (
        "views/views: not in the layout {tenant}/{hour:%Y/%m/%d/%H}: a/2026/02/30/05/, b/2026/x.parquet"
    )
    assert f"left out: {left_out}, tenant=a/hour=7/ and more" in listed.out, listed.all
    assert checked["notes"][-1] == (
        "4 files not in the layout '{tenant}/{hour:%Y/%m/%d/%H}' left out, e.g. 'a/2026/02/30/05/x.parquet'."
    )
    assert "02/30/05 is not a partition" in repaired.out, repaired.all


@pytest.mark.spark
@pytest.mark.parametrize("name", TEMPLATES)
def test_whole_table_rules_see_partitions_that_are_published_elsewhere(spark, place, name):
    file = write(place, name, hours=(3,))
    lake, staging = place.folder / "lake" / name, place.folder / "staging"

    def put(root: Path, tenant: str, hour: int, ids: list[int]) -> None:
        folder = root / FOLDERS[name](tenant, hour)
        folder.mkdir(parents=True, exist_ok=True)
        WRITERS["parquet"](pa.table({"id": ids, "amount": [1.0, 1.0, 1.0]}, schema=SCHEMA), folder)

    put(lake, "b", 3, [4, 5, 6])
    put(staging, "b", 4, [7, 8, 9])
    assert place.dq("register", "registry", "--apply").code == 0
    keys = ("--partition", "tenant=b", "--partition", HOUR)
    published = place.dq("publish", file, *keys, "--rows", "3", "--audit", str(staging))
    put(lake, "a", 3, [1, 2, 7])
    checked = place.dq("check", file, "--partition", "tenant=a/hour=2026-11-20 03:00:00", "--format", "json")

    assert published.code == 0, published.all
    failed = [message for _, status, message in verdicts(checked.json[0]) if status == "fail"]
    assert failed == [
        "views.id: 1 row repeats a value; allowed: no value twice (tested on the whole table)"
    ], checked.all


@pytest.mark.parametrize(
    ("begin", "end", "hours"),
    [
        ("2026-03-28T23:30:00Z", "2026-03-29T02:35:00Z", ["2026-03-29 00", "2026-03-29 01", "2026-03-29 03"]),
        (
            "2026-10-24T22:10:00Z",
            "2026-10-25T03:35:00Z",
            [f"2026-10-25 {hour}" for hour in ("00", "01", "02", "02", "03")],
        ),
    ],
    ids=["spring", "autumn"],
)
def test_local_hours_of_a_night_with_a_clock_change_are_each_on_time(place, begin, end, hours):
    """As docs/how-to/layouts.md advises: due in the last minute of the hour itself."""
    text = contract("local", "csv", "{hour:%Y/%m/%d/%H}")
    for old, new in {
        "      - {name: tenant, logicalType: string, partitioned: true, partitionKeyPosition: 1}\n": "",
        "partitionKeyPosition: 2": "partitionKeyPosition: 1",
        '"15 * * * *"': '"59 * * * *"',
        "grace: 30m": "timezone: Europe/Berlin\n          grace: 31m",
        'tenant: [a, b], hour: "{due - 1h:': 'hour: "{due:',
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    file = "registry/local.odcs.yaml"
    place.put(file, text)
    # Every file was there before the first tick.
    arrived = datetime.fromisoformat(begin).timestamp()
    for hour in set(hours):
        day, _, number = hour.partition(" ")
        written = place.put(f"lake/local/{day.replace('-', '/')}/{number}/part-0.csv", "id,amount\n1,2.0\n")
        os.utime(written, (arrived, arrived))

    place.dq("watch", file, "--as-of", begin, "--channel", "console")
    result = place.dq("watch", file, "--as-of", end, "--channel", "console", "--format", "json")

    changes = [change for change in result.json["changes"] if change["after"].startswith("on_time")]
    assert [change["partitions"] for change in changes] == [[f"hour={hour}:00:00"] for hour in hours], (
        result.all
    )
    assert len(changes) == len(result.json["changes"])
