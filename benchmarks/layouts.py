"""One table of a log pipeline in two layouts, Hive's and a template: the same answers, and what they cost.

Files are written as `/logs/<category>/YYYY/MM/DD/HH` and as `category=…/hour=…`, with the same rows; some
hours have too few rows, and one is missing. Each command runs on both: import, validate, register with
repair, watch, check of one hour and of the whole table, back-test. What they say has to be the same, and the
costs are ratios of the two. Beside it, 100,000 partitions in random templates become folders and are read
back.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from _report import arguments, finish
from spark import machine

from dq.cli.main import run
from dq.contracts.layout import Layout, parse_layout, partition_folder
from dq.operations.runtime.context import runtime_context
from dq.operations.runtime.spark import session

CATEGORIES, DAYS = 600, 3
QUICK_CATEGORIES, QUICK_DAYS = 10, 1
ROUND_TRIPS, QUICK_ROUND_TRIPS = 100_000, 20_000
FIRST = dt.datetime(2026, 11, 18, tzinfo=dt.UTC)
TEMPLATES = {"hive": "", "template": "{category}/{hour:%Y/%m/%d/%H}"}
CONTRACT = """\
apiVersion: v3.2.0
kind: DataContract
id: views
version: 1.0.0
status: active
servers:
  - server: lake
    type: local
    path: lake/{name}
    format: parquet
{layout}
schema:
  - name: views
    quality: [{{id: enough, metric: rowCount, mustBeGreaterThan: 2}}]
    properties:
      - {{name: category, logicalType: string, partitioned: true, partitionKeyPosition: 1}}
      - {{name: hour, logicalType: timestamp, partitioned: true, partitionKeyPosition: 2}}
      - {{name: id, logicalType: integer, physicalType: bigint, required: true, unique: true}}
      - {{name: amount, logicalType: number, physicalType: double, logicalTypeOptions: {{minimum: 0}}}}
slaProperties:
  - id: hourly
    property: frequency
    value: 1
    unit: h
    element: views
    schedule: "10 * * * *"
    customProperties:
      - property: delivery
        vendor: dq
        value:
          grace: 20m
          partition: {{category: [{categories}], hour: "{{due - 1h:%Y-%m-%d %H:00:00}}"}}
"""


def main() -> int:
    args = arguments(__doc__ or "")
    categories, days = (QUICK_CATEGORIES, QUICK_DAYS) if args.quick else (CATEGORIES, DAYS)
    answers: dict[str, dict[str, Any]] = {name: {} for name in TEMPLATES}
    seconds: dict[str, dict[str, float]] = {name: {} for name in TEMPLATES}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        files = _write(Path(folder), categories, days)
        os.chdir(folder)
        begun = time.monotonic()
        spark = session(runtime_context(None, [Path()]))
        spark.sparkContext.setLogLevel("OFF")
        started = time.monotonic() - begun
        # The first of each command is slower: it is of neither.
        os.environ["DQ_STORE_URL"] = "sqlite:///warm.db"
        for question in _questions("warm", days).values():
            question()
        questions = {name: _questions(name, days) for name in TEMPLATES}
        # Both layouts by turns: what earlier commands leave in memory slows both.
        for command in questions["hive"]:
            for name in TEMPLATES:
                os.environ["DQ_STORE_URL"] = f"sqlite:///{name}.db"
                gc.collect()
                cpu, since = machine.cpu_seconds(), time.monotonic()
                answers[name][command] = questions[name][command]()
                # The clock has hundredths: of what takes less, a ratio says nothing.
                seconds[name][command] = max(0.2, machine.cpu_seconds() - cpu)
                print(f"  {name}: {command}, {time.monotonic() - since:,.0f} s", file=sys.stderr, flush=True)
        for name, template in TEMPLATES.items():
            guessed = answers[name].pop("import")
            columns = guessed.replace("level_1", "category").partition("properties:")[2]
            answers[name]["import"] = [
                line for line in columns.splitlines() if "- name:" in line or "partition" in line
            ]
            if template and template.replace("category", "level_1") not in guessed:
                print(f"  import guessed another layout:\n{guessed[:600]}", file=sys.stderr)
                answers[name]["import"] = []
        spark.stop()
    other = [command for command, answer in answers["hive"].items() if answers["template"][command] != answer]
    for command in other:
        print(f"  {command}: {_short(answers['template'][command])} and not", file=sys.stderr)
        print(f"  {_short(answers['hive'][command])}", file=sys.stderr)
    wrong, ratio = _round_trips(QUICK_ROUND_TRIPS if args.quick else ROUND_TRIPS)
    metrics = {
        "files": float(files),
        "the whole benchmark, s": time.monotonic() - start,
        "the session, s": started,
        **{f"{command}, CPU s": spent for command, spent in seconds["template"].items()},
        **{
            f"{command} / Hive": spent / seconds["hive"][command]
            for command, spent in seconds["template"].items()
        },
        "commands with another answer": float(len(other)),
        "partitions not read back": float(wrong),
        "a folder and back / Hive's folder": ratio,
    }
    goals = {
        "commands with another answer": ("<", 1.0),
        "partitions not read back": ("<", 1.0),
        "watch / Hive": ("<", 1.5),
        "repair / Hive": ("<", 1.5),
        "check of an hour / Hive": ("<", 1.5),
        "check of all / Hive": ("<", 2.0),
        "backtest / Hive": ("<", 1.5),
    }
    return finish(metrics, goals, args)


def _questions(name: str, days: int) -> dict[str, Callable[[], Any]]:
    """Each command with what has to be the same in both layouts."""
    file = f"{name}.odcs.yaml"
    last = FIRST + dt.timedelta(days=days)
    hour = f"{FIRST + dt.timedelta(hours=5):%Y-%m-%d %H:%M:%S}"
    return {
        "import": lambda: _command("import", "parquet", f"lake/{name}"),
        "validate": lambda: _command("validate", file, "--format", "json").count('"error"'),
        "watch": lambda: [
            _command("watch", file, "--as-of", f"{instant:%Y-%m-%dT%H:%M:%SZ}", "--format", "json").count(
                '"missing"'
            )
            for instant in (FIRST + dt.timedelta(minutes=30), last + dt.timedelta(hours=1))
        ],
        "register": lambda: _command("register", file, "--apply").count("create"),
        "repair": lambda: _command("repair", file, "--apply").count("  + "),
        "check of an hour": lambda: _verdicts("check", file, "--partition", f"hour={hour}"),
        "check of all": lambda: _verdicts("check", file, "--all"),
        "backtest": lambda: [
            (rule["name"], rule["counts"])
            for rule in json.loads(_command("backtest", file, "--format", "json"))[0]["rules"]
        ],
    }


def _verdicts(*words: str) -> list[tuple[str, str, str]]:
    report = json.loads(_command(*words, "--format", "json"))[0]
    return sorted((result["clause"], result["status"], result["message"]) for result in report["results"])


def _command(*words: str) -> str:
    printed, notes = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(notes):
        code = run(list(words))
    if code not in (0, 1, 3, 4) or (code == 3 and words[0] != "watch"):
        raise SystemExit(f"dq {' '.join(words)} ended with {code}: {notes.getvalue()[:2000]}")
    return printed.getvalue()


def _short(answer: Any) -> str:
    return str(answer)[:300]


def _write(root: Path, categories: int, days: int) -> int:
    """Write both tables and their contracts; return the number of files of each."""
    names = [f"c{number:03d}" for number in range(categories)]
    layout = '    customProperties: [{property: layout, vendor: dq, value: {path: "%s"}}]'
    files = 0
    for number, category in enumerate(names):
        for hours in range(24 * days):
            if (number, hours) == (1, 7):
                continue
            hour, ids = FIRST + dt.timedelta(hours=hours), range(2 if (number + hours) % 97 == 0 else 4)
            rows = pa.table(
                {
                    "id": pa.array([(number * 1_000 + hours) * 10 + index for index in ids], pa.int64()),
                    "amount": pa.array(
                        [-1.0 if (number + hours) % 101 == 0 else float(index) for index in ids]
                    ),
                }
            )
            content = io.BytesIO()
            pq.write_table(rows, content)
            values = (("category", category), ("hour", f"{hour:%Y-%m-%d %H:%M:%S}"))
            written = (hour + dt.timedelta(hours=1, minutes=5)).timestamp()
            for name, template in TEMPLATES.items():
                parsed = parse_layout(template) if template else Layout()
                assert isinstance(parsed, Layout)
                folder = root / "lake" / name / parsed.folder_of(values)
                folder.mkdir(parents=True)
                (folder / "part-0.parquet").write_bytes(content.getvalue())
                os.utime(folder / "part-0.parquet", (written, written))
            files += 1
    for name, template in TEMPLATES.items():
        text = CONTRACT.format(
            name=name, layout=layout % template if template else "", categories=", ".join(names)
        )
        (root / f"{name}.odcs.yaml").write_text(text)
    # A table of one category, for what each command does only once.
    (root / "warm.odcs.yaml").write_text(CONTRACT.format(name="warm", layout="", categories=names[0]))
    (root / "lake" / "warm").mkdir()
    shutil.copytree(
        root / "lake" / "hive" / f"category={names[0]}", root / "lake" / "warm" / f"category={names[0]}"
    )
    return files


def _round_trips(count: int) -> tuple[int, float]:
    """Return the number of partitions not read back, and the time of a folder and back by that of Hive's."""
    chance, wrong, spent, by_hive = random.Random(4), 0, 0.0, 0.0
    times = ["%Y/%m/%d", "%Y%m%d", "%F", "%Y/%j", "%Y/%m/%d/%H", "%F-%H", "%Y%m%d%H%M"]
    letters = "abz09._-%/=:+ ü\u2028'\"\\{}"
    for _ in range(count):
        levels = [
            f"{{at:{chance.choice(times)}}}",
            *chance.sample(["{tenant}", "r={region}", "x-{user}", "logs"], 2),
        ]
        chance.shuffle(levels)
        layout = parse_layout("/".join(levels))
        assert isinstance(layout, Layout), levels
        moment = dt.datetime(1990, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=chance.randrange(40_000_000))
        format_ = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d %H:00:00", "minute": "%Y-%m-%d %H:%M:00"}[
            layout.precision("at")
        ]
        values = {
            column: f"{moment:{format_}}"
            if column == "at"
            else "".join(chance.choices(letters, k=chance.randint(1, 9)))
            for column in layout.columns
        }
        begun = time.perf_counter()
        folder = layout.folder_of(values.items())
        back = layout.partition_of(folder)
        middle = time.perf_counter()
        partition_folder(values.items())
        by_hive += time.perf_counter() - middle
        spent += middle - begun
        wrong += back is None or dict(back) != values or ".." in folder.split("/") or folder.startswith("/")
    return wrong, spent / by_hive


if __name__ == "__main__":
    sys.exit(main())
