"""Random contracts on random tables by foreign writers: five readings of each, which must not differ.

The readings are dq with all of its optimizations, dq of small tables, dq without any, `dq sample`, and an
evaluator in plain Python that shares no code with dq. Known liars are among the writers: files with their
names and bounds that are wrong.
Every disagreement is printed with its seed; --seed N shows it again. --minutes N goes on for so long.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _report import arguments, finish

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import pyarrow as pa  # noqa: E402  # after the path
import pyarrow.parquet as pq  # noqa: E402
from _referee_tables import NOW, RandomTable, contract, table  # noqa: E402
from _referee_truth import Json, Truth, truth  # noqa: E402
from _referee_writers import EVERY, KINDS, Foreign, Unwritten, Written, names, write  # noqa: E402
from fakes import jvm, lakehouse  # noqa: E402
from fakes.reach import anywhere  # noqa: E402
from spark import environments  # noqa: E402

from dq.contracts.model import Contract  # noqa: E402
from dq.contracts.yaml.parse import parse  # noqa: E402
from dq.dataquality import sample  # noqa: E402
from dq.dataquality.answers.sources import ALL, NONE, Optimization  # noqa: E402
from dq.dataquality.check import check  # noqa: E402
from dq.dataquality.report import Report  # noqa: E402
from dq.dataquality.request import Request  # noqa: E402
from dq.dataquality.spark.dataset import locate  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_SECONDS, MINUTES = 35, 10
# Statuses without a number that two readings share, and checks whose number only some of them have.
WITHOUT_NUMBER = ("columns", "latency")
Truths = dict[str, Truth]


def main() -> int:
    args = arguments(
        __doc__ or "", minutes=f"how long, by default {MINUTES}", seed="one table alone, as it was printed"
    )
    seconds = QUICK_SECONDS if args.quick else 60 * (args.minutes or MINUTES)
    work = Path(os.environ.get("DQ_BENCH_WORK", Path(tempfile.gettempdir()) / "dq-referee"))
    work.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    by_writer: Counter[str] = Counter()
    unwritten: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        foreign = _foreign(work)
        begun = time.monotonic()
        spark = _session(Path(folder))
        first = args.seed if args.seed is not None else random.SystemRandom().randrange(10**9)
        seed = first
        while seed == first or (args.seed is None and time.monotonic() - begun < seconds):
            _compare_one_table(seed, spark, foreign, Path(folder), counts, by_writer, unwritten)
            seed += 1
        spark.stop()
        if foreign is not None:
            foreign.close()
    for writer, number in sorted(by_writer.items()):
        print(f"  {writer:<42}{number:>14,} tables")
    for reason, number in unwritten.most_common(8):
        print(f"  not written {number:>4} times: {reason[:120]}")
    metrics = {
        "tables": float(counts["tables"]),
        "rows": float(counts["rows"]),
        "writers": float(len(by_writer)),
        "clauses": float(counts["clauses"]),
        "clauses proven by statistics": float(counts["proven"]),
        "lies planted": float(counts["lies"]),
        "comparisons": float(counts["comparisons"]),
        "seconds": time.monotonic() - begun,
        "disagreements": float(counts["disagreements"]),
    }
    return finish(metrics, {"disagreements": ("<", 1.0), "tables": (">", 0.0)}, args)


def _foreign(work: Path) -> Foreign | None:
    try:
        return Foreign(work)
    except environments.Unbuildable as error:
        print(f"  without foreign writers: {error}", file=sys.stderr)
        return None


def _session(home: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in jvm.SETTINGS.items():
        os.environ.setdefault(name, value)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.ui.explainMode": "simple",
        "spark.driver.memory": "2g",
        **lakehouse.settings(home),
    }
    builder = SparkSession.builder.master("local[2]").appName("dq-referee")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _compare_one_table(
    seed: int,
    spark: SparkSession,
    foreign: Foreign | None,
    folder: Path,
    counts: Counter[str],
    by_writer: Counter[str],
    unwritten: Counter[str],
) -> None:
    """One table by one writer, its contract, and the five readings of both."""
    chance = random.Random(seed)
    writer = chance.choice(names(foreign is not None))
    random_table = table(chance, KINDS.get(writer, EVERY))
    document = contract(chance, random_table)
    try:
        written = write(writer, random_table, folder / f"t{seed}", chance, spark, foreign)
    except Unwritten as error:
        unwritten[str(error)] += 1
        return
    expected = truth(document, list(random_table.columns), random_table.rows, NOW)
    promised = _parsed(document, written)
    readings = {
        "all optimizations": _checked(promised, spark, ALL),
        "small tables": _checked(promised, spark, frozenset({Optimization.SMALL_TABLES})),
        "no optimization": _checked(promised, spark, NONE),
        "dq sample": _sampled(promised, random_table, folder),
    }
    counts["tables"] += 1
    counts["rows"] += len(random_table.rows)
    counts["clauses"] += len(expected)
    counts["lies"] += written.lies
    counts["proven"] += readings["all optimizations"].from_statistics
    by_writer[writer] += 1
    for how, report in readings.items():
        verdicts: Truths = {
            result.clause: (result.status.value, None if result.check in WITHOUT_NUMBER else result.value)
            for result in report.results
        }
        # A sample does not tell everything; what it tells is compared.
        paths = verdicts.keys() if how == "dq sample" else verdicts.keys() | expected.keys()
        counts["comparisons"] += len(paths)
        for path in sorted(paths):
            if not _alike(verdicts.get(path), expected.get(path)):
                counts["disagreements"] += 1
                messages = [result.message for result in report.results if result.clause == path]
                print(
                    f"seed {seed}, {writer}: {path} by {how} {verdicts.get(path)}, rows {expected.get(path)}"
                )
                print(f"    {messages} {_clause(document, path)}", flush=True)


def _alike(verdict: Truth | None, expected: Truth | None) -> bool:
    if verdict is None or expected is None:
        return False
    numbers = (verdict[1], expected[1])
    return verdict[0] == expected[0] and (None in numbers or abs(numbers[0] - numbers[1]) < 1e-9)  # type: ignore[operator]


def _clause(document: Json, path: str) -> str:
    at: Any = document
    for step in path.replace("[", ".").replace("]", "").split("."):
        at = at[int(step)] if isinstance(at, list) else at.get(step, at) if isinstance(at, dict) else at
    return json.dumps(at, ensure_ascii=False)[:200]


def _parsed(document: Json, written: Written) -> Contract:
    server = {"server": "lake", "type": "local", "path": str(written.place), "format": written.format}
    text = json.dumps(_public({**document, "servers": [server]}), ensure_ascii=False)
    parsed = parse(text.encode(), "random.odcs.yaml")
    assert parsed.contract is not None, (parsed.findings, text)
    return parsed.contract


def _public(node: Any) -> Any:
    """Without what only the evaluator reads."""
    if isinstance(node, dict):
        return {key: _public(value) for key, value in node.items() if not key.startswith("_")}
    return [_public(item) for item in node] if isinstance(node, list) else node


def _checked(promised: Contract, spark: SparkSession, optimizations: frozenset[Optimization]) -> Report:
    data = locate(promised, promised.objects[0], None, anywhere())
    # Alone, small tables are what `dq check` asks first; what they cannot tell, Spark scans.
    begin = (lambda: spark) if optimizations == {Optimization.SMALL_TABLES} else None
    return check(
        Request(
            promised,
            data,
            spark=spark,
            now=NOW,
            optimizations=optimizations,
            tasks_from=0,
            start_session=begin,
        )
    )


def _sampled(promised: Contract, random_table: RandomTable, folder: Path) -> Report:
    place = folder / "sample.parquet"
    pq.write_table(pa.concat_tables([random_table.arrow(file) for file in random_table.files]), place)
    schema_object = promised.objects[0]
    return sample.check(promised, schema_object, sample.read(place, schema_object), NOW)


if __name__ == "__main__":
    sys.exit(main())
