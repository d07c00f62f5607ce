"""Waivers: changes that someone has agreed to, exactly, for a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fnmatch import fnmatchcase

from dq.validators.compat.judged import Judged, lowered
from dq.validators.compat.judgement.words import Bump, Effect, Level, Verdict

_WILDCARD_DAYS = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Waiver:
    """One agreement. An empty `contract` or `path` means any; `*` in a path needs an end within 90 days."""

    rule: str
    contract: str = ""
    path: str = ""
    reason: str = ""
    by: str = ""
    expires: date | None = None

    def covers(self, change: Judged, today: date) -> bool:
        """Whether it speaks about this change, whatever its date."""
        if self.rule != change.rule or self.contract not in ("", change.contract):
            return False
        path = change.path or change.contract
        if self.path in ("", path, f"{path}.{change.attribute}"):
            return True
        near = self.expires is not None and self.expires <= today + _WILDCARD_DAYS
        return "*" in self.path and near and fnmatchcase(path, self.path)


def apply_waivers(changes: Iterable[Judged], waivers: Iterable[Waiver], today: date) -> list[Judged]:
    """The changes, waived ones lowered to info, and an error for each expired waiver that is in use."""
    listed = list(waivers)
    found: list[Judged] = []
    for change in changes:
        waiver = next((one for one in listed if one.covers(change, today)), None)
        if waiver is None or change.level is Level.INFO:
            found.append(change)
        elif waiver.expires is not None and waiver.expires < today:
            found += [change, _expired(change, waiver)]
        else:
            reason = " ".join(part for part in (waiver.reason, f"({waiver.by})" if waiver.by else "") if part)
            found.append(lowered(change, Bump.MINOR, waived=reason or "waived"))
    return found


def _expired(change: Judged, waiver: Waiver) -> Judged:
    return replace(
        change,
        rule="accept-expired",
        effect=Effect.POLICY,
        level=Level.ERROR,
        verdict=Verdict.BREAK,
        who=("registry",),
        note=f"The waiver of {waiver.rule} ended on {waiver.expires}.",
    )
