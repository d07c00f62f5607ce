"""Two contracts with the same catalog table, or with overlapping folders.

Why: `dq register` rejects a table that two contracts declare, for both of them, and Spark and Athena read
every file below a table's folder. A table's database is that of the server, else `domain` and `dataProduct`,
else the contract's `name`; its name is `physicalName`, else the object's `name`. Versions of one contract may
share a table. Not compared are servers of different environments, contracts that are not in force (`draft`,
`proposed`, `retired`), and unknown locations: `${NAME}` without a default, or a database that is not a lake.
With `--base`, only the new contract has the finding.

Bad:
    id: refunds
    schema:
      - name: refunds
        physicalName: orders
        properties: [{name: refund_id, logicalType: string}]

Good:
    id: refunds
    schema:
      - name: refunds
        properties: [{name: refund_id, logicalType: string}]

How to fix: Give the table another `database` or `physicalName`, and its data a separate folder; or change the
other contract, together with its owner. To move a table to another contract, remove it from the first one in
the same pull request.
"""

from dq.contracts.outcome import pluralize
from dq.validators.context import TableConflict
from dq.validators.rule import ContractEntry, Registry, Severity, Violation, Violations, registry_rule


def check(entry: ContractEntry, registry: Registry) -> Violations:
    by_place: dict[str, list[TableConflict]] = {}
    for conflict in registry.table_conflicts.for_file(entry.file):
        place = conflict.table.path if conflict.by_name else conflict.table.folder_path
        by_place.setdefault(place, []).append(conflict)
    for place, conflicts in by_place.items():
        yield _conflict_violation(
            place, conflicts[0], len({conflict.holder.id for conflict in conflicts}) - 1
        )


def _conflict_violation(path: str, conflict: TableConflict, further: int) -> Violation:
    table, other = conflict.table, conflict.other
    contract = f"contract {conflict.holder.id!r} ({conflict.holder.file})"
    suffix = f"; it conflicts with {pluralize(further, 'more contract')}" if further else ""
    if conflict.by_name:
        message = f"table {table.name} is also used by {contract}{suffix}."
        return Violation(table.location, message, "Give one of them another database or physicalName.", path)
    if table.folder == other.folder:
        message = f"the folder {table.folder} is also used by {contract}{suffix}."
    else:
        inside = other.folder is not None and table.folder is not None and other.folder.contains(table.folder)
        lies = "is inside" if inside else "contains"
        message = f"the folder {table.folder} {lies} {other.folder}, the folder of {contract}{suffix}."
    return Violation(table.folder_location, message, "Give each table a separate folder.", path)


RULE = registry_rule("table-conflict", Severity.ERROR, __doc__, check)
