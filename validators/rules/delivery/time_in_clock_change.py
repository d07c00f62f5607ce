"""Due time that a DST change skips or repeats.

Why: On those nights the time does not exist or occurs twice, and people disagree about when the data is due.

Bad:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "30 2 * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {timezone: Europe/Berlin}

Good:
    slaProperties:
      - id: daily
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 6 * * *"
        customProperties:
          - property: delivery
            vendor: dq
            value: {timezone: Europe/Berlin, grace: 1h}

How to fix: Use a time outside 00:00 to 04:00, or a time zone without DST changes, e.g. UTC. Or keep it, and
turn this rule off for the contract's domain: the delivery term `dst` sets what happens on those nights.
"""

from datetime import datetime, timedelta

from dq.contracts.schedule.clock import DstNote, dst_hazards
from dq.validators.rule import Rule, Severity, Slo, Violations, slo_check, violation


def evaluate(slo: Slo, now: datetime) -> Violations:
    hazard = next(iter(dst_hazards(slo.schedule, now)), None)
    if hazard is not None:
        what = "does not exist" if hazard.note is DstNote.GAP else "occurs twice"
        night = f"{hazard.nominal:%H:%M} {what} on {hazard.nominal:%Y-%m-%d}"
        due = next(iter(slo.schedule.after(hazard.at - timedelta(seconds=1))))
        yield violation(
            slo.sla,
            "schedule",
            f"{night} in {slo.schedule.timezone} (DST change); the delivery is due "
            f"{due.at:%Y-%m-%d %H:%M} UTC.",
            "Use a time outside DST changes, or UTC.",
        )


RULE = Rule("time-in-clock-change", Severity.WARNING, __doc__, slo_check(evaluate))
