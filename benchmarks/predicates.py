"""Random predicates on random rows through every renderer and plain Python: 0 disagreements is the only goal.

A pair is a predicate and a row that an engine answered. Spark answers all of them, memory and the tasks what
they can read. What disagrees is printed with its predicate and row; --seed asks for others.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from oracle.proofs import lies
from oracle.renderers import compared
from oracle.trees import Trees, askable, row
from pyspark.sql import SparkSession

from dq.dataquality.model.metric import count_proof

_SHOWN = 5
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def main() -> int:
    args = arguments(__doc__ or "", seed={"type": int, "default": 1, "help": "of the random draws"})
    rounds, trees, rows, proofs = (1, 150, 60, 2_000) if args.quick else (4, 600, 100, 20_000)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    began, evaluated, wrong = time.monotonic(), Counter[str](), Counter[str]()
    spark = _session()
    for number in range(rounds):
        random = Random(args.seed * 1_000 + number)
        generator = Trees(random)
        predicates = []
        while len(predicates) < trees:
            predicates += [tree for tree in [generator.tree()] if askable(tree)]
        rows_ = [row(random) for _ in range(rows)]
        for disagreement in compared(predicates, rows_, generator.meanings, spark, evaluated):
            wrong[disagreement.engine] += 1
            if wrong.total() <= _SHOWN:
                print(disagreement)
    spark.stop()
    proof_errors = list(lies(count_proof, args.seed, proofs))
    print("\n".join(proof_errors[:_SHOWN]))
    metrics = {f"pairs in {name}": float(number) for name, number in evaluated.items()}
    metrics |= {
        "pairs": float(evaluated.total()),
        "disagreements": float(wrong.total()),
        "predicates whose proof was tried": float(proofs),
        "proofs that say too much": float(len(proof_errors)),
        "seconds": time.monotonic() - began,
    }
    least = 5_000 if args.quick else 50_000
    goals = {
        "pairs": (">", least),
        "disagreements": ("<", 1.0),
        "proofs that say too much": ("<", 1.0),
    }
    return finish(metrics, goals, args)


def _session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").appName("predicates")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


if __name__ == "__main__":
    sys.exit(main())
