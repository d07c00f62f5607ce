"""One table of a log pipeline on S3 and Glue, in folders of a template: each command is right, and its cost.

Objects are `<category>/YYYY/MM/DD/HH/part-0.parquet` below the table, of 600 categories × 24 hours × 3 days.
Some hours have too few rows, one hour of a category comes late, and the last hour of another one is published
by `--audit` where it was staged, after a first attempt whose check fails. Commands: import, validate,
register, repair, watch (missing, then late), publish, check of a partition, of an hour and of all, back-test,
status, tables, portal, and the import from Glue; with `--hive`, also on the same rows in Hive's folders. What
a command says is compared with what was written, and so is what a reader with boto3 alone finds: the
partitions in Glue, and the rows below their locations. `wrong answers` has to be 0. Seconds and requests are
printed as each command ends.

S3 and Glue are moto's, over HTTP, in a process of its own; `_moto.py` tells what of it is quicker than moto
alone. Spark has no S3 client here: it reads the same files from a local folder, mounted as `s3a://`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import html
import io
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from _moto import fill, moto, requests
from _report import arguments, finish
from layouts import CATEGORIES, DAYS, FIRST, QUICK_CATEGORIES, QUICK_DAYS, TEMPLATES

from dq.cli.main import run
from dq.contracts.layout import Layout, parse_layout
from dq.dataquality.table_metadata import MAX_FOLDERS
from dq.operations.runtime.context import runtime_context
from dq.operations.runtime.spark import session

CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: {name}
version: 1.0.0
status: active
domain: web
team: {{members: [{{username: ana@example.com, role: owner}}]}}
servers:
  - server: lake
    type: s3
    location: s3://lake/{name}
    format: parquet
{layout}
schema:
  - name: {name}
    quality: [{{id: enough, metric: rowCount, mustBeGreaterThan: 2}}]
    properties:
      - {{name: category, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
      - {{name: hour, logicalType: timestamp, partitioned: true, partitionKeyPosition: 2}}
      - {{name: id, logicalType: integer, physicalType: bigint, required: true}}
      - {{name: amount, logicalType: number, physicalType: double, logicalTypeOptions: {{minimum: 0}}}}
slaProperties:
  - id: hourly
    property: frequency
    value: 1
    unit: h
    element: {name}
    schedule: "10 * * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          grace: 20m
          partition: {{category: [{categories}], hour: "{{due - 1h:%Y-%m-%d %H:00:00}}"}}
"""
LAYOUT = '    customProperties: [{property: layout, vendor: dq, value: {path: "%s"}}]'
LATE, STAGED = (1, 7), 2
STAGED_ROWS, MOST_SHORT, MOST_TESTED = 5, 2, 300


@dataclass(frozen=True)
class Table:
    """A table in one layout: its files in a local folder, which are objects of moto, and their rows."""

    name: str
    template: str
    folder: Path
    url: str
    categories: list[str]
    hours: int
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    negative: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def layout(self) -> Layout:
        parsed = parse_layout(self.template) if self.template else Layout()
        assert isinstance(parsed, Layout)
        return parsed

    @property
    def file(self) -> str:
        return f"registry/{self.name}.odcs.yaml"

    @property
    def late(self) -> tuple[str, str]:
        return self.categories[LATE[0]], hour_text(LATE[1])

    @property
    def staged(self) -> tuple[str, str]:
        return self.categories[STAGED], hour_text(self.hours - 1)

    def folder_of(self, partition: tuple[str, str]) -> str:
        return self.layout.folder_of(tuple(zip(("category", "hour"), partition, strict=True)))

    def location(self, partition: tuple[str, str]) -> str:
        root = f"staging/{self.name}/good" if partition == self.staged else f"lake/{self.name}"
        return f"s3://{root}/{self.folder_of(partition)}/"

    def write(self) -> None:
        """The contract, and all partitions but the late and the staged one."""
        layout = (
            f'    customProperties: [{{property: layout, vendor: dq, value: {{path: "{self.template}"}}}}]'
        )
        text = CONTRACT.format(
            name=self.name, layout=layout if self.template else "", categories=", ".join(self.categories)
        )
        (self.folder / "registry").mkdir(exist_ok=True)
        (self.folder / "registry" / "dq-policy.yaml").write_text("{}\n")
        (self.folder / self.file).write_text(text)
        for number, category in enumerate(self.categories):
            for hours in range(self.hours):
                partition = (category, hour_text(hours))
                if partition not in (self.late, self.staged):
                    written_at = FIRST + dt.timedelta(hours=hours + 1, minutes=5)
                    rows = 2 if (number + hours) % 97 == 0 else 4
                    self.put("lake", partition, rows, written_at, negative=(number + hours) % 101 == 0)
        fill(self.url, self.folder / "lake" / self.name, "lake", self.name)

    def put(
        self,
        root: str,
        partition: tuple[str, str],
        rows: int,
        written_at: dt.datetime,
        *,
        negative: bool = False,
    ) -> None:
        number, hour = self.categories.index(partition[0]), dt.datetime.fromisoformat(partition[1])
        start = (number * 1_000 + int((hour - FIRST.replace(tzinfo=None)).total_seconds() // 3600)) * 10
        content = pa.table(
            {
                "id": pa.array(range(start, start + rows), pa.int64()),
                "amount": pa.array([-1.0 if negative else float(index) for index in range(rows)]),
            }
        )
        # One bucket has the table, the other one what is staged.
        path = self.folder / root / self.name / self.folder_of(partition) / "part-0.parquet"
        if root != "lake":
            bucket, _, run_name = root.partition("/")
            path = self.folder / bucket / self.name / run_name / self.folder_of(partition) / "part-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(content, path)
        os.utime(path, (written_at.timestamp(),) * 2)
        if "bad" not in root:
            self.rows[partition] = rows
            self.negative[partition] = rows if negative else 0


def hour_text(hours: int) -> str:
    return f"{FIRST + dt.timedelta(hours=hours):%Y-%m-%d %H:%M:%S}"


class Run:
    """Commands on one table: their seconds and requests, and the answers that were not expected."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.seconds: dict[str, float] = {}
        self.requests: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []

    def dq(self, title: str, *words: str, code: int = 0) -> str:
        """Output and notes of the command, which must end with this code."""
        before, begun = requests(self.table.url), time.monotonic()
        printed, notes = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(notes):
            ended = run(list(words))
        self._note(title, begun, before)
        self.notes = notes.getvalue()
        if ended != code:
            self.wrong.append(title)
            _warn(f"{title}: exit code {ended}, not {code}: {(printed.getvalue() + self.notes)[-1500:]}")
        return printed.getvalue()

    def json(self, title: str, *words: str, code: int = 0) -> Any:
        printed = self.dq(title, *words, "--format", "json", code=code)
        try:
            return json.loads(printed)
        except ValueError:
            return None

    def read(self, title: str, question: Callable[[], Any]) -> Any:
        """The answer of a reader without dq."""
        before, begun = requests(self.table.url), time.monotonic()
        answer = question()
        self._note(title, begun, before)
        return answer

    def _note(self, title: str, begun: float, before: Counter[str]) -> None:
        spent = time.monotonic() - begun
        self.seconds[title] = self.seconds.get(title, 0.0) + spent
        sent = requests(self.table.url) - before
        self.requests[title] = self.requests.get(title, Counter()) + sent
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(sent.items()))
        _warn(f"{self.table.name}: {title}, {spent:,.1f} s; {kinds or 'no requests'}")

    def expect(self, title: str, answer: Callable[[], Any], expected: Any) -> None:
        try:
            actual = answer()
        except (TypeError, KeyError, IndexError, ValueError) as error:
            actual = repr(error)
        if actual != expected:
            self.wrong.append(title)
            _warn(f"{title}: {str(actual)[:700]}\n    and not {str(expected)[:700]}")


def _warn(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def main() -> int:
    args = arguments(
        __doc__ or "",
        hive={"action": "store_true", "help": "also Hive's layout, for comparison"},
    )
    categories, days = (QUICK_CATEGORIES, QUICK_DAYS) if args.quick else (CATEGORIES, DAYS)
    names = [f"c{number:03d}" for number in range(categories)]
    runs: dict[str, Run] = {}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as place, moto() as url:
        folder = Path(place)
        os.chdir(folder)
        os.environ["DQ_LAKE_ROOTS"] = "s3://lake,s3://staging"
        for bucket in ("lake", "staging"):
            boto3.client("s3").create_bucket(Bucket=bucket)
        layouts = [name for name in TEMPLATES if name != "hive" or args.hive]
        with _spark(folder, layouts):
            for name in layouts:
                table = Table(name, TEMPLATES[name], folder, url, names, 24 * days)
                runs[name] = Run(table)
                _commands(runs[name])
    metrics = {
        "partitions": float(len(names) * 24 * days),
        "the whole benchmark, s": time.monotonic() - begun,
    }
    for name, measured in runs.items():
        metrics |= {f"{name}: {title}, s": spent for title, spent in measured.seconds.items()}
        metrics |= {
            f"{name}: {title}, requests": float(sent.total()) for title, sent in measured.requests.items()
        }
    metrics["wrong answers"] = float(sum(len(measured.wrong) for measured in runs.values()))
    return finish(metrics, {"wrong answers": ("<", 1.0)}, args)


@contextlib.contextmanager
def _spark(folder: Path, layouts: list[str]) -> Iterator[None]:
    """Spark, which reads the buckets from the folder."""
    spark = session(runtime_context(None, [Path()]))
    spark.sparkContext.setLogLevel("OFF")
    # Otherwise Spark lists `s3a://` by a method with which local files cost a process each, for permissions.
    spark.conf.set("spark.sql.sources.useListFilesFileSystemList", "")
    spark.conf.set("spark.sql.sources.ignoreDataLocality", "true")
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    hadoop.set("fs.s3a.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    hadoop.set("fs.viewfs.overload.scheme.target.file.impl", "org.apache.hadoop.fs.LocalFileSystem")
    for bucket in ("lake", "staging"):
        for name in layouts:
            (folder / bucket / name).mkdir(parents=True)
            hadoop.set(f"fs.viewfs.mounttable.{bucket}.link./{name}", f"file://{folder}/{bucket}/{name}")
    yield
    spark.stop()


def _commands(run: Run) -> None:
    table = run.table
    os.environ["DQ_STORE_URL"] = f"sqlite:///{table.name}.db"
    run.read("write", table.write)
    file, glue = table.file, ("--catalog", "glue")
    last = FIRST + dt.timedelta(hours=table.hours)
    in_lake = dict(table.rows)

    guessed = run.dq("import", "import", "parquet", f"s3://lake/{table.name}")
    expected_layout = table.template.replace("category", "level_1") or "category"
    run.expect("import", lambda: expected_layout in guessed, True)
    run.expect("import", lambda: f"location: s3://lake/{table.name}\n" in guessed.replace('"', ""), True)
    run.expect("validate", lambda: run.dq("validate", "validate", file).count(" error "), 0)
    run.dq("register", "register", file, *glue, "--apply")
    run.dq("watch, first", "watch", file, "--as-of", _text(FIRST + dt.timedelta(minutes=30)))
    [plan] = run.json("repair", "repair", file, *glue, "--apply") or [None]
    run.expect(
        "repair",
        lambda: (len(plan["missing"]), plan["dangling"], plan["moved"], plan["unrecognized"], plan["errors"]),
        (len(in_lake), [], [], [], []),
    )

    # An hour of two categories is missing, each.
    instant = last + dt.timedelta(minutes=35)
    watched = run.json("watch, all hours", "watch", file, "--as-of", _text(instant), code=1)
    run.expect(
        "watch, all hours",
        lambda: _statuses(watched),
        Counter({"on_time": table.hours - 2, "missing": 2}),
    )
    run.expect("incidents, open", lambda: _open(run, instant), 2)

    # One comes late; the other one is published where it was staged, when its check passes.
    late_at = instant + dt.timedelta(minutes=10)
    table.put("lake", table.late, 4, late_at)
    late_folder = table.folder_of(table.late)
    fill(table.url, table.folder / "lake" / table.name / late_folder, "lake", f"{table.name}/{late_folder}")
    table.put("staging/bad", table.staged, 1, late_at)
    table.put("staging/good", table.staged, STAGED_ROWS, late_at)
    fill(table.url, table.folder / "staging" / table.name, "staging", table.name)
    at = ("--as-of", _text(late_at + dt.timedelta(minutes=5)))
    run.dq("publish", "publish", file, *_partition(table.late), *glue, *at)
    audit = ("publish", file, *_partition(table.staged), *glue, *at, "--audit")
    run.dq("publish, refused", *audit, f"s3://staging/{table.name}/bad", code=1)
    run.dq("publish, staged", *audit, f"s3://staging/{table.name}/good")
    instant = last + dt.timedelta(hours=1)
    watched = run.json("watch, late", "watch", file, "--as-of", _text(instant))
    run.expect("watch, late", lambda: _statuses(watched), Counter({"late": 2}))
    run.expect("incidents, resolved", lambda: _open(run, instant), 0)

    expected = {partition: table.location(partition) for partition in table.rows}
    summary = f"web.{table.name}: {{}} missing, 0 gone, 0 elsewhere"

    locations = run.read("partitions, with boto3", lambda: _locations(table.name))
    run.expect("locations in Glue", lambda: _differences(locations, expected), [])
    rows = run.read("rows, with boto3", lambda: _rows(table.name, locations))
    run.expect("rows at the locations", lambda: _differences(rows, table.rows), [])

    # Three partitions are lost, one of each kind.
    for partition in (table.late, table.staged, (table.categories[0], hour_text(0))):
        boto3.client("glue").delete_partition(
            DatabaseName="web", TableName=table.name, PartitionValues=list(partition)
        )
    text = run.dq("repair, plan", "repair", file, *glue, "--check", code=1)
    run.expect("repair, plan", lambda: text.splitlines()[0], summary.format(3))
    run.dq("repair, again", "repair", file, *glue, "--apply")
    locations = run.read("partitions, with boto3", lambda: _locations(table.name))
    run.expect("locations in Glue, again", lambda: _differences(locations, expected), [])
    text = run.dq("repair, nothing", "repair", file, *glue, "--check")
    run.expect("repair, nothing", lambda: text, summary.format(0) + "\n")

    for title, words, partitions in (
        ("check of a partition", ("--partition", "/".join(_partition(table.staged)[1::2])), [table.staged]),
        (
            "check of an hour",
            ("--partition", f"hour={table.staged[1]}"),
            [(category, table.staged[1]) for category in table.categories],
        ),
        ("check of all", ("--all",), list(table.rows)),
    ):
        negative = sum(table.negative[partition] for partition in partitions)
        report = run.json(title, "check", file, *words, code=int(negative > 0))
        run.expect(
            title,
            lambda report=report: (report[0]["rows"], _failing(report[0])),
            (
                sum(table.rows[partition] for partition in partitions),
                {"minimum": float(negative)} if negative else {},
            ),
        )
    # Newest first by the keys in their order: the last categories.
    last_partitions = sorted(table.rows)[-MOST_TESTED:]
    tested = len(last_partitions)
    short = sum(table.rows[partition] <= MOST_SHORT for partition in last_partitions)
    negative = sum(table.negative[partition] > 0 for partition in last_partitions)
    words = ("backtest", file, "--last", str(tested))
    backtest = run.json("backtest", *words, code=int(short + negative > 0))
    run.expect(
        "backtest",
        lambda: {
            rule["name"].rpartition("/")[2]: (sum(rule["counts"].values()), rule["counts"]["fail"])
            for rule in backtest[0]["rules"]
        },
        dict.fromkeys(("additionalColumns", "category", "hour", "id", "required", "amount"), (tested, 0))
        | {"enough": (tested, short), "minimum": (tested, negative)}
        # Only the audit counted its rows.
        | ({"receipt": (1, 0)} if table.staged in last_partitions else {}),
    )
    run.expect("backtest, present", lambda: backtest[0]["present"], len(table.rows))
    status = run.json("status", "status", file)
    run.expect(
        "status",
        lambda: Counter(cycle["status"] for cycle in status["deliveries"][0]["cycles"]),
        Counter({"on_time": table.hours - 2, "late": 2}),
    )
    is_too_large = len(table.rows) > MAX_FOLDERS
    tables = run.json("tables", "tables", file, code=3 if is_too_large else 0)
    if is_too_large:
        run.expect("tables", lambda: f"has more than {MAX_FOLDERS:,} folders" in tables[0]["problem"], True)
    else:
        run.expect(
            "tables",
            lambda: (tables[0]["files"], tables[0]["rows"], tables[0]["problem"]),
            (len(table.rows), sum(table.rows.values()), None),
        )
    run.dq("portal", "portal", "build", "site", "registry")
    run.expect(
        "portal",
        lambda: "1 partition published outside of this location" in _page(table),
        True,
    )
    imported = f"{table.name}.imported.yaml"
    run.dq("import from Glue", "import", "glue", f"web.{table.name}", "--output", imported)
    run.expect("import from Glue", lambda: "1 partition" in run.notes, True)
    run.expect(
        "import from Glue",
        lambda: (table.template or "category") in Path(imported).read_text(),
        True,
    )


def _text(instant: dt.datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def _partition(partition: tuple[str, str]) -> tuple[str, ...]:
    return "--partition", f"category={partition[0]}", "--partition", f"hour={partition[1]}"


def _statuses(watched: Mapping[str, Any]) -> Counter[str]:
    return Counter(change["after"] for change in watched["changes"])


def _open(run: Run, instant: dt.datetime) -> int:
    incidents = run.json("incidents", "incidents", "list", "--as-of", _text(instant))
    return sum(len(incident["open"]) for incident in incidents["incidents"] if incident["group"] == "hourly")


def _failing(report: Mapping[str, Any]) -> dict[str, float]:
    """The value of each failed rule by the end of its name."""
    return {
        result["name"].rpartition("/")[2]: result["measure"]["value"]
        for result in report["results"]
        if result["status"] != "pass"
    }


def _locations(name: str) -> dict[tuple[str, str], str]:
    """Each partition in Glue with its location, as any other client finds it."""
    pages = boto3.client("glue").get_paginator("get_partitions").paginate(DatabaseName="web", TableName=name)
    return {
        (row["Values"][0], row["Values"][1]): row["StorageDescriptor"]["Location"]
        for page in pages
        for row in page["Partitions"]
    }


def _rows(name: str, locations: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], int]:
    """The rows below each location: each bucket is listed once, and the files read."""
    s3 = boto3.client("s3")
    files: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for bucket in ("lake", "staging"):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{name}/"):
            for key in (entry["Key"] for entry in page.get("Contents", ())):
                if key.endswith(".parquet"):
                    files[f"s3://{bucket}/{key.rpartition('/')[0]}/"].append((bucket, key))

    def count(location: str) -> int:
        contents = [s3.get_object(Bucket=bucket, Key=key)["Body"].read() for bucket, key in files[location]]
        return sum(pq.read_metadata(io.BytesIO(content)).num_rows for content in contents)

    with ThreadPoolExecutor(8) as pool:
        return dict(zip(locations, pool.map(count, locations.values()), strict=True))


def _differences(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> list[tuple[Any, Any, Any]]:
    return [
        (key, actual.get(key), expected.get(key))
        for key in sorted(actual.keys() | expected.keys())
        if actual.get(key) != expected.get(key)
    ]


def _page(table: Table) -> str:
    [page] = Path("site/products").glob(f"{table.name}*/index.html")
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.read_text())).split())


if __name__ == "__main__":
    sys.exit(main())
