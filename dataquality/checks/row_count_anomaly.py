"""The number of rows is close to that of earlier runs.

Why: Good fixed bounds are hard to find for every table, and half a delivery still passes `rowCount > 0`.
Bad: About 800 rows on each of the last ten Mondays, and 300 on this one.
Good: 760 rows.
It is enabled by a rule on the object:

    quality:
      - type: custom
        engine: dq
        implementation: {check: rowCountAnomaly, arguments: {direction: fewer}}

Its arguments are `runs` (28: how many of the last runs count), `minimum` (7: with fewer the rule is
skipped, because it is still learning), `deviations` (3.5) and `slack` (20, in percent): a number is unusual
when it lies further from the median than `deviations` times the robust standard deviation (1.4826 times the
median distance from the median), and further than `slack` percent of the median; `direction` (both, fewer
or more). Partitions are compared with those that differ only in their date, the table with the table;
where three runs of the same weekday are known, with these.
Nulls: A row counts whatever is in it. A table without rows is counted as any other; one wild run among the
earlier ones moves the median little. Without a history, or with several partitions in one run, it is skipped.
How to fix: Look at the delivery; if the new number is right, the rule learns it. It is a warning unless the
rule has a `severity`. In Python pass the history: `check(…, history=…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dq.contracts.metrics import BASELINE_PARAMETERS, DIRECTIONS, Against
from dq.contracts.outcome import CheckResult, Severity, Status, nearest, pluralize
from dq.dataquality.clauses import quality_rule
from dq.dataquality.clauses.clause import CheckParameters, Clause, parameters_of, refuse, with_test
from dq.dataquality.clauses.kind import CheckKind, Values, result
from dq.dataquality.model.run_context import Unusable

_CHECK = "row_count_anomaly"


def clause(rule: quality_rule.Rule) -> Clause | None:
    quality, implementation = rule.quality, quality_rule.anomaly_implementation(rule.quality)
    if rule.property is not None or implementation is None:
        return None
    severity = quality_rule.severity(quality) if quality.severity else Severity.WARNING
    allowed = "about as many rows as in earlier runs"
    draft = Clause(_CHECK, quality.path(), rule.object.name, "", quality.locate(), severity, allowed)
    try:
        return with_test(
            replace(draft, row_filter=quality_rule.row_filter_of(rule.object, quality)),
            CheckParameters(_terms(implementation)),
        )
    except Unusable as error:
        return refuse(draft, str(error))


def _terms(implementation: Mapping[str, object]) -> Against:
    unknown_keys = [key for key in implementation if key not in ("check", "arguments")]
    if unknown_keys:
        raise Unusable(f"its implementation has {unknown_keys[0]!r}; it takes check and arguments")
    arguments = implementation.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise Unusable("its arguments must be a mapping")
    argument_names = (*BASELINE_PARAMETERS, "direction")
    for name in arguments:
        if name not in argument_names:
            suggestion = nearest(name, argument_names)
            hint = f"did you mean {suggestion!r}?" if suggestion else f"it takes {', '.join(argument_names)}"
            raise Unusable(f"{quality_rule.ANOMALY} takes no {name!r}; {hint}")
    numbers = {name: _number(arguments, name) for name in BASELINE_PARAMETERS}
    runs, minimum = int(numbers["runs"]), int(numbers["minimum"])
    direction = arguments.get("direction", "both")
    if direction not in DIRECTIONS:
        raise Unusable(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if minimum > runs:
        raise Unusable(f"minimum {minimum} is more than runs {runs}: it would never end learning")
    return Against("usual", runs, minimum, numbers["deviations"], numbers["slack"] / 100, str(direction))


def _number(arguments: Mapping[str, object], name: str) -> float:
    default, least, greatest = BASELINE_PARAMETERS[name]
    value = arguments.get(name, default)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= greatest
    if not fits or (name in ("runs", "minimum") and not isinstance(value, int)):
        raise Unusable(f"{name} must be a number from {least} to {greatest:,}, not {value!r}")
    return float(str(value))


def judge(clause: Clause, values: Values) -> CheckResult:
    (rows,) = values.values()
    terms, run_at = parameters_of(clause, Against), quality_rule.data_time_of(clause.context)
    assert isinstance(rows, int)
    summary = f"{clause.object}: {pluralize(rows, 'row')}"
    if clause.context.history is None or run_at is None:
        reason = "several partitions at once" if len(clause.context.partitions) > 1 else "no history"
        if clause.context.history is not None and run_at is None and not clause.context.partitions:
            reason = "no time"
        message = f"{summary}; not compared: {reason} to compare it with"
        return result(clause, Status.SKIPPED, reason, message, float(rows))
    earlier = quality_rule.comparable_counts(clause.context, _CHECK, clause.path)
    if len(earlier) < terms.minimum:
        learning = f"learning ({len(earlier)} of {terms.minimum} runs)"
        message = f"{summary}; {learning}: not enough history to compare with"
        return result(clause, Status.SKIPPED, learning, message, float(rows))
    band = quality_rule.usual_range(earlier, run_at, terms)
    is_met = (band.minimum is None or band.minimum <= rows) and (band.maximum is None or rows <= band.maximum)
    expected = _expected(band)
    last = ", ".join(f"{number:,}" for number in band.counts[-10:])
    message = (
        f"{summary}; expected {expected}: the median of the last {band.days} is {band.middle:,.10g}"
        f" (the last were {last})"
    )
    status = Status.PASS if is_met else Status.FAIL
    clause = replace(clause, allowed=f"{expected} rows, by the last {band.days}")
    return result(clause, status, pluralize(rows, "row"), message, float(rows))


def _expected(band: quality_rule.ExpectedRange) -> str:
    if band.maximum is None:
        return f"{band.minimum:,} or more"
    return f"{band.maximum:,} or fewer" if band.minimum is None else f"{band.minimum:,} to {band.maximum:,}"


CHECK = CheckKind(_CHECK, __doc__, evaluate=judge, rule=clause)
