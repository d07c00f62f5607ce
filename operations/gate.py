"""The gate of a registry: lints contracts by rules and policy, and reports clauses that no check
evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.metrics import is_unusual_rule, named_metric
from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.outcome import Finding, Severity
from dq.contracts.service_levels import service_level_name
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import NoResult
from dq.dataquality.clauses.coverage import (
    SILENT,
    EnforcementState,
    clause_coverage,
    expected_clauses,
    service_levels,
    untyped_format,
)
from dq.dataquality.clauses.kind import CheckKinds, clauses_of
from dq.dataquality.model.run_context import Unusable, comparison
from dq.operations.registry_files import parse_policy, read_policy_text
from dq.operations.runtime.context import registry_root
from dq.operations.subscriptions import make_gather, split
from dq.validators.lint import LintResult, lint_paths, load_rules

if TYPE_CHECKING:
    from dq.validators.compat.classified_change import Comparison
    from dq.validators.context import OfficialSchema
    from dq.validators.result_cache import FolderCache


_HINT = "Run 'dq explain' on the file to see how each clause is enforced."
# Keys that do not affect evaluation, or only by the column's name.
_IRRELEVANT_KEYS = frozenset(SILENT) - {
    "properties",
    "items",
    "map",
    "quality",
    "relationships",
    "logicalTypeOptions",
}
_PARTS = ("properties", "items", "map", "relationships")
# Keys of a column's quality rule that can be evaluated without the rest of the object.
_STANDALONE_KEYS = frozenset(
    {"metric", "type", "unit", "dimension", "severity", "name", "description", "id", "tags"}
)
_PLAIN_RULE = _STANDALONE_KEYS - {"unit"} | {"query"}
_STANDALONE_METRICS = ("nullValues",)
_DATE_LEVELS = ("latency", "retention")
_DATED = ("date", "timestamp", "time")

Kind = tuple[object, ...]


def unenforced(contract: Contract) -> Iterator[Finding]:
    """Yield a finding for each clause that no check evaluates, with the reason, in file order."""
    # A service level of all objects is reported once.
    reported: set[tuple[str, str]] = set()
    for schema_object in contract.objects:
        reduced = _without_ordinary(contract, schema_object)
        clauses = expected_clauses(
            contract, reduced.object, _level_checks() if reduced.levels_only else built_in()
        )
        # References to other contracts are checked where all contracts are loaded.
        external_paths = {
            clause.path
            for clause in clauses
            if isinstance(clause.test, NoResult) and clause.test.external_keys
        }
        listed = service_levels if reduced.levels_only else clause_coverage
        for account in listed(contract, reduced.object, clauses):
            entry = (account.path, account.reason)
            if account.path in external_paths or account.state is not EnforcementState.NOT_EVALUATED:
                continue
            if entry not in reported:
                reported.add(entry)
                message = f"{account.clause} is not evaluated: {account.reason}."
                yield Finding("unenforced", Severity.WARNING, message, _HINT, account.at, account.path)


def _is_evaluated(contract: Contract, schema_object: SchemaObject) -> bool:
    """True if all clauses of an object are evaluated, ignoring service levels."""
    without_levels = contract.model_copy(update={"sla_properties": [], "sla_default_element": None})
    states = [
        account.state
        for account in clause_coverage(
            without_levels, schema_object, clauses_of(without_levels, schema_object, built_in())
        )
    ]
    return EnforcementState.NOT_EVALUATED not in states


@dataclass(frozen=True, slots=True)
class _Remaining:
    """Reduced object to evaluate; `levels_only`: only its service levels."""

    object: SchemaObject
    levels_only: bool = False


@cache
def _level_checks() -> CheckKinds:
    return {name: built_in()[name] for name in _DATE_LEVELS}


def _without_ordinary(contract: Contract, schema_object: SchemaObject) -> _Remaining:
    """Return the object without columns whose clauses are known to be all evaluated.

    Columns stay if something else refers to them: a composite key, a service level, or a rule of the object.
    """
    rules = [rule for rule in schema_object.quality if not _is_ordinary_rule(schema_object, rule)]
    if (
        len(schema_object.properties) < 4
        or schema_object.relationships
        or not all(map(_speaks_of_rows, rules))
    ):
        return _Remaining(schema_object)
    inside = [rule for prop in schema_object.walk() for rule in prop.quality]
    if any(rule.custom_properties for rule in (*schema_object.quality, *inside)) or any(
        named_metric(rule) or is_unusual_rule(rule) for rule in inside
    ):
        # The rule may refer to any other column, e.g. to group by or compare with.
        return _Remaining(schema_object)
    if any(rule.type == "sql" for rule in (*schema_object.quality, *inside)) and untyped_format(
        contract, schema_object
    ):
        # The query may read any other column, which must then be declared.
        return _Remaining(schema_object)
    levels = contract.sla_default_element, *(sla.element for sla in contract.sla_properties)
    element_names = " ".join(text for text in levels if text)
    # A service level without a column applies to the date columns.
    any_dated = any(
        "." not in part
        for sla in contract.sla_properties
        if service_level_name(sla.property) in _DATE_LEVELS
        for part in (sla.element or contract.sla_default_element or "").split(",")
    )
    unusual = [prop for prop in schema_object.properties if not _is_ordinary(contract, schema_object, prop)]
    columns = [
        prop
        for prop in schema_object.properties
        if (any_dated and _is_dated(prop))
        or (prop.name or "") in element_names
        or any(prop is column for column in unusual)
    ]
    reduced = schema_object.model_copy(update={"properties": columns, "quality": rules})
    return _Remaining(reduced, not unusual and not rules and _is_ordinary_object(contract, schema_object))


def _is_ordinary_object(contract: Contract, schema_object: SchemaObject) -> bool:
    """True if all clauses of the object itself are evaluated, ignoring its columns and rules."""
    if schema_object.custom_properties:
        return False
    cache_key = (contract.api_version, tuple(schema_object.place.keys))
    if cache_key not in _ordinary_objects:
        if len(_ordinary_objects) > _MAX_CACHED:
            _ordinary_objects.clear()
        bare = schema_object.model_copy(update={"properties": [], "quality": []})
        _ordinary_objects[cache_key] = _is_evaluated(contract, bare)
    return _ordinary_objects[cache_key]


def _is_ordinary_rule(schema_object: SchemaObject, rule: Quality) -> bool:
    """True if a rule of an object is a plain row count, or a query that the SQL guard accepts."""
    operators = rule.operators()
    if rule.place.keys.keys() - _PLAIN_RULE - {name for name, _ in operators}:
        return False
    try:
        comparison(operators)
    except Unusable:
        return False
    if rule.type == "sql" and rule.metric is None and (rule.query or "").strip():
        # Imported here: the SQL parser is slow to import.
        from dq.contracts.sql.guard import ValidatedSql, validate_rule_query

        return isinstance(validate_rule_query(schema_object, rule, None), ValidatedSql)
    return rule.metric == "rowCount" and rule.query is None and rule.type in (None, "library")


def _speaks_of_rows(rule: Quality) -> bool:
    return rule.metric == "rowCount" or rule.type in ("sql", "text")


def _is_dated(prop: Property) -> bool:
    return prop.logical_type in _DATED or (prop.physical_type or "").lower()[:4] in ("date", "time")


def _is_ordinary(contract: Contract, schema_object: SchemaObject, prop: Property) -> bool:
    kind = _kind(prop)
    if kind is None:
        return False
    is_evaluated = _ordinary.get((contract.api_version, kind))
    if is_evaluated is None:
        bare = schema_object.model_copy(update={"properties": [prop], "quality": []})
        is_evaluated = _ordinary[contract.api_version, kind] = _is_evaluated(contract, bare)
        if len(_ordinary) > _MAX_CACHED:
            _ordinary.clear()
    return is_evaluated


# Caches of this process, limited in size.
_MAX_CACHED = 10_000
_ordinary: dict[tuple[object, Kind], bool] = {}
_ordinary_objects: dict[tuple[str, tuple[str, ...]], bool] = {}
# Keys of a column -> those that affect evaluation; empty if the column is nested.
_decisive: dict[tuple[str, ...], tuple[str, ...]] = {}


def _kind(prop: Property) -> Kind | None:
    """Return the cache key of a column's evaluation, or None if it cannot be cached."""
    keys = tuple(prop.place.keys)
    decisive = _decisive.get(keys)
    if decisive is None:
        if len(_decisive) > _MAX_CACHED:
            _decisive.clear()
        nested = any(part in keys for part in _PARTS)
        decisive = _decisive[keys] = () if nested else ("", *sorted({*keys} - _IRRELEVANT_KEYS))
    if not decisive or prop.enum is not None:
        return None
    plain = prop.logical_type, prop.physical_type, decisive, prop.required, prop.unique, prop.primary_key
    options = prop.logical_type_options
    if options is None and not prop.quality:
        return plain
    parts: list[object] = [*plain]
    if options is not None:
        parts += [(key, repr(getattr(options, key))) for key in sorted(options.model_fields_set - {"place"})]
    for rule in prop.quality:
        operators = rule.operators()
        if rule.metric not in _STANDALONE_METRICS or rule.place.keys.keys() - _STANDALONE_KEYS - {
            name for name, _ in operators
        }:
            return None
        parts.append((rule.metric, rule.unit, tuple((name, repr(value)) for name, value in operators)))
    return tuple(parts)


# Shared by the gate commands: rules, policy, and base.


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Findings of a run, and with a base the classified changes, which are among the findings too.

    `root` is the registry's folder; file names in findings are relative to it.
    """

    linted: LintResult
    root: Path
    comparison: Comparison | None = None


def lint_registry(
    paths: list[Path],
    policy_file: Path | None,
    today: date,
    processes: int,
    *,
    official: bool = False,
    cache_folder: Path | None = None,
) -> LintResult:
    """Lint the contracts at these paths and their subscriptions.

    With `cache_folder`, results of contracts that have not changed are taken from there, and saved there;
    the findings are the same. It is not used if it is in a registry or repository of the paths.

    Raises UsageError, with all findings, for an invalid policy. With `official`, the official schema of the
    standard is checked too; raises MissingTool if that of a contract's version is not installed.
    """
    rules = load_rules()
    root = registry_root(paths[0])
    policy_text = read_policy_text(root, policy_file)
    policy = parse_policy(policy_text, rules)
    contracts, _ = split(paths, root)
    schema = official_schema(official)

    def open_cache() -> FolderCache | None:
        if cache_folder is None:
            return None
        # Imported here: a few contracts are evaluated without it.
        from dq.operations.gate_cache import open_cache

        return open_cache(cache_folder, root, paths, policy_text, schema, today)

    return lint_paths(
        contracts,
        root=root,
        rules=rules,
        policy=policy,
        today=today,
        processes=processes,
        unenforced=unenforced,
        subscriptions=make_gather(root, paths, today),
        official=schema,
        cache=open_cache,
    )


def official_schema(enabled: bool) -> OfficialSchema | None:
    """Return the official schema of the standard, or None if not enabled."""
    if not enabled:
        return None
    # Imported here: jsonschema takes time to start.
    from dq.validators.official import installed_schema

    return installed_schema()
