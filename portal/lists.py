"""Values of the pages over many products (overview, lists, domains, changes, search), incidents and feeds."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any

from dq.alerts.incident import TITLE, Facts
from dq.contracts.outcome import escape_json_document
from dq.portal.contracts import (
    ContractCard,
    VersionChange,
    VersionHistory,
    VersionImpact,
    domain_page,
    json_string,
    slug,
)
from dq.portal.formatting import (
    STATES,
    StatusLabel,
    Values,
    cut,
    duration,
    incident_state_label,
    instant,
    instant_from_iso,
)
from dq.portal.product import ProductState, ProductSummary
from dq.portal.product_page import change_values, incident_row, is_cosmetic
from dq.portal.store_queries import IncidentFacts, Watcher

# The overview page, and paginated lists of products.

MAX_SHOWN = 20
"""Maximum number of products in a list of the overview page; the others are behind a link."""
PER_PAGE = 200
_DAY = timedelta(days=1)


# A plain mapping: this is called for every product, and looking up an enum by value is slow.
_BY_VALUE = {state.value: state for state in ProductState}


@dataclass(frozen=True, slots=True)
class ProductRow:
    """One product of the site: its card and summary."""

    card: ContractCard
    summary: ProductSummary

    @property
    def state(self) -> ProductState:
        return _BY_VALUE[self.summary.state]


def row_inputs(product_row: ProductRow) -> tuple[str, ...]:
    """Return everything that `row` shows of a product."""
    card, summary = product_row.card, product_row.summary
    return card.title, card.key, card.slug, card.domain, summary.state, summary.why, summary.since


def row(product_row: ProductRow) -> Values:
    """Return the values of a product in a list."""
    title, key, slug_, domain, state, why, since = row_inputs(product_row)
    return {
        "title": cut(title, 120),
        "key": cut(key, 120),
        "slug": slug_,
        "domain": cut(domain, 80),
        "state": STATES[_BY_VALUE[state]],
        "why": cut(why, 240),
        "since": instant_from_iso(since),
    }


_SECTIONS = (
    (ProductState.UNREADABLE, "Unreadable contracts",
     "Their status is unknown until the contract is fixed: run 'dq validate'."),
    (ProductState.BROKEN, "Broken", "Their data violates the contract."),
    (ProductState.LATE, "Late", "A delivery is missing."),
    (ProductState.UNKNOWN, "Unknown", "They could not be evaluated, which does not mean they are healthy."),
)  # fmt: skip


def today_page(rows: Sequence[ProductRow], incidents: Sequence[IncidentFacts], watcher: Watcher) -> Values:
    """Return the overview page: broken, late and unknown products, those at risk, spent budgets, recent
    incidents.
    """
    by_state: dict[ProductState, list[ProductRow]] = defaultdict(list)
    for product_row in rows:
        by_state[product_row.state].append(product_row)
    sections = []
    for state, title, explanation in _SECTIONS:
        state_rows = sorted(
            by_state[state],
            key=lambda product_row: (product_row.summary.since, product_row.card.title),
            reverse=True,
        )
        sections.append(
            {
                "kind": STATES[state].kind, "title": title, "said": explanation, "count": len(state_rows),
                "rows": [row(product_row) for product_row in state_rows[:MAX_SHOWN]],
                "more": max(len(state_rows) - MAX_SHOWN, 0),
                "page": f"lists/{state.value}.html",
            }
        )  # fmt: skip
    spent = sorted(
        (product_row for product_row in rows if product_row.summary.spent),
        key=lambda product_row: (-product_row.summary.exhausted, product_row.card.title),
    )
    at_risk = sorted((product_row for product_row in rows if product_row.summary.at_risk), key=_title)
    new = [facts for facts in incidents if watcher.now - facts.incident.opened_at <= _DAY]
    ended = [
        facts
        for facts in incidents
        if facts.incident.resolved_at is not None and watcher.now - facts.incident.resolved_at <= _DAY
    ]
    return {
        "as_of": instant(watcher.now),
        "heard": instant(watcher.last_tick_at) if watcher.last_tick_at else None,
        "stale": watcher.stale,
        "ahead": watcher.ahead,
        "tick": duration(watcher.tick.total_seconds() / 60),
        "total": len(rows),
        "tally": [
            (STATES[state], len(by_state[state]), f"lists/{state.value}.html") for state in ProductState
        ],
        "sections": sections,
        "at_risk": [
            {**row(product_row), "why": "", "since": None, "budgets": product_row.summary.at_risk[:3]}
            for product_row in at_risk[:MAX_SHOWN]
        ],
        "at_risk_more": max(len(at_risk) - MAX_SHOWN, 0),
        "spent": [
            {**row(product_row), "why": "", "since": None, "budgets": product_row.summary.spent[:3]}
            for product_row in spent[:MAX_SHOWN]
        ],
        "spent_more": max(len(spent) - MAX_SHOWN, 0),
        "new": [incident_row(facts) for facts in new[:MAX_SHOWN]],
        "new_more": max(len(new) - MAX_SHOWN, 0),
        "ended": [incident_row(facts) for facts in ended[:MAX_SHOWN]],
        "ended_more": max(len(ended) - MAX_SHOWN, 0),
        "gone": [incident_row(facts) for facts in _orphaned_incidents(rows, incidents)],
        "platform": [
            incident_row(facts)
            for facts in incidents
            if facts.about_the_platform and not facts.incident.state.is_closed
        ],
    }


def _orphaned_incidents(
    rows: Sequence[ProductRow], incidents: Sequence[IncidentFacts]
) -> list[IncidentFacts]:
    """Return open incidents of removed contracts, which no product page links to."""
    keys = {product_row.card.key for product_row in rows}
    return [
        facts
        for facts in incidents
        if not facts.incident.state.is_closed
        and not facts.about_the_platform
        and facts.incident.key.contract not in keys
    ][:MAX_SHOWN]


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a paginated list; numbers start at 1."""

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
    """Yield the pages of a list; an empty list has one page."""
    count = max(-(-len(rows) // PER_PAGE), 1)

    def path(number: int) -> str:
        # In a separate folder, since another list may have the name of this one's second page.
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


def listing_inputs(page: ListPage) -> tuple[object, ...]:
    """Return everything that a list page shows, which takes less than its values."""
    return (*(getattr(page, name) for name in _PAGE_FIELDS), list(map(row_inputs, page.rows)))


def listing_page(page: ListPage) -> Values:
    """Return the values of a list page."""
    return {name: getattr(page, name) for name in _PAGE_FIELDS} | {
        "rows": [row(product_row) for product_row in page.rows]
    }


def by_domain(rows: Iterable[ProductRow]) -> dict[str, list[ProductRow]]:
    """Return the products by domain, sorted; "" for products without a domain."""
    domains: dict[str, list[ProductRow]] = defaultdict(list)
    for product_row in rows:
        domains[product_row.card.domain].append(product_row)
    return dict(sorted(domains.items()))


# The page of contract changes, ending contracts and ending waivers.


@dataclass(frozen=True, slots=True)
class NotedChange:
    """A new or changed contract since an earlier build, with the time of the build that noticed it (ISO,
    UTC).
    """

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
    """Return the page of contract changes, ending contracts and ending waivers.

    Changes come from Git. For contracts without Git history they are those noticed between two builds, with
    unknown impact.
    """
    ending = [
        product_row
        for product_row in rows
        if product_row.card.announced or product_row.card.status == "deprecated"
    ]
    histories_by_key = {
        product_row.card.key: history
        for product_row in rows
        if (history := histories.get(product_row.card.file))
    }
    entries = [
        (
            change.at or _LATEST,
            {**change_values(change), **_product(product_row.card.title, product_row.card.slug)},
        )
        for product_row in rows
        if product_row.card.file in histories
        for change in histories[product_row.card.file].changes
        if not is_cosmetic(change)
    ]
    for noted_change in noted:
        history = histories_by_key.get(noted_change.key)
        if history is None or history.unknown:
            change = VersionChange(
                noted_change.before, noted_change.after, VersionImpact.UNKNOWN, noted_change.at
            )
            row_ = {
                **change_values(change),
                **_product(noted_change.title, noted_change.slug),
                "noticed": True,
            }
            entries.append((noted_change.at, row_ if noted_change.before else {**row_, "state": _NEW}))
    entries.sort(key=lambda pair: pair[0], reverse=True)
    return {
        "as_of": instant(watcher.now),
        "changed": [values for _, values in entries[:_MAX_CHANGES]],
        "unknown": sorted({history_.unknown for history_ in histories_by_key.values() if history_.unknown}),
        "ends": [
            {**row(product_row), "announced": product_row.card.announced, "status": product_row.card.status}
            for product_row in ending[:PER_PAGE]
        ],
        "waivers": waivers,
    }


_MAX_CHANGES = 200
_NEW = StatusLabel("resting", "new")
# Sorts uncommitted changes first.
_LATEST = "~"


def _product(title: str, slug: str) -> Values:
    return {"product": cut(title, 120), "slug": slug, "noticed": False}


# The search page: filters, and all domains for browsers without script.

# Maximum number of values per filter, which bounds the size of the page.
_MAX_OPTIONS = 300
# Up to this many products are listed on the search page itself.
_MAX_WITHOUT_SEARCH = 50


def find_page(rows: Sequence[ProductRow]) -> Values:
    """Return the search page: filters, and the domains for browsers without script."""
    domains = by_domain(rows)
    owners = Counter(owner for product_row in rows for owner in product_row.card.owners[:3])
    kinds = Counter(kind for product_row in rows for kind in product_row.card.classifications)
    states = Counter(product_row.state for product_row in rows)
    return {
        "total": len(rows),
        "filters": [
            _filter("domain", "Domain", [(name, name, len(domains[name])) for name in domains if name]),
            _filter("owner", "Owner", [(name, name, owners[name]) for name in sorted(owners)]),
            _filter(
                "status", "Status",
                [(state.value, STATES[state].text, states[state]) for state in ProductState if states[state]],
            ),
            _filter("classification", "Classification", sorted((kind, kind, kinds[kind]) for kind in kinds)),
        ],
        "few": [row(card) for card in sorted(rows, key=_title)] if len(rows) <= _MAX_WITHOUT_SEARCH else [],
        "domains": [(name or "(none)", domain_page(name), len(cards)) for name, cards in domains.items()],
    }  # fmt: skip


def _title(product_row: ProductRow) -> str:
    return product_row.card.title.lower()


def _filter(name: str, label: str, options: Sequence[tuple[str, str, int]]) -> Values:
    """Return a filter: for each value the index file of its products, its label and their number."""
    file_options = [
        (filter_file(name, value), cut(text, 80), f"{count:,}")
        for value, text, count in options[:_MAX_OPTIONS]
    ]
    return {"name": name, "label": label, "options": file_options}


# The search index: files for words with the same first two letters, and one for each value of each filter.
#
# They are JavaScript that calls one function with JSON, because a script tag works on `file://`, where
# `fetch` does not. A word's file is named by the code points of its first two letters.

IndexFile = tuple[str, bytes]
"""Name and content of an index file."""


def word_file(word: str) -> str:
    """Return the name of the index file of a word."""
    return "w-" + "-".join(f"{ord(sign):x}" for sign in word[:2])


@cache
def filter_file(name: str, value: str) -> str:
    """Return the name of the index file of one filter value."""
    return f"f-{name}-{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


@dataclass(slots=True)
class _IndexShard:
    """Index of words with the same first two letters.

    `products` are JSON; `words` has for each word 4 * (index in `products`) + weight. `columns` are those of
    the product added last with one of the words, by number. `last` is the position of that product.
    """

    products: list[str] = field(default_factory=list)
    columns: dict[int, str] = field(default_factory=dict)
    words: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    last: int = -1

    def close(self) -> None:
        """Add the columns to the product that was added last."""
        if self.columns:
            columns = ",".join(f"[{number},{name}]" for number, name in sorted(self.columns.items()))
            self.products[-1] = f"{self.products[-1][:-1]},[{columns}]]"
            self.columns.clear()


def word_index_files(rows: Iterable[ProductRow]) -> Iterator[IndexFile]:
    """Yield the index files of words."""
    shards: dict[str, _IndexShard] = defaultdict(_IndexShard)
    for position, product_row in enumerate(rows):
        entry_json, names = "", list[str]()
        for entry in _indexed_words(product_row.card):
            shard = shards[entry[1:3]]
            if shard.last != position:
                shard.close()
                shard.last, entry_json = position, entry_json or _search_entry(product_row.card)
                shard.products.append(entry_json)
            word, _, columns = entry[1:].partition("#")
            shard.words[word].append((len(shard.products) - 1) * 4 + int(entry[0]))
            if columns:
                names = names or product_row.card.columns.split("\n")
                shard.columns.update((int(number), names[int(number)]) for number in columns.split(","))
    for start, shard in sorted(shards.items()):
        shard.close()
        words = json.dumps(dict(sorted(shard.words.items())), ensure_ascii=False, separators=(",", ":"))
        yield _script(
            word_file(start), f'{{"p":[{",".join(shard.products)}],"w":{escape_json_document(words)}}}'
        )


def _indexed_words(card: ContractCard) -> list[str]:
    return card.words.split() if card.readable else []


def filter_index_files(rows: Iterable[ProductRow]) -> Iterator[IndexFile]:
    """Yield the index files of filters."""
    entries_by_file: dict[str, list[str]] = defaultdict(list)
    for product_row in rows:
        entry = _search_entry(product_row.card)
        for name, value in _filter_values(product_row):
            entries_by_file[filter_file(name, value)].append(entry)
    for file, products in sorted(entries_by_file.items()):
        yield _script(file, f'{{"p":[{",".join(products)}]}}')


def _filter_values(product_row: ProductRow) -> list[tuple[str, str]]:
    card = product_row.card
    values = [("status", product_row.state.value), *(("owner", owner) for owner in card.owners[:3])]
    values += [("domain", card.domain)] if card.domain else []
    return values + [("classification", kind) for kind in card.classifications]


def _search_entry(card: ContractCard) -> str:
    texts = [cut(card.title, 120), cut(card.domain, 80), cut(card.purpose, 160)]
    return f"[{','.join(map(json_string, [card.slug, *texts]))}]"


def _script(name: str, value: str) -> IndexFile:
    # JSON is JavaScript except for two line separators, which `in_json` escapes with other control
    # characters.
    return name, f"dqShelf({json.dumps(name)},{value});\n".encode("utf-8", "backslashreplace")


# The page of one incident, and the Atom feeds.

_STEP_TEXTS = {
    "opened": "Incident opened",
    "reopened": "Reopened",
    "joined": "Another one failed",
    "breached": "Not delivered in time after the early warning",
    "recovered": "One recovered",
    "resolved": "Recovered; incident resolved",
    "acked": "Acknowledged",
    "answered": "Unusual numbers answered",
    "excused": "Excluded from the SLO",
    "withdrawn": "SLO withdrawn",
    "given_up": "Closed at the give-up deadline",
    "handed_over": "Still broken; continued in incidents of its products",
    "silenced": "Silenced",
    "flapping": "Flapping",
    "past": "Resolved before detection",
    "inhibited": "Inhibited by an upstream incident",
    "holds up": "Inhibits other incidents",
    "summed up": "Sent in a digest",
    "rerouted": "Alerts rerouted",
    "suppressed": "Alert suppressed",
    "dismissed": "Alert discarded by a user",
    "sent": "Alert sent",
    "dead": "Alert delivery failed",
}
_MESSAGE_STATES = {
    "sent": "sent",
    "ready": "pending",
    "sending": "sending",
    "ambiguous": "possibly sent",
    "dead": "rejected",
    "dropped": "no longer needed",
}
# Description of a message by its operation in the outbox.
_MESSAGES = {
    "create": "the alert",
    "update": "update of the alert",
    "remind": "a reminder",
    "acked": "acknowledgement",
    "worse": "escalation",
    "breached": "breach after the early warning",
    "count": "updated count",
    "flapping": "flapping notice",
    "reopened": "reopening",
    "resolved": "resolution",
}
_MAX_SUBJECTS, _MAX_STEPS = 50, 200


def incident_page(facts: IncidentFacts, page: str | None) -> Values:
    """Return the values of an incident's page. `page` is that of its contract, or None."""
    incident = facts.incident
    subjects = sorted(incident.subjects.items(), key=lambda pair: pair[1].opened_at, reverse=True)
    return {
        **incident_row(facts),
        "key": str(incident.key),
        "object": incident.key.object,
        "group": incident.key.group,
        "page": page,
        "breaches": incident.breaches,
        "acked": instant(incident.acked_at) if incident.acked_at else None,
        "silenced": (
            (instant(incident.silenced_until), cut(incident.silence_reason, 300))
            if incident.silenced_until else None
        ),
        "holds_up": incident.inhibits[:50],
        "subjects": [
            {
                "name": cut(_subject(name), 300),
                "opened": instant(subject.opened_at),
                "closed": instant(subject.closed_at) if subject.closed_at else None,
                "end": subject.end.value.replace("_", " ") if subject.end else None,
                "facts": _lines(subject.facts),
                "closing": _lines(subject.closing_facts),
            }
            for name, subject in subjects[:_MAX_SUBJECTS]
        ],
        "subjects_left": max(len(subjects) - _MAX_SUBJECTS, 0),
        "steps": [
            {
                "at": instant(step.at),
                "said": _STEP_TEXTS.get(step.kind, step.kind.replace("_", " ")),
                "subject": cut(_subject(step.subject), 300),
                "detail": cut(_step_detail(step.detail), 500),
            }
            for step in facts.history[-_MAX_STEPS:]
        ],
        "messages": None
        if facts.messages is None
        else [
            {
                "place": cut(f"{message.channel}:{message.target}".rstrip(":"), 200),
                "what": _message(message.operation),
                "state": _MESSAGE_STATES.get(message.state, message.state),
                "reason": cut(message.reason, 300),
            }
            for message in facts.messages
        ],
    }  # fmt: skip


def feed(title: str, own: str, incidents: list[IncidentFacts], up: str) -> dict[str, Any]:
    """Return an Atom feed, newest first. `own` is its name, `up` the relative path to the top of the site.

    Its `updated` is that of its newest entry, so that it changes only when the entries do.
    """
    recent = incidents[:50]
    times = [
        max(facts.incident.opened_at, facts.incident.resolved_at or facts.incident.opened_at)
        for facts in recent
    ]
    return {
        "title": title,
        "own": own,
        "updated": instant(max(times)).iso if times else "1970-01-01T00:00:00Z",
        "entries": [
            {
                "id": facts.incident.id,
                "title": cut(facts.incident.title, 300),
                "page": f"{up}incidents/{incident_slug(facts)}.html",
                "updated": instant(updated_at).iso,
                "published": instant(facts.incident.opened_at).iso,
                "said": _entry_text(facts),
            }
            for facts, updated_at in zip(recent, times, strict=True)
        ],
    }


def _lines(facts: Facts) -> list[tuple[str, str]]:
    return [(cut(label, 80), cut(text)) for label, text in facts if label != TITLE]


def _entry_text(facts: IncidentFacts) -> str:
    incident = facts.incident
    return f"{incident.severity.value}, {incident_state_label(incident.state)}: {incident.key}"


def _subject(name: str) -> str:
    """Return the name of a subject; instants are formatted like all others."""
    try:
        moment = datetime.fromisoformat(name)
    except ValueError:
        return name
    return instant(moment).text if moment.tzinfo else name


def _message(operation: str) -> str:
    return _MESSAGES.get(operation.removeprefix("reply:").partition(":")[0], operation)


def _step_detail(detail: str) -> str:
    """Return the detail of a step; for alerts (`create to console`) with the message described."""
    operation, separator, target = detail.partition(" to ")
    return f"{_message(operation)}{separator}{target}"


def incident_slug(facts: IncidentFacts) -> str:
    """Return the name of an incident's page."""
    return slug(facts.incident.id)
