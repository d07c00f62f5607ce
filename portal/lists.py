"""The screens over many products (today, lists, domains, changes, search), of incidents, and their feed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from statistics import median
from typing import Any

from dq.alerts.incident import TITLE, Facts
from dq.contracts.outcome import block, counted, in_json
from dq.portal.contracts import Broke, Card, VersionChange, VersionHistory, domain_page, slug
from dq.portal.formatting import STATES, Values, Word, cut, instant, instant_of, length, said_state
from dq.portal.product import ProductState, Summary
from dq.portal.product_page import Link, change_values, incident_row, says_nothing
from dq.portal.store_queries import IncidentFacts, Watcher

# The screens over many products: today, lists, domains, changes, and the search.

# The first screen, and lists of products that have several pages.

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


def today_page(rows: Sequence[ProductRow], incidents: Sequence[IncidentFacts], watcher: Watcher) -> Values:
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


_PAGE_FIELDS = ("title", "number", "pages", "total", "before", "after")


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


def listing_page(one: ListPage) -> Values:
    """The values of such a page."""
    return {name: getattr(one, name) for name in _PAGE_FIELDS} | {"rows": [row(each) for each in one.rows]}


# The report of a domain: how its promises are kept, how fast it mends, how much it promises.

_WORST = 5


def by_domain(rows: Iterable[ProductRow]) -> dict[str, list[ProductRow]]:
    """The products by their domain, in order; what names none is of the empty one."""
    found: dict[str, list[ProductRow]] = defaultdict(list)
    for one in rows:
        found[one.card.domain].append(one)
    return dict(sorted(found.items()))


def domain_report(name: str, rows: Sequence[ProductRow], watcher: Watcher) -> Values:
    """The report of a domain: how its promises are kept, how fast it mends, how much it promises."""
    summaries = [one.summary for one in rows]
    good, bad = sum(one.good for one in summaries), sum(one.bad for one in summaries)
    acknowledged = [minutes for one in summaries for minutes in one.acknowledged]
    resolved = [minutes for one in summaries for minutes in one.resolved]
    clauses, enforced = sum(one.clauses for one in summaries), sum(one.enforced for one in summaries)
    covered = f"{enforced:,} of {counted(clauses, 'clause')} on schema and data"
    worst = sorted((one for one in rows if one.state in _MATTERS or one.summary.bad), key=_badness)
    return {
        "title": name or "Products of no domain",
        "as_of": instant(watcher.now),
        "figures": [
            ("Products", f"{len(rows):,}", ""),
            ("In time", _share(good, good + bad), f"{good:,} of {good + bad:,} deliveries in their windows"),
            ("Budgets exhausted", f"{sum(one.exhausted for one in summaries):,}", ""),
            ("To acknowledge", *_median(acknowledged, "acknowledged")),
            ("To resolve", *_median(resolved, "resolved")),
            ("Enforced", _share(enforced, clauses), covered),
        ],
        "worst": [row(one) for one in worst[:_WORST]],
    }  # fmt: skip


def _share(part: int, whole: int) -> str:
    """A part in percent, rounded down: nothing that is missed is shown as 100%."""
    return f"{int(1000 * part / whole) / 10:.1f}%" if whole else "-"


def _median(minutes: Sequence[float], done: str) -> tuple[str, str]:
    if not minutes:
        return "-", f"no incident was {done}"
    return length(median(minutes)), f"median of {counted(len(minutes), 'incident')}"


_MATTERS = (ProductState.UNREADABLE, ProductState.BROKEN, ProductState.LATE, ProductState.UNKNOWN)


def _badness(one: ProductRow) -> tuple[Any, ...]:
    counted_cycles = one.summary.good + one.summary.bad
    return (
        list(ProductState).index(one.state),
        -(one.summary.bad / counted_cycles if counted_cycles else 0),
        one.card.title,
    )


def domain_line(name: str, rows: Sequence[ProductRow]) -> Values:
    """A domain in the list of all."""
    good, bad = sum(one.summary.good for one in rows), sum(one.summary.bad for one in rows)
    matters = (ProductState.BROKEN, ProductState.LATE)
    unknown = (ProductState.UNKNOWN, ProductState.UNREADABLE)
    return {
        "name": name or "(none)",
        "page": domain_page(name),
        "products": len(rows),
        "in_time": _share(good, good + bad),
        "bad": sum(one.state in matters for one in rows),
        "unknown": sum(one.state in unknown for one in rows),
    }


# The screen of what changed of contracts, what ends soon, and which waivers do.


@dataclass(frozen=True, slots=True)
class NotedChange:
    """A contract that is new or has changed since an earlier build, and when that was noticed (ISO, UTC)."""

    at: str
    key: str
    title: str
    slug: str
    before: str
    after: str


def changes_page(
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


# The screen of the search: what can be filtered by, and all domains for who has no script.

# A longer list is none to choose from, and the page would grow with it.
_OPTIONS = 300
# So few can be looked through without a search.
_FEW = 50


def find_page(rows: Sequence[ProductRow]) -> Values:
    """The page of the search: what can be filtered by, and the domains for who has no script."""
    domains = by_domain(rows)
    owners = sorted({owner for one in rows for owner in one.card.owners[:3]})
    kinds = sorted({kind for one in rows for kind in one.card.classifications})
    states = [state for state in ProductState if any(one.state is state for one in rows)]
    return {
        "total": len(rows),
        "filters": [
            _filter("domain", "Domain", [(name, name) for name in domains if name]),
            _filter("owner", "Owner", [(name, name) for name in owners]),
            _filter("status", "Status", [(state.value, STATES[state].text) for state in states]),
            _filter("classification", "Classification", [(kind, kind) for kind in kinds]),
        ],
        "few": [row(one) for one in sorted(rows, key=_title)] if len(rows) <= _FEW else [],
        "domains": [(name or "(none)", domain_page(name), len(those)) for name, those in domains.items()],
    }  # fmt: skip


def _title(one: ProductRow) -> str:
    return one.card.title.lower()


def _filter(name: str, label: str, options: Sequence[tuple[str, str]]) -> Values:
    """What can be filtered by: each value with the file that holds its products, and as it is shown."""
    shown = [(filter_shelf(name, value), cut(text, 80)) for value, text in options[:_OPTIONS]]
    return {"name": name, "label": label, "options": shown}


# What the search looks up: files for words that begin alike, and one for each value of each filter.
#
# They are JavaScript that calls one function with JSON: a script tag may load it where `fetch` may not, on
# `file://`. A word's file is named by the code points of its first two letters.

Shelf = tuple[str, bytes]
"""A file's name and what it holds."""


def shelf_of(word: str) -> str:
    """The file that holds a word."""
    return "w-" + "-".join(f"{ord(sign):x}" for sign in word[:2])


@cache
def filter_shelf(name: str, value: str) -> str:
    """The file that holds the products of one value of a filter."""
    return f"f-{name}-{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


@dataclass(slots=True)
class _WordShelf:
    """The products of words that begin alike, as JSON; of each word, four times a product's place among them
    and how much the word says of it. `last` is the card that was put there last."""

    products: list[str] = field(default_factory=list)
    words: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    last: int = -1


def word_shelves(rows: Iterable[ProductRow]) -> Iterator[Shelf]:
    """The files of words."""
    found: dict[str, _WordShelf] = defaultdict(_WordShelf)
    for place, one in enumerate(rows):
        shown = ""
        for entry in _entries(one.card):
            shelf = found[entry[1:3]]
            if shelf.last != place:
                shelf.last, shown = place, shown or _shown(one.card)
                shelf.products.append(shown)
            shelf.words[entry[1:]].append((len(shelf.products) - 1) * 4 + int(entry[0]))
    for start, shelf in sorted(found.items()):
        words = json.dumps(dict(sorted(shelf.words.items())), ensure_ascii=False, separators=(",", ":"))
        yield _script(shelf_of(start), f'{{"p":[{",".join(shelf.products)}],"w":{in_json(words)}}}')


def _entries(card: Card) -> list[str]:
    return card.words.split() if card.readable else []


def filter_shelves(rows: Iterable[ProductRow]) -> Iterator[Shelf]:
    """The files of the filters."""
    found: dict[str, list[str]] = defaultdict(list)
    for one in rows:
        shown = _shown(one.card)
        for name, value in _values(one):
            found[filter_shelf(name, value)].append(shown)
    for shelf, products in sorted(found.items()):
        yield _script(shelf, f'{{"p":[{",".join(products)}]}}')


def _values(one: ProductRow) -> list[tuple[str, str]]:
    card = one.card
    found = [("status", one.state.value), *(("owner", owner) for owner in card.owners[:3])]
    found += [("domain", card.domain)] if card.domain else []
    return found + [("classification", kind) for kind in card.classifications]


def _shown(card: Card) -> str:
    texts = (block(cut(*one)) for one in ((card.title, 120), (card.domain, 80), (card.purpose, 160)))
    return in_json(json.dumps([card.slug, *texts], ensure_ascii=False, separators=(",", ":")))


def _script(name: str, value: str) -> Shelf:
    # JSON is JavaScript but for two line separators, which `in_json` escapes with all that steers a reader.
    return name, f"dqShelf({json.dumps(name)},{value});\n".encode("utf-8", "backslashreplace")


# The screen of one incident, from the promise to its end; and the feed of all.

_KINDS = {
    "opened": "It broke, and the incident was opened",
    "reopened": "It broke again",
    "joined": "One more broke",
    "recovered": "One of them recovered",
    "resolved": "It was kept again, and the incident ended",
    "acked": "Somebody is on it",
    "excused": "It was excused",
    "withdrawn": "The promise was withdrawn",
    "given_up": "It was given up",
    "handed_over": "It is still broken, and incidents of its products tell of it",
    "silenced": "It was silenced",
    "flapping": "It breaks and recovers again and again",
    "past": "It was over before it was known",
    "inhibited": "It waits for another product, and so do its alerts",
    "holds up": "Others wait for it",
    "summed up": "It was told in one message with others",
    "rerouted": "Its alerts go elsewhere now",
    "suppressed": "An alert was held back",
    "dismissed": "An alert was given up by a person",
    "sent": "An alert was sent",
    "dead": "An alert could not be delivered",
}
_SENT = {
    "sent": "sent",
    "ready": "waits to be sent",
    "sending": "is being sent",
    "ambiguous": "may have been sent",
    "dead": "was refused",
    "dropped": "was not needed any more",
}
# What a message says, by its operation in the outbox.
_MESSAGES = {
    "create": "the alert",
    "update": "the alert, brought up to date",
    "remind": "a reminder",
    "acked": "who is on it",
    "worse": "that it is worse",
    "count": "how many there are now",
    "flapping": "that it comes and goes",
    "reopened": "that it broke again",
    "resolved": "that it ended",
}
_SUBJECTS, _STEPS = 50, 200


def incident(facts: IncidentFacts, page_of: Link) -> Values:
    """All values of the page."""
    one = facts.incident
    subjects = sorted(one.subjects.items(), key=lambda pair: pair[1].opened_at, reverse=True)
    return {
        **incident_row(facts),
        "key": str(one.key),
        "object": one.key.object,
        "group": one.key.group,
        "page": page_of(one.key.contract),
        "breaches": one.breaches,
        "acked": instant(one.acked_at) if one.acked_at else None,
        "silenced": (instant(one.silenced_until), cut(one.silenced_why, 300)) if one.silenced_until else None,
        "holds_up": one.holds_up[:50],
        "subjects": [
            {
                "name": cut(_subject(name), 300),
                "opened": instant(subject.opened_at),
                "closed": instant(subject.closed_at) if subject.closed_at else None,
                "end": subject.end.value.replace("_", " ") if subject.end else None,
                "facts": _lines(subject.facts),
                "closing": _lines(subject.closing_facts),
            }
            for name, subject in subjects[:_SUBJECTS]
        ],
        "subjects_left": max(len(subjects) - _SUBJECTS, 0),
        "steps": [
            {
                "at": instant(step.at),
                "said": _KINDS.get(step.kind, step.kind.replace("_", " ")),
                "subject": cut(_subject(step.subject), 300),
                "detail": cut(_told(step.detail), 500),
            }
            for step in facts.history[-_STEPS:]
        ],
        "messages": None
        if facts.messages is None
        else [
            {
                "place": cut(f"{message.channel}:{message.target}".rstrip(":"), 200),
                "what": _message(message.operation),
                "state": _SENT.get(message.state, message.state),
                "reason": cut(message.reason, 300),
            }
            for message in facts.messages
        ],
    }  # fmt: skip


def feed(title: str, own: str, incidents: list[IncidentFacts], up: str) -> dict[str, Any]:
    """An Atom feed, newest first; `own` is its name, `up` leads from it to the top of the site.

    What it says of its time is that of its newest entry, so that it changes when they do.
    """
    shown = incidents[:50]
    times = [max(one.incident.opened_at, one.incident.resolved_at or one.incident.opened_at) for one in shown]
    return {
        "title": title,
        "own": own,
        "updated": instant(max(times)).iso if times else "1970-01-01T00:00:00Z",
        "entries": [
            {
                "id": one.incident.id,
                "title": cut(one.incident.title, 300),
                "page": f"{up}incidents/{slug_of(one)}.html",
                "updated": instant(at).iso,
                "published": instant(one.incident.opened_at).iso,
                "said": _said(one),
            }
            for one, at in zip(shown, times, strict=True)
        ],
    }


def _lines(facts: Facts) -> list[tuple[str, str]]:
    return [(cut(label, 80), cut(text)) for label, text in facts if label != TITLE]


def _said(facts: IncidentFacts) -> str:
    one = facts.incident
    return f"{one.severity.value}, {said_state(one.state)}: {one.key}"


def _subject(name: str) -> str:
    """What broke: an instant is said as all others are."""
    try:
        at = datetime.fromisoformat(name)
    except ValueError:
        return name
    return instant(at).text if at.tzinfo else name


def _message(operation: str) -> str:
    return _MESSAGES.get(operation.removeprefix("reply:").partition(":")[0], operation)


def _told(detail: str) -> str:
    """What an alert said and to whom, where a step is about one: `create to console`."""
    operation, to, place = detail.partition(" to ")
    return f"{_message(operation)}{to}{place}"


def slug_of(facts: IncidentFacts) -> str:
    """The name of its page."""
    return slug(facts.incident.id)
