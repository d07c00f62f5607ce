"""Schedule of arrivals that dq cannot watch.

Why: A schedule on `frequency` or `timeOfAvailability` is watched, with default terms if it has no delivery
terms: `dq watch` reports if nothing new arrives from one due time to the next. If dq cannot read the schedule
or find the data, nobody is notified of a missing delivery.

Bad:
    servers: [{server: lake, type: s3, location: s3://lake/orders, format: parquet}]
    slaProperties:
      - {property: frequency, value: 1, unit: d, element: orders, scheduler: airflow, schedule: "@daily"}

Good:
    servers: [{server: lake, type: s3, location: s3://lake/orders, format: parquet}]
    slaProperties:
      - {property: frequency, value: 1, unit: d, element: orders, scheduler: cron, schedule: "@daily"}

How to fix: Write the schedule as cron with five fields, in UTC, or add delivery terms with its `timezone` and
`dialect`. The data has to be on a server whose location is a folder.
"""

from dq.contracts.slo import NOT_WATCHED, unwatched_schedules
from dq.validators.rule import Context, Contract, Rule, Severity, Violation, Violations, unmatched_terms


def check(contract: Contract, _context: Context) -> Violations:
    misspelt = {similar for _, _, similar in unmatched_terms(contract)}
    without_terms = tuple(sla.path() for sla in contract.sla_properties if sla.id in misspelt - {None})
    for finding in unwatched_schedules(contract):
        # cron-invalid, sla-element-unknown and delivery-without-service-level report the others.
        if finding.rule == NOT_WATCHED and not (without_terms and finding.path.startswith(without_terms)):
            yield Violation(finding.at, finding.message, finding.hint, finding.path)


RULE = Rule(NOT_WATCHED, Severity.WARNING, __doc__, check)
