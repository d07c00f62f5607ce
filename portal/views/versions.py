"""What a change of a contract broke, as a row of a product's versions or of the changes of all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from dq.contracts.model import identity
from dq.portal.facts.product import ProductFacts
from dq.portal.facts.versions import Broke, VersionChange
from dq.portal.views.words import Values, Word, cut, instant, instant_of

_ROWS = 10
_WORDS = {
    Broke.BREAK: Word("broken", "broke a promise"),
    Broke.WARN: Word("late", "may break readers"),
    Broke.NOTHING: Word("fine", "broke nothing"),
    Broke.FIRST: Word("resting", "the first"),
    Broke.UNKNOWN: Word("unknown", "what it broke is not known"),
}


def change_values(one: VersionChange) -> Values:
    """One change: from which version to which, what it broke, and when."""
    return {
        "title": title(one.before, one.after),
        "state": _WORDS[one.broke],
        "at": instant_of(one.at),
        "loose": not one.at,
        "told": [(rule, cut(text, 300)) for rule, text in one.told],
        "more": one.more,
        "unannounced": one.unannounced,
        "reason": one.reason,
        "major": is_major(one.before, one.after),
    }


def title(before: str, after: str) -> str:
    """Both versions, as far as they are known."""
    if before and before == after:
        return f"within {cut(after, 60)}"
    return " → ".join(cut(one, 60) for one in (before, after) if one) or "a version that cannot be read"


def is_major(before: str, after: str) -> bool:
    """Whether another major came in the place of one."""
    return bool(before and after) and identity("", before) != identity("", after)


def says_nothing(one: VersionChange) -> bool:
    """Whether it is a matter of the file alone: comments, the order of keys."""
    return one.silent and one.before == one.after


def versions(facts: ProductFacts) -> Values:
    """The versions of a product, the newest first, with what each broke and when its data was first
    checked. What Git does not tell is listed as such, as far as checks have seen it."""
    checked = _checked(facts)
    every = [one for one in facts.versions.changes if not says_nothing(one)]
    rows, now = [], facts.contract.version
    for one in every[:_ROWS]:
        first = checked.pop(one.after, None) if one.after != one.before else None
        rows.append(
            {**change_values(one), "checked": instant(first) if first else None, "now": one.after == now}
        )
        now = "" if one.after == now else now
    if len(every) > _ROWS:
        for one in every[_ROWS:]:
            checked.pop(one.after, None)
            now = "" if one.after == now else now
    rows = [*_others(checked, now), *rows]
    return {
        "rows": rows,
        "older": facts.versions.older or len(every) > _ROWS,
        "unknown": facts.versions.unknown,
        "status": "in force" if facts.in_force else facts.contract.status,
    }


def _checked(facts: ProductFacts) -> dict[str, datetime]:
    """When each version was first checked, as far as the results that stand tell."""
    found: dict[str, datetime] = {}
    for one in facts.objects:
        for line in one.quality.lines:
            found[line.version] = min(line.at, found.get(line.version, line.at))
    return found


def _others(checked: dict[str, datetime], now: str) -> Iterator[Values]:
    """Versions that no change led to: the one in the file, and those that were checked."""
    names = dict.fromkeys(
        ([now] if now else []) + sorted(checked, key=lambda name: checked[name], reverse=True)
    )
    for name in names:
        at = checked.get(name)
        made = change_values(VersionChange("", name, Broke.UNKNOWN))
        yield {**made, "loose": False, "checked": instant(at) if at else None, "now": name == now}
