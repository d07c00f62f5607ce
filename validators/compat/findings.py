"""Judged changes as findings, so that they stand beside what else is wrong, each on its line."""

from __future__ import annotations

from datetime import date

from dq.contracts.shared.outcome import Finding, Severity
from dq.validators.compat.judged import Comparison, Judged
from dq.validators.compat.judgement.words import Bump, Verdict

_SEVERITY = {Verdict.BREAK: Severity.ERROR, Verdict.WARN: Severity.WARNING, Verdict.OK: Severity.INFO}
# It breaks no reader, and shows to all what was hidden: whoever owns the data has to say so in a waiver.
_GRAVER = {"classification-lowered": Severity.ERROR}


def findings(found: Comparison, today: date) -> list[Finding]:
    """One finding for each change, in the new file; what was removed stands at its surviving parent.

    A break is an error, and so is a lowered classification, a warning a warning, the rest is information.
    The mend of what matters ends with a waiver to paste.
    """
    return [_finding(change, today) for change in found.changes]


def _finding(change: Judged, today: date) -> Finding:
    message = change.problem
    if change.verdict is not Verdict.OK:
        message += f" It hits {', '.join(change.who)}."
    if change.bump is not Bump.NONE and change.verdict is not Verdict.OK:
        which = f", {change.required_version}" if change.required_version else ""
        message += f" It needs a {change.bump} version{which}."
    if change.waived:
        message += f" Waived: {change.waived}."
    mend = change.instead
    if change.verdict is not Verdict.OK:
        item = _one_line(change.waiver(today)).removeprefix("waivers: ")
        mend += f" To accept it, add to 'waivers' in dq-policy.yaml: {item}"
    severity = _SEVERITY[change.verdict]
    if change.verdict is not Verdict.OK:
        severity = _GRAVER.get(change.rule, severity)
    return Finding(change.rule, severity, message, mend, change.at, change.pointer, change.contract)


def _one_line(snippet: str) -> str:
    return " ".join(snippet.split())
