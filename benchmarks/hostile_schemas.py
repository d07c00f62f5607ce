"""Time and memory of `dq validate` for 40 hostile JSON Schemas in a policy, each in a process of its own.

Each registry has the hostile policy, a contract that meets it, and another contract with a mistake. The
process must end with exit code 1 and name the mistake: one hostile schema hides no other contract's findings.
Before each, another process only imports the packages that dq stands on, for a measure of this machine.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _cost import PACKAGES, cost
from _report import arguments, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fragments.gate import CONTRACT
from fragments.hostile_schemas import HOSTILE_SCHEMAS, custom_properties, policy

BROKEN = CONTRACT.replace("id: orders", "id: lines").replace("logicalType: integer", "logicalType: strng")
QUICK = 12
# Runs the command, and prints the peak of its resident memory.
PROGRAM = """
import resource, sys
from dq.cli.main import run
code = run(["validate", sys.argv[1], "--format", "json"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


def measure(name: str, folder: Path) -> tuple[float, float, bool]:
    """Return the processor seconds, the peak of resident megabytes, and if the result is right."""
    (folder / "dq-policy.yaml").write_text(policy(name), "utf-8")
    (folder / "orders.odcs.yaml").write_text(CONTRACT + custom_properties(name), "utf-8")
    (folder / "lines.odcs.yaml").write_text(BROKEN, "utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return time.monotonic() - begun, 0.0, False
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Linux counts in kilobytes.
    peak = int(done.stderr.split()[-1]) / 1024 if done.stderr.split() else 0.0
    finding = "custom-property-invalid" in done.stdout or "dq-policy.yaml" in done.stdout
    return seconds, peak, done.returncode == 1 and finding and "strng" in done.stdout


def main() -> int:
    args = arguments(__doc__)
    names = list(HOSTILE_SCHEMAS)[:: max(1, len(HOSTILE_SCHEMAS) // QUICK) if args.quick else 1]
    seconds: dict[str, float] = {}
    peaks: dict[str, float] = {}
    wrong: list[str] = []
    packages: list[float] = []
    for name in names:
        packages.append(cost([sys.executable, "-c", PACKAGES]).cpu)
        with tempfile.TemporaryDirectory() as folder:
            seconds[name], peaks[name], right = measure(name, Path(folder))
        if not right:
            wrong.append(name)
        print(f"{name:<52}{seconds[name]:>8.2f} s{peaks[name]:>8.0f} MB{'' if right else '   WRONG'}")
    metrics = {
        "schemas": float(len(names)),
        "processor_seconds_most": max(seconds.values()),
        "packages_alone_processor_seconds": statistics.median(packages),
        "processor_time_most_over_packages_alone": max(seconds.values()) / statistics.median(packages),
        "resident_mb_most": max(peaks.values()),
        "wrong_results": float(len(wrong)),
    }
    goals = {
        "processor_time_most_over_packages_alone": ("<", 10.5),
        "resident_mb_most": ("<", 200.0),
        "wrong_results": ("<", 1.0),
    }
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
