"""Results of checks for people and machines, also as messages of Bitol's OORS."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from dq.cli import output
from dq.contracts.access.data_location import server_of
from dq.contracts.install import NAME
from dq.contracts.model import Contract, SchemaObject, namer
from dq.contracts.outcome import (
    CheckResult,
    Finding,
    Severity,
    Status,
    UsageError,
    counted,
    in_json,
    one_line,
)
from dq.dataquality.check import Outline
from dq.dataquality.clauses.clause import RowScope
from dq.dataquality.clauses.coverage import JsonObject, State
from dq.dataquality.delivery.cycle import label
from dq.dataquality.model.metric import Kind, Tally, Verification
from dq.dataquality.report import Report
from dq.operations.check import Failed, name_of
from dq.operations.check_contracts import Result, as_list

# What runs found as messages of Bitol's Open Observability Results Standard (OORS), one for each run.
#
# Written after https://bitol-io.github.io/open-observability-results-standard, draft v0.8.1. A message has
# no
# `run` object: it is the last word on its run. No row of the data is in it.

VERSION = "v0.8.1"
_STATUS = {Status.PASS: "pass", Status.FAIL: "fail", Status.ERROR: "error", Status.SKIPPED: "skip"}
# The standard's order: the first of these that occurs is the status of all.
_ORDER = ("error", "fail", "warn", "pass", "skip")
# The two names that both sides have; the others stand among the custom properties.
_SEVERITY = {Severity.CRITICAL: "critical", Severity.ERROR: "high"}


@dataclass(frozen=True, slots=True)
class Source:
    """The command whose results these are, such as `dq check`; its messages have one run id.

    `staged` is where the data lies that no reader of the target sees, else empty.
    """

    process: str
    contracts: dict[str, Contract]
    server: str | None
    at: datetime
    run_id: str
    staged: str = ""


def source(
    process: str, contracts: Iterable[Contract], server: str | None, at: datetime, staged: str = ""
) -> Source:
    """A source of a run id that no other has."""
    return Source(process, {one.key: one for one in contracts}, server, at, str(uuid4()), staged)


def messages(
    from_: Source, done: Sequence[Report | Failed], findings: Sequence[Finding] = ()
) -> Iterator[JsonObject]:
    """A message for each contract that could not be read, and for each object and scope."""
    for finding in findings:
        yield _message(
            from_, None, None, [_could_not(finding.rule, "The contract can be read", str(finding))]
        )
    for one in done:
        if isinstance(one, Failed):
            said = _could_not("data", "The data can be tested", str(one.error))
            target = _target(one.object.name, [one.scope] if one.scope else [])
            yield _message(from_, one.contract.id, one.contract.version, [{**said, "target": target}])
        else:
            yield _message(from_, one.contract, one.version, list(_results(one, from_)))


def not_judged_again(
    from_: Source, contract: Contract, one: SchemaObject, scope: Mapping[str, str]
) -> JsonObject:
    """The message of an audit of what this very run has published before."""
    target = _target(one.name, [scope] if scope else [])
    said = "It was audited and published before, and is not judged a second time."
    return _message(from_, contract.id, contract.version, [_unknown("audit", "What is staged", said, target)])


def show(messages: Iterable[JsonObject]) -> None:
    """Each message as one line of JSON."""
    for one in messages:
        output.line(in_json(json.dumps(one, ensure_ascii=False, default=str, allow_nan=False)))


def _message(
    from_: Source, contract: str | None, version: str | None, results: list[JsonObject]
) -> JsonObject:
    found = {result["status"] for result in results}
    return {
        "apiVersion": VERSION,
        "kind": "ObservabilityResults",
        "id": str(uuid4()),
        "observedAt": from_.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "source": {"process": from_.process, "runId": from_.run_id, "vendor": NAME},
        **({"contract": _contract(from_, contract, version)} if contract else {}),
        "status": next((status for status in _ORDER if status in found), "unknown"),
        "results": results,
        **(
            {"customProperties": [{"property": "staged", "value": _text(from_.staged)}]}
            if from_.staged
            else {}
        ),
    }


def _contract(from_: Source, contract: str, version: str | None) -> JsonObject:
    known = next(
        (one for one in from_.contracts.values() if (one.id, one.version) == (contract, version)), None
    )
    try:
        server = server_of(known, from_.server).server if known else None
    except UsageError:
        server = None
    return {
        "contractId": _text(contract),
        "standard": "ODCS",
        "version": _text(version or ""),
        **({"server": _text(server)} if server else {}),
    }


def _results(report: Report, from_: Source) -> Iterator[JsonObject]:
    scopes = [dict(one) for one in report.partitions]
    if report.verification is not None and report.verification.disagreements:
        said = "Statistics of files are wrong, so that nobody knows what else is."
        yield _could_not("statistics", "The statistics of the files are true", said)
    for result in report.results:
        yield _oors_result(result, scopes)
    tested = {result.clause for result in report.results}
    name = _namer(report, from_)
    untested = [one for one in report.accounts if one.state is State.NOT_EVALUATED and one.path not in tested]
    for account in untested:
        yield _unknown(name(account.path), account.clause, account.reason, _target(report.object, scopes))
    if not tested and not untested:
        # Nobody looked, which is not the same as that all is well.
        reason = "The contract has no clause that can be tested."
        yield _unknown("clauses", "Clauses were tested", reason, _target(report.object, scopes))


def _namer(report: Report, from_: Source) -> Callable[[str], str]:
    """What gives clauses of a report their names; the path where its contract is not at hand."""
    of = [
        one for one in from_.contracts.values() if (one.id, one.version) == (report.contract, report.version)
    ]
    objects = [one for contract in of for one in contract.objects if one.name == report.object]
    return namer(objects[0]) if objects else str


def _oors_result(result: CheckResult, scopes: Sequence[Mapping[str, str]]) -> JsonObject:
    column = result.property if result.property and ", " not in result.property else ""
    warned = result.status is Status.FAIL and not result.severity.blocks
    measure = {
        "metric": result.check,
        "value": result.value if result.value is not None and math.isfinite(result.value) else None,
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
    said = [" and ".join(f"{key} = '{_quoted(value)}'" for key, value in scope.items()) for scope in scopes]
    narrowed = f"({') or ('.join(said)})" if len(said) > 1 else "".join(said)
    return {
        "resourceType": "table",
        "resourceIdentifier": _text(object),
        **({"filter": _text(narrowed)} if narrowed else {}),
    }


def _could_not(id: str, name: str, said: str) -> JsonObject:
    return {"id": id, "type": "check", "name": name, "status": "error", "message": _text(said)}


def _unknown(id: str, name: str, said: str, target: JsonObject) -> JsonObject:
    return {**_could_not(_text(id), _text(name), said), "status": "unknown", "target": target}


def _quoted(value: object) -> str:
    return str(value).replace("'", "''")


def _text(text: str) -> str:
    """One line, in which no reader finds a variable: those of its own environment would be put in."""
    return one_line(text).replace("${", "$ {")


# What checks found, for people on a terminal and for machines.

# What is shown for a person; JSON has everything.
_SAMPLES, _CHARACTERS = 3, 200


def reports(
    results: Sequence[Result], findings: Sequence[Finding], form: output.ResultFormat, source: Source
) -> None:
    """What all runs found, by this source.

    In JSON, what could not be tested has an entry with its `error` and no results; in OORS, a message.
    """
    if form is output.ResultFormat.OORS:
        for one in results:
            if isinstance(one, Failed):
                failure(one)
        show(messages(source, [one for one in results if not isinstance(one, Outline)], findings))
        return
    _print(results, findings, form, "Nothing new was delivered. Name a --partition, or say --all.")


def outlines(results: Sequence[Result], findings: Sequence[Finding], form: output.ResultFormat) -> None:
    """What all runs would do."""
    _print(results, findings, form, "Nothing would be tested. Name a --partition, or say --all.")


def _print(
    results: Sequence[Result], findings: Sequence[Finding], form: output.ResultFormat, nothing: str
) -> None:
    for one in results:
        if isinstance(one, Failed):
            failure(one)
    if form is output.ResultFormat.JSON:
        output.as_json(as_list(results, findings))
        return
    for one in results:
        if isinstance(one, Report):
            describe(one)
        elif isinstance(one, Outline):
            foreseen(one)
    if not results and not findings:
        output.line(nothing)


def failure(one: Failed) -> None:
    """What could not be tested, on stderr."""
    scope = f" {name_of(one.scope)}" if one.scope else ""
    output.problem(one.error, f"{one.contract.id}/{one.object.name}{scope}: ")


def describe(report: Report, *, quiet: bool = False) -> None:
    """The report for a reader; `quiet` shows only what is not as promised."""
    scope = ", ".join(label(partition) for partition in report.partitions) or "whole table"
    counts = report.counts()
    if not quiet:
        output.line(output.styled(f"{report.contract}/{report.object} {scope}", bold=True))
    for result in report.results:
        if result.status is not Status.PASS:
            _result(result, quiet=quiet)
    if quiet:
        return
    said = ", ".join(f"{number} {status}" for status, number in counts.items() if number) or "no checks"
    if report.quarantine is not None:
        rows, path = report.quarantine.rows, report.quarantine.path
        kept = f"{rows:,} row(s) in {path}." if path else "nothing to write."
        output.line(f"  Quarantine: {report.quarantine.problem or kept}")
    states = Counter(account.state for account in report.accounts)
    clauses = ", ".join(f"{states[state]} {state.value}" for state in State if states[state])
    proven = f", {report.proven} proven without reading" if report.proven else ""
    kept = f", {report.kept} with answers kept of folders that did not change" if report.kept else ""
    passes = counted(report.passes, "pass", "passes")
    output.line(f"  {said}{proven}{kept}, in {passes}. Clauses: {clauses}.")
    if report.rows == 0:
        output.line("  There are no rows here, and so none that could break a clause.")
    for note in report.notes:
        output.line(f"  {note}")
    if report.verification is not None:
        output.line(f"  {_verified(report.verification)}")
    if report.rules:
        output.line(f"  Only {', '.join(report.rules)}: this run says nothing of the other clauses.")


def _verified(verification: Verification) -> str:
    def told(tally: Tally) -> str:
        return f"{tally.scans} of {tally.proofs} proofs counted again, {tally.disagreements} wrong"

    ever = f"; in all runs {told(verification.ever)}" if verification.ever is not None else ""
    return f"Statistics: {told(verification.tally)}{ever}."


def foreseen(plan: Outline) -> None:
    """What a run would do, for a reader."""
    scope = ", ".join(label(partition) for partition in plan.partitions) or "whole table"
    output.line(output.styled(f"{plan.contract}/{plan.object} {scope}", bold=True))
    jobs = [one for one in plan.passes if one.kind is not Kind.SCHEMA]
    for one in plan.passes:
        number = f"{jobs.index(one) + 1}." if one in jobs else "- "
        where = ", on the whole table" if plan.partitions and one.rows is RowScope.TABLE else ""
        questions = counted(one.questions, "question")
        output.line(f"  {number} {one.says}{where}: {questions} for {len(one.clauses)} clauses")
        output.line(f"     {', '.join(one.clauses)}")
    for path, reason in plan.errors:
        output.line(f"  {output.mark(None)} {path} will be an error: {reason}")
    for account in plan.untested:
        if account.state is State.NOT_EVALUATED:
            output.line(f"  - {account.path} is not tested: {account.reason}")
    output.line("  What the files' statistics prove is not scanned.")


def _result(result: CheckResult, *, quiet: bool) -> None:
    good = {Status.FAIL: False, Status.ERROR: None}.get(result.status)
    if result.status is Status.SKIPPED:
        if not quiet:
            output.line(f"  - {result.property} {result.check}: {result.observed}")
        return
    what = " ".join(part for part in (result.property, result.check) if part)
    output.line(f"  {output.mark(good)} {result.severity} {what}: {result.message}")
    for sample in result.samples[:_SAMPLES]:
        output.line("      " + ", ".join(f"{key}={_cut(value)}" for key, value in sample.items()))
    if len(result.samples) > _SAMPLES:
        output.line(f"      … {len(result.samples) - _SAMPLES} more in --format json")


def _cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
