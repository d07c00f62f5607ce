"""The end of a benchmark: numbers for people, `--json FILE` for machines, exit code 1 for a missed goal."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def arguments(doc: str, **options: str | Mapping[str, Any]) -> argparse.Namespace:
    """`quick` (under a minute), `json` (a file to write, or None), and further options by name.

    An option is the help of a whole number, or the keywords of `add_argument`.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--quick", action="store_true", help="the form that takes under a minute")
    parser.add_argument("--json", type=Path, help="write metrics and goals to this file")
    for name, option in options.items():
        keywords = {"type": int, "help": option} if isinstance(option, str) else option
        parser.add_argument(f"--{name.replace('_', '-')}", **keywords)
    return parser.parse_args()


def finish(metrics: dict[str, float], goals: dict[str, tuple[str, float]], args: argparse.Namespace) -> int:
    """Print, write, and give the exit code.

    `goals` maps the name of a metric to `("<", 2.0)` or `(">", 0.9)`; the value is taken from `metrics`.
    """
    judged = {
        name: {
            "goal": f"{sign} {limit:g}",
            "value": metrics[name],
            "met": bool(metrics[name] < limit if sign == "<" else metrics[name] > limit),
        }
        for name, (sign, limit) in goals.items()
    }
    for name, value in metrics.items():
        goal = judged.get(name)
        verdict = f"   goal {goal['goal']}: {'met' if goal['met'] else 'MISSED'}" if goal else ""
        print(f"{name:<44}{value:>14,.3f}{verdict}")
    if args.json:
        args.json.write_text(json.dumps({"metrics": metrics, "goals": judged}, indent=2) + "\n", "utf-8")
    return 0 if all(goal["met"] for goal in judged.values()) else 1
