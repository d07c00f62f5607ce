"""Airflow and other schedulers based on croniter read this schedule differently.

Why: Airflow starts pipelines by croniter, and dq counts deliveries as cron does. Where the two read one text
differently, deliveries that were never going to come are alerted as late.

Bad:
    slaProperties:
      - id: first-sunday
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 6 1-7 * */7"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 1h}

Good:
    slaProperties:
      - id: first-sunday
        property: frequency
        value: 1
        unit: d
        element: orders
        schedule: "0 6 * * 0#1"
        customProperties:
          - property: delivery
            vendor: dq
            value: {grace: 1h}

Mend: Where the message knows a spelling that both read alike, write it. croniter takes `5-5` for every value,
joins a day of the month and a weekday with OR also where one of them is a step such as `*/2`, and refuses
`LW`, `5L` and lists with `#`. In a zone with clock changes it repeats or adds times on those nights; Airflow
has one more rule of its own for them. If nothing that delivers this contract uses croniter, turn the rule off
in the policy for its domain. `dq schedule next` shows when an expression is due.
"""

from datetime import UTC, datetime, time

from dq.contracts.schedule.clock import CroniterDifference, Schedule, croniter_difference
from dq.validators.rule import Context, Contract, Faults, Rule, Severity, fault

# croniter takes up to 0.1 s for a schedule; a contract of more different ones is no reader's work.
_MOST_SCHEDULES = 200
_MEND = "Write days and times that both read alike, or turn this rule off where nothing uses croniter."


def check(_contract: Contract, context: Context) -> Faults:
    now = datetime.combine(context.today, time(), UTC)
    differences: dict[Schedule, CroniterDifference | None] = {}
    for slo in context.promises.slos:
        if slo.schedule not in differences:
            if len(differences) == _MOST_SCHEDULES:
                return
            differences[slo.schedule] = croniter_difference(slo.schedule, now)
        if difference := differences[slo.schedule]:
            yield fault(
                slo.sla,
                "schedule",
                f"{slo.schedule.expression!r} is read differently by croniter: {reading(difference)}.",
                f"Write {difference.alike!r}, which both read alike." if difference.alike else _MEND,
            )


def reading(difference: CroniterDifference) -> str:
    if difference.at is None:
        return "it refuses the expression"
    due, other = ("croniter", "dq") if difference.by_croniter else ("dq", "croniter")
    return f"{due} is due {difference.at:%Y-%m-%d %H:%M}Z, {other} is not"


RULE = Rule("schedule-differs-in-croniter", Severity.WARNING, __doc__, check, after=("time-in-clock-change",))
