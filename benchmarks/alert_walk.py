"""Every order in which two senders of alerts can meet: states, ends, and how many of them are wrong.

    uv run python benchmarks/alert_walk.py [--quick] [--json FILE]

Each state is the real store's, and each step the product's own (tests/fakes/interleaving.py). From each one
both senders may die, and another must bring everything in order: one message, and it is right.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from _report import arguments, finish
from fakes.interleaving import Budget, Walk, taken_for_a_refusal

QUICK = (Budget(1, 0, ()), Budget(0, 1, (61,)), Budget(1, 1, (61,), resolve=False))
LONG = (*QUICK, Budget(1, 0, (61,)), Budget(1, 1, (11, 61)), Budget(2, 0, (61,), resolve=False))


def main() -> int:
    args = arguments(__doc__ or "")
    states = ends = wrong = 0
    for left in QUICK if args.quick else LONG:
        walk = Walk()
        walk.through(left)
        print(f"{left}: {walk.states} states, {walk.ends} ends, {len(walk.wrong)} wrong", flush=True)
        for how, shown in walk.wrong[:3]:
            print(f"  {shown}: {', '.join(how)}")
        states, ends, wrong = states + walk.states, ends + walk.ends, wrong + len(walk.wrong)
    broken = Walk(mislead=taken_for_a_refusal)
    broken.through(QUICK[0])
    metrics = {"states": states, "ends": ends, "wrong": wrong, "wrong of a broken step": len(broken.wrong)}
    return finish(metrics, {"wrong": ("<", 1), "wrong of a broken step": (">", 0)}, args)


if __name__ == "__main__":
    sys.exit(main())
