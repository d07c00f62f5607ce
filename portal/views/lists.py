"""The first screen, and lists of products that have several pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dq.portal.facts.card import Card
from dq.portal.facts.incidents import IncidentFacts
from dq.portal.facts.product import ProductState
from dq.portal.facts.summary import Summary
from dq.portal.facts.watcher import Watcher
from dq.portal.views.product import incident_row
from dq.portal.views.words import STATES, Values, cut, instant, instant_of, length

SHOWN = 20
"""So many products stand in a list of the first page; the rest is behind a link."""
PER_PAGE = 200
_DAY = timedelta(days=1)


# Lists ask for it by the hundred thousand, and an enum's own look-up is slow.
_BY_VALUE = {one.value: one for one in ProductState}


@dataclass(frozen=True, slots=True)
class ProductRow:
    """One product with its page's folder."""

    card: Card
    summary: Summary

    @property
    def state(self) -> ProductState:
        return _BY_VALUE[self.summary.state]


def row(one: ProductRow) -> Values:
    """A product in a list."""
    return {
        "title": cut(one.card.title, 120),
        "key": cut(one.card.key, 120),
        "slug": one.card.slug,
        "domain": cut(one.card.domain, 80),
        "state": STATES[one.state],
        "why": cut(one.summary.why, 240),
        "since": instant_of(one.summary.since),
    }


_SECTIONS = (
    (ProductState.UNREADABLE, "Contracts that cannot be read",
     "Nothing is known of these until their contract is mended: run 'dq validate'."),
    (ProductState.BROKEN, "Broken", "Their data breaks a promise, and nobody has mended it yet."),
    (ProductState.LATE, "Late", "A delivery is missing."),
    (ProductState.UNKNOWN, "Unknown", "Nobody can tell how they stand. That is not the same as fine."),
)  # fmt: skip


def today(rows: Sequence[ProductRow], incidents: Sequence[IncidentFacts], watcher: Watcher) -> Values:
    """The first page: what is wrong now, what nobody knows, what is nearly spent, what is new."""
    by_state: dict[ProductState, list[ProductRow]] = defaultdict(list)
    for one in rows:
        by_state[one.state].append(one)
    sections = []
    for state, title, said in _SECTIONS:
        found = sorted(by_state[state], key=lambda one: (one.summary.since, one.card.title), reverse=True)
        sections.append(
            {
                "kind": STATES[state].kind, "title": title, "said": said, "count": len(found),
                "rows": [row(one) for one in found[:SHOWN]], "more": max(len(found) - SHOWN, 0),
                "page": f"lists/{state.value}.html",
            }
        )  # fmt: skip
    spent = sorted(
        (one for one in rows if one.summary.spent), key=lambda one: (-one.summary.exhausted, one.card.title)
    )
    new = [one for one in incidents if watcher.now - one.incident.opened_at <= _DAY]
    ended = [
        one
        for one in incidents
        if one.incident.resolved_at is not None and watcher.now - one.incident.resolved_at <= _DAY
    ]
    return {
        "as_of": instant(watcher.now),
        "heard": instant(watcher.heard) if watcher.heard else None,
        "stale": watcher.stale,
        "ahead": watcher.ahead,
        "tick": length(watcher.tick.total_seconds() / 60),
        "total": len(rows),
        "tally": [
            (STATES[state], len(by_state[state]), f"lists/{state.value}.html") for state in ProductState
        ],
        "sections": sections,
        "spent": [
            {**row(one), "why": "", "since": None, "budgets": one.summary.spent[:3]} for one in spent[:SHOWN]
        ],
        "spent_more": max(len(spent) - SHOWN, 0),
        "new": [incident_row(one) for one in new[:SHOWN]],
        "new_more": max(len(new) - SHOWN, 0),
        "ended": [incident_row(one) for one in ended[:SHOWN]],
        "gone": [incident_row(one) for one in _of_no_product(rows, incidents)],
        "platform": [
            incident_row(one) for one in incidents if one.about_the_platform and not one.incident.state.closed
        ],
    }


def _of_no_product(rows: Sequence[ProductRow], incidents: Sequence[IncidentFacts]) -> list[IncidentFacts]:
    """What is open of contracts that are no more, so that no product's page leads to it."""
    keys = {one.card.key for one in rows}
    return [
        one
        for one in incidents
        if not one.incident.state.closed
        and not one.about_the_platform
        and one.incident.key.contract not in keys
    ][:SHOWN]


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list that has several; numbers count from 1."""

    path: str
    title: str
    rows: tuple[ProductRow, ...]
    number: int
    pages: int
    total: int
    before: str | None
    after: str | None


def listings(name: str, title: str, rows: Sequence[ProductRow], folder: str = "lists") -> Iterable[ListPage]:
    """The pages of a list; one where it is empty."""
    count = max(-(-len(rows) // PER_PAGE), 1)

    def path(number: int) -> str:
        # In a folder of their own: another list may be called like the second page of this one.
        return f"{folder}/{name}.html" if number == 1 else f"{folder}/pages/{name}.{number}.html"

    for number in range(1, count + 1):
        yield ListPage(
            path(number),
            title,
            tuple(rows[(number - 1) * PER_PAGE : number * PER_PAGE]),
            number,
            count,
            len(rows),
            path(number - 1) if number > 1 else None,
            path(number + 1) if number < count else None,
        )


def made_from(one: ListPage) -> tuple[Any, ...]:
    """All that such a page is made from."""
    rows = [
        (card.title, card.key, card.slug, card.domain, said.state, said.why, said.since)
        for card, said in ((each.card, each.summary) for each in one.rows)
    ]
    return one.title, one.number, one.pages, one.total, one.before, one.after, rows


def listing(one: ListPage) -> Values:
    """The values of such a page."""
    return {
        "title": one.title,
        "number": one.number,
        "pages": one.pages,
        "total": one.total,
        "before": one.before,
        "after": one.after,
        "rows": [row(each) for each in one.rows],
    }
