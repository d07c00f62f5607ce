"""The pages over many products: today, find, lists, domains, changes, incidents, and the search's files."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dq.portal.facts.incidents import IncidentFacts
from dq.portal.facts.product import ProductState
from dq.portal.facts.watcher import Watcher
from dq.portal.views import changes, domains, find, incident, lists, search
from dq.portal.views.changes import NotedChange
from dq.portal.views.lists import ProductRow
from dq.portal.views.words import STATES, instant
from dq.portal.writing.site import Site
from dq.portal.writing.templates import STATIC, render, static


def shared(site: Site, watcher: Watcher) -> None:
    """What all pages load: the style sheet, the script, and the instant as of which the site is."""
    for name in STATIC:
        site.put(f"static/{name}", static(name))
    facts = {
        "built": instant(watcher.now).iso,
        "heard": instant(watcher.heard).iso if watcher.heard else None,
        "tick": watcher.tick.total_seconds(),
    }
    site.put("as-of.js", f"window.dqAsOf = {json.dumps(facts)};\n".encode())


def overview(
    site: Site,
    rows: Sequence[ProductRow],
    incidents: Sequence[IncidentFacts],
    noted: Sequence[NotedChange],
    waivers: Sequence[Any],
    watcher: Watcher,
) -> None:
    """Today, find, changes and the feed of all incidents."""
    site.put("index.html", render("today.html", "", **lists.today(rows, incidents, watcher)))
    as_of = instant(watcher.now)
    site.put("find.html", render("find.html", "", as_of=as_of, **find.find(rows, search.filter_shelf)))
    site.put("changes.html", render("changes.html", "", **changes.changes(noted, rows, waivers, watcher)))
    site.put(
        "incidents.xml", render("feed.xml", "", **incident.feed("Incidents", "all", list(incidents), ""))
    )


def states(site: Site, rows: Sequence[ProductRow], watcher: Watcher) -> None:
    """The lists of all products that stand alike."""
    for state in ProductState:
        those = sorted((one for one in rows if one.state is state), key=lambda one: one.card.title.lower())
        for page in lists.listings(state.value, f"Products: {STATES[state].text}", those):
            values = lists.listing(page)
            site.put(page.path, render("listing.html", "../", as_of=instant(watcher.now), **values))


def reports(site: Site, rows: Sequence[ProductRow], watcher: Watcher) -> None:
    """The report of each domain, and the list of them."""
    found = domains.by_domain(rows)
    for name, those in found.items():
        report = domains.domain(name, those, watcher)
        first = domains.domain_page(name)
        pages = lists.listings(
            first.removeprefix("domains/").removesuffix(".html"), report["title"], those, "domains"
        )
        for page in pages:
            values = {**lists.listing(page), **({"as_of": report["as_of"]} if page.number > 1 else report)}
            template = "domain.html" if page.number == 1 else "listing.html"
            site.put(page.path, render(template, "../", **values))
    table = [_domain_line(name, those) for name, those in found.items()]
    site.put("domains/index.html", render("domains.html", "../", as_of=instant(watcher.now), domains=table))


def _domain_line(name: str, rows: Sequence[ProductRow]) -> dict[str, Any]:
    good, bad = sum(one.summary.good for one in rows), sum(one.summary.bad for one in rows)
    matters = (ProductState.BROKEN, ProductState.LATE)
    unknown = (ProductState.UNKNOWN, ProductState.UNREADABLE)
    return {
        "name": name or "(none)",
        "page": domains.domain_page(name),
        "products": len(rows),
        "in_time": f"{int(1000 * good / (good + bad)) / 10:.1f}%" if good + bad else "-",
        "bad": sum(one.state in matters for one in rows),
        "unknown": sum(one.state in unknown for one in rows),
    }


def incident_path(facts: IncidentFacts) -> str:
    """The page of an incident."""
    return f"incidents/{incident.slug_of(facts)}.html"


def incidents(
    site: Site, found: Sequence[IncidentFacts], page_of: Callable[[str], str | None], watcher: Watcher
) -> None:
    """A page for each incident."""
    for one in found:
        values = incident.incident(one, page_of)
        site.put(incident_path(one), render("incident.html", "../", as_of=instant(watcher.now), **values))


def searching(
    site: Site, rows: Sequence[ProductRow], wanted: Collection[str] | None, kept: Collection[str]
) -> None:
    """The files of the search. `wanted` are the shelves of words that may have changed, None for all; of the
    others, those that are `kept` stay."""
    readable = [one.card for one in rows if one.card.readable]
    names = set()
    for name, data in search.word_shelves(readable, wanted):
        site.put(f"search/{name}.js", data)
        names.add(name)
    if wanted is not None:
        site.keep(path for path in kept if path.startswith("search/w-") and path[7:-3] not in wanted)
    for name, data in search.filter_shelves(rows):
        site.put(f"search/{name}.js", data)


def pages_by_key(rows: Sequence[ProductRow]) -> Mapping[str, str]:
    """The folder of each product's page, by its contract's key."""
    return {one.card.key: one.card.slug for one in rows if one.card.key}
