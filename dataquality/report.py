"""Report of a check of one object: results, coverage of every clause, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from dq.contracts import escaping
from dq.contracts.check_result import (
    VERDICT_FAIL,
    VERDICT_PASS,
    VERDICT_UNKNOWN,
    CheckResult,
    GroupResult,
    Status,
)
from dq.contracts.outcome import DqError, ReadError, escape_ci_commands, one_line
from dq.dataquality.clauses.coverage import ClauseCoverage, JsonObject
from dq.dataquality.model.metric import Verification
from dq.dataquality.model.run_context import Partition

# HTML of a report for notebooks: inline styles only, all external text escaped.

_SIGNS = {
    Status.FAIL: ("#c62828", "✗"),
    Status.ERROR: ("#b26a00", "?"),
    Status.SKIPPED: ("#757575", "–"),
    Status.PASS: ("#2e7d32", "✓"),
}
_SAMPLES = 3


def html(title: str, verdict: str, results: Iterable[CheckResult]) -> str:
    """Return the verdict and a table of results: failures and errors first, the others collapsed."""
    ordered = sorted(results, key=lambda result: list(_SIGNS).index(result.status))
    unresolved = [result for result in ordered if result.status in (Status.FAIL, Status.ERROR)]
    settled = [result for result in ordered if result not in unresolved]
    details = f"<details><summary>{len(settled)} more</summary>{_table(settled)}</details>" if settled else ""
    return (
        f"<div><b>{_text(title)}</b>: "
        f"{_text(verdict)}{_table(unresolved) if unresolved else ''}{details}</div>"
    )


def _table(results: Iterable[CheckResult]) -> str:
    return f"<table>{''.join(_row(result) for result in results)}</table>"


def _row(result: CheckResult) -> str:
    color, sign = _SIGNS[result.status]
    samples = "".join(f"<br><code>{_text(text)}</code>" for text in _samples(result))
    cells = (
        f'<span style="color:{color}">{sign}</span> {_text(result.severity)}',
        _text(result.property or result.object),
        _text(result.check),
        _text(result.message) + samples,
        f"<small>{_text(str(result.at))}</small>",
    )
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _samples(result: CheckResult) -> Iterator[str]:
    for sample in result.samples[:_SAMPLES]:
        yield ", ".join(f"{key}={value}" for key, value in sample.items())


def _text(text: str) -> str:
    return escaping.html(one_line(text))


class Violated(DqError):
    """The data breaks its contract: at least one check of severity error or critical failed.

    `report` has all results, or is None if there is no report.
    """

    exit_code = 1
    report: Report | None = None


class Unmeasured(ReadError):
    """A clause of severity error or critical could not be measured. `report` has all results."""

    report: Report | None = None


_VERDICTS = {0: VERDICT_PASS, Violated.exit_code: VERDICT_FAIL, ReadError.exit_code: VERDICT_UNKNOWN}


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Number of quarantined rows and their folder, or None if nothing was written.

    `problem` is the reason if writing failed.
    """

    rows: int
    path: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Number of good rows that were written, and their folder, or None if nothing was written.

    `problem` is the reason if writing failed. `superseded` are other partitions with rows whose keys were
    kept in this one: good rows of them that were written earlier repeat these keys.
    """

    rows: int
    path: str | None
    problem: str = ""
    superseded: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Results of one object's clauses on one scope of data.

    `partitions` are the requested partitions, empty for the whole table. `passes` is the number of passes
    over the data, not counting those for samples; `from_statistics` is the number of clauses answered from
    statistics without a pass, `from_cache` the number answered from the partition cache. `at` is the time
    given by the caller. `quarantine` is set if bad rows were to be quarantined, `cleaned` if good rows were
    to be written. `rules` are the words that selected the clauses, empty for all. `verification` is set if a
    share of the statistics was verified. `notes` give reasons for reading more than necessary. `rows` is the
    number of rows, if a check counted them all. `separated_clauses` are the paths of the failed clauses whose
    rows a gate separated.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    results: tuple[CheckResult, ...]
    coverage: tuple[ClauseCoverage, ...]
    passes: int
    from_statistics: int = 0
    at: datetime | None = None
    quarantine: Quarantined | None = None
    rules: tuple[str, ...] = ()
    verification: Verification | None = None
    notes: tuple[str, ...] = ()
    rows: int | None = None
    separated_clauses: tuple[str, ...] = ()
    from_cache: int = 0
    cleaned: Cleaned | None = None

    def with_status(self, *statuses: Status) -> tuple[CheckResult, ...]:
        """Return the results with one of these statuses."""
        return tuple(result for result in self.results if result.status in statuses)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Failed checks of severity error or critical."""
        return tuple(result for result in self.with_status(Status.FAIL) if result.severity.blocks)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 unknown; failed takes precedence over unknown.

        Disagreeing statistics give 3 in any case, since other statistics of these files may be wrong too.
        """
        if self.verification is not None and self.verification.disagreements:
            return ReadError.exit_code
        if self.failed:
            return Violated.exit_code
        return (
            ReadError.exit_code
            if any(result.severity.blocks for result in self.with_status(Status.ERROR))
            else 0
        )

    @property
    def verdict(self) -> str:
        """`passed`, `failed` or `unknown`, by the exit code."""
        return _VERDICTS[self.exit_code]

    def raise_for_status(self) -> None:
        """Raise Violated if a check failed, or Unmeasured if one could not be measured; warnings pass."""
        if self.exit_code == 0:
            return
        broken = self.exit_code == Violated.exit_code
        unmeasured = tuple(result for result in self.with_status(Status.ERROR) if result.severity.blocks)
        blocking = self.failed if broken else unmeasured
        verb = "failed" if broken else "could not be measured"
        message = f"{self.contract} {self.object}: {len(blocking)} check(s) {verb}: " + "; ".join(
            result.message for result in blocking[:5]
        )
        hint = "Fix the data or the contract; do not publish this delivery."
        # The message ends up in pipeline logs, as part of a traceback.
        error = (Violated if broken else Unmeasured)(escape_ci_commands(one_line(f"{message}.")), hint)
        error.report = self
        raise error

    def __repr__(self) -> str:
        """Return the verdict and one line per failure or error, for interactive prompts."""
        unresolved = self.with_status(Status.FAIL, Status.ERROR)
        lines = [
            f"  {result.status} {result.severity} {one_line(result.message)}" for result in unresolved[:20]
        ]
        remainder = [f"  … {len(unresolved) - 20} more"] if len(unresolved) > 20 else []
        return escape_ci_commands(
            "\n".join([f"<{one_line(self._title())}: {self._summary()}>", *lines, *remainder])
        )

    def _repr_html_(self) -> str:
        return html(self._title(), self._summary(), self.results)

    def _title(self) -> str:
        return f"{self.contract} {self.version}, {self.object}"

    def _summary(self) -> str:
        status_counts = ", ".join(f"{number} {status}" for status, number in self.counts().items() if number)
        return f"{self.verdict} ({status_counts or 'no checks'})"

    def counts(self) -> dict[str, int]:
        """Return the number of results per status."""
        counter = Counter(result.status for result in self.results)
        return {status.value: counter[status] for status in Status}

    def as_dict(self) -> JsonObject:
        """Return the report as JSON values, modelled on the OORS draft: status, target, measure, threshold.

        Samples are the only data in it, with classified columns masked.
        """
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "partitions": [dict(partition) for partition in self.partitions],
            "at": self.at.isoformat() if self.at else None,
            "rules": list(self.rules),
            "rows": self.rows,
            "passes": self.passes,
            "from_statistics": self.from_statistics,
            "from_cache": self.from_cache,
            "counts": self.counts(),
            "results": [_result(result) for result in self.results],
            "clauses": [entry.as_dict() for entry in self.coverage],
            "quarantine": asdict(self.quarantine) if self.quarantine else None,
            "cleaned": _cleaned(self.cleaned) if self.cleaned else None,
            "notes": list(self.notes),
            "verification": asdict(self.verification) if self.verification else None,
        }


def _cleaned(cleaned: Cleaned) -> JsonObject:
    return {**asdict(cleaned), "superseded": [dict(partition) for partition in cleaned.superseded]}


def _result(result: CheckResult) -> JsonObject:
    return {
        "status": result.status.value,
        "severity": result.severity.value,
        "check": result.check,
        "target": {"object": result.object, "property": result.property or None},
        "clause": result.clause,
        "name": result.name,
        "answered_by": result.answered_by,
        "measure": {"value": result.value, "observed": result.observed},
        "threshold": result.allowed,
        "message": result.message,
        "at": str(result.at),
        "samples": [dict(sample) for sample in result.samples],
        **({"streak": asdict(result.streak)} if result.streak else {}),
        **({"groups": [_group(result, group) for group in result.groups]} if result.group_columns else {}),
    }


def _group(result: CheckResult, group: GroupResult) -> JsonObject:
    return {
        "by": dict(zip(result.group_columns, group.key, strict=True)),
        "status": group.status.value,
        "observed": group.observed,
        "value": group.value,
    }


def of_own_rows(report: Report) -> Report:
    """Return a report in which only the compared rows decide, not those of earlier cycles."""
    return replace(
        report,
        results=tuple(
            replace(result, status=Status.PASS) if result.agrees else result for result in report.results
        ),
    )
