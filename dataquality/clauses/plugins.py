"""Checks of other packages, registered as entry points and loaded when a rule names them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from dq.contracts.agreement import AGREEMENTS
from dq.contracts.metrics import METRICS
from dq.contracts.outcome import nearest
from dq.dataquality.clauses.kind import Values
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Call, Failure, Metric, Number, require_number
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.run_context import Unusable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Packages register their checks under this group of entry points.
GROUP = "dq.checks"


@dataclass(frozen=True, slots=True)
class RuleInput:
    """Input of a check: the rule's object, column and arguments.

    `name` is the object's name. `column` is the column of the rule's property, or None for a rule on an
    object. `arguments` are those of the contract: strings, numbers, booleans, lists and mappings.
    """

    name: str
    column: Column | None
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Broken:
    """A row-level check, counted in the pass that all checks share.

    `predicate` is Spark SQL that is true for a failing row; NULL passes. `columns` are the columns it reads;
    the rule is an error if one is missing. Samples of failing rows are shown.
    """

    predicate: str
    columns: tuple[Column, ...]
    complaint: str = "violate it"


@dataclass(frozen=True, slots=True)
class Question:
    """A check whose number is computed from metrics in the shared pass; see `dq.dataquality.model.metric`."""

    metrics: tuple[Metric, ...]
    number: Callable[[Values], Number]


@dataclass(frozen=True, slots=True)
class Measure:
    """A check that computes one number from the rows with its own Spark jobs."""

    number: Callable[[DataFrame], Number]


Answer = Broken | Question | Measure
Check = Callable[[RuleInput], Answer]
"""A function that a package registers; its docstring is its page. Raises ValueError for an invalid rule."""


def installed() -> dict[str, list[EntryPoint]]:
    """Return the registered checks by name without loading them; several packages may register one name."""
    claims_by_name: dict[str, list[EntryPoint]] = {}
    for entry_point in sorted(
        entry_points(group=GROUP), key=lambda entry_point: (entry_point.name, package(entry_point))
    ):
        claims = claims_by_name.setdefault(entry_point.name, [])
        # A package may be installed in several folders of the path.
        if (package(entry_point), entry_point.value) not in [
            (package(claim), claim.value) for claim in claims
        ]:
            claims.append(entry_point)
    return claims_by_name


def package(entry_point: EntryPoint) -> str:
    """Return the name of the distribution that registers the entry point."""
    return str(entry_point.dist.metadata["Name"]) if entry_point.dist else "an unknown package"


def load(name: str) -> Check:
    """Load the check of this name. Raises Unusable, with a one-line reason, if that is not possible.

    Contracts can only name checks that an installed package has registered.
    """
    checks = installed()
    claims = checks.get(name, [])
    if not claims:
        names = [*checks, *METRICS, *AGREEMENTS]
        near = nearest(name, names)
        suggestion = f"; available: {', '.join(names)}"
        suggestion = f"; did you mean {near!r}?" if near else suggestion
        raise Unusable(f"no installed package registers a check {name!r}{suggestion}")
    if len(claims) > 1:
        raise Unusable(
            f"the check {name!r} is registered by {' and '.join(package(claim) for claim in claims)}"
        )
    try:
        check = claims[0].load()
    except (Exception, SystemExit) as error:  # whatever a foreign module does when it is imported
        raise Unusable(
            f"the check {name!r} of {package(claims[0])} cannot be loaded: {_error_text(error)}"
        ) from error
    if not callable(check):
        raise Unusable(f"the check {name!r} of {package(claims[0])} is not a function")
    return check  # type: ignore[no-any-return]  # what it gives is looked at when it is called


def apply_check(name: str, rule_input: RuleInput) -> Answer:
    """Call the check with a rule. Raises Unusable, with a one-line reason."""
    check = load(name)
    try:
        answer = check(rule_input)
    except (Exception, SystemExit) as error:  # whatever a foreign function does
        raise Unusable(f"the check {name!r} refuses the rule: {_error_text(error)}") from error
    if not isinstance(answer, Broken | Question | Measure):
        raise Unusable(f"the check {name!r} gives a {type(answer).__name__}, not Broken, Question or Measure")
    return answer


def call_metric(name: str, rule_input: RuleInput, measure: Measure, where: Predicate | None) -> Call:
    """Return the metric of a Measure; equal rules share one metric."""
    identity = json.dumps(
        [name, rule_input.name, str(rule_input.column), rule_input.arguments], sort_keys=True, default=str
    )
    return Call(name, identity, measure.number, where)


_CREDENTIALS = re.compile(r"://[^/\s@]+@")


def _error_text(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {_CREDENTIALS.sub('://***@', text)[:200]}".rstrip(": ")


def number_of(name: str, question: Question | None, values: Values) -> Number | Failure:
    """Return the number of a rule from the values of its metrics; without a question, of its only metric."""
    try:
        number = question.number(values) if question else next(iter(values.values()))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a foreign function does
        return Failure(f"the check {name!r} raised {type(error).__name__}")
    return require_number(number, f"the check {name!r}")


def luhn(rule_input: RuleInput) -> Broken:
    """Every text is digits that end in the check digit of Luhn's algorithm, as numbers of cards do.

    It stands on a property and takes no arguments. NULL breaks nothing; a blank or a dash does.
    """
    if rule_input.column is None or rule_input.arguments:
        raise ValueError("it applies to a property and takes no arguments")
    column = rule_input.column
    breaks = column.rows_where(lambda value: f"NOT luhn_check(CAST({value} AS STRING))")
    return Broken(breaks, (column,), "do not end in their check digit")
