"""Check results as text, as JSON and as messages of Bitol's OORS."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from dq.cli import output
from dq.contracts.access.data_location import select_server
from dq.contracts.check_result import CheckResult, Status
from dq.contracts.install import NAME
from dq.contracts.metrics import UNUSUAL
from dq.contracts.model import Contract, SchemaObject, clause_namer
from dq.contracts.outcome import Finding, Severity, UsageError, escape_json_document, one_line, pluralize
from dq.dataquality.check import Outline
from dq.dataquality.clauses.clause import RowScope
from dq.dataquality.clauses.coverage import EnforcementState, JsonObject
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.metric import MetricExecution, Tally, Verification
from dq.dataquality.report import Cleaned, Report
from dq.operations.check import FailedScope, scope_name
from dq.operations.check_contracts import Result, as_list

# Results as messages of Bitol's Open Observability Results Standard (OORS), one per run.
#
# Source: https://bitol-io.github.io/open-observability-results-standard, draft v0.8.1. A message has no `run`
# object, because it is final for its run. It contains no rows of the data.

VERSION = "v0.8.1"
_STATUS = {Status.PASS: "pass", Status.FAIL: "fail", Status.ERROR: "error", Status.SKIPPED: "skip"}
# The standard's order: the first status that occurs is the overall status.
_ORDER = ("error", "fail", "warn", "pass", "skip")
# Severities that OORS has too; the others are custom properties.
_SEVERITY = {Severity.CRITICAL: "critical", Severity.ERROR: "high"}


@dataclass(frozen=True, slots=True)
class Source:
    """The command that produced the results, e.g. `dq check`; its messages share one run id.

    `staged` is the location of staged data, which readers of the target do not see, else "".
    """

    process: str
    contracts: dict[str, Contract]
    server: str | None
    observed_at: datetime
    run_id: str
    staged: str = ""


def new_source(
    process: str, contracts: Iterable[Contract], server: str | None, observed_at: datetime, staged: str = ""
) -> Source:
    """Return a source with a new run id."""
    return Source(
        process, {contract.key: contract for contract in contracts}, server, observed_at, str(uuid4()), staged
    )


def messages(
    from_: Source, done: Sequence[Report | FailedScope], findings: Sequence[Finding] = ()
) -> Iterator[JsonObject]:
    """Yield a message for each contract that could not be read, and for each object and scope."""
    for finding in findings:
        yield _message(
            from_, None, None, [_error_result(finding.rule, "The contract can be read", str(finding))]
        )
    for outcome in done:
        if isinstance(outcome, FailedScope):
            result = _error_result("data", "The data can be tested", str(outcome.error))
            target = _target(outcome.object.name, [outcome.scope] if outcome.scope else [])
            yield _message(
                from_, outcome.contract.id, outcome.contract.version, [{**result, "target": target}]
            )
        else:
            yield _message(from_, outcome.contract, outcome.version, list(_results(outcome, from_)))


def already_published(
    from_: Source, contract: Contract, schema_object: SchemaObject, scope: Mapping[str, str]
) -> JsonObject:
    """Return the message of an audit whose data the same run has published before."""
    target = _target(schema_object.name, [scope] if scope else [])
    reason = "Audited and published before; not evaluated again."
    return _message(
        from_, contract.id, contract.version, [_unknown_result("audit", "What is staged", reason, target)]
    )


def print_messages(messages: Iterable[JsonObject]) -> None:
    """Print each message as one line of JSON."""
    for message in messages:
        output.line(
            escape_json_document(json.dumps(message, ensure_ascii=False, default=str, allow_nan=False))
        )


def _message(
    from_: Source, contract: str | None, version: str | None, results: list[JsonObject]
) -> JsonObject:
    statuses = {result["status"] for result in results}
    return {
        "apiVersion": VERSION,
        "kind": "ObservabilityResults",
        "id": str(uuid4()),
        "observedAt": from_.observed_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "source": {"process": from_.process, "runId": from_.run_id, "vendor": NAME},
        **({"contract": _contract(from_, contract, version)} if contract else {}),
        "status": next((status for status in _ORDER if status in statuses), "unknown"),
        "results": results,
        **(
            {"customProperties": [{"property": "staged", "value": _text(from_.staged)}]}
            if from_.staged
            else {}
        ),
    }


def _contract(from_: Source, contract: str, version: str | None) -> JsonObject:
    declared = next(
        (
            candidate
            for candidate in from_.contracts.values()
            if (candidate.id, candidate.version) == (contract, version)
        ),
        None,
    )
    try:
        server = select_server(declared, from_.server).server if declared else None
    except UsageError:
        server = None
    return {
        "contractId": _text(contract),
        "standard": "ODCS",
        "version": _text(version or ""),
        **({"server": _text(server)} if server else {}),
    }


def _results(report: Report, from_: Source) -> Iterator[JsonObject]:
    scopes = [dict(partition) for partition in report.partitions]
    if report.verification is not None and report.verification.disagreements:
        message = "The statistics of the files are wrong; other results may be wrong too."
        yield _error_result("statistics", "The statistics of the files are true", message)
    for result in report.results:
        yield _oors_result(result, scopes)
    tested = {result.clause for result in report.results}
    name = _namer(report, from_)
    untested = [
        candidate
        for candidate in report.coverage
        if candidate.state is EnforcementState.NOT_EVALUATED and candidate.path not in tested
    ]
    for account in untested:
        yield _unknown_result(
            name(account.path), account.clause, account.reason, _target(report.object, scopes)
        )
    if not tested and not untested:
        # Without this result, a contract without testable clauses would look like a pass.
        reason = "The contract has no clause that can be tested."
        yield _unknown_result("clauses", "Clauses were tested", reason, _target(report.object, scopes))


def _namer(report: Report, from_: Source) -> Callable[[str], str]:
    """Return a function from clause path to name; the path itself if the contract is not available."""
    contracts = [
        contract
        for contract in from_.contracts.values()
        if (contract.id, contract.version) == (report.contract, report.version)
    ]
    objects = [
        schema_object
        for contract in contracts
        for schema_object in contract.objects
        if schema_object.name == report.object
    ]
    return clause_namer(objects[0]) if objects else str


def _oors_result(result: CheckResult, scopes: Sequence[Mapping[str, str]]) -> JsonObject:
    column = result.property if result.property and ", " not in result.property else ""
    warned = result.status is Status.FAIL and not result.severity.blocks
    value = result.value
    if result.check == UNUSUAL:
        # The most unusual number comes first; the value of the result is its probability.
        value = result.groups[0].value if result.groups else None
    measure = {
        "metric": result.check,
        "value": value if value is not None and math.isfinite(value) else None,
        "threshold": dict(result.threshold) or None,
        "unit": result.unit or None,
        "rowCount": result.rows,
        "failedRowCount": result.failed_rows,
    }
    path = "".join(f"/properties/{step}" for step in column.split(".") if step)
    return {
        "id": _text(f"{result.check}@{result.name or result.clause}"),
        "type": "check",
        "name": _text(f"{result.object}{f'.{result.property}' if result.property else ''} {result.check}"),
        "status": "warn" if warned else _STATUS[result.status],
        "relatesTo": _text(f"schema/{result.object}{path}"),
        **({"severity": _SEVERITY[result.severity]} if result.severity in _SEVERITY else {}),
        "target": _target(result.object, scopes),
        "measure": {key: value for key, value in measure.items() if value is not None},
        "message": _text(result.message),
        "customProperties": [
            {"property": "clause", "value": _text(result.name or result.clause)},
            {"property": "severity", "value": result.severity.value},
            {"property": "expected", "value": _text(result.allowed)},
            {"property": "observed", "value": _text(result.observed)},
            *([{"property": "column", "value": _text(result.property)}] if result.property else []),
        ],
    }


def _target(object: str, scopes: Sequence[Mapping[str, str]]) -> JsonObject:
    conditions = [
        " and ".join(f"{key} = '{_quoted(value)}'" for key, value in scope.items()) for scope in scopes
    ]
    narrowed = f"({') or ('.join(conditions)})" if len(conditions) > 1 else "".join(conditions)
    return {
        "resourceType": "table",
        "resourceIdentifier": _text(object),
        **({"filter": _text(narrowed)} if narrowed else {}),
    }


def _error_result(id: str, name: str, message: str) -> JsonObject:
    return {"id": id, "type": "check", "name": name, "status": "error", "message": _text(message)}


def _unknown_result(id: str, name: str, message: str, target: JsonObject) -> JsonObject:
    return {**_error_result(_text(id), _text(name), message), "status": "unknown", "target": target}


def _quoted(value: object) -> str:
    return str(value).replace("'", "''")


def _text(text: str) -> str:
    """Return one line without `${`, which readers might expand from their environment."""
    return one_line(text).replace("${", "$ {")


# Check results as text and JSON.

# Limits of the text output; JSON has everything.
_MAX_SAMPLES, _MAX_CHARS = 3, 200


def print_reports(
    results: Sequence[Result], findings: Sequence[Finding], form: output.ResultFormat, source: Source
) -> None:
    """Print the results of all runs.

    A scope that could not be tested is an entry with `error` and no results in JSON, and a message in OORS.
    OORS has no message for a dry run.
    """
    if form is output.ResultFormat.OORS:
        for result in results:
            if isinstance(result, FailedScope):
                print_failure(result)
        print_messages(
            messages(source, [result for result in results if not isinstance(result, Outline)], findings)
        )
        return
    _print(results, findings, form, "No new deliveries. Pass --partition, or --all.")


def print_outlines(results: Sequence[Result], findings: Sequence[Finding], form: output.ResultFormat) -> None:
    """Print what all runs would do."""
    _print(results, findings, form, "Nothing to test. Pass --partition, or --all.")


def _print(
    results: Sequence[Result], findings: Sequence[Finding], form: output.ResultFormat, nothing: str
) -> None:
    for result in results:
        if isinstance(result, FailedScope):
            print_failure(result)
    if form is output.ResultFormat.JSON:
        output.as_json(as_list(results, findings))
        return
    for result in results:
        if isinstance(result, Report):
            describe_report(result)
        elif isinstance(result, Outline):
            describe_outline(result)
    if not results and not findings:
        output.line(nothing)


def print_failure(failed: FailedScope) -> None:
    """Print on stderr a scope that could not be tested."""
    scope = f" {scope_name(failed.scope)}" if failed.scope else ""
    output.problem(failed.error, f"{failed.contract.id}/{failed.object.name}{scope}: ")


def describe_report(report: Report, *, quiet: bool = False) -> None:
    """Print a report; `quiet` prints only clauses that did not pass."""
    scope = ", ".join(label(partition) for partition in report.partitions) or "whole table"
    counts = report.counts()
    if not quiet:
        output.line(output.styled(f"{report.contract}/{report.object} {scope}", bold=True))
    for result in report.results:
        if result.status is not Status.PASS:
            _result(result, quiet=quiet)
    if quiet:
        return
    summary = ", ".join(f"{number} {status}" for status, number in counts.items() if number) or "no checks"
    if report.quarantine is not None:
        rows, path = report.quarantine.rows, report.quarantine.path
        quarantined = f"{rows:,} row(s) in {path}." if path else "no rows to write."
        output.line(f"  Quarantine: {report.quarantine.problem or quarantined}")
    if report.cleaned is not None:
        cleaned = report.cleaned
        output.line(f"  Good rows: {cleaned.problem or f'{cleaned.rows:,} row(s) in {cleaned.path}.'}")
        if cleaned.superseded:
            output.line(f"  {_superseded(cleaned)}")
    states = Counter(account.state for account in report.coverage)
    clauses = ", ".join(f"{states[state]} {state.value}" for state in EnforcementState if states[state])
    proven = f", {report.from_statistics} answered from statistics" if report.from_statistics else ""
    from_cache = (
        f", {report.from_cache} with cached answers of unchanged folders" if report.from_cache else ""
    )
    passes = pluralize(report.passes, "pass", "passes")
    output.line(f"  {summary}{proven}{from_cache}, in {passes}. Clauses: {clauses}.")
    if report.rows == 0:
        output.line("  No rows to check.")
    for note in report.notes:
        output.line(f"  {note}")
    if report.verification is not None:
        output.line(f"  {_verification_text(report.verification)}")
    if report.rules:
        output.line(f"  Only {', '.join(report.rules)}: other clauses were not tested in this run.")


# Superseded partitions that are listed; JSON has all.
_MAX_SUPERSEDED = 5


def _superseded(cleaned: Cleaned) -> str:
    names = [label(partition) for partition in cleaned.superseded[:_MAX_SUPERSEDED]]
    remaining = len(cleaned.superseded) - len(names)
    names += [f"{remaining:,} more"] if remaining else []
    return (
        f"Rows of {', '.join(names)} are superseded by these rows: their earlier good rows repeat a key. "
        "Clean these partitions again."
    )


def _verification_text(verification: Verification) -> str:
    def tally_text(tally: Tally) -> str:
        return f"{tally.scans} of {tally.proofs} answers verified on the rows, {tally.disagreements} wrong"

    total = f"; in all runs {tally_text(verification.ever)}" if verification.ever is not None else ""
    return f"Statistics: {tally_text(verification.tally)}{total}."


def describe_outline(plan: Outline) -> None:
    """Print what a run would do."""
    scope = ", ".join(label(partition) for partition in plan.partitions) or "whole table"
    output.line(output.styled(f"{plan.contract}/{plan.object} {scope}", bold=True))
    jobs = [plan_pass for plan_pass in plan.passes if plan_pass.kind is not MetricExecution.SCHEMA]
    for plan_pass in plan.passes:
        number = f"{jobs.index(plan_pass) + 1}." if plan_pass in jobs else "- "
        scope_note = ", on the whole table" if plan.partitions and plan_pass.rows is RowScope.TABLE else ""
        questions = pluralize(plan_pass.questions, "question")
        output.line(
            f"  {number} {plan_pass.description}{scope_note}: {questions} for "
            f"{len(plan_pass.clauses)} clauses"
        )
        output.line(f"     {', '.join(plan_pass.clauses)}")
    for path, reason in plan.errors:
        output.line(f"  {output.mark(None)} {path} will be an error: {reason}")
    for account in plan.untested:
        if account.state is EnforcementState.NOT_EVALUATED:
            output.line(f"  - {account.path} is not tested: {account.reason}")
    output.line("  Answers available from file statistics need no scan.")


def _result(result: CheckResult, *, quiet: bool) -> None:
    good = {Status.FAIL: False, Status.ERROR: None}.get(result.status)
    if result.status is Status.SKIPPED:
        if not quiet:
            output.line(f"  - {result.property} {result.check}: {result.observed}")
        return
    check_name = " ".join(part for part in (result.property, result.check) if part)
    output.line(f"  {output.mark(good)} {result.severity} {check_name}: {result.message}")
    for sample in result.samples[:_MAX_SAMPLES]:
        output.line("      " + ", ".join(f"{key}={_cut(value)}" for key, value in sample.items()))
    if len(result.samples) > _MAX_SAMPLES:
        output.line(f"      … {len(result.samples) - _MAX_SAMPLES} more in --format json")


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"
