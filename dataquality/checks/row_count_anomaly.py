"""The number of rows is not far from what earlier runs counted.

Why: Nobody knows a good bound for every table, and half a delivery still passes `rowCount > 0`.
Bad: About 800 rows on each of the last ten Mondays, and 300 on this one.
Good: 760 rows.
It is asked for by a rule on the object:

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
Mend: Look at the delivery; if the new number is right, the rule learns it. It is a warning unless the rule
has a `severity`. In Python hand the history in: `check(…, history=…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dq.contracts.metrics import BAND, DIRECTIONS, Against
from dq.contracts.outcome import CheckResult, Severity, Status, counted, nearest
from dq.dataquality.clauses import quality_rule
from dq.dataquality.clauses.clause import Clause, KindTerms, asking, refuse, terms_of
from dq.dataquality.clauses.kind import CheckKind, Values, result
from dq.dataquality.model.run_context import Unusable

_CHECK = "row_count_anomaly"


def clause(rule: quality_rule.Rule) -> Clause | None:
    quality, written = rule.quality, quality_rule.written_as_anomaly(rule.quality)
    if rule.property is not None or written is None:
        return None
    grade = quality_rule.severity(quality) if quality.severity else Severity.WARNING
    allowed = "about as many rows as in earlier runs"
    made = Clause(_CHECK, quality.path(), rule.object.name, "", quality.at(), grade, allowed)
    try:
        return asking(
            replace(made, extent=quality_rule.extent_of(rule.object, quality)), KindTerms(_terms(written))
        )
    except Unusable as error:
        return refuse(made, str(error))


def _terms(written: Mapping[str, object]) -> Against:
    strange = [key for key in written if key not in ("check", "arguments")]
    if strange:
        raise Unusable(f"its implementation has {strange[0]!r}; it takes check and arguments")
    given = written.get("arguments") or {}
    if not isinstance(given, dict):
        raise Unusable("its arguments must be a mapping")
    known = (*BAND, "direction")
    for name in given:
        if name not in known:
            hint = nearest(name, known)
            mend = f"did you mean {hint!r}?" if hint else f"it takes {', '.join(known)}"
            raise Unusable(f"{quality_rule.ANOMALY} takes no {name!r}; {mend}")
    read = {name: _number(given, name) for name in BAND}
    runs, minimum = int(read["runs"]), int(read["minimum"])
    direction = given.get("direction", "both")
    if direction not in DIRECTIONS:
        raise Unusable(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")
    if minimum > runs:
        raise Unusable(f"minimum {minimum} is more than runs {runs}: it would never end learning")
    return Against("usual", runs, minimum, read["deviations"], read["slack"] / 100, str(direction))


def _number(given: Mapping[str, object], name: str) -> float:
    default, least, most = BAND[name]
    value = given.get(name, default)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
    if not fits or (name in ("runs", "minimum") and not isinstance(value, int)):
        raise Unusable(f"{name} must be a number from {least} to {most:,}, not {value!r}")
    return float(str(value))


def judge(clause: Clause, values: Values) -> CheckResult:
    (found,) = values.values()
    terms, here = terms_of(clause, Against), quality_rule.moment_of(clause.occasion)
    assert isinstance(found, int)
    seen = f"{clause.object}: {counted(found, 'row')}"
    if clause.occasion.history is None or here is None:
        reason = "several partitions at once" if len(clause.occasion.partitions) > 1 else "no history"
        if clause.occasion.history is not None and here is None and not clause.occasion.partitions:
            reason = "no time"
        message = f"{seen}; not compared: {reason} to compare it with"
        return result(clause, Status.SKIPPED, reason, message, float(found))
    earlier = quality_rule.comparable(clause.occasion, _CHECK, clause.path)
    if len(earlier) < terms.minimum:
        learning = f"learning ({len(earlier)} of {terms.minimum} runs)"
        message = f"{seen}; {learning}: what is usual is not known yet"
        return result(clause, Status.SKIPPED, learning, message, float(found))
    band = quality_rule.usual(earlier, here, terms)
    kept = (band.least is None or band.least <= found) and (band.most is None or found <= band.most)
    expected = _expected(band)
    last = ", ".join(f"{number:,}" for number in band.counts[-10:])
    message = (
        f"{seen}; usual are {expected}: the median of the last {band.days} is {band.middle:,.10g}"
        f" (the last were {last})"
    )
    status = Status.PASS if kept else Status.FAIL
    clause = replace(clause, allowed=f"{expected} rows, by the last {band.days}")
    return result(clause, status, counted(found, "row"), message, float(found))


def _expected(band: quality_rule.Band) -> str:
    if band.most is None:
        return f"{band.least:,} or more"
    return f"{band.most:,} or fewer" if band.least is None else f"{band.least:,} to {band.most:,}"


CHECK = CheckKind(_CHECK, __doc__, judge=judge, rule=clause)
