"""A report as a notebook shows it: HTML that needs no style of its own, every text of others escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dq.contracts.escaping import markup
from dq.contracts.shared.outcome import CheckResult, Status
from dq.contracts.shared.printable import one_line

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
    return markup.html(one_line(text))
