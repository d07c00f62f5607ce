"""The pages over many products: today, find, lists, domains, changes, incidents, and the search's files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from dq.portal.facts.incidents import IncidentFacts
from dq.portal.facts.names import domain_page
from dq.portal.facts.product import ProductState
from dq.portal.facts.versions import VersionHistory
from dq.portal.facts.watcher import Watcher
from dq.portal.views import changes, domains, find, incident, lists, search
from dq.portal.views.changes import NotedChange
from dq.portal.views.lists import ListPage, ProductRow
from dq.portal.views.words import STATES, instant
from dq.portal.writing.site import Site
from dq.portal.writing.state import SiteState
from dq.portal.writing.templates import STATIC, render, static


@dataclass(slots=True)
class Screens:
    """Writes those pages. `hashes` are of what they were made from, by path; a page whose hash is that of the
    last build stays."""

    site: Site
    rows: Sequence[ProductRow]
    incidents: Sequence[IncidentFacts]
    watcher: Watcher
    before: SiteState
    hashes: dict[str, str] = field(default_factory=dict)

    def write(
        self,
        noted: Sequence[NotedChange],
        histories: Mapping[str, VersionHistory],
        waivers: Sequence[Any] | None,
    ) -> None:
        """All of them."""
        self._incidents()
        self._overview()
        told = changes.changes(noted, self.rows, histories, waivers, self.watcher)
        self.site.put("changes.html", render("changes.html", "", **told))
        self._states()
        self._domains()
        self._search()
        self._shared()

    def _unless_same(self, path: str, inputs: object, made: Callable[[], bytes]) -> None:
        self.hashes[path] = _hash(inputs)
        if self.before.pages.get(path) == self.hashes[path] and self.site.has(path):
            self.site.keep([path])
        else:
            self.site.put(path, made())

    def _shared(self) -> None:
        """What all pages load: the style sheet, the script, and the instant as of which the site is."""
        for name in STATIC:
            self.site.put(f"static/{name}", static(name))
        heard = self.watcher.heard
        facts = {
            "built": instant(self.watcher.now).iso,
            "heard": instant(heard).iso if heard else None,
            "tick": self.watcher.tick.total_seconds(),
        }
        self.site.put("as-of.js", f"window.dqAsOf = {json.dumps(facts)};\n".encode())

    def _overview(self) -> None:
        rows, as_of = self.rows, instant(self.watcher.now)
        put = self.site.put
        put("index.html", render("today.html", "", **lists.today(rows, self.incidents, self.watcher)))
        put("find.html", render("find.html", "", as_of=as_of, **find.find(rows, search.filter_shelf)))
        feed = incident.feed("Incidents", "all", list(self.incidents), "")
        put("incidents.xml", render("feed.xml", "", **feed))

    def _states(self) -> None:
        """The lists of all products that stand alike."""
        for state in ProductState:
            those = sorted(
                (one for one in self.rows if one.state is state), key=lambda one: one.card.title.lower()
            )
            for page in lists.listings(state.value, f"Products: {STATES[state].text}", those):
                self._list(page, "listing.html", {})

    def _domains(self) -> None:
        """The report of each domain, and the list of them."""
        found = domains.by_domain(self.rows)
        for name, those in found.items():
            report = domains.domain(name, those, self.watcher)
            first = domain_page(name).removeprefix("domains/").removesuffix(".html")
            for page in lists.listings(first, report["title"], those, "domains"):
                if page.number == 1:
                    self._list(page, "domain.html", report)
                else:
                    self._list(page, "listing.html", {})
        table = [domains.line(name, those) for name, those in found.items()]
        values = {"domains": table, "as_of": instant(self.watcher.now)}
        self.site.put("domains/index.html", render("domains.html", "../", **values))

    def _list(self, page: ListPage, template: str, more: Mapping[str, Any]) -> None:
        said = {name: value for name, value in more.items() if name != "as_of"}
        as_of, up = instant(self.watcher.now), "../" * page.path.count("/")

        def made() -> bytes:
            return render(template, up, as_of=as_of, **{**said, **lists.listing(page)})

        self._unless_same(page.path, (said, lists.made_from(page)), made)

    def _incidents(self) -> None:
        pages = {one.card.key: one.card.slug for one in self.rows if one.card.key}
        as_of = instant(self.watcher.now)
        for one in self.incidents:
            path = f"incidents/{incident.slug_of(one)}.html"
            inputs = (one.incident, one.history, one.messages, pages.get(one.incident.key.contract))

            def made(of: IncidentFacts = one) -> bytes:
                return render("incident.html", "../", as_of=as_of, **incident.incident(of, pages.get))

            self._unless_same(path, inputs, made)

    def _search(self) -> None:
        """The files of the search: those in which a product that changed stands or stood."""
        paths = [path for path in self.before.paths if path.startswith("search/")]
        words: set[str] | None = None
        filters: set[str] | None = None
        if self.before.contracts and all(map(self.site.has, paths)):
            words, filters = self._sought_anew()
            names = {*map(search.shelf_of, words), *filters}
            self.site.keep(path for path in paths if path[len("search/") : -len(".js")] not in names)
        for name, data in (
            *search.word_shelves(self.rows, words),
            *search.filter_shelves(self.rows, filters),
        ):
            self.site.put(f"search/{name}.js", data)

    def _sought_anew(self) -> tuple[set[str], set[str]]:
        """The beginnings of words, and the filters, of which the last build's files are no more right."""
        old = {file: ProductRow(one.card, one.summary) for file, one in self.before.contracts.items()}
        new = {one.card.file: one for one in self.rows}
        words, filters = set[str](), set[str]()
        for file in old.keys() | new.keys():
            before, after = old.get(file), new.get(file)
            if not (before and after and before.card is after.card):
                words |= search.words_between(before, after)
            if before != after:
                filters |= search.filters_between(before, after)
        return words, filters


def _hash(value: object) -> str:
    return sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]
