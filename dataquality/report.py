"""What a check of one object found: results, the account of every clause, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

from dq.contracts import escaping
from dq.contracts.outcome import (
    BROKEN,
    KEPT,
    UNTOLD,
    CheckResult,
    DqError,
    GroupResult,
    Status,
    Unreadable,
    inert,
    one_line,
)
from dq.dataquality.clauses.coverage import Account, JsonObject
from dq.dataquality.model.metric import Verification
from dq.dataquality.model.run_context import Partition

# A report as a notebook shows it: HTML that needs no style of its own, every text of others escaped.

_SIGNS = {
    Status.FAIL: ("#c62828", "✗"),
    Status.ERROR: ("#b26a00", "?"),
    Status.SKIPPED: ("#757575", "–"),
    Status.PASS: ("#2e7d32", "✓"),
}
_SAMPLES = 3


def html(title: str, verdict: str, results: Iterable[CheckResult]) -> str:
    """The verdict, and a row for each result: what is not as promised first, the rest folded away."""
    ordered = sorted(results, key=lambda one: list(_SIGNS).index(one.status))
    open_ = [one for one in ordered if one.status in (Status.FAIL, Status.ERROR)]
    rest = [one for one in ordered if one not in open_]
    folded = f"<details><summary>{len(rest)} more</summary>{_table(rest)}</details>" if rest else ""
    return f"<div><b>{_text(title)}</b>: {_text(verdict)}{_table(open_) if open_ else ''}{folded}</div>"


def _table(results: Iterable[CheckResult]) -> str:
    return f"<table>{''.join(_row(one) for one in results)}</table>"


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

    `report` has all results; it is None where no report was made.
    """

    exit_code = 1
    report: Report | None = None


class Unmeasured(Unreadable):
    """A clause of severity error or critical could not be measured. `report` has all results."""

    report: Report | None = None


_VERDICTS = {0: KEPT, Violated.exit_code: BROKEN, Unreadable.exit_code: UNTOLD}


@dataclass(frozen=True, slots=True)
class Quarantined:
    """How many rows were written apart, and the folder that they are in; None when nothing was written.

    `problem` is why they could not be written.
    """

    rows: int
    path: str | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The answers to one object's clauses on one scope of data.

    `partitions` are those that were asked for, empty for the whole table. `passes` is the number of
    passes over the data that the measurement took, without those for samples; `proven` is the number of
    clauses that statistics answered without one, `kept` of those for which earlier runs' answers about
    folders that did not change were used. `at` is the time that the caller gave. `quarantine` is
    there when bad rows were to be written apart. `rules` are the words that chose the clauses; empty: all.
    `verification` is there when a share of the proofs was to be verified. `notes` say why more was read than
    need be. `rows` is how many rows the data has, where a check counted them all. `apart` are the paths of
    failed clauses whose rows were set apart, of the report of a gate.
    """

    contract: str
    version: str
    object: str
    partitions: tuple[Partition, ...]
    results: tuple[CheckResult, ...]
    accounts: tuple[Account, ...]
    passes: int
    proven: int = 0
    at: datetime | None = None
    quarantine: Quarantined | None = None
    rules: tuple[str, ...] = ()
    verification: Verification | None = None
    notes: tuple[str, ...] = ()
    rows: int | None = None
    apart: tuple[str, ...] = ()
    kept: int = 0

    def of(self, *statuses: Status) -> tuple[CheckResult, ...]:
        """The results with one of these statuses."""
        return tuple(result for result in self.results if result.status in statuses)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Failed checks that are more than a warning."""
        return tuple(result for result in self.of(Status.FAIL) if result.severity.blocks)

    @property
    def exit_code(self) -> int:
        """0 kept, 1 broken, 3 could not tell; broken goes before what could not be told.

        Statistics that were caught lying go before both: nobody knows what else is wrong with their files.
        """
        if self.verification is not None and self.verification.disagreements:
            return Unreadable.exit_code
        if self.failed:
            return Violated.exit_code
        return Unreadable.exit_code if any(one.severity.blocks for one in self.of(Status.ERROR)) else 0

    @property
    def verdict(self) -> str:
        """`kept`, `broken` or `could not tell`, as the exit code says it."""
        return _VERDICTS[self.exit_code]

    def raise_for_status(self) -> None:
        """Raises Violated when a check failed, Unmeasured when one could not be measured; warnings pass."""
        if self.exit_code == 0:
            return
        broken = self.exit_code == Violated.exit_code
        unmeasured = tuple(one for one in self.of(Status.ERROR) if one.severity.blocks)
        grave = self.failed if broken else unmeasured
        verb = "failed" if broken else "could not be measured"
        message = f"{self.contract} {self.object}: {len(grave)} check(s) {verb}: " + "; ".join(
            result.message for result in grave[:5]
        )
        mend = "Mend the data or the contract; do not publish this delivery."
        # It ends in the log of a pipeline, as a traceback.
        error = (Violated if broken else Unmeasured)(inert(one_line(f"{message}.")), mend)
        error.report = self
        raise error

    def __repr__(self) -> str:
        """What a prompt shows: the verdict, and a line for each result that is not as promised."""
        open_ = self.of(Status.FAIL, Status.ERROR)
        lines = [f"  {one.status} {one.severity} {one_line(one.message)}" for one in open_[:20]]
        more = [f"  … {len(open_) - 20} more"] if len(open_) > 20 else []
        return inert("\n".join([f"<{one_line(self._title())}: {self._said()}>", *lines, *more]))

    def _repr_html_(self) -> str:
        return html(self._title(), self._said(), self.results)

    def _title(self) -> str:
        return f"{self.contract} {self.version}, {self.object}"

    def _said(self) -> str:
        counted = ", ".join(f"{number} {status}" for status, number in self.counts().items() if number)
        return f"{self.verdict} ({counted or 'no checks'})"

    def counts(self) -> dict[str, int]:
        """How many results have each status."""
        counted = Counter(result.status for result in self.results)
        return {status.value: counted[status] for status in Status}

    def as_dict(self) -> JsonObject:
        """The report as JSON values, in the manner of the draft OORS: status, target, measure, threshold.

        The only data in it are the samples, in which classified columns are masked.
        """
        return {
            "contract": self.contract,
            "version": self.version,
            "object": self.object,
            "partitions": [dict(one) for one in self.partitions],
            "at": self.at.isoformat() if self.at else None,
            "rules": list(self.rules),
            "rows": self.rows,
            "passes": self.passes,
            "proven": self.proven,
            "kept": self.kept,
            "counts": self.counts(),
            "results": [_result(result) for result in self.results],
            "clauses": [account.as_dict() for account in self.accounts],
            "quarantine": asdict(self.quarantine) if self.quarantine else None,
            "notes": list(self.notes),
            "verification": asdict(self.verification) if self.verification else None,
        }


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
        **({"groups": [_group(result, one) for one in result.groups]} if result.by else {}),
    }


def _group(result: CheckResult, one: GroupResult) -> JsonObject:
    return {
        "by": dict(zip(result.by, one.key, strict=True)),
        "status": one.status.value,
        "observed": one.observed,
        "value": one.value,
    }
