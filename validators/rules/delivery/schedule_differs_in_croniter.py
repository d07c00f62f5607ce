"""Schedule that Airflow and other croniter-based schedulers read differently.

Why: Airflow starts pipelines with croniter, while dq expects deliveries as cron does. If the two read a
schedule differently, deliveries that were never scheduled are reported as late.

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

How to fix: If the message suggests a spelling that both read the same way, use it. croniter reads `5-5` as
every value, combines a day of the month and a weekday with OR even if one of them is a step like `*/2`, and
rejects `LW`, `5L` and lists with `#`. In a time zone with DST changes it repeats or adds times on those
nights; Airflow handles them differently again. If nothing that delivers this contract uses croniter, turn the
rule off in the policy for its domain. `dq schedule next` shows when an expression is due.
"""

from datetime import UTC, datetime, time

from dq.contracts.schedule.clock import CroniterDifference, Schedule, croniter_difference
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation

# croniter takes up to 0.1 s per schedule; no real contract has more different schedules.
_MAX_SCHEDULES = 200
_HINT = "Use days and times that both read the same way, or turn this rule off if nothing uses croniter."


def check(_contract: Contract, context: Context) -> Violations:
    differences: dict[Schedule, CroniterDifference | None] = {}
    for slo in context.parsed_slos.slos:
        if slo.schedule not in differences:
            if len(differences) == _MAX_SCHEDULES:
                return
            now = datetime.combine(context.today, time(), UTC)
            differences[slo.schedule] = croniter_difference(slo.schedule, now)
        if difference := differences[slo.schedule]:
            yield violation(
                slo.sla,
                "schedule",
                f"croniter reads {slo.schedule.expression!r} differently: {reading(difference)}.",
                f"Write {difference.equivalent!r}, which both read the same way."
                if difference.equivalent
                else _HINT,
            )


def reading(difference: CroniterDifference) -> str:
    if difference.at is None:
        return "it rejects the expression"
    due, other = ("croniter", "dq") if difference.by_croniter else ("dq", "croniter")
    return f"{due} is due {difference.at:%Y-%m-%d %H:%M}Z, {other} is not"


RULE = Rule("schedule-differs-in-croniter", Severity.WARNING, __doc__, check, after=("time-in-clock-change",))
