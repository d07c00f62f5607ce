"""Two contracts promise the same table of the catalog, or folders of which one lies in the other.

Why: `dq register` refuses a table that two contracts promise, also to the contract that was there first, and
Spark and Athena read every file below a table's folder. A table's database is that of the server, else
`domain` and `dataProduct`, else the contract's `name`; its name is `physicalName`, else the object's `name`.
Versions of one contract may share a table. Servers of different environments are not compared, nor contracts
that are not in force (`draft`, `proposed`, `retired`), nor what is unknown: `${NAME}` without a default, or a
database that is no lake. With `--base`, only the newcomer has the finding.

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

Mend: Give the table another `database` or `physicalName`, and its data a folder of its own; or change the
other contract, together with its owner. To move a table to another contract, remove it from the first one in
the same pull request.
"""

from dq.contracts.outcome import counted
from dq.validators.context import TableConflict
from dq.validators.rule import Entry, Fault, Faults, Registry, Severity, among_others


def check(one: Entry, registry: Registry) -> Faults:
    by_place: dict[str, list[TableConflict]] = {}
    for conflict in registry.table_conflicts.of(one.file):
        place = conflict.table.path if conflict.by_name else conflict.table.folder_path
        by_place.setdefault(place, []).append(conflict)
    for place, conflicts in by_place.items():
        yield _fault(place, conflicts[0], len({conflict.holder.id for conflict in conflicts}) - 1)


def _fault(path: str, conflict: TableConflict, more: int) -> Fault:
    table, other = conflict.table, conflict.other
    contract = f"contract {conflict.holder.id!r} ({conflict.holder.file})"
    rest = f"; {counted(more, 'more contract')} conflict with it" if more else ""
    if conflict.by_name:
        message = f"table {table.name} is also that of {contract}{rest}."
        return Fault(table.at, message, "Give one of them another database or physicalName.", path)
    if table.folder == other.folder:
        message = f"the folder {table.folder} is also that of {contract}{rest}."
    else:
        inside = other.folder is not None and table.folder is not None and other.folder.holds(table.folder)
        lies = "lies in" if inside else "holds"
        message = f"the folder {table.folder} {lies} {other.folder}, the folder of {contract}{rest}."
    return Fault(table.folder_at, message, "Give each table a folder that lies in no other table's.", path)


RULE = among_others("table-conflict", Severity.ERROR, __doc__, check)
