"""How promises stand, as `dq status` shows it: one line or one table for many, and all of it for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dq.cli import output
from dq.dataquality.delivery.compliance import GroupStanding, Standing, beside, percent


def describe_groups(groups: Sequence[GroupStanding]) -> None:
    """A line for each group."""
    header = ("", "products", "promises", "in time", "cycles", "budgets exhausted")
    output.table(header, [_cells(one) for one in groups])


def _cells(one: GroupStanding) -> list[str]:
    counted = f"{one.good} of {one.good + one.bad}"
    return [one.name, str(one.products), str(one.promises), percent(one.attainment), counted, str(one.burnt)]


def as_markdown(standings: Iterable[Standing], groups: Sequence[GroupStanding], incidents: int) -> str:
    """The same as a table of Markdown; of groups where there are any."""
    from dq.contracts.escaping import markdown_text
    from dq.validators.reports.markdown import table

    if groups:
        header = ["", "products", "promises", "in time", "cycles", "budgets exhausted"]
        rows = [[markdown_text(cell) for cell in _cells(one)] for one in groups]
    else:
        header = ["promise", "in time", "promised", "budget", "more"]
        rows = [
            [
                markdown_text(f"{one.slo.contract.key}/{one.slo.id}"),
                percent(one.budget.attainment),
                markdown_text(one.slo.delivery.objective),
                markdown_text(one.budget.line()),
                markdown_text(beside(one)),
            ]
            for one in standings
        ]
    return f"## Deliveries\n\n{table(header, rows)}\n\nOpen incidents: {incidents}\n"
