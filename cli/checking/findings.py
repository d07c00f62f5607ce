"""What checks found, for people on a terminal and for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from dq.cli.checking import oors
from dq.cli.checking.oors import Source
from dq.cli.checking.run import Failed
from dq.cli.checking.selection import name_of
from dq.cli.terminal import output
from dq.contracts.shared.outcome import CheckResult, Finding, Status
from dq.contracts.shared.wording import counted
from dq.dataquality import Report
from dq.dataquality.clauses.clause import RowScope
from dq.dataquality.clauses.coverage import JsonObject, State
from dq.dataquality.delivery.cycle import label
from dq.dataquality.dry_run import Outline
from dq.dataquality.model.metric import Kind
from dq.dataquality.model.verification import Tally, Verification

T = TypeVar("T", Report, Outline)
# What is shown for a person; JSON has everything.
_SAMPLES, _CHARACTERS = 3, 200


def reports(
    done: Sequence[Report | Failed], findings: Sequence[Finding], form: output.ResultFormat, source: Source
) -> None:
    """What all runs found, by this source.

    In JSON, what could not be tested has an entry with its `error` and no results; in OORS, a message.
    """
    if form is output.ResultFormat.OORS:
        for one in done:
            if isinstance(one, Failed):
                failure(one)
        oors.show(oors.messages(source, done, findings))
        return
    _print(
        done,
        findings,
        form,
        lambda one: describe(one),
        "Nothing new was delivered. Name a --partition, or say --all.",
    )


def outlines(
    seen: Sequence[Outline | Failed], findings: Sequence[Finding], form: output.ResultFormat
) -> None:
    """What all runs would do."""
    _print(seen, findings, form, foreseen, "Nothing would be tested. Name a --partition, or say --all.")


def _print(
    found: Sequence[T | Failed],
    findings: Sequence[Finding],
    form: output.ResultFormat,
    describe: Callable[[T], None],
    nothing: str,
) -> None:
    for one in found:
        if isinstance(one, Failed):
            failure(one)
    if form is output.ResultFormat.JSON:
        broken: list[JsonObject] = [_untested(None, None, [], str(finding)) for finding in findings]
        output.as_json([*broken, *(_entry(one) for one in found)])
        return
    for one in found:
        if not isinstance(one, Failed):
            describe(one)
    if not found and not findings:
        output.line(nothing)


def _entry(one: Report | Outline | Failed) -> JsonObject:
    if not isinstance(one, Failed):
        return {**one.as_dict(), "error": None}
    partitions = [dict(one.scope)] if one.scope else []
    return _untested(one.contract.id, one.object.name, partitions, str(one.error), one.contract.version)


def _untested(
    contract: str | None,
    name: str | None,
    partitions: list[dict[str, str]],
    error: str,
    version: str | None = None,
) -> JsonObject:
    return {
        "contract": contract,
        "version": version,
        "object": name,
        "partitions": partitions,
        "results": [],
        "error": error,
    }


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
