"""dq status"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import typer
from sqlalchemy import Connection

from dq.alerts import silences
from dq.alerts.incident import Incident
from dq.alerts.ledger import unresolved
from dq.alerts.sending import outstanding
from dq.cli.alerting import sending
from dq.cli.commands import _standings
from dq.cli.commands._standings import NAMED, Grouping, StatusFormat
from dq.cli.loading.contracts import PATHS, Loaded, load, slos
from dq.cli.loading.holding import settled
from dq.cli.loading.refusal import as_row
from dq.cli.terminal import output
from dq.cli.world.environment import World, here
from dq.contracts.model import Contract
from dq.contracts.shared.errors import UsageError
from dq.contracts.shared.outcome import BROKEN, KEPT, CycleStatus, Status
from dq.contracts.slo import Slo
from dq.dataquality.delivery import ledger
from dq.dataquality.delivery.blindness import PLATFORM
from dq.dataquality.delivery.history.standing import Standing, grouped, standing
from dq.dataquality.delivery.history.standing_facts import beside, cycle_as_dict, group_as_dict, percent
from dq.dataquality.delivery.ledger import Kept
from dq.dataquality.delivery.sources.evidence import disagreeing
from dq.dataquality.delivery.state.holder import remembered
from dq.dataquality.delivery.wording import local, span
from dq.dataquality.results import audits, check_runs
from dq.dataquality.results.audits import StagedRun

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
# For how long what was withdrawn is still shown.
_TOLD_FOR = timedelta(days=7)


def command(
    paths: list[Path] = PATHS,
    by: Grouping = typer.Option(Grouping.PROMISE, "--by", help="One line for each promise, or for many."),
    product: str = typer.Option(None, "--product", help="Only this data product, or contract by its key."),
    domain: str = typer.Option(None, "--domain", help="Only the contracts of this domain."),
    as_of: str = output.AS_OF,
    format: StatusFormat = typer.Option(
        StatusFormat.TEXT, "--format", help="text for people, json for machines, markdown for a page."
    ),
) -> None:
    """Show how the promises stand: deliveries, error budgets, failed checks, open incidents.

    Each promise has its share of cycles in time, its budget in whole misses, the run that lasts, the trend
    against the window before, when deliveries usually come, and for how much of the time the newest one that
    was due was there.

    Exit codes: 0 shown, 2 no such product or domain, 3 something could not be read.

    Example: dq status registry --by domain --format markdown
    """
    places = paths or [Path()]
    raise typer.Exit(show_all(here(as_of, places), places, format, by, _wanted(product, domain)))


def _wanted(product: str | None, domain: str | None) -> Callable[[Contract], bool]:
    def wanted(contract: Contract) -> bool:
        named = product is None or product in (contract.key, contract.id, contract.data_product)
        return named and domain in (None, contract.domain)

    return wanted


def show_all(
    world: World,
    paths: list[Path],
    form: StatusFormat,
    by: Grouping = Grouping.PROMISE,
    wanted: Callable[[Contract], bool] = lambda _: True,
) -> int:
    """Shows how the promises of the wanted contracts stand; gives the exit code."""
    store = world.store()
    loaded = settled(world, store, load(paths))
    chosen = [contract for contract in loaded.contracts if wanted(contract)]
    if loaded.contracts and not chosen:
        raise UsageError("no contract here is of that product or domain.", "See 'dq status --by domain'.")
    loaded = replace(loaded, contracts=chosen)
    promises, wrong = slos(loaded)
    findings = [*loaded.findings, *wrong]
    for finding in findings:
        output.note(str(finding))
    with store.read() as tx:
        standings = [standing(slo, ledger.history(tx, slo.key), world.now()) for slo in promises]
        quality = {
            (contract.key, one.name): check_runs.latest(tx, contract.key, one.name)
            for contract in loaded.contracts
            for one in contract.objects
        }
        audited = [
            audit
            for contract in loaded.contracts
            for one in contract.objects
            for audit in audits.newest(tx, contract.key, one.name)
        ]
        incidents = unresolved(tx, [PLATFORM, *(contract.key for contract in loaded.contracts)])
        withdrawn = _withdrawn(tx, loaded, world)
        unheard = outstanding.all_of(tx, world.now())
    groups = grouped(standings, NAMED[by]) if by is not Grouping.PROMISE else []
    if form is StatusFormat.MARKDOWN:
        output.block(_standings.as_markdown(standings, groups, len(incidents)))
    elif form is StatusFormat.JSON:
        output.as_json(
            {
                "groups": [group_as_dict(one) for one in groups],
                **_standings.as_dict(standings, quality, incidents),
                "audits": [_standings.audit_as_dict(one) for one in audited],
                "withdrawn": [
                    {
                        **cycle_as_dict(one),
                        "contract": one.cycle.contract,
                        "slo": one.cycle.slo,
                        "reason": one.reason,
                    }
                    for one in withdrawn
                ],
                "outstanding": [sending.outstanding_as_dict(one) for one in unheard],
                "findings": [as_row(one) for one in findings],
            }
        )
    elif groups:
        _standings.describe(groups)
        output.line(f"Open incidents: {len(incidents)}")
    else:
        describe(standings, quality, audited, incidents, loaded.contracts, world.now())
        _describe_withdrawn(withdrawn)
    if form is StatusFormat.TEXT and unheard:
        output.line()
        output.line(output.styled("Alerts that are not there", bold=True))
        for one in unheard:
            output.line(f"  {sending.told(one)}")
    return 3 if findings else 0


def _withdrawn(tx: Connection, loaded: Loaded, world: World) -> list[Kept]:
    """What was withdrawn lately of these contracts, and of those that are no more."""
    here, held = {contract.key for contract in loaded.contracts}, remembered(tx)
    recent = ledger.withdrawn(tx, world.now() - _TOLD_FOR)
    return [one for one in recent if one.cycle.contract in here or one.cycle.contract not in held]


def _describe_withdrawn(cycles: list[Kept]) -> None:
    if cycles:
        output.line()
        output.line(output.styled("Withdrawn", bold=True))
    for (contract, slo, reason), times in Counter(
        (one.cycle.contract, one.cycle.slo, one.reason) for one in cycles
    ).items():
        output.line(f"  {contract}/{slo}: {times} {'delivery' if times == 1 else 'deliveries'}. {reason}")


Quality = dict[tuple[str, str], list[check_runs.Line]]


def describe(
    standings: list[Standing],
    quality: Quality,
    audited: list[StagedRun],
    incidents: list[Incident],
    contracts: list[Contract],
    now: datetime,
) -> None:
    """Everything on one screen, for people."""
    _deliveries(standings)
    _checks(quality)
    _audits(audited)
    output.line()
    output.line(output.styled("Open incidents", bold=True))
    if not incidents:
        output.line("  none")
    for incident in incidents:
        since = f"{incident.opened_at:%Y-%m-%d %H:%M}Z"
        said = [f"since {since}", f"{len(incident.open_subjects)} open"]
        if incident.acked_by:
            said.append(f"{incident.acked_by} is on it")
        if incident.silenced_until and incident.silenced_until > now:
            said.append(f"silenced {silences.said(incident)}")
        output.line(f"  {incident.severity}: {incident.title} ({', '.join(said)})")
    if not contracts:
        output.line("No contract could be read.")


def _deliveries(standings: list[Standing]) -> None:
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
                output.line(f"      {kept.status} {local(one.slo, kept.cycle.due_at)}{how}")
        for kept in one.cycles[-_DRAWN:]:
            for said in _remarks(one.slo, kept):
                output.line(f"      {local(one.slo, kept.cycle.due_at)}: {said}")


def _remarks(slo: Slo, kept: Kept) -> list[str]:
    """What is to be said of a cycle beside its status."""
    said = []
    if kept.arriving_since is not None and kept.status in ledger.OPEN:
        said.append(f"data is still being written, since {local(slo, kept.arriving_since)}")
    if kept.revoked and kept.gone_since is not None:
        said.append(f"it was taken away again, gone since {local(slo, kept.gone_since)}")
    if kept.anew_at is not None:
        said.append(f"it was delivered anew {local(slo, kept.anew_at)}")
    others = [
        f"{one.source} {local(slo, one.delivered_at)}"
        for one in disagreeing(kept.claims, kept.source)
        if one.delivered_at is not None
    ]
    if others and kept.delivered_at is not None:
        at = local(slo, kept.delivered_at)
        said.append(f"the sources disagree: {kept.source} {at}, {', '.join(others)}")
    return said


def _lateness(slo: Slo, kept: Kept) -> str:
    if kept.delivered_at is None:
        return ""
    late = span(kept.delivered_at - kept.cycle.due_at)
    return f", delivered {local(slo, kept.delivered_at)} ({late} after it was due)"


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


def _audits(audited: list[StagedRun]) -> None:
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
