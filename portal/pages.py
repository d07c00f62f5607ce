"""The pages of products and those over many products, from templates in which every value is text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from dq.contracts.access.files import Found
from dq.contracts.install import needing, release
from dq.contracts.model import Contract
from dq.contracts.outcome import block, in_json, in_xml
from dq.contracts.subscriptions import Subscription
from dq.dataquality.clauses.foreign_key import Neighbours
from dq.dataquality.delivery.replay import rewound
from dq.portal import contracts, lists, product_page
from dq.portal.contracts import NO_EDGES, NOT_ASKED, Card, Edges, Problem, VersionHistory, domain_page, slug
from dq.portal.formatting import STATES, cut, instant
from dq.portal.lists import ListPage, NotedChange, ProductRow
from dq.portal.output import Crew, Site
from dq.portal.product import Known, ProductFacts, ProductState, Summary, product, summary
from dq.portal.product_page import incident_row
from dq.portal.store_queries import IncidentFacts, Watcher, histories, quality
from dq.store.engine import open_as_it_is

if TYPE_CHECKING:
    from jinja2 import Environment


# Templates: values in, pages out. Every value is text, whatever a stranger wrote into it.

STATIC = ("icon.svg", "portal.css", "portal.js")


def render(name: str, up: str, **values: Any) -> bytes:
    """A page; `up` leads from it to the top of the site, such as `../../`."""
    text: str = _environment().get_template(name).render(up=up, **values)
    return text.encode("utf-8")


def static(name: str) -> bytes:
    """A file that goes into the site as it is."""
    return (files("dq.portal") / "static" / name).read_bytes()


def require_templates() -> None:
    """Raises MissingTool where the extra is not installed."""
    _environment()


@cache
def templates_digest() -> str:
    """The hash of all that pages are made with: when it changes, every page is written again."""
    made = sha256(release().encode())
    portal = files("dq.portal")
    for folder in (portal / "static", portal / "templates", portal):
        for one in sorted(folder.iterdir(), key=lambda one: one.name):
            if one.is_file():
                made.update(one.name.encode() + b"\0" + one.read_bytes())
    return made.hexdigest()


@cache
def _environment() -> Environment:
    with needing("The portal needs jinja2", "portal"):
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup, escape
    made = Environment(
        loader=PackageLoader("dq.portal", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
        auto_reload=False,
    )
    # What XML cannot hold at all is shown; everything else is itself.
    made.filters["xml"] = lambda value: Markup(in_xml(str(escape(value))))
    return made


def _shown(value: Any) -> Any:
    """A text of a stranger as something that can be seen: no mark of direction or control character acts.

    What is `None` is a mistake of ours, and shows.
    """
    return block(value) if type(value) is str else value


# The pages of products, written by the batch, and those over many products.

# The pages of products: asked and written by the batch.

_BATCH = 100
_UP = "../../"


@dataclass(frozen=True, slots=True)
class PageJob:
    """One product whose pages are to be written; `beside` are the files that its references may lead into."""

    card: Card
    file: Found
    edges: Edges = NO_EDGES
    beside: tuple[tuple[Found, str], ...] = ()
    consumers: tuple[Subscription, ...] = ()
    incidents: tuple[IncidentFacts, ...] = ()
    linked: Mapping[str, str] = field(default_factory=dict)
    versions: VersionHistory = NOT_ASKED


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a batch: the rows of its products by file, and what was written. `changed` has, by the
    same files, what was written again while the portal was built, so that the product is not known."""

    rows: Mapping[str, Summary]
    changed: Mapping[str, Problem]
    paths: frozenset[str]
    written: int
    same: int


def paths_of(card: Card) -> tuple[str, ...]:
    """The files of a product."""
    names = ("index.html", "status.json", "badge.svg", "incidents.xml")
    return tuple(f"products/{card.slug}/{name}" for name in names)


def write(
    site: Site,
    jobs: Sequence[PageJob],
    store_url: str,
    now: datetime,
    as_of: datetime | None,
    tick: timedelta,
    crew: Crew,
) -> Iterator[Made]:
    """Writes the pages of these products; gives what came of some of them at a time."""
    batches = [jobs[start : start + _BATCH] for start in range(0, len(jobs), _BATCH)]
    for made in crew.each(partial(_batch, site.root, store_url, now, as_of, tick), batches):
        site.paths |= made.paths
        site.written += made.written
        site.same += made.same
        yield made


def _batch(
    root: Path,
    store_url: str,
    now: datetime,
    as_of: datetime | None,
    tick: timedelta,
    jobs: Sequence[PageJob],
) -> Made:
    site, rows, changed = Site(root), {}, {}
    store = open_as_it_is(store_url)
    try:
        with store.read() as tx:
            known = _known(tx, jobs, now, as_of)
    finally:
        store.close()
    for one in jobs:
        contract, beside, job = _read(one)
        if contract is None:
            rows[job.card.file] = _unreadable(site, job, now)
        else:
            others = (other for other in beside if other.file != contract.file)
            near = Neighbours.of([contract, *others])
            facts = product(
                job.card, contract, known, now, near, job.edges, job.consumers, job.versions, tick
            )
            _write(site, job, facts)
            rows[job.card.file] = summary(facts)
        if one is not job:
            changed[job.card.file] = job.card.problems[-1]
    return Made(rows, changed, frozenset(site.paths), site.written, site.same)


def _read(job: PageJob) -> tuple[Contract | None, list[Contract], PageJob]:
    """The contracts that the page is made of; none where the job's own cannot be used.

    One that is not what the build began with comes as a problem of the job: half of a page would speak of
    another contract than the lists and the search do.
    """
    card = job.card
    if not card.readable:
        return None, [], job
    given = [(job.file, card.digest), *job.beside]
    read = [contracts.read_contract(file, digest) for file, digest in given]
    found = [contract for contract in read if contract is not None]
    if len(found) == len(given):
        return found[0], found[1:], job
    file = str(given[read.index(None)][0])
    said = "The file changed while the portal was built."
    problem = Problem(file, "changed-meanwhile", said, "Build the portal again.")
    return None, [], replace(job, card=card.refused(problem))


def _known(tx: Connection, jobs: Sequence[PageJob], now: datetime, as_of: datetime | None) -> Known:
    keys = [job.card.key for job in jobs if job.card.readable]
    mine = {job.card.key: job.incidents for job in jobs}
    cycles = {key: rewound(tx, found, as_of) for key, found in histories(tx, keys).items()}
    return Known(cycles, quality(tx, keys, now, as_of), mine)


def _write(site: Site, job: PageJob, facts: ProductFacts) -> None:
    page = render("product.html", _UP, **product_page.product_page(facts, job.linked.get))
    _put(site, job, page, product_page.status_json(facts), facts.state)


def _put(site: Site, job: PageJob, page: bytes, status: Mapping[str, Any], state: ProductState) -> None:
    """Puts the files of a product, of which `paths_of` are the names."""
    title, own = f"Incidents of {cut(job.card.title, 120)}", slug(job.card.key or job.card.file)
    badge = render("badge.svg", _UP, **product_page.badge(state))
    feed = render("feed.xml", _UP, **lists.feed(title, own, list(job.incidents), _UP))
    for path, content in zip(paths_of(job.card), (page, _json(status), badge, feed), strict=True):
        site.put(path, content)


def _unreadable(site: Site, job: PageJob, now: datetime) -> Summary:
    """The page of a contract that cannot be used, which says why."""
    card, problems = job.card, job.card.problems
    still = [incident_row(one) for one in job.incidents if not one.incident.state.closed]
    values = {
        "title": cut(card.title, 200),
        "state": STATES[ProductState.UNREADABLE],
        "file": card.file,
        "problems": problems[:50],
        "open_incidents": still,
        "as_of": instant(now),
    }
    status = {
        "contract": card.key,
        "version": None,
        "state": ProductState.UNREADABLE.value,
        "as_of": instant(now).iso,
        "problems": [{"at": one.at, "rule": one.rule, "message": one.message} for one in problems[:50]],
    }
    _put(site, job, render("unreadable.html", _UP, **values), status, ProductState.UNREADABLE)
    return Summary(
        ProductState.UNREADABLE.value, f"{problems[0].at}: {problems[0].message}", open_incidents=len(still)
    )


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str, separators=(",", ":"))
    return (in_json(text) + "\n").encode("utf-8", "backslashreplace")


# The pages over many products: today, find, lists, domains, changes, incidents, and the search's files.


@dataclass(slots=True)
class Screens:
    """Writes those pages."""

    site: Site
    rows: Sequence[ProductRow]
    incidents: Sequence[IncidentFacts]
    watcher: Watcher

    def write(
        self,
        noted: Sequence[NotedChange],
        histories: Mapping[str, VersionHistory],
        waivers: Sequence[Any] | None,
    ) -> None:
        """All of them."""
        self._incidents()
        self._overview()
        told = lists.changes_page(noted, self.rows, histories, waivers, self.watcher)
        self.site.put("changes.html", render("changes.html", "", **told))
        self._states()
        self._domains()
        self._search()
        self._shared()

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
        put("index.html", render("today.html", "", **lists.today_page(rows, self.incidents, self.watcher)))
        put("find.html", render("find.html", "", as_of=as_of, **lists.find_page(rows)))
        feed = lists.feed("Incidents", "all", list(self.incidents), "")
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
        found = lists.by_domain(self.rows)
        for name, those in found.items():
            report = lists.domain_report(name, those, self.watcher)
            first = domain_page(name).removeprefix("domains/").removesuffix(".html")
            for page in lists.listings(first, report["title"], those, "domains"):
                if page.number == 1:
                    self._list(page, "domain.html", report)
                else:
                    self._list(page, "listing.html", {})
        table = [lists.domain_line(name, those) for name, those in found.items()]
        values = {"domains": table, "as_of": instant(self.watcher.now)}
        self.site.put("domains/index.html", render("domains.html", "../", **values))

    def _list(self, page: ListPage, template: str, more: Mapping[str, Any]) -> None:
        values = {**more, **lists.listing_page(page), "as_of": instant(self.watcher.now)}
        self.site.put(page.path, render(template, "../" * page.path.count("/"), **values), keep_as_of=True)

    def _incidents(self) -> None:
        pages = {one.card.key: one.card.slug for one in self.rows if one.card.key}
        as_of = instant(self.watcher.now)
        for one in self.incidents:
            page = render("incident.html", "../", as_of=as_of, **lists.incident(one, pages.get))
            self.site.put(f"incidents/{lists.slug_of(one)}.html", page, keep_as_of=True)

    def _search(self) -> None:
        """The files of the search."""
        for name, data in (*lists.word_shelves(self.rows), *lists.filter_shelves(self.rows)):
            self.site.put(f"search/{name}.js", data)
