"""The screen of what changed of contracts, what ends soon, and which waivers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dq.portal.facts.versions import Broke, VersionChange, VersionHistory
from dq.portal.facts.watcher import Watcher
from dq.portal.views.lists import PER_PAGE, ProductRow, row
from dq.portal.views.versions import change_values, says_nothing
from dq.portal.views.words import Values, Word, cut, instant


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
    histories: Mapping[str, VersionHistory],
    waivers: Sequence[Values] | None,
    watcher: Watcher,
) -> Values:
    """What changed of contracts, what ends soon, and which waivers do.

    Changes are those that Git has. Of contracts of which it tells nothing they are those that were noticed
    between two builds, and what they broke is not known.
    """
    ending = [one for one in rows if one.card.announced or one.card.status == "deprecated"]
    known = {one.card.key: history for one in rows if (history := histories.get(one.card.file))}
    told = [
        (change.at or _LATEST, {**change_values(change), **_product(one.card.title, one.card.slug)})
        for one in rows
        if one.card.file in histories
        for change in histories[one.card.file].changes
        if not says_nothing(change)
    ]
    for one in noted:
        history = known.get(one.key)
        if history is None or history.unknown:
            change = VersionChange(one.before, one.after, Broke.UNKNOWN, one.at)
            row_ = {**change_values(change), **_product(one.title, one.slug), "noticed": True}
            told.append((one.at, row_ if one.before else {**row_, "state": _NEW}))
    told.sort(key=lambda pair: pair[0], reverse=True)
    return {
        "as_of": instant(watcher.now),
        "changed": [values for _, values in told[:_CHANGES]],
        "unknown": sorted({one.unknown for one in known.values() if one.unknown}),
        "ends": [
            {**row(one), "announced": one.card.announced, "status": one.card.status}
            for one in ending[:PER_PAGE]
        ],
        "waivers": waivers,
    }


_CHANGES = 200
_NEW = Word("resting", "new")
# What is not committed yet stands first.
_LATEST = "~"


def _product(title: str, slug: str) -> Values:
    return {"product": cut(title, 120), "slug": slug, "noticed": False}
