"""A delivery is due at a time that a change of clocks skips or repeats.

Why: On those nights the time does not exist, or exists twice, and people read the promise differently.

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

Mend: Choose a time outside of midnight to four, or a zone without changes, such as UTC; or keep it, and turn
this rule off for the contract's domain: the policy `dst` says what is done.
"""

from datetime import datetime, timedelta

from dq.contracts.schedule.clock import Note, dst_hazards
from dq.validators.rule import Faults, Rule, Severity, Slo, fault, of_each


def judge(slo: Slo, now: datetime) -> Faults:
    hazard = next(iter(dst_hazards(slo.schedule, now)), None)
    if hazard is not None:
        what = "does not exist" if hazard.note is Note.GAP else "stands twice on the clock"
        night = f"{hazard.nominal:%Y-%m-%d %H:%M}"
        due = next(iter(slo.schedule.after(hazard.at - timedelta(seconds=1))))
        yield fault(
            slo.sla,
            "schedule",
            f"{night} {what} in {slo.schedule.timezone}; that cycle is due {due.at:%Y-%m-%d %H:%M}Z.",
            "Choose a time that every day has once, or UTC.",
        )


RULE = Rule("time-in-clock-change", Severity.WARNING, __doc__, of_each(judge))
