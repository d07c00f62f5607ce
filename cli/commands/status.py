"""dq status"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import typer

from dq.alerts import suppression
from dq.cli import output
from dq.cli.context import PATHS
from dq.contracts.check_result import VERDICT_FAIL, VERDICT_PASS, Status
from dq.contracts.incident import CycleStatus, DeliveryState, observed_and_expected
from dq.contracts.outcome import Finding
from dq.contracts.slo import Slo
from dq.dataquality.alarms import AlarmCounts, total_counts
from dq.dataquality.complete_through import CompleteThrough
from dq.dataquality.delivery.compliance import (
    GroupCompliance,
    SloCompliance,
    attainment_text,
    compliance_summary,
    percent,
    warning_summary,
)
from dq.dataquality.delivery.cycle import OPEN, CycleRecord, disagreeing_claims
from dq.dataquality.delivery.notify import format_duration, local_time
from dq.dataquality.results import AgreementStanding, StagedRun
from dq.operations import alerting
from dq.operations.runtime.context import runtime_context
from dq.operations.status import Grouping, PromisesStanding, Quality, build_status, contract_filter


def describe_groups(groups: Sequence[GroupCompliance]) -> None:
    """Print a line for each group."""
    header = ("", "products", "SLOs", "on time", "cycles", "budgets exhausted")
    output.table(header, [_cells(group) for group in groups])


def _cells(group: GroupCompliance) -> list[str]:
    counted = f"{group.good} of {group.good + group.bad}"
    return [
        group.name,
        str(group.products),
        str(group.promises),
        percent(group.attainment),
        counted,
        str(group.exhausted_budgets),
    ]


def as_markdown(standings: Iterable[SloCompliance], groups: Sequence[GroupCompliance], incidents: int) -> str:
    """Return the status as a Markdown table, of groups if there are any."""
    from dq.contracts.escaping import markdown_text
    from dq.validators.reports.markdown import table

    if groups:
        header = ["", "products", "SLOs", "on time", "cycles", "budgets exhausted"]
        rows = [[markdown_text(cell) for cell in _cells(group)] for group in groups]
    else:
        header = ["SLO", "on time", "objective", "budget", "details"]
        rows = [
            [
                markdown_text(f"{standing.slo.contract.key}/{standing.slo.id}"),
                percent(standing.budget.attainment),
                markdown_text(standing.slo.delivery.objective),
                markdown_text(standing.budget.as_text()),
                markdown_text(compliance_summary(standing)),
            ]
            for standing in standings
        ]
    return f"## Deliveries\n\n{table(header, rows)}\n\nOpen incidents: {incidents}\n"


# Signs of the last cycles, oldest first.
_CYCLE_SIGNS = {
    CycleStatus.ON_TIME: ("●", "green"),
    CycleStatus.ON_TIME_IN_GRACE: ("●", "green"),
    CycleStatus.LATE: ("◐", "yellow"),
    CycleStatus.MISSING: ("○", "red"),
    CycleStatus.NEVER: ("○", "red"),
    CycleStatus.EXCUSED: ("-", "blue"),
    CycleStatus.UNKNOWN: ("?", "yellow"),
    CycleStatus.WITHDRAWN: ("-", "blue"),
}
_MAX_CYCLES = 30


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
    standing = build_status(runtime_context(as_of, places), places, by, contract_filter(product, domain))
    show(standing, format, by)
    raise typer.Exit(3 if standing.findings else 0)


def show(report: PromisesStanding, form: output.PageFormat, grouping: Grouping = Grouping.PROMISE) -> None:
    """Print the status report, by SLO or in groups."""
    output.notes(report.findings)
    if form is output.PageFormat.MARKDOWN:
        output.block(as_markdown(report.deliveries, report.groups, len(report.incidents)))
    elif form is output.PageFormat.JSON:
        output.as_json(report.as_dict())
    elif grouping is not Grouping.PROMISE:
        describe_groups(report.groups)
        output.line(f"Open incidents: {len(report.incidents)}")
    else:
        describe(report)
        _describe_withdrawn(report.withdrawn)
    if form is output.PageFormat.TEXT and report.outstanding:
        output.line()
        output.line(output.styled("Undelivered alerts", bold=True))
        for alert in report.outstanding:
            output.line(f"  {alerting.describe_outstanding(alert)}")


def _describe_withdrawn(cycles: Sequence[CycleRecord]) -> None:
    if cycles:
        output.line()
        output.line(output.styled("Withdrawn", bold=True))
    for (contract, slo, reason), times in Counter(
        (record.cycle.contract, record.cycle.slo, record.reason) for record in cycles
    ).items():
        output.line(f"  {contract}/{slo}: {times} {'delivery' if times == 1 else 'deliveries'}. {reason}")


def describe(report: PromisesStanding) -> None:
    """Print deliveries, checks, audits and incidents as text."""
    _deliveries(report.deliveries, report.unwatched)
    _complete_through(report.complete_through)
    _checks(report.checks)
    _agreements(report.agreements)
    _unusual(report.alarms)
    _audits(report.audited)
    output.line()
    output.line(output.styled("Open incidents", bold=True))
    if not report.incidents:
        output.line("  none")
    for incident in report.incidents:
        since = f"{incident.opened_at:%Y-%m-%d %H:%M}Z"
        details = [f"since {since}", f"{len(incident.open_subjects)} open"]
        if incident.acked_by:
            details.append(f"acknowledged by {incident.acked_by}")
        if incident.silenced_until and incident.silenced_until > report.at:
            details.append(f"silenced {suppression.silence_text(incident)}")
        output.line(f"  {incident.severity}: {incident.title} ({', '.join(details)})")
    if not report.contracts:
        output.line("No contract could be read.")


def _deliveries(standings: Sequence[SloCompliance], unwatched: Sequence[Finding]) -> None:
    output.line(output.styled("Deliveries", bold=True) + "  ● on time  ◐ late  ○ missing  ? unknown")
    if not standings and not unwatched:
        output.line("  no delivery SLOs")
    for finding in unwatched:
        output.line(f"  {finding.contract}/{finding.message}")
    for standing in standings:
        signs = "".join(_sign(record.status) for record in standing.cycles[-_MAX_CYCLES:])
        output.line(f"  {standing.slo.contract.key}/{standing.slo.id}  {signs}".rstrip())
        output.line(f"      {attainment_text(standing)}")
        for remark in filter(None, (compliance_summary(standing), warning_summary(standing))):
            output.line(f"      {remark}")
        _newest(
            [
                f"{record.status} {local_time(standing.slo, record.cycle.due_at)}"
                f"{_lateness(standing.slo, record)}"
                for record in standing.cycles
                if record.status.bad
            ]
        )
        _newest(
            [
                f"{local_time(standing.slo, record.cycle.due_at)}: {remark}"
                for record in standing.cycles[-_MAX_CYCLES:]
                for remark in _remarks(standing.slo, record)
            ]
        )


def _complete_through(standings: Sequence[CompleteThrough]) -> None:
    """Print how far each table is complete."""
    if not standings:
        return
    output.line()
    output.line(output.styled("Complete through", bold=True))
    for standing in standings:
        name = f"{standing.contract}/{standing.object_name}"
        through = standing.through.text if standing.through else "none"
        if standing.hole is None:
            details = {DeliveryState.COMPLETE: "", DeliveryState.PENDING: ", no delivery evaluated yet"}.get(
                standing.state, f", {standing.state}"
            )
            output.line(f"  {name}  {through}{details}")
            continue
        output.line(f"  {name}  {through}, {standing.state}: {standing.hole.text}. {standing.reason}")


def _newest(lines: Sequence[str]) -> None:
    """Print the newest lines about deliveries of an SLO, and the number of the earlier ones."""
    for line in lines[-output.MAX_DELIVERIES :]:
        output.line(f"      {line}")
    if len(lines) > output.MAX_DELIVERIES:
        output.line(f"      … and {len(lines) - output.MAX_DELIVERIES} earlier")


def _remarks(slo: Slo, record: CycleRecord) -> list[str]:
    """Return remarks on a cycle in addition to its status."""
    remarks = []
    if record.arriving_since is not None and record.status in OPEN:
        remarks.append(f"data still being written, since {local_time(slo, record.arriving_since)}")
    if record.revoked and record.gone_since is not None:
        remarks.append(f"removed after delivery, gone since {local_time(slo, record.gone_since)}")
    if record.anew_at is not None:
        remarks.append(f"delivered again {local_time(slo, record.anew_at)}")
    other_claims = [
        f"{claim.source} {local_time(slo, claim.delivered_at)}"
        for claim in disagreeing_claims(record.claims, record.source)
        if claim.delivered_at is not None
    ]
    if other_claims and record.delivered_at is not None:
        delivered_at = local_time(slo, record.delivered_at)
        remarks.append(f"sources disagree: {record.source} {delivered_at}, {', '.join(other_claims)}")
    return remarks


def _lateness(slo: Slo, record: CycleRecord) -> str:
    if record.delivered_at is None:
        return ""
    late = format_duration(record.delivered_at - record.cycle.due_at)
    return f", delivered {local_time(slo, record.delivered_at)} ({late} late)"


def _sign(status: CycleStatus) -> str:
    sign, color = _CYCLE_SIGNS.get(status, ("·", "white"))
    return output.styled(sign, fg=color)


def _checks(quality: Quality) -> None:
    output.line()
    output.line(output.styled("Data", bold=True))
    checked = {key: lines for key, lines in quality.items() if lines}
    if not checked:
        output.line("  no checks yet")
    for (contract, object_name), lines in checked.items():
        counts = Counter(line.status for line in lines)
        summary = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
        scopes = len({line.scope for line in lines})
        output.line(
            f"  {contract}/{object_name}: {summary} in {scopes} {'scope' if scopes == 1 else 'scopes'}"
        )
        for line in lines:
            if line.status in (Status.FAIL, Status.ERROR):
                check_name = f"{line.property} {line.check}".strip()
                sign = output.mark(None if line.status is Status.ERROR else False)
                text = observed_and_expected(line.observed, line.allowed)
                output.line(f"      {sign} {line.scope}  {check_name}: {text}")


def _agreements(standings: Sequence[AgreementStanding]) -> None:
    """Print in how many cycles in a row each object agrees with another side."""
    if not standings:
        return
    output.line()
    output.line(output.styled("Agreement", bold=True))
    for standing in standings:
        streak = standing.streak
        sign = output.mark(False if streak.disagreement else streak.is_complete or None)
        if streak.disagreement:
            remark = f", {streak.disagreement} disagrees"
        elif streak.gap and not streak.is_complete:
            remark = f", {streak.gap} was not compared"
        else:
            remark = "" if standing.compared_at else ", never compared"
        name = f"{standing.contract}/{standing.object}"
        output.line(f"  {sign} {name} agrees with {standing.other}: {streak}{remark}")


def _unusual(alarms: Mapping[tuple[str, str], AlarmCounts]) -> None:
    """Print how often alarms of unusual numbers were right, by table and in total."""
    if not alarms:
        return
    output.line()
    output.line(output.styled("Unusual numbers", bold=True))
    for (contract, name), counts in alarms.items():
        output.line(f"  {contract}/{name}: {counts}")
    if len(alarms) > 1:
        output.line(f"  all tables: {total_counts(alarms.values())}")


def _audits(audited: Sequence[StagedRun]) -> None:
    """Print the results of `dq publish --audit`: rejected data, and the number of passed scopes."""
    if not audited:
        return
    output.line()
    output.line(output.styled("Audits", bold=True))
    passed = Counter(
        (staged_run.contract, staged_run.object)
        for staged_run in audited
        if staged_run.verdict == VERDICT_PASS
    )
    for (contract, object_name), scopes in passed.items():
        output.line(f"  {contract}/{object_name}: {scopes} {'scope' if scopes == 1 else 'scopes'} passed")
    for audit in audited:
        if audit.verdict != VERDICT_PASS:
            sign = output.mark(False if audit.verdict == VERDICT_FAIL else None)
            details = f"{audit.verdict}, {audit.at:%Y-%m-%d %H:%M}Z, staged in {audit.staged}"
            output.line(f"  {sign} {audit.contract}/{audit.object} {audit.scope}: {details}")
            for _, message in audit.broken:
                output.line(f"      {message}")
