"""Rule, violation and rule scope, and functions shared by several rules."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from dq.contracts import extension
from dq.contracts.access.files import FileRejected
from dq.contracts.extension import Scope
from dq.contracts.model import Contract, CustomProperty, Node, Quality, SchemaObject
from dq.contracts.odcs import Version
from dq.contracts.outcome import Location, Severity, nearest, one_of, suggestion
from dq.contracts.slo import Slo
from dq.contracts.subscriptions import Subscription
from dq.validators.context import (
    Argument,
    Context,
    ContractEntry,
    QualityPlace,
    Registry,
    SubscriptionContext,
)

if TYPE_CHECKING:
    from dq.contracts.sql.guard import RejectedSql, ValidatedSql


# Re-exported for the rules, together with the definitions of this module.
__all__ = [
    "Argument",
    "Context",
    "Contract",
    "ContractEntry",
    "Registry",
    "Severity",
    "Slo",
    "Subscription",
    "SubscriptionContext",
    "nearest",
    "one_of",
    "suggestion",
]


@dataclass(frozen=True, slots=True)
class Violation:
    """Violation of a rule: location, message, and how to fix it.

    `path` is the path inside the document. `needs` are further paths that the message relies on: if one of
    them was removed because its form is wrong, the violation is only a consequence of that and is not
    reported. A `doubt` is about something that the contract's version of the standard may allow: at most a
    warning, unless the policy sets another severity. Violations of one `kind` by columns of one object are
    one finding.
    """

    location: Location
    message: str
    hint: str
    path: str = ""
    needs: tuple[str, ...] = ()
    doubt: bool = False
    kind: str = ""


Violations = Iterator[Violation]
"""Result of a rule's check."""


def violation(
    node: Node,
    key: str,
    message: str,
    hint: str,
    *,
    needs: tuple[str, ...] = (),
    doubt: bool = False,
    kind: str = "",
) -> Violation:
    """Return a violation by the value that a node has for this key."""
    return Violation(node.locate(key), message, hint, node.path(key), needs, doubt, kind)


def item_violation(node: Node, key: str, index: int, message: str, hint: str) -> Violation:
    """Return a violation by one item of the list that a node has for this key."""
    return Violation(node.locate(key, index), message, hint, f"{node.path(key)}[{index}]")


def missing_key(node: Node, message: str, hint: str, *keys: str) -> Violation:
    """Return a violation by a node that has none of these keys, or no value for them.

    Its location is the first key, or the start of the node. All the keys are its `needs`.
    """
    return Violation(
        node.locate(keys[0]), message, hint, node.path(keys[0]), needs=tuple(node.path(key) for key in keys)
    )


class RuleScope(StrEnum):
    """Scope of a rule.

    `form`: the text; the loader finds these violations, which are always errors and have no check here.
    `contract`: one contract. `registry`: one contract among all that were read. `policy`: the policy itself;
    these violations are found while it is applied. `change`: changes of the policy by a branch.
    `subscription`: one subscription among all, with the contract that it names.
    """

    FORM = "form"
    CONTRACT = "contract"
    REGISTRY = "registry"
    POLICY = "policy"
    CHANGE = "change"
    SUBSCRIPTION = "subscription"


Check = Callable[[Contract, Context], Violations]
RegistryCheck = Callable[[ContractEntry, Registry], Violations]
SubscriptionCheck = Callable[[Subscription, SubscriptionContext], Violations]


def _no_violations(*_: object) -> Violations:
    yield from ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule with its id, default severity, page and check.

    Depending on the scope, `check` validates one contract, `registry_check` one contract among all that were
    read, or `subscription_check` one subscription. A violation of a rule with `consequences` is only reported
    if no other rule reported the same element. An `opt_in` rule goes beyond the standard and must be enabled
    by a policy. `first` and `last` are the ODCS versions, inclusive, to which it applies. `after` names rules
    whose violation at the same path explains this rule's. `bad` is an example document that cannot be part of
    a page, or the reason why there is none. `policies`: the fragments of the page are policies, not
    contracts.
    """

    id: str
    severity: Severity
    page: str | None
    check: Check = _no_violations
    scope: RuleScope = RuleScope.CONTRACT
    registry_check: RegistryCheck = _no_violations
    subscription_check: SubscriptionCheck = _no_violations
    first: Version = (3, 0, 0)
    last: Version | None = None
    arguments: tuple[Argument[Any], ...] = ()
    after: tuple[str, ...] = ()
    bad: bytes | FileRejected | None = None
    policies: bool = False
    consequences: bool = False
    opt_in: bool = False

    def applies(self, odcs: Version) -> bool:
        """Return True if the rule applies to contracts of this version of the standard."""
        return self.first <= odcs and (self.last is None or odcs <= self.last)


def form_rule(id_: str, page: str | None, bad: bytes | FileRejected | None = None) -> Rule:
    """Return a rule that the loader checks."""
    return Rule(id_, Severity.ERROR, page, scope=RuleScope.FORM, bad=bad)


def registry_rule(id_: str, severity: Severity, page: str | None, check: RegistryCheck) -> Rule:
    """Return a rule that needs the other contracts of the registry."""
    return Rule(id_, severity, page, scope=RuleScope.REGISTRY, registry_check=check)


def policy_rule(id_: str, severity: Severity, page: str | None) -> Rule:
    """Return a rule about the policy itself."""
    return Rule(id_, severity, page, scope=RuleScope.POLICY, policies=True)


def policy_change_rule(id_: str, severity: Severity, page: str | None) -> Rule:
    """Return a rule about changes of the policy by a branch."""
    return Rule(id_, severity, page, scope=RuleScope.CHANGE, policies=True)


def subscription_rule(
    id_: str,
    severity: Severity,
    page: str | None,
    check: SubscriptionCheck,
    arguments: tuple[Argument[Any], ...] = (),
) -> Rule:
    """Return a rule about a subscription."""
    return Rule(
        id_, severity, page, scope=RuleScope.SUBSCRIPTION, subscription_check=check, arguments=arguments
    )


# Servers on which Spark, Hive, Glue or Athena determine names and types.

LAKE_SERVERS = frozenset({"athena", "azure", "databricks", "glue", "hive", "iceberg", "local", "s3"})


def is_on_lake(contract: Contract) -> bool:
    """Return True if one of the contract's servers is a data lake or its catalog."""
    return any(server.type in LAKE_SERVERS for server in contract.servers)


# Values written in a contract, checked against a logical type.


def fits_type(value: object, logical: str | None) -> bool:
    """Return True if a parsed YAML value has the logical type; containers and unknown types accept anything.

    Dates, timestamps and times may be ISO 8601 text.
    """
    match logical:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            # math.isfinite raises OverflowError for very large integers.
            is_integer = isinstance(value, int) and not isinstance(value, bool)
            return is_integer or (isinstance(value, float) and math.isfinite(value))
        case "date":
            is_date = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
            return is_date or _is_iso(value, dt.date.fromisoformat)
        case "timestamp":
            return isinstance(value, dt.date) or _is_iso(value, dt.datetime.fromisoformat)
        case "time":
            return _is_iso(value, dt.time.fromisoformat)
    return True


def quote_value(value: object) -> str:
    """Return the value as quoted in messages."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)


def _is_iso(value: object, read: Callable[[str], object]) -> bool:
    if not isinstance(value, str):
        return False
    try:
        read(value)
    except ValueError:
        return False
    return True


# Positions of key columns.


class PositionKey(NamedTuple):
    """Kind of key: its name, and the property's keys and attributes for flag and position."""

    noun: str
    flag: str
    position: str
    flag_attribute: str
    position_attribute: str


PARTITION = PositionKey(
    "partition column", "partitioned", "partitionKeyPosition", "partitioned", "partition_key_position"
)
PRIMARY = PositionKey(
    "primary key column", "primaryKey", "primaryKeyPosition", "primary_key", "primary_key_position"
)


def key_position_check(key: PositionKey) -> Check:
    """Return a check of the positions of a kind of key."""

    def check(contract: Contract, _context: Context) -> Violations:
        for schema_object in contract.objects:
            yield from _position_violations(schema_object, key)

    return check


def _position_violations(schema_object: SchemaObject, key: PositionKey) -> Violations:
    """Yield at most one violation per object, if positions are not 1 to n or are set on a non-key column.

    Without any position, the key's columns are in the order of the file. ODCS's -1 means no position.
    """
    in_key, position = attrgetter(key.flag_attribute), attrgetter(key.position_attribute)
    columns = [prop for prop in schema_object.properties if in_key(prop)]
    for prop in schema_object.properties:
        if not in_key(prop) and (position(prop) or -1) != -1:
            message = f"{prop.name!r} has {key.position} {position(prop)}, but is not a {key.noun}."
            hint = f"Add '{key.flag}: true', or remove it."
            yield violation(prop, key.position, message, hint, needs=_relies_on(schema_object, key))
            return
    numbered = [prop for prop in columns if position(prop) not in (None, -1)]
    if not numbered:
        return
    order = f"Number them 1 to {len(columns)} in order." if len(columns) > 1 else "Write 1."
    taken: dict[int, str | None] = {}
    for prop in columns:
        number = position(prop)
        if number in (None, -1):
            message = f"{prop.name!r} is one of {len(columns)} {key.noun}s, but has no {key.position}."
        elif not 1 <= number <= len(columns):
            message = f"{key.position} {number} of {prop.name!r} is not between 1 and {len(columns)}."
        elif number in taken:
            message = f"{key.position} {number} of {prop.name!r} is already used by {taken[number]!r}."
        else:
            taken[number] = prop.name
            continue
        yield violation(prop, key.position, message, order, needs=_relies_on(schema_object, key))
        return


def _relies_on(schema_object: SchemaObject, key: PositionKey) -> tuple[str, ...]:
    return tuple(prop.path(name) for prop in schema_object.properties for name in (key.flag, key.position))


# Shared by the delivery rules: the SLOs of a contract, parsed as the watcher does.


def unmatched_terms(contract: Contract) -> list[tuple[CustomProperty, str, str | None]]:
    """Return top-level terms of service levels that do not exist: (terms, id, most similar id or None)."""
    ids = [sla.id for sla in contract.sla_properties if sla.id is not None]
    terms = [
        (custom, id_)
        for custom in contract.custom_properties
        for name, colon, id_ in (custom.property.partition(":"),)
        if colon and name in extension.SLA_NAMES and custom.vendor in (None, extension.VENDOR)
    ]
    return [(custom, id_, nearest(id_, ids)) for custom, id_ in terms if id_ not in ids]


def slo_finding_check(rule: str) -> Check:
    """Return a check that reports this rule's findings from SLO parsing, i.e. SLOs that cannot be watched."""

    def check(_contract: Contract, context: Context) -> Violations:
        for finding in context.parsed_slos.findings:
            if finding.rule == rule:
                yield Violation(finding.at, finding.message, finding.hint, finding.path, (finding.path,))

    return check


def delivery_rule(id_: str, page: str) -> Rule:
    """Return a rule about a delivery's terms that SLO parsing checks."""
    return Rule(id_, Severity.ERROR, page, slo_finding_check(id_))


def slo_check(evaluate: Callable[[Slo, datetime], Violations]) -> Check:
    """Return a check that evaluates every parsed SLO as of the start of the day in UTC."""

    def check(_contract: Contract, context: Context) -> Violations:
        for slo in context.parsed_slos.slos:
            yield from evaluate(slo, datetime.combine(context.today, time(), UTC))

    return check


# SQL of a contract that the SQL guard rejects, for the rules that report it.
#
# The SQL parser is only imported if a contract has SQL, since its import is slow.


def refused_queries(contract: Contract, context: Context) -> Iterator[tuple[Quality, RejectedSql]]:
    """Yield every quality rule of the type `sql` whose query is rejected, with the reason."""
    for clause, result in _guarded_queries(contract, context):
        from dq.contracts.sql.guard import RejectedSql

        if isinstance(result, RejectedSql):
            yield clause.quality, result


def read_columns(
    contract: Contract, context: Context
) -> Iterator[tuple[SchemaObject, Node, str, tuple[str, ...]]]:
    """Yield every allowed query: its object, its node and key, and the columns that it reads."""
    for clause, result in _guarded_queries(contract, context):
        from dq.contracts.sql.guard import ValidatedSql

        if isinstance(result, ValidatedSql):
            yield clause.object, clause.quality, "query", (*result.columns, *result.qualified_columns)


def _guarded_queries(
    contract: Contract, context: Context
) -> Iterator[tuple[QualityPlace, ValidatedSql | RejectedSql]]:
    sql_clauses = [
        candidate
        for candidate in context.walk.clauses
        if candidate.quality.type == "sql" and candidate.quality.query
    ]
    if not sql_clauses:
        return
    from dq.contracts.sql.guard import validate_rule_query

    has_column = any(candidate.property is not None for candidate in sql_clauses)
    single = (
        (holders for schema_object in contract.objects for holders in schema_object.single_valued_paths())
        if has_column
        else ()
    )
    paths = {id(holders[-1]): tuple(prop.column for prop in holders) for holders in single}
    for clause in sql_clauses:
        path = None if clause.property is None else paths.get(id(clause.property))
        yield clause, validate_rule_query(clause.object, clause.quality, path)


def refused_scopes(context: Context) -> Iterator[tuple[Scope, RejectedSql]]:
    """Yield every scope whose predicate is rejected, with the reason."""
    for clause in context.walk.clauses:
        if not clause.quality.custom_properties:
            continue
        terms, wrong = extension.scope(clause.quality)
        if terms.where is None or wrong:
            continue
        from dq.contracts.sql.guard import RejectedSql, validate_predicate

        result = validate_predicate(terms.where)
        if isinstance(result, RejectedSql):
            yield terms, result
