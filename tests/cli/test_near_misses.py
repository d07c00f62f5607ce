"""T49: near misses of types, operators, elements and options get the suggestion that was meant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.command import Place

import dq

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: weather
name: weather
version: 1.0.0
status: active
domain: geo
description: {{purpose: Hourly weather.}}
servers: [{{server: lake, type: local, path: lake/weather, format: parquet}}]
schema:
  - name: weather
    physicalType: table
    properties:
      - {{name: seen, logicalType: {type}, quality: [{{metric: nullValues, {operator}: 0}}]}}
slaProperties: [{{property: frequency, value: 1, unit: d, schedule: "{cron}", element: {element}}}]
"""
GOOD = {"type": "timestamp", "operator": "mustBe", "cron": "0 6 * * *", "element": "weather"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"type": "datetime"}, "unknown logicalType 'datetime'. Did you mean 'timestamp'?"),
        ({"type": "bigint"}, "unknown logicalType 'bigint'. Did you mean 'integer'?"),
        ({"operator": "mustEqual"}, "has no key 'mustEqual'. Did you mean 'mustBe'?"),
        ({"operator": "mustBeEqualTo"}, "has no key 'mustBeEqualTo'. Did you mean 'mustBe'?"),
        ({"element": "wether"}, "no object or property named 'wether'. Did you mean 'weather'?"),
        ({"cron": "0 30 * * *"}, "cron-invalid: hour 30 is out of range (0–23) in '0 30 * * *'."),
    ],
)
def test_t49_a_near_miss_in_a_contract_gets_the_suggestion_that_was_meant(
    tmp_path: Path, change: dict[str, str], expected: str
) -> None:
    place = Place(tmp_path)
    place.put("weather.odcs.yaml", CONTRACT.format(**GOOD | change))

    findings = place.dq("validate", "weather.odcs.yaml", "--format", "json").json["findings"]

    texts = [f"{finding['rule']}: {finding['message']} {finding['hint']}" for finding in findings]
    assert any(expected in text for text in texts), texts


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("subscribe",), "Missing 'contract', '--team' and '--purpose'."),
        (("subscribe", "orders", "--team", "billing"), "Missing option '--purpose'."),
        (("validate", "--fromat", "json"), "No such option: --fromat. Did you mean '--format'?"),
        (("status", "--domian", "geo"), "No such option: --domian. Did you mean '--domain'?"),
    ],
)
def test_t49_a_misspelt_option_gets_the_nearest(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    assert expected in Place(tmp_path).dq(*arguments).err


def partitioned(folder: Path) -> Place:
    """Return a folder with the contract of a table by day."""
    place = Place(folder)
    key = "partitioned: true, partitionKeyPosition: 1"
    text = CONTRACT.format(**GOOD).replace(
        "    properties:\n", f"    properties:\n      - {{name: obs_date, logicalType: date, {key}}}\n"
    )
    place.put("weather.odcs.yaml", text)
    return place


@pytest.mark.parametrize(
    ("partition", "problem", "hint"),
    [
        (
            "obs_dat=2026-01-01",
            "unknown partition column 'obs_dat' of 'weather'.",
            "Did you mean 'obs_date'?",
        ),
        (
            "obs_date=2026-01-01,region=eu",
            "'2026-01-01,region=eu' is not a valid value of the partition column 'obs_date' of type date.",
            "Write it as in the path.",
        ),
        (
            "obs_date=2026-13-01",
            "'2026-13-01' is not a valid value of the partition column 'obs_date' of type date.",
            "Write it as in the path.",
        ),
    ],
)
def test_t45_a_mistaken_partition_is_refused_before_the_data_is_opened(
    tmp_path: Path, partition: str, problem: str, hint: str
) -> None:
    place = partitioned(tmp_path)
    (tmp_path / "lake" / "weather").mkdir(parents=True)

    ran = place.dq("check", "weather.odcs.yaml", "--partition", partition)

    assert ran.code == 3
    assert ran.err.splitlines()[-2:] == [f"dq: weather/weather {partition}: {problem}", f"    {hint}"]
    assert "pyspark" not in ran.out + ran.err


def test_t51_a_frame_as_a_sample_is_told_where_to_go(tmp_path: Path) -> None:
    file = Place(tmp_path).put("weather.odcs.yaml", CONTRACT.format(**GOOD))

    with pytest.raises(
        dq.DqError, match=r"takes the path of a file, not a list\. Check a frame with dq\.check"
    ):
        dq.sample(file, [{"seen": "2026-01-01"}])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("build", "registry", "site"), "dq portal build site registry"),
        (("build", "registry"), "dq portal build site registry"),
        (("build", "."), "dq portal build site ."),
        # With contracts in both, either may have been meant.
        (("build", ".", "registry"), "Choose a new or an empty folder."),
    ],
)
def test_t47_the_output_folder_of_a_portal_comes_first(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    place = Place(tmp_path)
    place.put("registry/weather.odcs.yaml", CONTRACT.format(**GOOD))

    ran = place.dq("portal", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert not (tmp_path / "site").exists()


FILES = {
    "lake/parquet/day=2026-05-10/part-0.parquet": "parquet",
    "lake/csv/day=2026-05-10/part-0.CSV": "csv",
    "lake/tsv/part-0.tsv": "csv",
    "lake/jsonl/part-0.jsonl": "json",
    "lake/avro/part-0.avro": "avro",
    "lake/delta/_delta_log/00000000000000000000.json": "delta",
    "lake/iceberg/metadata/v1.metadata.json": "iceberg",
    "schemas/orders.avsc": "avro",
    "schemas/orders.schema.json": "jsonschema",
    "ddl/orders.sql": "sql",
    "jaffle_shop/dbt_project.yml": "dbt",
}


@pytest.mark.parametrize(("file", "kind"), FILES.items())
def test_t47_import_of_a_path_alone_names_its_kind(tmp_path: Path, file: str, kind: str) -> None:
    place = Place(tmp_path)
    place.put(file, "")
    # Data files of a lakehouse table do not decide.
    if kind in ("delta", "iceberg"):
        place.put(f"lake/{kind}/data/part-0.parquet", "")
    source = file if file.startswith(("schemas", "ddl")) else "/".join(file.split("/")[:2])
    source = source.removesuffix("/dbt_project.yml")

    ran = place.dq(
        "import", source, "--output", "registry/my orders.odcs.yaml", "--object", "a", "--object", "b"
    )

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"dq: {source} is a path; the kind of source comes first.\n"
        f"    Run: dq import {kind} {source} --output 'registry/my orders.odcs.yaml' --object a --object b\n"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("lake/weather", "parquet"), "Run: dq import parquet lake/weather\n"),
        (("lake/weather",), "Run: dq import KIND lake/weather, where KIND is avro, csv, dbt, "),
        (("s3://bucket/weather", "csv"), "Run: dq import csv s3://bucket/weather\n"),
        (
            ("parquet",),
            "dq: missing source.\n    Pass a file, folder or URI after the kind, e.g. dq import parquet ",
        ),
        (("praquet",), "dq: unknown import source 'praquet'.\n    Did you mean parquet?\n"),
    ],
)
def test_t47_import_with_swapped_or_missing_arguments(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    place = Place(tmp_path)
    place.put("lake/weather/part-0.orc", "")

    ran = place.dq("import", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("test", "registry"), "No such command 'test'. Use 'dq check' for tables, 'dq sample' for files."),
        (("help", "validate"), "No such command 'help'. Use 'dq --help'."),
        (("valdiate",), "No such command 'valdiate'. Did you mean 'validate'?"),
        (("registry/w.odcs.yaml",), "The command comes first, e.g. dq validate registry/w.odcs.yaml"),
        (("incidents", "acknowledge", "weather@0"), "No such command 'acknowledge'. Use 'dq incidents ack'."),
        (("schedule", "registry"), "No such command 'registry'. Commands: next, explain, convert."),
        (("schedule", "next", "0", "4", "a", "b", "c"), "Quote the expression: dq schedule next '0 6 * * *'"),
        (("publish", "a.yaml", "--rows", "many"), "Invalid value for '--rows': must be a whole number."),
        (("check", "--contract", "a.yaml"), "No such option: --contract."),
        (("discover", "lake", "--by", "owner"), "Invalid value for '--by': 'owner' is not one of 'table',"),
        (("check", "--partition"), "Option '--partition' requires an argument."),
        (("check", "--parallel", "0"), "Invalid value for '--parallel': must be at least 1"),
    ],
)
def test_a_mistaken_command_line_names_what_was_meant(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    ran = Place(tmp_path).dq(*arguments)

    assert (ran.code, ran.out) == (2, "")
    # The frame around the message wraps its lines.
    assert expected in " ".join(ran.err.replace("│", " ").split())
    assert "--format" not in ran.err


def test_an_unknown_option_of_a_command_with_few_options_lists_them(tmp_path: Path) -> None:
    ran = Place(tmp_path).dq("store", "prune", "--older-than", "400d")

    text = " ".join(ran.err.replace("│", " ").split())
    assert "No such option: --older-than. Its options: --keep, --as-of, --format." in text


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("discover", "glue:/sales"), 2, "dq: 'glue:/sales' is not a database. Write glue://sales."),
        (("discover", "lakes"), 3, "dq: lakes is not a folder. Did you mean 'lake'?"),
        (
            ("reconcile", "weather.odcs.yaml", "lake/weather", "--key", "tem"),
            2,
            "dq: weather has no column 'tem'. Did you mean 'temp'?",
        ),
        (
            ("reconcile", "weather.odcs.yaml", "lake/weather", "--partition", "obs_dat=2026-01-01"),
            2,
            "dq: unknown partition column 'obs_dat' of 'weather'. Did you mean 'obs_date'?",
        ),
        (
            ("reconcile", "lake/weather", "lake/weather", "--rename", "temp:temperature"),
            2,
            "dq: invalid --rename 'temp:temperature': expected NAME=VALUE. Use e.g. order_no=order_id.",
        ),
        (
            ("erasure", "verify", "weather.odcs.yaml"),
            3,
            "dq: weather.odcs.yaml is not a certificate: it is not JSON in line 1.",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_hint_before_spark_starts(
    tmp_path: Path, arguments: tuple[str, ...], code: int, expected: str
) -> None:
    place = Place(tmp_path)
    key = "partitioned: true, partitionKeyPosition: 1"
    columns = (
        f"    properties:\n      - {{name: obs_date, logicalType: date, {key}}}\n      - {{name: temp}}\n"
    )
    text = CONTRACT.format(**GOOD).replace("    properties:\n", columns)
    place.put("weather.odcs.yaml", text)
    folder = tmp_path / "lake" / "weather"
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_bytes(b"")

    ran = place.dq(*arguments)

    assert ran.code == code
    assert expected in " ".join(ran.err.split()), ran.all
    assert "Using incubator modules" not in ran.all


DELIVERY = """\
    customProperties:
      - property: delivery
        vendor: dq
        value: {grace: GRACE, objective: OBJECTIVE, partition: {day: "{due:DAY}"}}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("GRACE", "30", "Add a unit, e.g. grace: 30m for minutes, 30h for hours, 30d for days."),
        ("GRACE", "30 minutes", "'30 minutes' is not a duration. Write 30m."),
        ("OBJECTIVE", "0.95", "Write a percentage: objective: 95%."),
        ("OBJECTIVE", "95", "Write a percentage: objective: 95%."),
        ("OBJECTIVE", "150%", "objective '150%' is not a percentage between 0% and 100%."),
        ("DAY", "yyyy-MM-dd", "'yyyy-MM-dd' in '{due:yyyy-MM-dd}' has no directive of a date, e.g. %d."),
        ('"0 6 * * *"', "*/5 * * * *", 'Quote a value that begins with * or &, e.g. "*/5 * * * *".'),
        ("type: local", "type: file", "ODCS has no server type 'file'. Write 'local'."),
        (
            "format: parquet",
            "format: paquet",
            "format 'paquet' cannot be read by dq. Did you mean 'parquet'?",
        ),
        (
            "format: parquet",
            "format: parquet, customProperties: [{property: layout, vendor: dq, value: '{day:%m/%d}'}]",
            """the value of 'layout' must be a mapping. Write value: {path: "{day:%m/%d}"}.""",
        ),
        (
            "format: parquet",
            "format: parquet, customProperties: [{property: layout, vendor: dq, value: {path: '{day:%m}'}}]",
            "because 'day' has no year (%Y). Write e.g. {day:%Y/%m/%d} or",
        ),
        (
            "format: parquet",
            "format: parquet, customProperties: [{property: layout, vendor: dq, value: {path: '{day:%Q}'}}]",
            "path: '%Q' in '{day:%Q}' is not allowed. Write one of %Y %m",
        ),
        (
            "logicalType: timestamp",
            "logicalType: timestamp, customProperties: [{property: identity, value: Mail Address}]",
            "is not a name of an identity. Write letters, digits, - _ and dots, e.g. customer.email.",
        ),
    ],
)
def test_a_mistaken_value_in_a_contract_gets_the_value_to_write(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    place = Place(tmp_path)
    key = "partitioned: true, partitionKeyPosition: 1"
    text = CONTRACT.format(**GOOD).replace(
        "    properties:\n", f"    properties:\n      - {{name: day, logicalType: date, {key}}}\n"
    )
    head, sla = text.split("slaProperties: [{")
    entries = "\n".join(
        f"    {pair}"
        for pair in [
            "property: frequency",
            "value: 1",
            "unit: d",
            'schedule: "0 6 * * *"',
            "element: weather",
        ]
    )
    text = f"{head}slaProperties:\n  - id: daily\n{entries}\n{DELIVERY}"
    assert old in text, sla
    text = text.replace(old, new)
    for name, value in (("GRACE", "30m"), ("OBJECTIVE", "95%"), ("DAY", "%Y-%m-%d")):
        text = text.replace(name, value)
    place.put("weather.odcs.yaml", text)

    findings = place.dq("validate", "weather.odcs.yaml", "--format", "json").json["findings"]

    assert [
        f"{finding['message']} {finding['hint']}"
        for finding in findings
        if expected in f"{finding['message']} {finding['hint']}"
    ], findings


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("registy", "registy does not exist.\n    Did you mean 'registry'?"),
        ("registry/wether.odcs.yaml", "Did you mean 'registry/weather.odcs.yaml'?"),
        ("day=2026-01-01", "Pass a partition with --partition day=2026-01-01."),
        ("elsewhere", "Pass a contract file or a folder of contracts."),
    ],
)
def test_a_path_that_does_not_exist_gets_the_nearest_name_next_to_it(
    tmp_path: Path, path: str, expected: str
) -> None:
    place = Place(tmp_path)
    place.put("registry/weather.odcs.yaml", CONTRACT.format(**GOOD))

    ran = place.dq("check", path)

    assert (ran.code, ran.out) == (3, "")
    assert expected in ran.err


def test_a_sample_before_its_contract_is_refused_as_swapped(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("weather.odcs.yaml", CONTRACT.format(**GOOD))
    place.put("part-0.parquet", "PAR1")

    ran = place.dq("sample", "part-0.parquet", "weather.odcs.yaml")

    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err
        == "dq: part-0.parquet is not a contract.\n    The contract comes first: dq sample CONTRACT FILE.\n"
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("missing-ownr", "Did you mean 'missing-owner'?"),
        ("owner-required", "Did you mean 'missing-owner' or 'required-with-null-example'?"),
        ("something", "'dq rules' lists them."),
    ],
)
def test_an_unknown_rule_gets_the_rules_that_share_a_word(tmp_path: Path, rule: str, expected: str) -> None:
    place = Place(tmp_path)
    place.put("weather.odcs.yaml", CONTRACT.format(**GOOD))
    place.put("dq-policy.yaml", f"rules:\n  {rule}: {{severity: error}}\n")

    for ran in (place.dq("validate"), place.dq("explain", rule)):
        assert ran.code == 2
        assert f"unknown rule {rule!r}." in ran.err
        assert expected in ran.err


def test_a_time_before_the_last_run_names_the_option_and_not_the_clock(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/weather.odcs.yaml", CONTRACT.format(**GOOD))
    place.dq("watch", "registry", "--as-of", "2026-05-02T00:00:00Z", "--channel", "console")

    ran = place.dq("watch", "registry", "--as-of", "2026-05-01T00:00:00Z", "--channel", "console")

    assert ran.code == 3
    assert ran.err == (
        "dq: nothing was evaluated: --as-of 2026-05-01 00:00:00Z is before the last run"
        " (2026-05-02 00:00:00Z). Pass a later time, or --trust-clock to evaluate this one.\n"
    )


@pytest.mark.parametrize(
    ("channel", "hint"),
    [
        ("#data", "Write slack:#data."),
        ("ana@example.com", "Write email:ana@example.com."),
        ("slak:#data", "Did you mean 'slack'?"),
        ("stdout", "Choose one of contract, console, email, "),
    ],
)
def test_a_target_without_its_channel_gets_the_channel(tmp_path: Path, channel: str, hint: str) -> None:
    place = Place(tmp_path)
    place.put("weather.odcs.yaml", CONTRACT.format(**GOOD))

    ran = place.dq("watch", "--channel", channel)

    assert (ran.code, ran.out) == (2, "")
    assert f"unknown channel {channel!r}.\n    {hint}" in ran.err


def test_a_contract_before_its_export_format_is_refused_as_swapped(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put("registry/weather.odcs.yaml", CONTRACT.format(**GOOD))

    ran = place.dq("export", "registry/weather.odcs.yaml", "avro")

    assert (ran.code, ran.out) == (2, "")
    assert "The format comes first: dq export avro registry/weather.odcs.yaml" in ran.err


@pytest.mark.parametrize(
    ("folder", "table"),
    [
        ("lake/weather/day=2026-05-10", "lake/weather"),
        ("lake/weather/day=2026-05-10/region=eu/", "lake/weather"),
        ("lake/weather", None),
    ],
)
def test_an_import_of_one_partition_names_the_table(tmp_path: Path, folder: str, table: str | None) -> None:
    place = Place(tmp_path)
    place.put("lake/weather/day=2026-05-10/region=eu/part-0.csv", "id,name\n1,a\n")

    ran = place.dq("import", "csv", folder, "--output", "weather.odcs.yaml")

    assert ran.code == 0
    assert ("is one partition" in ran.err) == (table is not None)
    assert table is None or f"The whole table: dq import csv {table}\n" in ran.err


def test_a_comparison_from_an_impossible_date_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = partitioned(tmp_path)
    pq.write_table(pa.table({"seen": ["x"]}), tmp_path / "copy.parquet")
    # Without Java, Spark cannot start.
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    ran = place.dq("reconcile", "weather.odcs.yaml", "copy.parquet", "--since", "2026-13-01")

    assert ran.code == 2
    problem = "'2026-13-01' is not a valid value of the partition column 'obs_date' of type date."
    assert problem in ran.err
