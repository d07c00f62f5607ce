"""What the status of a contract means for its changes, and what its own changes mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta

from dq.contracts.diff.level import date_of, name_of
from dq.contracts.model import Contract
from dq.validators.compat.judgement.setting import Setting
from dq.validators.compat.judgement.words import Bump, Judgement, neutral, policy, weaken

DRAFT, ACTIVE, DEPRECATED, RETIRED = "draft", "active", "deprecated", "retired"
_STAGES = {"draft": DRAFT, "proposed": DRAFT, "deprecated": DEPRECATED, "retired": RETIRED}


def stage(contract: Contract) -> str:
    """How far a contract is; without a status, or with one that nobody knows, it is in force."""
    return _STAGES.get(_word(contract), ACTIVE)


def _word(contract: Contract) -> str:
    return (contract.status or ACTIVE).strip().lower()


def end_of(contract: Contract) -> date | None:
    """The day until which the contract is supported: `endOfSupport`, else `endOfLife`."""
    dates: dict[str, date] = {}
    for sla in contract.sla_properties:
        day = date_of(str(sla.value))
        if day is not None:
            dates.setdefault(name_of(sla.property), day)
    return dates.get("endOfSupport", dates.get("endOfLife"))


def is_enforced(before: Contract, today: date) -> bool:
    """Whether changes of a contract are judged: drafts and what is past its end only tell them."""
    now = stage(before)
    if now == DEPRECATED:
        end = end_of(before)
        return end is None or end >= today
    return now == ACTIVE


def why_not_enforced(before: Contract) -> str:
    """Why the changes of a contract are only told, in a sentence: it is a draft, or past its end."""
    return {
        DRAFT: f"It breaks nobody: its status is {_word(before)}, so nothing of it is promised yet.",
        RETIRED: "It breaks nobody: the contract is retired.",
    }.get(stage(before), f"It breaks nobody: the contract's support ended on {end_of(before)}.")


def _noticed(end: date | None, setting: Setting) -> Judgement:
    if end is None:
        return policy("deprecation-end-missing", bump=Bump.MINOR)
    if end < setting.today + timedelta(days=setting.notice_days):
        note = f"{end} is less than {setting.notice_days} days away."
        return policy("deprecation-too-short", bump=Bump.MINOR, note=note)
    return neutral("status-deprecated", note=f"Supported until {end}.")


def _retired(end: date | None, setting: Setting) -> Judgement:
    if end is not None and end <= setting.today:
        return neutral("status-retired")
    return weaken("status-retired-early", note=f"Supported until {end}." if end else "It had no end.")


_DEMOTED, _REACTIVATED = weaken("status-demoted"), neutral("status-reactivated")
# TABLE: (stage before, stage after) -> what it means, or what says so from the end date.
_STEPS: Mapping[tuple[str, str], Judgement | Callable[[date | None, Setting], Judgement]] = {
    (DRAFT, ACTIVE): neutral("status-promoted"),
    (DRAFT, DEPRECATED): _noticed,
    (DRAFT, RETIRED): neutral("status-retired"),
    (ACTIVE, DRAFT): _DEMOTED,
    (ACTIVE, DEPRECATED): _noticed,
    (ACTIVE, RETIRED): weaken("status-retired-early", note="It was not deprecated before."),
    (DEPRECATED, DRAFT): _DEMOTED,
    (DEPRECATED, ACTIVE): _REACTIVATED,
    (DEPRECATED, RETIRED): _retired,
    (RETIRED, DRAFT): _REACTIVATED,
    (RETIRED, ACTIVE): _REACTIVATED,
    (RETIRED, DEPRECATED): _REACTIVATED,
}


def judge_status(before: Contract, after: Contract, setting: Setting) -> Judgement | None:
    """What the step from one status to another means; None where there is none.

    A retired contract needs the end that was promised before; one that is deprecated its new one.
    """
    step = (stage(before), stage(after))
    if step[0] == step[1]:
        lost = step[0] == DEPRECATED and end_of(before) is not None and end_of(after) is None
        if lost:
            return policy("deprecation-end-missing", bump=Bump.MINOR)
        return neutral("status-promoted", Bump.PATCH) if _word(before) != _word(after) else None
    meaning = _STEPS[step]
    if isinstance(meaning, Judgement):
        return meaning
    return meaning((end_of(before) if step[1] == RETIRED else None) or end_of(after), setting)


def judge_removal(before: Contract, today: date) -> Judgement:
    """What it means that a contract is gone."""
    now, end = stage(before), end_of(before)
    over = end is not None and end <= today
    if now in (DEPRECATED, RETIRED):
        if over or (now == RETIRED and end is None):
            return neutral("contract-removed-retired", Bump.NONE)
        note = f"Supported until {end}." if end else "No end of support was announced."
        return weaken("contract-removed-early", note=note)
    return weaken("contract-removed")
