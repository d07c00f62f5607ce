"""Delivery in folders that follow neither Hive's layout (`column=value/`) nor a `layout` of the server.

Why: dq looks for a partition in the folder `day=2026-11-20/` below the table, in the order of the partition
columns. In folders like `2026/11/20/` it would report every delivery as missing without a `layout`.

Bad:
    servers:
      - {server: lake, type: s3, location: "s3://sales/orders/{yyyy}/{MM}/{dd}"}
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
            value: {partition: {order_date: "{due - 1d:%Y-%m-%d}"}}

Good:
    servers:
      - {server: lake, type: s3, location: "s3://sales/orders"}
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
            value: {partition: {order_date: "{due - 1d:%Y-%m-%d}"}}

How to fix: Set the server's location to the folder of the table. If its partitions are not in folders like
`order_date=2026-11-20/`, add the server's `layout`, e.g. `{path: "{order_date:%Y/%m/%d}"}`. List the
partition columns of a delivery from the first one on.
"""

import re
from collections.abc import Iterator

from dq.contracts import extension
from dq.contracts.access.data_location import data_formats, location_templates, pattern_in
from dq.contracts.model import Server
from dq.contracts.outcome import LAKEHOUSE
from dq.validators.rule import Context, Contract, Rule, Severity, Slo, Violation, Violations, violation

_DUE = re.compile(r"\{\s*due[^{}]*\}")


def check(contract: Contract, context: Context) -> Violations:
    slos = [slo for slo in context.parsed_slos.slos if _reads_folders(slo) and not slo.is_implied]
    columns = {column for slo in slos for column in slo.partition}
    if slos:
        for server in contract.servers:
            yield from _location(server, columns)
    if contract.servers and all(extension.layout(server)[0] for server in contract.servers):
        # The rule layout-invalid checks these.
        return
    for slo in slos:
        for message, hint in _partition(slo):
            needs = (slo.object.path("properties"), *(p.path("partitioned") for p in slo.object.properties))
            yield violation(slo.delivery, "partition", message, hint, needs=needs)


def _reads_folders(slo: Slo) -> bool:
    """Return whether the watcher looks for files of the delivery by the names of folders."""
    evidence = slo.delivery.evidence
    if "commit" in evidence and data_formats(slo.contract, slo.object) <= LAKEHOUSE:
        return False
    return "file" in evidence or "marker" in evidence


def _location(server: Server, columns: set[str]) -> Iterator[Violation]:
    for key, path in location_templates(server):
        part = pattern_in(path)
        if part is not None:
            message = (
                f"{key} {server.get(key)!r} has {part!r}, but the location is the folder of the whole table."
            )
            hint = "Write the folder of the table, and describe the folders of its partitions in a 'layout'."
            yield violation(server, key, message, hint)
            continue
        for step in path.split("/"):
            column, equals, _ = step.partition("=")
            if equals and column in columns:
                message = f"{key} {server.get(key)!r} includes {step!r}, a folder of its partition."
                yield violation(server, key, message, "Write the folder of the table above it.")


def _partition(slo: Slo) -> Iterator[tuple[str, str]]:
    for column, templates in slo.partition.items():
        for template in templates:
            if not _DUE.search(template):
                continue
            if "/" in template:
                message = f"{column}: {template!r} has a '/', but a value is one folder."
                yield message, "Use one column per folder, e.g. {year: '{due:%Y}', month: '{due:%m}'}."
            elif template.startswith(f"{column}="):
                value = template.removeprefix(f"{column}=")
                yield f"{column}: {template!r} repeats the column name.", f"Write {value!r}."
    keys = [key.column for key in slo.object.partition_keys()]
    first = keys[: len(slo.partition)]
    if slo.partition and slo.partition.keys() <= set(keys) and slo.partition.keys() != set(first):
        above = ", ".join(column for column in first if column not in slo.partition)
        message = f"the partition omits {above}, whose folders are above {', '.join(slo.partition)}."
        yield message, "List the partition columns from the first one on, in folder order."


RULE = Rule("partition-layout-unsupported", Severity.ERROR, __doc__, check)
