"""Judged changes as findings, so that they stand beside what else is wrong, each on its line."""

from __future__ import annotations

from collections import Counter
from datetime import date

from dq.contracts.shared.outcome import Finding, Severity
from dq.validators.compat.classification.model import Bump, Verdict
from dq.validators.compat.classified_change import Aspect, Comparison, Judged

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
    if change.part is Aspect.VERSION_POLICY:
        message = f"Version policy: {message}"
    elif change.verdict is not Verdict.OK:
        message += f" It hits {', '.join(change.who)}.{change.subscribed}{asked(change)}"
    if change.waived:
        message += f" Waived: {change.waived}."
    mend = change.instead
    if change.verdict is not Verdict.OK:
        item = " ".join(change.waiver(today).split()).removeprefix("waivers: ")
        mend += f" To accept it, add to 'waivers' in dq-policy.yaml: {item}"
    severity = _SEVERITY[change.verdict]
    if change.verdict is not Verdict.OK:
        severity = _GRAVER.get(change.rule, severity)
    return Finding(change.rule, severity, message, mend, change.at, change.pointer, change.contract)


def asked(change: Judged) -> str:
    """Which version announces a change, as a sentence; empty where none is asked for."""
    if change.bump is Bump.NONE:
        return ""
    if not change.own_version:
        return f" It needs a {change.bump} version."
    if change.own_version == change.required_version:
        return f" It needs a {change.bump} version: {change.own_version}."
    return (
        f" It needs a {change.bump} version, {change.own_version}; "
        f"all changes together need {change.required_version}."
    )


def summary(found: Comparison, part: Aspect) -> str:
    """One question's answer in a few words: how many changes, or the version that is needed."""
    changes = found.of(part)
    if part is Aspect.VERSION_POLICY:
        wrong = [one.rule for one in changes if one.verdict is not Verdict.OK]
        needed = found.required_version is not None and any(
            one.bump is not Bump.NONE for one in found.changes
        )
        said = f"version {found.required_version} or higher is needed" if needed else ""
        return ": ".join(text for text in (said, ", ".join(wrong)) if text)
    if not changes:
        return "nothing changed"
    modes = ", ".join(sorted({one.mode.value for one in changes}))
    counts = Counter(one.verdict for one in changes)
    return f"{modes}: " + ", ".join(f"{counts[one]} {one}" for one in reversed(Verdict) if counts[one])
