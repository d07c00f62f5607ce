"""The forty clauses of c40.odcs.yaml on TPC-H's lineitem: dq, what one would write by hand, and its peers.

Every engine runs warm in a process and an environment of its own, is tried on broken tables first, and its
CPU seconds are those of Python and the JVM. Results are kept part by part in the work folder: --only measures
these parts again and takes the others from there, --resume measures what is missing. An engine that cannot
run here is printed with the reason. Environments come from the package index, tables from tpchgen-cli.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from _report import arguments, finish
from spark import verdict
from spark.parts import PARTS, Effort, Part, lines, names, run

FULL = Effort(scales=(1, 3), largest=10, runs=3, warmups=5, budget=60, memory="4g")
QUICK = Effort(scales=(0.1,), largest=None, runs=2, warmups=1, budget=10, memory="2g")
_BEGIN, _END = "<!-- figures: written by benchmarks/spark_checks.py -->", "<!-- end of figures -->"


def main() -> int:
    args = _arguments()
    if args.table:
        return _show(json.loads(args.json.read_text("utf-8"))["tables"], args.table)
    work = args.work.expanduser().resolve()
    effort = _effort(args)
    # What was measured with another effort is another thing.
    results = work / "results" / ("quick" if args.quick else "full")
    chosen = [part for part in PARTS if _chosen(part, args)]
    left_out = [part for part in PARTS if part not in chosen and not args.only]
    if left_out:
        print("--quick leaves out: " + "; ".join(part.title for part in left_out) + ".")
    for index, part in enumerate(chosen):
        began = time.monotonic()
        print(f"[{index + 1}/{len(chosen)}] {part.title}", file=sys.stderr, flush=True)
        run(part, effort, work, results, args.resume)
        print(f"  {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    shown = [part for part in PARTS if args.only or part in chosen]
    parts = {
        part.name: {name: line for name, line in lines(part, results).items() if name in names(part, effort)}
        for part in shown
    }
    written = verdict.tables(parts, effort)
    print("\n".join(written))
    metrics, goals = verdict.metrics_of(parts, effort)
    code = finish(metrics, goals, args)
    if args.json:
        report = json.loads(args.json.read_text("utf-8")) | {"tables": written, "parts": parts}
        args.json.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return code


def _arguments() -> argparse.Namespace:
    work = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "dq-bench"
    names = [part.name for part in PARTS]
    args = arguments(
        __doc__ or "",
        only={"help": "measure only these parts: " + ", ".join(names)},
        resume={"action": "store_true", "help": "keep what is measured already"},
        scale={"help": "scale factors, e.g. 1,3"},
        runs="counted runs",
        warmups="runs before them on the first table",
        no_growth={"action": "store_true", "help": "leave the largest table out"},
        work={"type": Path, "default": work, "help": f"where all is kept, by default {work}"},
        table={
            "type": Path,
            "metavar": "PAGE",
            "help": "only put the tables of --json FILE into this Markdown page",
        },
    )
    unknown = set((args.only or "").split(",")) - {"", *names}
    if unknown:
        sys.exit(f"there is no part {', '.join(sorted(unknown))}")
    if args.table and not args.json:
        sys.exit("--table needs the --json FILE of an earlier run")
    return args


def _effort(args: argparse.Namespace) -> Effort:
    effort = QUICK if args.quick else FULL
    scales = tuple(float(text) for text in args.scale.split(",")) if args.scale else effort.scales
    return Effort(
        scales,
        None if args.no_growth or args.scale else effort.largest,
        args.runs or effort.runs,
        effort.warmups if args.warmups is None else args.warmups,
        effort.budget,
        effort.memory,
    )


def _chosen(part: Part, args: argparse.Namespace) -> bool:
    if args.only:
        return part.name in args.only.split(",")
    return part.quick or not args.quick


def _show(tables: list[str], page: Path) -> int:
    before, _, after = page.read_text("utf-8").partition(_BEGIN)
    _, ended, after = after.partition(_END)
    if not ended:
        sys.exit(f"{page} does not hold {_BEGIN} and {_END}")
    page.write_text("\n".join([before + _BEGIN, *tables, "", _END + after]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
