"""Random histories of deliveries: no reader ever sees more as complete than there is.

Each history has deliveries, late arrivals, removed data, exclusions, failed checks, and watchers that are
overtaken by others between any two requests, refused by the catalog, and killed between any two transactions
or requests. Readers are those of the catalog and replays of earlier instants. The oracle knows only what was
done. The goal is zero violations in 10,000 histories.
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
_PER_STORE = 100
# In memory: kills are exceptions here, so nothing has to survive a power failure, and syncing takes long.
_MEMORY = Path("/dev/shm")


def main() -> int:
    args = arguments(
        __doc__ or "",
        seed="the seed of the first history (default: 1)",
        histories=f"the number of histories (default: {HISTORIES})",
    )
    histories, first = QUICK if args.quick else args.histories or HISTORIES, args.seed or 1
    counts, violations, began = Counter[str](), 0, time.monotonic()
    for start in range(0, histories, _PER_STORE):
        with (
            tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder,
            closing(open_store(f"sqlite:///{folder}/store.db")) as store,
        ):
            for number in range(start, min(start + _PER_STORE, histories)):
                outcome = play(store, f"orders{number}", random.Random(first + number))
                counts.update(outcome.counts)
                violations += len(outcome.violations)
                for violation in outcome.violations:
                    print(f"seed {first + number}: {violation}", flush=True)
    metrics = {name: float(count) for name, count in sorted(counts.items())}
    metrics |= {
        "histories": float(histories),
        "violations": float(violations),
        "milliseconds per history": (time.monotonic() - began) / histories * 1000,
    }
    return finish(metrics, {"violations": ("<", 1), "kills": (">", 0), "settled": (">", 0)}, args)


if __name__ == "__main__":
    sys.exit(main())
