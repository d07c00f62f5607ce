"""Value of rules proposed from data: of ten faults in each of ten data sets, how many are found.

Each data set is imported, its rules proposed, the contract validated, and the data checked: nothing may be
found in it. Then each fault is planted and the data checked again. All of it is the real command. Data sets
are those of packages: `--packages FOLDER` is where vega-datasets, palmerpenguins, plotly, plotnine and
great-tables are installed (`uv pip install --target FOLDER …`); without it, and with `--quick`, only what the
development group has is tried.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from _report import arguments, finish
from fakes.judged import judge
from fakes.shipped import at_hand, of_packages


def main() -> int:
    args = arguments(
        __doc__ or "",
        packages={"type": Path, "help": "where the packages are installed"},
        keep={"type": Path, "help": "write the proposed contracts into this folder"},
        only={"action": "append", "help": "only this data set; may be repeated"},
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sets = at_hand(folder)[:1] if args.quick or not args.packages else of_packages(args.packages, folder)
        sets = [data for data in sets if not args.only or data.name in args.only]
        os.chdir(folder)
        found_faults = total = wrong = 0
        began = time.monotonic()
        for data in sets:
            judged = judge(data, folder / data.name)
            print(judged.line(), flush=True)
            found_faults += judged.found
            total += len(judged.verdicts)
            wrong += not judged.clean
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                (args.keep / f"{data.name}.odcs.yaml").write_text(judged.contract, "utf-8")
    metrics = {
        "data sets": float(len(sets)),
        "contracts that their own data breaks": float(wrong),
        "faults planted": float(total),
        "faults found": float(found_faults),
        "share found": found_faults / total,
        "seconds": time.monotonic() - began,
    }
    goals = {"share found": (">", 0.899), "contracts that their own data breaks": ("<", 1.0)}
    return finish(metrics, goals, args)


if __name__ == "__main__":
    sys.exit(main())
