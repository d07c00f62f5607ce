"""Random histories of deliveries against readers of the catalog: nobody sees more than is complete.

Each history has deliveries, late arrivals, removed data, exclusions, failed checks, and writers of the
catalog that are overtaken by others between any two requests, killed and refused. The oracle knows only what
was done. The goal is no violation in 10,000 histories.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.delivery_histories import play

from dq.store.engine import open_store

HISTORIES, QUICK = 10_000, 60
_PER_STORE = 500


def main() -> int:
    args = arguments(__doc__ or "", seed="the seed of the first history (default: 1)")
    histories, first = QUICK if args.quick else HISTORIES, args.seed or 1
    counts, violations, began = Counter[str](), 0, time.monotonic()
    for start in range(0, histories, _PER_STORE):
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(open_store(f"sqlite:///{folder}/store.db")) as store,
        ):
            for number in range(start, min(start + _PER_STORE, histories)):
                outcome = play(store, f"orders{number}", random.Random(first + number))
                counts.update(outcome.counts)
                violations += len(outcome.violations)
                for violation in outcome.violations:
                    print(f"seed {first + number}: {violation}")
    metrics = {name: float(count) for name, count in sorted(counts.items())}
    metrics |= {
        "histories": float(histories),
        "violations": float(violations),
        "milliseconds per history": (time.monotonic() - began) / histories * 1000,
    }
    return finish(metrics, {"violations": ("<", 1), "kills": (">", 0), "settled": (">", 0)}, args)


if __name__ == "__main__":
    sys.exit(main())
