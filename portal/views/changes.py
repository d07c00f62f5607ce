"""The screen of what changed of contracts, what ends soon, and which waivers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dq.portal.facts.watcher import Watcher
from dq.portal.views.lists import PER_PAGE, ProductRow, row
from dq.portal.views.words import Values, cut, instant, instant_of


@dataclass(frozen=True, slots=True)
class NotedChange:
    """A contract that is new or has changed since an earlier build, and when that was noticed (ISO, UTC)."""

    at: str
    key: str
    title: str
    slug: str
    before: str
    after: str


def changes(
    noted: Sequence[NotedChange],
    rows: Sequence[ProductRow],
    waivers: Sequence[Values] | None,
    watcher: Watcher,
) -> Values:
    """What changed of contracts, what ends soon, and which waivers do."""
    ending = [one for one in rows if one.card.announced or one.card.status == "deprecated"]
    return {
        "as_of": instant(watcher.now),
        "noted": [_noted(one) for one in noted],
        "ends": [
            {**row(one), "announced": one.card.announced, "status": one.card.status}
            for one in ending[:PER_PAGE]
        ],
        "waivers": waivers,
    }


def _noted(one: NotedChange) -> Values:
    return {
        "at": instant_of(one.at),
        "title": cut(one.title, 120),
        "slug": one.slug,
        "before": one.before,
        "after": one.after,
        "major": bool(one.before) and _major(one.before) != _major(one.after),
    }


def _major(version: str) -> str:
    return version.removeprefix("v").partition(".")[0]
