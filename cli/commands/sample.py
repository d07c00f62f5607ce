"""dq sample"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dq.cli import output
from dq.contracts.access.files import read
from dq.contracts.check_result import CheckResult, Row, Status
from dq.contracts.model import Contract
from dq.contracts.outcome import Finding
from dq.operations.sample import samples
from dq.validators.lint import LintResult
from dq.validators.reports import load_report as report_of
from dq.validators.reports import names

if TYPE_CHECKING:
    from dq.dataquality.report import Report

# Limit of the text output; JSON has everything.
_MAX_SAMPLES = 5


def command(
    contract: Path = typer.Argument(..., help="Contract file."),
    files: list[str] = typer.Argument(..., help="Sample files: FILE, or FILE=OBJECT."),
    format: str = typer.Option("text", "--format", help=f"Output format: {', '.join(names())}."),
    delimiter: str | None = typer.Option(None, "--delimiter", help="CSV delimiter."),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of CSV and JSON."),
) -> None:
    """Check sample files against a contract, without Spark and Java.

    Reads CSV, JSON (lines or one array) and Parquet; text options are those of the contract's only
    server. A value that does not fit its column's type fails with its line number. Row counts,
    relationships, freshness and SQL rules need the whole table and are listed as not tested; keys and
    shares are tested within the sample. Without =OBJECT, a file is matched to the object of its name, or
    to the only one.

    Exit codes: 0 passed, 1 an error-level check failed, 2 invalid file or option, or an extra is missing,
    3 something could not be read or measured.

    Example: dq sample orders.odcs.yaml samples/orders.csv
    """
    report_format = report_of(format)
    outcome = samples(contract, files, delimiter, encoding)
    output.notes(outcome.findings)
    if outcome.contract is None:
        raise typer.Exit(outcome.exit_code)
    if format == "json":
        output.as_json([report.as_dict() for _, report in outcome.reports])
    else:
        findings = [
            _finding(outcome.contract, result, file)
            for file, report in outcome.reports
            for result in report.with_status(Status.FAIL, Status.ERROR)
        ]
        linted = LintResult(
            tuple(sorted(findings, key=lambda finding: finding.at)),
            (str(contract),),
            {str(contract): read(contract)},
        )
        if findings or format != "text":
            output.report(report_format, linted)
        if format == "text":
            for file, report in outcome.reports:
                _describe(report, file)
    raise typer.Exit(outcome.exit_code)


def _finding(contract: Contract, result: CheckResult, file: Path) -> Finding:
    """Return a result as a finding at its clause, for all report formats."""
    rows = "; ".join(_sample_text(sample) for sample in result.samples[:_MAX_SAMPLES])
    omitted = len(result.samples) - _MAX_SAMPLES
    hint = f"In {file}: {rows}{f' and {omitted} more' if omitted > 0 else ''}." if rows else f"In {file}."
    rule = f"sample-{result.check.replace('_', '-')}"
    return Finding(rule, result.severity, f"{result.message}.", hint, result.at, result.clause, contract.id)


def _sample_text(sample: Row) -> str:
    (place, number), *values = sample.items()
    listed = ", ".join(f"{name}={value!r}" for name, value in values)
    return f"{place} {number} ({listed})" if listed else f"{place} {number}"


def _describe(report: Report, file: Path) -> None:
    counts = ", ".join(f"{number} {status}" for status, number in report.counts().items() if number)
    output.line(output.styled(f"{file} as {report.object}: {counts or 'no checks'}.", bold=True))
    untested = [
        account
        for account in report.coverage
        if account.state == "not evaluated" or account.reason == "dq watch"
    ]
    for account in untested:
        reason = "deliveries are evaluated by 'dq watch'" if account.reason == "dq watch" else account.reason
        output.line(f"  not tested: {account.property or account.object} {account.clause}: {reason}")
