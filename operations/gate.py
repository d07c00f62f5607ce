"""The gate of a registry: the rules, the policy, contracts judged by them, and what no check evaluates."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dq.contracts.access.files import POLICY_FILE, Absent, exists
from dq.contracts.access.files import read as read_file
from dq.contracts.diff import name_of
from dq.contracts.metrics import measure_named
from dq.contracts.model import Contract, Property, Quality, SchemaObject
from dq.contracts.outcome import Finding, Severity, Unreadable, UsageError
from dq.dataquality.checks import built_in
from dq.dataquality.clauses.clause import NoResult
from dq.dataquality.clauses.coverage import SILENT, State, accounts, foreseen, service_levels, untyped
from dq.dataquality.clauses.kind import Shelf, clauses_of
from dq.dataquality.model.run_context import Unusable, comparison
from dq.operations.runtime.context import registry_root
from dq.operations.subscriptions import gathered, split
from dq.validators.lint import Linted, Rules, lint_paths, rules_of
from dq.validators.policy.policy import DEFAULT, Policy

if TYPE_CHECKING:
    from dq.validators.compat.classified_change import Comparison
    from dq.validators.context import OfficialSchema


_MEND = "'dq explain' on the file lists what becomes of every clause."
# Keys that decide nothing, or only by the column's name.
_ASIDE = frozenset(SILENT) - {"properties", "items", "map", "quality", "relationships", "logicalTypeOptions"}
_PARTS = ("properties", "items", "map", "relationships")
# What a quality rule of a column may hold to be judged without the object around it.
_ALONE = frozenset({"metric", "type", "unit", "dimension", "severity", "name", "description", "id", "tags"})
_PLAIN_RULE = _ALONE - {"unit"} | {"query"}
_ALONE_METRICS = ("nullValues",)
_OF_DATES = ("latency", "retention")
_DATED = ("date", "timestamp", "time")

Kind = tuple[object, ...]


def unenforced(contract: Contract) -> Iterator[Finding]:
    """The clauses of a contract that no check evaluates, with the reason, in the order of the file."""
    # A service level that speaks of every object is not evaluated once, whatever it is of each.
    told: set[tuple[str, str]] = set()
    for one in contract.objects:
        small = _without_ordinary(contract, one)
        clauses = foreseen(contract, small.object, _of_levels() if small.levels_alone else built_in())
        # Whether another contract has what is meant is told where all of them are known.
        elsewhere = {each.path for each in clauses if isinstance(each.ask, NoResult) and each.ask.outside}
        listed = service_levels if small.levels_alone else accounts
        for account in listed(contract, small.object, clauses):
            known = (account.path, account.reason)
            if account.path in elsewhere or account.state is not State.NOT_EVALUATED:
                continue
            if known not in told:
                told.add(known)
                message = f"{account.clause} is not evaluated: {account.reason}."
                yield Finding("unenforced", Severity.WARNING, message, _MEND, account.at, account.path)


def _is_evaluated(contract: Contract, alone: SchemaObject) -> bool:
    """Whether all that an object says by itself is evaluated; service levels are not asked."""
    quiet = contract.model_copy(update={"sla_properties": [], "sla_default_element": None})
    states = [account.state for account in accounts(quiet, alone, clauses_of(quiet, alone, built_in()))]
    return State.NOT_EVALUATED not in states


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is left of an object to be asked; `levels_alone`: only what service levels say of it."""

    object: SchemaObject
    levels_alone: bool = False


@cache
def _of_levels() -> Shelf:
    return {name: built_in()[name] for name in _OF_DATES}


def _without_ordinary(contract: Contract, one: SchemaObject) -> _Rest:
    """The object without the columns of which it is known that all they promise is evaluated.

    Columns stay where something else speaks of them: a key of several, a service level, a rule of the object.
    """
    rules = [rule for rule in one.quality if not _is_ordinary_rule(one, rule)]
    if len(one.properties) < 4 or one.relationships or not all(map(_speaks_of_rows, rules)):
        return _Rest(one)
    inside = [rule for prop in one.walk() for rule in prop.quality]
    if any(rule.custom_properties for rule in (*one.quality, *inside)) or any(map(measure_named, inside)):
        # It may name any other column: to group by or compare with, in its scope, or for the age of rows.
        return _Rest(one)
    if any(rule.type == "sql" for rule in (*one.quality, *inside)) and untyped(contract, one):
        # It may read any other column, which must be declared then.
        return _Rest(one)
    levels = contract.sla_default_element, *(sla.element for sla in contract.sla_properties)
    named = " ".join(text for text in levels if text)
    # A service level that names no column is told which of them are dated.
    any_dated = any(
        "." not in part
        for sla in contract.sla_properties
        if name_of(sla.property) in _OF_DATES
        for part in (sla.element or contract.sla_default_element or "").split(",")
    )
    odd = [prop for prop in one.properties if not _is_ordinary(contract, one, prop)]
    kept = [
        prop
        for prop in one.properties
        if (any_dated and _is_dated(prop)) or (prop.name or "") in named or any(prop is each for each in odd)
    ]
    small = one.model_copy(update={"properties": kept, "quality": rules})
    return _Rest(small, not odd and not rules and _is_ordinary_object(contract, one))


def _is_ordinary_object(contract: Contract, one: SchemaObject) -> bool:
    """Whether all is evaluated that the object says of itself, without its columns and rules."""
    if one.custom_properties:
        return False
    known = (contract.api_version, tuple(one.place.keys))
    if known not in _ordinary_objects:
        if len(_ordinary_objects) > _MOST:
            _ordinary_objects.clear()
        alone = one.model_copy(update={"properties": [], "quality": []})
        _ordinary_objects[known] = _is_evaluated(contract, alone)
    return _ordinary_objects[known]


def _is_ordinary_rule(one: SchemaObject, rule: Quality) -> bool:
    """Whether a rule of an object is a plain count of rows, or a query that the guard lets pass."""
    operators = rule.operators()
    if rule.place.keys.keys() - _PLAIN_RULE - {name for name, _ in operators}:
        return False
    try:
        comparison(operators)
    except Unusable:
        return False
    if rule.type == "sql" and rule.metric is None and (rule.query or "").strip():
        # Only who has a SQL rule pays for the parser.
        from dq.contracts.sql.guard import Guarded, query

        return isinstance(query(one, rule, None), Guarded)
    return rule.metric == "rowCount" and rule.query is None and rule.type in (None, "library")


def _speaks_of_rows(rule: Quality) -> bool:
    return rule.metric == "rowCount" or rule.type in ("sql", "text")


def _is_dated(prop: Property) -> bool:
    return prop.logical_type in _DATED or (prop.physical_type or "").lower()[:4] in ("date", "time")


def _is_ordinary(contract: Contract, one: SchemaObject, prop: Property) -> bool:
    kind = _kind(prop)
    if kind is None:
        return False
    known = _ordinary.get((contract.api_version, kind))
    if known is None:
        alone = one.model_copy(update={"properties": [prop], "quality": []})
        known = _ordinary[contract.api_version, kind] = _is_evaluated(contract, alone)
        if len(_ordinary) > _MOST:
            _ordinary.clear()
    return known


# What was found out in this process, up to so many kinds of columns.
_MOST = 10_000
_ordinary: dict[tuple[object, Kind], bool] = {}
_ordinary_objects: dict[tuple[str, tuple[str, ...]], bool] = {}
# The keys that a column writes -> those that decide something; nothing where a part of it is nested.
_decisive: dict[tuple[str, ...], tuple[str, ...]] = {}


def _kind(prop: Property) -> Kind | None:
    """All that decides what becomes of a column by itself; None where that cannot be told so easily."""
    keys = tuple(prop.place.keys)
    decisive = _decisive.get(keys)
    if decisive is None:
        if len(_decisive) > _MOST:
            _decisive.clear()
        nested = any(part in keys for part in _PARTS)
        decisive = _decisive[keys] = () if nested else ("", *sorted({*keys} - _ASIDE))
    if not decisive or prop.enum is not None:
        return None
    plain = prop.logical_type, prop.physical_type, decisive, prop.required, prop.unique, prop.primary_key
    options = prop.logical_type_options
    if options is None and not prop.quality:
        return plain
    made: list[object] = [*plain]
    if options is not None:
        made += [(key, repr(getattr(options, key))) for key in sorted(options.model_fields_set - {"place"})]
    for rule in prop.quality:
        operators = rule.operators()
        if rule.metric not in _ALONE_METRICS or rule.place.keys.keys() - _ALONE - {
            name for name, _ in operators
        }:
            return None
        made.append((rule.metric, rule.unit, tuple((name, repr(value)) for name, value in operators)))
    return tuple(made)


# What the gate commands share: the rules on the shelf, the policy, and the base to compare with.


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The findings of a run, and with a base the judged changes, which are among the findings too.

    `root` is the registry's folder, from which the findings name files.
    """

    linted: Linted
    root: Path
    comparison: Comparison | None = None


def judge(
    paths: list[Path], policy_file: Path | None, today: date, processes: int, *, official: bool = False
) -> Linted:
    """Everything that is wrong with the contracts at these paths, and with who consumes them.

    A policy that cannot be understood is a mistake of configuration: what a gate without its policy says
    is worth nothing. Raises UsageError for it, with every finding. With `official`, the standard's own schema
    judges too; MissingTool is raised where that of a contract's version is not installed.
    """
    rules = rules_of()
    root = registry_root(paths[0])
    policy = policy_of(written(root, policy_file), rules)
    contracts, _ = split(paths, root)
    return lint_paths(
        contracts,
        root=root,
        rules=rules,
        policy=policy,
        today=today,
        processes=processes,
        unenforced=unenforced,
        subscriptions=gathered(root, paths),
        official=official_schema(official),
    )


def official_schema(wanted: bool) -> OfficialSchema | None:
    """The standard's own schema, from its package, where its opinion is wanted."""
    if not wanted:
        return None
    # Imported here: jsonschema takes time to start.
    from dq.validators.official import installed_schema

    return installed_schema()


def written(root: Path, file: Path | None) -> tuple[str, bytes] | None:
    """The policy as it stands on disk, with the name that messages give it; None when there is none."""
    if file is None:
        return (POLICY_FILE, read_file(POLICY_FILE, root=root)) if exists(POLICY_FILE, root) else None
    name = str(file.relative_to(root) if file.is_relative_to(root) else file)
    try:
        return name, read_file(file)
    except Absent as error:
        raise Unreadable(f"{file} does not exist.", "Check the path given as --policy.") from error


def policy_of(written: tuple[str, bytes] | None, rules: Rules) -> Policy:
    """The policy in a named text; the default where there is none. Raises UsageError for its mistakes.

    A schema of custom properties that cannot be used is left out: its finding is one of every run.
    """
    if written is None:
        return DEFAULT
    # Imported here: many registries have no policy, and its forms take time to make.
    from dq.validators.policy.file import read

    name, data = written
    policy, wrong = read(data, name, rules, _rules_of_changes() if b"waivers" in data else ())
    schemas = tuple(one for one in wrong if one.path.startswith("customProperties."))
    others = [one for one in wrong if one not in schemas]
    if others:
        raise UsageError("the policy cannot be understood:", details=[str(one) for one in others])
    return replace(policy, unusable_schemas=schemas) if schemas else policy


def _rules_of_changes() -> Collection[str]:
    """The rules of compatibility, which only a waiver can name; all that judges changes comes with them."""
    from dq.validators.compat.classified_change import RULES

    return RULES
