"""Deequ through pydeequ. It has no form for the schema and none for the newest date, and bounds of distinct
counts only of approximate ones, which are asked for here although they do not promise the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from spark import terms

# pydeequ wants to know it before it is imported.
os.environ.setdefault("SPARK_VERSION", "3.5")

from pydeequ.checks import Check, CheckLevel
from pydeequ.verification import VerificationResult, VerificationSuite

Rule = tuple[str, str, tuple[Any, ...]]


def build(
    place: str, scale: float, _variant: str, session: Any
) -> tuple[tuple[str, ...], Callable[[], list[str]]]:
    rules = _rules(scale)

    def run() -> list[str]:
        check = Check(session, CheckLevel.Error, "c40")
        for _, method, arguments in rules:
            getattr(check, method)(*arguments)
        done = VerificationSuite(session).onData(session.read.parquet(place)).addCheck(check).run()
        rows = VerificationResult.checkResultsAsDataFrame(session, done).collect()
        ends = [row["constraint_status"] for row in rows]
        return sorted(name for (name, *_), end in zip(rules, ends, strict=True) if end != "Success")

    return tuple(name for name, *_ in rules), run


def _every(share: float) -> bool:
    return share == 1.0


def _rules(scale: float) -> list[Rule]:
    (fewest, largest), (least, greatest) = terms.row_bounds(scale), terms.distinct_bounds(scale)
    rules: list[Rule] = [("rows", "hasSize", (lambda rows: fewest <= rows <= largest,))]
    rules += [(f"null:{column}", "isComplete", (column,)) for column in terms.COLUMNS]
    rules += [("key", "hasUniqueness", (list(terms.KEY), _every))]
    for kind, ranges in (("range", terms.RANGES), ("dates", terms.DATES)):
        for column, (low, high) in ranges.items():
            test = f"{column} >= {terms.quoted(column, low)}"
            test += f" AND {column} <= {terms.quoted(column, high)}" if high else ""
            rules.append((f"{kind}:{column}", "satisfies", (test, f"{kind} of {column}", _every)))
    rules += [(f"positive:{terms.POSITIVE}", "isPositive", (terms.POSITIVE,))]
    rules += [(f"enum:{name}", "isContainedIn", (name, list(listed))) for name, listed in terms.ENUMS.items()]
    rules += [
        ("min_length", "hasMinLength", (terms.TEXT, lambda length: length >= terms.MIN_LENGTH)),
        ("max_length", "hasMaxLength", (terms.TEXT, lambda length: length <= terms.MAX_LENGTH)),
        ("pattern", "hasPattern", (terms.FORMED, terms.PATTERN, _every)),
        ("order", "satisfies", (f"{terms.EARLIER} <= {terms.LATER}", "order", _every)),
        ("mean", "hasMean", (terms.MEAN, lambda mean: terms.MEAN_BOUNDS[0] <= mean <= terms.MEAN_BOUNDS[1])),
        ("maximum", "hasMax", (terms.MAXIMUM, lambda value: value <= terms.MAXIMUM_BOUND)),
        ("distinct", "hasApproxCountDistinct", (terms.DISTINCT, lambda n: least <= n <= greatest)),
    ]
    return rules
