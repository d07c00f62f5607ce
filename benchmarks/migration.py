"""Twenty jobs move to another platform: ten days of `dq check`, two jobs are wrong from the fourth day on.

Each rule requires seven cycles in a row. Exactly two incidents open on the fourth day and stay two; the wrong
days are repaired and checked again on the eighth, which ends both. `dq status` and the portal then show every
job as ready. Costs are CPU seconds of one comparison, next to those of the rest of the day.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from fakes.migration import Migration

JOBS, QUICK_JOBS = 20, 4
DAYS, WRONG_FROM, REPAIRED_ON, CYCLES = 10, 4, 8, 7


def main() -> int:
    args = arguments(__doc__ or "")
    names = [f"job{number:02}" for number in range(QUICK_JOBS if args.quick else JOBS)]
    wrong = {names[1], names[-1]}
    metrics = {"jobs": float(len(names)), "wrong days": 0.0, "early or late incidents": 0.0}
    began, comparisons = os.times(), 0
    with tempfile.TemporaryDirectory() as folder:
        migration = Migration(Path(folder), names, CYCLES)
        for day in range(1, DAYS + 1):
            migration.deliver(day, wrong if WRONG_FROM <= day < REPAIRED_ON else ())
            if day == REPAIRED_ON:
                for repaired in range(WRONG_FROM, REPAIRED_ON):
                    migration.deliver(repaired)
                    migration.check(repaired)
                    comparisons += len(names)
            results = migration.check(day)
            comparisons += len(names)
            failed = {name for name, (status, _) in results.items() if status != "pass"}
            metrics["wrong days"] += failed != (wrong if WRONG_FROM <= day < REPAIRED_ON else set())
            incidents = migration.incidents()
            states = [incident["state"] for listed in incidents.values() for incident in listed]
            expected = ["open" if day < REPAIRED_ON else "resolved"] * (
                len(wrong) if day >= WRONG_FROM else 0
            )
            metrics["early or late incidents"] += states != expected or not wrong.issuperset(incidents)
        now = os.times()
        used = now.user + now.system + now.children_user + now.children_system
        used -= began.user + began.system + began.children_user + began.children_system
        built = migration.place.dq("portal", "build", "site", "registry")
        pages = [migration.place.folder / "site" / "products" / name / "index.html" for name in names]
        metrics |= {
            "incidents": float(len(states)),
            "ready in dq status": float(sum(complete for _, complete, _ in migration.agreements().values())),
            "ready in the portal": float(sum(">ready</bdi>" in page.read_text() for page in pages)),
            "exit code of the portal": float(built.code),
            "CPU seconds per comparison, without the JVM": used / comparisons,
        }
    goals = {
        "wrong days": ("<", 1.0),
        "early or late incidents": ("<", 1.0),
        "incidents": ("<", len(wrong) + 1.0),
        "ready in dq status": (">", len(names) - 1.0),
        "ready in the portal": (">", len(names) - 1.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
