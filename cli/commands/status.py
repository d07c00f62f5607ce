"""How promises stand, as `dq status` shows it: one line or one table for many, and all of it for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from dq.alerts import suppression
from dq.cli import output
from dq.cli.context import PATHS
from dq.contracts.outcome import BROKEN, KEPT, CycleStatus, Status
from dq.contracts.slo import Slo
from dq.dataquality.delivery.compliance import GroupStanding, Standing, beside, percent
from dq.dataquality.delivery.cycle import OPEN, Kept, disagreeing
from dq.dataquality.delivery.notify import local_time, span
from dq.dataquality.results import StagedRun
from dq.operations import alerting
from dq.operations.runtime.context import here
from dq.operations.status import Grouping, PromisesStanding, Quality, chosen_by, standings


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


# How the last cycles are drawn, oldest first.
_SIGNS = {
    CycleStatus.ON_TIME: ("●", "green"),
    CycleStatus.ON_TIME_IN_GRACE: ("●", "green"),
    CycleStatus.LATE: ("◐", "yellow"),
    CycleStatus.MISSING: ("○", "red"),
    CycleStatus.NEVER: ("○", "red"),
    CycleStatus.EXCUSED: ("-", "blue"),
    CycleStatus.UNKNOWN: ("?", "yellow"),
    CycleStatus.WITHDRAWN: ("-", "blue"),
}
_DRAWN = 30


def command(
    paths: list[Path] = PATHS,
    by: Grouping = typer.Option(
        Grouping.PROMISE, "--by", help="Group the lines: one per SLO, product, domain, …"
    ),
    product: str = typer.Option(None, "--product", help="Only this data product, or contract by its key."),
    domain: str = typer.Option(None, "--domain", help="Only contracts of this domain."),
    as_of: str = output.AS_OF,
    format: output.PageFormat = output.PAGE_FORMAT,
) -> None:
    """Show SLO status, error budgets, failed checks and open incidents.

    For each SLO: share of deliveries on time, error budget in misses, current streak, trend against the
    window before, usual arrival time, and share of the time in which the newest due delivery was
    available.

    Exit codes: 0 shown, 2 no such product or domain, 3 something could not be read.

    Example: dq status registry --by domain --format markdown
    """
    places = paths or [Path()]
    standing = standings(here(as_of, places), places, by, chosen_by(product, domain))
    show(standing, format, by)
    raise typer.Exit(3 if standing.findings else 0)


def show(found: PromisesStanding, form: output.PageFormat, by: Grouping = Grouping.PROMISE) -> None:
    """Shows how the promises stand, each by itself or in groups."""
    output.notes(found.findings)
    if form is output.PageFormat.MARKDOWN:
        output.block(as_markdown(found.deliveries, found.groups, len(found.incidents)))
    elif form is output.PageFormat.JSON:
        output.as_json(found.as_dict())
    elif by is not Grouping.PROMISE:
        describe_groups(found.groups)
        output.line(f"Open incidents: {len(found.incidents)}")
    else:
        describe(found)
        _describe_withdrawn(found.withdrawn)
    if form is output.PageFormat.TEXT and found.outstanding:
        output.line()
        output.line(output.styled("Alerts that are not there", bold=True))
        for one in found.outstanding:
            output.line(f"  {alerting.told(one)}")


def _describe_withdrawn(cycles: Sequence[Kept]) -> None:
    if cycles:
        output.line()
        output.line(output.styled("Withdrawn", bold=True))
    for (contract, slo, reason), times in Counter(
        (one.cycle.contract, one.cycle.slo, one.reason) for one in cycles
    ).items():
        output.line(f"  {contract}/{slo}: {times} {'delivery' if times == 1 else 'deliveries'}. {reason}")


def describe(found: PromisesStanding) -> None:
    """Everything on one screen, for people."""
    _deliveries(found.deliveries)
    _checks(found.checks)
    _audits(found.audited)
    output.line()
    output.line(output.styled("Open incidents", bold=True))
    if not found.incidents:
        output.line("  none")
    for incident in found.incidents:
        since = f"{incident.opened_at:%Y-%m-%d %H:%M}Z"
        said = [f"since {since}", f"{len(incident.open_subjects)} open"]
        if incident.acked_by:
            said.append(f"{incident.acked_by} is on it")
        if incident.silenced_until and incident.silenced_until > found.at:
            said.append(f"silenced {suppression.said(incident)}")
        output.line(f"  {incident.severity}: {incident.title} ({', '.join(said)})")
    if not found.contracts:
        output.line("No contract could be read.")


def _deliveries(standings: Sequence[Standing]) -> None:
    output.line(output.styled("Deliveries", bold=True) + "  ● in time  ◐ late  ○ missing  ? unknown")
    if not standings:
        output.line("  no contract promises a delivery")
    for one in standings:
        drawn = "".join(_sign(kept.status) for kept in one.cycles[-_DRAWN:])
        reached = percent(one.budget.attainment)
        output.line(f"  {one.slo.contract.key}/{one.slo.id}  {drawn}")
        output.line(f"      {reached} in time, promised {float(one.slo.objective):.0%}: {one.budget.line()}")
        if said := beside(one):
            output.line(f"      {said}")
        for kept in one.cycles:
            if kept.status.bad:
                how = _lateness(one.slo, kept)
                output.line(f"      {kept.status} {local_time(one.slo, kept.cycle.due_at)}{how}")
        for kept in one.cycles[-_DRAWN:]:
            for said in _remarks(one.slo, kept):
                output.line(f"      {local_time(one.slo, kept.cycle.due_at)}: {said}")


def _remarks(slo: Slo, kept: Kept) -> list[str]:
    """What is to be said of a cycle beside its status."""
    said = []
    if kept.arriving_since is not None and kept.status in OPEN:
        said.append(f"data is still being written, since {local_time(slo, kept.arriving_since)}")
    if kept.revoked and kept.gone_since is not None:
        said.append(f"it was taken away again, gone since {local_time(slo, kept.gone_since)}")
    if kept.anew_at is not None:
        said.append(f"it was delivered anew {local_time(slo, kept.anew_at)}")
    others = [
        f"{one.source} {local_time(slo, one.delivered_at)}"
        for one in disagreeing(kept.claims, kept.source)
        if one.delivered_at is not None
    ]
    if others and kept.delivered_at is not None:
        at = local_time(slo, kept.delivered_at)
        said.append(f"the sources disagree: {kept.source} {at}, {', '.join(others)}")
    return said


def _lateness(slo: Slo, kept: Kept) -> str:
    if kept.delivered_at is None:
        return ""
    late = span(kept.delivered_at - kept.cycle.due_at)
    return f", delivered {local_time(slo, kept.delivered_at)} ({late} after it was due)"


def _sign(status: CycleStatus) -> str:
    sign, color = _SIGNS.get(status, ("·", "white"))
    return output.styled(sign, fg=color)


def _checks(quality: Quality) -> None:
    output.line()
    output.line(output.styled("Data", bold=True))
    checked = {key: lines for key, lines in quality.items() if lines}
    if not checked:
        output.line("  nothing has been checked yet")
    for (contract, one), lines in checked.items():
        counts = Counter(line.status for line in lines)
        said = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
        scopes = len({line.scope for line in lines})
        output.line(f"  {contract}/{one}: {said} in {scopes} {'scope' if scopes == 1 else 'scopes'}")
        for line in lines:
            if line.status in (Status.FAIL, Status.ERROR):
                what = f"{line.property} {line.check}".strip()
                sign = output.mark(None if line.status is Status.ERROR else False)
                output.line(f"      {sign} {line.scope}  {what}: {line.observed}, promised {line.allowed}")


def _audits(audited: Sequence[StagedRun]) -> None:
    """What `dq publish --audit` found of what was staged: what it held back, and how much it let through."""
    if not audited:
        return
    output.line()
    output.line(output.styled("Audits", bold=True))
    kept = Counter((one.contract, one.object) for one in audited if one.verdict == KEPT)
    for (contract, one), scopes in kept.items():
        output.line(f"  {contract}/{one}: {scopes} {'scope' if scopes == 1 else 'scopes'} kept the contract")
    for audit in audited:
        if audit.verdict != KEPT:
            sign = output.mark(False if audit.verdict == BROKEN else None)
            said = f"{audit.verdict}, {audit.at:%Y-%m-%d %H:%M}Z, staged in {audit.staged}"
            output.line(f"  {sign} {audit.contract}/{audit.object} {audit.scope}: {said}")
            for _, message in audit.broken:
                output.line(f"      {message}")
