"""Terms of a retention that contradict the service level, the table or another entry.

Why: Such an entry is an error at every check, or one of two entries is always broken.

Bad:
    slaProperties:
      - id: longest
        property: retention
        value: 7
        unit: d
        element: orders
        customProperties:
          - {property: retention, vendor: dq, value: {of: files}}
      - id: shortest
        property: retention
        value: 30
        unit: d
        element: orders
        customProperties:
          - {property: retention, vendor: dq, value: {of: files, bound: atLeast}}

Good:
    slaProperties:
      - id: longest
        property: retention
        value: 30
        unit: d
        element: orders
        customProperties:
          - {property: retention, vendor: dq, value: {of: files}}
      - id: shortest
        property: retention
        value: 7
        unit: d
        element: orders
        customProperties:
          - {property: retention, vendor: dq, value: {of: files, bound: atLeast}}

How to fix: Write `{of: snapshots}` for tables of Delta, Hudi and Iceberg alone. For snapshots and files, name
the object, not a column. What is kept at least must not be longer than what is kept at most.
"""

from dq.contracts import extension
from dq.contracts.access.data_location import data_formats
from dq.contracts.model import SlaProperty
from dq.contracts.outcome import LAKEHOUSE
from dq.contracts.service_levels import ServiceLevel, compare_levels, parse_level, service_level_name
from dq.validators.rule import Context, Contract, Rule, Severity, Violations, violation


def check(contract: Contract, _context: Context) -> Violations:
    longest: dict[tuple[str, str], SlaProperty] = {}
    shortest: list[tuple[tuple[str, str], SlaProperty]] = []
    for sla in contract.sla_properties:
        terms, findings = extension.retention(contract, sla)
        is_retention = service_level_name(sla.property) == "retention"
        if findings or not is_retention:
            if not is_retention and any(custom.property == "retention" for custom in sla.custom_properties):
                message = f"terms of a retention at the service level {sla.property!r} have no effect."
                yield violation(sla, "property", message, "Write property: retention, or remove them.")
            continue
        element = sla.element or contract.sla_default_element or ""
        if terms.of != "rows":
            yield from _check_element(contract, sla, terms.of, element)
        if terms.bound == "atMost":
            longest[terms.of, element] = sla
        else:
            shortest.append(((terms.of, element), sla))
    for key, sla in shortest:
        other = longest.get(key)
        if other is not None and compare_levels(_level(sla), _level(other)) == 1:
            message = (
                f"{key[0]} are kept at least {sla.value} {sla.unit or ''}, and at most {other.value} "
                f"{other.unit or ''} by the entry in line {other.locate().line}."
            )
            yield violation(sla, "value", message, "Lower the minimum, or raise the maximum.")


def _check_element(contract: Contract, sla: SlaProperty, of: str, element: str) -> Violations:
    for part in (text.strip() for text in element.split(",")):
        name, _, column = part.partition(".")
        schema_object = contract.object(name) if name else None
        if schema_object is not None and column:
            message = f"{of} are of the whole table, not of the column {column!r}."
            yield violation(sla, "element", message, f"Write element: {name}.")
        objects = [schema_object] if schema_object is not None else [] if name else contract.objects
        for checked in objects if of == "snapshots" else ():
            formats = data_formats(contract, checked)
            if formats and not formats & LAKEHOUSE:
                message = f"{checked.name} is {', '.join(sorted(formats))}, which has no snapshots."
                yield violation(sla, "element" if sla.element else "property", message, "Write of: files.")


def _level(sla: SlaProperty) -> ServiceLevel:
    return parse_level(sla.property, sla.value, sla.unit)


RULE = Rule("retention-invalid", Severity.ERROR, __doc__, check)
