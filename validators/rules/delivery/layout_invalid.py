"""Layout of a server that does not fit the partitions of an object or of a delivery.

Why: `layout` names the folder of each partition. If it lacks a partition column, two partitions share a
folder, and if a delivery's partition is not a whole unit of it, dq would look for its files in no folder.

Bad:
    servers:
      - server: lake
        type: s3
        location: s3://sales/orders
        customProperties:
          - property: layout
            vendor: dq
            value: {path: "{day:%Y/%m/%d}"}

Good:
    servers:
      - server: lake
        type: s3
        location: s3://sales/orders
        customProperties:
          - property: layout
            vendor: dq
            value: {path: "{order_date:%Y/%m/%d}"}

How to fix: Name each partition column once in the layout, and no other column. Write times of a delivery as
whole units of the layout, e.g. `{due - 1h:%Y-%m-%d %H:00:00}` for hourly folders. Remove the layout from
servers of Iceberg, Delta and Hudi tables, whose logs know their files.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from dq.contracts import extension
from dq.contracts.access.data_location import data_formats, is_lake
from dq.contracts.layout import Layout
from dq.contracts.model import Server
from dq.contracts.outcome import LAKEHOUSE
from dq.validators.rule import Context, Contract, Rule, Severity, Slo, Violation, Violations, violation

# Cycles whose partitions are tested: enough for each minute and hour of most schedules.
_FROM, _DAYS, _CYCLES = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=366), 200


def check(contract: Contract, context: Context) -> Violations:
    layouts = [
        (server, layout)
        for server in contract.servers
        for layout, findings in (extension.layout(server),)
        if layout and not findings
    ]
    for server, layout in layouts:
        yield from _columns(contract, server, layout)
    for slo in context.parsed_slos.slos:
        for _, layout in layouts:
            yield from _partitions(slo, layout)


def _columns(contract: Contract, server: Server, layout: Layout) -> Iterator[Violation]:
    subject = f"the layout {layout.template!r}"
    if not is_lake(server):
        message = f"{subject} has no effect on a server of type {server.type!r}."
        yield violation(server, "customProperties", message, "Remove it.")
        return
    for schema_object in contract.objects:
        if data_formats(contract, schema_object) <= LAKEHOUSE:
            message = f"{subject} has no effect on {schema_object.name}, which has a log of its files."
            yield violation(server, "customProperties", message, "Remove it.")
            continue
        keys = [key.column for key in schema_object.partition_keys()]
        if {key.lower() for key in keys} != {column.lower() for column in layout.columns}:
            needs = (
                schema_object.path("properties"),
                *(p.path("partitioned") for p in schema_object.properties),
            )
            message = (
                f"{subject} has the columns {', '.join(layout.columns)}, but {schema_object.name} is "
                f"partitioned by {', '.join(keys) or 'none'}."
            )
            hint = "Name each partition column in it, and mark them with partitioned: true."
            yield violation(server, "customProperties", message, hint, needs=needs)


def _partitions(slo: Slo, layout: Layout) -> Iterator[Violation]:
    named = {column.lower() for column in layout.columns}
    if not {column.lower() for column in slo.partition} <= named:
        # Another rule reports a column that is no partition key.
        return
    for number, cycle in enumerate(islice(slo.cycles(_FROM, _FROM + _DAYS), _CYCLES)):
        # The values that do not depend on the time are the same in all cycles.
        for partition in cycle.partitions[: None if number == 0 else 1]:
            try:
                layout.folder_of(partition)
            except ValueError as error:
                hint = (
                    "Write whole units of the layout, e.g. '{due - 1h:%Y-%m-%d %H:00:00}' for hourly folders."
                )
                yield violation(slo.delivery, "partition", f"{error}.", hint)
                return
    if slo.expects_new_data:
        return
    if not slo.partition and {"file", "marker"} & {*slo.delivery.evidence} and slo.object.partition_keys():
        message = f"the delivery has no partition, and files are in the folders {layout.template!r}."
        yield violation(slo.delivery, "partition", message, "Add the partition of each delivery.")


RULE = Rule("layout-invalid", Severity.ERROR, __doc__, check)
