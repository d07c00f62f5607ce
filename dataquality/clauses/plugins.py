"""Checks of other packages: found by the name that they register, and loaded when a rule names them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from dq.contracts.metrics import MEASURES
from dq.contracts.outcome import nearest
from dq.dataquality.clauses.kind import Values
from dq.dataquality.model.column import Column
from dq.dataquality.model.metric import Call, Failure, Metric, Number, one_number
from dq.dataquality.model.predicate import Predicate
from dq.dataquality.model.run_context import Unusable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Packages register their checks under this group of entry points.
GROUP = "dq.checks"


@dataclass(frozen=True, slots=True)
class Given:
    """What a rule hands to its check.

    `name` is the object's. `column` is that of the property that the rule stands on; None for a rule on an
    object. `arguments` are as the contract has them: texts, numbers, flags, lists and mappings.
    """

    name: str
    column: Column | None
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Broken:
    """A check that each row keeps or breaks by itself, counted in the pass that all checks share.

    `predicate` is Spark SQL that is true for a row that breaks it; NULL breaks nothing. `columns` are those
    that it reads: without one of them the rule is an error. Of a failed rule, rows are shown.
    """

    predicate: str
    columns: tuple[Column, ...]
    complaint: str = "break it"


@dataclass(frozen=True, slots=True)
class Question:
    """A check whose number comes out of metrics, which share the pass; see `dq.dataquality.model.metric`."""

    metrics: tuple[Metric, ...]
    number: Callable[[Values], Number]


@dataclass(frozen=True, slots=True)
class Measure:
    """A check that reads the rows in its own way, and gives one number. It costs the jobs that it starts."""

    number: Callable[[DataFrame], Number]


Answer = Broken | Question | Measure
Check = Callable[[Given], Answer]
"""What a package registers; its docstring is its page. It raises ValueError for a rule that it cannot use."""


def installed() -> dict[str, list[EntryPoint]]:
    """The checks that are registered, by name, without loading any; two packages may claim one name."""
    found: dict[str, list[EntryPoint]] = {}
    for one in sorted(entry_points(group=GROUP), key=lambda one: (one.name, package(one))):
        claims = found.setdefault(one.name, [])
        # One that is installed twice, here and in a folder further on, is the same.
        if (package(one), one.value) not in [(package(each), each.value) for each in claims]:
            claims.append(one)
    return found


def package(one: EntryPoint) -> str:
    """The name of the distribution that registers it."""
    return str(one.dist.metadata["Name"]) if one.dist else "an unknown package"


def load(name: str) -> Check:
    """The check of this name. Raises Unusable, with the reason in one line, when there is none to be had.

    A contract can name nothing but what an installed package has registered.
    """
    known = installed()
    claims = known.get(name, [])
    if not claims:
        near = nearest(name, [*known, *MEASURES])
        there = f"; there are: {', '.join([*known, *MEASURES])}"
        there = f"; did you mean {near!r}?" if near else there
        raise Unusable(f"no installed package registers a check {name!r}{there}")
    if len(claims) > 1:
        raise Unusable(f"the check {name!r} is claimed by {' and '.join(package(one) for one in claims)}")
    try:
        found = claims[0].load()
    except (Exception, SystemExit) as error:  # whatever a foreign module does when it is imported
        raise Unusable(
            f"the check {name!r} of {package(claims[0])} cannot be loaded: {_said(error)}"
        ) from error
    if not callable(found):
        raise Unusable(f"the check {name!r} of {package(claims[0])} is no function")
    return found  # type: ignore[no-any-return]  # what it gives is looked at when it is called


def ask(name: str, given: Given) -> Answer:
    """What the check makes of a rule. Raises Unusable, with the reason in one line."""
    check = load(name)
    try:
        answer = check(given)
    except (Exception, SystemExit) as error:  # whatever a foreign function does
        raise Unusable(f"the check {name!r} refuses the rule: {_said(error)}") from error
    if not isinstance(answer, Broken | Question | Measure):
        raise Unusable(f"the check {name!r} gives a {type(answer).__name__}, not Broken, Question or Measure")
    return answer


def measured(name: str, given: Given, how: Measure, where: Predicate | None) -> Call:
    """The metric of a Measure: two rules that say the same ask once."""
    said = json.dumps([name, given.name, str(given.column), given.arguments], sort_keys=True, default=str)
    return Call(name, said, how.number, where)


_CREDENTIALS = re.compile(r"://[^/\s@]+@")


def _said(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {_CREDENTIALS.sub('://***@', text)[:200]}".rstrip(": ")


def number_of(name: str, question: Question | None, values: Values) -> Number | Failure:
    """The number of a rule out of the answers to its metrics; without a question, of its only metric."""
    try:
        found = question.number(values) if question else next(iter(values.values()))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a foreign function does
        return Failure(f"the check {name!r} raised {type(error).__name__}")
    return one_number(found, f"the check {name!r}")


def luhn(given: Given) -> Broken:
    """Every text is digits that end in the check digit of Luhn's algorithm, as numbers of cards do.

    It stands on a property and takes no arguments. NULL breaks nothing; a blank or a dash does.
    """
    if given.column is None or given.arguments:
        raise ValueError("it stands on a property and takes no arguments")
    column = given.column
    breaks = column.rows_where(lambda value: f"NOT luhn_check(CAST({value} AS STRING))")
    return Broken(breaks, (column,), "do not end in their check digit")
