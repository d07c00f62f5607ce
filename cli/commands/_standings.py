"""How promises stand, as `dq status` shows it: one line or one table for many, and all of it for machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from dq.alerts.handling.summary import incident_as_row
from dq.alerts.incident import Incident
from dq.cli.terminal import output
from dq.contracts.slo import Slo
from dq.dataquality.delivery.history.standing import GroupStanding, Standing
from dq.dataquality.delivery.history.standing_facts import beside, cycle_as_dict, percent, promise_as_dict
from dq.dataquality.results import check_runs
from dq.dataquality.results.audits import StagedRun


class StatusFormat(StrEnum):
    """How `dq status` prints."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class Grouping(StrEnum):
    """What `dq status` shows one line for."""

    PROMISE = "promise"
    PRODUCT = "product"
    DOMAIN = "domain"
    ALL = "all"


NAMED: dict[Grouping, Callable[[Slo], str]] = {
    Grouping.PRODUCT: lambda slo: slo.contract.data_product or slo.contract.key,
    Grouping.DOMAIN: lambda slo: slo.contract.domain or "(none)",
    Grouping.ALL: lambda _: "all",
}


def describe(groups: Sequence[GroupStanding]) -> None:
    """A line for each group."""
    header = ("", "products", "promises", "in time", "cycles", "budgets exhausted")
    output.table(header, [_cells(one) for one in groups])


def _cells(one: GroupStanding) -> list[str]:
    counted = f"{one.good} of {one.good + one.bad}"
    return [one.name, str(one.products), str(one.promises), percent(one.attainment), counted, str(one.burnt)]


def as_markdown(standings: Iterable[Standing], groups: Sequence[GroupStanding], incidents: int) -> str:
    """The same as a table of Markdown; of groups where there are any."""
    from dq.validators.reports.markdown import escaped, table

    if groups:
        header = ["", "products", "promises", "in time", "cycles", "budgets exhausted"]
        rows = [[escaped(cell) for cell in _cells(one)] for one in groups]
    else:
        header = ["promise", "in time", "promised", "budget", "more"]
        rows = [
            [
                escaped(f"{one.slo.contract.key}/{one.slo.id}"),
                percent(one.budget.attainment),
                escaped(one.slo.delivery.objective),
                escaped(one.budget.line()),
                escaped(beside(one)),
            ]
            for one in standings
        ]
    return f"## Deliveries\n\n{table(header, rows)}\n\nOpen incidents: {incidents}\n"


def audit_as_dict(one: StagedRun) -> dict[str, object]:
    """An audit for machines, with what kept it back."""
    return {
        "contract": one.contract,
        "version": one.version,
        "object": one.object,
        "scope": one.scope,
        "staged": one.staged,
        "verdict": one.verdict,
        "at": one.at.isoformat(),
        "counts": {str(status): number for status, number in one.counts.items()},
        "broken": [{"what": what, "message": message} for what, message in one.broken],
    }


def as_dict(
    standings: list[Standing],
    quality: Mapping[tuple[str, str], list[check_runs.Line]],
    incidents: list[Incident],
) -> dict[str, object]:
    """Everything for machines."""
    return {
        "deliveries": [
            {**promise_as_dict(one), "cycles": [cycle_as_dict(kept) for kept in one.cycles]}
            for one in standings
        ],
        "checks": [line.as_dict() for lines in quality.values() for line in lines],
        "incidents": [incident_as_row(one) for one in incidents],
    }
